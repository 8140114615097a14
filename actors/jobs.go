package actors

import (
	"context"
	"errors"

	"docent/actors/job"
	"docent/api"
	"docent/internal/tracing"
)

// Jobs finds or starts the actor of a job and asks it.
type Jobs struct {
	system *System
	dir    *directory
}

// Ask sends a command to a job. A changing command that the context cuts short did not take place, unless the error
// says that this is not known.
func (j *Jobs) Ask(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error) {
	if !api.ValidID(api.JobPrefix, string(id)) {
		return job.Reply{}, api.ErrNotFound // no actor is started for what cannot be an id
	}
	read := false
	switch c := cmd.(type) {
	case nil:
		return job.Reply{}, errors.New("a nil command")
	case job.Create: // here and not in the actor, which reads no files
		c.Source, c.Works = j.system.deps.Forge.Source(c.Project), j.system.deps.Editor.Model(c.Asks())
		var span tracing.Span
		ctx, span = j.system.deps.Tracer.Begin(ctx, "start a job")
		defer span.End()
		c.Traced = tracing.Carried(ctx)
		cmd = c
	case job.FollowUp:
		var span tracing.Span
		ctx, span = j.system.deps.Tracer.Begin(ctx, "follow up")
		defer span.End()
		c.Traced = tracing.Carried(ctx)
		cmd = c
	case job.Read, job.Watch:
		read = true
	}
	v, err := j.system.ask(ctx, j.dir, string(id), cmd, read)
	if err != nil {
		return job.Reply{}, err
	}
	return v.(job.Reply), nil
}

// jobBehavior makes a job fit into an entity.
type jobBehavior struct{ *job.Actor }

func (j jobBehavior) command(r *request) {
	j.Command(r.command.(job.Command), r.gone, func(reply job.Reply, err error) { r.answer(reply, err) })
}

func (s *System) newJobs() *directory {
	deps := &job.Deps{Deps: s.outside(s.jobGate), Editor: s.deps.Editor, Forge: s.deps.Forge, Open: s.openGate,
		Patience: s.deps.Patience, RunLimit: s.deps.RunLimit,
		Ended: s.counts.jobEnded, Oldest: s.counts.oldest.set}
	return s.newDirectory("job", func(id string,
		self self) behavior {
		return jobBehavior{job.New(api.JobID(id), deps, self)}
	})
}
