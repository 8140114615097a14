package actors

import (
	"context"
	"strings"
	"sync"
	"time"

	"docent/internal/background"
	"docent/internal/backoff"
	"docent/internal/task"
)

// Tasks run as actors, each under its name. It is a task.Starter.
type Tasks struct {
	system  *System
	dir     *directory
	ctx     context.Context // ends with the system's, or with Close
	cancel  context.CancelFunc
	handles background.Work
}

// Start is a task.Starter's.
func (t *Tasks) Start(what task.Task) {
	if t.ctx.Err() == nil {
		t.dir.send(&envelope{id: what.Name, request: &request{command: what, reply: make(chan answer, 1)}})
	}
}

// Close ends what is handled and waits for it. Nothing is started after that: the next process takes it up.
func (t *Tasks) Close() error {
	t.cancel()
	t.handles.Wait()
	return nil
}

var taskPause = backoff.Exponential(200*time.Millisecond, 10*time.Second)

// A taskActor is the behavior of a task. Its zero task is one that is done.
type taskActor struct {
	tasks *Tasks
	self  self

	task     task.Task
	ctx      context.Context // ends when the task may not run here any more
	release  func()          // says that it does not, once
	handling bool
	more     bool // it was started while it was handled
	failures int  // in a row
	timer    *time.Timer
}

// What a taskActor is told by itself.
type (
	handled struct {
		again time.Duration
		err   error
	}
	due  struct{} // the time has come
	lost struct{} // ctx has ended
)

func (s *System) newTasks() *Tasks {
	t := &Tasks{system: s}
	t.ctx, t.cancel = context.WithCancel(s.ctx)
	t.dir = s.newDirectory("task", func(_ string, self self) behavior { return &taskActor{tasks: t, self: self} })
	t.dir.everywhere = true // a task has a place of its own
	return t
}

func (a *taskActor) command(r *request) {
	switch {
	case a.handling:
		a.more = true
	case a.failures > 0: // it waits for its next attempt
	case a.task.Handle != nil || a.begin(r.command.(task.Task)):
		a.handle()
	}
	r.answer(nil, nil)
}

// begin makes a task this actor's, unless another node is to run it.
func (a *taskActor) begin(t task.Task) bool {
	ctx, release := a.tasks.ctx, func() {}
	if t.Place != "" {
		if ctx, release = a.tasks.system.deps.Place.Hold(ctx, t.Place); ctx == nil {
			return false
		}
		context.AfterFunc(ctx, func() { a.self.Tell(lost{}) })
	}
	a.task, a.ctx, a.release = t, ctx, sync.OnceFunc(release)
	if a.task.Pause == nil {
		a.task.Pause = taskPause
	}
	return true
}

func (a *taskActor) handle() {
	a.stopTimer()
	a.handling, a.more = true, false
	ctx, t, release, attempt := a.ctx, a.task, a.release, a.failures+1
	a.tasks.handles.Go("task "+t.Name, func() {
		var did handled
		did.err = background.Guard(func() (err error) { did.again, err = t.Handle(ctx, attempt); return err })
		if ctx.Err() != nil { // the actor may have ended too
			release()
		}
		a.self.Tell(did)
	})
}

// Own is a behavior's.
func (a *taskActor) Own(msg any) {
	switch msg := msg.(type) {
	case handled:
		a.handling = false
		a.settle(msg)
	case due:
		if !a.handling && a.task.Handle != nil {
			a.handle()
		}
	case lost:
		if !a.handling && a.ctx != nil && a.ctx.Err() != nil {
			a.end()
		}
	}
}

// settle says when a task is handled next.
func (a *taskActor) settle(did handled) {
	kind, _, _ := strings.Cut(a.task.Name, "/")
	count := a.tasks.system.counts.tasks
	switch {
	case a.ctx.Err() != nil:
		a.end()
	case did.err != nil:
		a.failures++
		pause := max(did.again, a.task.Pause(a.failures))
		count.WithLabelValues(kind, "failed").Inc()
		if a.failures == 1 || a.failures%10 == 0 {
			a.tasks.system.log.Warn("a task failed; trying again", "task", a.task.Name, "attempt", a.failures, "pause",
				pause.Seconds(), "error", did.err)
		}
		a.timer = time.AfterFunc(pause, func() { a.self.Tell(due{}) })
	default:
		a.failures = 0
		count.WithLabelValues(kind, "ok").Inc()
		switch {
		case a.more || did.again == 0:
			a.handle()
		case did.again < 0:
			a.end()
		default:
			a.timer = time.AfterFunc(did.again, func() { a.self.Tell(due{}) })
		}
	}
}

// end forgets a task that is done, or that another node is to run.
func (a *taskActor) end() {
	a.stopTimer()
	a.task, a.failures, a.more = task.Task{}, 0, false
	a.release()
}

func (a *taskActor) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// Recover, Within, Empty, Idle and Close are a behavior's.
func (a *taskActor) Recover() error         { return nil }
func (a *taskActor) Within(context.Context) {}
func (a *taskActor) Empty() bool            { return !a.handling && a.task.Handle == nil }
func (a *taskActor) Idle() bool             { return a.Empty() }
func (a *taskActor) Close(bool) {
	a.stopTimer()
	if !a.handling && a.release != nil {
		a.release()
	}
}
