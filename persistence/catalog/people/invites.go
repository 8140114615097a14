package people

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

type invitationRow struct {
	bun.BaseModel `bun:"table:invitations,alias:inv"`

	ID        api.InvitationID `bun:"id,pk"`
	Hash      []byte           `bun:"hash"`
	Org       api.OrgID        `bun:"org_id"`
	Body      json.RawMessage  `bun:"body"`
	ExpiresAt int64            `bun:"expires_at"`
	EndedAt   int64            `bun:"ended_at"` // used or revoked
	database.Checked
}

func (r *invitationRow) Contents() (table, key string, fields []any) {
	return "invitations", string(r.ID), []any{
		string(r.ID), r.Hash, string(r.Org), []byte(r.Body), r.ExpiresAt, r.EndedAt,
	}
}

func (r *invitationRow) Decode() (api.Invitation, error) {
	var i api.Invitation
	if err := database.CheckRow(r); err != nil {
		return i, err
	}
	err := database.DecodeBody(r.Body, &i, "invitation "+string(r.ID))
	i.ID, i.Org = r.ID, r.Org
	return i, err
}

func (r *invitationRow) set(i api.Invitation) (err error) {
	r.ID, r.Org, r.ExpiresAt = i.ID, i.Org, i.ExpiresAt.UnixMilli()
	r.EndedAt = max(milliOf(i.UsedAt), milliOf(i.RevokedAt))
	if r.Body, err = database.EncodeBody(i); err == nil {
		database.SetChecksum(r)
	}
	return err
}

// AddInvitation stores an invitation under the hash of its token. Those that were over a month ago are forgotten.
func (s *Store) AddInvitation(ctx context.Context, i api.Invitation, hash [32]byte) (api.Invitation, error) {
	i.Email = api.CleanEmail(i.Email)
	if err := i.Validate(); err != nil {
		return api.Invitation{}, err
	}
	if i.CreatedAt.IsZero() {
		i.CreatedAt = s.db.Now()
	}
	i.CreatedAt, i.ExpiresAt = database.Stamp(i.CreatedAt), database.Stamp(i.ExpiresAt)
	if i.ID == "" {
		i.ID = api.InvitationID(api.NewID(api.InvitationPrefix, i.CreatedAt))
	}
	row := &invitationRow{Hash: hash[:]}
	if err := row.set(i); err != nil {
		return api.Invitation{}, err
	}
	err := s.db.Change(ctx, "add invitation", func(ctx context.Context, tx bun.Tx) error {
		old := i.CreatedAt.AddDate(0, -1, 0).UnixMilli()
		if _, err := tx.NewDelete().Model((*invitationRow)(nil)).Where("expires_at < ?", old).Exec(ctx); err != nil {
			return err
		}
		return database.Insert(ctx, tx, row, nil, fmt.Errorf("organization %q: %w", i.Org, api.ErrNotFound))
	})
	return i, err
}

var errNoInvitation = fmt.Errorf("invitation: %w", api.ErrNotFound)

// InvitationByHash finds an invitation by the hash of its token, whether it is open or over.
func (s *Store) InvitationByHash(ctx context.Context, hash [32]byte) (api.Invitation, error) {
	return database.One[api.Invitation, invitationRow](ctx, s.db, s.db.Read.NewSelect().Where("hash = ?", hash[:]), "invitation")
}

// Invitations lists the invitations of an organization that can still be accepted, the youngest first.
func (s *Store) Invitations(ctx context.Context, org api.OrgID) ([]api.Invitation, error) {
	now := s.db.Now()
	all, err := database.List[api.Invitation, invitationRow](ctx, s.db, s.db.Read.NewSelect().Where("org_id = ?", org).
		Where("ended_at = 0").Where("expires_at > ?", now.UnixMilli()).Order("id DESC"), "invitations")
	return slices.DeleteFunc(all, func(i api.Invitation) bool { return !i.Open(now) }), err
}

// changeInvitation changes an invitation that is open, or fails with api.ErrNotFound.
func (s *Store) changeInvitation(ctx context.Context, tx bun.Tx, which func(*bun.SelectQuery) *bun.SelectQuery,
	change func(*api.Invitation) error) (api.Invitation, error) {
	var row invitationRow
	err := database.ForUpdate(which(tx.NewSelect().Model(&row))).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return api.Invitation{}, errNoInvitation
	}
	if err != nil {
		return api.Invitation{}, err
	}
	i, err := row.Decode()
	if err != nil {
		return i, err
	}
	if !i.Open(s.db.Now()) {
		return i, errNoInvitation
	}
	if err := change(&i); err != nil {
		return i, err
	}
	if err := row.set(i); err != nil {
		return i, err
	}
	_, err = tx.NewUpdate().Model(&row).Column("body", "ended_at", "checksum").WherePK().Exec(ctx)
	return i, err
}

// RevokeInvitation ends an invitation of an organization that nobody has accepted yet.
func (s *Store) RevokeInvitation(ctx context.Context, org api.OrgID, id api.InvitationID) (i api.Invitation, err error) {
	at := database.Stamp(s.db.Now())
	err = s.db.Change(ctx, "revoke invitation", func(ctx context.Context, tx bun.Tx) error {
		i, err = s.changeInvitation(ctx, tx, func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.Where("id = ?", id).Where("org_id = ?", org)
		}, func(i *api.Invitation) error { i.RevokedAt = &at; return nil })
		return err
	})
	return i, err
}

// AcceptInvitation uses up an invitation and lets a person into its organization: one who is there already if p has an
// id, otherwise a new one. An invitation for an address takes only somebody whose verified address that is; verified is
// empty if nobody has verified one. If accepting fails the invitation stays open. A person who is in the organization
// keeps the higher role; one who is not signs in again.
func (s *Store) AcceptInvitation(ctx context.Context, hash [32]byte, p api.Person, password, verified string) (
	api.Person, api.Invitation, error) {
	at, known := database.Stamp(s.db.Now()), p.ID != ""
	if !known {
		var err error
		p.Roles = nil
		if p, err = s.fillPerson(p); err != nil {
			return api.Person{}, api.Invitation{}, err
		}
	}
	var invitation api.Invitation
	err := s.db.Change(ctx, "accept invitation", func(ctx context.Context, tx bun.Tx) (err error) {
		invitation, err = s.changeInvitation(ctx, tx, func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.Where("hash = ?", hash[:])
		}, func(i *api.Invitation) error {
			if i.Email != "" && i.Email != api.CleanEmail(verified) {
				return &api.StateError{Kind: api.ErrForbidden,
					Reason: "this invitation is for another email address, or nobody has verified that the address is yours: " +
						"join with single sign-on as the person with that address"}
			}
			i.UsedAt, i.UsedBy = &at, p.ID
			return nil
		})
		if err != nil {
			return err
		}
		if !known {
			if err := s.insertPerson(ctx, tx, p, password); err != nil {
				return err
			}
			return addMember(ctx, tx, p.ID, invitation.Org, invitation.Role, at)
		}
		var was memberRow
		err = database.ForUpdate(tx.NewSelect().Model(&was).Where("person_id = ?", p.ID).Where("org_id = ?", invitation.Org)).Scan(ctx)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return errors.Join(s.beginsAfresh(ctx, tx, p.ID), addMember(ctx, tx, p.ID, invitation.Org, invitation.Role, at))
		case err != nil || was.Role.AtLeast(invitation.Role):
			return err
		}
		was.Role = invitation.Role
		database.SetChecksum(&was)
		_, err = tx.NewUpdate().Model(&was).WherePK().Exec(ctx)
		return err
	})
	if err != nil {
		return api.Person{}, api.Invitation{}, err
	}
	s.forgetPeople()
	p, err = s.Person(ctx, p.ID)
	return p, invitation, err
}

type linkRow struct {
	bun.BaseModel `bun:"table:links,alias:lnk"`

	ID        api.LinkID   `bun:"id,pk"`
	Hash      []byte       `bun:"hash"`
	Person    api.PersonID `bun:"person_id,nullzero"`
	CreatedAt int64        `bun:"created_at"`
	ExpiresAt int64        `bun:"expires_at"`
	UsedAt    int64        `bun:"used_at"`
	database.Checked
}

func (r *linkRow) Contents() (table, key string, fields []any) {
	return "links", string(r.ID), []any{string(r.ID), r.Hash, string(r.Person), r.CreatedAt, r.ExpiresAt, r.UsedAt}
}

func (r *linkRow) Decode() (api.Link, error) {
	if err := database.CheckRow(r); err != nil {
		return api.Link{}, err
	}
	return api.Link{ID: r.ID, Person: r.Person, CreatedAt: time.UnixMilli(r.CreatedAt).UTC(),
		ExpiresAt: time.UnixMilli(r.ExpiresAt).UTC(), UsedAt: timeOf(r.UsedAt)}, nil
}

// AddLink stores a one-time link under the hash of its token. Those that are over are forgotten.
func (s *Store) AddLink(ctx context.Context, l api.Link, hash [32]byte) (api.Link, error) {
	l.CreatedAt = database.Stamp(s.db.Now())
	l.ExpiresAt, l.UsedAt = database.Stamp(l.ExpiresAt), nil
	if l.ID == "" {
		l.ID = api.LinkID(api.NewID(api.LinkPrefix, l.CreatedAt))
	}
	row := &linkRow{ID: l.ID, Hash: hash[:], Person: l.Person, CreatedAt: l.CreatedAt.UnixMilli(),
		ExpiresAt: l.ExpiresAt.UnixMilli()}
	database.SetChecksum(row)
	err := s.db.Change(ctx, "add one-time link", func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewDelete().Model((*linkRow)(nil)).Where("expires_at < ?", row.CreatedAt).Exec(ctx); err != nil {
			return err
		}
		return database.Insert(ctx, tx, row, nil, noPerson(l.Person))
	})
	return l, err
}

// LinkByHash finds a one-time link that can still be used, or fails with api.ErrNotFound.
func (s *Store) LinkByHash(ctx context.Context, hash [32]byte) (api.Link, error) {
	return database.One[api.Link, linkRow](ctx, s.db, s.db.Read.NewSelect().Where("hash = ?", hash[:]).Where("used_at = 0").
		Where("expires_at > ?", s.db.Now().UnixMilli()), "link")
}

// Links lists the one-time links that can still be used, the youngest first.
func (s *Store) Links(ctx context.Context) ([]api.Link, error) {
	return database.List[api.Link, linkRow](ctx, s.db, s.db.Read.NewSelect().Where("used_at = 0").
		Where("expires_at > ?", s.db.Now().UnixMilli()).Order("id DESC").Limit(200), "links")
}

// RevokeLink takes back a one-time link that was not used yet, or fails with api.ErrNotFound.
func (s *Store) RevokeLink(ctx context.Context, id api.LinkID) error {
	return s.db.Change(ctx, "revoke one-time link", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewDelete().Model((*linkRow)(nil)).Where("id = ?", id).Where("used_at = 0").Exec(ctx)
		return database.Changed(res, err, fmt.Errorf("link: %w", api.ErrNotFound))
	})
}

// UseLink uses up a one-time link, or fails with api.ErrNotFound. Of many who try at once, one succeeds.
func (s *Store) UseLink(ctx context.Context, hash [32]byte) (l api.Link, err error) {
	at := database.Stamp(s.db.Now())
	err = s.db.Change(ctx, "use one-time link", func(ctx context.Context, tx bun.Tx) error {
		var row linkRow
		err := database.ForUpdate(tx.NewSelect().Model(&row).Where("hash = ?", hash[:]).Where("used_at = 0").
			Where("expires_at > ?", at.UnixMilli())).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("link: %w", api.ErrNotFound)
		}
		if err != nil {
			return err
		}
		if l, err = row.Decode(); err != nil {
			return err
		}
		l.UsedAt, row.UsedAt = &at, at.UnixMilli()
		database.SetChecksum(&row)
		_, err = tx.NewUpdate().Model(&row).Column("used_at", "checksum").WherePK().Exec(ctx)
		return err
	})
	return l, err
}
