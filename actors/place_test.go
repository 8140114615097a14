package actors_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docent/actors"
	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/cluster"
	"docent/persistence/journal"
	"docent/stream"
)

// places are which node runs what, for two nodes of a test.
type places struct {
	mu    sync.Mutex
	owner [cluster.Shards]string
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
	*places
	self string
}

func (p place) Here(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owner[cluster.Shard(name)] == p.self
}

func (p place) Check(ctx context.Context, name string) error {
	if p.Here(name) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := &cluster.ElsewhereError{Name: name, Node: cluster.Node{Name: p.owner[cluster.Shard(name)]}}
	cluster.Note(ctx, err)
	return err
}

// twoNodes are two systems over one journal.
func twoNodes(t *testing.T) (a, b *world, p *places) {
	p = new(places)
	p.give("a")
	a = newWorld(t, func(d *actors.Deps) { d.Place = place{p, "a"} })
	b = newWorld(t, func(d *actors.Deps) { d.Place = place{p, "b"} })
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

// An actor that lives on where another node has written acknowledges nothing.
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
// what was refused, and begin nothing anew; who runs them next does the work.
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
