package review

import (
	"context"
	"errors"
	"fmt"
	"time"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/forge/failure"
	"docent/forge/host"
	"docent/internal/background"
	"docent/internal/task"
)

const (
	mostTries = 12                 // of a reply that the host refuses: some minutes
	longest   = 3 * 24 * time.Hour // that a reply is tried for
	watchFor  = 30 * time.Second   // one question for a job's news
)

// carry takes an instruction a step further, from where it stands to its answer. Each step is stored before the next acts.
func (r *Reviewer) carry(ctx context.Context, id string, attempt int) (time.Duration, error) {
	a, err := r.Catalog.OpenAsk(ctx, id)
	if errors.Is(err, api.ErrNotFound) {
		return task.Done, nil // it is answered, or the project was removed meanwhile
	}
	if err != nil {
		return 0, err
	}
	was := a.State
	err = background.Guard(func() error {
		switch a.State {
		case api.ReviewTaken:
			return r.give(ctx, &a)
		case api.ReviewGiven:
			return r.await(ctx, &a)
		}
		return r.reply(ctx, &a)
	})
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, api.ErrNotFound):
		return task.Done, nil // the project was removed meanwhile
	case was == api.ReviewEnded && r.hopeless(a, attempt, err):
		r.Log.Error("could not reply to a comment", "project", a.Project, "job", a.Job, "comment", a.Comments[0].Link,
			"message", a.ID, "error", err)
		a.State, a.Result, err = api.ReviewAnswered, "unanswerable", nil
	}
	if err == nil {
		err = r.Catalog.SaveAsk(ctx, a)
	}
	if err != nil {
		var said *failure.Error
		var rest time.Duration
		if errors.As(err, &said) {
			rest = min(said.After, time.Hour)
		}
		return rest, fmt.Errorf("the comment %s on job %s of project %s, %s: %w", a.Comments[0].Link, a.Job, a.Project, was, err)
	}
	if was == api.ReviewTaken {
		r.Wake() // the job's next one
	}
	if a.State == api.ReviewAnswered {
		r.metrics.answers.WithLabelValues(a.Result).Inc()
		r.Log.Info("replied to a comment", "project", a.Project, "job", a.Job, "comment", a.Comments[0].Link,
			"message", a.ID, "result", a.Result, "commit", a.Commit)
		return task.Done, nil
	}
	return 0, nil
}

// hopeless reports whether an answer is given up.
func (r *Reviewer) hopeless(a api.ReviewAsk, tries int, err error) bool {
	if errors.Is(err, failure.ErrMisconfigured) {
		return tries >= mostTries
	}
	return tries >= mostTries && r.Now().Sub(a.At) > longest
}

// give gives the instruction to its job. The journal knows it by its comment: what took place is not repeated.
func (r *Reviewer) give(ctx context.Context, a *api.ReviewAsk) error {
	project, err := r.Catalog.Project(ctx, a.Project)
	if err != nil {
		return err
	}
	_, err = r.Starter.FollowUp(ctx, a.Job, startjob.Request{Project: project, Prompt: a.Prompt, ID: a.ID,
		Key: "review " + a.Key})
	words, refused := refusal(err)
	switch {
	case err == nil:
		a.State = api.ReviewGiven
	case refused:
		r.Log.Info("a job refused a comment's instruction", "project", a.Project, "job", a.Job,
			"comment", a.Comments[0].Link, "error", err)
		a.State, a.Result, a.Answer = api.ReviewEnded, "refused", lines("This was not carried out.", words)
	default:
		return err
	}
	return nil
}

// refusal puts in words why a job takes no instruction; false if trying again may help.
func refusal(err error) (string, bool) {
	var limit *api.LimitError
	var invalid *api.InvalidError
	var state *api.StateError
	switch {
	case err == nil:
	case errors.As(err, &limit):
		return fmt.Sprintf("This project has used up its %d instructions of an hour. Comment again in %v.", limit.Limit,
			limit.RetryAfter.Round(time.Minute)+time.Minute), true
	case errors.As(err, &invalid) && len(invalid.Problems) > 0:
		return "The instruction " + plain(invalid.Problems[0].Message) + ".", true
	case errors.As(err, &state) && errors.Is(err, api.ErrConflict):
		return plain(state.Reason), true
	case errors.Is(err, api.ErrNotFound):
		return "The job that opened this pull request does not exist any more.", true
	}
	return "", false
}

// await waits until the job is through with the instruction, and says what became of it.
func (r *Reviewer) await(ctx context.Context, a *api.ReviewAsk) error {
	for {
		reply, err := r.Jobs.Ask(ctx, a.Job, job.Watch{Project: a.Project, Log: true, Until: r.Now()})
		if errors.Is(err, api.ErrNotFound) {
			a.State, a.Result, a.Answer = api.ReviewEnded, "refused", "The job that opened this pull request does not exist any more."
			return nil
		}
		if err != nil {
			return err
		}
		b := job.BecameOf(reply.Log, a.ID)
		if b.Over() || b.Stage == job.Unheard && reply.Row.Job.Status != api.JobActive {
			a.Answer, a.Result = answer(b, a.Pull)
			a.Commit, a.State = b.Commit, api.ReviewEnded
			return nil
		}
		watching, cancel := context.WithTimeout(ctx, 2*watchFor)
		_, err = r.Jobs.Ask(watching, a.Job, job.Watch{Project: a.Project, After: reply.Row.Seq, Until: r.Now().Add(watchFor)})
		cancel()
		if err != nil {
			return err
		}
	}
}

// reply answers in each thread: in the first one in full, in the others in a line.
func (r *Reviewer) reply(ctx context.Context, a *api.ReviewAsk) error {
	project, err := r.Catalog.Project(ctx, a.Project)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, c := range a.Comments {
		first := len(seen) == 0
		if c.Thread != "" && seen[c.Thread] || c.Thread == "" && seen[""] {
			continue
		}
		seen[c.Thread] = true
		body := a.Answer
		switch {
		case !first && a.Commit != "":
			body = "Done together with the other comments, in " + a.Commit + "."
		case !first:
			body = "See the answer to the first comment: " + a.Comments[0].Link
		case c.Thread == "" && c.Text != "":
			body = firstLine(c) + "\n\n" + body
		}
		answering, cancel := context.WithTimeout(ctx, lookLimit)
		to := host.Comment{ID: c.ID, Author: c.Author, Body: c.Text, Path: c.Path, Line: c.Line, Old: c.Old, Quote: c.Quote,
			Thread: c.Thread, Link: c.Link, At: c.At}
		err := r.Hosts.Reply(answering, project, a.Number, to, fmt.Sprintf("%s-%d", a.ID, i), body)
		cancel()
		if err != nil {
			return fmt.Errorf("answer %s: %w", c.Link, err)
		}
	}
	a.State = api.ReviewAnswered
	return nil
}
