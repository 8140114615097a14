package people

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

// The last delivery to a project's webhook is a setting under this name, and the project's.
const deliverySetting = "delivery/"

// SaveDelivery remembers the last delivery to a project's webhook.
func (s *Store) SaveDelivery(ctx context.Context, project api.ProjectID, d api.Delivery) error {
	d.At = database.Stamp(d.At)
	return s.db.InTx(ctx, "remember a webhook's delivery", func(ctx context.Context, tx bun.Tx) error {
		return database.SaveSetting(ctx, tx, deliverySetting+string(project), d)
	})
}

// LastDelivery is the last delivery to a project's webhook that is remembered, or api.ErrNotFound. One whose row is
// damaged is forgotten: the next push brings another.
func (s *Store) LastDelivery(ctx context.Context, project api.ProjectID) (d api.Delivery, err error) {
	name := deliverySetting + string(project)
	none := fmt.Errorf("delivery to the webhook of %q: %w", project, api.ErrNotFound)
	if !database.Askable(name) {
		return d, none
	}
	err = database.ReadSetting(ctx, s.db.Read, name, &d)
	if errors.Is(err, sql.ErrNoRows) || errors.Is(err, database.ErrCorrupt) {
		return api.Delivery{}, none
	}
	if err != nil {
		return d, s.db.Fail("read a webhook's last delivery", err)
	}
	return d, nil
}
