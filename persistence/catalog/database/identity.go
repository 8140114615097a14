package database

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/uptrace/bun"
)

// An Identity says which catalog this is, and what it knows of the journal that it works with.
type Identity struct {
	ID       string
	Revision uint64 // the number of its last change of what stands nowhere else
	Journal  string // the identity of the journal that it works with; empty if there is none yet
	Position uint64 // the last position of the journal that it has seen
	Partial  bool   // a listing was being rebuilt when the catalog was brought up to date: Position may be too low
}

type storeRow struct {
	bun.BaseModel `bun:"table:stores"`

	Name     string `bun:"name,pk"`
	ID       string `bun:"id"`
	Position uint64 `bun:"position"`
}

const (
	storeCatalog = "catalog"
	storeJournal = "journal"
)

// identify gives a catalog its identity, at the migration that brings these.
func identify(ctx context.Context, db bun.IDB) error {
	var seen uint64
	if err := db.NewRaw("SELECT COALESCE(MAX(position), 0) FROM projections").Scan(ctx, &seen); err != nil {
		return err
	}
	rows := []storeRow{{Name: storeCatalog, ID: rand.Text()}, {Name: storeJournal, Position: seen}}
	_, err := db.NewInsert().Model(&rows).Exec(ctx)
	return err
}

// Identity is what the catalog says of itself now.
func (db *DB) Identity(ctx context.Context) (is Identity, err error) {
	var rows []storeRow
	if err := db.Read.NewSelect().Model(&rows).Scan(ctx); err != nil {
		return is, db.Fail("read the catalog's identity", err)
	}
	for _, r := range rows {
		switch r.Name {
		case storeCatalog:
			is.ID, is.Revision = r.ID, r.Position
		case storeJournal:
			is.Journal, is.Position = r.ID, r.Position
		}
	}
	if is.ID == "" {
		return is, fmt.Errorf("read the catalog's identity: %w: %s has none", ErrCorrupt, db.Name)
	}
	if is.Journal == "" {
		var reset int
		if err := db.Read.NewRaw("SELECT COUNT(*) FROM projections WHERE position = 0 AND name <> ?", WebhookFollower).
			Scan(ctx, &reset); err != nil {
			return is, db.Fail("read the listings' positions", err)
		}
		is.Partial = reset > 0
	}
	db.heard(is.Revision)
	return is, nil
}

// Revision is the number of the last change, of what stands nowhere else, that is known here.
func (db *DB) Revision() uint64 { return db.revision.Load() }

// RememberJournal makes a journal the one that the catalog works with. It returns false if another process was faster
// with another one.
func (db *DB) RememberJournal(ctx context.Context, was Identity, id string, position uint64) (bool, error) {
	var n int64
	err := db.InTx(ctx, "remember the journal", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewUpdate().Model((*storeRow)(nil)).Set("id = ?", id).Set("position = ?", position).
			Where("name = ?", storeJournal).Where("id = ?", was.Journal).Exec(ctx)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n > 0, err
}

// Change runs fn in one transaction, which counts as a change of what stands nowhere else.
func (db *DB) Change(ctx context.Context, doing string, fn func(context.Context, bun.Tx) error) error {
	var revision uint64
	err := db.InTx(ctx, doing, func(ctx context.Context, tx bun.Tx) error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		// Last, since on PostgreSQL others who change something wait here until this has ended.
		err := tx.NewRaw("UPDATE stores SET position = position + 1 WHERE name = ? RETURNING position", storeCatalog).
			Scan(ctx, &revision)
		if err != nil {
			return err
		}
		return db.Say(ctx, tx, Message{Change: true})
	})
	if err == nil {
		db.heard(revision)
		db.Tell(nil)
	}
	return err
}

// heard remembers the highest number of a change.
func (db *DB) heard(revision uint64) {
	for {
		old := db.revision.Load()
		if old >= revision || db.revision.CompareAndSwap(old, revision) {
			return
		}
	}
}

// SeenJournal says up to which position the catalog has seen a journal, and whether it has worked with one at all.
func (db *DB) SeenJournal(ctx context.Context) (position uint64, worked bool, err error) {
	is, err := db.Identity(ctx)
	return is.Position, is.Journal != "" || is.Position > 0, err
}
