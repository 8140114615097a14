package work

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

// runsKept is how many runs of an automation are remembered.
const runsKept = 500

type automationRow struct {
	bun.BaseModel `bun:"table:automations,alias:aut"`

	ID      api.AutomationID `bun:"id,pk"`
	Project api.ProjectID    `bun:"project_id"`
	Name    string           `bun:"name"`
	Body    json.RawMessage  `bun:"body"`
	database.Checked
}

type runRow struct {
	bun.BaseModel `bun:"table:automation_runs,alias:run"`

	Key        string           `bun:"key,pk"`
	Automation api.AutomationID `bun:"automation_id"`
	At         int64            `bun:"at"`
	Status     api.RunStatus    `bun:"status"`
	Body       json.RawMessage  `bun:"body"`
	database.Checked
}

func newAutomationRow(a api.Automation) (*automationRow, error) {
	a.CreatedAt, a.Next = database.Stamp(a.CreatedAt), database.StampPtr(a.Next)
	body, err := database.EncodeBody(a)
	r := &automationRow{ID: a.ID, Project: a.Project, Name: a.Name, Body: body}
	database.SetChecksum(r)
	return r, err
}

func (r *automationRow) Decode() (api.Automation, error) {
	var a api.Automation
	if err := database.CheckRow(r); err != nil {
		return a, err
	}
	err := database.DecodeBody(r.Body, &a, "automation "+string(r.ID))
	a.ID, a.Project, a.Name = r.ID, r.Project, r.Name
	return a, err
}

func newRunRow(r api.AutomationRun) (*runRow, error) {
	r.At = database.Stamp(r.At)
	body, err := database.EncodeBody(r)
	row := &runRow{Key: r.Key, Automation: r.Automation, At: r.At.UnixMilli(), Status: r.Status, Body: body}
	database.SetChecksum(row)
	return row, err
}

func (r *runRow) Decode() (api.AutomationRun, error) {
	var run api.AutomationRun
	if err := database.CheckRow(r); err != nil {
		return run, err
	}
	err := database.DecodeBody(r.Body, &run, "automation run "+r.Key)
	run.Key, run.Automation, run.Status = r.Key, r.Automation, r.Status
	return run, err
}

// AddAutomation stores a new automation. A name that the project has already is api.ErrConflict, a project that there
// is not api.ErrNotFound.
func (s *Store) AddAutomation(ctx context.Context, a api.Automation) error {
	if err := a.Validate(); err != nil {
		return err
	}
	row, err := newAutomationRow(a)
	if err != nil {
		return err
	}
	return s.db.Change(ctx, "add automation", func(ctx context.Context, tx bun.Tx) error {
		return database.Insert(ctx, tx, row, database.Conflict("the project %q has an automation %q already", a.Project, a.Name), database.NoProject(a.Project))
	})
}

// RemoveAutomation forgets an automation and its runs. Its jobs stay.
func (s *Store) RemoveAutomation(ctx context.Context, id api.AutomationID) error {
	return s.db.Change(ctx, "remove automation", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewDelete().Model((*automationRow)(nil)).Where("id = ?", id).Exec(ctx)
		return database.Changed(res, err, noAutomation(id))
	})
}

// Automations lists the automations of a project, or of all if it is empty, oldest first.
func (s *Store) Automations(ctx context.Context, project api.ProjectID) ([]api.Automation, error) {
	q := s.db.Read.NewSelect().Order("id")
	if project != "" {
		q = q.Where("project_id = ?", project)
	}
	return database.List[api.Automation, automationRow](ctx, s.db, q, "automations")
}

// Automation finds one, or fails with api.ErrNotFound.
func (s *Store) Automation(ctx context.Context, id api.AutomationID) (api.Automation, error) {
	if !database.Askable(string(id)) {
		return api.Automation{}, noAutomation(id)
	}
	return s.oneAutomation(ctx, s.db.Read.NewSelect().Where("id = ?", id))
}

func (s *Store) oneAutomation(ctx context.Context, q *bun.SelectQuery) (api.Automation, error) {
	return database.One[api.Automation, automationRow](ctx, s.db, q, "automation")
}

// ChangeAutomation changes what has become of an automation. Two changes at once both take place.
func (s *Store) ChangeAutomation(ctx context.Context, id api.AutomationID, change func(*api.Automation)) error {
	return s.db.Change(ctx, "change automation", func(ctx context.Context, tx bun.Tx) error {
		return s.changeAutomation(ctx, tx, id, func(a *api.Automation) error { change(a); return nil })
	})
}

func (s *Store) changeAutomation(
	ctx context.Context, tx bun.Tx, id api.AutomationID, change func(*api.Automation) error) error {
	a, err := s.oneAutomation(ctx, database.ForUpdate(tx.NewSelect().Where("id = ?", id)))
	if err != nil {
		return err
	}
	if err := change(&a); err != nil {
		return err
	}
	row, err := newAutomationRow(a)
	if err != nil {
		return err
	}
	_, err = tx.NewUpdate().Model(row).Column("body", "checksum").WherePK().Exec(ctx)
	return err
}

// BeginRun accepts a run of an automation, once for a key: begun is false if there was one already. It is skipped
// if the automation has run as often as it may on that day; else it is on disk as accepted, and OpenRuns tells of it
// until SaveRun has stored how it went. The change of the automation is stored with it, whether the run is new or not.
func (s *Store) BeginRun(ctx context.Context, run api.AutomationRun, change func(*api.Automation)) (
	_ api.AutomationRun, begun bool, err error) {
	err = s.db.Change(ctx, "begin a run", func(ctx context.Context, tx bun.Tx) error {
		return s.changeAutomation(ctx, tx, run.Automation, func(a *api.Automation) error {
			change(a)
			run.Project, run.Status, run.Reason = a.Project, api.RunAccepted, ""
			day := run.At.UTC().Truncate(24 * time.Hour)
			n, err := tx.NewSelect().Model((*runRow)(nil)).Where("automation_id = ?", a.ID).Where("status <> ?", api.RunSkipped).
				Where("at >= ?", day.UnixMilli()).Where("at < ?", day.Add(24*time.Hour).UnixMilli()).Count(ctx)
			if err != nil {
				return err
			}
			if n >= int64(a.DailyCap) {
				run.Status, run.Reason = api.RunSkipped, fmt.Sprintf("it has run %d times on this day, as often as it may", n)
			}
			row, err := newRunRow(run)
			if err != nil {
				return err
			}
			res, err := tx.NewInsert().Model(row).On("CONFLICT (key) DO NOTHING").Exec(ctx)
			if err != nil {
				return err
			}
			added, err := res.RowsAffected()
			if err != nil || added == 0 {
				return err
			}
			begun, a.Last = true, &run
			old := tx.NewSelect().Model((*runRow)(nil)).Column("at").Where("automation_id = ?", a.ID).
				Order("at DESC").Limit(1).Offset(runsKept)
			_, err = tx.NewDelete().Model((*runRow)(nil)).Where("automation_id = ?", a.ID).Where("at <= (?)", old).
				Where("status <> ?", api.RunAccepted).Exec(ctx)
			return err
		})
	})
	return run, begun && err == nil, err
}

// SaveRun stores how a run went, and for one that started which job has it.
func (s *Store) SaveRun(ctx context.Context, run api.AutomationRun) error {
	row, err := newRunRow(run)
	if err != nil {
		return err
	}
	return s.db.Change(ctx, "store a run", func(ctx context.Context, tx bun.Tx) error {
		return s.changeAutomation(ctx, tx, run.Automation, func(a *api.Automation) error {
			if a.Last != nil && a.Last.Key == run.Key {
				a.Last = &run
			}
			if run.Job != "" {
				a.Job = run.Job
			}
			_, err := tx.NewUpdate().Model(row).Column("at", "status", "body", "checksum").WherePK().Exec(ctx)
			return err
		})
	})
}

// OpenRuns are the runs that were accepted and have not been carried out, oldest first.
func (s *Store) OpenRuns(ctx context.Context) ([]api.AutomationRun, error) {
	return s.runs(ctx, s.db.Read.NewSelect().Where("status = 'accepted'").Order("at", "key"))
}

// Runs are the newest runs of an automation, newest first.
func (s *Store) Runs(ctx context.Context, id api.AutomationID, limit int) ([]api.AutomationRun, error) {
	return s.runs(ctx, s.db.Read.NewSelect().Where("automation_id = ?", id).Order("at DESC", "key DESC").Limit(int64(limit)))
}

func (s *Store) runs(ctx context.Context, q *bun.SelectQuery) ([]api.AutomationRun, error) {
	return database.List[api.AutomationRun, runRow](ctx, s.db, q, "runs")
}

func noAutomation(id api.AutomationID) error {
	return fmt.Errorf("automation %q: %w", id, api.ErrNotFound)
}

func (r *automationRow) Contents() (table, key string, fields []any) {
	return "automations", string(r.ID), []any{string(r.ID), string(r.Project), r.Name, []byte(r.Body)}
}

func (r *runRow) Contents() (table, key string, fields []any) {
	return "automation_runs", r.Key, []any{r.Key, string(r.Automation), r.At, string(r.Status), []byte(r.Body)}
}
