package work

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

const (
	webhooksMost   = 20  // of a project
	deliveriesKept = 200 // of a webhook
)

type webhookRow struct {
	bun.BaseModel `bun:"table:webhooks,alias:webhook"`

	ID      string          `bun:"id,pk"`
	Project api.ProjectID   `bun:"project_id"`
	Body    json.RawMessage `bun:"body"`
	database.Checked
}

func newWebhookRow(w api.Webhook) (*webhookRow, error) {
	w.CreatedAt, w.UpdatedAt, w.OldUntil = database.Stamp(w.CreatedAt), database.Stamp(w.UpdatedAt), database.StampPtr(w.OldUntil)
	body, err := database.EncodeBody(w)
	r := &webhookRow{ID: w.ID, Project: w.Project, Body: body}
	database.SetChecksum(r)
	return r, err
}

func (r *webhookRow) Decode() (api.Webhook, error) {
	var w api.Webhook
	if err := database.CheckRow(r); err != nil {
		return w, err
	}
	err := database.DecodeBody(r.Body, &w, "webhook "+r.ID)
	w.ID, w.Project = r.ID, r.Project
	return w, err
}

type webhookStateRow struct {
	bun.BaseModel `bun:"table:webhook_states,alias:state"`

	Webhook  string          `bun:"webhook_id,pk"`
	Position int64           `bun:"position"`
	Version  int64           `bun:"version"`
	Body     json.RawMessage `bun:"body"`
	database.Checked
}

func newWebhookStateRow(s api.WebhookState) (*webhookStateRow, error) {
	s.Next, s.Since, s.Failing, s.Reached = database.Stamp(s.Next), database.StampPtr(s.Since), database.StampPtr(s.Failing), database.StampPtr(s.Reached)
	body, err := database.EncodeBody(s)
	r := &webhookStateRow{Webhook: s.Webhook, Position: int64(s.Position), Version: s.Version, Body: body}
	database.SetChecksum(r)
	return r, err
}

func (r *webhookStateRow) Decode() (api.WebhookState, error) {
	var s api.WebhookState
	if err := database.CheckRow(r); err != nil {
		return s, err
	}
	err := database.DecodeBody(r.Body, &s, "state of webhook "+r.Webhook)
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
	database.Checked
}

func newWebhookEventRow(e api.WebhookEvent) *webhookEventRow {
	r := &webhookEventRow{ID: e.ID, Position: int64(e.Position), Project: e.Project, Kind: e.Kind, Stream: e.Stream,
		At: e.At.UnixMilli(), Payload: e.Payload}
	database.SetChecksum(r)
	return r
}

func (r *webhookEventRow) Decode() (api.WebhookEvent, error) {
	if err := database.CheckRow(r); err != nil {
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
	database.Checked
}

func newWebhookDeliveryRow(d api.WebhookDelivery) (*webhookDeliveryRow, error) {
	d.At, d.EventAt = database.Stamp(d.At), database.Stamp(d.EventAt)
	body, err := database.EncodeBody(d)
	r := &webhookDeliveryRow{ID: d.Webhook + "/" + d.Event, Webhook: d.Webhook, At: d.At.UnixMilli(), Body: body}
	database.SetChecksum(r)
	return r, err
}

func (r *webhookDeliveryRow) Decode() (api.WebhookDelivery, error) {
	var d api.WebhookDelivery
	if err := database.CheckRow(r); err != nil {
		return d, err
	}
	return d, database.DecodeBody(r.Body, &d, "delivery "+r.ID)
}

// AddWebhook stores a webhook. What happens after the position of the journal is sent to it.
func (s *Store) AddWebhook(ctx context.Context, w api.Webhook, position uint64) error {
	row, err := newWebhookRow(w)
	if err != nil {
		return err
	}
	state, err := newWebhookStateRow(api.WebhookState{Webhook: w.ID, Position: position})
	if err != nil {
		return err
	}
	return s.db.Change(ctx, "add a webhook", func(ctx context.Context, tx bun.Tx) error {
		n, err := tx.NewSelect().Model((*webhookRow)(nil)).Where("project_id = ?", w.Project).Count(ctx)
		if err != nil {
			return err
		}
		if n >= webhooksMost {
			return database.Conflict("the project has %d webhooks, and no more are taken: remove one first", n)
		}
		if n, err = tx.NewSelect().Model((*webhookRow)(nil)).Limit(1).Count(ctx); err != nil {
			return err
		}
		if n == 0 { // events are made from here on, even if those who make them begin later
			if _, err := database.BeginFollower(ctx, tx, database.WebhookFollower, position); err != nil {
				return err
			}
		}
		if _, err := tx.NewInsert().Model(row).Exec(ctx); err != nil {
			return database.Refused(err, nil, database.NoProject(w.Project))
		}
		_, err = tx.NewInsert().Model(state).Exec(ctx)
		return err
	})
}

// ChangeWebhook changes what is stored of a webhook.
func (s *Store) ChangeWebhook(ctx context.Context, id string, change func(*api.Webhook)) (w api.Webhook, err error) {
	if !database.Askable(id) {
		return w, noWebhook(id)
	}
	err = s.db.Change(ctx, "change a webhook", func(ctx context.Context, tx bun.Tx) error {
		if w, err = oneWebhook(ctx, s, database.ForUpdate(tx.NewSelect().Where("id = ?", id)), id); err != nil {
			return err
		}
		change(&w)
		w.UpdatedAt = s.db.Now()
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
func (s *Store) RemoveWebhook(ctx context.Context, id string) error {
	return s.db.Change(ctx, "remove a webhook", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewDelete().Model((*webhookEventRow)(nil)).Where("project_id IN (SELECT project_id FROM webhooks WHERE id = ?)", id).
			Where("project_id NOT IN (SELECT project_id FROM webhooks WHERE id <> ?)", id).Exec(ctx)
		if err != nil {
			return err
		}
		res, err := tx.NewDelete().Model((*webhookRow)(nil)).Where("id = ?", id).Exec(ctx)
		return database.Changed(res, err, noWebhook(id))
	})
}

func noWebhook(id string) error { return fmt.Errorf("webhook %q: %w", id, api.ErrNotFound) }

func oneWebhook(ctx context.Context, s *Store, q *bun.SelectQuery, id string) (api.Webhook, error) {
	w, err := database.One[api.Webhook, webhookRow](ctx, s.db, q, "webhook")
	if errors.Is(err, api.ErrNotFound) {
		err = noWebhook(id)
	}
	return w, err
}

// Webhook finds one, or fails with api.ErrNotFound.
func (s *Store) Webhook(ctx context.Context, id string) (w api.WebhookStatus, err error) {
	if !database.Askable(id) {
		return w, noWebhook(id)
	}
	if w.Webhook, err = oneWebhook(ctx, s, s.db.Read.NewSelect().Where("id = ?", id), id); err != nil {
		return w, err
	}
	w.State, err = database.One[api.WebhookState, webhookStateRow](ctx, s.db, s.db.Read.NewSelect().Where("webhook_id = ?", id), "webhook")
	return w, err
}

// Webhooks lists those of a project, of all projects if it is empty, in the order of their creation.
func (s *Store) Webhooks(ctx context.Context, project api.ProjectID) ([]api.WebhookStatus, error) {
	hooks, states := s.db.Read.NewSelect().Order("id"), s.db.Read.NewSelect()
	if project != "" {
		hooks = hooks.Where("project_id = ?", project)
		states = states.Where("webhook_id IN (SELECT id FROM webhooks WHERE project_id = ?)", project)
	}
	list1, err := database.List[api.Webhook, webhookRow](ctx, s.db, hooks, "webhooks")
	if err != nil {
		return nil, err
	}
	list2, err := database.List[api.WebhookState, webhookStateRow](ctx, s.db, states, "webhooks")
	if err != nil {
		return nil, err
	}
	of := make(map[string]api.WebhookState, len(list2))
	for _, state := range list2 {
		of[state.Webhook] = state
	}
	out := make([]api.WebhookStatus, 0, len(list1))
	for _, w := range list1 {
		if state, ok := of[w.ID]; ok {
			out = append(out, api.WebhookStatus{Webhook: w, State: state})
		}
	}
	return out, nil
}

// WebhookPosition is the position of the journal up to which events were made. It is false if nobody has begun yet,
// or the journal is another one.
func (s *Store) WebhookPosition(ctx context.Context) (pos uint64, begun bool, err error) {
	err = s.db.Read.NewRaw("SELECT position FROM projections WHERE name = ?", database.WebhookFollower).Scan(ctx, &pos)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return pos, err == nil, s.db.Fail("read how far webhooks are", err)
}

// AddEvents stores events that were made from the journal up to a position, and removes those of streams that are gone.
// An event of a project without webhooks is left out.
func (s *Store) AddEvents(ctx context.Context, events []api.WebhookEvent, gone []string, position uint64) error {
	rows := make([]*webhookEventRow, len(events))
	for i, e := range events {
		rows[i] = newWebhookEventRow(e)
	}
	return s.db.InTx(ctx, "store events", func(ctx context.Context, tx bun.Tx) error {
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
		return s.db.PlaceFollower(ctx, tx, database.WebhookFollower, position)
	})
}

// BeginEvents makes every webhook begin after a position, if nobody has begun to make events of the journal yet.
func (s *Store) BeginEvents(ctx context.Context, position uint64) error {
	return s.db.InTx(ctx, "begin with events", func(ctx context.Context, tx bun.Tx) error {
		if first, err := database.BeginFollower(ctx, tx, database.WebhookFollower, position); err != nil || !first {
			return err
		}
		return s.restartEvents(ctx, tx, position)
	})
}

// RestartEvents forgets all events and has every webhook begin after a position: the journal is another one.
func (s *Store) RestartEvents(ctx context.Context, position uint64) error {
	return s.db.InTx(ctx, "start over with events", func(ctx context.Context, tx bun.Tx) error {
		return s.restartEvents(ctx, tx, position)
	})
}

func (s *Store) restartEvents(ctx context.Context, tx bun.Tx, position uint64) error {
	if _, err := tx.NewDelete().Model((*webhookEventRow)(nil)).Where("TRUE").Exec(ctx); err != nil {
		return err
	}
	states, err := database.List[api.WebhookState, webhookStateRow](ctx, s.db, database.ForUpdate(tx.NewSelect()), "webhooks")
	if err != nil {
		return err
	}
	for _, state := range states {
		state = api.WebhookState{Webhook: state.Webhook, Version: state.Version + 1, Position: position, Reached: state.Reached}
		if err := s.storeState(ctx, tx, state, state.Version-1); err != nil {
			return err
		}
	}
	return s.db.PlaceFollower(ctx, tx, database.WebhookFollower, position)
}

// NewestEvents are the positions of the newest events of each project and kind.
func (s *Store) NewestEvents(ctx context.Context) (map[api.ProjectID]map[api.EventKind]uint64, error) {
	var rows []struct {
		Project  api.ProjectID `bun:"project_id"`
		Kind     api.EventKind `bun:"kind"`
		Position int64         `bun:"position"`
	}
	err := s.db.Read.NewRaw("SELECT project_id, kind, MAX(position) AS position FROM webhook_events GROUP BY project_id, kind").
		Scan(ctx, &rows)
	out := map[api.ProjectID]map[api.EventKind]uint64{}
	for _, r := range rows {
		if out[r.Project] == nil {
			out[r.Project] = map[api.EventKind]uint64{}
		}
		out[r.Project][r.Kind] = uint64(r.Position)
	}
	return out, s.db.Fail("find the newest events", err)
}

// NextEvent is a project's first event of some kinds after a position, or api.ErrNotFound.
func (s *Store) NextEvent(ctx context.Context, project api.ProjectID, kinds []api.EventKind, after uint64) (
	api.WebhookEvent, error) {
	return database.One[api.WebhookEvent, webhookEventRow](ctx, s.db, s.db.Read.NewSelect().Where("project_id = ?", project).
		Where("kind IN (?)", bun.List(kinds)).Where("position > ?", int64(after)).Order("position").Limit(1), "event")
}

// Waiting counts a project's events of some kinds after a position.
func (s *Store) Waiting(ctx context.Context, project api.ProjectID, kinds []api.EventKind, after uint64) (int, error) {
	n, err := s.db.Read.NewSelect().Model((*webhookEventRow)(nil)).Where("project_id = ?", project).
		Where("kind IN (?)", bun.List(kinds)).Where("position > ?", int64(after)).Count(ctx)
	return int(n), s.db.Fail("count events", err)
}

// Event finds one of a project, or fails with api.ErrNotFound.
func (s *Store) Event(ctx context.Context, project api.ProjectID, id string) (api.WebhookEvent, error) {
	if !database.Askable(id) {
		return api.WebhookEvent{}, fmt.Errorf("event: %w", api.ErrNotFound)
	}
	return database.One[api.WebhookEvent, webhookEventRow](ctx, s.db, s.db.Read.NewSelect().Where("project_id = ?", project).
		Where("id = ?", id), "event")
}

// SaveAttempt stores how far a webhook's receiver has come, and the delivery that was tried; nil for none. If somebody
// has changed the state meanwhile, the delivery alone is stored, and that is api.ErrConflict.
func (s *Store) SaveAttempt(ctx context.Context, state api.WebhookState, d *api.WebhookDelivery) error {
	var stale error
	err := s.db.InTx(ctx, "store a delivery", func(ctx context.Context, tx bun.Tx) error {
		stale = s.storeState(ctx, tx, state, state.Version)
		if stale != nil && !errors.Is(stale, api.ErrConflict) {
			return stale
		}
		return s.storeDelivery(ctx, tx, d)
	})
	return errors.Join(err, stale)
}

// SaveSingle stores a delivery that says nothing of how far the receiver has come: a test, or one that is sent again.
func (s *Store) SaveSingle(ctx context.Context, d api.WebhookDelivery) error {
	return s.db.InTx(ctx, "store a delivery", func(ctx context.Context, tx bun.Tx) error {
		return s.storeDelivery(ctx, tx, &d)
	})
}

func (s *Store) storeState(ctx context.Context, tx bun.Tx, state api.WebhookState, version int64) error {
	row, err := newWebhookStateRow(state)
	if err != nil {
		return err
	}
	res, err := tx.NewUpdate().Model(row).WherePK().Where("version = ?", version).Exec(ctx)
	return database.Changed(res, err, database.Conflict("the webhook was changed meanwhile"))
}

func (s *Store) storeDelivery(ctx context.Context, tx bun.Tx, d *api.WebhookDelivery) error {
	if d == nil {
		return nil
	}
	n, err := tx.NewSelect().Model((*webhookRow)(nil)).Where("id = ?", d.Webhook).Count(ctx)
	if err != nil || n == 0 {
		return err // the webhook was removed meanwhile
	}
	row, err := newWebhookDeliveryRow(*d)
	if err != nil {
		return err
	}
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
func (s *Store) Deliveries(ctx context.Context, webhook string, limit int) ([]api.WebhookDelivery, error) {
	return database.List[api.WebhookDelivery, webhookDeliveryRow](ctx, s.db, s.db.Read.NewSelect().Where("webhook_id = ?", webhook).
		Order("at DESC", "id DESC").Limit(int64(limit)), "deliveries")
}

// Rewind schedules a webhook's events since a time to be sent again, in their order, and counts them. Events after the
// position that its receiver has come to are sent in any case and not counted.
func (s *Store) Rewind(ctx context.Context, id string, since time.Time) (n int, err error) {
	w, err := s.Webhook(ctx, id)
	if err != nil {
		return 0, err
	}
	err = s.db.InTx(ctx, "send events again", func(ctx context.Context, tx bun.Tx) error {
		state, err := database.One[api.WebhookState, webhookStateRow](ctx, s.db, database.ForUpdate(tx.NewSelect().Where("webhook_id = ?", id)), "webhook")
		if err != nil {
			return err
		}
		var first sql.NullInt64
		reached := int64(state.Position)
		of := func() *bun.SelectQuery {
			return tx.NewSelect().Model((*webhookEventRow)(nil)).Where("project_id = ?", w.Project).
				Where("kind IN (?)", bun.List(w.Kinds())).Where("at >= ?", since.UnixMilli()).
				Where("position <= ?", reached)
		}
		if err := of().ColumnExpr("MIN(position)").Scan(ctx, &first); err != nil {
			return err
		}
		version := state.Version
		state = api.WebhookState{Webhook: state.Webhook, Version: version + 1, Position: state.Position, Failing: state.Failing, Missed: state.Missed,
			Code: state.Code, Error: state.Error, Reached: state.Reached}
		if first.Valid {
			state.Position = uint64(first.Int64) - 1
			again, err := of().Where("position > ?", int64(state.Position)).Count(ctx)
			if err != nil {
				return err
			}
			n = int(again)
		}
		if err := s.storeState(ctx, tx, state, version); err != nil {
			return err
		}
		return s.db.Say(ctx, tx, database.Message{Change: true})
	})
	return n, err
}

// TrimEvents removes events of before a time, and the oldest of projects that have more than so many. Of each webhook
// that lacks some of them it says how many.
func (s *Store) TrimEvents(ctx context.Context, before time.Time, most int) (lost map[string]int, err error) {
	hooks, err := s.Webhooks(ctx, "")
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
		err := s.db.InTx(ctx, "remove old events", func(ctx context.Context, tx bun.Tx) error {
			return s.trimEvents(ctx, tx, h.Project, before, most, lost)
		})
		if err != nil {
			return lost, err
		}
	}
	return lost, nil
}

func (s *Store) trimEvents(ctx context.Context, tx bun.Tx, project api.ProjectID, before time.Time, most int,
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
	hooks, err := database.List[api.Webhook, webhookRow](ctx, s.db, tx.NewSelect().Where("project_id = ?", project), "webhooks")
	if err != nil {
		return err
	}
	for _, h := range hooks {
		state, err := database.One[api.WebhookState, webhookStateRow](ctx, s.db, database.ForUpdate(tx.NewSelect().Where("webhook_id = ?", h.ID)), "webhook")
		if err != nil {
			return err
		}
		n, err := of().Where("kind IN (?)", bun.List(h.Kinds())).Where("position > ?", int64(state.Position)).
			Where("position <= ?", last).Count(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		lost[h.ID] = int(n)
		version := state.Version
		state.Version, state.Position, state.Missed, state.Event, state.Attempts, state.Since = version+1, uint64(last), state.Missed+int(n), "", 0, nil
		if err := s.storeState(ctx, tx, state, version); err != nil {
			return err
		}
	}
	_, err = tx.NewDelete().Model((*webhookEventRow)(nil)).Where("project_id = ?", project).Where("position <= ?", last).Exec(ctx)
	return err
}

func (r *webhookRow) Contents() (table, key string, fields []any) {
	return "webhooks", r.ID, []any{r.ID, string(r.Project), []byte(r.Body)}
}

func (r *webhookStateRow) Contents() (table, key string, fields []any) {
	return "webhook_states", r.Webhook, []any{r.Webhook, r.Position, r.Version, []byte(r.Body)}
}

func (r *webhookEventRow) Contents() (table, key string, fields []any) {
	return "webhook_events", r.ID, []any{r.ID, r.Position, string(r.Project), string(r.Kind), r.Stream, r.At, []byte(r.Payload)}
}

func (r *webhookDeliveryRow) Contents() (table, key string, fields []any) {
	return "webhook_deliveries", r.ID, []any{r.ID, r.Webhook, r.At, []byte(r.Body)}
}
