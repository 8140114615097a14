package actors_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docent/actors"
	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/persistence/journal"
	"docent/search"
)

func newThread() api.ThreadID { return api.ThreadID(api.NewID(api.ThreadPrefix, time.Now())) }
func newTurn() api.TurnID     { return api.TurnID(api.NewID(api.TurnPrefix, time.Now())) }

func question(text string) thread.Ask {
	return thread.Ask{Project: project("p"), Turn: newTurn(), Caller: "anonymous", Text: text,
		Query: search.Query{Limit: 5}}
}

func opening(text string) thread.Ask {
	q := question(text)
	q.New = true
	return q
}

func (w *world) put(id api.ThreadID, q thread.Ask) thread.Turn {
	w.t.Helper()
	turn, err := w.system.Threads().Ask(w.t.Context(), id, q)
	if err != nil {
		w.t.Fatalf("ask %q: %v", q.Text, err)
	}
	return turn
}

func (w *world) conversation(id api.ThreadID) thread.Conversation {
	w.t.Helper()
	c, err := w.system.Threads().Read(w.t.Context(), id, thread.Read{Project: "p"})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// read follows a log to its end.
func read(t testing.TB, log *stream.Log) []stream.Part {
	t.Helper()
	var all []stream.Part
	r := log.Reader(0)
	for {
		parts, ok, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return all
		}
		all = append(all, parts...)
	}
}

// told is the text of an answer and the kind of its last part.
func told(parts []stream.Part) (string, stream.Kind) {
	var b strings.Builder
	for _, p := range parts {
		if p.Kind == stream.Text {
			b.WriteString(p.Text)
		}
	}
	return b.String(), parts[len(parts)-1].Kind
}

func TestAQuestionIsAnsweredWithItsSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newThread()
		turn := w.put(id, opening("what is it"))
		if turn.Thread != id || turn.Key == "" || !turn.Fresh {
			t.Errorf("%+v", turn)
		}
		parts := read(t, turn.Log)
		if text, end := told(parts); text != "You ask: what is it " || end != stream.Finish {
			t.Errorf("%q, %v", text, end)
		}
		first, last := parts[0], parts[len(parts)-1]
		if first.Kind != stream.Start || first.Message != string(turn.ID) || first.Thread != string(id) {
			t.Errorf("start %+v", first)
		}
		if last.Thread != string(id) || last.Reason != "stop" || last.Usage.Completion != 5 {
			t.Errorf("finish %+v", last)
		}
		if parts[1].Kind != stream.Source || parts[1].URL != "/a" || parts[2].URL != "/b" || parts[3].Kind != stream.Text {
			t.Errorf("sources: %+v", parts[1:4])
		}
		c := w.conversation(id)
		if len(c.Turns) != 1 || !c.Turns[0].Done || c.Turns[0].Answer != "You ask: what is it " ||
			len(c.Turns[0].Sources) != 2 {
			t.Errorf("%+v", c)
		}
	})
}

func TestFinishIsSentOnlyWhenTheAnswerIsOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newThread()
		for i := range 3 {
			q := question(fmt.Sprint("number ", i))
			q.New = i == 0
			turn := w.put(id, q)
			r := turn.Log.Reader(0)
			for {
				parts, ok, _ := r.Next(t.Context())
				if !ok {
					break
				}
				if parts[len(parts)-1].Kind == stream.Finish {
					types := w.memory.types(thread.Stream(id))
					if types[len(types)-1] != "thread.answered.1" {
						t.Errorf("finish before the answer is stored: %v", types)
					}
				}
			}
		}
	})
}

func TestTheModelSeesTheThreadsOwnHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newThread()
		read(t, w.put(id, opening("first question of all")).Log)
		read(t, w.put(id, question("fail this one please")).Log)
		read(t, w.put(id, question("and then what happens next")).Log)
		seen := w.talker.seen()
		h := seen[len(seen)-1].History
		if len(h) != 2 || h[0].Role != "user" || h[0].Text != "first question of all" || h[1].Role != "assistant" ||
			!strings.HasPrefix(h[1].Text, "You ask:") {
			t.Errorf("%+v", h)
		}
	})
}

func TestWhoMayNotContinueAThreadFindsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newThread()
		turn := w.put(id, opening("mine"))
		read(t, turn.Log)
		refused := func(name string, change func(*thread.Ask)) {
			q := question("again")
			change(&q)
			if _, err := w.system.Threads().Ask(t.Context(), id, q); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		refused("another project", func(q *thread.Ask) { q.Project = project("q") })
		refused("another caller", func(q *thread.Ask) { q.Caller = "ann" })
		refused("a wrong key", func(q *thread.Ask) { q.ThreadKey = turn.Key + "x" })
		refused("no key where one is required", func(q *thread.Ask) { q.Project.Options.RequireThreadKey = true })
		if _, err := w.system.Threads().Ask(t.Context(), newThread(), question("x")); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("an unknown thread: %v", err)
		}
		if _, err := w.system.Threads().Resume(t.Context(), id, thread.Resume{Project: project("p"),
			Caller: "ann"}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("resume by another caller: %v", err)
		}
		q := question("with the key")
		q.ThreadKey, q.Project.Options.RequireThreadKey = turn.Key, true
		if again := w.put(id, q); again.Key != "" {
			t.Error("the key is shown twice")
		}
		if strings.Contains(w.log.String(), turn.Key) {
			t.Error("the key is in the log")
		}
	})
}

func TestTwoQuestionsAtOnceAreAnsweredInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newThread()
		first := w.put(id, opening("block one"))
		second := w.put(id, question("two and more words here"))
		synctest.Wait()
		if n := second.Log.Len(); n != 1 {
			t.Errorf("the second answer has %d parts before its turn", n)
		}
		close(w.talker.letGo)
		read(t, first.Log)
		if text, end := told(read(t, second.Log)); text != "You ask: two and more words here " || end != stream.Finish {
			t.Errorf("%q, %v", text, end)
		}
		if h := w.talker.seen()[1].History; len(h) != 2 {
			t.Errorf("the second did not see the first: %+v", h)
		}
	})
}

func TestAMessageThatComesAgainIsNotAskedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newThread()
		q := opening("block")
		q.Message = "m1"
		first := w.put(id, q)
		q.Turn, q.New = newTurn(), false
		second := w.put(id, q)
		if second.ID != first.ID || second.Fresh || second.Log != first.Log || second.Key != "" {
			t.Errorf("%+v is not %+v", second, first)
		}
		close(w.talker.letGo)
		synctest.Wait()
		if n := len(w.talker.seen()); n != 1 {
			t.Errorf("asked %d times", n)
		}
		// It is answered, so the reader wants another answer, here in the millisecond of the first.
		q.Turn = api.TurnID(api.FirstID(api.TurnPrefix, time.Now()) + strings.Repeat("0", 22))
		if again := w.put(id, q); !again.Fresh {
			t.Error("a request for another answer gets the old one")
		}
		synctest.Wait()
		if n := len(w.conversation(id).Turns); n != 1 {
			t.Errorf("%d exchanges, the last was to be replaced", n)
		}
	})
}

func TestRatingSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		id := newThread()
		turn := w.put(id, opening("one of the questions asked"))
		read(t, turn.Log)
		rate := thread.Rate{Project: project("p"), Turn: turn.ID, Rating: api.RatedDown, Comment: "old"}
		for _, c := range []struct {
			thread api.ThreadID
			cmd    thread.Rate
			want   error
		}{
			{id, rate, nil},
			{id, rate, nil},
			{id, thread.Rate{Project: project("q"), Turn: turn.ID, Rating: api.RatedUp}, api.ErrNotFound},
			{id, thread.Rate{Project: project("p"), Turn: newTurn(), Rating: api.RatedUp}, api.ErrNotFound},
			{newThread(), rate, api.ErrNotFound},
			{"thr_x", rate, api.ErrNotFound},
		} {
			if err := w.system.Threads().Rate(t.Context(), c.thread, c.cmd); !errors.Is(err, c.want) {
				t.Errorf("%s in %s: error %v, want %v", c.cmd.Turn, c.thread, err, c.want)
			}
		}
		if types := w.memory.types(thread.Stream(id)); len(types) != 4 || types[3] != "thread.rated.1" {
			t.Errorf("the journal holds %v: a rating that changes nothing is written once", types)
		}
		w.stop()
		w.start()
		defer w.stop()
		if f := w.conversation(id).Turns[0].Feedback; f == nil || f.Rating != api.RatedDown || f.Comment != "old" {
			t.Errorf("after a restart the rating is %+v", f)
		}
	})
}

func TestRegenerateReplacesTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newThread()
		read(t, w.put(id, opening("one of the questions asked")).Log)
		read(t, w.put(id, question("two of the questions asked")).Log)
		q := question("two of the questions asked")
		q.Regenerate = true
		turn := w.put(id, q)
		read(t, turn.Log)
		if c := w.conversation(id); len(c.Turns) != 2 || c.Turns[1].Turn != turn.ID {
			t.Errorf("%+v", c.Turns)
		}
		if h := w.talker.seen()[2].History; len(h) != 2 {
			t.Errorf("the replaced answer is in the history: %+v", h)
		}
		blocked := w.put(id, question("block while this is written"))
		synctest.Wait()
		q = question("another one instead of it")
		q.Regenerate = true
		next := w.put(id, q)
		if _, end := told(read(t, blocked.Log)); end != stream.Error {
			t.Errorf("the replaced stream ends with %v", end)
		}
		if text, end := told(read(t, next.Log)); end != stream.Finish || !strings.Contains(text, "instead") {
			t.Errorf("%q, %v", text, end)
		}
		if n := len(w.conversation(id).Turns); n != 3 {
			t.Errorf("%d exchanges", n)
		}
	})
}

func TestAFailedTurnIsToldStoredAndOver(t *testing.T) {
	for _, text := range []string{"fail now with the model", "about a broken index", "panic in the model now"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil).start()
				defer w.stop()
				id := newThread()
				turn := w.put(id, opening(text))
				parts := read(t, turn.Log)
				if _, end := told(parts); end != stream.Error {
					t.Errorf("%+v", parts)
				}
				synctest.Wait()
				c := w.conversation(id)
				if e := c.Turns[0]; !e.Done || e.Error == "" {
					t.Errorf("%+v", e)
				}
				if text, end := told(read(t, w.put(id, question("is it still alive after that")).Log)); end != stream.Finish {
					t.Errorf("%q", text)
				}
			})
		})
	}
}

func TestAnAnswerWithoutEndIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(d *actors.Deps) { d.AnswerLimit = 10_000 }).start()
		defer w.stop()
		parts := read(t, w.put(newThread(), opening("endless")).Log)
		if text, end := told(parts); end != stream.Finish || len(text) > 10_000 || parts[len(parts)-1].Reason != "length" {
			t.Errorf("%d bytes, %v", len(text), end)
		}
	})
}

func TestAnUnfinishedTurnIsAnsweredAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		id := newThread()
		q := opening("block")
		q.Chat = "chat-0123456789"
		turn := w.put(id, q)
		waiting := w.put(id, question("and this one waited for it"))
		synctest.Wait()
		w.stop()
		for _, log := range []*stream.Log{turn.Log, waiting.Log} {
			if _, end := told(read(t, log)); end != stream.Error {
				t.Errorf("a reader of the stopped service sees %v last", end)
			}
		}
		w.start()
		defer w.stop()
		<-w.system.Woken()
		found, ok := w.system.Threads().Chat("chat-0123456789")
		if !ok || found != id {
			t.Fatalf("the chat's thread: %s, %v", found, ok)
		}
		resumed, err := w.system.Threads().Resume(t.Context(), id, thread.Resume{Project: project("p"), Caller: "anonymous"})
		if err != nil || resumed.ID != waiting.ID {
			t.Fatal(resumed, err)
		}
		close(w.talker.letGo)
		parts := read(t, resumed.Log)
		if text, end := told(parts); text != "You ask: and this one waited for it " || end != stream.Finish ||
			parts[0].Message != string(waiting.ID) {
			t.Errorf("%q, %v", text, end)
		}
		c := w.conversation(id)
		if len(c.Turns) != 2 || c.Turns[0].Turn != turn.ID || c.Turns[0].Answer != "You ask: block " {
			t.Errorf("%+v", c.Turns)
		}
	})
}

func TestAForgottenThreadLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id, other := newThread(), newThread()
		q := opening("block")
		q.Chat = "chat-0123456789"
		turn := w.put(id, q)
		synctest.Wait()
		threads := w.system.Threads()
		if err := threads.Forget(t.Context(), id, thread.Forget{Project: "another"}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("another project's thread: %v", err)
		}
		if err := threads.Forget(t.Context(), id, thread.Forget{Project: "p",
			Unused: time.Now().Add(-time.Hour)}); !errors.Is(err, api.ErrConflict) {
			t.Errorf("a thread in use: %v", err)
		}
		if err := threads.Forget(t.Context(), other, thread.Forget{Project: "p"}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("nobody's thread: %v", err)
		}
		if err := threads.Forget(t.Context(), id, thread.Forget{Project: "p"}); err != nil {
			t.Fatal(err)
		}
		if text, end := told(read(t, turn.Log)); end != stream.Error {
			t.Errorf("its reader sees %q and %v last", text, end)
		}
		if _, err := threads.Read(t.Context(), id, thread.Read{Project: "p"}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("afterwards: %v", err)
		}
		if found, ok := threads.Chat(q.Chat); ok {
			t.Errorf("its chat still leads to %s", found)
		}
		synctest.Wait()
		if rec, err := w.journal.Load(thread.Stream(id)); err != nil || rec.Seq != 0 {
			t.Errorf("the journal holds %+v, %v", rec, err)
		}
		if live := w.system.Stats().LiveThreads; live != 0 {
			t.Errorf("%d threads are awake", live)
		}
		close(w.talker.letGo)
	})
}

// TestAFinishedAnswerCanBeResumedAsLongAsItsThreadIsKept comes back after the actor has gone to sleep, after a
// restart and after a day, by the thread and by the chat, as an identified reader does whose client sends nothing but
// the chat.
func TestAFinishedAnswerCanBeResumedAsLongAsItsThreadIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		id := newThread()
		q := opening("what is it")
		q.Chat, q.Caller = "chat-of-ann", "ann"
		turn := w.put(id, q)
		read(t, turn.Log)
		for _, after := range []time.Duration{0, 2 * time.Minute, 24 * time.Hour} {
			time.Sleep(after) // the first of them outlast what keeps an actor awake
			for name, resume := range map[string]thread.Resume{
				"thread": {Project: project("p"), Caller: "ann"}, "chat": {Project: project("p"), Chat: q.Chat},
			} {
				found, ok := w.system.Threads().Chat(q.Chat)
				if !ok || found != id {
					t.Fatalf("after %v the chat's thread is %q, %v", after, found, ok)
				}
				again, err := w.system.Threads().Resume(t.Context(), found, resume)
				if err != nil {
					t.Fatalf("after %v by the %s: %v", after, name, err)
				}
				parts := read(t, again.Log)
				if text, end := told(parts); text != "You ask: what is it " || end != stream.Finish || again.ID != turn.ID ||
					again.Key != "" || len(parts) != 5 {
					t.Errorf("after %v by the %s: %+v", after, name, parts)
				}
			}
			w.stop() // and from the journal as well
			w.start()
		}
		defer w.stop()
		if found, ok := w.system.Threads().Chat("chat-of-bob"); ok {
			t.Errorf("another reader's chat leads to %s", found)
		}
	})
}

// TestAChatLeadsToTheThreadItGoesOnIn asks in one thread from two chats, and in one chat in two threads.
func TestAChatLeadsToTheThreadItGoesOnIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		first, second := newThread(), newThread()
		put := func(id api.ThreadID, q thread.Ask, chat string) {
			q.Chat = chat
			read(t, w.put(id, q).Log)
		}
		leads := func(chat string, want api.ThreadID) {
			t.Helper()
			if got, _ := w.system.Threads().Chat(chat); got != want {
				t.Errorf("chat %s leads to %q, want %q", chat, got, want)
			}
		}
		put(first, opening("one of the questions"), "a")
		leads("a", first)
		put(first, question("two of the questions"), "b")
		leads("a", "")
		leads("b", first)
		put(second, opening("three of the questions"), "b")
		leads("b", second)
		put(first, question("once more of the questions"), "b")
		leads("b", first)
		put(second, question("and here of the questions"), "b")
		leads("b", second)
		put(first, question("four of the questions"), "c") // gives up b, which is no longer its own
		leads("b", second)
		leads("c", first)
		put(first, question("five of the questions"), "")
		leads("c", first)
		leads("", "")
	})
}

// TestTheThreadKeyIsSentToTheOpenerOnly reads along with the opener, asks once more, and resumes: nobody else gets
// the key.
func TestTheThreadKeyIsSentToTheOpenerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newThread()
		q := opening("block")
		q.Message = "m1"
		opener := w.put(id, q)
		if opener.Key == "" {
			t.Fatal("the opener gets no key")
		}
		along, err := w.system.Threads().Resume(t.Context(), id, thread.Resume{Project: project("p"), Caller: "anonymous"})
		if err != nil {
			t.Fatal(err)
		}
		q.Turn, q.New = newTurn(), false
		repeat := w.put(id, q)
		close(w.talker.letGo)
		for name, turn := range map[string]thread.Turn{"the opener's": opener, "who resumes": along,
			"a repeated request": repeat} {
			if name != "the opener's" && turn.Key != "" {
				t.Errorf("%s gets the key", name)
			}
			for _, part := range read(t, turn.Log) {
				if part.Key != "" {
					t.Errorf("the key is in the log, in a part of kind %v", part.Kind)
				}
			}
		}
		locked := thread.Resume{Project: project("p"), Caller: "anonymous"}
		locked.Project.Options.RequireThreadKey = true
		if _, err := w.system.Threads().Resume(t.Context(), id, locked); !errors.Is(err, thread.ErrKey) {
			t.Errorf("without the key: %v", err)
		}
		locked.ThreadKey = opener.Key
		if again, err := w.system.Threads().Resume(t.Context(), id, locked); err != nil || again.ID != opener.ID {
			t.Errorf("with the key: %v", err)
		}
	})
}

// TestAnEarlierAnswerIsRegeneratedInItsPlace is what a reader of the chat SDK sees: the conversation up to that
// question, and its new answer. What came after goes, is kept for the operator, and survives a restart.
func TestAnEarlierAnswerIsRegeneratedInItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		id := newThread()
		first := w.put(id, opening("one of the questions asked"))
		read(t, first.Log)
		read(t, w.put(id, question("two of the questions asked")).Log)
		waiting := w.put(id, question("block while this is written"))
		synctest.Wait()
		q := question("one of the questions asked")
		q.Regenerate, q.Instead = true, string(first.ID)
		again := w.put(id, q)
		if _, end := told(read(t, waiting.Log)); end != stream.Error {
			t.Errorf("the stream of what came after ends with %v", end)
		}
		if text, end := told(read(t, again.Log)); end != stream.Finish || !strings.Contains(text, "one of") {
			t.Errorf("%q, %v", text, end)
		}
		if h := w.talker.seen()[3].History; len(h) != 0 {
			t.Errorf("the model is told what the reader does not see: %+v", h)
		}
		w.stop()
		w.start()
		defer w.stop()
		c := w.conversation(id)
		if len(c.Turns) != 1 || c.Turns[0].Turn != again.ID {
			t.Errorf("the conversation is %+v", c.Turns)
		}
		if len(c.Replaced) != 3 || c.Replaced[1].Answer != "You ask: two of the questions asked " {
			t.Errorf("kept are %+v", c.Replaced)
		}
	})
}

// TestAnotherTextUnderTheSameMessageIDIsAnswered puts a second question with the first one's id, as some clients give
// all of their messages the same one; and then edits it, as useChat's stop, edit, send does.
func TestAnotherTextUnderTheSameMessageIDIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newThread()
		q := opening("block this one")
		q.Message = "m1"
		first := w.put(id, q)
		q.Turn, q.New, q.Text = newTurn(), false, "another one of the questions"
		second := w.put(id, q)
		if !second.Fresh || second.ID == first.ID {
			t.Fatalf("the second question gets the first one's answer: %+v", second)
		}
		synctest.Wait()
		q.Turn, q.Text, q.Instead = newTurn(), "an edited one of the questions", "m1"
		edited := w.put(id, q)
		if _, end := told(read(t, second.Log)); end != stream.Error {
			t.Errorf("the stream of what was edited ends with %v", end)
		}
		close(w.talker.letGo)
		if text, _ := told(read(t, first.Log)); !strings.Contains(text, "block this one") {
			t.Errorf("the first answer is %q", text)
		}
		if text, _ := told(read(t, edited.Log)); !strings.Contains(text, "an edited one") {
			t.Errorf("the edited question gets %q", text)
		}
		if n := len(w.conversation(id).Turns); n != 2 {
			t.Errorf("%d exchanges", n)
		}
	})
}

func TestAnAnswerThatCannotBeStoredIsToldAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newThread()
		turn := w.put(id, opening("block"))
		synctest.Wait()
		full := func(on bool) {
			w.memory.mu.Lock()
			defer w.memory.mu.Unlock()
			w.memory.fail = nil
			if on {
				w.memory.fail = func(journal.Append) error { return fmt.Errorf("disk full: %w", api.ErrUnavailable) }
			}
		}
		full(true)
		close(w.talker.letGo)
		if _, end := told(read(t, turn.Log)); end != stream.Error {
			t.Errorf("%v", end)
		}
		var busy *api.BusyError
		if _, err := w.system.Threads().Ask(t.Context(), newThread(), opening("x")); !errors.Is(err, api.ErrUnavailable) ||
			!errors.As(err, &busy) {
			t.Errorf("a question that cannot be stored: %v", err)
		}
		if c := w.conversation(id); len(c.Turns) != 1 || c.Turns[0].Done {
			t.Errorf("reads do not go on: %+v", c)
		}
		time.Sleep(time.Minute)
		full(false)
		resumed, err := w.system.Threads().Resume(t.Context(), id, thread.Resume{Project: project("p"), Caller: "anonymous"})
		if err != nil {
			t.Fatal(err)
		}
		if text, end := told(read(t, resumed.Log)); text != "You ask: block " || end != stream.Finish ||
			len(w.talker.seen()) != 1 {
			t.Errorf("%q, %v, asked %d times", text, end, len(w.talker.seen()))
		}
	})
}

func TestTheProjectsOptionsShowTheSearchAndSuggestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(d *actors.Deps) { d.Projects, d.Searcher = shown{}, titled{} }).start()
		defer w.stop()
		id := newThread()
		parts := read(t, w.put(id, opening("what is it")).Log)
		if p := parts[1]; p.Kind != stream.Search || p.Query != "what is it" || len(p.Results) != 4 ||
			p.Results[0].Content != "a says" || p.ID == "" {
			t.Errorf("%+v", p)
		}
		text, _ := told(parts)
		if want := "\n\n```suggestions\n(Third?)[/c]\n```\n"; !strings.HasSuffix(text, want) {
			t.Errorf("%q", text)
		}
		read(t, w.put(id, question("what more is there to say")).Log)
		for _, r := range w.talker.seen() {
			if len(r.History) > 0 && strings.Contains(r.History[1].Text, "suggestions") {
				t.Errorf("%q", r.History[1].Text)
			}
		}
	})
}

// titled finds what docs finds, the page first whose heading is asked for. There is a fourth one, that no question
// finds.
type titled struct{ docs }

func (d titled) Search(ctx context.Context, p api.ProjectID, q search.Query) ([]search.Hit, error) {
	hits, err := d.docs.Search(ctx, p, q)
	if q.Text == "Third?" {
		return hits[2:], err
	}
	return append(hits, search.Hit{Path: "d.md", URL: "/d", Title: "D", Heading: "Fourth?", Content: "d says"}), err
}

type shown struct{}

func (shown) Project(_ context.Context, id api.ProjectID) (api.Project, error) {
	p := project(id)
	p.Options = api.Options{SearchTool: true, Suggestions: true}
	return p, nil
}

func TestReadersDoNotHoldUpATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newThread()
		turn := w.put(id, opening("nobody reads this at all"))
		stalled := turn.Log.Reader(0)
		stalled.Take()
		synctest.Wait()
		if c := w.conversation(id); !c.Turns[0].Done {
			t.Error("the turn waits for its reader")
		}
	})
}

// library records what it is asked, and finds one section for each text.
type library struct {
	mu    sync.Mutex
	texts []string
}

func (*library) Indexed(context.Context, api.ProjectID) error { return nil }
func (*library) Around(context.Context, api.ProjectID, search.Place, []string) ([]search.Hit, error) {
	return nil, nil
}

func (l *library) Search(_ context.Context, _ api.ProjectID, q search.Query) ([]search.Hit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, q.Text)
	return []search.Hit{{Path: "both.md", URL: "/both", Title: "Both"},
		{Path: fmt.Sprint(len(l.texts), ".md"), URL: fmt.Sprint("/", len(l.texts)), Title: "One"}}, nil
}

func TestAQuestionIsSearchedForWithWhatItLeavesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(library)
		w := newWorld(t, func(d *actors.Deps) { d.Searcher = l }).start()
		defer w.stop()
		id := newThread()
		read(t, w.put(id, opening("How do I install the exporter?")).Log)
		read(t, w.put(id, question("and how do I configure it?")).Log)
		if got := l.texts[len(l.texts)-1]; !strings.Contains(got, "exporter") {
			t.Errorf("searched for %q", got)
		}
		before := len(l.texts)
		read(t, w.put(id, question("How do I install the exporter, and where are the recording rules kept?")).Log)
		if n := len(l.texts) - before; n < 2 {
			t.Fatalf("two questions in one were searched for %d times: %q", n, l.texts[before:])
		}
		seen := w.talker.seen()
		both := 0
		for _, p := range seen[len(seen)-1].Passages {
			if p.Path == "both.md" {
				both++
			}
		}
		if both != 1 {
			t.Errorf("a section that two searches find comes %d times", both)
		}
	})
}

func TestAQuestionThatKillsTheProcessIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		id := newThread()
		w.put(id, opening("block"))
		for starts := 0; ; starts++ {
			time.Sleep(2 * time.Minute) // virtual: work that broke off often rests before it starts over
			synctest.Wait()
			if e := w.conversation(id).Turns[0]; e.Done {
				if e.Error == "" {
					t.Errorf("%+v", e)
				}
				break
			}
			if starts > 20 {
				t.Fatal("it loops")
			}
			w.crash()
			w.start()
		}
		w.stop()
		if n := len(w.talker.seen()); n != 8 {
			t.Errorf("%d attempts", n)
		}
	})
}
