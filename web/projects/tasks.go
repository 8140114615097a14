package projects

import (
	"context"
	"errors"
	"strings"
	"time"

	"docent/api"
	"docent/forge"
	"docent/search/sources"
	"docent/web/console"
)

// taskPatience is how long a page waits for a task that may be done at once, before it shows the way there.
const taskPatience = 600 * time.Millisecond

type taskView struct {
	Steps  []stepView
	Failed string
	Ended  bool
	Live   string // address of the events
	Page   string // address of the page that shows what came of it
}

type stepView struct {
	sources.Step
	Now bool
}

func viewTask(t sources.Task, page, live string) taskView {
	view := taskView{Ended: !t.Running(), Page: page, Live: live}
	for i, step := range t.Steps {
		view.Steps = append(view.Steps, stepView{step, t.Running() && i == len(t.Steps)-1})
	}
	if t.Failed() {
		view.Failed = Failure(t.Err)
	}
	return view
}

// Failure is why a task failed, in words for everyone who may see the project. What names the server's machine, such as
// the path of a folder, is the project's own source.
func Failure(err error) string {
	var said *forge.HostError
	var state *api.StateError
	var invalid *api.InvalidError
	switch {
	case errors.As(err, &said):
		return said.Say
	case errors.As(err, &invalid):
		var out []string
		for _, p := range invalid.Problems {
			out = append(out, p.Field+": "+p.Message)
		}
		return strings.Join(out, "; ")
	case errors.As(err, &state):
		return state.Reason
	case errors.Is(err, forge.ErrMisconfigured):
		return strings.TrimPrefix(err.Error(), forge.ErrMisconfigured.Error()+": ")
	case errors.Is(err, forge.ErrTemporary):
		return "The repository could not be reached. Try again later."
	}
	return err.Error()
}

// settled waits a moment for a task, so that what is done at once shows as done.
func (s *handler) settled(ctx context.Context, t sources.Task) sources.Task {
	ctx, cancel := context.WithTimeout(ctx, taskPatience)
	defer cancel()
	for news := s.Tasks.Watch(ctx, t.ID); ; {
		now, err := s.Tasks.Task(t.ID)
		if err != nil {
			return t
		}
		if !now.Running() {
			return now
		}
		select {
		case <-ctx.Done():
			return now
		case <-news:
		}
	}
}

// showTask sends a task's progress for as long as the page is open.
func (s *handler) showTask(v *console.Visit, id, page string) error {
	if _, err := s.Tasks.Task(id); err != nil {
		return api.Named(err, "task")
	}
	return s.Live(v, "task.live", s.Tasks.Watch(v.Context(), id), func(context.Context) (any, error) {
		t, err := s.Tasks.Task(id)
		return viewTask(t, page, ""), err
	})
}
