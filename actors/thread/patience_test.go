package thread

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"docent/actors/persistent"
	"docent/api"
	"docent/model"
	"docent/persistence/cluster"
	"docent/search"
)

// A shunned model says a number of times that it cannot be asked now, and then answers. It minds who holds a slot while
// nobody asks it.
type shunned struct {
	held
	after    time.Duration
	times    int // that it refuses; forever if negative
	first    string
	asked    []time.Duration // since the beginning
	began    time.Time
	inside   int      // slots that are held
	told     []string // the question and the passages, each time
	sleeping []int    // slots that were held a moment before each further question
}

func (s *shunned) Acquire(ctx context.Context, _ api.ProjectID, _ time.Time) (func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(s.asked) > 0 {
		s.sleeping = append(s.sleeping, s.inside)
	}
	s.inside++
	return func() { s.inside-- }, nil
}

func (s *shunned) Search(context.Context, api.ProjectID, search.Query) ([]search.Hit, error) {
	return []search.Hit{{Path: "a.md", Title: "A", Content: "Because it is so."}}, nil
}

func (s *shunned) Answer(_ context.Context, _ string, req model.Request, emit func(model.Delta) error) (model.Result,
	error) {
	s.asked = append(s.asked, time.Since(s.began))
	s.keys = append(s.keys, req.Key)
	told := req.Question
	for _, p := range req.Passages {
		told += " " + p.Text
	}
	s.told = append(s.told, told)
	if s.inside != 1 {
		return model.Result{}, errors.New("asked without a slot")
	}
	used := model.Result{PromptTokens: 3, CompletionTokens: 1, CachedTokens: 2, Cost: 5}
	if s.times != 0 {
		s.times--
		if s.first != "" {
			if err := emit(model.Delta{Text: s.first}); err != nil {
				return used, err
			}
		}
		return used, &model.Unavailable{Model: "shunned", After: s.after, Err: errors.New("left alone")}
	}
	return used, emit(model.Delta{Text: "Because."})
}

func (*shunned) Local(string) bool { return false }

// actor is a thread with this model, and with one question.
func (s *shunned) actor(t *testing.T, ctx context.Context, limit time.Duration) *Actor {
	t.Helper()
	a := New(testID, &Deps{Deps: persistent.Deps{Place: cluster.Single{}, Journal: s, Projects: s, Slots: s, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), Context: ctx,
		Go: func(f func()) { s.effects = append(s.effects, f) }, Backoff: func(int) time.Duration { return time.Hour }},
		Searcher: s, Model: s, TurnLimit: limit, AnswerLimit: 1000}, s)
	if err := a.Recover(); err != nil {
		t.Fatal(err)
	}
	return a
}

func (s *shunned) ask(t *testing.T, a *Actor) (turn Turn) {
	t.Helper()
	a.Command(*opens("1", "why").Ask, func(v any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		turn = v.(Turn)
	})
	return turn
}

// run starts what the actor wants to be done. What it gives is closed when that is over.
func (s *shunned) run() chan struct{} {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	ended := make(chan struct{})
	work := s.effects[len(s.effects)-1]
	go func() {
		defer close(ended)
		work()
	}()
	return ended
}

// hear delivers what the run has told its actor.
func (s *shunned) hear(a *Actor) {
	heard := s.messages
	s.messages = nil
	for _, msg := range heard {
		a.Own(msg) // which may let the run go on
	}
}

func TestAQuestionWaitsForAModelThatIsLeftAlone(t *testing.T) {
	for _, c := range []struct {
		name    string
		model   shunned
		limit   time.Duration
		others  int64 // that wait already
		asked   []time.Duration
		answer  string
		failure bool
	}{
		{name: "once", model: shunned{after: 5 * time.Second, times: 1}, asked: []time.Duration{0, 5 * time.Second},
			answer: "Because."},
		{name: "as often as it takes", model: shunned{after: 9 * time.Second, times: 3},
			asked: []time.Duration{0, 9 * time.Second, 18 * time.Second, 27 * time.Second}, answer: "Because."},
		{name: "not in a tight loop", model: shunned{times: 2}, asked: []time.Duration{0, 250 * time.Millisecond,
			500 * time.Millisecond}, answer: "Because."},
		{name: "not for ever", model: shunned{after: 14 * time.Second, times: -1},
			asked: []time.Duration{0, 14 * time.Second, 28 * time.Second}, failure: true},
		{name: "not for long", model: shunned{after: 31 * time.Second, times: -1}, asked: []time.Duration{0}, failure: true},
		{name: "not beyond the turn's limit", model: shunned{after: 20 * time.Second, times: -1}, limit: 12 * time.Second,
			asked: []time.Duration{0}, failure: true},
		{name: "not where very many do", model: shunned{after: time.Second, times: -1}, others: maxResting,
			asked: []time.Duration{0}, failure: true},
		{name: "not once something is written", model: shunned{after: time.Second, times: 1, first: "Bec"},
			asked: []time.Duration{0}, answer: "Bec", failure: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &c.model
				a := s.actor(t, t.Context(), cmp.Or(c.limit, 5*time.Minute))
				a.deps.resting.Store(c.others)
				turn := s.ask(t, a)
				<-s.run()
				s.hear(a)
				if !slices.Equal(s.asked, c.asked) {
					t.Errorf("asked after %v, want %v", s.asked, c.asked)
				}
				if slices.ContainsFunc(s.sleeping, func(n int) bool { return n != 0 }) || s.inside != 0 {
					t.Errorf("slots held while it waited: %v, and at the end: %d", s.sleeping, s.inside)
				}
				e, _ := a.State.newest()
				if !e.Done || (e.Error != "") != c.failure || e.Answer+e.Text != c.answer {
					t.Errorf("the turn ended as %+v", e)
				}
				if want := len(c.asked); e.Usage.Prompt != 3*want || e.Usage.Completion != want || e.Usage.Cached != 2*want ||
					e.Usage.Cost != 5*int64(want) {
					t.Errorf("%d tries used %+v", want, e.Usage)
				}
				if told := "why Because it is so."; slices.ContainsFunc(s.told, func(text string) bool { return text != told }) {
					t.Errorf("the model was told %q, want %q each time", s.told, told)
				}
				if slices.ContainsFunc(s.keys, func(key string) bool { return key != string(turn.ID) }) {
					t.Errorf("asked under the keys %q, of turn %s", s.keys, turn.ID)
				}
				if n := a.deps.resting.Load(); n != c.others {
					t.Errorf("%d turns wait at the end, %d others did", n, c.others)
				}
				select {
				case <-turn.Log.Done():
				default:
					t.Error("the reader is left hanging")
				}
			})
		})
	}
}

// Stopping the thread or the service stops the waiting, which is no failure: the turn is answered again, with all of
// its patience.
func TestAQuestionThatWaitsForItsModelCanBeStopped(t *testing.T) {
	stops := map[string]func(a *Actor, stop context.CancelFunc){
		"the thread's actor ends": func(a *Actor, _ context.CancelFunc) { a.Close(true) },
		"the service stops":       func(_ *Actor, stop context.CancelFunc) { stop() },
		"the thread is removed": func(a *Actor, _ context.CancelFunc) {
			a.Command(Forget{Project: "p"}, func(any, error) {})
		},
	}
	for name, end := range stops {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shunned{after: 20 * time.Second, times: 2}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				a := s.actor(t, ctx, 5*time.Minute)
				s.ask(t, a)
				ended := s.run()
				time.Sleep(15 * time.Second)
				end(a, stop)
				<-ended
				if took := time.Since(s.began); took != 15*time.Second {
					t.Errorf("the waiting ended after %v", took)
				}
				if len(s.messages) != 0 || s.inside != 0 {
					t.Errorf("a run that was stopped says %v and holds %d slots", s.messages, s.inside)
				}
				if name == "the thread is removed" {
					return
				}
				next := s.actor(t, t.Context(), 5*time.Minute)
				ended = s.run()
				synctest.Wait()
				s.hear(next) // the restart of the turn is counted
				<-ended
				s.hear(next)
				if e, _ := next.State.newest(); e.Answer != "Because." {
					t.Errorf("after the restart the turn ended as %+v", e)
				}
				if want := []time.Duration{0, 15 * time.Second, 35 * time.Second}; !slices.Equal(s.asked, want) {
					t.Errorf("asked after %v, want %v", s.asked, want)
				}
			})
		})
	}
}
