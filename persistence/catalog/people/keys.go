package people

import (
	"cmp"
	"context"
	"database/sql"
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

func (r *keyRow) Contents() (table, key string, fields []any) {
	return "keys", string(r.ID), []any{
		string(r.ID), r.Hash, string(r.Org), string(r.Project), []byte(r.Body), r.CreatedAt, r.RevokedAt,
	}
}

type keyRow struct {
	bun.BaseModel `bun:"table:keys"`

	ID        api.KeyID       `bun:"id,pk"`
	Hash      []byte          `bun:"hash"`
	Org       api.OrgID       `bun:"org_id"`
	Project   api.ProjectID   `bun:"project_id,nullzero"`
	Body      json.RawMessage `bun:"body"`
	CreatedAt time.Time       `bun:"created_at"`
	RevokedAt *time.Time      `bun:"revoked_at"`
	LastUsed  *time.Time      `bun:"last_used_at"`
	database.Checked
}

func (r *keyRow) Decode() (api.Key, error) {
	var k api.Key
	if err := database.CheckRow(r); err != nil {
		return k, err
	}
	if err := database.DecodeBody(r.Body, &k, "key "+string(r.ID)); err != nil {
		return api.Key{}, err
	}
	k.ID, k.Org, k.Project, k.CreatedAt = r.ID, r.Org, r.Project, r.CreatedAt.UTC()
	k.RevokedAt, k.LastUsed = database.StampPtr(r.RevokedAt), database.StampPtr(r.LastUsed)
	return k, nil
}

// AddKey stores what is known of a new key under the hash of its secret (api.HashSecret). The id, the time and the
// organization are filled in if they are missing. It fails with *api.InvalidError when options are wrong, and with
// api.ErrNotFound when the key's project does not exist.
func (s *Store) AddKey(ctx context.Context, k api.Key, hash [32]byte) (api.Key, error) {
	now := s.db.Now()
	if err := k.Validate(now); err != nil {
		return api.Key{}, err
	}
	if k.CreatedAt.IsZero() {
		k.CreatedAt = now
	}
	if k.ID == "" {
		k.ID = api.KeyID(api.NewID(api.KeyPrefix, k.CreatedAt))
	}
	k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.LastUsed = database.Stamp(k.CreatedAt), database.StampPtr(k.ExpiresAt), nil, nil
	err := s.db.Change(ctx, "add key", func(ctx context.Context, tx bun.Tx) error {
		if k.Project != "" {
			var project projectRow
			err := tx.NewSelect().Model(&project).Where("id = ?", k.Project).Scan(ctx)
			if err == nil {
				err = database.CheckRow(&project)
			}
			switch {
			case errors.Is(err, sql.ErrNoRows):
				return database.NoProject(k.Project)
			case err != nil:
				return err
			case k.Org == "":
				k.Org = project.Org
			case k.Org != project.Org: // of another organization, and so unknown to this one
				return database.NoProject(k.Project)
			}
		}
		k.Org = cmp.Or(k.Org, api.DefaultOrg)
		return insertKey(ctx, tx, k, hash)
	})
	if err != nil {
		return api.Key{}, err
	}
	s.db.Forget(lookKeys) // the hash may be remembered as unknown
	return k, nil
}

func insertKey(ctx context.Context, tx bun.Tx, k api.Key, hash [32]byte) error {
	body, err := database.EncodeBody(k)
	if err != nil {
		return err
	}
	row := &keyRow{ID: k.ID, Hash: hash[:], Org: k.Org, Project: k.Project, Body: body, CreatedAt: k.CreatedAt}
	database.SetChecksum(row)
	return database.Insert(ctx, tx, row, database.Conflict("this key exists already"), fmt.Errorf("organization %q: %w", k.Org, api.ErrNotFound))
}

// RotateKey stores a key's successor, which follow makes of it with the hash of its secret, and lets the key
// itself end at until unless it ends earlier. Both happen, or neither. It fails with api.ErrNotFound if there is no such
// key, and with api.ErrConflict if it has ended or has a successor: a second one would be good for as long as the first
// leaves the key itself. What was rotated before successors were noted in the key's body may be rotated once more.
func (s *Store) RotateKey(ctx context.Context, id api.KeyID, follow func(api.Key) (next api.Key, hash [32]byte), until time.Time) (api.Key, error) {
	until = database.Stamp(until)
	var next api.Key
	err := s.db.Change(ctx, "rotate key", func(ctx context.Context, tx bun.Tx) error {
		var row keyRow
		err := database.Lock(ctx, tx.NewSelect().Model(&row).Where("id = ?", id), fmt.Errorf("key %q: %w", id, api.ErrNotFound))
		if err != nil {
			return err
		}
		key, err := row.Decode()
		if err != nil {
			return err
		}
		now := s.db.Now()
		if key.RevokedAt != nil || key.ExpiresAt != nil && !now.Before(*key.ExpiresAt) {
			return database.Conflict("this key has ended: make a new one")
		}
		if key.RotatedTo != "" {
			return database.Conflict("this key was rotated already: its successor is %s, and it ends at %s. If you have not seen "+
				"the successor's secret, rotate the successor", key.RotatedTo, key.ExpiresAt.UTC().Format(time.RFC3339))
		}
		var hash [32]byte
		next, hash = follow(key)
		next.CreatedAt, next.ExpiresAt = database.Stamp(next.CreatedAt), database.StampPtr(next.ExpiresAt)
		if err := next.Validate(now); err != nil {
			return err
		}
		if err := insertKey(ctx, tx, next, hash); err != nil {
			return err
		}
		if key.RotatedTo = next.ID; key.ExpiresAt == nil || until.Before(*key.ExpiresAt) {
			key.ExpiresAt = &until
		}
		if row.Body, err = database.EncodeBody(key); err != nil {
			return err
		}
		database.SetChecksum(&row)
		_, err = tx.NewUpdate().Model(&row).Column("body", "checksum").WherePK().Exec(ctx)
		return err
	})
	if err != nil {
		return api.Key{}, err
	}
	s.db.Forget(lookKeys)
	return next, nil
}

// KeyByHash finds a key by the hash of its secret, or fails with api.ErrNotFound. Revoked and expired keys are
// found. The key's lists are shared with other callers: they may be read only. LastUsed may be a little old.
func (s *Store) KeyByHash(ctx context.Context, hash [32]byte) (api.Key, error) {
	return s.keys.Get(ctx, hash)
}

func (s *Store) loadKey(ctx context.Context, hash [32]byte) (api.Key, error) {
	return database.One[api.Key, keyRow](ctx, s.db, s.db.Read.NewSelect().Where("hash = ?", hash[:]), "key")
}

// A KeyQuery says which keys to list; all if it is empty.
type KeyQuery struct {
	ID      api.KeyID
	Org     api.OrgID
	Project api.ProjectID
}

// Keys lists keys, the oldest first, revoked and expired ones included.
func (s *Store) Keys(ctx context.Context, q KeyQuery) ([]api.Key, error) {
	sel := s.db.Read.NewSelect().Order("id")
	if q.ID != "" {
		sel = sel.Where("id = ?", q.ID)
	}
	if q.Org != "" {
		sel = sel.Where("org_id = ?", q.Org)
	}
	if q.Project != "" {
		sel = sel.Where("project_id = ?", q.Project)
	}
	keys, err := database.List[api.Key, keyRow](ctx, s.db, sel, "keys")
	for i := range keys {
		if at, ok := s.touched.of(keys[i].ID); ok && (keys[i].LastUsed == nil || at.After(*keys[i].LastUsed)) {
			keys[i].LastUsed = &at
		}
	}
	return keys, err
}

// RevokeKey ends a key: the next lookup shows it as revoked. A key that is revoked already stays as it is. One that is
// damaged is refused anyway, and is revoked as it stands.
func (s *Store) RevokeKey(ctx context.Context, id api.KeyID, at time.Time) error {
	at = database.Stamp(at)
	err := s.db.Change(ctx, "revoke key", func(ctx context.Context, tx bun.Tx) error {
		var row keyRow
		err := database.Lock(ctx, tx.NewSelect().Model(&row).Where("id = ?", id), fmt.Errorf("key %q: %w", id, api.ErrNotFound))
		if err != nil || row.RevokedAt != nil && database.CheckRow(&row) == nil {
			return err
		}
		row.RevokedAt = &at
		database.SetChecksum(&row)
		_, err = tx.NewUpdate().Model(&row).Column("revoked_at", "checksum").WherePK().Exec(ctx)
		return err
	})
	if err != nil {
		return err
	}
	s.db.Forget(lookKeys)
	return nil
}

// touches are last uses of keys that are not written yet.
type touches struct {
	mu sync.Mutex
	at map[api.KeyID]time.Time
}

func (t *touches) of(id api.KeyID) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.at[id]
	return at, ok
}

func (t *touches) add(id api.KeyID, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == nil {
		t.at = make(map[api.KeyID]time.Time)
	}
	if at.After(t.at[id]) {
		t.at[id] = at
	}
}

func (t *touches) take() map[api.KeyID]time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.at
	t.at = nil
	return taken
}

// TouchKey records that a key was used. It returns at once; the last use is written some seconds later.
func (s *Store) TouchKey(id api.KeyID, at time.Time) { s.touched.add(id, database.Stamp(at)) }

// writeTouches writes what is buffered, in one transaction; what could not be written is tried again.
func (s *Store) writeTouches(ctx context.Context) error {
	uses := s.touched.take()
	if len(uses) == 0 {
		return nil
	}
	err := s.db.InTx(ctx, "record the last use of keys", func(ctx context.Context, tx bun.Tx) error {
		for _, id := range slices.Sorted(maps.Keys(uses)) { // in one order everywhere: two processes cannot block each other
			_, err := tx.NewUpdate().Model((*keyRow)(nil)).Set("last_used_at = ?", uses[id]).
				Where("id = ?", id).Where("last_used_at IS NULL OR last_used_at < ?", uses[id]).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		for id, at := range uses {
			s.touched.add(id, at)
		}
	}
	return err
}
