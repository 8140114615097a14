// Package persistent provides what all persistent actors have in common: their state is the outcome of their events,
// and an event is a fact once it is in the journal.
//
//	command ─▶ Decide ─▶ events ─▶ journal ─▶ Apply ─▶ state ─▶ Pending ─▶ run
//	             ▲                                                          │
//	             └──────────────────────── result ──────────────────────────┘
//
// A Kind is what all actors of a kind share: its pure functions and the names of its events on disk. An Actor is one
// stream of the journal and the state that its events lead to. A Run is one attempt at the work that the state calls
// for, in a goroutine of its own.
//
// Packages job and thread each implement a kind. Package simulation, for tests, puts a kind through crashes, repeats and
// results that come late.
package persistent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"docent/api"
	"docent/internal/tracing"
	"docent/persistence/cluster"
	"docent/persistence/journal"
)

// A Journal keeps events. An append that returned without an error is on disk.
type Journal interface {
	Append(ctx context.Context, a journal.Append) (last uint64, err error)
	Load(stream string) (journal.Recovered, error)
	// Snapshot stores a state that covers the events up to seq, some time later; losing it loses nothing.
	Snapshot(stream string, seq uint64, state []byte)
	// Delete removes the stream with everything of it, and those of the claims that it holds.
	Delete(stream string, claims ...string) error
}

// Projects finds a project as it stands now.
type Projects interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
}

// Self is the way by which the outside reaches an actor: a message to itself, from any goroutine.
type Self interface{ Tell(msg any) }

// Deps is what every persistent actor needs of the outside.
type Deps struct {
	Journal  Journal
	Projects Projects
	Slots    Slots // bounds how many runs work at once
	Now      func() time.Time
	Log      *slog.Logger
	Tracer   *tracing.Tracer // nil if nothing is traced
	Context  context.Context // ends when the service stops
	Go       func(func())    // starts a run; stopping the service waits for it
	Place    cluster.Ownership
	// Backoff is the pause before try n (from 1) of something that failed for now.
	Backoff func(n int) time.Duration
}

// A Kind is the pure part of a persistent actor: none of its functions reaches outside. A state is a value, and what
// leads to a new one leaves the old one as it was.
type Kind[S, E any] struct {
	Name  string // of the kind, "job": begins the names of its streams, and stands before ids in the log
	Codec *Codec[E]
	// New is the state before any event.
	New func(id string) S
	// Decide tells which events follow from a message, or why none may. No events and no error: nothing changes.
	Decide func(s *S, msg any, now time.Time) ([]E, error)
	// Apply is total: the event has happened.
	Apply func(s S, ev E) S
	// Pending tells whether the state calls for work, and which attempt at it that is. It is asked after every event and
	// once after recovery, so work that was lost in a crash is found again by looking at the state.
	Pending func(s *S) (attempt int, ok bool)
	// Exists tells whether the actor has anything to keep.
	Exists func(s *S) bool
	// Snapshot encodes a state, and Restore reads it as one that covers the events up to seq.
	Snapshot func(s *S) ([]byte, error)
	Restore  func(id string, seq uint64, data []byte) (S, error)
	// Grows says that a state grows with its stream. Its snapshots come after more and more events, so that what they
	// cost altogether grows with the stream and not with its square.
	Grows bool
}

// snapshotEvery is after how many events a snapshot is written; one is also written when the actor goes to sleep.
const snapshotEvery = 64

// Stream is the name of an actor's stream in the journal.
func (k *Kind[S, E]) Stream(id string) string { return k.Name + "/" + id }

// A RecoverError says that what is stored of an actor cannot be understood. The actor stands still until a person has
// looked at it; others go on.
type RecoverError struct {
	Stream string
	Seq    uint64 // of the record
	Err    error
}

func (e *RecoverError) Error() string {
	return fmt.Sprintf("recover %s at event %d: %v", e.Stream, e.Seq, e.Err)
}

// Unwrap makes every RecoverError a journal.ErrCorrupt as well.
func (e *RecoverError) Unwrap() []error { return []error{journal.ErrCorrupt, e.Err} }

// Recovered is the state that the journal holds; the one before any event if it holds nothing.
func (k *Kind[S, E]) Recovered(id string, rec journal.Recovered) (S, error) {
	fail := func(seq uint64, err error) (S, error) {
		return k.New(id), &RecoverError{Stream: k.Stream(id), Seq: seq, Err: err}
	}
	s := k.New(id)
	if rec.Snapshot != nil {
		var err error
		if s, err = k.Restore(id, rec.SnapSeq, rec.Snapshot); err != nil {
			return fail(rec.SnapSeq, err)
		}
	}
	for i, stored := range rec.Events {
		ev, err := k.Codec.Decode(stored)
		if err != nil {
			return fail(rec.SnapSeq+uint64(i)+1, err)
		}
		s = k.Apply(s, ev)
	}
	if got := rec.SnapSeq + uint64(len(rec.Events)); rec.Seq != got {
		return fail(got+1, fmt.Errorf("the stream ends at %d, its records at %d", rec.Seq, got))
	}
	return s, nil
}

// An Actor is one persistent actor at work. All its methods are called by one goroutine at a time; runs send it
// messages.
type Actor[S, E any] struct {
	kind    *Kind[S, E]
	deps    *Deps
	Self    Self
	Stream  string
	State   S
	Seq     uint64 // of the last event applied
	snapped uint64 // that the newest snapshot covers
	run     *Run
	within  context.Context // see Within; nil for none
}

// New makes the actor of an id; Recover it before anything else.
func New[S, E any](kind *Kind[S, E], id string, deps *Deps, self Self) Actor[S, E] {
	return Actor[S, E]{kind: kind, deps: deps, Self: self, Stream: kind.Stream(id), State: kind.New(id)}
}

// Moved reports whether another node is to run the actor: who follows it has to come again.
func (a *Actor[S, E]) Moved() bool { return !a.deps.Place.Owns(a.Stream) }

func (a *Actor[S, E]) id() string { return a.Stream[len(a.kind.Name)+1:] }

// Recover rebuilds the state from the journal. A *RecoverError cannot be cured by trying again.
func (a *Actor[S, E]) Recover() error {
	rec, err := a.deps.Journal.Load(a.Stream)
	switch {
	case errors.Is(err, journal.ErrCorrupt):
		return &RecoverError{Stream: a.Stream, Seq: rec.Seq, Err: err}
	case err != nil:
		return fmt.Errorf("load %s: %w", a.Stream, err)
	}
	s, err := a.kind.Recovered(a.id(), rec)
	if err != nil {
		return err
	}
	a.State, a.Seq, a.snapped = s, rec.Seq, rec.SnapSeq
	return nil
}

// Within says in which trace the messages to come are, until it is called with nil.
func (a *Actor[S, E]) Within(ctx context.Context) { a.within = ctx }

// Context is that of the message in hand: for the log, and for what is done about it here.
func (a *Actor[S, E]) Context() context.Context {
	if a.within != nil {
		return a.within
	}
	return a.deps.Context
}

// Decide asks the state machine what follows from a message.
func (a *Actor[S, E]) Decide(msg any) ([]E, error) {
	return a.kind.Decide(&a.State, msg, a.deps.Now().UTC().Truncate(time.Millisecond))
}

// Commit makes events facts: first in the journal, together with what else the append has, then in the state.
func (a *Actor[S, E]) Commit(events []E, more journal.Append) error {
	if len(events) == 0 {
		return nil
	}
	next := a.State
	more.Stream, more.After, more.Events = a.Stream, a.Seq, make([]journal.Event, len(events))
	for i, ev := range events {
		var err error
		if more.Events[i], err = a.kind.Codec.Encode(ev); err != nil {
			return err
		}
		next = a.kind.Apply(next, ev)
	}
	_, more.Pending = a.kind.Pending(&next)
	// The append outlives the service's context: a stop must not leave it open whether it took place.
	ctx, span := tracing.Start(context.WithoutCancel(a.Context()), "journal append")
	span.Str("docent.journal.stream", a.Stream)
	span.Int("docent.journal.events", int64(len(events)))
	seq, err := a.deps.Journal.Append(ctx, more)
	span.Done(err)
	var claimed *journal.ClaimedError
	switch {
	case errors.As(err, &claimed), errors.Is(err, api.ErrLimited): // which other nodes' uses may have used up
		return err
	case errors.Is(err, journal.ErrSequence):
		return fmt.Errorf("%w: append to %s: %w", api.ErrUnavailable, a.Stream, err)
	case err != nil:
		a.deps.Log.ErrorContext(ctx, "append failed", a.kind.Name, a.id(), "error", err)
		busy := &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: 5 * time.Second}
		return fmt.Errorf("append to %s: %w", a.Stream, errors.Join(err, busy))
	}
	a.State, a.Seq = next, seq
	every := uint64(snapshotEvery)
	if a.kind.Grows {
		every = max(every, a.snapped/2)
	}
	if a.Seq-a.snapped >= every {
		a.snapshot()
	}
	return nil
}

// RestartIfBehind panics if an error of Commit says that the journal holds more than the actor knows, or may: another
// writer was there, or what the actor wrote was stored and the answer did not come. The actor starts again from what the
// journal really holds, and takes up what that calls for.
func RestartIfBehind(err error) {
	if errors.Is(err, journal.ErrSequence) || errors.Is(err, journal.ErrUnknown) {
		panic(err)
	}
}

// leave notes that a run ends in good order, so that work which takes long does not look, after some restarts and moves
// to other nodes, as if it took the process down. If that cannot be noted, it counts as if it had.
func (a *Actor[S, E]) leave(r *Run) {
	events, err := a.Decide(RunLeft{r.Attempt})
	if err == nil {
		err = a.Commit(events, journal.Append{})
	}
	if err != nil {
		a.deps.Log.Debug("that a run has ended in good order is not stored", a.kind.Name, a.id(), "error", err)
	}
}

func (a *Actor[S, E]) snapshot() {
	data, err := a.kind.Snapshot(&a.State)
	if err != nil {
		a.deps.Log.Error("no snapshot", a.kind.Name, a.id(), "error", err)
		return
	}
	a.deps.Journal.Snapshot(a.Stream, a.Seq, data)
	a.snapped = a.Seq
}

// Delete removes the stream with everything of it. Afterwards the actor is one that has no event.
func (a *Actor[S, E]) Delete(claims ...string) error {
	if err := a.deps.Journal.Delete(a.Stream, claims...); err != nil {
		return err
	}
	a.StopRun()
	a.State, a.Seq, a.snapped = a.kind.New(a.id()), 0, 0
	return nil
}

// Empty reports whether the journal has nothing of the actor: it has nothing to stay for.
func (a *Actor[S, E]) Empty() bool { return !a.kind.Exists(&a.State) }

// Idle reports whether there is no work, neither begun nor called for.
func (a *Actor[S, E]) Idle() bool {
	_, pending := a.kind.Pending(&a.State)
	return a.run == nil && !pending
}

// Close ends the actor. Its run stops without a result: who recovers it runs it again. Whole says that the actor has
// not failed: its run was not what ended it, and what it knows is worth a snapshot, so that the journal need keep
// nothing of it in memory.
func (a *Actor[S, E]) Close(whole bool) {
	run := a.run
	a.StopRun()
	if whole && run != nil && run.begun() {
		a.leave(run)
	}
	if whole && !a.Empty() && a.Seq > a.snapped {
		a.snapshot()
	}
}
