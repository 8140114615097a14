package catalog

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog/catalogtest"
)

// twoNodes are catalogues of two nodes on one database. What they remember they remember for an hour, unless the other
// says that it has changed.
func twoNodes(t *testing.T) (a, b *Catalog) {
	t.Helper()
	a, b, _ = twoNodesOn(t)
	return a, b
}

func twoNodesOn(t *testing.T) (a, b *Catalog, dsn string) {
	t.Helper()
	dsn = catalogtest.Postgres(t)
	open := func() *Catalog {
		c := must(Open(t.Context(), dsn, Options{Nodes: true, Stale: time.Hour}))(t)
		t.Cleanup(func() { c.Close() })
		hears(t, c)
		return c
	}
	return open(), open(), dsn
}

// hears waits until a node listens to the others: it has everybody look once then.
func hears(t *testing.T, c *Catalog) {
	t.Helper()
	select {
	case <-c.Changes():
	case <-time.After(time.Minute):
		t.Fatal("the node does not listen to the others")
	}
}

// soon waits until something holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// countAnew has what has changed counted anew at once, also where counting took long: for what a machine that stood still
// took five seconds to count, a catalogue waits for a hundred (quarterShare).
func countAnew(c *Catalog) {
	c.days.mu.Lock()
	defer c.days.mu.Unlock()
	for _, k := range c.days.known {
		k.took = 0
	}
}

func TestAKeyRevokedOnOneNodeIsRefusedOnAnother(t *testing.T) {
	t.Parallel()
	a, b := twoNodes(t)
	hash := [32]byte{7}
	good := func() bool {
		key, err := b.KeyByHash(t.Context(), hash)
		return err == nil && key.RevokedAt == nil
	}
	if good() { // b remembers that there is none
		t.Fatal("a key that nobody has made is good")
	}
	key := must(a.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, hash))(t)
	soon(t, "the other node knows the key", good)
	if err := a.RevokeKey(t.Context(), key.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	soon(t, "the other node refuses the key", func() bool { return !good() })
}

func TestWatchersHearOfChangesOfOtherNodes(t *testing.T) {
	t.Parallel()
	a, b := twoNodes(t)
	changed, stop := b.Watch("docs")
	defer stop()
	must(a.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, [32]byte{7}))(t)
	for _, c := range []<-chan struct{}{changed, b.Changes()} {
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatal("the other node does not hear of a change")
		}
	}
}

func TestANodeThatHeardNothingForAWhileForgetsWhatItKnew(t *testing.T) {
	t.Parallel()
	a, b, dsn := twoNodesOn(t)
	hash := [32]byte{7}
	key := must(a.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, hash))(t)
	soon(t, "the other node knows the key", func() bool {
		_, err := b.KeyByHash(t.Context(), hash)
		return err == nil
	})
	// The connections of all nodes that hear are cut, and the key is revoked by a process that tells nobody.
	must(a.write.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = ?",
		`LISTEN "`+b.nodes.channel+`"`))(t)
	c := must(Open(t.Context(), dsn, Options{}))(t)
	defer c.Close()
	if err := c.RevokeKey(t.Context(), key.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	soon(t, "the key is refused", func() bool {
		key, err := b.KeyByHash(t.Context(), hash)
		return err == nil && key.RevokedAt != nil
	})
}

// A journalOfNodes is a journal as one node knows it: it has yet to hear of what another has appended.
type journalOfNodes struct {
	*testLog
	known uint64
}

func (j *journalOfNodes) Position() uint64 { return j.known }

func TestAJobCreatedOnOneNodeIsListedOnAnother(t *testing.T) {
	t.Parallel()
	a, b := twoNodes(t)
	if _, err := a.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}); err != nil {
		t.Fatal(err)
	}
	log := newTestLog()
	_, stop := runProjector(t, a, log) // the node that keeps the listing
	defer stop()
	NewProjector(b, &journalOfNodes{testLog: log}, log.load, nil)
	late := 0
	for n := range 20 {
		log.change(jobStream(n), active("docs"))
		if got := current(t, b, JobQuery{Project: "docs", MinPos: Newest}, &late); len(got) != n+1 {
			t.Fatalf("after job %d the other node lists %v", n+1, got)
		}
		log.change("thread/other", func(*api.JobRow) {}) // what the listing does not show
		if got := current(t, b, JobQuery{Project: "docs", MinPos: Newest}, &late); len(got) != n+1 {
			t.Fatalf("after job %d and a thread the other node lists %v", n+1, got)
		}
	}
	if late > 10 {
		t.Errorf("of 40 listings %d waited for as long as they may: they wait for what does not come", late)
	}
}

func TestAnotherNodeTakesAListingUp(t *testing.T) {
	t.Parallel()
	a, b := twoNodes(t)
	if _, err := a.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}); err != nil {
		t.Fatal(err)
	}
	log := newTestLog()
	_, stopA := runProjector(t, a, log)
	log.change(jobStream(1), active("docs"))
	current(t, a, JobQuery{Project: "docs", MinPos: Newest}, new(int))
	stopA()
	// The journal's end is not known to the node that takes it up: what is listed is not thrown away for it.
	behind := &journalOfNodes{testLog: log}
	p := NewProjector(b, behind, log.load, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	log.change(jobStream(2), active("docs"))
	for _, c := range []*Catalog{a, b} {
		if got := current(t, c, JobQuery{Project: "docs", MinPos: Newest}, new(int)); len(got) != 2 {
			t.Errorf("listed: %v", got)
		}
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if n := log.loads[jobStream(1)]; n != 1 {
		t.Errorf("a job that was listed already is read %d times", n)
	}
}

func TestFiguresOfADayFollowWhatAnotherNodeHasListed(t *testing.T) {
	t.Parallel()
	a, b := twoNodes(t)
	if _, err := a.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}); err != nil {
		t.Fatal(err)
	}
	threads := catalogtest.NewThreads()
	p := NewThreadProjector(a, threads, threads.Load, nil)
	NewThreadProjector(b, threads, threads.Load, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	at := time.Now().Add(-time.Hour)
	for n := range 10 {
		threads.Put(api.ThreadRow{ID: api.ThreadID(fmt.Sprintf("thread_%02d", n)), Project: "docs", Caller: "anonymous",
			Questions: []api.QuestionRow{{ID: api.TurnID(fmt.Sprintf("turn_%02d", n)), Thread: api.ThreadID(fmt.Sprintf("thread_%02d", n)),
				Project: "docs", Caller: "anonymous", Question: "Why?", Asked: at, Ended: at}}})
		soon(t, fmt.Sprintf("the other node counts %d questions", n+1), func() bool {
			countAnew(b)
			days := must(b.Days(t.Context(), AnalyticsQuery{Project: "docs", From: at.Add(-time.Hour)}, time.UTC))(t)
			sum := 0
			for _, d := range days {
				sum += d.Questions
			}
			return sum == n+1
		})
	}
	if errors.Is(p.usable(), api.ErrUnavailable) {
		t.Error("the listing is not whole")
	}
}

// TestAListingThatAnotherNodeMakesAnewIsNotTakenForWhole has a node start meanwhile: the first that it hears is how far
// the other one is.
func TestAListingThatAnotherNodeMakesAnewIsNotTakenForWhole(t *testing.T) {
	t.Parallel()
	a, b := twoNodes(t)
	must(a.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}))(t)
	log := newTestLog()
	for n := range 10 {
		log.change(jobStream(n), active("docs"))
	}
	p := NewProjector(b, log, log.load, nil)
	p.heard(said{Listing: p.name, Position: 3})
	if err := p.usable(); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("3 of 10 events are listed: %v", err)
	}
	_, stop := runProjector(t, a, log)
	defer stop()
	soon(t, "the listing is whole", func() bool { return p.usable() == nil })
	// Of a node that starts now nobody has to wait before it looks.
	late := NewProjector(b, log, log.load, nil)
	soon(t, "a node that starts knows that the listing is whole", func() bool { return late.usable() == nil })
}

// TestAListingIsNotStoredBeyondTheJournalsEnd has the server lose commits that a projector has read: a node that starts
// would find a catalogue that has seen more than there is.
func TestAListingIsNotStoredBeyondTheJournalsEnd(t *testing.T) {
	t.Parallel()
	dsn := catalogtest.Postgres(t)
	c := must(Open(t.Context(), dsn, Options{Nodes: true, Journal: true}))(t)
	t.Cleanup(func() { c.Close() })
	must(c.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}))(t)
	must(c.write.Exec("CREATE TABLE journal_head (position BIGINT)"))(t)
	must(c.write.Exec("INSERT INTO journal_head VALUES (1)"))(t)
	log := newTestLog()
	p := NewProjector(c, log, log.load, nil)
	log.change(jobStream(1), active("docs"))
	if err := p.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	log.change(jobStream(2), active("docs")) // of which the server knows nothing
	if err := p.step(t.Context()); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("the listing goes on: %v", err)
	}
	if err := c.AddEvents(t.Context(), nil, nil, 2); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("webhooks go on: %v", err)
	}
	if is := must(c.Identity(t.Context()))(t); is.Position != 1 {
		t.Errorf("the catalogue says that it has seen position %d", is.Position)
	}
}
