package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"docent/api"

	"github.com/uptrace/bun"
)

// renewGrace is for how long a token is good after another one has taken its place: a browser has requests on their
// way then.
const renewGrace = 30 * time.Second

type sessionRow struct {
	bun.BaseModel `bun:"table:sessions,alias:ses"`

	ID        api.SessionID   `bun:"id,pk"`
	Hash      []byte          `bun:"hash"`
	OldHash   []byte          `bun:"old_hash"`
	RenewedAt int64           `bun:"renewed_at"`
	Person    api.PersonID    `bun:"person_id,nullzero"`
	Key       []byte          `bun:"key_hash"`
	Body      json.RawMessage `bun:"body"`
	CreatedAt int64           `bun:"created_at"`
	ExpiresAt int64           `bun:"expires_at"`
	EndedAt   int64           `bun:"ended_at"`
	SeenAt    int64           `bun:"seen_at"`
	checked
}

func (r *sessionRow) contents() (table, key string, fields []any) {
	return "sessions", string(r.ID), []any{
		string(r.ID), r.Hash, r.OldHash, r.RenewedAt, string(r.Person), r.Key, []byte(r.Body), r.CreatedAt, r.ExpiresAt,
		r.EndedAt,
	}
}

func (r *sessionRow) value() (api.SignIn, error) {
	if err := checkRow(r); err != nil {
		return api.SignIn{}, err
	}
	var s api.SignIn
	if err := decodeBody(r.Body, &s, "session "+string(r.ID)); err != nil {
		return api.SignIn{}, err
	}
	s.ID, s.Person, s.Key = r.ID, r.Person, r.Key
	s.CreatedAt, s.ExpiresAt = time.UnixMilli(r.CreatedAt).UTC(), time.UnixMilli(r.ExpiresAt).UTC()
	s.SeenAt, s.EndedAt = time.UnixMilli(r.SeenAt).UTC(), timeOf(r.EndedAt)
	return s, nil
}

// AddSession stores a session under the hash of its token. Those that are over for long are forgotten.
func (c *Catalog) AddSession(ctx context.Context, s api.SignIn, hash [32]byte) (api.SignIn, error) {
	s = s.Clean()
	if s.CreatedAt.IsZero() {
		s.CreatedAt = c.now()
	}
	s.CreatedAt, s.ExpiresAt, s.EndedAt = stamp(s.CreatedAt), stamp(s.ExpiresAt), nil
	s.SeenAt = s.CreatedAt
	if s.ID == "" {
		s.ID = api.SessionID(api.NewID(api.SessionPrefix, s.CreatedAt))
	}
	body, err := encodeBody(s)
	if err != nil {
		return api.SignIn{}, err
	}
	now := s.CreatedAt.UnixMilli()
	row := &sessionRow{ID: s.ID, Hash: hash[:], Person: s.Person, Key: s.Key, Body: body, CreatedAt: now,
		ExpiresAt: s.ExpiresAt.UnixMilli(), SeenAt: now}
	setChecksum(row)
	err = c.change(ctx, "add session", func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewDelete().Model((*sessionRow)(nil)).Where("expires_at < ?", now).Exec(ctx); err != nil {
			return err
		}
		_, err := tx.NewInsert().Model(row).Exec(ctx)
		if violates(err, reference) {
			return noPerson(s.Person)
		}
		return err
	})
	if err != nil {
		return api.SignIn{}, err
	}
	c.forget(lookSessions)
	return s, nil
}

// SessionByHash finds a session by the hash of its token, or fails with api.ErrNotFound. Sessions that have ended are
// found: ask api.SignIn.Live.
func (c *Catalog) SessionByHash(ctx context.Context, hash [32]byte) (api.SignIn, error) {
	s, err := c.sessions.get(ctx, hash)
	switch {
	case err == nil:
		s = c.seen.of(s)
	case errors.Is(err, ErrCorrupt): // nobody is let in by it, and a browser that has its token signs in again
		c.log.Error("a session is damaged", "error", err)
		err = fmt.Errorf("session: %w", api.ErrNotFound)
	}
	return s, err
}

func (c *Catalog) loadSession(ctx context.Context, hash [32]byte) (api.SignIn, error) {
	s, err := one[api.SignIn, sessionRow](ctx, c, c.read.NewSelect().Where("hash = ?", hash[:]), "session")
	if !errors.Is(err, api.ErrNotFound) {
		return s, err
	}
	since := c.now().Add(-renewGrace).UnixMilli()
	return one[api.SignIn, sessionRow](ctx, c,
		c.read.NewSelect().Where("old_hash = ?", hash[:]).Where("renewed_at > ?", since), "session")
}

// ofSessions selects the sessions that a query is about.
func ofSessions(q api.SessionQuery, sel *bun.SelectQuery) *bun.SelectQuery {
	if q.Person != "" {
		sel = sel.Where("person_id = ?", q.Person)
	} else {
		sel = sel.Where("key_hash = ?", q.Key)
	}
	if q.Except != "" {
		sel = sel.Where("id <> ?", q.Except)
	}
	return sel
}

// Sessions lists the sessions that are good now, the youngest first.
func (c *Catalog) Sessions(ctx context.Context, q api.SessionQuery) ([]api.SignIn, error) {
	if q.Person == "" && len(q.Key) == 0 {
		return nil, nil
	}
	now := c.now()
	sel := ofSessions(q, c.read.NewSelect()).Where("ended_at = 0").Where("expires_at > ?", now.UnixMilli()).
		Order("id DESC").Limit(200)
	all, err := list[api.SignIn, sessionRow](ctx, c, sel, "sessions")
	for i := range all {
		all[i] = c.seen.of(all[i])
	}
	return slices.DeleteFunc(all, func(s api.SignIn) bool { return !s.Live(now) }), err
}

// EndSession ends a session: the next look-up shows it as ended.
func (c *Catalog) EndSession(ctx context.Context, id api.SessionID) error {
	return c.endWhere(ctx, func(sel *bun.SelectQuery) *bun.SelectQuery { return sel.Where("id = ?", id) })
}

// EndSessionsOf ends all sessions that a query is about.
func (c *Catalog) EndSessionsOf(ctx context.Context, q api.SessionQuery) error {
	if q.Person == "" && len(q.Key) == 0 {
		return nil
	}
	return c.endWhere(ctx, func(sel *bun.SelectQuery) *bun.SelectQuery { return ofSessions(q, sel) })
}

// endWhere ends those that are selected.
func (c *Catalog) endWhere(ctx context.Context, which func(*bun.SelectQuery) *bun.SelectQuery) error {
	at := stamp(c.now())
	err := c.change(ctx, "end sessions", func(ctx context.Context, tx bun.Tx) error {
		return endSessions(ctx, tx, at, which)
	})
	if err == nil {
		c.forget(lookSessions)
	}
	return err
}

// endSessions ends also what is damaged: nobody is to be let in by it.
func endSessions(ctx context.Context, tx bun.Tx, at time.Time, which func(*bun.SelectQuery) *bun.SelectQuery) error {
	var rows []sessionRow
	if err := forUpdate(which(tx.NewSelect().Model(&rows)).Where("ended_at = 0").Order("id")).Scan(ctx); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		r.EndedAt = at.UnixMilli()
		setChecksum(r)
		if _, err := tx.NewUpdate().Model(r).Column("ended_at", "checksum").WherePK().Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// RenewSession gives a session another token and says for which rights. Requests that bear the token before are let in
// for some seconds more. It says false where another request has just renewed it.
func (c *Catalog) RenewSession(ctx context.Context, id api.SessionID, hash [32]byte, rights string) (bool, error) {
	now, renewed := c.now(), false
	err := c.change(ctx, "renew session", func(ctx context.Context, tx bun.Tx) error {
		var row sessionRow
		err := forUpdate(tx.NewSelect().Model(&row).Where("id = ?", id).Where("ended_at = 0")).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("session: %w", api.ErrNotFound)
		}
		if err != nil {
			return err
		}
		s, err := row.value()
		if err != nil || s.Rights == rights {
			return err
		}
		s.Rights, renewed = rights, true
		if row.Body, err = encodeBody(s); err != nil {
			return err
		}
		row.OldHash, row.Hash, row.RenewedAt = row.Hash, hash[:], now.UnixMilli()
		setChecksum(&row)
		_, err = tx.NewUpdate().Model(&row).Column("hash", "old_hash", "renewed_at", "body", "checksum").WherePK().Exec(ctx)
		return err
	})
	if err == nil {
		c.forget(lookSessions)
	}
	return renewed && err == nil, err
}

// seen is when sessions and their people were last seen, as far as it is not written yet.
type seen struct {
	mu       sync.Mutex
	sessions map[api.SessionID]time.Time
	people   map[api.PersonID]time.Time
}

func (s *seen) of(session api.SignIn) api.SignIn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.sessions[session.ID]; at.After(session.SeenAt) {
		session.SeenAt = at
	}
	return session
}

func (s *seen) person(id api.PersonID) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.people[id]
	return at, ok
}

func (s *seen) add(session api.SessionID, person api.PersonID, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions, s.people = map[api.SessionID]time.Time{}, map[api.PersonID]time.Time{}
	}
	if session != "" && at.After(s.sessions[session]) {
		s.sessions[session] = at
	}
	if person != "" && at.After(s.people[person]) {
		s.people[person] = at
	}
}

func (s *seen) take() (map[api.SessionID]time.Time, map[api.PersonID]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sessions, people := s.sessions, s.people
	s.sessions, s.people = nil, nil
	return sessions, people
}

// TouchSession records that a session was seen. It returns at once; the time is written some seconds later.
func (c *Catalog) TouchSession(s api.SignIn, at time.Time) { c.seen.add(s.ID, s.Person, stamp(at)) }

// writeSeen writes what is buffered, in one transaction; what could not be written is tried again.
func (c *Catalog) writeSeen(ctx context.Context) error {
	sessions, people := c.seen.take()
	if len(sessions)+len(people) == 0 {
		return nil
	}
	err := c.update(ctx, "record when sessions were last seen", func(ctx context.Context, tx bun.Tx) error {
		for _, id := range slices.Sorted(maps.Keys(sessions)) { // in one order everywhere, as with keys
			at := sessions[id].UnixMilli()
			if _, err := tx.NewUpdate().Model((*sessionRow)(nil)).Set("seen_at = ?", at).
				Where("id = ?", id).Where("seen_at < ?", at).Exec(ctx); err != nil {
				return err
			}
		}
		for _, id := range slices.Sorted(maps.Keys(people)) {
			at := people[id].UnixMilli()
			if _, err := tx.NewUpdate().Model((*personRow)(nil)).Set("seen_at = ?", at).
				Where("id = ?", id).Where("seen_at < ?", at).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		for id, at := range sessions {
			c.seen.add(id, "", at)
		}
		for id, at := range people {
			c.seen.add("", id, at)
		}
		return err
	}
	c.sessions.forget() // what is remembered of them is older than what was buffered
	return nil
}
