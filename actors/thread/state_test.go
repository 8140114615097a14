package thread

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/actors/persistent"
	"docent/actors/simulation"
	"docent/api"
	"docent/api/stream"
	"docent/model"
	"docent/persistence/journal"
	"docent/search"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const testID = api.ThreadID("thr_1")

var testKey = sha256.Sum256([]byte("secret"))

func opens(turn, text string) asked {
	a := asks(turn, text)
	a.New = true
	return a
}

func asks(turn, text string) asked {
	return asked{keyHash: testKey, Ask: &Ask{Project: api.Project{ID: "p"}, Turn: api.TurnID(turn), Message: "m-" + turn,
		Caller: "ann", Text: text}}
}

func with(a asked, change func(*asked)) asked {
	change(&a)
	return a
}

var (
	answered = turnDone{text: "Because.", sources: []Source{{ID: "s1", URL: "/a", Title: "A"}},
		result: model.Result{Model: "m", Reason: "stop", Answered: true}}
	fails = turnDone{text: "Bec", err: errors.New("the model is down")}
)

// play takes messages one after the other, a second apart; a result without an attempt is one of the turn in hand.
func play(s state, msgs ...any) (state, error) {
	for i, msg := range msgs {
		switch m := msg.(type) {
		case turnDone:
			if m.attempt == 0 {
				m.attempt = s.attempt
			}
			msg = m
		case begun:
			msg = begun{Attempt: s.attempt}
		case turnLeft:
			msg = turnLeft{Attempt: s.attempt}
		case turnPanicked:
			msg = turnPanicked{Attempt: s.attempt}
		}
		events, err := s.decide(msg, t0.Add(time.Duration(i)*time.Second))
		if err != nil {
			return s, err
		}
		for _, ev := range events {
			s = s.apply(ev)
		}
	}
	return s, nil
}

func TestDecisions(t *testing.T) {
	opened := []any{opens("1", "why"), answered}
	opened = opened[:2:2]
	three := append(opened, asks("2", "how"), answered, asks("3", "when"), answered)
	three = three[:6:6]
	for _, c := range []struct {
		name string
		msgs []any
		want string // exchanges: "id" answered, "id!" failed, "id?" open
		err  error
	}{
		{name: "asked", msgs: []any{opens("1", "why")}, want: "1?"},
		{name: "answered", msgs: opened, want: "1"},
		{name: "failed", msgs: []any{opens("1", "why"), fails}, want: "1!"},
		{name: "two at once", msgs: []any{opens("1", "why"), asks("2", "how")}, want: "1? 2?"},
		{name: "are answered in turn", msgs: []any{opens("1", "why"), asks("2", "how"), answered}, want: "1 2?"},
		{name: "a failed one does not end the next", msgs: []any{opens("1", "why"), asks("2", "how"), fails}, want: "1! 2?"},
		{name: "the same turn again", msgs: []any{opens("1", "why"), opens("1", "why")}, want: "1?"},
		{name: "the same message again", msgs: []any{opens("1", "why"),
			with(asks("2", "why"), func(a *asked) { a.Message = "m-1" })}, want: "1?"},
		{name: "the same message after a failure", msgs: []any{opens("1", "why"), fails,
			with(asks("2", "why"), func(a *asked) { a.Message = "m-1" })}, want: "2?"},
		{name: "no message id is no repeat", msgs: []any{with(opens("1", "why"), func(a *asked) { a.Message = "" }),
			with(asks("2", "why"), func(a *asked) { a.Message = "" })}, want: "1? 2?"},
		{name: "an earlier message again, which lay in the socket of a node that was stopped", msgs: append(opened, asks("2", "how"),
			with(asks("3", "why"), func(a *asked) { a.Message = "m-1" })), want: "1 2?"},
		{name: "all messages with one id", msgs: append(opened,
			with(asks("2", "how"), func(a *asked) { a.Message = "m-1" }), answered,
			with(asks("3", "why"), func(a *asked) { a.Message = "m-1" })), want: "1 2 3?"},
		{name: "the same message id with another text", msgs: []any{opens("1", "why"),
			with(asks("2", "how"), func(a *asked) { a.Message = "m-1" })}, want: "1? 2?"},
		{name: "the same message id with another text after the answer",
			msgs: append(opened, with(asks("2", "how"), func(a *asked) { a.Message = "m-1" })), want: "1 2?"},
		{name: "the same message after its answer", msgs: append(opened,
			with(asks("2", "why"), func(a *asked) { a.Message = "m-1" })), want: "2?"},
		{name: "the same message, which came to the service before it was asked again", msgs: append(opened, asks("3", "how"), answered,
			with(asks("2", "how"), func(a *asked) { a.Message = "m-3" })), want: "1 3"},
		{name: "and when another question followed", msgs: append(opened, asks("3", "how"), answered, asks("4", "when"), answered,
			with(asks("2", "how"), func(a *asked) { a.Message = "m-3" })), want: "1 3 4"},
		{name: "a turn that was replaced", msgs: append(opened, asks("2", "how"), answered,
			with(asks("3", "what"), func(a *asked) { a.Instead = "2" }), answered, asks("2", "how")), want: "1 3"},
		{name: "regenerating, which came to the service before it was asked for again", msgs: append(opened,
			with(asks("3", "why"), func(a *asked) { a.Regenerate, a.Message = true, "m-1" }), answered, asks("4", "how"), answered,
			with(asks("2", "why"), func(a *asked) { a.Regenerate, a.Message = true, "m-1" })), want: "3 4"},
		{name: "regenerate an earlier answer, named by its id", msgs: append(three,
			with(asks("4", "how"), func(a *asked) { a.Regenerate, a.Instead = true, "2" })), want: "1 4?"},
		{name: "regenerate an earlier answer, named by its question",
			msgs: append(three, with(asks("4", "how"), func(a *asked) { a.Regenerate, a.Message = true, "m-2" })), want: "1 4?"},
		{name: "regenerate the first answer", msgs: append(three,
			with(asks("4", "why"), func(a *asked) { a.Regenerate, a.Instead, a.Message = true, "1", "m-1" })), want: "4?"},
		{name: "regenerate an earlier answer while others wait", msgs: []any{opens("1", "why"), asks("2", "how"),
			asks("3", "when"), answered,
			with(asks("4", "why"), func(a *asked) { a.Regenerate, a.Instead = true, "1" })}, want: "4?"},
		{name: "regenerate one that waits, named by its question",
			msgs: []any{opens("1", "why"), asks("2", "how"), asks("3", "when"),
				with(asks("4", "how"), func(a *asked) { a.Regenerate, a.Message = true, "m-2" })}, want: "1? 4?"},
		{name: "regenerate what never got here", msgs: append(opened,
			with(asks("2", "how"), func(a *asked) { a.Regenerate = true })), want: "1 2?"},
		{name: "edit an earlier question", msgs: append(three, with(asks("4", "what"),
			func(a *asked) { a.Instead, a.Message = "m-2", "m-2" })), want: "1 4?"},
		{name: "edit the question that is answered", msgs: []any{opens("1", "why"),
			with(asks("2", "what"), func(a *asked) { a.Instead, a.Message = "m-1", "m-1" })}, want: "2?"},
		{name: "edit twice", msgs: []any{opens("1", "why"), with(asks("2", "what"),
			func(a *asked) { a.Instead, a.Message = "m-1", "m-1" }),
			with(asks("3", "when"), func(a *asked) { a.Instead, a.Message = "m-1", "m-1" }), answered}, want: "3"},
		{name: "an edit that comes again", msgs: []any{opens("1", "why"),
			with(asks("2", "what"), func(a *asked) { a.Instead, a.Message = "m-1", "m-1" }),
			with(asks("3", "what"), func(a *asked) { a.Instead, a.Message = "m-1", "m-1" })}, want: "2?"},
		{name: "edit what never got here", msgs: append(opened, with(asks("2", "how"), func(a *asked) { a.Instead = "m-2" })),
			want: "1 2?"},
		{name: "regenerate", msgs: append(opened, with(asks("2", "why"), func(a *asked) { a.Regenerate = true })),
			want: "2?"},
		{name: "regenerate while it is written", msgs: []any{opens("1", "why"),
			with(asks("2", "why"), func(a *asked) { a.Regenerate = true })}, want: "2?"},
		{name: "regenerate one that waits", msgs: []any{opens("1", "why"), asks("2", "how"),
			with(asks("3", "how"), func(a *asked) { a.Regenerate = true })}, want: "1? 3?"},
		{name: "a result of a replaced turn", msgs: []any{opens("1", "why"),
			with(asks("2", "why"), func(a *asked) { a.Regenerate = true }),
			turnDone{attempt: 1, text: "old"}}, want: "2?"},
		{name: "a result twice", msgs: []any{opens("1", "why"), asks("2", "how"), answered,
			turnDone{attempt: 1, text: "again"}}, want: "1 2?"},
		{name: "a crash", msgs: []any{opens("1", "why"), begun{}, answered}, want: "1"},
		{name: "eight crashes", msgs: []any{opens("1", "why"), begun{}, begun{}, begun{}, begun{}, begun{}, begun{}, begun{},
			begun{}}, want: "1!"},
		{name: "ends in good order", msgs: append([]any{opens("1", "why")}, append(slices.Repeat([]any{turnLeft{}, begun{}}, 20),
			answered)...), want: "1"},
		{name: "a panic", msgs: []any{opens("1", "why"), turnPanicked{}}, want: "1?"},
		{name: "two panics", msgs: []any{opens("1", "why"), turnPanicked{}, turnPanicked{}}, want: "1!"},
		{name: "with the key", msgs: append(opened, with(asks("2", "how"), func(a *asked) { a.ThreadKey = "secret" })),
			want: "1 2?"},
		{name: "a wrong key", msgs: append(opened, with(asks("2", "how"), func(a *asked) { a.ThreadKey = "guess" })),
			err: api.ErrNotFound},
		{name: "a missing key", msgs: append(opened, with(asks("2", "how"),
			func(a *asked) { a.Project.Options.RequireThreadKey = true })), err: api.ErrNotFound},
		{name: "opened twice where a key is required", msgs: []any{opens("1", "why"),
			with(opens("1", "why"), func(a *asked) { a.Project.Options.RequireThreadKey = true })}, want: "1?"},
		{name: "another caller", msgs: append(opened, with(asks("2", "how"), func(a *asked) { a.Caller = "bob" })),
			err: api.ErrNotFound},
		{name: "another caller with the key", msgs: append(opened,
			with(asks("2", "how"), func(a *asked) { a.Caller, a.ThreadKey = "bob", "secret" })), err: api.ErrNotFound},
		{name: "another project", msgs: append(opened, with(asks("2", "how"), func(a *asked) { a.Project.ID = "q" })),
			err: api.ErrNotFound},
		{name: "an unknown thread", msgs: []any{asks("1", "why")}, err: api.ErrNotFound},
		{name: "a repeat by another caller", msgs: []any{opens("1", "why"),
			with(asks("1", "why"), func(a *asked) { a.Caller = "bob" })}, err: api.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := play(state{id: testID}, c.msgs...)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if c.err != nil {
				return
			}
			var got []string
			for _, e := range s.conversation().Turns {
				mark := ""
				switch {
				case !e.Done:
					mark = "?"
				case e.Error != "":
					mark = "!"
				}
				got = append(got, string(e.Turn)+mark)
			}
			if g := strings.Join(got, " "); g != c.want {
				t.Errorf("exchanges %q, want %q", g, c.want)
			}
			if _, pending := s.pending(); pending != strings.Contains(c.want, "?") {
				t.Errorf("pending is %v", pending)
			}
		})
	}
}

func TestTooManyWaitingQuestionsAreRefused(t *testing.T) {
	s, _ := play(state{id: testID}, opens("0", "why"))
	for i := 1; i <= maxWaiting; i++ {
		var err error
		if s, err = play(s, asks(fmt.Sprint(i), "and")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := play(s, asks("x", "and")); !errors.Is(err, api.ErrOverloaded) {
		t.Error(err)
	}
}

func TestHistoryIsBoundedAndWithoutFailures(t *testing.T) {
	s, _ := play(state{id: testID}, opens("0", "q0"), answered)
	for i := 1; i < 40; i++ {
		done := answered
		if i%3 == 0 {
			done = fails
		}
		s, _ = play(s, asks(fmt.Sprint(i), fmt.Sprint("q", i)), done)
	}
	h := s.history()
	if len(h) != 2*historyTurns || h[len(h)-2].Text != "q38" || h[len(h)-1].Role != "assistant" {
		t.Errorf("%+v", h)
	}
	long := answered
	long.text = strings.Repeat("x", historyBytes/2)
	s, _ = play(s, asks("a", "long"), long, asks("b", "long"), long)
	if h := s.history(); len(h) != 2 {
		t.Errorf("%d messages", len(h))
	}
}

// Who the site's server names opens a thread that is this reader's alone: anybody who knows its id, its key and its
// chat is refused without the name, and so is who comes with a name to a thread that nobody was named for.
func TestAThreadOfANamedReaderGoesOnForThatReaderAlone(t *testing.T) {
	p := api.Project{ID: "p"}
	named := func(reader string) state {
		s, _ := play(state{id: testID}, with(opens("1", "why"), func(a *asked) { a.Reader, a.Chat = reader, "chat" }), answered)
		data, err := s.snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if s, err = restore(testID, data); err != nil { // after a restart as well
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		of, by string
		want   error
	}{{"ann", "ann", nil}, {"ann", "bob", api.ErrNotFound}, {"ann", "", api.ErrNotFound}, {"", "ann", api.ErrNotFound}, {"", "", nil}} {
		s := named(c.of)
		_, err := s.ask(with(asks("2", "how"), func(a *asked) { a.Reader, a.ThreadKey = c.by, "secret" }), t0)
		if !errors.Is(err, c.want) {
			t.Errorf("%q goes on in a thread of %q: %v", c.by, c.of, err)
		}
		for _, cmd := range []Resume{{Project: p, Caller: "ann"}, {Project: p, Chat: "chat"}} {
			cmd.Reader = c.by
			if err := s.resume(&cmd, t0); !errors.Is(err, c.want) {
				t.Errorf("%q resumes a thread of %q: %v", c.by, c.of, err)
			}
		}
		if _, err := s.rate(&Rate{Project: p, Reader: c.by, Turn: "1", Rating: api.RatedUp}, t0); !errors.Is(err, c.want) {
			t.Errorf("%q rates an answer of %q: %v", c.by, c.of, err)
		}
	}
}

func TestOldStatesStayAsTheyWere(t *testing.T) {
	s, _ := play(state{id: testID}, opens("1", "a"), answered, asks("2", "b"), answered)
	before := fmt.Sprintf("%+v", s)
	a, _ := play(s, with(asks("3", "b"), func(a *asked) { a.Regenerate = true }), answered)
	b, _ := play(s, asks("4", "d"), answered)
	if a.done[1].Turn != "3" || len(a.done) != 2 || b.done[2].Turn != "4" || s.done[1].Turn != "2" {
		t.Error("futures of one state share memory")
	}
	if after := fmt.Sprintf("%+v", s); after != before {
		t.Errorf("%s\nwas\n%s", after, before)
	}
	s, _ = play(s, asks("3", "c"), answered, asks("4", "d"))
	a, _ = play(s, answered)
	b, _ = play(s, fails)
	if a.done[3].Error != "" || b.done[3].Error == "" {
		t.Error("two ends of one turn share memory")
	}
}

func everyEvent() []Event {
	e := Exchange{Turn: "1", Message: "m", Question: "why", Asked: t0.Add(time.Millisecond),
		Wanted: &Wanted{Context: []model.Snippet{{Kind: "code", Text: "x", Path: "p"}},
			Query: search.Query{Limit: 3, Threshold: 0.5, CurrentPath: "/c",
				Filter: search.Filter{Version: "v", Language: "l", Tag: "t", Groups: []string{"g"}}}}}
	return []Event{
		Opened{Project: "p", Caller: "ann", KeyHash: testKey, At: t0},
		Asked{Exchange: e, Chat: "c"},
		Retried{Turn: "1", Reason: persistent.Interrupted, At: t0},
		Answered{Turn: "1", Text: "Because.", Sources: []Source{{ID: "s1", URL: "/a", Title: "A"}}, Model: "m",
			Answered: true,
			Usage:    stream.Usage{Prompt: 1, Completion: 2}, At: t0, Reason: "stop"},
		Asked{Exchange: e, Replaces: true},
		TurnFailed{Turn: "1", Reason: "r", Text: "t", At: t0},
		Rated{Turn: "1", Feedback: Feedback{Rating: api.RatedDown, Comment: "no", At: t0}},
	}
}

func TestWhatIsOnDiskStaysReadable(t *testing.T) {
	full := state{id: testID}
	for _, ev := range everyEvent() {
		full = full.apply(ev)
	}
	full, _ = play(full, asks("2", "how"), answered, rates("2", api.RatedUp),
		with(asks("3", "how"), func(a *asked) { a.Regenerate = true }))
	full.replaced[0].Asked = t0 // as it was stored when a thread's time could still run backwards
	later := []Event{           // what events got since the snapshot was stored
		Answered{Turn: "1", Sources: []Source{}, At: t0, Channel: api.ChannelWeb},
		Rated{Turn: "1", Feedback: Feedback{Rating: api.RatedDown, At: t0}, Channel: api.ChannelAPI},
	}
	simulation.Stored(t, &kind, string(testID), append(everyEvent(), later...), 0, full, normal)
}

// normal makes states comparable: encodings do not tell an empty slice from none.
func normal(s state) state {
	if len(s.done) == 0 {
		s.done = nil
	}
	if len(s.open) == 0 {
		s.open = nil
	}
	return s
}

func rates(turn string, r api.Rating) Rate {
	return Rate{Project: api.Project{ID: "p"}, Turn: api.TurnID(turn), Rating: r}
}

func TestRatings(t *testing.T) {
	change := func(r Rate, f func(*Rate)) Rate { f(&r); return r }
	again := with(asks("2", "why"), func(a *asked) { a.Regenerate = true })
	for _, c := range []struct {
		name string
		msgs []any
		want string // "id up", with the comment; replaced answers in brackets
		err  error
	}{
		{name: "none", msgs: []any{opens("1", "why"), answered}},
		{name: "one", msgs: []any{opens("1", "why"), answered, rates("1", "up")}, want: "1 up"},
		{name: "of the first of two", msgs: []any{opens("1", "why"), asks("2", "how"), answered, answered,
			rates("1", "down")}, want: "1 down"},
		{name: "with a comment", msgs: []any{opens("1", "why"), answered,
			change(rates("1", "down"), func(r *Rate) { r.Comment = "no" })}, want: "1 down no"},
		{name: "a later one takes its place", msgs: []any{opens("1", "why"), answered,
			change(rates("1", "down"), func(r *Rate) { r.Comment = "no" }), rates("1", "up")}, want: "1 up"},
		{name: "before the answer has ended", msgs: []any{opens("1", "why"), rates("1", "up"), answered}, want: "1 up"},
		{name: "of a failure", msgs: []any{opens("1", "why"), fails, rates("1", "down")}, want: "1 down"},
		{name: "stays when the answer is replaced", msgs: []any{opens("1", "why"), answered, rates("1", "down"), again,
			answered, rates("2", "up")}, want: "[1 down] 2 up"},
		{name: "of a replaced answer that was rated", msgs: []any{opens("1", "why"), answered, rates("1", "down"), again,
			rates("1", "up")}, want: "[1 up]"},
		{name: "of a replaced answer that was not", msgs: []any{opens("1", "why"), answered, again, rates("1", "up")},
			err: api.ErrNotFound},
		{name: "of an answer that does not exist", msgs: []any{opens("1", "why"), answered, rates("2", "up")},
			err: api.ErrNotFound},
		{name: "in a thread that does not exist", msgs: []any{rates("1", "up")}, err: api.ErrNotFound},
		{name: "in another project", msgs: []any{opens("1", "why"),
			change(rates("1", "up"), func(r *Rate) { r.Project.ID = "q" })}, err: api.ErrNotFound},
		{name: "by the caller", msgs: []any{opens("1", "why"), change(rates("1", "up"), func(r *Rate) { r.Caller = "ann" }),
			answered}, want: "1 up"},
		{name: "by another caller", msgs: []any{opens("1", "why"),
			change(rates("1", "up"), func(r *Rate) { r.Caller = "bob" })}, err: api.ErrNotFound},
		{name: "with the key", msgs: []any{opens("1", "why"), change(rates("1", "up"),
			func(r *Rate) { r.ThreadKey = "secret"; r.Project.Options.RequireThreadKey = true }), answered}, want: "1 up"},
		{name: "with a wrong key", msgs: []any{opens("1", "why"), change(rates("1", "up"),
			func(r *Rate) { r.ThreadKey = "guess" })}, err: api.ErrNotFound},
		{name: "without a key that is required", msgs: []any{opens("1", "why"),
			change(rates("1", "up"), func(r *Rate) { r.Project.Options.RequireThreadKey = true })}, err: api.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := play(state{id: testID}, c.msgs...)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if c.err != nil {
				return
			}
			row := rowOf(t, s)
			var got []string
			for _, q := range row.Questions {
				if q.Rating == "" {
					continue
				}
				line := strings.TrimSpace(fmt.Sprintf("%s %s %s", q.ID, q.Rating, q.Comment))
				if q.Replaced {
					line = "[" + line + "]"
				}
				got = append(got, line)
			}
			if g := strings.Join(got, " "); g != c.want {
				t.Errorf("rated are %q, want %q", g, c.want)
			}
		})
	}
}

// rowOf is the row of a state that went to disk and back.
func TestAConversationIsHandedOverOnceUntilItGoesOn(t *testing.T) {
	form := api.Project{ID: "p", Widget: api.Widget{Contact: api.ContactForm}}
	over := func(turn, text string) HandOver {
		return HandOver{Project: form, Turn: api.TurnID(turn), Contact: Contact{Name: "Ann", Email: "ann@example.com", Message: text}}
	}
	opened, err := play(state{id: testID}, opens("1", "why"), answered, asks("2", "how"), answered, over("2", "Help"))
	if e, _ := opened.find("2"); err != nil || e.Contact == nil || e.Contact.Message != "Help" || e.Contact.At.IsZero() {
		t.Fatalf("handed over: %+v, %v", e, err)
	}
	for name, c := range map[string]struct {
		before []any
		cmd    HandOver
		want   error
		events int
	}{
		"the same again":             {nil, over("2", "Help"), nil, 0},
		"something else":             {nil, over("2", "Hello?"), api.ErrConflict, 0},
		"at an answer before":        {nil, over("1", "Hello?"), api.ErrConflict, 0},
		"gone on":                    {[]any{asks("3", "when")}, over("3", "Hello?"), nil, 1},
		"gone on, at the one before": {[]any{asks("3", "when")}, over("2", "Hello?"), api.ErrConflict, 0},
		"no such answer":             {nil, over("9", "Hello?"), api.ErrNotFound, 0},
		"no form":                    {nil, HandOver{Project: api.Project{ID: "p"}, Turn: "2"}, api.ErrNotFound, 0},
		"another project":            {nil, HandOver{Project: api.Project{ID: "q", Widget: form.Widget}, Turn: "2"}, api.ErrNotFound, 0},
		"another reader":             {nil, HandOver{Project: form, Reader: "bob", Turn: "2"}, api.ErrNotFound, 0},
		"a wrong key":                {nil, HandOver{Project: form, ThreadKey: "x", Turn: "2"}, ErrKey, 0},
	} {
		s, err := play(opened, c.before...)
		if err != nil {
			t.Fatal(err)
		}
		if events, err := s.decide(c.cmd, t0.Add(time.Hour)); !errors.Is(err, c.want) || len(events) != c.events {
			t.Errorf("%s: %v, %v", name, events, err)
		}
	}
}

func rowOf(t *testing.T, s state) api.ThreadRow {
	t.Helper()
	data, err := s.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	row, ok, err := new(Rows).Whole(testID, journal.Recovered{Seq: 7, SnapSeq: 7, Snapshot: data})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return row
}

func TestRatingAgainTheSameChangesNothing(t *testing.T) {
	s, _ := play(state{id: testID}, opens("1", "why"), answered, rates("1", api.RatedUp))
	if events, err := s.decide(rates("1", api.RatedUp), t0); len(events) != 0 || err != nil {
		t.Errorf("%v, %v", events, err)
	}
}

// Each rating is kept and told to webhooks, and costs no quota: what an answer can be told is bounded by what its question
// has cost, also after a snapshot.
func TestAnAnswerIsRatedSoOften(t *testing.T) {
	commented := func(i int) Rate {
		r := rates("1", api.RatedDown)
		r.Comment = fmt.Sprint(i)
		return r
	}
	s, _ := play(state{id: testID}, opens("1", "why"), answered, rates("1", api.RatedUp))
	for i := range maxChanges {
		next, err := play(s, commented(i))
		if err != nil {
			t.Fatal(i, err)
		}
		data, err := next.snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if s, err = restore(testID, data); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.decide(rates("1", api.RatedUp), t0); !errors.Is(err, api.ErrConflict) {
		t.Error("one rating more:", err)
	}
	if events, err := s.decide(commented(maxChanges-1), t0); len(events) != 0 || err != nil {
		t.Error("the last one again:", events, err)
	}
	if _, err := play(s, asks("2", "how"), answered, rates("2", api.RatedUp)); err != nil {
		t.Error("of another answer:", err)
	}
}

func TestReplacedAnswersAreBounded(t *testing.T) {
	s, _ := play(state{id: testID}, opens("0", "why"), answered)
	for i := range maxReplaced + 20 {
		before := fmt.Sprintf("%+v", s.replaced)
		next, err := play(s, rates(fmt.Sprint(i), api.RatedDown), with(asks(fmt.Sprint(i+1), "why"),
			func(a *asked) { a.Regenerate = true }), answered)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%+v", s.replaced) != before {
			t.Fatal("an old state has changed")
		}
		s = next
	}
	if n := len(s.replaced); n != maxReplaced || s.replaced[n-1].Turn != api.TurnID(fmt.Sprint(maxReplaced+19)) {
		t.Errorf("%d are kept, the newest is %s", n, s.replaced[n-1].Turn)
	}
}

// TestWhatIsCutIsKept cuts a conversation at an earlier answer: the reader no longer sees what came after, and
// nothing of it is lost.
func TestWhatIsCutIsKept(t *testing.T) {
	s, err := play(state{id: testID}, opens("1", "why"), answered, asks("2", "how"), answered, rates("2", api.RatedDown),
		asks("3", "when"),
		with(asks("4", "why"), func(a *asked) { a.Regenerate, a.Instead, a.Message = true, "1", "m-1" }), answered)
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if s, err = restore(testID, data); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, e := range s.conversation().Replaced {
		kept = append(kept, string(e.Turn)+" "+e.Question+" "+e.Answer)
		if e.Wanted != nil {
			t.Errorf("what turn %s came with is kept: it will not be answered", e.Turn)
		}
	}
	if got, want := strings.Join(kept, "; "), "1 why Because.; 2 how Because.; 3 when "; got != want {
		t.Errorf("kept are %q, want %q", got, want)
	}
	if h := s.history(); len(h) != 2 || h[0].Text != "why" {
		t.Errorf("the model is told %+v", h)
	}
	row := rowOf(t, s)
	if len(row.Questions) != 2 || row.Questions[0].ID != "2" || !row.Questions[0].Replaced || row.Questions[1].ID != "4" {
		t.Errorf("analytics see %+v", row.Questions)
	}
}

// TestWhoMayResume lists who reads the newest answer of a thread whose newest question was asked in a chat.
func TestWhoMayResume(t *testing.T) {
	inChat := with(opens("1", "why"), func(a *asked) { a.Chat = "chat" })
	locked := api.Project{ID: "p", Options: api.Options{RequireThreadKey: true}}
	p := api.Project{ID: "p"}
	for _, c := range []struct {
		name string
		msgs []any
		cmd  Resume
		want error
	}{
		{name: "the caller", cmd: Resume{Project: p, Caller: "ann"}},
		{name: "another caller", cmd: Resume{Project: p, Caller: "bob"}, want: api.ErrNotFound},
		{name: "no caller", cmd: Resume{Project: p}, want: api.ErrNotFound},
		{name: "another project", cmd: Resume{Project: api.Project{ID: "q"}, Caller: "ann"}, want: api.ErrNotFound},
		{name: "the chat", cmd: Resume{Project: p, Chat: "chat"}},
		{name: "the chat and its caller", cmd: Resume{Project: p, Chat: "chat", Caller: "ann"}},
		{name: "the chat and another caller", cmd: Resume{Project: p, Chat: "chat", Caller: "bob"}, want: api.ErrNotFound},
		{name: "another chat", cmd: Resume{Project: p, Chat: "other", Caller: "ann"}, want: api.ErrNotFound},
		{name: "a chat that the thread no longer goes on in",
			msgs: []any{with(asks("2", "how"), func(a *asked) { a.Chat = "next" })}, cmd: Resume{Project: p, Chat: "chat"},
			want: api.ErrNotFound},
		{name: "the caller without the key", cmd: Resume{Project: locked, Caller: "ann"}, want: ErrKey},
		{name: "the chat without the key", cmd: Resume{Project: locked, Chat: "chat"}, want: ErrKey},
		{name: "with the key", cmd: Resume{Project: locked, Caller: "ann", ThreadKey: "secret"}},
		{name: "the chat with the key", cmd: Resume{Project: locked, Chat: "chat", ThreadKey: "secret"}},
		{name: "with a wrong key", cmd: Resume{Project: p, Caller: "ann", ThreadKey: "guess"}, want: ErrKey},
		{name: "another caller with the key", cmd: Resume{Project: locked, Caller: "bob", ThreadKey: "secret"},
			want: api.ErrNotFound},
		{name: "while it is written", cmd: Resume{Project: p, Chat: "chat", Within: time.Nanosecond}},
		{name: "soon after", msgs: []any{answered}, cmd: Resume{Project: p, Chat: "chat", Within: 10 * time.Second}},
		{name: "later", msgs: []any{answered}, cmd: Resume{Project: p, Chat: "chat", Within: 9 * time.Second},
			want: api.ErrNotFound},
		{name: "later, where nothing bounds it", msgs: []any{answered}, cmd: Resume{Project: p, Chat: "chat"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := play(state{id: testID}, append([]any{inChat}, c.msgs...)...)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.decide(c.cmd, t0.Add(11*time.Second))
			if !errors.Is(err, c.want) || c.want == api.ErrNotFound && errors.Is(err, ErrKey) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
	s := state{id: testID}
	if _, err := s.decide(Resume{Project: p, Chat: "chat"}, t0); !errors.Is(err, api.ErrNotFound) ||
		errors.Is(err, ErrKey) {
		t.Errorf("a thread that does not exist: %v", err)
	}
	s, _ = play(s, opens("1", "why"))
	if _, err := s.decide(Resume{Project: p, Chat: "chat"}, t0); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("a thread that was not asked in a chat: %v", err)
	}
}

func TestRowHoldsWhatHasEnded(t *testing.T) {
	first := with(opens("1", "why"), func(a *asked) { a.Channel, a.Query.CurrentPath = api.ChannelWeb, "/guide" })
	s, _ := play(state{id: testID}, first, answered, asks("2", "how"), fails, asks("3", "when"))
	want := api.ThreadRow{ID: testID, Project: "p", Caller: "ann", Questions: []api.QuestionRow{
		{ID: "1", Thread: testID, Project: "p", Caller: "ann", Channel: api.ChannelWeb, Page: "/guide", Question: "why",
			Answer: "Because.", Answered: true, Model: "m",
			Sources: []api.PageRef{{URL: "/a", Title: "A"}}, Asked: t0, Ended: t0.Add(time.Second)},
		{ID: "2", Thread: testID, Project: "p", Caller: "ann", Question: "how", Answer: "Bec",
			Error: "The answer broke off here and is not complete. Please ask again.",
			Asked: t0.Add(2 * time.Second), Ended: t0.Add(3 * time.Second)},
	}}
	if got := rowOf(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if _, ok, err := new(Rows).Whole(testID, journal.Recovered{}); ok || err != nil {
		t.Errorf("a thread that does not exist: %v, %v", ok, err)
	}
}

func TestHistoryOfAStream(t *testing.T) {
	if _, ok, err := History(testID, journal.Recovered{}); ok || err != nil {
		t.Errorf("a thread that does not exist: %v, %v", ok, err)
	}
	_, _, err := History(testID, journal.Recovered{Seq: 1, Events: []journal.Event{{Type: "thread.unknown.1"}}})
	var rec *persistent.RecoverError
	if !errors.As(err, &rec) || rec.Seq != 1 || !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("%v", err)
	}
}
