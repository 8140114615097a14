package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"docent/api"

	"github.com/uptrace/bun"
)

// runsKept is how many runs of an automation are remembered.
const runsKept = 500

type automationRow struct {
	bun.BaseModel `bun:"table:automations,alias:aut"`

	ID      api.AutomationID `bun:"id,pk"`
	Project api.ProjectID    `bun:"project_id"`
	Name    string           `bun:"name"`
	Body    json.RawMessage  `bun:"body"`
	checked
}

type runRow struct {
	bun.BaseModel `bun:"table:automation_runs,alias:run"`

	Key        string           `bun:"key,pk"`
	Automation api.AutomationID `bun:"automation_id"`
	At         int64            `bun:"at"`
	Status     api.RunStatus    `bun:"status"`
	Body       json.RawMessage  `bun:"body"`
	checked
}

func newAutomationRow(a api.Automation) (*automationRow, error) {
	a.CreatedAt, a.Next = stamp(a.CreatedAt), stampPtr(a.Next)
	body, err := encodeBody(a)
	r := &automationRow{ID: a.ID, Project: a.Project, Name: a.Name, Body: body}
	setChecksum(r)
	return r, err
}

func (r *automationRow) value() (api.Automation, error) {
	var a api.Automation
	if err := checkRow(r); err != nil {
		return a, err
	}
	err := decodeBody(r.Body, &a, "automation "+string(r.ID))
	a.ID, a.Project, a.Name = r.ID, r.Project, r.Name
	return a, err
}

func newRunRow(r api.AutomationRun) (*runRow, error) {
	r.At = stamp(r.At)
	body, err := encodeBody(r)
	row := &runRow{Key: r.Key, Automation: r.Automation, At: r.At.UnixMilli(), Status: r.Status, Body: body}
	setChecksum(row)
	return row, err
}

func (r *runRow) value() (api.AutomationRun, error) {
	var run api.AutomationRun
	if err := checkRow(r); err != nil {
		return run, err
	}
	err := decodeBody(r.Body, &run, "automation run "+r.Key)
	run.Key, run.Automation, run.Status = r.Key, r.Automation, r.Status
	return run, err
}

// AddAutomation stores a new automation. A name that the project has already is api.ErrConflict, a project that there
// is not api.ErrNotFound.
func (c *Catalog) AddAutomation(ctx context.Context, a api.Automation) error {
	if err := a.Validate(); err != nil {
		return err
	}
	row, err := newAutomationRow(a)
	if err != nil {
		return err
	}
	return c.change(ctx, "add automation", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(row).Exec(ctx)
		switch {
		case violates(err, unique):
			return conflict("the project %q has an automation %q already", a.Project, a.Name)
		case violates(err, reference):
			return noProject(a.Project)
		}
		return err
	})
}

// RemoveAutomation forgets an automation and its runs. Its jobs stay.
func (c *Catalog) RemoveAutomation(ctx context.Context, id api.AutomationID) error {
	return c.change(ctx, "remove automation", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewDelete().Model((*automationRow)(nil)).Where("id = ?", id).Exec(ctx)
		return changed(res, err, noAutomation(id))
	})
}

// Automations lists the automations of a project, or of all where it is empty, oldest first.
func (c *Catalog) Automations(ctx context.Context, project api.ProjectID) ([]api.Automation, error) {
	q := c.read.NewSelect().Order("id")
	if project != "" {
		q = q.Where("project_id = ?", project)
	}
	return list[api.Automation, automationRow](ctx, c, q, "automations")
}

// Automation finds one, or fails with api.ErrNotFound.
func (c *Catalog) Automation(ctx context.Context, id api.AutomationID) (api.Automation, error) {
	if !askable(string(id)) {
		return api.Automation{}, noAutomation(id)
	}
	return c.oneAutomation(ctx, c.read.NewSelect().Where("id = ?", id))
}

func (c *Catalog) oneAutomation(ctx context.Context, q *bun.SelectQuery) (api.Automation, error) {
	return one[api.Automation, automationRow](ctx, c, q, "automation")
}

// ChangeAutomation changes what has become of an automation. Two changes at once both take place.
func (c *Catalog) ChangeAutomation(ctx context.Context, id api.AutomationID, change func(*api.Automation)) error {
	return c.change(ctx, "change automation", func(ctx context.Context, tx bun.Tx) error {
		return c.changeAutomation(ctx, tx, id, func(a *api.Automation) error { change(a); return nil })
	})
}

func (c *Catalog) changeAutomation(
	ctx context.Context, tx bun.Tx, id api.AutomationID, change func(*api.Automation) error) error {
	a, err := c.oneAutomation(ctx, forUpdate(tx.NewSelect().Where("id = ?", id)))
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

// BeginRun accepts a run of an automation, once for a key: begun is false where there was one already. It is skipped
// where the automation has run as often as it may on that day; else it is on disk as accepted, and OpenRuns tells of it
// until SaveRun has stored how it went. The change of the automation is stored with it, whether the run is new or not.
func (c *Catalog) BeginRun(ctx context.Context, run api.AutomationRun, change func(*api.Automation)) (
	_ api.AutomationRun, begun bool, err error) {
	err = c.change(ctx, "begin a run", func(ctx context.Context, tx bun.Tx) error {
		return c.changeAutomation(ctx, tx, run.Automation, func(a *api.Automation) error {
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
func (c *Catalog) SaveRun(ctx context.Context, run api.AutomationRun) error {
	row, err := newRunRow(run)
	if err != nil {
		return err
	}
	return c.change(ctx, "store a run", func(ctx context.Context, tx bun.Tx) error {
		return c.changeAutomation(ctx, tx, run.Automation, func(a *api.Automation) error {
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
func (c *Catalog) OpenRuns(ctx context.Context) ([]api.AutomationRun, error) {
	return c.runs(ctx, c.read.NewSelect().Where("status = 'accepted'").Order("at", "key"))
}

// Runs are the newest runs of an automation, newest first.
func (c *Catalog) Runs(ctx context.Context, id api.AutomationID, limit int) ([]api.AutomationRun, error) {
	return c.runs(ctx, c.read.NewSelect().Where("automation_id = ?", id).Order("at DESC", "key DESC").Limit(int64(limit)))
}

func (c *Catalog) runs(ctx context.Context, q *bun.SelectQuery) ([]api.AutomationRun, error) {
	return list[api.AutomationRun, runRow](ctx, c, q, "runs")
}

func noAutomation(id api.AutomationID) error {
	return fmt.Errorf("automation %q: %w", id, api.ErrNotFound)
}
