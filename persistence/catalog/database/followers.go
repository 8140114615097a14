package database

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"docent/api"
)

// BeginFollower stores where a follower begins. It returns false if one has begun already.
func BeginFollower(ctx context.Context, tx bun.Tx, name string, pos uint64) (bool, error) {
	res, err := tx.NewRaw("INSERT INTO projections (name, position) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", name, pos).Exec(ctx)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// PlaceFollower stores how far a follower of the journal has come.
func (db *DB) PlaceFollower(ctx context.Context, tx bun.Tx, name string, pos uint64) error {
	if db.options.Journal && pos > 0 {
		var end uint64
		if err := tx.NewRaw("SELECT position FROM journal_head").Scan(ctx, &end); err != nil {
			return err
		}
		if end < pos {
			return fmt.Errorf("%w: the journal has lost its events from position %d on, of which %s has those up to %d",
				api.ErrUnavailable, end+1, name, pos)
		}
	}
	_, err := tx.NewRaw("INSERT INTO projections (name, position) VALUES (?, ?) "+
		"ON CONFLICT (name) DO UPDATE SET position = EXCLUDED.position", name, pos).Exec(ctx)
	if err == nil && pos > 0 {
		_, err = tx.NewRaw("UPDATE stores SET position = ? WHERE name = ? AND position < ?", pos, storeJournal, pos).Exec(ctx)
	}
	return err
}

// WebhookFollower is the name under which outgoing webhooks follow the journal.
const WebhookFollower = "webhooks"
