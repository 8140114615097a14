package work

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

// Until this migration weekly reports had webhooks, and deliveries, of their own.
const reportsMigration = "20261128000002"

// A reportHookRow was the webhook of a project's report. Its body has the fields of an outgoing webhook.
type reportHookRow struct {
	bun.BaseModel `bun:"table:report_hooks"`

	Project api.ProjectID   `bun:"project_id,pk"`
	Body    json.RawMessage `bun:"body"`
	database.Checked
}

func (r *reportHookRow) Contents() (table, key string, fields []any) {
	return "report_hooks", string(r.Project), []any{string(r.Project), []byte(r.Body)}
}

type reportRow struct {
	bun.BaseModel `bun:"table:report_deliveries"`

	ID      string          `bun:"id,pk"`
	Project api.ProjectID   `bun:"project_id"`
	Status  string          `bun:"status"`
	Next    int64           `bun:"next_at"`
	Created int64           `bun:"created_at"`
	Body    json.RawMessage `bun:"body"`
	database.Checked
}

func (r *reportRow) Contents() (table, key string, fields []any) {
	return "report_deliveries", r.ID, []any{r.ID, string(r.Project), r.Status, r.Next, r.Created, []byte(r.Body)}
}

// A reportMover turns webhooks of reports into outgoing webhooks.
type reportMover struct {
	tx   bun.IDB
	now  time.Time
	last int64 // position of the journal: events up to there were made
	used map[int64]bool
}

// moveReports turns the webhook of each project's weekly report into an outgoing webhook, with its secret and its
// deliveries. What was not delivered yet waits for it as an event.
func moveReports(ctx context.Context, tx bun.IDB, now time.Time) (func(*database.DB), error) {
	m := &reportMover{tx: tx, now: database.Stamp(now), used: map[int64]bool{}}
	var hooks []reportHookRow
	var positions []int64
	if err := tx.NewSelect().Model(&hooks).Order("project_id").Scan(ctx); err != nil {
		return nil, err
	}
	if len(hooks) > 0 { // a version without outgoing webhooks has not followed the journal for them: they begin where its listings are
		_, err := tx.NewRaw("INSERT INTO projections (name, position) SELECT ?, COALESCE(MAX(position), 0) FROM projections WHERE TRUE "+
			"ON CONFLICT (name) DO NOTHING", database.WebhookFollower).Exec(ctx)
		err = errors.Join(err, tx.NewRaw("SELECT position FROM projections WHERE name = ?", database.WebhookFollower).Scan(ctx, &m.last),
			tx.NewRaw("SELECT position FROM webhook_events").Scan(ctx, &positions))
		if err != nil {
			return nil, err
		}
	}
	for _, p := range positions {
		m.used[p] = true
	}
	var damaged []error
	for i := range hooks {
		if err := database.CheckRow(&hooks[i]); err != nil {
			damaged = append(damaged, err)
			continue
		}
		if err := m.move(ctx, &hooks[i]); err != nil {
			return nil, err
		}
	}
	for _, table := range []string{"report_deliveries", "report_hooks"} {
		if _, err := tx.NewRaw("DROP TABLE ?", bun.Ident(table)).Exec(ctx); err != nil {
			return nil, err
		}
	}
	return func(db *database.DB) {
		for _, err := range damaged {
			db.Log.Error("skipped a damaged catalog row", "catalog", db.Name, "error", err)
		}
	}, nil
}

// move adds the outgoing webhook, what waits for it, and what it was sent.
func (m *reportMover) move(ctx context.Context, old *reportHookRow) error {
	var w api.Webhook
	if err := database.DecodeBody(old.Body, &w, "report hook of "+string(old.Project)); err != nil {
		return err
	}
	w.ID, w.Project, w.Events = api.NewID(api.WebhookPrefix, m.now), old.Project, []api.EventKind{api.EventReportWeekly}
	hook, err := newWebhookRow(w)
	if err != nil {
		return err
	}
	if _, err := m.tx.NewInsert().Model(hook).Exec(ctx); err != nil {
		return err
	}
	// Those that wait get the last positions, and the webhook begins before them.
	var reports []reportRow
	if err := m.tx.NewSelect().Model(&reports).Where("project_id = ?", w.Project).
		OrderExpr("CASE WHEN status = 'pending' THEN 0 ELSE 1 END, created_at DESC").Scan(ctx); err != nil {
		return err
	}
	state, sent := api.WebhookState{Webhook: w.ID, Position: uint64(m.last)}, false
	for i := range reports {
		r := &reports[i]
		var d struct {
			api.WebhookDelivery
			Test      bool            `json:"test"`
			Payload   json.RawMessage `json:"payload"`
			CreatedAt time.Time       `json:"createdAt"`
		}
		if database.CheckRow(r) != nil || json.Unmarshal(r.Body, &d) != nil || d.Test {
			continue // a last report that waited in a damaged row is made again
		}
		waits := r.Status == "pending"
		if waits || !sent { // the last one that was sent is an event too: it is not made again
			if err := m.event(ctx, r, d.Payload); err != nil {
				return err
			}
		}
		if waits {
			state.Position = uint64(max(m.last-1, 0))
		}
		sent = sent || !waits
		d.Webhook, d.Event, d.Kind, d.EventAt, d.At = w.ID, r.ID, api.EventReportWeekly, d.CreatedAt, d.CreatedAt
		d.Status = map[string]api.DeliveryStatus{"pending": api.DeliveryWaiting, "delivered": api.DeliveryDelivered,
			"failed": api.DeliveryGivenUp}[r.Status]
		row, err := newWebhookDeliveryRow(d.WebhookDelivery)
		if err != nil {
			return err
		}
		if _, err := m.tx.NewInsert().Model(row).Exec(ctx); err != nil {
			return err
		}
	}
	row, err := newWebhookStateRow(state)
	if err != nil {
		return err
	}
	_, err = m.tx.NewInsert().Model(row).Exec(ctx)
	return err
}

// event stores a report as an event, at the last position below those of before that no event has. If there is none, which
// is so in a journal without other events, the report is made again.
func (m *reportMover) event(ctx context.Context, r *reportRow, payload json.RawMessage) error {
	for m.last > 0 && m.used[m.last] {
		m.last--
	}
	if m.last == 0 {
		return nil
	}
	m.used[m.last] = true
	row := newWebhookEventRow(api.WebhookEvent{ID: r.ID, Position: uint64(m.last), Project: r.Project,
		Kind: api.EventReportWeekly, Stream: "report/" + string(r.Project), At: m.now, Payload: payload})
	_, err := m.tx.NewInsert().Model(row).Exec(ctx)
	return err
}
