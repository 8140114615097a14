package thread

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"docent/actors/persistent"
	"docent/api"
	"docent/model"
	"docent/persistence/cluster"
	"docent/persistence/journal"
	"docent/search"
)

// held is all of a thread's surroundings, with effects that are started by hand.
type held struct {
	rec      journal.Recovered
	effects  []func()
	messages []any
	keys     []string // that the model was asked with
	local    bool     // it is this machine's processors
	asked    func()   // is called by the model, if there is one
	further  string   // what the model searches by itself, if there is something
	queries  []search.Query
}

func (h *held) Append(_ context.Context, a journal.Append) (uint64, error) {
	h.rec.Events = append(h.rec.Events, a.Events...)
	h.rec.Seq = uint64(len(h.rec.Events))
	return h.rec.Seq, nil
}
func (h *held) Load(string) (journal.Recovered, error) { return h.rec, nil }
func (h *held) Snapshot(string, uint64, []byte)        {}
func (h *held) Delete(string, ...string) error         { return nil }
func (h *held) Tell(msg any)                           { h.messages = append(h.messages, msg) }
func (h *held) Acquire(context.Context, api.ProjectID, time.Time) (func(), error) {
	return func() {}, nil
}
func (h *held) Project(_ context.Context, id api.ProjectID) (api.Project, error) {
	return api.Project{ID: id}, nil
}
func (h *held) Search(_ context.Context, _ api.ProjectID, q search.Query) ([]search.Hit, error) {
	h.queries = append(h.queries, q)
	return nil, nil
}
func (h *held) Answer(ctx context.Context, _ string, req model.Request, emit func(model.Delta) error) (model.Result,
	error) {
	h.keys = append(h.keys, req.Key)
	if h.asked != nil {
		h.asked()
	}
	if h.further != "" {
		if _, err := req.Search(ctx, h.further); err != nil {
			return model.Result{}, err
		}
	}
	return model.Result{}, emit(model.Delta{Text: "Because."})
}

func (h *held) Indexed(context.Context, api.ProjectID) error { return nil }
func (h *held) Around(context.Context, api.ProjectID, search.Place, []string) ([]search.Hit, error) {
	return nil, nil
}
func (h *held) Local(string) bool { return h.local }

func (h *held) FallsBack(string, error) bool { return false }

func (h *held) Fallback(context.Context, string, model.Request, func(model.Delta) error) (model.Result, error) {
	panic("no model answers in its place")
}

func (h *held) actor(t *testing.T) *Actor {
	a := New(testID, &Deps{Deps: persistent.Deps{Place: cluster.Single{}, Journal: h, Projects: h, Slots: h, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), Context: t.Context(),
		Go: func(f func()) { h.effects = append(h.effects, f) }, Backoff: func(int) time.Duration { return time.Hour }},
		Searcher: h, Model: h, TurnLimit: time.Minute, AnswerLimit: 1000}, h)
	if err := a.Recover(); err != nil {
		t.Fatal(err)
	}
	return a
}

// A question keeps its turn's id over restarts, so the model can tell by it that it is asked the same again.
func TestTheModelIsAskedUnderTheTurnsID(t *testing.T) {
	h := new(held)
	ask := *opens("1", "why").Ask
	h.actor(t).Command(ask, func(_ any, err error) {
		if err != nil {
			t.Fatal(err)
		}
	})
	h.effects[0]()
	e, ok := h.actor(t).State.newest() // from the journal
	if !ok || e.Turn != ask.Turn || len(h.keys) != 1 || h.keys[0] != string(e.Turn) {
		t.Errorf("the model was asked under %q; the journal holds %+v", h.keys, e)
	}
}

// A restart keeps the mailbox: the result of a run that the failed incarnation started reaches its successor, whose
// own run writes to another stream.
func TestAResultOfAnEarlierIncarnationIsNotListenedTo(t *testing.T) {
	h := new(held)
	old := h.actor(t)
	var turn Turn
	old.Command(*opens("1", "why").Ask, func(v any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		turn = v.(Turn)
	})
	h.effects[0]() // its result is in the mailbox
	old.Close(false)
	next := h.actor(t)
	for _, msg := range h.messages {
		next.Own(msg)
	}
	select {
	case <-turn.Log.Done():
	default:
		t.Error("a reader of the failed incarnation is left hanging")
	}
	if e, _ := next.State.newest(); e.Done {
		t.Errorf("the old run's result counts: %+v", e)
	}
}

// prepared reports whether a turn says that it needs this machine's processors no more.
func prepared(turn Turn) bool {
	select {
	case <-turn.Prepared:
		return true
	default:
		return false
	}
}

// Who lets questions in wants to know when one is no work any more: when the model is told all, or when it waits.
func TestWhoAskedHearsWhenTheTurnIsPrepared(t *testing.T) {
	h := new(held)
	a := h.actor(t)
	put := func(ask Ask) (turn Turn) {
		a.Command(ask, func(v any, err error) {
			if err != nil {
				t.Fatal(err)
			}
			turn = v.(Turn)
		})
		return turn
	}
	question := *opens("1", "why").Ask
	first := put(question)
	if prepared(first) {
		t.Fatal("told before anything was looked up")
	}
	if again := put(question); again.Prepared != nil {
		t.Error("a repeat is no work of its own")
	}
	question = *opens("2", "and how").Ask
	question.New = false
	second := put(question)
	if !prepared(second) {
		t.Error("a question that waits for the turn before it is not at work")
	}
	h.effects[0]()
	if !prepared(first) {
		t.Error("the first turn has ended, and was never prepared")
	}
	for _, msg := range h.messages {
		a.Own(msg)
	}
	if len(h.effects) != 2 {
		t.Fatalf("%d turns have begun", len(h.effects))
	}
	h.effects[1]() // which closes nothing twice
}

// A model that this machine's processors are is work until it has answered.
func TestALocalModelIsWorkUntilItHasAnswered(t *testing.T) {
	for _, local := range []bool{false, true} {
		var turn Turn
		before := local
		h := &held{local: local}
		h.asked = func() { before = prepared(turn) }
		h.actor(t).Command(*opens("1", "why").Ask, func(v any, _ error) { turn = v.(Turn) })
		h.effects[0]()
		if before == local || !prepared(turn) {
			t.Errorf("local %v: prepared before the model answered: %v, in the end: %v", local, before, prepared(turn))
		}
	}
}

// A clock that is set cuts no reader off from an answer that is being written, nor from one that was finished a
// moment ago by a clock that ran ahead; and the thread's order does not depend on it.
func TestAClockThatJumpsCutsNoReaderOff(t *testing.T) {
	h := new(held)
	a := h.actor(t)
	clock := t0
	a.deps.Now = func() time.Time { return clock }
	ask := func(id string) {
		t.Helper()
		question := *opens(id, "why").Ask
		question.New = id == "1"
		a.Command(question, func(_ any, err error) {
			if err != nil {
				t.Fatalf("question %s: %v", id, err)
			}
		})
	}
	resume := func(what string, there bool) {
		t.Helper()
		a.Command(Resume{Project: api.Project{ID: "p"}, Caller: opens("1", "why").Ask.Caller}, func(_ any, err error) {
			if (err == nil) != there {
				t.Errorf("%s: resumed: %v", what, err)
			}
		})
	}
	answer := func() {
		h.effects[len(h.effects)-1]()
		heard := h.messages
		h.messages = nil
		for _, msg := range heard {
			a.Own(msg)
		}
	}
	ask("1")
	clock = t0.Add(24 * time.Hour)
	resume("a day ahead, unfinished", true)
	answer()
	resume("a day ahead, finished", true)
	clock = t0.Add(-time.Hour)
	resume("an hour back, finished", true)
	ask("2")
	resume("an hour back, unfinished", true)
	answer()
	clock = t0.Add(24*time.Hour + 2*time.Minute)
	resume("ahead again, long after", true)
	var last time.Time
	for _, e := range a.State.conversation().Turns {
		if !e.Done || e.Asked.Before(last) || e.Ended.Before(e.Asked) {
			t.Errorf("%s was asked at %v and ended at %v, after %v", e.Turn, e.Asked, e.Ended, last)
		}
		last = e.Ended
	}
}

// Whatever is searched for an answer, also by the model and in its words, is searched with the reader's filter and
// page, and with the words by which the reader's language is known.
func TestEverySearchForAnAnswerKnowsTheReader(t *testing.T) {
	h := &held{further: "kettle temperature"}
	a := h.actor(t)
	command := func(cmd asked) {
		t.Helper()
		cmd.Query = search.Query{CurrentPath: "/docs/1.0/kettle", Filter: search.Filter{Tag: "tea"}}
		a.Command(*cmd.Ask, func(_ any, err error) {
			if err != nil {
				t.Fatal(err)
			}
		})
		h.effects[len(h.effects)-1]()
		for _, m := range h.messages {
			a.Own(m)
		}
		h.messages = nil
	}
	command(opens("1", "comment chauffer la bouilloire ?"))
	command(asks("2", "et le thé ?"))
	if len(h.queries) < 4 {
		t.Fatalf("there were %d searches", len(h.queries))
	}
	for i, q := range h.queries {
		want := []string{"comment chauffer la bouilloire ?"}
		if i >= len(h.queries)/2 {
			want = []string{"et le thé ?", "comment chauffer la bouilloire ?"}
		}
		if !slices.Equal(q.Asked, want) || q.CurrentPath != "/docs/1.0/kettle" || q.Filter.Tag != "tea" {
			t.Errorf("search %d: %+v", i, q)
		}
	}
}
