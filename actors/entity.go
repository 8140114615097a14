package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"docent/api"
	"docent/internal/tracing"
	"docent/persistence/journal"
)

// A behavior is what an actor does: that of a job or a thread. One goroutine at a time calls it.
type behavior interface {
	Recover() error
	command(r *request)
	Within(ctx context.Context) // says in which trace the next commands are given; nil for none
	Own(msg any)
	Empty() bool
	Idle() bool
	Close(whole bool)
}

// Messages between a supervisor and its children.
type (
	// envelope carries a request to the actor of an id. The supervisor counts what it forwards to a child.
	envelope struct {
		id      string
		request *request
		n       uint64
	}
	// own is what an actor's effects and timers tell it.
	own struct{ body any }
	// idleCheck asks a child whether it waits for anything.
	idleCheck struct{ n uint64 }
	// passivate asks to be put to sleep: the child waits for nothing, as of the n-th message that it was sent.
	passivate struct {
		entry *entry
		n     uint64
	}
	// wake is a command that only wakes the actor.
	wake struct{}
	// retry is a command to the supervisor: it lifts a quarantine, and reaches the actor as wake.
	retry struct{}
)

// What is still on its way when an actor ends is our own business: the runtime need not log it.
func (*envelope) IgnoreDeadLetterLogging()  {}
func (own) IgnoreDeadLetterLogging()        {}
func (idleCheck) IgnoreDeadLetterLogging()  {}
func (passivate) IgnoreDeadLetterLogging()  {}
func (sweepNow) IgnoreDeadLetterLogging()   {}
func (restartNow) IgnoreDeadLetterLogging() {}
func (release) IgnoreDeadLetterLogging()    {}

// An entity is the runtime's actor around a behavior: it recovers it, hands it its messages, answers for it when it
// fails.
type entity struct {
	d        *directory
	entry    *entry // shared by all incarnations
	behavior behavior
	receive  func(*entity, actor.Context) // starting, running or quarantined
	n        uint64                       // of the last envelope
}

func newEntity(d *directory) *entity { return &entity{d: d, receive: (*entity).starting} }

// Receive is called by the runtime, for one message at a time.
func (en *entity) Receive(ctx actor.Context) {
	msg := ctx.Message()
	if en.entry == nil { // the first message: Started
		if en.entry = en.d.takeSpawn(childID(ctx.Self())); en.entry == nil {
			en.entry = &entry{id: childID(ctx.Self())} // for the log; nothing can be known of it
			panic(fmt.Sprintf("%s %s began without being expected", en.d.kind, en.entry.id))
		}
	}
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		f, ok := r.(*permanentFailure)
		if !ok {
			en.d.system.log.Error("an actor failed", en.d.kind, en.entry.id, "panic", fmt.Sprint(r), "message",
				fmt.Sprintf("%T", msg), "stack", string(debug.Stack()))
		}
		if e, ok := msg.(*envelope); ok { // the runtime drops the message in hand: its asker would wait
			err := fmt.Errorf("%w: %s %s failed", errInternal, en.d.kind, en.entry.id)
			if f != nil {
				err = &QuarantinedError{Kind: en.d.kind, ID: en.entry.id, Err: f.err}
			}
			e.request.answer(nil, err)
		}
		panic(r) // to the supervisor
	}()
	en.receive(en, ctx)
}

// A permanentFailure is a failure that trying again cannot cure.
type permanentFailure struct{ err error }

func (f *permanentFailure) String() string { return f.err.Error() }

// A passingFailure is the journal's: it cannot be read now.
type passingFailure struct{ err error }

func (f *passingFailure) String() string { return "recover: " + f.err.Error() }

// passes reports whether a failure says nothing about the actor: the journal did not answer.
func passes(reason any) bool {
	if _, ok := reason.(*passingFailure); ok {
		return true
	}
	err, ok := reason.(error)
	return ok && errors.Is(err, journal.ErrUnknown)
}

// starting receives for a new incarnation.
func (en *entity) starting(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *actor.Started:
		if en.entry.quarantine.Load() != nil {
			en.receive = (*entity).quarantined
			return
		}
		if !en.d.here(en.entry.id) {
			en.receive = (*entity).moved
			return
		}
		began := time.Now()
		pid, root := ctx.Self(), ctx.ActorSystem().Root
		en.behavior = en.d.make(en.entry.id, self(func(body any) {
			if body != nil {
				root.Send(pid, own{body})
			}
		}))
		if err := en.behavior.Recover(); err != nil {
			if errors.Is(err, journal.ErrCorrupt) {
				panic(&permanentFailure{err})
			}
			if errors.Is(err, api.ErrUnavailable) {
				panic(&passingFailure{err})
			}
			panic(fmt.Errorf("recover: %w", err))
		}
		en.d.system.counts.recovered(time.Since(began))
		en.receive = (*entity).running
	case *actor.Stopping, *actor.Stopped, *actor.Restarting:
	default:
		en.unhandled(msg)
	}
}

// running receives for a recovered actor.
func (en *entity) running(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *envelope:
		en.n = msg.n
		if _, ok := msg.request.command.(wake); ok {
			msg.request.answer(nil, nil)
		} else if msg.request.take() {
			if ctx := msg.request.traced; ctx != nil {
				tracing.At(ctx).Event("taken from the mailbox")
				en.behavior.Within(ctx)
			}
			en.behavior.command(msg.request)
			var none context.Context
			en.behavior.Within(none)
		}
		if en.behavior.Empty() {
			ctx.Send(ctx.Parent(), passivate{en.entry, en.n})
		}
	case own:
		en.behavior.Own(msg.body)
	case idleCheck:
		if en.behavior.Idle() {
			ctx.Send(ctx.Parent(), passivate{en.entry, msg.n})
		}
	case *actor.Stopping:
		en.close(true)
	case *actor.Restarting:
		en.close(false)
	case *actor.Stopped:
	default:
		en.unhandled(msg)
	}
}

// quarantined receives for an actor that was given up: it answers what is queued, with an error.
func (en *entity) quarantined(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *envelope:
		msg.request.answer(nil, en.entry.quarantine.Load())
	case own, idleCheck, *actor.Stopping, *actor.Stopped, *actor.Restarting:
	default:
		en.unhandled(msg)
	}
}

// moved receives for an actor that another node runs by now: it answers what is queued, and nothing of it is begun. It
// asks to be put to sleep, as the node may run the actor after all: its beats may have been missing for a moment.
func (en *entity) moved(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *envelope:
		ctx.Send(ctx.Parent(), passivate{en.entry, msg.n}) // first: who is answered comes again at once
		msg.request.answer(nil, errMoved)
	case idleCheck:
		ctx.Send(ctx.Parent(), passivate{en.entry, msg.n})
	case own, *actor.Stopping, *actor.Stopped, *actor.Restarting:
	default:
		en.unhandled(msg)
	}
}

// close ends the behavior. It may be in any state, after a failure, and must not bring down more.
func (en *entity) close(whole bool) {
	defer func() {
		if r := recover(); r != nil {
			en.d.system.log.Error("an actor failed while closing", en.d.kind, en.entry.id, "panic", fmt.Sprint(r), "stack",
				string(debug.Stack()))
		}
	}()
	en.behavior.Close(whole)
}

func (en *entity) unhandled(msg any) {
	en.d.system.counts.unhandled.Add(1)
	en.d.system.log.Error("unhandled message", slog.String(en.d.kind, en.entry.id), "type", fmt.Sprintf("%T", msg))
}

// A self is an actor's own address, as its runs and timers know it.
type self func(msg any)

// Tell sends the actor a message.
func (s self) Tell(msg any) { s(msg) }
