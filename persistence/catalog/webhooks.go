package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"docent/api"

	"github.com/uptrace/bun"
)

// WebhookFollower is the name under which outgoing webhooks follow the journal.
const WebhookFollower = "webhooks"

const (
	webhooksMost   = 20  // of a project
	deliveriesKept = 200 // of a webhook
)

type webhookRow struct {
	bun.BaseModel `bun:"table:webhooks,alias:webhook"`

	ID      string          `bun:"id,pk"`
	Project api.ProjectID   `bun:"project_id"`
	Body    json.RawMessage `bun:"body"`
	checked
}

func newWebhookRow(w api.Webhook) (*webhookRow, error) {
	w.CreatedAt, w.UpdatedAt, w.OldUntil = stamp(w.CreatedAt), stamp(w.UpdatedAt), stampPtr(w.OldUntil)
	body, err := encodeBody(w)
	r := &webhookRow{ID: w.ID, Project: w.Project, Body: body}
	setChecksum(r)
	return r, err
}

func (r *webhookRow) value() (api.Webhook, error) {
	var w api.Webhook
	if err := checkRow(r); err != nil {
		return w, err
	}
	err := decodeBody(r.Body, &w, "webhook "+r.ID)
	w.ID, w.Project = r.ID, r.Project
	return w, err
}

type webhookStateRow struct {
	bun.BaseModel `bun:"table:webhook_states,alias:state"`

	Webhook  string          `bun:"webhook_id,pk"`
	Position int64           `bun:"position"`
	Version  int64           `bun:"version"`
	Body     json.RawMessage `bun:"body"`
	checked
}

func newWebhookStateRow(s api.WebhookState) (*webhookStateRow, error) {
	s.Next, s.Since, s.Failing, s.Reached = stamp(s.Next), stampPtr(s.Since), stampPtr(s.Failing), stampPtr(s.Reached)
	body, err := encodeBody(s)
	r := &webhookStateRow{Webhook: s.Webhook, Position: int64(s.Position), Version: s.Version, Body: body}
	setChecksum(r)
	return r, err
}

func (r *webhookStateRow) value() (api.WebhookState, error) {
	var s api.WebhookState
	if err := checkRow(r); err != nil {
		return s, err
	}
	err := decodeBody(r.Body, &s, "state of webhook "+r.Webhook)
	s.Webhook, s.Version, s.Position = r.Webhook, r.Version, uint64(r.Position)
	return s, err
}

type webhookEventRow struct {
	bun.BaseModel `bun:"table:webhook_events,alias:event"`

	ID       string          `bun:"id,pk"`
	Position int64           `bun:"position"`
	Project  api.ProjectID   `bun:"project_id"`
	Kind     api.EventKind   `bun:"kind"`
	Stream   string          `bun:"stream"`
	At       int64           `bun:"at"`
	Payload  json.RawMessage `bun:"payload"`
	checked
}

func (r *webhookEventRow) value() (api.WebhookEvent, error) {
	if err := checkRow(r); err != nil {
		return api.WebhookEvent{}, err
	}
	return api.WebhookEvent{ID: r.ID, Position: uint64(r.Position), Project: r.Project, Kind: r.Kind, Stream: r.Stream,
		At: time.UnixMilli(r.At).UTC(), Payload: r.Payload}, nil
}

type webhookDeliveryRow struct {
	bun.BaseModel `bun:"table:webhook_deliveries,alias:delivery"`

	ID      string          `bun:"id,pk"`
	Webhook string          `bun:"webhook_id"`
	At      int64           `bun:"at"`
	Body    json.RawMessage `bun:"body"`
	checked
}

func (r *webhookDeliveryRow) value() (api.WebhookDelivery, error) {
	var d api.WebhookDelivery
	if err := checkRow(r); err != nil {
		return d, err
	}
	return d, decodeBody(r.Body, &d, "delivery "+r.ID)
}

// AddWebhook stores a webhook. What happens after the position of the journal is sent to it.
func (c *Catalog) AddWebhook(ctx context.Context, w api.Webhook, position uint64) error {
	row, err := newWebhookRow(w)
	if err != nil {
		return err
	}
	state, err := newWebhookStateRow(api.WebhookState{Webhook: w.ID, Position: position})
	if err != nil {
		return err
	}
	return c.change(ctx, "add a webhook", func(ctx context.Context, tx bun.Tx) error {
		n, err := tx.NewSelect().Model((*webhookRow)(nil)).Where("project_id = ?", w.Project).Count(ctx)
		if err != nil {
			return err
		}
		if n >= webhooksMost {
			return conflict("the project has %d webhooks, and no more are taken: remove one first", n)
		}
		if n, err = tx.NewSelect().Model((*webhookRow)(nil)).Limit(1).Count(ctx); err != nil {
			return err
		}
		if n == 0 { // events are made from here on, also where those who make them begin later
			if _, err := beginFollower(ctx, tx, WebhookFollower, position); err != nil {
				return err
			}
		}
		if _, err := tx.NewInsert().Model(row).Exec(ctx); err != nil {
			if violates(err, reference) {
				return noProject(w.Project)
			}
			return err
		}
		_, err = tx.NewInsert().Model(state).Exec(ctx)
		return err
	})
}

// ChangeWebhook changes what is stored of a webhook.
func (c *Catalog) ChangeWebhook(ctx context.Context, id string, change func(*api.Webhook)) (w api.Webhook, err error) {
	if !askable(id) {
		return w, noWebhook(id)
	}
	err = c.change(ctx, "change a webhook", func(ctx context.Context, tx bun.Tx) error {
		if w, err = oneWebhook(ctx, c, forUpdate(tx.NewSelect().Where("id = ?", id)), id); err != nil {
			return err
		}
		change(&w)
		w.UpdatedAt = c.now()
		row, err := newWebhookRow(w)
		if err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(row).Column("body", "checksum").WherePK().Exec(ctx)
		return err
	})
	return w, err
}

// RemoveWebhook removes a webhook, and with a project's last one the events that waited.
func (c *Catalog) RemoveWebhook(ctx context.Context, id string) error {
	return c.change(ctx, "remove a webhook", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewDelete().Model((*webhookRow)(nil)).Where("id = ?", id).Exec(ctx)
		if err := changed(res, err, noWebhook(id)); err != nil {
			return err
		}
		_, err = tx.NewDelete().Model((*webhookEventRow)(nil)).
			Where("project_id NOT IN (SELECT project_id FROM webhooks)").Exec(ctx)
		return err
	})
}

func noWebhook(id string) error { return fmt.Errorf("webhook %q: %w", id, api.ErrNotFound) }

func oneWebhook(ctx context.Context, c *Catalog, q *bun.SelectQuery, id string) (api.Webhook, error) {
	w, err := one[api.Webhook, webhookRow](ctx, c, q, "webhook")
	if errors.Is(err, api.ErrNotFound) {
		err = noWebhook(id)
	}
	return w, err
}

// Webhook finds one, or fails with api.ErrNotFound.
func (c *Catalog) Webhook(ctx context.Context, id string) (w api.WebhookStatus, err error) {
	if !askable(id) {
		return w, noWebhook(id)
	}
	if w.Webhook, err = oneWebhook(ctx, c, c.read.NewSelect().Where("id = ?", id), id); err != nil {
		return w, err
	}
	w.State, err = one[api.WebhookState, webhookStateRow](ctx, c, c.read.NewSelect().Where("webhook_id = ?", id), "webhook")
	return w, err
}

// Webhooks lists those of a project, of all projects where it is empty, in the order of their making.
func (c *Catalog) Webhooks(ctx context.Context, project api.ProjectID) ([]api.WebhookStatus, error) {
	hooks, states := c.read.NewSelect().Order("id"), c.read.NewSelect()
	if project != "" {
		hooks = hooks.Where("project_id = ?", project)
		states = states.Where("webhook_id IN (SELECT id FROM webhooks WHERE project_id = ?)", project)
	}
	list1, err := list[api.Webhook, webhookRow](ctx, c, hooks, "webhooks")
	if err != nil {
		return nil, err
	}
	list2, err := list[api.WebhookState, webhookStateRow](ctx, c, states, "webhooks")
	if err != nil {
		return nil, err
	}
	of := make(map[string]api.WebhookState, len(list2))
	for _, s := range list2 {
		of[s.Webhook] = s
	}
	out := make([]api.WebhookStatus, 0, len(list1))
	for _, w := range list1 {
		if s, ok := of[w.ID]; ok {
			out = append(out, api.WebhookStatus{Webhook: w, State: s})
		}
	}
	return out, nil
}

// WebhookPosition is the position of the journal up to which events were made. It is false where nobody has begun yet,
// or the journal is another one.
func (c *Catalog) WebhookPosition(ctx context.Context) (pos uint64, begun bool, err error) {
	err = c.read.NewRaw("SELECT position FROM projections WHERE name = ?", WebhookFollower).Scan(ctx, &pos)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return pos, err == nil, c.fail("read how far webhooks are", err)
}

// AddEvents stores events that were made from the journal up to a position, and removes those of streams that are gone.
// An event of a project without webhooks is left out.
func (c *Catalog) AddEvents(ctx context.Context, events []api.WebhookEvent, gone []string, position uint64) error {
	rows := make([]*webhookEventRow, len(events))
	for i, e := range events {
		rows[i] = &webhookEventRow{ID: e.ID, Position: int64(e.Position), Project: e.Project, Kind: e.Kind, Stream: e.Stream,
			At: e.At.UnixMilli(), Payload: e.Payload}
		setChecksum(rows[i])
	}
	return c.update(ctx, "store events", func(ctx context.Context, tx bun.Tx) error {
		for _, r := range rows {
			n, err := tx.NewSelect().Model((*webhookRow)(nil)).Where("project_id = ?", r.Project).Limit(1).Count(ctx)
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			if _, err := tx.NewInsert().Model(r).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
				return err
			}
		}
		for _, stream := range gone {
			if _, err := tx.NewDelete().Model((*webhookEventRow)(nil)).Where("stream = ?", stream).Exec(ctx); err != nil {
				return err
			}
		}
		return c.placeFollower(ctx, tx, WebhookFollower, position)
	})
}

// BeginEvents has every webhook begin after a position, where nobody has begun to make events of the journal yet.
func (c *Catalog) BeginEvents(ctx context.Context, position uint64) error {
	return c.update(ctx, "begin with events", func(ctx context.Context, tx bun.Tx) error {
		if first, err := beginFollower(ctx, tx, WebhookFollower, position); err != nil || !first {
			return err
		}
		return c.restartEvents(ctx, tx, position)
	})
}

// RestartEvents forgets all events and has every webhook begin after a position: the journal is another one.
func (c *Catalog) RestartEvents(ctx context.Context, position uint64) error {
	return c.update(ctx, "begin anew with events", func(ctx context.Context, tx bun.Tx) error {
		return c.restartEvents(ctx, tx, position)
	})
}

func (c *Catalog) restartEvents(ctx context.Context, tx bun.Tx, position uint64) error {
	if _, err := tx.NewDelete().Model((*webhookEventRow)(nil)).Where("TRUE").Exec(ctx); err != nil {
		return err
	}
	states, err := list[api.WebhookState, webhookStateRow](ctx, c, forUpdate(tx.NewSelect()), "webhooks")
	if err != nil {
		return err
	}
	for _, s := range states {
		s = api.WebhookState{Webhook: s.Webhook, Version: s.Version + 1, Position: position, Reached: s.Reached}
		if err := c.storeState(ctx, tx, s, s.Version-1); err != nil {
			return err
		}
	}
	return c.placeFollower(ctx, tx, WebhookFollower, position)
}

// NewestEvents are the positions of the newest events of each project and kind.
func (c *Catalog) NewestEvents(ctx context.Context) (map[api.ProjectID]map[api.EventKind]uint64, error) {
	var rows []struct {
		Project  api.ProjectID `bun:"project_id"`
		Kind     api.EventKind `bun:"kind"`
		Position int64         `bun:"position"`
	}
	err := c.read.NewRaw("SELECT project_id, kind, MAX(position) AS position FROM webhook_events GROUP BY project_id, kind").
		Scan(ctx, &rows)
	out := map[api.ProjectID]map[api.EventKind]uint64{}
	for _, r := range rows {
		if out[r.Project] == nil {
			out[r.Project] = map[api.EventKind]uint64{}
		}
		out[r.Project][r.Kind] = uint64(r.Position)
	}
	return out, c.fail("find the newest events", err)
}

// NextEvent is a project's first event of some kinds after a position, or api.ErrNotFound.
func (c *Catalog) NextEvent(ctx context.Context, project api.ProjectID, kinds []api.EventKind, after uint64) (
	api.WebhookEvent, error) {
	return one[api.WebhookEvent, webhookEventRow](ctx, c, c.read.NewSelect().Where("project_id = ?", project).
		Where("kind IN (?)", bun.List(kinds)).Where("position > ?", int64(after)).Order("position").Limit(1), "event")
}

// Waiting counts a project's events of some kinds after a position.
func (c *Catalog) Waiting(ctx context.Context, project api.ProjectID, kinds []api.EventKind, after uint64) (int, error) {
	n, err := c.read.NewSelect().Model((*webhookEventRow)(nil)).Where("project_id = ?", project).
		Where("kind IN (?)", bun.List(kinds)).Where("position > ?", int64(after)).Count(ctx)
	return int(n), c.fail("count events", err)
}

// Event finds one of a project, or fails with api.ErrNotFound.
func (c *Catalog) Event(ctx context.Context, project api.ProjectID, id string) (api.WebhookEvent, error) {
	if !askable(id) {
		return api.WebhookEvent{}, fmt.Errorf("event: %w", api.ErrNotFound)
	}
	return one[api.WebhookEvent, webhookEventRow](ctx, c, c.read.NewSelect().Where("project_id = ?", project).
		Where("id = ?", id), "event")
}

// SaveAttempt stores how far a webhook's receiver has come, and the delivery that was tried; nil for none. Where somebody
// has changed the state meanwhile, the delivery alone is stored, and that is api.ErrConflict.
func (c *Catalog) SaveAttempt(ctx context.Context, s api.WebhookState, d *api.WebhookDelivery) error {
	var stale error
	err := c.update(ctx, "store a delivery", func(ctx context.Context, tx bun.Tx) error {
		stale = c.storeState(ctx, tx, s, s.Version)
		if stale != nil && !errors.Is(stale, api.ErrConflict) {
			return stale
		}
		return c.storeDelivery(ctx, tx, d)
	})
	return errors.Join(err, stale)
}

// SaveSingle stores a delivery that says nothing of how far the receiver has come: a test, or one that is sent again.
func (c *Catalog) SaveSingle(ctx context.Context, d api.WebhookDelivery) error {
	return c.update(ctx, "store a delivery", func(ctx context.Context, tx bun.Tx) error {
		return c.storeDelivery(ctx, tx, &d)
	})
}

func (c *Catalog) storeState(ctx context.Context, tx bun.Tx, s api.WebhookState, version int64) error {
	row, err := newWebhookStateRow(s)
	if err != nil {
		return err
	}
	res, err := tx.NewUpdate().Model(row).WherePK().Where("version = ?", version).Exec(ctx)
	return changed(res, err, conflict("the webhook was changed meanwhile"))
}

func (c *Catalog) storeDelivery(ctx context.Context, tx bun.Tx, d *api.WebhookDelivery) error {
	if d == nil {
		return nil
	}
	n, err := tx.NewSelect().Model((*webhookRow)(nil)).Where("id = ?", d.Webhook).Count(ctx)
	if err != nil || n == 0 {
		return err // the webhook was removed meanwhile
	}
	d.At, d.EventAt = stamp(d.At), stamp(d.EventAt)
	body, err := encodeBody(d)
	if err != nil {
		return err
	}
	row := &webhookDeliveryRow{ID: d.Webhook + "/" + d.Event, Webhook: d.Webhook, At: d.At.UnixMilli(), Body: body}
	setChecksum(row)
	_, err = tx.NewInsert().Model(row).On("CONFLICT (id) DO UPDATE").Set("at = EXCLUDED.at").Set("body = EXCLUDED.body").
		Set("checksum = EXCLUDED.checksum").Exec(ctx)
	if err != nil {
		return err
	}
	old := tx.NewSelect().Model((*webhookDeliveryRow)(nil)).Column("at").Where("webhook_id = ?", d.Webhook).
		Order("at DESC").Limit(1).Offset(deliveriesKept)
	_, err = tx.NewDelete().Model((*webhookDeliveryRow)(nil)).Where("webhook_id = ?", d.Webhook).Where("at <= (?)", old).Exec(ctx)
	return err
}

// Deliveries are a webhook's newest ones, newest first.
func (c *Catalog) Deliveries(ctx context.Context, webhook string, limit int) ([]api.WebhookDelivery, error) {
	return list[api.WebhookDelivery, webhookDeliveryRow](ctx, c, c.read.NewSelect().Where("webhook_id = ?", webhook).
		Order("at DESC", "id DESC").Limit(int64(limit)), "deliveries")
}

// Rewind has a webhook's events since a time sent again, in their order, and counts them. Events after the position that
// its receiver has come to are sent in any case and not counted.
func (c *Catalog) Rewind(ctx context.Context, id string, since time.Time) (n int, err error) {
	w, err := c.Webhook(ctx, id)
	if err != nil {
		return 0, err
	}
	err = c.update(ctx, "send events again", func(ctx context.Context, tx bun.Tx) error {
		s, err := one[api.WebhookState, webhookStateRow](ctx, c, forUpdate(tx.NewSelect().Where("webhook_id = ?", id)), "webhook")
		if err != nil {
			return err
		}
		var first sql.NullInt64
		reached := int64(s.Position)
		of := func() *bun.SelectQuery {
			return tx.NewSelect().Model((*webhookEventRow)(nil)).Where("project_id = ?", w.Project).
				Where("kind IN (?)", bun.List(w.Kinds())).Where("at >= ?", since.UnixMilli()).
				Where("position <= ?", reached)
		}
		if err := of().ColumnExpr("MIN(position)").Scan(ctx, &first); err != nil {
			return err
		}
		version := s.Version
		s = api.WebhookState{Webhook: s.Webhook, Version: version + 1, Position: s.Position, Failing: s.Failing, Missed: s.Missed,
			Code: s.Code, Error: s.Error, Reached: s.Reached}
		if first.Valid {
			s.Position = uint64(first.Int64) - 1
			again, err := of().Where("position > ?", int64(s.Position)).Count(ctx)
			if err != nil {
				return err
			}
			n = int(again)
		}
		if err := c.storeState(ctx, tx, s, version); err != nil {
			return err
		}
		return c.say(ctx, tx, said{Change: true})
	})
	return n, err
}

// TrimEvents removes events of before a time, and the oldest of projects that have more than so many. Of each webhook
// that lacks some of them it says how many.
func (c *Catalog) TrimEvents(ctx context.Context, before time.Time, most int) (lost map[string]int, err error) {
	hooks, err := c.Webhooks(ctx, "")
	if err != nil {
		return nil, err
	}
	lost = map[string]int{}
	done := map[api.ProjectID]bool{}
	for _, h := range hooks {
		if done[h.Project] {
			continue
		}
		done[h.Project] = true
		err := c.update(ctx, "remove old events", func(ctx context.Context, tx bun.Tx) error {
			return c.trimEvents(ctx, tx, h.Project, before, most, lost)
		})
		if err != nil {
			return lost, err
		}
	}
	return lost, nil
}

func (c *Catalog) trimEvents(ctx context.Context, tx bun.Tx, project api.ProjectID, before time.Time, most int,
	lost map[string]int) error {
	var cut, old sql.NullInt64
	of := func() *bun.SelectQuery {
		return tx.NewSelect().Model((*webhookEventRow)(nil)).Where("project_id = ?", project)
	}
	if err := of().ColumnExpr("MAX(position)").Where("at < ?", before.UnixMilli()).Scan(ctx, &cut); err != nil {
		return err
	}
	err := of().Column("position").Order("position DESC").Limit(1).Offset(int64(most)).Scan(ctx, &old)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	last := max(cut.Int64, old.Int64)
	if last == 0 {
		return nil
	}
	hooks, err := list[api.Webhook, webhookRow](ctx, c, tx.NewSelect().Where("project_id = ?", project), "webhooks")
	if err != nil {
		return err
	}
	for _, h := range hooks {
		s, err := one[api.WebhookState, webhookStateRow](ctx, c, forUpdate(tx.NewSelect().Where("webhook_id = ?", h.ID)), "webhook")
		if err != nil {
			return err
		}
		n, err := of().Where("kind IN (?)", bun.List(h.Kinds())).Where("position > ?", int64(s.Position)).
			Where("position <= ?", last).Count(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		lost[h.ID] = int(n)
		version := s.Version
		s.Version, s.Position, s.Missed, s.Event, s.Attempts, s.Since = version+1, uint64(last), s.Missed+int(n), "", 0, nil
		if err := c.storeState(ctx, tx, s, version); err != nil {
			return err
		}
	}
	_, err = tx.NewDelete().Model((*webhookEventRow)(nil)).Where("project_id = ?", project).Where("position <= ?", last).Exec(ctx)
	return err
}

func (r *webhookRow) contents() (table, key string, fields []any) {
	return "webhooks", r.ID, []any{r.ID, string(r.Project), []byte(r.Body)}
}

func (r *webhookStateRow) contents() (table, key string, fields []any) {
	return "webhook_states", r.Webhook, []any{r.Webhook, r.Position, r.Version, []byte(r.Body)}
}

func (r *webhookEventRow) contents() (table, key string, fields []any) {
	return "webhook_events", r.ID, []any{r.ID, r.Position, string(r.Project), string(r.Kind), r.Stream, r.At, []byte(r.Payload)}
}

func (r *webhookDeliveryRow) contents() (table, key string, fields []any) {
	return "webhook_deliveries", r.ID, []any{r.ID, r.Webhook, r.At, []byte(r.Body)}
}
