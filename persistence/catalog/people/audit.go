package people

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

type auditRow struct {
	bun.BaseModel `bun:"table:audit,alias:aud"`

	ID      api.AuditID     `bun:"id,pk"`
	Org     api.OrgID       `bun:"org_id"`
	Project api.ProjectID   `bun:"project_id"`
	WhoID   string          `bun:"who_id"`
	Action  string          `bun:"action"`
	At      int64           `bun:"at"`
	Body    json.RawMessage `bun:"body"`
	database.Checked
}

func (r *auditRow) Contents() (table, key string, fields []any) {
	return "audit", string(r.ID), []any{
		string(r.ID), string(r.Org), string(r.Project), r.WhoID, r.Action, r.At, []byte(r.Body),
	}
}

func (r *auditRow) Decode() (api.AuditEntry, error) {
	var e api.AuditEntry
	if err := database.CheckRow(r); err != nil {
		return e, err
	}
	err := database.DecodeBody(r.Body, &e, "audit entry "+string(r.ID))
	e.ID, e.Org, e.Project, e.WhoID, e.Action, e.At = r.ID, r.Org, r.Project, r.WhoID, r.Action, time.UnixMilli(r.At).UTC()
	return e, err
}

// ascending gives times of which none is as early as the one before: the log is in the order of its ids.
type ascending struct {
	mu   sync.Mutex
	last time.Time
}

func (a *ascending) after(now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if next := a.last.Add(time.Millisecond); now.Before(next) {
		now = next
	}
	a.last = now
	return now
}

// Audit stores that somebody did something. The id and the time are filled in, and the organization if it is missing.
func (s *Store) Audit(ctx context.Context, e api.AuditEntry) error {
	e = e.Clean()
	e.At = database.Stamp(s.db.Now())
	e.ID = api.AuditID(api.NewID(api.AuditPrefix, s.audited.after(e.At)))
	e.Org = cmp.Or(e.Org, api.DefaultOrg)
	body, err := database.EncodeBody(e)
	if err != nil {
		return err
	}
	row := &auditRow{ID: e.ID, Org: e.Org, Project: e.Project, WhoID: e.WhoID, Action: e.Action, At: e.At.UnixMilli(),
		Body: body}
	database.SetChecksum(row)
	return s.db.Change(ctx, "write the audit log", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(row).Exec(ctx)
		return err
	})
}

// maxSetBack is by how much a clock may have been set back so that entries are still found by their time.
const maxSetBack = 48 * time.Hour

// AuditLog lists who did what.
func (s *Store) AuditLog(ctx context.Context, q api.AuditQuery) ([]api.AuditEntry, error) {
	sel := s.db.Read.NewSelect().Where("org_id = ?", q.Org).Order("id DESC").Limit(int64(max(1, min(q.Limit, 1000))))
	for column, value := range map[string]string{
		"project_id": string(q.Project), "who_id": q.WhoID, "action": q.Action,
	} {
		if value == "" {
			continue
		}
		if !database.Askable(value) {
			return nil, nil
		}
		sel = sel.Where("? = ?", bun.Ident(column), value)
	}
	if q.After != "" {
		if !api.ValidID(api.AuditPrefix, string(q.After)) {
			return nil, nil
		}
		sel = sel.Where("id < ?", q.After)
	}
	// Ids are in the order of time, so that they bound what is read of a long log. An id's time is the entry's or, if the
	// clock was set back, later.
	if !q.From.IsZero() {
		sel = sel.Where("at >= ?", q.From.UnixMilli()).Where("id >= ?", api.FirstID(api.AuditPrefix, q.From))
	}
	if !q.Until.IsZero() {
		sel = sel.Where("at < ?", q.Until.UnixMilli()).
			Where("id < ?", api.FirstID(api.AuditPrefix, q.Until.Add(maxSetBack)))
	}
	return database.List[api.AuditEntry, auditRow](ctx, s.db, sel, "audit log")
}

// AuditWords are the actions, and the people by id, that an organization's log names, for filters.
func (s *Store) AuditWords(ctx context.Context, org api.OrgID) (actions []string, who map[string]string, err error) {
	// Each step jumps over all entries with the same word: the log may be long, its words are few.
	step := func(column string) (words []string, err error) {
		for after := ""; len(words) < 200; {
			var next string
			err := s.db.Read.NewRaw("SELECT COALESCE(MIN(?0), '') FROM audit WHERE org_id = ?1 AND ?0 > ?2",
				bun.Ident(column), org, after).Scan(ctx, &next)
			if err != nil || next == "" {
				return words, err
			}
			words, after = append(words, next), next
		}
		return words, nil
	}
	if actions, err = step("action"); err != nil {
		return nil, nil, s.db.Fail("read the audit log", err)
	}
	ids, err := step("who_id")
	if err != nil {
		return nil, nil, s.db.Fail("read the audit log", err)
	}
	who = map[string]string{}
	for _, id := range ids {
		last, err := s.AuditLog(ctx, api.AuditQuery{Org: org, WhoID: id, Limit: 1})
		if err != nil {
			return nil, nil, err
		}
		for _, e := range last {
			who[id] = e.Who
		}
	}
	return actions, who, nil
}
