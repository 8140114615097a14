package persistent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"docent/api"
	"docent/internal/backoff"
	"docent/internal/tracing"
	"docent/persistence/journal"
)

// A Run is one attempt at the work in hand, in a goroutine of its own. The work may be done twice, as after a crash.
type Run struct {
	Attempt int
	self    Self
	cancel  context.CancelFunc
	within  context.Context // in whose trace it works; nil for none
	begin   chan struct{}   // closed when work that was broken off before may begin; nil for a first run
}

// A Result is what a run tells its actor.
type Result struct {
	Run   *Run
	Body  any
	Tries int // times that the journal refused it
}

// Three results are the same for every kind.
type (
	// Begun asks whether a run that was broken off before may begin.
	Begun struct{ Attempt int }
	// RunPanicked says that the program failed in a run.
	RunPanicked struct{ Attempt int }
	// RunLeft says that a run ends because its actor does, in good order: the server stops, or another node goes on.
	RunLeft struct{ Attempt int }
)

// RetryReason says how a run ended that brought no result.
type RetryReason string

const (
	Interrupted RetryReason = "interrupted" // the process or the actor ended while it went on
	Panicked    RetryReason = "panicked"    // the program failed in it
	Left        RetryReason = "left"        // the actor ended in good order; when the work begins again, that does not count
)

// Settle stops a run that the state no longer calls for, and reports whether one is to be started.
func (a *Actor[S, E]) Settle() (start bool) {
	attempt, ok := a.kind.Pending(&a.State)
	if a.run != nil && (!ok || a.run.Attempt != attempt) {
		a.StopRun()
	}
	return ok && a.run == nil && a.deps.Context.Err() == nil
}

// Start begins a run of the work that the state calls for. Recovered says that an earlier run may have broken off: then
// Counted makes the journal count it. Perform does the work, until it is done or ctx ends. In is the span that the run is
// in, if any.
func (a *Actor[S, E]) Start(in tracing.Durable, recovered bool, perform func(ctx context.Context, r *Run)) *Run {
	base := in.Context(a.deps.Context)
	ctx, cancel := context.WithCancel(base)
	attempt, _ := a.kind.Pending(&a.State)
	r := &Run{Attempt: attempt, self: a.Self, cancel: cancel}
	if in.On() {
		r.within = base
	}
	if recovered {
		r.begin = make(chan struct{})
	}
	a.run = r
	log, kind, id := a.deps.Log, a.kind.Name, a.id()
	a.deps.Go(func() {
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				log.ErrorContext(ctx, "a run panicked", kind, id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				r.Tell(RunPanicked{r.Attempt})
			}
		}()
		perform(ctx, r)
	})
	return r
}

// begun reports whether the work may have begun.
func (r *Run) begun() bool {
	if r.begin == nil {
		return true
	}
	select {
	case <-r.begin:
		return true
	default:
		return false
	}
}

// StopRun stops the run in hand, if there is one.
func (a *Actor[S, E]) StopRun() {
	if a.run != nil {
		a.run.cancel()
		a.run = nil
	}
}

// Listen takes a result: decides what follows, and has commit make facts of it. Runs of earlier incarnations and
// attempts are not listened to. What the journal cannot take now is not thrown away: it is offered again. If the
// journal will never take anything again, the run ends and no other begins: another node does the work. All bring false.
func (a *Actor[S, E]) Listen(res *Result, commit func(events []E) error) bool {
	if res.Run != a.run || a.run == nil {
		res.Run.cancel()
		return false
	}
	a.within = res.Run.within
	defer func() { a.within = nil }()
	events, err := a.Decide(res.Body)
	if err == nil {
		err = commit(events)
	}
	if err != nil {
		if !errors.Is(err, journal.ErrUnknown) { // the result is offered again, and refused as out of sequence if it was stored
			RestartIfBehind(err)
		}
		if errors.Is(err, journal.ErrFenced) {
			res.Run.cancel()
			return false
		}
		res.Tries++
		a.deps.Log.WarnContext(a.Context(), "the journal does not take an event, trying again", a.kind.Name, a.id(), "tries", res.Tries, "error",
			err)
		time.AfterFunc(a.deps.Backoff(res.Tries), func() { a.Self.Tell(res) })
		return false
	}
	if _, ok := res.Body.(Begun); ok {
		if attempt, ok := a.kind.Pending(&a.State); ok && attempt == a.run.Attempt {
			close(a.run.begin)
		}
	}
	return true
}

// Tell hands the actor a result.
func (r *Run) Tell(body any) { r.self.Tell(&Result{Run: r, Body: body}) }

// Rest waits before work that broke off n times starts over: not at all at first, then longer and longer. If it was
// this work that took the process down, the rest of the service gets time to work; if it was not, a row of crashes does
// not use up its attempts, since only work that has begun can break off.
func (r *Run) Rest(ctx context.Context, n int) error {
	const free, longest = 3, time.Minute
	if r.begin == nil || n < free {
		return nil
	}
	return backoff.Sleep(ctx, min(longest, time.Second<<min(n-free, 10)))
}

// Counted makes the journal count a run that may have been broken off before, once the run's turn has come, so that
// work that kills the process does not do so forever. It returns when the work may begin.
func (r *Run) Counted(ctx context.Context) error {
	if r.begin == nil {
		return nil
	}
	r.Tell(Begun{r.Attempt})
	select {
	case <-r.begin:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Slots bounds how many runs work at once. Those that wait get a slot in a fair order among projects, and within a
// project in the order in which their work was given; zero stands for now.
type Slots interface {
	Acquire(ctx context.Context, project api.ProjectID, given time.Time) (release func(), err error)
}

// A Slot is a run's right to work.
type Slot struct {
	Slots   Slots
	Project api.ProjectID
	Given   time.Time // zero for now
	release func()
}

// Take waits for the slot.
func (s *Slot) Take(ctx context.Context) (err error) {
	_, span := tracing.Start(ctx, "wait for a slot")
	s.release, err = s.Slots.Acquire(ctx, s.Project, s.Given)
	span.Done(err)
	return err
}

// Give gives it back, if it is held.
func (s *Slot) Give() {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

// Aside does something without holding the slot.
func (s *Slot) Aside(ctx context.Context, do func(context.Context) error) error {
	s.Give()
	if err := do(ctx); err != nil {
		return err
	}
	return s.Take(ctx)
}
