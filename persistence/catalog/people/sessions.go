package people

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
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
	database.Checked
}

func (r *sessionRow) Contents() (table, key string, fields []any) {
	return "sessions", string(r.ID), []any{
		string(r.ID), r.Hash, r.OldHash, r.RenewedAt, string(r.Person), r.Key, []byte(r.Body), r.CreatedAt, r.ExpiresAt,
		r.EndedAt,
	}
}

func (r *sessionRow) Decode() (api.SignIn, error) {
	if err := database.CheckRow(r); err != nil {
		return api.SignIn{}, err
	}
	var s api.SignIn
	if err := database.DecodeBody(r.Body, &s, "session "+string(r.ID)); err != nil {
		return api.SignIn{}, err
	}
	s.ID, s.Person, s.Key = r.ID, r.Person, r.Key
	s.CreatedAt, s.ExpiresAt = time.UnixMilli(r.CreatedAt).UTC(), time.UnixMilli(r.ExpiresAt).UTC()
	s.SeenAt, s.EndedAt = time.UnixMilli(r.SeenAt).UTC(), timeOf(r.EndedAt)
	return s, nil
}

// AddSession stores a session under the hash of its token. Those that are over for long are forgotten.
func (s *Store) AddSession(ctx context.Context, session api.SignIn, hash [32]byte) (api.SignIn, error) {
	session = session.Clean()
	if session.CreatedAt.IsZero() {
		session.CreatedAt = s.db.Now()
	}
	session.CreatedAt, session.ExpiresAt, session.EndedAt = database.Stamp(session.CreatedAt), database.Stamp(session.ExpiresAt), nil
	session.SeenAt = session.CreatedAt
	if session.ID == "" {
		session.ID = api.SessionID(api.NewID(api.SessionPrefix, session.CreatedAt))
	}
	body, err := database.EncodeBody(session)
	if err != nil {
		return api.SignIn{}, err
	}
	now := session.CreatedAt.UnixMilli()
	row := &sessionRow{ID: session.ID, Hash: hash[:], Person: session.Person, Key: session.Key, Body: body, CreatedAt: now,
		ExpiresAt: session.ExpiresAt.UnixMilli(), SeenAt: now}
	database.SetChecksum(row)
	err = s.db.Change(ctx, "add session", func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewDelete().Model((*sessionRow)(nil)).Where("expires_at < ?", now).Exec(ctx); err != nil {
			return err
		}
		return database.Insert(ctx, tx, row, nil, noPerson(session.Person))
	})
	if err != nil {
		return api.SignIn{}, err
	}
	s.changed(hash[:])
	return session, nil
}

// changed makes all nodes look up again what these hashes of tokens lead to. Other sessions stay remembered: clients of
// OAuth change their tokens each hour.
func (s *Store) changed(hashes ...[]byte) {
	s.dropSessions(hashes)
	s.db.Announce(database.Message{Sessions: hashes})
}

func (s *Store) dropSessions(hashes [][]byte) {
	for _, hash := range hashes {
		if len(hash) == sha256.Size {
			s.sessions.Drop([32]byte(hash))
		}
	}
}

// SessionByHash finds a session by the hash of its token, or fails with api.ErrNotFound. Sessions that have ended are
// found: ask api.SignIn.Live.
func (s *Store) SessionByHash(ctx context.Context, hash [32]byte) (api.SignIn, error) {
	session, err := s.sessions.Get(ctx, hash)
	switch {
	case err == nil:
		session = s.seen.of(session)
	case errors.Is(err, database.ErrCorrupt): // nobody is let in by it, and a browser that has its token signs in again
		s.db.Log.Error("a session is damaged", "error", err)
		err = fmt.Errorf("session: %w", api.ErrNotFound)
	}
	return session, err
}

func (s *Store) loadSession(ctx context.Context, hash [32]byte) (api.SignIn, error) {
	session, err := database.One[api.SignIn, sessionRow](ctx, s.db, s.db.Read.NewSelect().Where("hash = ?", hash[:]), "session")
	if !errors.Is(err, api.ErrNotFound) {
		return session, err
	}
	since := s.db.Now().Add(-renewGrace).UnixMilli()
	return database.One[api.SignIn, sessionRow](ctx, s.db,
		s.db.Read.NewSelect().Where("old_hash = ?", hash[:]).Where("renewed_at > ?", since), "session")
}

// ofSessions selects the sessions that a query is about.
func ofSessions(q api.SessionQuery, sel *bun.SelectQuery) *bun.SelectQuery {
	switch {
	case q.Person != "":
		sel = sel.Where("person_id = ?", q.Person)
	case q.Links:
		sel = sel.Where("person_id IS NULL").Where("key_hash IS NULL")
	default:
		sel = sel.Where("key_hash = ?", q.Key)
	}
	if q.Except != "" {
		sel = sel.Where("id <> ?", q.Except)
	}
	return sel
}

// Sessions lists the sessions that are good now, the youngest first.
func (s *Store) Sessions(ctx context.Context, q api.SessionQuery) ([]api.SignIn, error) {
	if q.Person == "" && len(q.Key) == 0 && !q.Links {
		return nil, nil
	}
	now := s.db.Now()
	sel := ofSessions(q, s.db.Read.NewSelect()).Where("ended_at = 0").Where("expires_at > ?", now.UnixMilli()).
		Order("id DESC").Limit(200)
	all, err := database.List[api.SignIn, sessionRow](ctx, s.db, sel, "sessions")
	for i := range all {
		all[i] = s.seen.of(all[i])
	}
	return slices.DeleteFunc(all, func(session api.SignIn) bool { return !session.Live(now) }), err
}

// EndSession ends a session: the next lookup shows it as ended.
func (s *Store) EndSession(ctx context.Context, id api.SessionID) error {
	return s.endWhere(ctx, func(sel *bun.SelectQuery) *bun.SelectQuery { return sel.Where("id = ?", id) })
}

// EndSessionsOf ends all sessions that a query is about.
func (s *Store) EndSessionsOf(ctx context.Context, q api.SessionQuery) error {
	if q.Person == "" && len(q.Key) == 0 && !q.Links {
		return nil
	}
	return s.endWhere(ctx, func(sel *bun.SelectQuery) *bun.SelectQuery { return ofSessions(q, sel) })
}

// endWhere ends those that are selected.
func (s *Store) endWhere(ctx context.Context, which func(*bun.SelectQuery) *bun.SelectQuery) error {
	at := database.Stamp(s.db.Now())
	err := s.db.Change(ctx, "end sessions", func(ctx context.Context, tx bun.Tx) error {
		return endSessions(ctx, tx, at, which)
	})
	if err == nil {
		s.db.Forget(lookSessions)
	}
	return err
}

// endSessions ends also what is damaged: nobody is to be let in by it.
func endSessions(ctx context.Context, tx bun.Tx, at time.Time, which func(*bun.SelectQuery) *bun.SelectQuery) error {
	var rows []sessionRow
	if err := database.ForUpdate(which(tx.NewSelect().Model(&rows)).Where("ended_at = 0").Order("id")).Scan(ctx); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		r.EndedAt = at.UnixMilli()
		database.SetChecksum(r)
		if _, err := tx.NewUpdate().Model(r).Column("ended_at", "checksum").WherePK().Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// RenewSession gives a session another token and says for which rights. Requests that bear the token before are let in
// for some seconds more. It returns false if another request has just renewed it.
func (s *Store) RenewSession(ctx context.Context, id api.SessionID, hash [32]byte, rights string) (bool, error) {
	now, renewed := s.db.Now(), false
	var gone [][]byte
	err := s.db.Change(ctx, "renew session", func(ctx context.Context, tx bun.Tx) error {
		var row sessionRow
		err := database.Lock(ctx, tx.NewSelect().Model(&row).Where("id = ?", id).Where("ended_at = 0"), fmt.Errorf("session: %w", api.ErrNotFound))
		if err != nil {
			return err
		}
		session, err := row.Decode()
		if err != nil || session.Rights == rights {
			return err
		}
		session.Rights, renewed = rights, true
		if row.Body, err = database.EncodeBody(session); err != nil {
			return err
		}
		gone = [][]byte{row.OldHash, row.Hash}
		return row.rotate(ctx, tx, hash, now, "body")
	})
	if err == nil {
		s.changed(append(gone, hash[:])...)
	}
	return renewed && err == nil, err
}

// ReplaceToken replaces a session's token and sets its expiry. It returns api.ErrNotFound if no live session has the token,
// so of two concurrent calls one fails. What came with the token before is good for some seconds more.
func (s *Store) ReplaceToken(ctx context.Context, before, after [32]byte, expires time.Time) error {
	now := s.db.Now()
	var gone [][]byte
	err := s.db.Change(ctx, "replace a token", func(ctx context.Context, tx bun.Tx) error {
		var row sessionRow
		err := database.Lock(ctx, tx.NewSelect().Model(&row).Where("hash = ?", before[:]).Where("ended_at = 0").
			Where("expires_at > ?", now.UnixMilli()), fmt.Errorf("session: %w", api.ErrNotFound))
		if err != nil {
			return err
		}
		if err := database.CheckRow(&row); err != nil {
			return err
		}
		row.ExpiresAt, gone = expires.UnixMilli(), [][]byte{row.OldHash, row.Hash}
		return row.rotate(ctx, tx, after, now, "expires_at")
	})
	if err == nil {
		s.changed(append(gone, after[:])...)
	}
	return err
}

// rotate stores a session with another token, and the column that has changed with it.
func (r *sessionRow) rotate(ctx context.Context, tx bun.Tx, hash [32]byte, now time.Time, changed string) error {
	r.OldHash, r.Hash, r.RenewedAt = r.Hash, hash[:], now.UnixMilli()
	database.SetChecksum(r)
	_, err := tx.NewUpdate().Model(r).Column("hash", "old_hash", "renewed_at", changed, "checksum").WherePK().Exec(ctx)
	return err
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
func (s *Store) TouchSession(session api.SignIn, at time.Time) {
	s.seen.add(session.ID, session.Person, database.Stamp(at))
}

// writeSeen writes what is buffered, in one transaction; what could not be written is tried again.
func (s *Store) writeSeen(ctx context.Context) error {
	sessions, people := s.seen.take()
	if len(sessions)+len(people) == 0 {
		return nil
	}
	err := s.db.InTx(ctx, "record when sessions were last seen", func(ctx context.Context, tx bun.Tx) error {
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
			s.seen.add(id, "", at)
		}
		for id, at := range people {
			s.seen.add("", id, at)
		}
		return err
	}
	s.sessions.Forget() // what is remembered of them is older than what was buffered
	return nil
}
