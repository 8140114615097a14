package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"docent/api"

	"github.com/uptrace/bun"
)

type invitationRow struct {
	bun.BaseModel `bun:"table:invitations,alias:inv"`

	ID        api.InvitationID `bun:"id,pk"`
	Hash      []byte           `bun:"hash"`
	Org       api.OrgID        `bun:"org_id"`
	Body      json.RawMessage  `bun:"body"`
	ExpiresAt int64            `bun:"expires_at"`
	EndedAt   int64            `bun:"ended_at"` // used or revoked
	checked
}

func (r *invitationRow) contents() (table, key string, fields []any) {
	return "invitations", string(r.ID), []any{
		string(r.ID), r.Hash, string(r.Org), []byte(r.Body), r.ExpiresAt, r.EndedAt,
	}
}

func (r *invitationRow) value() (api.Invitation, error) {
	var i api.Invitation
	if err := checkRow(r); err != nil {
		return i, err
	}
	err := decodeBody(r.Body, &i, "invitation "+string(r.ID))
	i.ID, i.Org = r.ID, r.Org
	return i, err
}

func (r *invitationRow) set(i api.Invitation) (err error) {
	r.ID, r.Org, r.ExpiresAt = i.ID, i.Org, i.ExpiresAt.UnixMilli()
	r.EndedAt = max(milliOf(i.UsedAt), milliOf(i.RevokedAt))
	if r.Body, err = encodeBody(i); err == nil {
		setChecksum(r)
	}
	return err
}

// AddInvitation stores an invitation under the hash of its token. Those that were over a month ago are forgotten.
func (c *Catalog) AddInvitation(ctx context.Context, i api.Invitation, hash [32]byte) (api.Invitation, error) {
	i.Email = api.CleanEmail(i.Email)
	if err := i.Validate(); err != nil {
		return api.Invitation{}, err
	}
	if i.CreatedAt.IsZero() {
		i.CreatedAt = c.now()
	}
	i.CreatedAt, i.ExpiresAt = stamp(i.CreatedAt), stamp(i.ExpiresAt)
	if i.ID == "" {
		i.ID = api.InvitationID(api.NewID(api.InvitationPrefix, i.CreatedAt))
	}
	row := &invitationRow{Hash: hash[:]}
	if err := row.set(i); err != nil {
		return api.Invitation{}, err
	}
	err := c.change(ctx, "add invitation", func(ctx context.Context, tx bun.Tx) error {
		old := i.CreatedAt.AddDate(0, -1, 0).UnixMilli()
		if _, err := tx.NewDelete().Model((*invitationRow)(nil)).Where("expires_at < ?", old).Exec(ctx); err != nil {
			return err
		}
		_, err := tx.NewInsert().Model(row).Exec(ctx)
		if violates(err, reference) {
			return fmt.Errorf("organization %q: %w", i.Org, api.ErrNotFound)
		}
		return err
	})
	return i, err
}

var errNoInvitation = fmt.Errorf("invitation: %w", api.ErrNotFound)

// InvitationByHash finds an invitation by the hash of its token, whether it is open or over.
func (c *Catalog) InvitationByHash(ctx context.Context, hash [32]byte) (api.Invitation, error) {
	return one[api.Invitation, invitationRow](ctx, c, c.read.NewSelect().Where("hash = ?", hash[:]), "invitation")
}

// Invitations lists the invitations of an organization that can still be accepted, the youngest first.
func (c *Catalog) Invitations(ctx context.Context, org api.OrgID) ([]api.Invitation, error) {
	now := c.now()
	all, err := list[api.Invitation, invitationRow](ctx, c, c.read.NewSelect().Where("org_id = ?", org).
		Where("ended_at = 0").Where("expires_at > ?", now.UnixMilli()).Order("id DESC"), "invitations")
	return slices.DeleteFunc(all, func(i api.Invitation) bool { return !i.Open(now) }), err
}

// changeInvitation changes an invitation that is open, or fails with api.ErrNotFound.
func (c *Catalog) changeInvitation(ctx context.Context, tx bun.Tx, which func(*bun.SelectQuery) *bun.SelectQuery,
	change func(*api.Invitation) error) (api.Invitation, error) {
	var row invitationRow
	err := forUpdate(which(tx.NewSelect().Model(&row))).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return api.Invitation{}, errNoInvitation
	}
	if err != nil {
		return api.Invitation{}, err
	}
	i, err := row.value()
	if err != nil {
		return i, err
	}
	if !i.Open(c.now()) {
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
func (c *Catalog) RevokeInvitation(ctx context.Context, org api.OrgID, id api.InvitationID) (i api.Invitation, err error) {
	at := stamp(c.now())
	err = c.change(ctx, "revoke invitation", func(ctx context.Context, tx bun.Tx) error {
		i, err = c.changeInvitation(ctx, tx, func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.Where("id = ?", id).Where("org_id = ?", org)
		}, func(i *api.Invitation) error { i.RevokedAt = &at; return nil })
		return err
	})
	return i, err
}

// AcceptInvitation uses up an invitation and lets a person into its organization: one who is there already where p has
// an id, and else a new one. Where that fails the invitation stays open. A person who is in the organization keeps the
// higher role.
func (c *Catalog) AcceptInvitation(ctx context.Context, hash [32]byte, p api.Person, password string) (
	api.Person, api.Invitation, error) {
	at, known := stamp(c.now()), p.ID != ""
	if !known {
		var err error
		p.Roles = nil
		if p, err = c.fillPerson(p); err != nil {
			return api.Person{}, api.Invitation{}, err
		}
	}
	var invitation api.Invitation
	err := c.change(ctx, "accept invitation", func(ctx context.Context, tx bun.Tx) (err error) {
		invitation, err = c.changeInvitation(ctx, tx, func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.Where("hash = ?", hash[:])
		}, func(i *api.Invitation) error {
			if i.Email != "" && i.Email != p.Email {
				return &api.StateError{Kind: api.ErrForbidden, Reason: "this invitation is for another e-mail address"}
			}
			i.UsedAt, i.UsedBy = &at, p.ID
			return nil
		})
		if err != nil {
			return err
		}
		if !known {
			if err := c.insertPerson(ctx, tx, p, password); err != nil {
				return err
			}
			return addMember(ctx, tx, p.ID, invitation.Org, invitation.Role, at)
		}
		var was memberRow
		err = forUpdate(tx.NewSelect().Model(&was).Where("person_id = ?", p.ID).Where("org_id = ?", invitation.Org)).Scan(ctx)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return addMember(ctx, tx, p.ID, invitation.Org, invitation.Role, at)
		case err != nil || was.Role.AtLeast(invitation.Role):
			return err
		}
		was.Role = invitation.Role
		setChecksum(&was)
		_, err = tx.NewUpdate().Model(&was).WherePK().Exec(ctx)
		return err
	})
	if err != nil {
		return api.Person{}, api.Invitation{}, err
	}
	c.forgetPeople()
	p, err = c.Person(ctx, p.ID)
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
	checked
}

func (r *linkRow) contents() (table, key string, fields []any) {
	return "links", string(r.ID), []any{string(r.ID), r.Hash, string(r.Person), r.CreatedAt, r.ExpiresAt, r.UsedAt}
}

func (r *linkRow) value() (api.Link, error) {
	if err := checkRow(r); err != nil {
		return api.Link{}, err
	}
	return api.Link{ID: r.ID, Person: r.Person, CreatedAt: time.UnixMilli(r.CreatedAt).UTC(),
		ExpiresAt: time.UnixMilli(r.ExpiresAt).UTC(), UsedAt: timeOf(r.UsedAt)}, nil
}

// AddLink stores a one-time link under the hash of its token. Those that are over are forgotten.
func (c *Catalog) AddLink(ctx context.Context, l api.Link, hash [32]byte) (api.Link, error) {
	l.CreatedAt = stamp(c.now())
	l.ExpiresAt, l.UsedAt = stamp(l.ExpiresAt), nil
	if l.ID == "" {
		l.ID = api.LinkID(api.NewID(api.LinkPrefix, l.CreatedAt))
	}
	row := &linkRow{ID: l.ID, Hash: hash[:], Person: l.Person, CreatedAt: l.CreatedAt.UnixMilli(),
		ExpiresAt: l.ExpiresAt.UnixMilli()}
	setChecksum(row)
	err := c.change(ctx, "add one-time link", func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewDelete().Model((*linkRow)(nil)).Where("expires_at < ?", row.CreatedAt).Exec(ctx); err != nil {
			return err
		}
		_, err := tx.NewInsert().Model(row).Exec(ctx)
		if violates(err, reference) {
			return noPerson(l.Person)
		}
		return err
	})
	return l, err
}

// LinkByHash finds a one-time link that can still be used, or fails with api.ErrNotFound.
func (c *Catalog) LinkByHash(ctx context.Context, hash [32]byte) (api.Link, error) {
	return one[api.Link, linkRow](ctx, c, c.read.NewSelect().Where("hash = ?", hash[:]).Where("used_at = 0").
		Where("expires_at > ?", c.now().UnixMilli()), "link")
}

// UseLink uses up a one-time link, or fails with api.ErrNotFound. Of many who try at once, one succeeds.
func (c *Catalog) UseLink(ctx context.Context, hash [32]byte) (l api.Link, err error) {
	at := stamp(c.now())
	err = c.change(ctx, "use one-time link", func(ctx context.Context, tx bun.Tx) error {
		var row linkRow
		err := forUpdate(tx.NewSelect().Model(&row).Where("hash = ?", hash[:]).Where("used_at = 0").
			Where("expires_at > ?", at.UnixMilli())).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("link: %w", api.ErrNotFound)
		}
		if err != nil {
			return err
		}
		if l, err = row.value(); err != nil {
			return err
		}
		l.UsedAt, row.UsedAt = &at, at.UnixMilli()
		setChecksum(&row)
		_, err = tx.NewUpdate().Model(&row).Column("used_at", "checksum").WherePK().Exec(ctx)
		return err
	})
	return l, err
}
