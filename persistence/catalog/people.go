package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"docent/api"

	"github.com/uptrace/bun"
)

type personRow struct {
	bun.BaseModel `bun:"table:people,alias:per"`

	ID         api.PersonID    `bun:"id,pk"`
	Email      string          `bun:"email"`
	Issuer     string          `bun:"issuer,nullzero"`
	Subject    string          `bun:"subject,nullzero"`
	Password   string          `bun:"password"`
	Body       json.RawMessage `bun:"body"`
	CreatedAt  int64           `bun:"created_at"`
	DisabledAt int64           `bun:"disabled_at"`
	SeenAt     int64           `bun:"seen_at"`
	checked
}

// personBody is what of a person is never asked for.
type personBody struct {
	Name string `json:"name"`
}

func (r *personRow) contents() (table, key string, fields []any) {
	return "people", string(r.ID), []any{
		string(r.ID), r.Email, r.Issuer, r.Subject, r.Password, []byte(r.Body), r.CreatedAt, r.DisabledAt,
	}
}

func newPersonRow(p api.Person, password string) (*personRow, error) {
	body, err := encodeBody(personBody{Name: p.Name})
	r := &personRow{ID: p.ID, Email: p.Email, Issuer: p.Issuer, Subject: p.Subject, Password: password, Body: body,
		CreatedAt: p.CreatedAt.UnixMilli(), DisabledAt: milliOf(p.DisabledAt)}
	setChecksum(r)
	return r, err
}

func (r *personRow) value() (api.Person, error) {
	if err := checkRow(r); err != nil {
		return api.Person{}, err
	}
	var body personBody
	if err := decodeBody(r.Body, &body, "person "+string(r.ID)); err != nil {
		return api.Person{}, err
	}
	return api.Person{ID: r.ID, Email: r.Email, Name: body.Name, HasPassword: r.Password != "", Issuer: r.Issuer,
		Subject: r.Subject, Roles: map[api.OrgID]api.Role{}, CreatedAt: time.UnixMilli(r.CreatedAt).UTC(),
		DisabledAt: timeOf(r.DisabledAt), SeenAt: timeOf(r.SeenAt)}, nil
}

// milliOf and timeOf keep times that may be missing as milliseconds, 0 where they are.
func milliOf(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(milli int64) *time.Time {
	if milli == 0 {
		return nil
	}
	t := time.UnixMilli(milli).UTC()
	return &t
}

type memberRow struct {
	bun.BaseModel `bun:"table:memberships,alias:mem"`

	ID        string       `bun:"id,pk"`
	Person    api.PersonID `bun:"person_id"`
	Org       api.OrgID    `bun:"org_id"`
	Role      api.Role     `bun:"role"`
	CreatedAt int64        `bun:"created_at"`
	checked
}

func (r *memberRow) contents() (table, key string, fields []any) {
	return "memberships", r.ID, []any{r.ID, string(r.Person), string(r.Org), string(r.Role), r.CreatedAt}
}

func newMemberRow(person api.PersonID, org api.OrgID, role api.Role, at time.Time) *memberRow {
	r := &memberRow{ID: string(person) + "/" + string(org), Person: person, Org: org, Role: role,
		CreatedAt: at.UnixMilli()}
	setChecksum(r)
	return r
}

func noPerson(id api.PersonID) error { return fmt.Errorf("person %q: %w", id, api.ErrNotFound) }

// AddPerson stores a new person with the roles that are given, and what is kept of the password, which may be nothing.
// An e-mail address or an identity that another person has is api.ErrConflict.
func (c *Catalog) AddPerson(ctx context.Context, p api.Person, password string) (api.Person, error) {
	p, err := c.fillPerson(p)
	if err != nil {
		return api.Person{}, err
	}
	err = c.change(ctx, "add person", func(ctx context.Context, tx bun.Tx) error {
		return c.insertPerson(ctx, tx, p, password)
	})
	if err != nil {
		return api.Person{}, err
	}
	c.forgetPeople()
	p.HasPassword = password != ""
	return p, nil
}

func (c *Catalog) fillPerson(p api.Person) (api.Person, error) {
	p.Email, p.Name = api.CleanEmail(p.Email), strings.TrimSpace(p.Name)
	if err := p.Validate(); err != nil {
		return p, err
	}
	if p.CreatedAt.IsZero() {
		p.CreatedAt = c.now()
	}
	p.CreatedAt = stamp(p.CreatedAt)
	if p.ID == "" {
		p.ID = api.PersonID(api.NewID(api.PersonPrefix, p.CreatedAt))
	}
	return p, nil
}

func (c *Catalog) insertPerson(ctx context.Context, tx bun.Tx, p api.Person, password string) error {
	row, err := newPersonRow(p, password)
	if err != nil {
		return err
	}
	if _, err := tx.NewInsert().Model(row).Exec(ctx); err != nil {
		if violates(err, unique) {
			return conflict("there is a person with the address %s, or with this identity, already", p.Email)
		}
		return err
	}
	for _, org := range slices.Sorted(maps.Keys(p.Roles)) {
		if err := addMember(ctx, tx, p.ID, org, p.Roles[org], p.CreatedAt); err != nil {
			return err
		}
	}
	return nil
}

func addMember(ctx context.Context, tx bun.Tx, id api.PersonID, org api.OrgID, role api.Role, at time.Time) error {
	_, err := tx.NewInsert().Model(newMemberRow(id, org, role, at)).Exec(ctx)
	switch {
	case violates(err, unique):
		return conflict("this person is in the organization already")
	case violates(err, reference):
		return fmt.Errorf("organization %q: %w", org, api.ErrNotFound)
	}
	return err
}

// Person finds a person with the roles that this person has now, or fails with api.ErrNotFound.
func (c *Catalog) Person(ctx context.Context, id api.PersonID) (api.Person, error) {
	p, err := c.people.get(ctx, id)
	if errors.Is(err, api.ErrNotFound) {
		return p, noPerson(id)
	}
	return p, err
}

func (c *Catalog) loadPerson(ctx context.Context, id api.PersonID) (api.Person, error) {
	p, _, err := c.findPerson(ctx, "id = ?", string(id))
	return p, err
}

// PersonByEmail finds a person and what is kept of the password, or fails with api.ErrNotFound.
func (c *Catalog) PersonByEmail(ctx context.Context, email string) (_ api.Person, password string, _ error) {
	return c.findPerson(ctx, "email = ?", api.CleanEmail(email))
}

// PersonByIdentity finds the person whom a provider knows under that name, or fails with api.ErrNotFound.
func (c *Catalog) PersonByIdentity(ctx context.Context, issuer, subject string) (api.Person, error) {
	p, _, err := c.findPerson(ctx, "issuer = ? AND subject = ?", issuer, subject)
	return p, err
}

// Password is what is kept of a person's password, or nothing where there is none.
func (c *Catalog) Password(ctx context.Context, id api.PersonID) (string, error) {
	_, password, err := c.findPerson(ctx, "id = ?", string(id))
	return password, err
}

func (c *Catalog) findPerson(ctx context.Context, where string, values ...string) (api.Person, string, error) {
	args := make([]any, len(values))
	for i, v := range values {
		if !askable(v) {
			return api.Person{}, "", api.ErrNotFound
		}
		args[i] = v
	}
	var row personRow
	err := c.read.NewSelect().Model(&row).Where(where, args...).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return api.Person{}, "", fmt.Errorf("person: %w", api.ErrNotFound)
	}
	if err != nil {
		return api.Person{}, "", c.fail("find person", err)
	}
	people, err := c.withRoles(ctx, []personRow{row})
	if err != nil {
		return api.Person{}, "", err
	}
	if len(people) == 0 {
		return api.Person{}, "", c.fail("find person", checkRow(&row))
	}
	return people[0], row.Password, nil
}

// withRoles are the people of rows with their roles. Damaged rows are left out and logged; a damaged membership gives
// no role.
func (c *Catalog) withRoles(ctx context.Context, rows []personRow) ([]api.Person, error) {
	ids := make([]api.PersonID, 0, len(rows))
	out := make([]api.Person, 0, len(rows))
	at := map[api.PersonID]int{}
	for i := range rows {
		p, err := rows[i].value()
		if err != nil {
			c.log.Error("a row of the catalogue is left out", "catalog", c.name, "error", err)
			continue
		}
		if seen, ok := c.seen.person(p.ID); ok && (p.SeenAt == nil || seen.After(*p.SeenAt)) {
			p.SeenAt = &seen
		}
		at[p.ID] = len(out)
		ids, out = append(ids, p.ID), append(out, p)
	}
	if len(ids) == 0 {
		return out, nil
	}
	var members []memberRow
	if err := c.read.NewSelect().Model(&members).Where("person_id IN ?", bun.Tuple(ids)).Scan(ctx); err != nil {
		return nil, c.fail("list memberships", err)
	}
	for i := range members {
		if err := checkRow(&members[i]); err != nil {
			c.log.Error("a row of the catalogue is left out", "catalog", c.name, "error", err)
			continue
		}
		out[at[members[i].Person]].Roles[members[i].Org] = members[i].Role
	}
	return out, nil
}

// People lists everybody who may sign in, by e-mail address.
func (c *Catalog) People(ctx context.Context) ([]api.Person, error) {
	var rows []personRow
	if err := c.read.NewSelect().Model(&rows).Order("email").Scan(ctx); err != nil {
		return nil, c.fail("list people", err)
	}
	return c.withRoles(ctx, rows)
}

// Members lists the people of an organization, by e-mail address.
func (c *Catalog) Members(ctx context.Context, org api.OrgID) ([]api.Member, error) {
	var members []memberRow
	if err := c.read.NewSelect().Model(&members).Where("org_id = ?", org).Scan(ctx); err != nil {
		return nil, c.fail("list members", err)
	}
	since := map[api.PersonID]int64{}
	for _, m := range members {
		since[m.Person] = m.CreatedAt
	}
	var rows []personRow
	in := c.read.NewSelect().Model((*memberRow)(nil)).Column("person_id").Where("org_id = ?", org)
	if err := c.read.NewSelect().Model(&rows).Where("id IN (?)", in).Order("email").Scan(ctx); err != nil {
		return nil, c.fail("list members", err)
	}
	people, err := c.withRoles(ctx, rows)
	if err != nil {
		return nil, err
	}
	out := make([]api.Member, 0, len(people))
	for _, p := range people {
		if role, ok := p.Roles[org]; ok {
			out = append(out, api.Member{Person: p, Role: role, Since: time.UnixMilli(since[p.ID]).UTC()})
		}
	}
	return out, nil
}

// changePerson changes a person's row.
func (c *Catalog) changePerson(ctx context.Context, doing string, id api.PersonID,
	change func(context.Context, bun.Tx, *personRow) error) error {
	err := c.change(ctx, doing, func(ctx context.Context, tx bun.Tx) error {
		var row personRow
		err := forUpdate(tx.NewSelect().Model(&row).Where("id = ?", id)).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return noPerson(id)
		}
		if err == nil {
			err = checkRow(&row)
		}
		if err != nil {
			return err
		}
		if err := change(ctx, tx, &row); err != nil {
			return err
		}
		setChecksum(&row)
		_, err = tx.NewUpdate().Model(&row).WherePK().ExcludeColumn("seen_at").Exec(ctx)
		if violates(err, unique) {
			return conflict("another person has this address or identity")
		}
		return err
	})
	if err == nil {
		c.forgetPeople()
	}
	return err
}

// SetPassword replaces what is kept of a person's password.
func (c *Catalog) SetPassword(ctx context.Context, id api.PersonID, password string) error {
	return c.changePerson(ctx, "set the password", id, func(_ context.Context, _ bun.Tx, r *personRow) error {
		r.Password = password
		return nil
	})
}

// RenamePerson changes how a person is called.
func (c *Catalog) RenamePerson(ctx context.Context, id api.PersonID, name string) error {
	return c.changePerson(ctx, "rename person", id, func(_ context.Context, _ bun.Tx, r *personRow) (err error) {
		name = strings.TrimSpace(name)
		if err := (api.Person{Email: r.Email, Name: name}).Validate(); err != nil {
			return err
		}
		r.Body, err = encodeBody(personBody{Name: name})
		return err
	})
}

// LinkIdentity says under which name a provider knows a person.
func (c *Catalog) LinkIdentity(ctx context.Context, id api.PersonID, issuer, subject string) error {
	return c.changePerson(ctx, "link the identity", id, func(_ context.Context, _ bun.Tx, r *personRow) error {
		r.Issuer, r.Subject = issuer, subject
		return nil
	})
}

// DisablePerson keeps a person from signing in, or lets the person in again; sessions end. The last owner of an
// organization stays.
func (c *Catalog) DisablePerson(ctx context.Context, id api.PersonID, disable bool) error {
	at := stamp(c.now())
	return c.changePerson(ctx, "disable person", id, func(ctx context.Context, tx bun.Tx, r *personRow) error {
		if !disable {
			r.DisabledAt = 0
			return nil
		}
		if err := c.leavesOwners(ctx, tx, id); err != nil {
			return err
		}
		if err := endSessions(ctx, tx, at, func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.Where("person_id = ?", id)
		}); err != nil {
			return err
		}
		r.DisabledAt = at.UnixMilli()
		return nil
	})
}

// SetRole gives a person a role in an organization, also one who is not in it yet. The last owner stays one.
func (c *Catalog) SetRole(ctx context.Context, id api.PersonID, org api.OrgID, role api.Role) error {
	if !role.Valid() {
		return &api.InvalidError{Problems: []api.Problem{{Field: "role", Message: "must be viewer, editor or owner"}}}
	}
	return c.changePerson(ctx, "set the role", id, func(ctx context.Context, tx bun.Tx, _ *personRow) error {
		if role != api.RoleOwner {
			if err := c.leavesOwner(ctx, tx, id, org); err != nil {
				return err
			}
		}
		row := newMemberRow(id, org, role, c.now())
		var was memberRow
		err := forUpdate(tx.NewSelect().Model(&was).Where("id = ?", row.ID)).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return addMember(ctx, tx, id, org, role, c.now())
		}
		if err != nil {
			return err
		}
		row.CreatedAt = was.CreatedAt
		setChecksum(row)
		_, err = tx.NewUpdate().Model(row).WherePK().Exec(ctx)
		return err
	})
}

// RemoveMember takes a person out of an organization, at once. A person who is in no other one is forgotten, with what
// was kept of the password and with all sessions. The last owner stays.
func (c *Catalog) RemoveMember(ctx context.Context, id api.PersonID, org api.OrgID) error {
	err := c.change(ctx, "remove person", func(ctx context.Context, tx bun.Tx) error {
		if err := c.leavesOwner(ctx, tx, id, org); err != nil {
			return err
		}
		res, err := tx.NewDelete().Model((*memberRow)(nil)).Where("person_id = ?", id).Where("org_id = ?", org).Exec(ctx)
		if err := changed(res, err, noPerson(id)); err != nil {
			return err
		}
		left, err := tx.NewSelect().Model((*memberRow)(nil)).Where("person_id = ?", id).Count(ctx)
		if err != nil || left > 0 {
			return err
		}
		_, err = tx.NewDelete().Model((*personRow)(nil)).Where("id = ?", id).Exec(ctx)
		return err
	})
	if err == nil {
		c.forgetPeople()
	}
	return err
}

// leavesOwners refuses where an organization would have no owner without a person.
func (c *Catalog) leavesOwners(ctx context.Context, tx bun.Tx, id api.PersonID) error {
	var orgs []api.OrgID
	err := tx.NewSelect().Model((*memberRow)(nil)).Column("org_id").Where("person_id = ?", id).Order("org_id").
		Scan(ctx, &orgs)
	for _, org := range orgs {
		if err == nil {
			err = c.leavesOwner(ctx, tx, id, org)
		}
	}
	return err
}

// leavesOwner refuses where the organization would have no owner without a person. The organization's row is held, so
// that two owners cannot remove each other at once.
func (c *Catalog) leavesOwner(ctx context.Context, tx bun.Tx, id api.PersonID, org api.OrgID) error {
	var row organizationRow
	err := forUpdate(tx.NewSelect().Model(&row).Where("id = ?", org)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("organization %q: %w", org, api.ErrNotFound)
	}
	if err != nil {
		return err
	}
	var owners []api.PersonID
	err = tx.NewSelect().Model((*memberRow)(nil)).Column("person_id").Where("org_id = ?", org).
		Where("role = ?", api.RoleOwner).Join("JOIN people AS per ON per.id = mem.person_id").
		Where("per.disabled_at = 0").Scan(ctx, &owners)
	if err == nil && slices.Equal(owners, []api.PersonID{id}) {
		return conflict("this is the last owner of the organization: make somebody else an owner first")
	}
	return err
}

// forgetPeople makes later look-ups of people and of sessions ask the database.
func (c *Catalog) forgetPeople() {
	c.forget(lookPeople, lookSessions)
}
