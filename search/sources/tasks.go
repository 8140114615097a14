package sources

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/search"
)

// A TaskKind is what a task does to a project.
type TaskKind string

const (
	TaskLook   TaskKind = "look"   // at a source that no project reads yet
	TaskAdd    TaskKind = "add"    // the project
	TaskChange TaskKind = "change" // its settings
	TaskCheck  TaskKind = "check"  // what is public
)

const (
	tasksKept  = 200 // that have ended
	checksKept = 50  // of so many projects
	stepsKept  = 50  // of a task
)

// A Task is a long piece of work on one project that somebody watches. It goes on when nobody does, until it has ended
// or the server stops: it is then as if it had not begun, or it is done.
type Task struct {
	ID      string
	Project api.ProjectID
	Kind    TaskKind
	Steps   []Step // in the order in which they began; the last is what is being done
	Began   time.Time
	Ended   time.Time // zero while it goes on
	Err     error     // why it failed
	Outcome
}

// Running reports whether the task has yet to end.
func (t Task) Running() bool { return t.Ended.IsZero() }

// Failed reports whether the task has ended without doing what it was to do.
func (t Task) Failed() bool { return !t.Running() && t.Err != nil }

// A Step is one thing that a task does, and how far it is: a total of zero if that is not known.
type Step struct {
	Text        string
	Done, Total int
	At          time.Time
}

// An Outcome is what a task has found.
type Outcome struct {
	Read  *Project      // what was read of a project that was added or changed
	Look  *Look         // what a source holds
	Check *search.Check // what is public
}

// Tasks are carried out one at a time for each project. They are kept in memory: how a task of an earlier server ended
// shows in the project itself.
type Tasks struct {
	now    func() time.Time
	log    *slog.Logger
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   background.Work

	mu     sync.Mutex
	tasks  []*taskRun // oldest first
	checks []checked  // oldest first
}

type taskRun struct {
	task    Task
	cancel  context.CancelFunc
	watched map[chan struct{}]bool
}

// checked is the last check of a project.
type checked struct {
	check search.Check
	at    time.Time
}

// NewTasks has none.
func NewTasks(now func() time.Time, log *slog.Logger) *Tasks {
	ctx, cancel := context.WithCancel(context.Background())
	return &Tasks{now: now, log: log, ctx: ctx, cancel: cancel}
}

// Close breaks off what goes on and waits for it.
func (t *Tasks) Close() error {
	t.mu.Lock() // no task begins after it
	t.cancel()
	t.mu.Unlock()
	t.work.Wait()
	return nil
}

// Begin carries out a task in the background. While one goes on for the project it is refused with api.ErrConflict.
func (t *Tasks) Begin(
	kind TaskKind, project api.ProjectID, work func(context.Context, Progress) (Outcome, error),
) (Task, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return Task{}, &api.StateError{Kind: api.ErrUnavailable, Reason: "the server is stopping"}
	}
	for _, r := range t.tasks {
		if strings.EqualFold(string(r.task.Project), string(project)) && r.task.Running() {
			return r.view(), &api.StateError{Kind: api.ErrConflict,
				Reason: fmt.Sprintf("the documentation of %s is being read for somebody already: wait until that is done", project)}
		}
	}
	ctx, cancel := context.WithCancel(t.ctx)
	r := &taskRun{cancel: cancel, watched: map[chan struct{}]bool{},
		task: Task{ID: strings.ToLower(rand.Text()), Project: project, Kind: kind, Began: t.now()}}
	t.tasks = append(t.tasks, r)
	t.trim()
	t.work.Go("search/sources.Begin", func() {
		defer cancel()
		var out Outcome
		err := background.Guard(func() (err error) {
			out, err = work(ctx, func(text string, done, total int) { t.progress(r, text, done, total) })
			return err
		})
		t.end(r, out, err)
	})
	return r.view(), nil
}

// trim forgets the oldest tasks that have ended.
func (t *Tasks) trim() {
	ended := 0
	for _, r := range slices.Backward(t.tasks) {
		if !r.task.Running() {
			ended++
		}
	}
	t.tasks = slices.DeleteFunc(t.tasks, func(r *taskRun) bool {
		if ended <= tasksKept || r.task.Running() {
			return false
		}
		ended--
		return true
	})
}

func (t *Tasks) progress(r *taskRun, text string, done, total int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// What is counted within a text is one step: "read 3 of 9 files" goes on in "read 4 of 9 files".
	if _, err := fmt.Sscanf(text, "read %d of %d files", &done, &total); err == nil {
		text = "reading the folder's files"
	}
	step := Step{Text: text, Done: done, Total: total, At: t.now()}
	if n := len(r.task.Steps); n > 0 && (r.task.Steps[n-1].Text == text || n == stepsKept) {
		step.At = r.task.Steps[n-1].At
		r.task.Steps[n-1] = step
	} else {
		r.task.Steps = append(r.task.Steps, step)
	}
	r.changed()
}

func (t *Tasks) end(r *taskRun, out Outcome, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && errors.Is(err, context.Canceled) {
		err = &api.StateError{Kind: api.ErrConflict, Reason: "it was called off"}
		if t.ctx.Err() != nil {
			err = &api.StateError{Kind: api.ErrUnavailable, Reason: "the server stopped before it was done"}
		}
	}
	r.task.Outcome, r.task.Err, r.task.Ended = out, err, t.now()
	if out.Check != nil && out.Look == nil {
		t.keep(*out.Check)
	}
	if err != nil {
		t.log.Warn("work on a project's documentation failed", "project", r.task.Project, "task", r.task.Kind, "error", err)
	}
	r.changed()
}

// changed tells those who watch.
func (r *taskRun) changed() {
	for c := range r.watched {
		select {
		case c <- struct{}{}:
		default: // it has yet to look at the change before
		}
	}
}

func (r *taskRun) view() Task {
	v := r.task
	v.Steps = slices.Clone(v.Steps)
	return v
}

// Task is one as it is now. It fails with api.ErrNotFound if it is forgotten, or belongs to an earlier server.
func (t *Tasks) Task(id string) (Task, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.tasks {
		if r.task.ID == id {
			return r.view(), nil
		}
	}
	return Task{}, fmt.Errorf("task %.40q: %w", id, api.ErrNotFound)
}

// Newest is the project's task that began last.
func (t *Tasks) Newest(project api.ProjectID) (Task, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range slices.Backward(t.tasks) {
		if r.task.Project == project {
			return r.view(), true
		}
	}
	return Task{}, false
}

// Watch tells of each change of a task until ctx ends: a channel that holds one element when there is something new. It
// is nil, which never tells, if there is no such task.
func (t *Tasks) Watch(ctx context.Context, id string) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.tasks {
		if r.task.ID != id {
			continue
		}
		c := make(chan struct{}, 1)
		r.watched[c] = true
		context.AfterFunc(ctx, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			delete(r.watched, c)
		})
		return c
	}
	return nil
}

// Cancel calls a task off. It has ended when what it does next looks for that.
func (t *Tasks) Cancel(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.tasks {
		if r.task.ID == id {
			r.cancel()
			return nil
		}
	}
	return fmt.Errorf("task %.40q: %w", id, api.ErrNotFound)
}

// keep remembers a check in place of the project's last one.
func (t *Tasks) keep(c search.Check) {
	t.checks = slices.DeleteFunc(t.checks, func(old checked) bool { return old.check.Project == c.Project })
	t.checks = append(t.checks, checked{c, t.now()})
	if more := len(t.checks) - checksKept; more > 0 {
		t.checks = slices.Delete(t.checks, 0, more)
	}
}

// LastCheck is what the last check of a project found, and when.
func (t *Tasks) LastCheck(project api.ProjectID) (search.Check, time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.checks {
		if c.check.Project == project {
			return c.check, c.at, true
		}
	}
	return search.Check{}, time.Time{}, false
}

// Forget forgets what is known of a project that is removed.
func (t *Tasks) Forget(project api.ProjectID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checks = slices.DeleteFunc(t.checks, func(c checked) bool { return c.check.Project == project })
	t.tasks = slices.DeleteFunc(t.tasks, func(r *taskRun) bool { return r.task.Project == project && !r.task.Running() })
}
