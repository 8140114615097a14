package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

func (r *updateRow) Contents() (table, key string, fields []any) {
	return "updates", string(r.ID), []any{string(r.ID), string(r.Project), string(r.Status), []byte(r.Body)}
}

// updatesKept is how many ended updates of a project are remembered.
const updatesKept = 200

type updateRow struct {
	bun.BaseModel `bun:"table:updates,alias:upd"`

	ID      api.UpdateID     `bun:"id,pk"`
	Project api.ProjectID    `bun:"project_id"`
	Status  api.UpdateStatus `bun:"status"`
	Body    json.RawMessage  `bun:"body"`
	database.Checked
}

func newUpdateRow(u api.Update) (*updateRow, error) {
	u.CreatedAt, u.StartedAt, u.EndedAt = database.Stamp(u.CreatedAt), database.StampPtr(u.StartedAt), database.StampPtr(u.EndedAt)
	body, err := database.EncodeBody(u)
	r := &updateRow{ID: u.ID, Project: u.Project, Status: u.Status, Body: body}
	database.SetChecksum(r)
	return r, err
}

func (r *updateRow) Decode() (api.Update, error) {
	var u api.Update
	if err := database.CheckRow(r); err != nil {
		return u, err
	}
	err := database.DecodeBody(r.Body, &u, "update "+string(r.ID))
	u.ID, u.Project, u.Status = r.ID, r.Project, r.Status
	return u, err
}

// AddUpdate accepts an update of a project: once it has returned, the run is on disk and OpenUpdates tells of it until
// it has ended. If one waits to begin already, that one is answered: it will see all that there is now. Added is
// false then.
func (s *Store) AddUpdate(ctx context.Context, project api.ProjectID) (u api.Update, added bool, err error) {
	now := database.Stamp(s.db.Now())
	u = api.Update{
		ID: api.UpdateID(api.NewID(api.UpdatePrefix, now)), Project: project, Status: api.UpdateQueued, CreatedAt: now,
	}
	row, err := newUpdateRow(u)
	if err != nil {
		return api.Update{}, false, err
	}
	for {
		var n int64
		err := s.db.Change(ctx, "queue an update", func(ctx context.Context, tx bun.Tx) error {
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
		waiting, err := s.oneUpdate(ctx, s.db.Write.NewSelect().Where("project_id = ?", project).
			Where("status = ?", api.UpdateQueued))
		if !errors.Is(err, api.ErrNotFound) {
			return waiting, false, err
		}
		// The one that waited has begun meanwhile.
	}
}

// SaveUpdate stores how far a run has come. What has ended stays as it is: api.ErrConflict.
func (s *Store) SaveUpdate(ctx context.Context, u api.Update) error {
	row, err := newUpdateRow(u)
	if err != nil {
		return err
	}
	return s.db.Change(ctx, "store an update", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewUpdate().Model(row).Column("status", "body", "checksum").WherePK().
			Where("status IN (?, ?)", api.UpdateQueued, api.UpdateInProgress).Exec(ctx)
		err = database.Changed(res, err, database.Conflict("the update %s has ended, or there is none", u.ID))
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
func (s *Store) Update(ctx context.Context, id api.UpdateID) (api.Update, error) {
	if !database.Askable(string(id)) {
		return api.Update{}, fmt.Errorf("update %q: %w", id, api.ErrNotFound)
	}
	return s.oneUpdate(ctx, s.db.Read.NewSelect().Where("id = ?", id))
}

// LastUpdate is the newest run of a project that was a success, or fails with api.ErrNotFound.
func (s *Store) LastUpdate(ctx context.Context, project api.ProjectID) (api.Update, error) {
	return s.oneUpdate(ctx, s.db.Read.NewSelect().Where("project_id = ?", project).Where("status = ?", api.UpdateSuccess).
		Order("id DESC").Limit(1))
}

// Updates are the newest runs of a project, newest first.
func (s *Store) Updates(ctx context.Context, project api.ProjectID, most int) ([]api.Update, error) {
	q := s.db.Read.NewSelect().Where("project_id = ?", project).Order("id DESC").Limit(int64(most))
	return database.List[api.Update, updateRow](ctx, s.db, q, "updates")
}

// OpenUpdates are the runs that were accepted and have not ended, oldest first.
func (s *Store) OpenUpdates(ctx context.Context) ([]api.Update, error) {
	q := s.db.Read.NewSelect().Where("status IN ('queued', 'in_progress')").Order("id")
	return database.List[api.Update, updateRow](ctx, s.db, q, "updates")
}

func (s *Store) oneUpdate(ctx context.Context, q *bun.SelectQuery) (api.Update, error) {
	return database.One[api.Update, updateRow](ctx, s.db, q, "update")
}
