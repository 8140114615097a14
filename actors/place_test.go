package actors_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"docent/actors"
	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/persistence/cluster"
	"docent/persistence/journal"
)

// places are which node runs what, for two nodes of a test.
type places struct {
	mu    sync.Mutex
	owner [cluster.Shards]string
	stale bool // no node may act on what it runs: its beats are missing
}

// lapse reports whether the nodes' beats are missing.
func (p *places) lapse(stale bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stale = stale
}

// give makes one node the owner of all shards, and says which these are.
func (p *places) give(node string) []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []int
	for i := range p.owner {
		p.owner[i] = node
		all = append(all, i)
	}
	return all
}

// place is what one node sees of it.
type place struct {
	cluster.Ownership // of nobody: nothing else is asked for
	*places
	self string
}

func (p place) Several() bool { return true }

func (p place) Owns(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stale && p.owner[cluster.Shard(name)] == p.self
}

func (p place) Hold(ctx context.Context, name string) (context.Context, func()) {
	if !p.Owns(name) {
		return nil, nil
	}
	return context.WithCancel(ctx)
}

func (p place) Check(ctx context.Context, name string) error {
	if p.Owns(name) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stale {
		return &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: time.Second}
	}
	err := &cluster.ElsewhereError{Name: name, Node: cluster.Node{Name: p.owner[cluster.Shard(name)]}}
	cluster.Note(ctx, err)
	return err
}

// twoNodes are two systems over one journal.
func twoNodes(t *testing.T) (a, b *world, p *places) {
	p = new(places)
	p.give("a")
	a = newWorld(t, func(d *actors.Deps) { d.Place = place{places: p, self: "a"} })
	b = newWorld(t, func(d *actors.Deps) { d.Place = place{places: p, self: "b"} })
	b.journal, b.memory, b.host, b.writer, b.talker = a.journal, a.memory, a.host, a.writer, a.talker
	return a.start(), b.start(), p
}

// move hands everything from one node to the other.
func (p *places) move(t *testing.T, from, to *world, node string) {
	t.Helper()
	all := p.give(node)
	if err := from.system.Release(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	to.system.Wake(all)
}

func TestAnotherNodesActorIsNotStartedHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := twoNodes(t)
		defer a.stop()
		defer b.stop()
		id := newThread()
		a.put(id, opening("what is it"))
		synctest.Wait()
		ctx, slot := cluster.WithSlot(t.Context())
		_, err := b.system.Threads().Read(ctx, id, thread.Read{Project: "p"})
		var elsewhere *cluster.ElsewhereError
		if !errors.As(err, &elsewhere) || elsewhere.Node.Name != "a" || slot.Elsewhere() != elsewhere {
			t.Errorf("%v, noted %v", err, slot.Elsewhere())
		}
		if n := b.system.Stats().Live; n != 0 {
			t.Errorf("%d actors live at the other node", n)
		}
	})
}

func TestAnAnswerInHandIsWrittenAnewByTheNodeThatTakesItsShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, p := twoNodes(t)
		defer a.stop()
		defer b.stop()
		id := newThread()
		turn := a.put(id, opening("block what is it"))
		synctest.Wait()
		p.move(t, a, b, "b")
		parts := read(t, turn.Log)
		if _, end := told(parts); !turn.Log.Broken() || end != stream.Text {
			t.Errorf("the log that was cut ends with %v, broken: %v", end, turn.Log.Broken())
		}
		if n := a.system.Stats().Live; n != 0 {
			t.Errorf("%d actors live on", n)
		}
		synctest.Wait()
		close(a.talker.letGo)
		synctest.Wait()
		if c := b.conversation(id); len(c.Turns) != 1 || !c.Turns[0].Done || c.Turns[0].Error != "" {
			t.Errorf("%+v", c.Turns)
		}
	})
}

func TestWhoWatchesAJobThatMovesIsSentAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, p := twoNodes(t)
		defer a.stop()
		defer b.stop()
		id := newJob()
		a.create(id, "block for it")
		seq := a.ask(id, job.Read{Project: "p"})
		watched := make(chan error)
		go func() {
			_, err := a.system.Jobs().Ask(t.Context(), id,
				job.Watch{Project: "p", After: seq.Seq + 100, Until: time.Now().Add(time.Hour)})
			watched <- err
		}()
		synctest.Wait()
		p.move(t, a, b, "b")
		var elsewhere *cluster.ElsewhereError
		if err := <-watched; !errors.As(err, &elsewhere) {
			t.Errorf("%v", err)
		}
	})
}

// An actor that lives on after another node has written acknowledges nothing.
func TestAnActorThatWasOvertakenAcknowledgesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, p := twoNodes(t)
		defer a.stop()
		defer b.stop()
		id := newThread()
		read(t, a.put(id, opening("what is it")).Log)
		a.memory.fail = func(journal.Append) error {
			p.give("b") // between the look and the append
			a.memory.fail = nil
			return fmt.Errorf("append: %w", journal.ErrSequence)
		}
		q := question("and then")
		_, err := a.system.Threads().Ask(t.Context(), id, q)
		var elsewhere *cluster.ElsewhereError
		if !errors.As(err, &elsewhere) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if n := a.system.Stats().Live; n != 0 {
			t.Errorf("%d actors live on", n)
		}
		if c := b.conversation(id); len(c.Turns) != 1 {
			t.Errorf("%+v", c.Turns)
		}
	})
}

func TestNewIDsLieInShardsOfTheNodeThatMakesThem(t *testing.T) {
	ids := &api.IDs{Mine: func(prefix, id string) bool { return cluster.Shard("job/"+id) < 16 }}
	missed := 0
	for range 1000 {
		if cluster.Shard("job/"+ids.New(api.JobPrefix, time.Now())) >= 16 {
			missed++
		}
	}
	if missed > 10 {
		t.Errorf("%d of 1000 lie elsewhere", missed)
	}
	none := &api.IDs{Mine: func(string, string) bool { return false }}
	if id := none.New(api.JobPrefix, time.Now()); !api.ValidID(api.JobPrefix, id) {
		t.Errorf("%q", id)
	}
}

// Others have given the node up: its journal takes nothing any more. Its actors acknowledge nothing, do not offer again
// what was refused, and start nothing; the next owner does the work.
func TestActorsOfANodeThatWasGivenUpStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		j, id := newJob(), newThread()
		w.create(j, "block")
		turn := w.put(id, opening("block"))
		synctest.Wait()
		var offered []string
		w.memory.mu.Lock()
		before := w.memory.appends
		w.memory.fail = func(a journal.Append) error {
			offered = append(offered, a.Stream)
			return fmt.Errorf("append: %w", journal.ErrFenced)
		}
		w.memory.mu.Unlock()
		close(w.writer.letGo)
		close(w.talker.letGo)
		if _, last := told(read(t, turn.Log)); last != stream.Error {
			t.Errorf("a reader is told %v", last)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		counts := make(map[string]int)
		w.memory.mu.Lock()
		for _, stream := range offered {
			counts[stream]++
		}
		w.memory.mu.Unlock()
		if counts[job.Stream(j)] != 1 || counts[thread.Stream(id)] != 1 || len(counts) != 2 {
			t.Errorf("offered: %v", offered)
		}
		if n := len(w.writer.seen()); n != 1 {
			t.Errorf("%d edits were begun", n)
		}
		_, err := w.system.Jobs().Ask(t.Context(), j, job.FollowUp{Project: "p", ID: "f", Prompt: "x"})
		if !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("a command: %v", err)
		}
		if _, err = w.system.Threads().Ask(t.Context(), newThread(), opening("a new one")); !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("a new conversation: %v", err)
		}
		w.stop()
		if w.memory.appends != before {
			t.Errorf("%d appends were taken", w.memory.appends-before)
		}
		w.memory.fail = nil
		w.start()
		defer w.stop()
		if row := w.settled(j); row.Job.Status != api.JobCompleted {
			t.Errorf("elsewhere: %+v", row.Job)
		}
	})
}

// The node's beats are missing while its pending work is woken: it is taken up when they arrive again.
func TestWorkThatIsWokenWhileNobodyMayRunItIsDoneLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, p := twoNodes(t)
		defer a.stop()
		defer b.stop()
		id := newThread()
		a.put(id, opening("block what is it"))
		synctest.Wait()
		all := p.give("b")
		if err := a.system.Release(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		b.memory.listed = func() { p.lapse(true) } // between the look at what is pending and the wake
		b.system.Wake(all)
		time.Sleep(time.Minute)
		p.lapse(false)
		close(b.talker.letGo)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := b.system.Stats().Live; n != 1 {
			t.Errorf("%d actors live", n)
		}
		if c := b.conversation(id); len(c.Turns) != 1 || !c.Turns[0].Done {
			t.Errorf("%+v", c.Turns)
		}
	})
}

// The database stores what a command wrote, and its answer does not come.
func TestWhatWasStoredWithoutAnAnswerIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		old, id := newJob(), newJob()
		w.create(old, "nothing")
		w.settled(old)
		conversation := newThread()
		read(t, w.put(conversation, opening("what is it")).Log)
		w.memory.mu.Lock()
		w.memory.lose = func(a journal.Append) error {
			if len(a.Events) > 0 && a.Pending {
				return fmt.Errorf("%w: %w", journal.ErrUnknown, api.ErrUnavailable)
			}
			return nil
		}
		w.memory.mu.Unlock()
		create := job.Create{Project: project("p"), User: "key_1", Prompt: "a new one"}
		if _, err := w.system.Jobs().Ask(t.Context(), id, create); !errors.Is(err, journal.ErrUnknown) {
			t.Errorf("a new job: %v", err)
		}
		follow := job.FollowUp{Project: "p", ID: "f", Prompt: "go on"}
		if _, err := w.system.Jobs().Ask(t.Context(), old, follow); !errors.Is(err, journal.ErrUnknown) {
			t.Errorf("a follow-up: %v", err)
		}
		if _, err := w.system.Threads().Ask(t.Context(), conversation, question("and then")); !errors.Is(err, journal.ErrUnknown) {
			t.Errorf("a question: %v", err)
		}
		w.memory.mu.Lock()
		w.memory.lose = nil
		w.memory.mu.Unlock()
		time.Sleep(time.Minute) // nobody asks for them
		synctest.Wait()
		var prompts []string
		for _, task := range w.writer.seen() {
			prompts = append(prompts, task.Prompt)
		}
		if len(prompts) != 3 || len(w.talker.seen()) != 2 {
			t.Errorf("edits %q, %d answers", prompts, len(w.talker.seen()))
		}
		if n := len(w.conversation(conversation).Turns); n != 2 {
			t.Errorf("%d turns", n)
		}
	})
}

// However long the journal cannot be read, no actor is quarantined for it.
func TestAJournalThatCannotBeReadForLongQuarantinesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newJob()
		w.create(id, "nothing")
		w.settled(id)
		time.Sleep(10 * time.Minute) // it sleeps
		away := func(on bool) {
			w.memory.mu.Lock()
			defer w.memory.mu.Unlock()
			w.memory.unread = on
		}
		away(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.system.Jobs().Ask(ctx, id, job.Read{Project: "p"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while it cannot be read: %v", err)
		}
		time.Sleep(10 * time.Minute)
		away(false)
		if row := w.ask(id, job.Read{Project: "p"}); row.Job.Status != api.JobCompleted || len(w.system.Stats().Quarantined) > 0 {
			t.Errorf("%+v, quarantined %v", row.Job, w.system.Stats().Quarantined)
		}
	})
}

// lapsing is a place that says for one look that the node may not act.
type lapsing struct {
	place
	looks atomic.Int64 // until then
}

func (p *lapsing) Owns(name string) bool { return p.looks.Add(-1) != 0 && p.place.Owns(name) }

// Beats are missing for a moment, at each of the looks that are taken until an actor runs.
func TestAnActorThatStartsWhileBeatsAreMissingAnswersAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &lapsing{place: place{places: new(places), self: "a"}}
		p.give("a")
		w := newWorld(t, func(d *actors.Deps) { d.Place = p }).start()
		defer w.stop()
		for look := range 6 {
			id := newJob()
			w.create(id, "nothing")
			w.settled(id)
			time.Sleep(10 * time.Minute) // it sleeps
			p.looks.Store(int64(look))
			_, err := w.system.Jobs().Ask(t.Context(), id, job.Read{Project: "p"})
			p.looks.Store(0)
			if elsewhere := (*cluster.ElsewhereError)(nil); err != nil && !errors.As(err, &elsewhere) {
				t.Errorf("at look %d: %v", look, err)
			}
			w.ask(id, job.Read{Project: "p"})
			time.Sleep(10 * time.Minute)
			if n := w.system.Stats().Live; n != 0 {
				t.Errorf("after look %d %d actors live on", look, n)
			}
		}
	})
}
