package review

import (
	"context"
	"errors"

	"docent/actors/job"
	"docent/api"
)

// mostSent is how many comments of the built-in host are looked at in one step.
const mostSent = 200

// answerBuiltin stores what became of comments on the built-in host's pull requests. The page shows it from the job's log
// before; the log of a long job does not hold it for ever.
func (r *Reviewer) answerBuiltin(ctx context.Context) error {
	sent, err := r.Catalog.SentComments(ctx, mostSent)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, c := range sent {
		if seen[c.Message] || !r.Owns(job.Stream(c.Job)) {
			continue
		}
		seen[c.Message] = true
		reply, err := r.Jobs.Ask(ctx, c.Job, job.Watch{Project: c.Project, Log: true, Until: r.Now()})
		b := job.BecameOf(reply.Log, c.Message)
		switch {
		case errors.Is(err, api.ErrNotFound): // the job was removed: nobody knows any more
		case err != nil:
			r.Log.Warn("what became of a comment is not known yet", "project", c.Project, "job", c.Job, "pull", c.Pull,
				"error", err)
			continue
		case !b.Over() && (b.Stage != job.Unheard || reply.Row.Job.Status == api.JobActive):
			continue
		}
		err = r.Catalog.AnswerComments(ctx, c.Pull, c.Message, func(c *api.Comment) {
			c.Answer, c.Outcome, c.AnswerCommit, c.Failed = b.Text, b.Outcome, b.Commit, b.Stage == job.GivenUp
		})
		if err != nil {
			return err
		}
		r.Log.Info("replied to a comment", "project", c.Project, "job", c.Job, "pull", c.Pull, "message", c.Message,
			"outcome", b.Outcome, "commit", b.Commit)
	}
	return nil
}
