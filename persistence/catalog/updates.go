package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"docent/api"

	"github.com/uptrace/bun"
)

// updatesKept is how many ended updates of a project are remembered.
const updatesKept = 200

type updateRow struct {
	bun.BaseModel `bun:"table:updates,alias:upd"`

	ID      api.UpdateID     `bun:"id,pk"`
	Project api.ProjectID    `bun:"project_id"`
	Status  api.UpdateStatus `bun:"status"`
	Body    json.RawMessage  `bun:"body"`
	checked
}

func newUpdateRow(u api.Update) (*updateRow, error) {
	u.CreatedAt, u.StartedAt, u.EndedAt = stamp(u.CreatedAt), stampPtr(u.StartedAt), stampPtr(u.EndedAt)
	body, err := encodeBody(u)
	r := &updateRow{ID: u.ID, Project: u.Project, Status: u.Status, Body: body}
	setChecksum(r)
	return r, err
}

func (r *updateRow) value() (api.Update, error) {
	var u api.Update
	if err := checkRow(r); err != nil {
		return u, err
	}
	err := decodeBody(r.Body, &u, "update "+string(r.ID))
	u.ID, u.Project, u.Status = r.ID, r.Project, r.Status
	return u, err
}

// AddUpdate accepts an update of a project: once it has returned, the run is on disk and OpenUpdates tells of it until
// it has ended. Where one waits to begin already, that one is answered: it will see all that there is now. Added is
// false then.
func (c *Catalog) AddUpdate(ctx context.Context, project api.ProjectID) (u api.Update, added bool, err error) {
	now := stamp(c.now())
	u = api.Update{
		ID: api.UpdateID(api.NewID(api.UpdatePrefix, now)), Project: project, Status: api.UpdateQueued, CreatedAt: now,
	}
	row, err := newUpdateRow(u)
	if err != nil {
		return api.Update{}, false, err
	}
	for {
		var n int64
		err := c.change(ctx, "queue an update", func(ctx context.Context, tx bun.Tx) error {
			res, err := tx.NewInsert().Model(row).On("CONFLICT DO NOTHING").Exec(ctx)
			if err != nil {
				return err
			}
			n, err = res.RowsAffected()
			return err
		})
		if err != nil || n > 0 {
			return u, err == nil, err
		}
		waiting, err := c.oneUpdate(ctx, c.write.NewSelect().Where("project_id = ?", project).
			Where("status = ?", api.UpdateQueued))
		if !errors.Is(err, api.ErrNotFound) {
			return waiting, false, err
		}
		// The one that waited has begun meanwhile.
	}
}

// SaveUpdate stores how far a run has come. What has ended stays as it is: api.ErrConflict.
func (c *Catalog) SaveUpdate(ctx context.Context, u api.Update) error {
	row, err := newUpdateRow(u)
	if err != nil {
		return err
	}
	return c.change(ctx, "store an update", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewUpdate().Model(row).Column("status", "body", "checksum").WherePK().
			Where("status IN (?, ?)", api.UpdateQueued, api.UpdateInProgress).Exec(ctx)
		err = changed(res, err, conflict("the update %s has ended, or there is none", u.ID))
		if err != nil || u.Open() {
			return err
		}
		old := tx.NewSelect().Model((*updateRow)(nil)).Column("id").Where("project_id = ?", u.Project).
			Order("id DESC").Limit(1).Offset(updatesKept)
		_, err = tx.NewDelete().Model((*updateRow)(nil)).Where("project_id = ?", u.Project).Where("id <= (?)", old).
			Where("status IN (?, ?)", api.UpdateSuccess, api.UpdateFailure).Exec(ctx)
		return err
	})
}

// Update finds a run, or fails with api.ErrNotFound.
func (c *Catalog) Update(ctx context.Context, id api.UpdateID) (api.Update, error) {
	if !askable(string(id)) {
		return api.Update{}, fmt.Errorf("update %q: %w", id, api.ErrNotFound)
	}
	return c.oneUpdate(ctx, c.read.NewSelect().Where("id = ?", id))
}

// LastUpdate is the newest run of a project that was a success, or fails with api.ErrNotFound.
func (c *Catalog) LastUpdate(ctx context.Context, project api.ProjectID) (api.Update, error) {
	return c.oneUpdate(ctx, c.read.NewSelect().Where("project_id = ?", project).Where("status = ?", api.UpdateSuccess).
		Order("id DESC").Limit(1))
}

// Updates are the newest runs of a project, newest first.
func (c *Catalog) Updates(ctx context.Context, project api.ProjectID, most int) ([]api.Update, error) {
	q := c.read.NewSelect().Where("project_id = ?", project).Order("id DESC").Limit(int64(most))
	return list[api.Update, updateRow](ctx, c, q, "updates")
}

// OpenUpdates are the runs that were accepted and have not ended, oldest first.
func (c *Catalog) OpenUpdates(ctx context.Context) ([]api.Update, error) {
	q := c.read.NewSelect().Where("status IN ('queued', 'in_progress')").Order("id")
	return list[api.Update, updateRow](ctx, c, q, "updates")
}

func (c *Catalog) oneUpdate(ctx context.Context, q *bun.SelectQuery) (api.Update, error) {
	return one[api.Update, updateRow](ctx, c, q, "update")
}
