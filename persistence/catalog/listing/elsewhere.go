package listing

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"docent/internal/background"
	"docent/persistence/catalog/database"
)

// lookEvery is how often somebody who waits for a listing that another node keeps looks at how far it is, beside what
// that node says.
const lookEvery = 250 * time.Millisecond

// hasten asks the node that keeps the listing to bring it up to the journal's end soon.
func (p *Projector) hasten() {
	select {
	case p.hurry <- struct{}{}:
	default:
	}
	if p.runs.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := p.store.db.Say(ctx, p.store.db.Write, database.Message{Listing: p.of.Name, Hurry: true}); err != nil {
		p.log.Debug("the node that keeps "+p.of.Title+" could not be notified that somebody waits for it", "error", err)
	}
}

// heard takes what another node says of the listing.
func (p *Projector) heard(what database.Message) {
	switch {
	case what.Hurry && p.runs.Load():
		p.elsewhere.Store(true)
		select {
		case p.hurry <- struct{}{}:
		default:
		}
	case what.Hurry || p.runs.Load():
	case what.Position == 0: // it is being rebuilt
		p.mu.Lock()
		p.reached, p.whole, p.target, p.aimed = 0, false, p.source.Position(), true
		p.mu.Unlock()
	default:
		p.further(what.Position)
	}
}

// further is reach for what another node has written: what comes late says nothing.
func (p *Projector) further(pos uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pos > p.reached && !p.runs.Load() {
		p.reachTo(pos)
	}
}

// look reads how far the listing is from the database, in the background.
func (p *Projector) look() {
	p.store.db.Work.Go("persistence/catalog.look", func() {
		ctx, cancel := context.WithTimeout(context.Background(), listingWait)
		defer cancel()
		if err := p.lookOnce(ctx); err != nil {
			p.log.Debug("how far "+p.of.Title+" is could not be read", "error", err)
		}
	})
}

// lookOnce reads how far the listing is from the database. What was counted from its rows before is counted again, since
// the message that says what has changed may have been lost.
func (p *Projector) lookOnce(ctx context.Context) error {
	if p.runs.Load() {
		return nil
	}
	head, err := p.source.End()
	if err != nil {
		return err
	}
	pos, err := p.readPosition(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// It may run since then, and have started over; and who runs it rebuilds what the journal cannot take on.
	if p.runs.Load() || pos > head || pos < p.source.Trimmed() {
		return nil
	}
	if !p.aimed {
		p.target, p.aimed = head, true
	}
	if pos > p.reached || pos >= p.target && !p.whole {
		p.store.reset()
		p.reachTo(pos)
	}
	return nil
}

// lookNow looks at the database again and again until the returned function is called.
func (p *Projector) lookNow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	background.Go("persistence/catalog.lookNow", func() {
		defer close(ended)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				p.hasten()
				if err := p.lookOnce(ctx); err != nil && ctx.Err() == nil {
					p.log.Debug("how far "+p.of.Title+" is could not be read", "error", err)
				}
			}
		}
	})
	return func() { cancel(); <-ended }
}

// maxSaid is how many bytes of projects and quarters are told by name: PostgreSQL takes messages of less than 8000.
const maxSaid = 7000

// sayListed tells others of what a projector has written, in its transaction.
func (s *Store) sayListed(ctx context.Context, tx bun.Tx, listing string, pos uint64, noted *Changes) error {
	what := database.Message{Listing: listing, Position: pos, All: noted.All}
	size := 0
	for project := range noted.Projects {
		what.Projects = append(what.Projects, project)
		size += len(project) + 3
	}
	for q := range noted.Quarters {
		what.Quarters = append(what.Quarters, q)
		size += len(q.Project) + 30
	}
	if size > maxSaid {
		what.All, what.Projects, what.Quarters = true, nil, nil
	}
	return s.db.Say(ctx, tx, what)
}

// heard takes what another node says of its listings.
func (s *Store) heard(what database.Message) {
	noted := Changes{All: what.All}
	for _, project := range what.Projects {
		noted.Of(project)
	}
	for _, q := range what.Quarters {
		noted.Quarter(q)
	}
	if what.All {
		s.reset()
	}
	s.committed(&noted)
	if p := s.projector(what.Listing); p != nil {
		p.heard(what)
	}
}

// missed looks how far the listings are, after messages of other nodes may have been lost.
func (s *Store) missed() {
	s.reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.projectors {
		p.look()
	}
}
