package thread

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docent/api"
	"docent/model"
	"docent/search"
)

// likeADocs are passages with paths, anchors and scores as those of real documentation: four pages, two sections each.
func likeADocs() []candidate {
	var out []candidate
	for n := range 8 {
		out = append(out, candidate{path: []string{"guides/deployment/page-0.mdx", "guides/deployment/page-1.mdx", "guides/deployment/page-2.mdx", "guides/deployment/page-3.mdx"}[n/2],
			anchor: "configure-the-server", score: 0.61 - 0.03*float64(n)})
	}
	return out
}

// What an answer's trace adds to its record is bounded: the journal grows by it with every answer.
func TestATraceIsSmall(t *testing.T) {
	size := func(trace *Trace) int {
		t.Helper()
		e, err := codec.Encode(Answered{Turn: "turn_1", Text: "Because.", Model: "builtin", Trace: trace})
		if err != nil {
			t.Fatal(err)
		}
		return len(e.Data)
	}
	without := size(nil)
	trace := func(list []candidate) *Trace {
		x := &Trace{Waited: 120, Searched: 2_400, First: 3_100}
		x.Passages, x.Found = traced(list)
		return x
	}
	usual := size(trace(likeADocs())) - without
	t.Logf("a trace of 8 passages takes %d bytes, one of none %d", usual, size(trace(nil))-without)
	if usual > 400 {
		t.Errorf("a trace takes %d bytes", usual)
	}
	long := likeADocs()
	for i := range long {
		long[i].path = fmt.Sprint(i, strings.Repeat("x", 300))
	}
	if n := size(trace(long)) - without; n > tracedBytes+20 {
		t.Errorf("a trace of long paths takes %d bytes", n)
	}
	kept, found := traced(append(likeADocs(), likeADocs()...))
	if n := strings.Count(kept, "\n"); n != tracedPassages || found != 16 {
		t.Errorf("%d of %d are kept", n, found)
	}
}

func TestATraceListsWhatWasFound(t *testing.T) {
	list := likeADocs()
	x := new(Trace)
	x.Passages, x.Found = traced(list)
	stored, err := codec.Encode(Answered{Trace: x})
	if err != nil {
		t.Fatal(err)
	}
	ev, err := codec.Decode(stored)
	if err != nil || !reflect.DeepEqual(ev.(Answered).Trace, x) {
		t.Fatalf("%+v is read as %+v, %v", x, ev, err)
	}
	got, found := ev.(Answered).Trace.Retrieved()
	if len(got) != len(list) || found != len(list) {
		t.Fatalf("%d of %d", len(got), found)
	}
	for i, r := range got {
		if r.Path != list[i].path || r.Anchor != list[i].anchor || math.Abs(r.Score-list[i].score) > 0.001 {
			t.Errorf("%d: %+v, want %+v", i, r, list[i])
		}
	}
	if got, found := (*Trace)(nil).Retrieved(); len(got) != 0 || found != 0 {
		t.Error("an answer without a trace has passages")
	}
	odd := []candidate{{path: "a.md"}, {path: "b\nc.md"}, {path: "d.md"}}
	if lines, found := traced(odd); lines != "0 a.md#\n" || found != 3 {
		t.Errorf("a path of two lines: %q, %d", lines, found)
	}
	for _, damaged := range []string{"=9#", "x =-1#", "500", "\n\n", "1 =1#=1"} {
		(&Trace{Passages: damaged}).Retrieved()
	}
}

// A slowTurn is a thread's surroundings in which each step takes a time that the test can tell.
type slowTurn struct {
	held
	fails error
	name  string // of the model that was asked
}

func (s *slowTurn) Acquire(context.Context, api.ProjectID, time.Time) (func(), error) {
	time.Sleep(2 * time.Second)
	return func() {}, nil
}

func (s *slowTurn) Search(_ context.Context, _ api.ProjectID, q search.Query) ([]search.Hit, error) {
	time.Sleep(30 * time.Millisecond)
	s.queries = append(s.queries, q)
	return []search.Hit{{Path: "a.md", Anchor: "x", Score: 0.5}, {Path: "a.md", Score: 0.25}}, nil
}

func (s *slowTurn) Answer(_ context.Context, name string, _ model.Request, emit func(model.Delta) error) (model.Result,
	error) {
	s.name = name
	time.Sleep(400 * time.Millisecond)
	if err := emit(model.Delta{Text: "Because"}); err != nil {
		return model.Result{}, err
	}
	time.Sleep(time.Second)
	return model.Result{Answered: true}, s.fails
}

// The journal says where an answer's time went, and what was found for it.
func TestTheJournalTellsHowAnAnswerCameAbout(t *testing.T) {
	for _, fails := range []error{nil, fmt.Errorf("down")} {
		synctest.Test(t, func(t *testing.T) {
			s := &slowTurn{fails: fails}
			a := s.actor(t)
			a.deps.Searcher, a.deps.Model, a.deps.Slots = s, s, s
			ask := *opens("1", "why").Ask
			ask.Model = "other"
			ask.Query.Weights = map[string]float64{"vote": 0}
			a.Command(ask, func(any, error) {})
			s.effects[0]()
			for _, msg := range s.messages {
				a.Own(msg)
			}
			c, _, err := History(testID, s.rec)
			if err != nil || len(c.Turns) != 1 || !c.Turns[0].Done || c.Turns[0].Trace == nil {
				t.Fatalf("%+v, %v", c, err)
			}
			x := c.Turns[0].Trace
			list, found := x.Retrieved()
			if x.Waited.Duration() != 2*time.Second || x.Searched.Duration() != 30*time.Millisecond ||
				x.First.Duration() != 2430*time.Millisecond || found != 2 || list[1].Path != "a.md" || list[0].Score != 0.5 {
				t.Errorf("%+v", x)
			}
			if ended := c.Turns[0].Ended.Sub(c.Turns[0].Asked); ended != 3430*time.Millisecond {
				t.Errorf("it ended after %v", ended)
			}
			whole, ok, err := new(Rows).Whole(testID, s.rec)
			if err != nil || !ok || whole.Questions[0].FirstText != 2430 {
				t.Errorf("analytics see %+v, %v", whole, err)
			}
			if s.name != "other" || s.queries[0].Weights["vote"] != 0 || len(s.queries[0].Weights) != 1 {
				t.Errorf("%q was asked; searched for as %+v", s.name, s.queries[0])
			}
		})
	}
}

// An answer that is stopped keeps what was written of it, its readers are told, and nothing comes after.
func TestAnAnswerCanBeStopped(t *testing.T) {
	h := &held{}
	a := h.actor(t)
	var turn Turn
	a.Command(*opens("1", "why").Ask, func(v any, err error) { turn = v.(Turn) })
	h.asked = func() { // while the model writes
		if err := turn.Log.AppendText("Be"); err != nil {
			t.Fatal(err)
		}
		for _, stop := range []Stop{{Project: "p", Turn: "2"}, {Project: "p", Turn: "1"}, {Project: "p", Turn: "1"}} {
			a.Command(stop, func(_ any, err error) {
				if err != nil {
					t.Fatal(err)
				}
			})
		}
		a.Command(Stop{Project: "q", Turn: "1"}, func(_ any, err error) {
			if err == nil {
				t.Error("somebody of another project stops it")
			}
		})
	}
	h.effects[0]()
	for _, msg := range h.messages {
		a.Own(msg)
	}
	select {
	case <-turn.Log.Done():
	default:
		t.Error("its reader is left waiting")
	}
	e, _ := a.State.newest()
	if !e.Done || e.Error != Stopped || e.Text != "Be" || e.Answer != "" || len(h.rec.Events) != 3 {
		t.Errorf("%+v after %d events", e, len(h.rec.Events))
	}
}

// What somebody tries in the console is no reader's question.
func TestAnalyticsDoNotSeeThePlayground(t *testing.T) {
	tries := with(opens("1", "why"), func(a *asked) { a.Channel = api.ChannelPlayground })
	s, err := play(state{id: testID}, tries, answered, asks("2", "how"), answered)
	if err != nil {
		t.Fatal(err)
	}
	if row := rowOf(t, s); len(row.Questions) != 1 || row.Questions[0].ID != "2" {
		t.Errorf("%+v", row)
	}
}
