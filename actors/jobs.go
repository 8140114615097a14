package actors

import (
	"context"
	"errors"

	"docent/actors/job"
	"docent/api"
	"docent/persistence/journal"
)

// Jobs finds or starts the actor of a job and asks it.
type Jobs struct {
	system *System
	dir    *directory
}

// Ask sends a command to a job. A changing command that the context cuts short did not take place, unless the error says
// that this is not known.
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

// jobResident makes a job fit into an entity.
type jobResident struct{ *job.Actor }

func (j jobResident) command(r *request) {
	j.Command(r.command.(job.Command), r.gone, func(reply job.Reply, err error) { r.answer(reply, err) })
}

func (s *System) newJobs() *directory {
	deps := &job.Deps{
		Journal: s.deps.Journal, Editor: s.deps.Editor, Forge: s.deps.Forge, Projects: s.deps.Projects, Slots: s.jobGate, Open: s.openGate,
		Now: s.deps.Now, Log: s.log, Context: s.ctx, Go: s.effects.Go, Backoff: Backoff(s.deps.RetryFirst, s.deps.RetryLimit),
		Patience: s.deps.Patience, RunLimit: s.deps.RunLimit,
	}
	return s.newDirectory("job",
		func(id string, self teller) resident { return jobResident{job.New(api.JobID(id), deps, self)} },
		func(err error) bool {
			var r *job.RecoverError
			return errors.As(err, &r) || errors.Is(err, journal.ErrCorrupt)
		})
}
