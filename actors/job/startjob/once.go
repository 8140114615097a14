package startjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/internal/grant"
	"docent/persistence/journal"
)

// ErrReused refuses an idempotency key that was used for another request.
var ErrReused = &api.StateError{Kind: api.ErrConflict,
	Reason: "this Idempotency-Key was used with another body: send a new key with a new request, and the same body with the same key"}

// Gate brings commands to jobs, each once for its key.
type Gate struct {
	Jobs    job.Asker
	Claims  Claims
	Now     func() time.Time
	Timeout time.Duration // of one command
}

// A Command is one instruction on its way to a job.
type Command struct {
	Project api.ProjectID
	Job     api.JobID
	Claim   *journal.Claim // nil if a repeat is a request of its own
	Do      job.Command
	// Admit takes what the command costs and where it waits, into a grant that is closed in the end.
	Admit func(*grant.Grant) error
}

// Once carries out a command. The job that answers may be another than was asked, where the request came before or a
// repeat of it was quicker.
func (g Gate) Once(ctx context.Context, c Command) (job.Reply, error) {
	held, found, err := g.earlier(c.Claim)
	if err != nil {
		return job.Reply{}, err
	}
	if found {
		return g.holder(ctx, c.Project, held)
	}
	var given grant.Grant
	defer given.Close()
	if err := c.Admit(&given); err != nil {
		return job.Reply{}, err
	}
	reply, err := g.Ask(ctx, c.Job, c.Do)
	if reply.Fresh || journal.Unsure(err) {
		given.Keep()
	}
	if claimed, ok := errors.AsType[*journal.ClaimedError](err); ok {
		if claimed.Claim.Digest != c.Claim.Digest {
			return job.Reply{}, ErrReused
		}
		return g.holder(ctx, c.Project, claimed.Claim)
	}
	return reply, err
}

// Ask asks a job's actor. The actor's answer is waited for even when the caller has gone: whether a use of the quota
// counts depends on it.
func (g Gate) Ask(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.Timeout)
	defer cancel()
	reply, err := g.Jobs.Ask(ctx, id, cmd)
	return reply, api.Named(err, "job")
}

// earlier looks whether a claim was made already. The journal decides when two requests come at once; this spares the
// quota and the actor of a plain repeat.
func (g Gate) earlier(c *journal.Claim) (journal.Claim, bool, error) {
	if c == nil {
		return journal.Claim{}, false, nil
	}
	held, found, err := g.Claims.Claim(c.Key, g.Now())
	if err != nil {
		return journal.Claim{}, false, fmt.Errorf("look up an idempotency key: %w", err)
	}
	if found && held.Digest != c.Digest {
		return journal.Claim{}, false, ErrReused
	}
	return held, found, nil
}

// holder is the job that answers for an idempotency key.
func (g Gate) holder(ctx context.Context, project api.ProjectID, held journal.Claim) (job.Reply, error) {
	id, ok := job.OfStream(held.Owner)
	if !ok {
		return job.Reply{}, fmt.Errorf("idempotency key held by %q, which is no job", held.Owner)
	}
	return g.Ask(ctx, id, job.Read{Project: project})
}
