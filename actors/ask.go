package actors

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"docent/api"
	"docent/internal/tracing"
)

// errInternal is what a command gets whose actor failed. The cause is in the log.
var errInternal = errors.New("internal error")

// A QuarantinedError answers what is sent to an actor that cannot be recovered, or that kept failing.
type QuarantinedError struct {
	Kind, ID string
	At       time.Time // when it was given up
	Err      error
}

func (e *QuarantinedError) Error() string {
	return fmt.Sprintf("%s %s is quarantined: %v", e.Kind, e.ID, e.Err)
}
func (e *QuarantinedError) Unwrap() error { return e.Err }

// The state of a request.
const (
	waiting   int32 = iota // nobody has looked at it
	taken                  // the actor has begun with it
	abandoned              // the asker left before: it will not be begun
)

// A request is a command on its way, with the way back.
type request struct {
	command any
	gone    <-chan struct{} // closed when nobody waits for the answer
	reply   chan answer     // of capacity 1
	state   atomic.Int32
	replied atomic.Bool
	traced  context.Context // of a command whose trace is sampled; nil for others
}

type answer struct {
	value any
	err   error
}

// take begins with the request. It is false if the asker has left.
func (r *request) take() bool { return r.state.CompareAndSwap(waiting, taken) }

// answer answers once; what comes after that is not sent.
func (r *request) answer(value any, err error) {
	if r.replied.CompareAndSwap(false, true) {
		r.reply <- answer{value, err}
	}
}

// outcomeWait is how long an asker whose own time is over waits for a command that the actor has begun with: it is
// worth knowing whether it took place.
const outcomeWait = 5 * time.Second

// askHere is ask if this node runs the actor.
func (s *System) askHere(ctx context.Context, d *directory, id string, command any, read bool) (any, error) {
	if command == nil {
		return nil, errors.New("a nil command") // the runtime's mailbox would spin on it forever
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &request{command: command, gone: ctx.Done(), reply: make(chan answer, 1)}
	if s.stopping.Load() {
		return nil, errStopping()
	}
	if tracing.At(ctx).On() {
		traced, span := tracing.Start(ctx, fmt.Sprintf("%T", command))
		defer span.End()
		r.traced = traced
	}
	d.send(&envelope{id: id, request: r})
	select {
	case a := <-r.reply:
		return a.value, a.err
	case <-s.ended:
		return r.last()
	case <-ctx.Done():
	}
	if read || r.state.CompareAndSwap(waiting, abandoned) {
		return nil, fmt.Errorf("ask %s %s: %w", d.kind, id, context.Cause(ctx))
	}
	timer := time.NewTimer(outcomeWait)
	defer timer.Stop()
	select {
	case a := <-r.reply:
		return a.value, a.err
	case <-s.ended:
		return r.last()
	case <-timer.C:
		return nil, fmt.Errorf("ask %s %s: %w; whether it took place is not known", d.kind, id, context.Cause(ctx))
	}
}

// last is the answer of a request after all actors have ended: it is there, or nothing happened.
func (r *request) last() (any, error) {
	select {
	case a := <-r.reply:
		return a.value, a.err
	default:
		return nil, errStopping()
	}
}

func errStopping() error {
	return &api.BusyError{Kind: api.ErrShuttingDown, RetryAfter: 5 * time.Second}
}
