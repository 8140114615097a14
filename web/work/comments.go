package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/actors/pulls/review"
	"docent/api"
	"docent/internal/brief"
	"docent/web/console"
	"docent/web/diff"
)

// A commentView is a comment on a line, with what became of it.
type commentView struct {
	api.Comment
	Mine    bool
	Result  console.Badge
	Said    string // the agent's last word on it
	Commit  string // that carried it out; empty if none did
	shown   bool   // beside its line
	Element string // its id
}

// At is how people name the line.
func (c commentView) At() string {
	if c.Old {
		return fmt.Sprintf("line %d before the change", c.Line)
	}
	return fmt.Sprintf("line %d", c.Line)
}

// An askView is the form for a comment on a line.
type askView struct {
	At       string
	Text     string
	Problems map[string]string
}

// addComments adds to a page what was said on lines, and what became of it.
func (s *handler) addComments(v *console.Visit, view *pullView) error {
	all, err := s.Catalog.Comments(v.Context(), view.Pull.ID)
	if err != nil {
		return err
	}
	if view.Pull.Job == "" || len(all) == 0 && !view.MayComment {
		return nil
	}
	reply, err := s.jobOf(v.Context(), view.Pull)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return err
	}
	view.Builtin = review.Builtin(reply.Row)
	for _, c := range all {
		cv := commentView{Comment: c, Mine: c.Author == v.Who.ID, Element: "comment-" + strings.TrimPrefix(c.ID,
			api.CommentPrefix)}
		switch {
		case c.State == api.CommentSent:
			cv.Result, cv.Said, cv.Commit = became(job.BecameOf(reply.Log, c.Message))
			view.Comments = append(view.Comments, cv)
		case c.State == api.CommentAnswered:
			b := job.Became{Stage: job.EndedWell, Text: c.Answer, Outcome: c.Outcome, Commit: c.AnswerCommit}
			switch {
			case c.Failed:
				b.Stage = job.GivenUp
			case c.Outcome == "" && c.Answer == "":
				b.Stage = job.Unheard
			}
			cv.Result, cv.Said, cv.Commit = became(b)
			view.Comments = append(view.Comments, cv)
		case cv.Mine:
			view.Stuck = view.Stuck || c.State == api.CommentSending
			view.Drafts = append(view.Drafts, cv)
		}
	}
	if len(view.Drafts) > 0 {
		drafts := make([]api.Comment, len(view.Drafts))
		for i, d := range view.Drafts {
			drafts[i] = d.Comment
		}
		view.Message = s.commentsMessage(v, view.Pull, drafts, view.Builtin)
	}
	return nil
}

// became is how a page shows what became of a message to a job.
func became(b job.Became) (result console.Badge, said, commit string) {
	switch b.Stage {
	case job.Waits:
		result = console.Badge{Text: "waiting", Class: "info"}
	case job.Works:
		result = console.Badge{Text: "working", Class: "info"}
	case job.GivenUp:
		result = console.Badge{Text: "failed", Class: "bad"}
	case job.EndedWell:
		result = console.JobState(api.JobRow{Job: api.Job{Status: api.JobCompleted, Outcome: b.Outcome}})
	default:
		result = console.Badge{Text: "sent", Class: ""}
	}
	return result, b.Text, b.Commit
}

// remarks returns the comments on a file's lines, and the form for one if the address asks for it.
func (p *pullView) remarks(v *console.Visit, f *fileView) func(at string) ([]commentView, *askView) {
	at := map[string][]*commentView{}
	for _, list := range [][]commentView{p.Comments, p.Drafts} {
		for i := range list {
			if list[i].Path == f.Path {
				ref := lineOf(list[i].Old, list[i].Line)
				at[ref] = append(at[ref], &list[i])
			}
		}
	}
	asked := ""
	if p.MayComment && p.One {
		asked = v.Query("at")
	}
	texts := linesOf(f.Unified)
	return func(ref string) (list []commentView, ask *askView) {
		for _, c := range at[ref] {
			if c.Quote == "" || c.Quote == quoted(texts[ref]) { // else the line is another one by now
				c.shown = true
				list = append(list, *c)
			}
		}
		if ref == asked {
			ask = &askView{At: ref}
		}
		return list, ask
	}
}

// linesOf are the lines that a diff shows, by how addresses name them.
func linesOf(unified string) map[string]string {
	out := map[string]string{}
	for _, h := range diff.Hunks(unified) {
		for _, l := range h.Lines {
			for _, ref := range []string{lineOf(true, l.Old), lineOf(false, l.New)} {
				if ref != "" {
					out[ref] = l.Text
				}
			}
		}
	}
	return out
}

// quoted is a line as a comment keeps it.
func quoted(line string) string {
	c := api.Comment{Quote: line, Text: "x", Path: "x", Line: 1}
	_ = c.Validate() // it cuts the line
	return strings.ToValidUTF8(c.Quote, "\uFFFD")
}

// comment keeps a comment on a line as a draft.
func (s *handler) comment(v *console.Visit) error {
	p, err := s.editable(v)
	if err != nil {
		return err
	}
	if p.Job == "" {
		return &api.StateError{Kind: api.ErrConflict, Reason: "no job made this pull request: there is nobody to comment to"}
	}
	d, err := s.Pulls.Diff(v.Context(), p.ID)
	if err != nil {
		return api.Named(err, "pull request")
	}
	number, _ := strconv.Atoi(v.Form.Get("f"))
	old, line, ok := readLine(v.Form.Get("at"))
	if number < 1 || number > len(d.Files) || !ok || v.Form.Get("path") != d.Files[number-1].Path {
		return &api.StateError{Kind: api.ErrConflict,
			Reason: "the pull request has changed since the page was made: reload it and comment again"}
	}
	f := d.Files[number-1]
	text, there := linesOf(f.Unified)[lineOf(old, line)]
	if !there {
		return api.Missing("line among the changes of " + f.Path)
	}
	base, head, err := s.Pulls.Ends(v.Context(), p.ID)
	if err != nil {
		return api.Named(err, "pull request")
	}
	c := api.Comment{Project: p.Project, Pull: p.ID, Job: p.Job, Path: f.Path, Old: old, Line: line, Quote: quoted(text),
		Commit: head, Text: v.Form.Get("text"), Author: v.Who.ID, By: v.Who.Name}
	if old {
		c.Commit = base
		if f.From != "" {
			c.Path = f.Path // where the job finds it now
		}
	}
	if _, err := s.Catalog.AddComment(v.Context(), c); err != nil {
		if problems := console.Faults(err); len(problems) > 0 {
			return &api.InvalidError{Problems: []api.Problem{{Field: "Comment", Message: cmp.Or(problems["text"],
				problems["path"], problems["line"])}}}
		}
		return err
	}
	return v.Done(fmt.Sprintf("/pulls/%s?open=%d#file-%d", p.ID, number, number),
		"Comment added as a draft. Send your comments when you are done.")
}

// removeComment takes back a draft.
func (s *handler) removeComment(v *console.Visit) error {
	p, err := s.editable(v)
	if err != nil {
		return err
	}
	if err := s.Catalog.RemoveComment(v.Context(), p.ID, v.Who.ID, v.Form.Get("comment")); err != nil {
		return api.Named(err, "draft of yours")
	}
	return v.Done("/pulls/"+p.ID, "Draft removed.")
}

// sendComments sends a visitor's drafts to the job as one message. What is sent twice, or again after its answer was
// lost, is the same message.
func (s *handler) sendComments(v *console.Visit) error {
	p, err := s.editable(v)
	if err != nil {
		return err
	}
	reply, err := s.jobOf(v.Context(), p)
	if err != nil {
		return err
	}
	taken, err := s.Catalog.TakeComments(v.Context(), p.ID, v.Who.ID, api.NewID(api.TurnPrefix, v.Now))
	if err != nil {
		return err
	}
	if len(taken) == 0 {
		return v.Done("/pulls/"+p.ID, "Your comments were already sent.")
	}
	message := taken[0].Message
	_, err = s.Work.FollowUp(v.Context(), p.Job, startjob.Request{Project: v.Project, By: api.KeyID(v.Who.ID), ID: message,
		Prompt: s.commentsMessage(v, p, taken, review.Builtin(reply.Row)), Key: "comments " + message})
	ctx := context.WithoutCancel(v.Context())
	switch {
	case err == nil:
		if err := s.Catalog.SettleComments(ctx, p.ID, message, true); err != nil {
			return err // the next sending finds that the job has them
		}
		v.Audit("pull.comment", p.ID, fmt.Sprintf("%d to %s", len(taken), p.Job))
		return v.Done("/pulls/"+p.ID, "Comments sent to the job. Its progress appears here.")
	case refused(err):
		return errors.Join(s.Catalog.SettleComments(ctx, p.ID, message, false), err)
	}
	return err // nobody knows whether it came there: it is sent again as the same message
}

// refused reports whether a job has refused a message for certain.
func refused(err error) bool {
	for _, kind := range []error{api.ErrInvalid, api.ErrConflict, api.ErrLimited, api.ErrNotFound, api.ErrOverloaded,
		api.ErrShuttingDown} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// commentsMessage is what the job gets of comments. A name at the beginning that calls the agent, as on other code hosts,
// says nothing here: every comment is for it.
func (s *handler) commentsMessage(v *console.Visit, p api.PullRequest, comments []api.Comment, builtin bool) string {
	said := make([]api.ReviewComment, len(comments))
	for i, c := range comments {
		text, quoted := review.Said(v.Context(), s.Cell, c.Text, v.Project.AgentHandle())
		said[i] = api.ReviewComment{Text: text, Quoted: quoted, Path: c.Path, Line: c.Line, Old: c.Old, Quote: brief.Line(c.Quote)}
	}
	return review.Prompt(fmt.Sprintf("the pull request %q (#%d)", brief.Line(p.Title), p.Number), said, builtin)
}
