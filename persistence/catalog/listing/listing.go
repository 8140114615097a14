// Package listing keeps copies of what the journal holds in the catalog, where they can be searched: a projector
// follows the journal and writes the rows of one kind of stream, on one node at a time, and tells the others. It owns
// the projectors and the listing of jobs; the listing of questions is that of package insights.
package listing

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/uptrace/bun"

	"docent/persistence/catalog/database"
)

// Part is what the listings bring to the schema.
var Part = database.Part{Steps: []database.Step{{Migration: database.ConversationsMigration, Do: placeJobs}}}

// A Store reads the listings and makes their projectors.
type Store struct {
	db        *database.DB
	copies    []Projection // of which there are rows
	observers []observer

	mu         sync.Mutex
	projectors map[string]*Projector // by name
}

// observer is a part that keeps in memory what it has counted of listings.
type observer struct {
	changed func(*Changes)
	reset   func()
}

// New makes the listings of a database.
func New(db *database.DB) *Store {
	s := &Store{db: db, copies: []Projection{jobListing(nil)}, projectors: map[string]*Projector{}}
	db.OnMessage(s.heard, s.missed)
	return s
}

// Add registers a listing to be emptied with the others. Changed is called after each change of any listing, and reset
// when what was counted may no longer hold. It is called before the database is started.
func (s *Store) Add(of Projection, changed func(*Changes), reset func()) {
	s.copies, s.observers = append(s.copies, of), append(s.observers, observer{changed, reset})
}

func (s *Store) reset() {
	for _, o := range s.observers {
		o.reset()
	}
}

// projector is that of a listing; nil if none was created.
func (s *Store) projector(name string) *Projector {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.projectors[name]
}

// Await waits, for a short time, until a listing reflects the journal up to pos. With asIs it does not, and fails only
// while the listing is being rebuilt. A listing that nobody keeps is as it is.
func (s *Store) Await(ctx context.Context, name string, pos uint64, asIs bool) error {
	p := s.projector(name)
	switch {
	case p == nil:
		return nil
	case asIs:
		return p.usable()
	}
	return p.await(ctx, pos)
}

// EmptyListings removes every copy of what the journal holds. The listings follow the journal from its start then.
func (s *Store) EmptyListings(ctx context.Context) error {
	return s.db.InTx(ctx, "empty the listings", func(ctx context.Context, tx bun.Tx) error {
		for _, of := range s.copies {
			if err := of.drop(ctx, tx); err != nil {
				return err
			}
		}
		// Webhooks tell of what happens from now on, and nobody of what another journal holds.
		if _, err := tx.NewRaw("DELETE FROM projections WHERE name = ?", database.WebhookFollower).Exec(ctx); err != nil {
			return err
		}
		_, err := tx.NewRaw("UPDATE projections SET position = 0").Exec(ctx)
		return err
	})
}

// ListedOnly yields what is listed of jobs and questions of whose streams the journal knows nothing.
func (s *Store) ListedOnly(ctx context.Context, known func(stream string) bool,
	yield func(table, id string, body json.RawMessage) error) error {
	for _, of := range s.copies {
		for after, more := "", true; more; {
			var rows []struct {
				ID     string          `bun:"id"`
				Stream string          `bun:"stream"`
				Body   json.RawMessage `bun:"body"`
			}
			err := s.db.Read.NewSelect().Table(of.Table).Column("id", "body").ColumnExpr("? AS stream", bun.Ident(of.Column)).
				Where("id > ?", after).OrderBy("id", bun.OrderAsc).Limit(Batch).Scan(ctx, &rows)
			if err != nil {
				return s.db.Fail("read "+of.Table, err)
			}
			for _, r := range rows {
				after = r.ID
				if known(of.Prefix + r.Stream) {
					continue
				}
				if err := yield(of.Table, r.ID, r.Body); err != nil {
					return err
				}
			}
			more = len(rows) == Batch
		}
	}
	return nil
}
