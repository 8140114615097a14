package listing_test

import (
	"context"
	"errors"
	"testing"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/listing"
)

// A journalOfNodes is a journal as one node knows it: it has yet to hear of what another has appended.
type journalOfNodes struct {
	*catalogtest.Log
	known uint64
}

func (j *journalOfNodes) Position() uint64 { return j.known }

func TestAJobCreatedOnOneNodeIsListedOnAnother(t *testing.T) {
	t.Parallel()
	a, b := catalogtest.TwoNodes(t)
	if _, err := a.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}); err != nil {
		t.Fatal(err)
	}
	log := catalogtest.NewLog()
	_, stop := catalogtest.RunProjector(t, a, log) // the node that keeps the listing
	defer stop()
	b.NewProjector(&journalOfNodes{Log: log}, log.Load, nil)
	late := 0
	for n := range 20 {
		log.Change(catalogtest.JobStream(n), catalogtest.Active("docs"))
		if got := catalogtest.Current(t, b, listing.JobQuery{Project: "docs", MinPos: listing.Newest}, &late); len(got) != n+1 {
			t.Fatalf("after job %d the other node lists %v", n+1, got)
		}
		log.Change("thread/other", func(*api.JobRow) {}) // what the listing does not show
		if got := catalogtest.Current(t, b, listing.JobQuery{Project: "docs", MinPos: listing.Newest}, &late); len(got) != n+1 {
			t.Fatalf("after job %d and a thread the other node lists %v", n+1, got)
		}
	}
	if late > 10 {
		t.Errorf("of 40 listings %d waited for as long as they may: they wait for what does not come", late)
	}
}

func TestAnotherNodeTakesAListingUp(t *testing.T) {
	t.Parallel()
	a, b := catalogtest.TwoNodes(t)
	if _, err := a.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}); err != nil {
		t.Fatal(err)
	}
	log := catalogtest.NewLog()
	_, stopA := catalogtest.RunProjector(t, a, log)
	log.Change(catalogtest.JobStream(1), catalogtest.Active("docs"))
	catalogtest.Current(t, a, listing.JobQuery{Project: "docs", MinPos: listing.Newest}, new(int))
	stopA()
	// The journal's end is not known to the node that takes it up: what is listed is not thrown away for it.
	behind := &journalOfNodes{Log: log}
	p := b.NewProjector(behind, log.Load, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	log.Change(catalogtest.JobStream(2), catalogtest.Active("docs"))
	for _, c := range []*catalog.Catalog{a, b} {
		if got := catalogtest.Current(t, c, listing.JobQuery{Project: "docs", MinPos: listing.Newest}, new(int)); len(got) != 2 {
			t.Errorf("listed: %v", got)
		}
	}
	log.Mu.Lock()
	defer log.Mu.Unlock()
	if n := log.Loads[catalogtest.JobStream(1)]; n != 1 {
		t.Errorf("a job that was listed already is read %d times", n)
	}
}

// TestAListingThatAnotherNodeMakesAnewIsNotTakenForWhole has a node start meanwhile: the first that it hears is how far
// the other one is.
func TestAListingThatAnotherNodeMakesAnewIsNotTakenForWhole(t *testing.T) {
	t.Parallel()
	a, b := catalogtest.TwoNodes(t)
	catalogtest.Must(a.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}))(t)
	log := catalogtest.NewLog()
	for n := range 10 {
		log.Change(catalogtest.JobStream(n), catalogtest.Active("docs"))
	}
	p := b.NewProjector(log, log.Load, nil)
	p.Heard(database.Message{Listing: p.Name(), Position: 3})
	if err := p.Usable(); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("3 of 10 events are listed: %v", err)
	}
	_, stop := catalogtest.RunProjector(t, a, log)
	defer stop()
	catalogtest.Soon(t, "the listing is whole", func() bool { return p.Usable() == nil })
	// Of a node that starts now nobody has to wait before it looks.
	late := b.NewProjector(log, log.Load, nil)
	catalogtest.Soon(t, "a node that starts knows that the listing is whole", func() bool { return late.Usable() == nil })
}

// TestAListingIsNotStoredBeyondTheJournalsEnd has the server lose commits that a projector has read: a node that starts
// would find a catalog that has seen more than there is.
func TestAListingIsNotStoredBeyondTheJournalsEnd(t *testing.T) {
	t.Parallel()
	dsn := catalogtest.Postgres(t)
	c := catalogtest.Must(catalog.Open(t.Context(), dsn, catalog.Options{Nodes: true, Journal: true}))(t)
	t.Cleanup(func() { c.Close() })
	catalogtest.Must(c.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}))(t)
	catalogtest.Must(c.Write.Exec("CREATE TABLE journal_head (position BIGINT)"))(t)
	catalogtest.Must(c.Write.Exec("INSERT INTO journal_head VALUES (1)"))(t)
	log := catalogtest.NewLog()
	p := c.NewProjector(log, log.Load, nil)
	log.Change(catalogtest.JobStream(1), catalogtest.Active("docs"))
	if err := p.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	log.Change(catalogtest.JobStream(2), catalogtest.Active("docs")) // of which the server knows nothing
	if err := p.Step(t.Context()); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("the listing goes on: %v", err)
	}
	if err := c.AddEvents(t.Context(), nil, nil, 2); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("webhooks go on: %v", err)
	}
	if is := catalogtest.Must(c.Identity(t.Context()))(t); is.Position != 1 {
		t.Errorf("the catalog says that it has seen position %d", is.Position)
	}
}
