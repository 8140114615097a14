package people

import (
	"context"
	"database/sql"
	"encoding/json"
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
	body, err := database.EncodeBody(d)
	if err != nil {
		return err
	}
	row := database.SettingRow{Name: deliverySetting + string(project), Value: body}
	database.SetChecksum(&row)
	return s.db.InTx(ctx, "remember a webhook's delivery", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(&row).On("CONFLICT (name) DO UPDATE").Set("value = EXCLUDED.value").
			Set("checksum = EXCLUDED.checksum").Exec(ctx)
		return err
	})
}

// LastDelivery is the last delivery to a project's webhook that is remembered, or api.ErrNotFound. One whose row is
// damaged is forgotten: the next push brings another.
func (s *Store) LastDelivery(ctx context.Context, project api.ProjectID) (d api.Delivery, err error) {
	row := database.SettingRow{Name: deliverySetting + string(project)}
	none := fmt.Errorf("delivery to the webhook of %q: %w", project, api.ErrNotFound)
	if !database.Askable(row.Name) {
		return d, none
	}
	err = s.db.Read.NewSelect().Model(&row).WherePK().Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return d, none
	}
	if err != nil {
		return d, s.db.Fail("read a webhook's last delivery", err)
	}
	if database.CheckRow(&row) != nil || json.Unmarshal(row.Value, &d) != nil {
		return api.Delivery{}, none
	}
	return d, nil
}
