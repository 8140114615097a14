package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"docent/api"

	"github.com/uptrace/bun"
)

// The last delivery to a project's webhook is a setting under this name, and the project's.
const deliverySetting = "delivery/"

// SaveDelivery remembers the last delivery to a project's webhook.
func (c *Catalog) SaveDelivery(ctx context.Context, project api.ProjectID, d api.Delivery) error {
	d.At = stamp(d.At)
	body, err := encodeBody(d)
	if err != nil {
		return err
	}
	row := settingRow{Name: deliverySetting + string(project), Value: body}
	setChecksum(&row)
	return c.update(ctx, "remember a webhook's delivery", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(&row).On("CONFLICT (name) DO UPDATE").Set("value = EXCLUDED.value").
			Set("checksum = EXCLUDED.checksum").Exec(ctx)
		return err
	})
}

// LastDelivery is the last delivery to a project's webhook that is remembered, or api.ErrNotFound. One whose row is
// damaged is forgotten: the next push brings another.
func (c *Catalog) LastDelivery(ctx context.Context, project api.ProjectID) (d api.Delivery, err error) {
	row := settingRow{Name: deliverySetting + string(project)}
	none := fmt.Errorf("delivery to the webhook of %q: %w", project, api.ErrNotFound)
	if !askable(row.Name) {
		return d, none
	}
	err = c.read.NewSelect().Model(&row).WherePK().Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return d, none
	}
	if err != nil {
		return d, c.fail("read a webhook's last delivery", err)
	}
	if checkRow(&row) != nil || json.Unmarshal(row.Value, &d) != nil {
		return api.Delivery{}, none
	}
	return d, nil
}
