package gaps

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"docent/actors/gaps/topics"
	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
)

// keep stores a topic on which somebody acts.
func (t *Tracker) keep(ctx context.Context, project api.ProjectID, topic *Topic) (api.Gap, error) {
	if topic.Gap != nil {
		return *topic.Gap, nil
	}
	return t.Catalog.KeepGap(ctx, api.Gap{Project: project, State: api.GapOpen, Anchor: api.TurnID(topic.Topic.ID),
		Question: topic.Question, Words: topic.Words, Terms: topic.Terms})
}

// longestReason is how many characters a reason may have.
const longestReason = 1000

// Dismiss says that nothing is to be done about a topic, and why.
func (t *Tracker) Dismiss(ctx context.Context, project api.ProjectID, id, by, reason string) (api.Gap, error) {
	if reason = strings.TrimSpace(reason); len([]rune(reason)) > longestReason {
		return api.Gap{}, &api.InvalidError{Problems: []api.Problem{{Field: "reason",
			Message: fmt.Sprintf("must have at most %d characters", longestReason)}}}
	}
	return t.change(ctx, project, id, func(g *api.Gap) error {
		if g.State == api.GapOpening || g.State == api.GapJob {
			return &api.StateError{Kind: api.ErrConflict, Reason: "a job works on this topic: cancel the job first"}
		}
		now := t.Now()
		g.State, g.DismissedBy, g.DismissedAt, g.Reason = api.GapDismissed, by, &now, reason
		return nil
	})
}

// Restore takes a dismissal back. A topic whose job was merged is that again; one with a job, or merged, is open again.
func (t *Tracker) Restore(ctx context.Context, project api.ProjectID, id string) (api.Gap, error) {
	return t.change(ctx, project, id, func(g *api.Gap) error {
		switch {
		case g.State == api.GapDismissed && g.MergedAt != nil:
			g.State = api.GapMerged
		case g.State == api.GapOpening:
			return &api.StateError{Kind: api.ErrConflict, Reason: "a job is being opened for this topic"}
		default:
			g.State = api.GapOpen
		}
		g.DismissedBy, g.DismissedAt, g.Reason = "", nil, ""
		return nil
	})
}

func (t *Tracker) change(ctx context.Context, project api.ProjectID, id string, change func(*api.Gap) error) (
	api.Gap, error) {
	topic, err := t.Find(ctx, project, id, t.Now())
	if err != nil {
		return api.Gap{}, err
	}
	gap, err := t.keep(ctx, project, &topic)
	if err != nil {
		return api.Gap{}, err
	}
	return t.Catalog.ChangeGap(ctx, project, gap.ID, change)
}

// An Order is an instruction for a job that is to close a gap.
type Order struct {
	Attempt int // the number that the page showed: the same order comes again with the same number
	Prompt  string
	Draft   bool
	By      api.KeyID // the caller, for the job
	Name    string    // the caller's display name
}

// key names an attempt in the journal.
func key(g *api.Gap) string { return "gap " + string(g.ID) + " " + strconv.Itoa(g.Attempt) }

// Open opens a job for a topic, once for an attempt: an order that comes again is answered with the job that has it.
func (t *Tracker) Open(ctx context.Context, p api.Project, id string, o Order) (api.Gap, error) {
	o.Prompt = strings.TrimSpace(strings.ReplaceAll(o.Prompt, "\r\n", "\n"))
	if strings.Contains(o.Prompt, topics.Placeholder) {
		return api.Gap{}, &api.InvalidError{Problems: []api.Problem{{Field: "prompt",
			Message: "still holds “" + topics.Placeholder + "”: put the text in its place that readers are to find"}}}
	}
	if o.Prompt == "" {
		return api.Gap{}, &api.InvalidError{Problems: []api.Problem{{Field: "prompt",
			Message: "is required: say what is to be changed"}}}
	}
	gap, err := t.change(ctx, p.ID, id, func(g *api.Gap) error { return t.begin(g, o) })
	if err != nil || gap.State != api.GapOpening {
		return gap, err
	}
	return t.carryOut(ctx, p, gap, o)
}

// begin stores the order with the topic, before anything is done.
func (t *Tracker) begin(g *api.Gap, o Order) error {
	repeat := o.Attempt == g.Attempt && g.Attempt > 0
	switch {
	case repeat && (g.State == api.GapOpening || g.Job != ""):
		return nil // as it is stored
	case o.Attempt != g.Attempt+1 || g.State == api.GapOpening || g.State == api.GapJob:
		return &api.StateError{Kind: api.ErrConflict, Reason: "somebody has opened a job for this topic meanwhile: reload the page"}
	}
	now := t.Now()
	g.State, g.Attempt, g.Prompt, g.OpenedBy, g.OpenedAt = api.GapOpening, o.Attempt, o.Prompt, o.Name, &now
	g.Job, g.Branch, g.MergedAt = "", "", nil
	g.DismissedBy, g.DismissedAt, g.Reason = "", nil, ""
	return nil
}

// carryOut creates the job of a stored order, or finds that it was created.
func (t *Tracker) carryOut(ctx context.Context, p api.Project, gap api.Gap, o Order) (api.Gap, error) {
	reply, err := t.Starter.Create(ctx, startjob.Request{Project: p, By: o.By, Prompt: gap.Prompt, Draft: o.Draft,
		Key: key(&gap)})
	if err == nil {
		return t.opened(ctx, &gap, reply.Row.Job.ID)
	}
	if !passing(err) && !errors.Is(err, api.ErrConflict) { // refused: nothing was created
		attempt := gap.Attempt
		_, undo := t.Catalog.ChangeGap(context.WithoutCancel(ctx), p.ID, gap.ID, func(g *api.Gap) error {
			if g.State == api.GapOpening && g.Attempt == attempt {
				g.State = api.GapOpen
			}
			return nil
		})
		err = errors.Join(err, undo)
	}
	return gap, err
}

// opened stores which job has a topic.
func (t *Tracker) opened(ctx context.Context, gap *api.Gap, id api.JobID) (api.Gap, error) {
	attempt := gap.Attempt
	return t.Catalog.ChangeGap(context.WithoutCancel(ctx), gap.Project, gap.ID, func(g *api.Gap) error {
		if g.State == api.GapOpening && g.Attempt == attempt {
			g.State, g.Job = api.GapJob, id
		}
		return nil
	})
}

// follow brings a stored topic up to date, as far as that takes no other machine: whether the job that was being opened
// is there, and whether it was merged. What cannot be known now is known the next time.
func (t *Tracker) follow(ctx context.Context, gap *api.Gap) {
	if gap.State == api.GapOpening {
		id, found, err := t.Starter.Started(gap.Project, key(gap))
		if err != nil || !found {
			return
		}
		if g, err := t.opened(ctx, gap, id); err == nil {
			*gap = g
		}
	}
	if gap.State != api.GapJob {
		return
	}
	branch, at, err := t.landed(ctx, gap)
	if err != nil {
		t.Log.Debug("a topic's job cannot be looked at", "project", gap.Project, "gap", gap.ID, "job", gap.Job, "error", err)
		return
	}
	if at.IsZero() && branch != "" {
		if pull, err := t.Catalog.LatestPull(ctx, gap.Project, branch); err == nil && pull.State == api.PullMerged {
			at = pull.UpdatedAt
			if pull.ClosedAt != nil {
				at = *pull.ClosedAt
			}
		}
	}
	t.merged(ctx, gap, branch, at)
}

// landed is the branch of a topic's job, and when its change was in the documentation, if it went there directly.
func (t *Tracker) landed(ctx context.Context, gap *api.Gap) (branch string, at time.Time, err error) {
	reply, err := t.Jobs.Ask(ctx, gap.Job, job.Read{Project: gap.Project})
	if err != nil {
		return "", at, err
	}
	row := reply.Row
	if row.Job.Status == api.JobCompleted && row.Job.Outcome == api.OutcomeChanged && row.Job.PRLink == nil {
		at = row.Job.UpdatedAt
	}
	return row.Branch, at, nil
}

// merged stores that a topic's change is in the documentation since a time.
func (t *Tracker) merged(ctx context.Context, gap *api.Gap, branch string, at time.Time) {
	if at.IsZero() {
		return
	}
	g, err := t.Catalog.ChangeGap(ctx, gap.Project, gap.ID, func(g *api.Gap) error {
		if g.State == api.GapJob && g.Job == gap.Job {
			g.State, g.MergedAt, g.Branch = api.GapMerged, &at, branch
		}
		return nil
	})
	if err == nil {
		*gap = g
	}
}

// Follow asks code hosts about the jobs of all topics that wait for a merge.
func (t *Tracker) Follow(ctx context.Context) error {
	waiting, err := t.Catalog.Gaps(ctx, "", api.GapJob, api.GapOpening)
	if err != nil {
		return err
	}
	for i := range waiting {
		gap := &waiting[i]
		if t.follow(ctx, gap); gap.State != api.GapJob || ctx.Err() != nil {
			continue
		}
		p, err := t.Catalog.Project(ctx, gap.Project)
		if err != nil || p.Host == api.HostBuiltin {
			continue
		}
		branch, _, err := t.landed(ctx, gap)
		if err != nil || branch == "" {
			continue
		}
		one, cancel := context.WithTimeout(ctx, time.Minute)
		state, err := t.Pulls.PullState(one, p, branch)
		cancel()
		switch {
		case err != nil:
			t.Log.Warn("could not check a topic's pull request", "project", gap.Project, "gap", gap.ID, "error", err)
		case state == api.PullMerged:
			t.merged(ctx, gap, branch, t.Now())
		}
	}
	return ctx.Err()
}
