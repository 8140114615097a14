package thread

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docent/api/stream"
	"docent/model"
)

// A replaced model fails, and another one answers in its place.
type replaced struct {
	shunned
	stood int // times that the other one was asked
}

func (r *replaced) FallsBack(_ string, cause error) bool {
	var u *model.Unavailable
	return errors.As(cause, &u)
}

func (r *replaced) Fallback(_ context.Context, _ string, req model.Request, emit func(model.Delta) error) (model.Result,
	error) {
	r.stood++
	if len(req.Passages) != 1 || req.Question != "why" {
		return model.Result{}, errors.New("the other model was told something else")
	}
	err := emit(model.Delta{Text: model.Instead("en")})
	if err == nil {
		err = emit(model.Delta{Text: "Because it is so.", Cite: []int{0}})
	}
	return model.Result{Model: "other", FallbackFor: "first", Answered: true, Reason: "stop"}, err
}

func (r *replaced) actor(t *testing.T) *Actor {
	a := r.shunned.actor(t, t.Context(), 5*time.Minute)
	a.deps.Model = r
	return a
}

func last(log *stream.Log) stream.Part {
	parts, _ := log.Reader(0).Take()
	return parts[len(parts)-1]
}

func TestAModelThatIsDownIsAnsweredForAtOnceAndTheAnswerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &replaced{shunned: shunned{after: 20 * time.Second, times: -1}}
		a := r.actor(t)
		turn := r.ask(t, a)
		<-r.run()
		if took := time.Since(r.began); took != 0 {
			t.Errorf("the reader waited %v", took)
		}
		r.hear(a)
		check := func(when string, a *Actor) {
			t.Helper()
			e, _ := a.State.newest()
			if e.Model != "other" || e.FallbackFor != "first" || !e.Answered ||
				e.Answer != model.Instead("en")+"Because it is so." || len(e.Sources) != 1 || e.Error != "" {
				t.Errorf("%s: %+v", when, e)
			}
			if e.Usage.Prompt != 3 || e.Usage.Cost != 5 {
				t.Errorf("%s: what the first model took is not counted: %+v", when, e.Usage)
			}
			if row := a.State.row(); row.Questions[0].FallbackFor != "first" || row.Questions[0].Model != "other" ||
				!slices.Equal(row.Questions[0].Degraded, []string{"model: unavailable"}) {
				t.Errorf("%s: the row is %+v", when, row)
			}
			if p := last(a.logOf(e)); p.Kind != stream.Finish || p.Model != "other" || !p.Fallback || len(p.Degraded) != 1 {
				t.Errorf("%s: the stream ends with %+v", when, p)
			}
			for _, m := range a.State.history() {
				if strings.Contains(m.Text, "not available") {
					t.Errorf("%s: the next model is told %q", when, m.Text)
				}
			}
		}
		check("at its end", a)
		if p := last(turn.Log); p.Kind != stream.Finish || p.Model != "other" || !p.Fallback {
			t.Errorf("the stream ends with %+v", p)
		}
		check("after a restart", r.actor(t))
		data, err := a.State.snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if a.State, err = restore(testID, data); err != nil {
			t.Fatal(err)
		}
		check("from a snapshot", a)
		if r.stood != 1 {
			t.Errorf("the other model was asked %d times", r.stood)
		}
	})
}

func TestAnAnswerThatBrokeOffIsNotGoneOnWithByAnotherModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &replaced{shunned: shunned{times: -1, first: "Bec"}}
		a := r.actor(t)
		turn := r.ask(t, a)
		<-r.run()
		r.hear(a)
		e, _ := a.State.newest()
		if r.stood != 0 || e.Text != "Bec" || e.Answer != "" || e.FallbackFor != "" ||
			!strings.Contains(e.Error, "not complete") {
			t.Errorf("the other model was asked %d times: %+v", r.stood, e)
		}
		if p := last(turn.Log); p.Kind != stream.Error || p.Text != e.Error {
			t.Errorf("the stream ends with %+v", p)
		}
	})
}
