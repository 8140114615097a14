package insights

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

type hookRow struct {
	bun.BaseModel `bun:"table:report_hooks,alias:hook"`

	Project api.ProjectID   `bun:"project_id,pk"`
	Body    json.RawMessage `bun:"body"`
	database.Checked
}

func (r *hookRow) Decode() (api.ReportHook, error) {
	var h api.ReportHook
	if err := database.CheckRow(r); err != nil {
		return h, err
	}
	err := database.DecodeBody(r.Body, &h, "report hook of "+string(r.Project))
	h.Project = r.Project
	return h, err
}

// SetReportHook stores the destination of a project's weekly report, replacing the one before.
func (s *Store) SetReportHook(ctx context.Context, h api.ReportHook) error {
	h.UpdatedAt = database.Stamp(s.db.Now())
	if h.CreatedAt.IsZero() {
		h.CreatedAt = h.UpdatedAt
	}
	body, err := database.EncodeBody(h)
	if err != nil {
		return err
	}
	row := &hookRow{Project: h.Project, Body: body}
	database.SetChecksum(row)
	return s.db.Change(ctx, "set a report's webhook", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(row).On("CONFLICT (project_id) DO UPDATE").Set("body = EXCLUDED.body").
			Set("checksum = EXCLUDED.checksum").Exec(ctx)
		return database.Refused(err, nil, database.NoProject(h.Project))
	})
}

// RemoveReportHook stops sending the project's weekly report.
func (s *Store) RemoveReportHook(ctx context.Context, project api.ProjectID) error {
	return s.db.Change(ctx, "remove a report's webhook", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewDelete().Model((*hookRow)(nil)).Where("project_id = ?", project).Exec(ctx)
		return database.Changed(res, err, fmt.Errorf("report webhook: %w", api.ErrNotFound))
	})
}

// ReportHook is the destination of a project's weekly report; api.ErrNotFound if it has none.
func (s *Store) ReportHook(ctx context.Context, project api.ProjectID) (api.ReportHook, error) {
	return database.One[api.ReportHook, hookRow](ctx, s.db, s.db.Read.NewSelect().Where("project_id = ?", project), "report webhook")
}

// ReportHooks lists those of all projects.
func (s *Store) ReportHooks(ctx context.Context) ([]api.ReportHook, error) {
	return database.List[api.ReportHook, hookRow](ctx, s.db, s.db.Read.NewSelect().Order("project_id"), "report webhooks")
}

type reportRow struct {
	bun.BaseModel `bun:"table:report_deliveries,alias:report"`

	ID      string           `bun:"id,pk"`
	Project api.ProjectID    `bun:"project_id"`
	Status  api.ReportStatus `bun:"status"`
	Next    int64            `bun:"next_at"`
	Created int64            `bun:"created_at"`
	Body    json.RawMessage  `bun:"body"`
	database.Checked
}

func newReportRow(d api.ReportDelivery) (*reportRow, error) {
	d.CreatedAt, d.Next, d.EndedAt = database.Stamp(d.CreatedAt), database.Stamp(d.Next), database.StampPtr(d.EndedAt)
	body, err := database.EncodeBody(d)
	r := &reportRow{ID: d.ID, Project: d.Project, Status: d.Status, Next: d.Next.UnixMilli(),
		Created: d.CreatedAt.UnixMilli(), Body: body}
	database.SetChecksum(r)
	return r, err
}

func (r *reportRow) Decode() (api.ReportDelivery, error) {
	var d api.ReportDelivery
	if err := database.CheckRow(r); err != nil {
		return d, err
	}
	err := database.DecodeBody(r.Body, &d, "delivery "+r.ID)
	d.ID, d.Project, d.Status = r.ID, r.Project, r.Status
	return d, err
}

// reportsKept is how many deliveries of a project are remembered.
const reportsKept = 100

// AddReport stores a delivery that is to be made, once for its id: added is false if there is one already.
func (s *Store) AddReport(ctx context.Context, d api.ReportDelivery) (added bool, err error) {
	row, err := newReportRow(d)
	if err != nil {
		return false, err
	}
	err = s.db.Change(ctx, "store a delivery", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewInsert().Model(row).On("CONFLICT (id) DO NOTHING").Exec(ctx)
		if err != nil {
			return database.Refused(err, nil, database.NoProject(d.Project))
		}
		n, err := res.RowsAffected()
		if added = n > 0; err != nil || !added {
			return err
		}
		old := tx.NewSelect().Model((*reportRow)(nil)).Column("created_at").Where("project_id = ?", d.Project).
			Order("created_at DESC").Limit(1).Offset(reportsKept)
		_, err = tx.NewDelete().Model((*reportRow)(nil)).Where("project_id = ?", d.Project).
			Where("created_at <= (?)", old).Where("status <> ?", api.ReportPending).Exec(ctx)
		return err
	})
	return added && err == nil, err
}

// SaveReport stores how an attempt went.
func (s *Store) SaveReport(ctx context.Context, d api.ReportDelivery) error {
	row, err := newReportRow(d)
	if err != nil {
		return err
	}
	return s.db.Change(ctx, "store a delivery", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewUpdate().Model(row).Column("status", "next_at", "body", "checksum").WherePK().Exec(ctx)
		return database.Changed(res, err, fmt.Errorf("delivery %q: %w", d.ID, api.ErrNotFound))
	})
}

// DueReports are the deliveries that wait to be sent and whose time has come, and when the next one's comes; zero if none
// waits.
func (s *Store) DueReports(ctx context.Context, now time.Time) (due []api.ReportDelivery, next time.Time, err error) {
	all, err := database.List[api.ReportDelivery, reportRow](ctx, s.db,
		s.db.Read.NewSelect().Where("status = 'pending'").Order("next_at", "id").Limit(100), "reports")
	if err != nil {
		return nil, next, err
	}
	for _, d := range all {
		if d.Next.After(now) {
			return due, d.Next, nil
		}
		due = append(due, d)
	}
	return due, next, nil
}

// Report finds one, or fails with api.ErrNotFound.
func (s *Store) Report(ctx context.Context, id string) (api.ReportDelivery, error) {
	if !database.Askable(id) {
		return api.ReportDelivery{}, fmt.Errorf("report: %w", api.ErrNotFound)
	}
	return database.One[api.ReportDelivery, reportRow](ctx, s.db, s.db.Read.NewSelect().Where("id = ?", id), "report")
}

// Reports are a project's newest deliveries, newest first.
func (s *Store) Reports(ctx context.Context, project api.ProjectID, limit int) ([]api.ReportDelivery, error) {
	return database.List[api.ReportDelivery, reportRow](ctx, s.db, s.db.Read.NewSelect().Where("project_id = ?", project).
		Order("created_at DESC", "id DESC").Limit(int64(limit)), "reports")
}

func (r *hookRow) Contents() (table, key string, fields []any) {
	return "report_hooks", string(r.Project), []any{string(r.Project), []byte(r.Body)}
}

func (r *reportRow) Contents() (table, key string, fields []any) {
	return "report_deliveries", r.ID, []any{r.ID, string(r.Project), string(r.Status), r.Next, r.Created, []byte(r.Body)}
}
