package review

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/forge/host"
	"docent/internal/cell"
)

const (
	overlap    = time.Hour        // comments are asked for again from so far back: what was seen is known by its id
	together   = 2 * time.Second  // comments of a review appear at once, or nearly
	lookLimit  = 2 * time.Minute  // one look at a pull request
	secondLook = 15 * time.Second // after a hint that found nothing: hosts tell before they show
)

// pace is how long after a look at an open pull request the next one is, from how long there was no news. Over a
// thousand old ones, a project's looks are some hundred in an hour.
func pace(quiet time.Duration) time.Duration {
	switch {
	case quiet < time.Hour:
		return time.Minute
	case quiet < 24*time.Hour:
		return 10 * time.Minute
	case quiet < 7*24*time.Hour:
		return time.Hour
	}
	return 6 * time.Hour
}

// numbered is the number at the end of the link of a pull request, as the hosts have it.
var numbered = regexp.MustCompile(`/(?:pull|pulls|merge_requests)/(\d{1,9})/?$`)

// follow is how a job's pull request is followed from now on; false if it is none of a code host.
func follow(row api.JobRow, since, now time.Time) (api.ReviewPull, bool) {
	if row.Job.PRLink == nil || row.Joined { // the job that opened it answers for it
		return api.ReviewPull{}, false
	}
	m := numbered.FindStringSubmatch(*row.Job.PRLink)
	if m == nil {
		return api.ReviewPull{}, false
	}
	number, err := strconv.Atoi(m[1])
	p := api.ReviewPull{Project: row.Project, Number: number, Job: row.Job.ID, Branch: row.Branch, Link: *row.Job.PRLink,
		State: api.PullOpen, Next: now, Active: row.Job.UpdatedAt}
	if row.Job.CreatedAt.Before(since) {
		p.From = since // what was said before comments were followed is no instruction
	}
	return p, err == nil && number > 0
}

// look reads what was said on a pull request, and stores what of it is an instruction.
func (r *Reviewer) look(ctx context.Context, project api.Project, p api.ReviewPull) error {
	ctx, cancel := context.WithTimeout(cell.WithOwner(ctx, string(p.Project)), lookLimit)
	defer cancel()
	now := r.Now()
	// Should the process end in the look, another one follows.
	if err := r.Catalog.BeginLook(ctx, p.Project, p.Number, now.Add(lookLimit)); err != nil {
		return err
	}
	hinted := p.Hinted
	p.Hinted = false
	state, err := r.Hosts.PullState(ctx, project, p.Number)
	if err != nil {
		return fmt.Errorf("look at %s: %w", p.Link, err)
	}
	changed := state != p.State
	if changed {
		if gone, err := r.tell(ctx, p, state); err != nil {
			return err
		} else if gone {
			p.Next = time.Time{}
			return r.Catalog.EndLook(ctx, p, nil)
		}
		r.Log.Info("a pull request changed state", "project", p.Project, "job", p.Job, "pull", p.Link, "state", state)
		p.State, p.Active = state, now
	}
	var asks []api.ReviewAsk
	if project.ReviewMode() == api.ReviewOff {
		p.From = now // what is said meanwhile is no instruction later
	} else if state == api.PullOpen || changed || hinted {
		since := p.From
		if from := p.Newest.Add(-overlap); from.After(since) {
			since = from
		}
		all, err := r.Hosts.Comments(ctx, project, p.Number, since)
		if err != nil {
			return fmt.Errorf("read the comments of %s: %w", p.Link, err)
		}
		fresh := unread(&p, all, since)
		if len(fresh) > 0 {
			p.Active = now
		}
		if asks, err = r.instructions(ctx, project, p, fresh); err != nil {
			return err
		}
		if hinted && state == api.PullOpen && !changed && len(fresh) == 0 && now.Sub(p.Active) > secondLook {
			p.Active, p.Next = now, now.Add(secondLook) // once more, soon
			p.Failed, p.Said = 0, ""
			return r.Catalog.EndLook(ctx, p, nil)
		}
	}
	p.Failed, p.Said, p.Next = 0, "", time.Time{}
	if state == api.PullOpen {
		p.Next = now.Add(pace(now.Sub(p.Active)))
	}
	return r.Catalog.EndLook(ctx, p, asks)
}

// tell tells a job where its pull request stands. It is gone if there is no such job any more.
func (r *Reviewer) tell(ctx context.Context, p api.ReviewPull, state api.PullState) (gone bool, err error) {
	_, err = r.Jobs.Ask(ctx, p.Job, job.PullIs{Project: p.Project, Branch: p.Branch, State: state})
	if !errors.Is(err, api.ErrNotFound) {
		return false, err
	}
	_, err = r.Jobs.Ask(ctx, p.Job, job.Read{Project: p.Project})
	if errors.Is(err, api.ErrNotFound) {
		return true, nil
	}
	return false, err // the job opened it before it kept which ones it opened
}

// unread are the comments that were not read before. Those that are changed later are nothing new.
func unread(p *api.ReviewPull, all []host.Comment, since time.Time) []host.Comment {
	var fresh []host.Comment
	seen := p.Seen
	p.Seen = make([]string, 0, len(all))
	for _, c := range all {
		if c.At.Before(since) {
			continue // an old one that was changed
		}
		p.Seen = append(p.Seen, c.ID)
		if c.At.After(p.Newest) {
			p.Newest = c.At
		}
		if !slices.Contains(seen, c.ID) {
			fresh = append(fresh, c)
		}
	}
	return fresh
}

// instructions are what comments ask of the job, one for each comment, and one for those of a review together.
func (r *Reviewer) instructions(ctx context.Context, project api.Project, p api.ReviewPull, fresh []host.Comment) (
	[]api.ReviewAsk, error) {
	var groups [][]api.ReviewComment
	for _, review := range reviews(fresh) {
		group, err := r.heard(ctx, project, review)
		if err != nil {
			return nil, err
		}
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	if len(groups) == 0 {
		return nil, nil
	}
	reply, err := r.Jobs.Ask(ctx, p.Job, job.Read{Project: p.Project})
	if err != nil {
		return nil, fmt.Errorf("look at job %s: %w", p.Job, err)
	}
	var asks []api.ReviewAsk
	now := r.Now()
	for i, group := range groups {
		at := now.Add(time.Duration(i) * time.Millisecond) // ids of one millisecond are in no order
		a := api.ReviewAsk{ID: r.IDs.New(api.TurnPrefix, at), Project: p.Project, Number: p.Number, Pull: p.Link, Job: p.Job,
			Key: fmt.Sprintf("%s/%d/%s", p.Project, p.Number, group[0].ID), State: api.ReviewTaken, Comments: group, At: at}
		said := slices.DeleteFunc(slices.Clone(group), func(c api.ReviewComment) bool { return c.Text == "" })
		switch {
		case p.State != api.PullOpen:
			a.State, a.Result, a.Answer = api.ReviewEnded, "over", over(p.State)
		case len(said) == 0:
			a.State, a.Result, a.Answer = api.ReviewEnded, "question", asked(project.AgentHandle())
		default:
			a.Prompt = Prompt(fmt.Sprintf("the pull request #%d", p.Number), said, Builtin(reply.Row))
		}
		r.Log.Info("a comment was taken as an instruction", "project", p.Project, "job", p.Job, "comment", group[0].Link,
			"author", group[0].Author, "comments", len(group), "message", a.ID, "state", a.State)
		asks = append(asks, a)
	}
	return asks, nil
}

// reviews puts together the comments that one author made at once, of which all but one stand on a line: they were
// submitted as one review. Others stand alone.
func reviews(comments []host.Comment) [][]host.Comment {
	var out [][]host.Comment
	for _, c := range comments {
		i := slices.IndexFunc(out, func(group []host.Comment) bool {
			last := group[len(group)-1]
			return last.Author == c.Author && partOfReview(c) && partOfReview(group[0]) && c.At.Sub(last.At) <= together
		})
		if i < 0 {
			out = append(out, []host.Comment{c})
		} else {
			out[i] = append(out[i], c)
		}
	}
	return out
}

// partOfReview reports whether a comment stands on a line, or is the text of a review.
func partOfReview(c host.Comment) bool { return c.Path != "" || strings.HasPrefix(c.ID, "summary/") }

// heard are the comments of a review, or the one comment, that are instructions. Those of strangers, of bots and of
// Docent itself never are, and are not even read. Where the text of a review names the agent, its comments on lines are
// meant as well.
func (r *Reviewer) heard(ctx context.Context, project api.Project, review []host.Comment) ([]api.ReviewComment, error) {
	handle := project.AgentHandle()
	all := project.ReviewMode() == api.ReviewLines
	read := make([]*said, len(review)) // those that may be meant
	for i, c := range review {
		switch {
		case c.Own:
		case strings.HasSuffix(c.Author, "[bot]"):
			r.metrics.comments.WithLabelValues("bot").Inc()
		case !c.MayWrite && mayAddress(c.Body, handle):
			r.metrics.comments.WithLabelValues("stranger").Inc()
			r.Log.Info("ignored a comment: its author cannot write to the repository", "project", project.ID,
				"comment", c.Link, "author", c.Author)
		case !c.MayWrite:
			r.metrics.comments.WithLabelValues("not_addressed").Inc()
		case !mayAddress(c.Body, handle) && c.Path == "":
			read[i] = &said{}
		default:
			s, err := readApart(ctx, r.Cell, c.Body, handle)
			if _, ok := errors.AsType[*cell.UnreadableError](err); ok {
				r.metrics.comments.WithLabelValues("unreadable").Inc()
				r.Log.Warn("could not read a comment", "project", project.ID, "comment", c.Link, "author", c.Author, "error", err)
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read the comment %s: %w", c.Link, err)
			}
			read[i] = &s
			all = all || c.Path == "" && len(review) > 1 && s.Addressed
		}
	}
	var out []api.ReviewComment
	for i, c := range review {
		s := read[i]
		switch {
		case s == nil:
		case !s.Addressed && (!all || c.Path == "" || s.Elsewhere):
			r.metrics.comments.WithLabelValues("not_addressed").Inc()
		default:
			r.metrics.comments.WithLabelValues("instruction").Inc()
			out = append(out, api.ReviewComment{ID: c.ID, Author: c.Author, Text: s.Text, Quoted: s.Quoted, Path: c.Path,
				Line: c.Line, Old: c.Old, Quote: c.Quote, Thread: c.Thread, Link: c.Link, At: c.At})
		}
	}
	return out, nil
}
