package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"docent/api"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/persistence/cluster"
	"docent/persistence/journal"
)

// errMoved answers a command that came to the actor of another node. Nothing of it was done.
var errMoved = fmt.Errorf("another node is to run it: %w", &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: time.Second})

// here reports whether this node runs the actor of an id.
func (d *directory) here(id string) bool {
	return d.everywhere || d.system.deps.Place.Owns(d.kind+"/"+id)
}

// placeTries bounds how often a command looks for its actor again. Each time but the first, the actor was taken away
// between the look and the command.
const placeTries = 8

// ask sends a command to the actor of an id and waits for its answer. An error of the context means that nothing
// happened and nothing will, unless it says otherwise; reads leave at once. If another node runs the actor, the error is
// a *cluster.ElsewhereError, and nothing happened here.
func (s *System) ask(ctx context.Context, d *directory, id string, command any, read bool) (v any, err error) {
	place, name := s.deps.Place, d.kind+"/"+id
	for range placeTries {
		if err := place.Check(ctx, name); err != nil {
			return nil, err
		}
		v, err = s.askHere(ctx, d, id, command, read)
		switch {
		case errors.Is(err, errMoved), place.Several() && errors.Is(err, journal.ErrSequence): // nothing was written
		case err == nil && read && !place.Owns(name): // it ended while it was read or watched
		default:
			return v, err
		}
	}
	return v, err
}

// release is a message to a supervisor: children in these shards end.
type release struct {
	shards *[cluster.Shards]bool
	ended  *background.Work
}

// release ends the children that another node is to run. What is queued for them is done before.
func (s *shard) release(ctx actor.Context, msg release) {
	defer msg.ended.Done()
	if s.stopping {
		return
	}
	for _, e := range s.entries {
		if !msg.shards[cluster.Shard(s.d.kind+"/"+e.id)] || s.d.here(e.id) {
			continue // also one that has come back meanwhile
		}
		for _, waiting := range e.stashed {
			waiting.request.answer(nil, errMoved)
		}
		e.stashed = nil
		if e.phase == quarantined {
			s.moved(e)
			continue
		}
		if s.leaving == nil {
			s.leaving = make(map[string]func())
		}
		before := s.leaving[e.id]
		msg.ended.Add(1)
		s.leaving[e.id] = func() {
			msg.ended.Done()
			if before != nil {
				before()
			}
		}
		switch e.phase {
		case awake:
			e.phase, e.poisoned = passivating, true
			s.used.remove(e)
			ctx.Poison(e.pid)
		case restarting: // at once, to answer what is queued
			s.restart(ctx, e)
		}
	}
}

// moved forgets a child that has ended and that another node is to run.
func (s *shard) moved(e *entry) {
	if e.quarantine.Load() != nil {
		s.d.system.release(s.d.kind, e.id)
	}
	for _, waiting := range e.stashed {
		waiting.request.answer(nil, errMoved)
	}
	s.used.remove(e)
	delete(s.entries, e.id)
}

// Open returns how many answers of a shard's threads are written here.
func (s *System) Open(shard int) int { return int(s.open[shard].Load()) }

// Release ends the actors of shards that another node is to run: Place says so already. Runs are canceled without a
// result, readers are broken off, and commands that wait look for the other node. It returns when the actors have ended.
func (s *System) Release(ctx context.Context, shards []int) error {
	msg := release{shards: new([cluster.Shards]bool), ended: new(background.Work)}
	for _, n := range shards {
		msg.shards[n] = true
	}
	for _, d := range []*directory{s.jobs.dir, s.threads.dir} {
		for _, pid := range d.shards {
			msg.ended.Add(1)
			s.runtime.Root.Send(pid, msg)
		}
	}
	done := make(chan struct{})
	background.Go("actors.Release", func() { msg.ended.Wait(); close(done) })
	select {
	case <-done:
		return nil
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end the actors of %d shards: %w", len(shards), context.Cause(ctx))
	}
}

// Wake takes up what is pending in shards that this node has come to run, in the background.
func (s *System) Wake(shards []int) {
	var mine [cluster.Shards]bool
	for _, n := range shards {
		mine[n] = true
	}
	background.Go("actors.Wake", func() {
		pause := backoff.Exponential(100*time.Millisecond, 5*time.Second)
		for n := 1; s.ctx.Err() == nil; n++ {
			var pending []string
			err := s.deps.Journal.Pending(func(stream string) bool {
				if mine[cluster.Shard(stream)] && s.deps.Place.Owns(stream) {
					pending = append(pending, stream)
				}
				return true
			})
			if err == nil {
				s.wake(pending)
				return
			}
			s.log.Error("list pending streams, trying again", "error", err)
			if backoff.Sleep(s.ctx, pause(n)) != nil {
				return
			}
		}
	})
}
