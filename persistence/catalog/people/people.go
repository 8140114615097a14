package people

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

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
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
	database.Checked
}

// personBody is what of a person is never asked for.
type personBody struct {
	Name     string `json:"name"`
	Operator bool   `json:"operator,omitempty"`
}

func (r *personRow) Contents() (table, key string, fields []any) {
	return "people", string(r.ID), []any{
		string(r.ID), r.Email, r.Issuer, r.Subject, r.Password, []byte(r.Body), r.CreatedAt, r.DisabledAt,
	}
}

func newPersonRow(p api.Person, password string) (*personRow, error) {
	body, err := database.EncodeBody(personBody{Name: p.Name, Operator: p.Operator})
	r := &personRow{ID: p.ID, Email: p.Email, Issuer: p.Issuer, Subject: p.Subject, Password: password, Body: body,
		CreatedAt: p.CreatedAt.UnixMilli(), DisabledAt: milliOf(p.DisabledAt)}
	database.SetChecksum(r)
	return r, err
}

func (r *personRow) Decode() (api.Person, error) {
	if err := database.CheckRow(r); err != nil {
		return api.Person{}, err
	}
	var body personBody
	if err := database.DecodeBody(r.Body, &body, "person "+string(r.ID)); err != nil {
		return api.Person{}, err
	}
	return api.Person{ID: r.ID, Email: r.Email, Name: body.Name, HasPassword: r.Password != "", Issuer: r.Issuer,
		Subject: r.Subject, Operator: body.Operator, Roles: map[api.OrgID]api.Role{}, CreatedAt: time.UnixMilli(r.CreatedAt).UTC(),
		DisabledAt: timeOf(r.DisabledAt), SeenAt: timeOf(r.SeenAt)}, nil
}

// milliOf and timeOf keep times that may be missing as milliseconds, 0 if they are.
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
	database.Checked
}

func (r *memberRow) Contents() (table, key string, fields []any) {
	return "memberships", r.ID, []any{r.ID, string(r.Person), string(r.Org), string(r.Role), r.CreatedAt}
}

func newMemberRow(person api.PersonID, org api.OrgID, role api.Role, at time.Time) *memberRow {
	r := &memberRow{ID: string(person) + "/" + string(org), Person: person, Org: org, Role: role,
		CreatedAt: at.UnixMilli()}
	database.SetChecksum(r)
	return r
}

func noPerson(id api.PersonID) error { return fmt.Errorf("person %q: %w", id, api.ErrNotFound) }

// AddPerson stores a new person with the roles that are given, and what is kept of the password, which may be nothing.
// An email address or an identity that another person has is api.ErrConflict.
func (s *Store) AddPerson(ctx context.Context, p api.Person, password string) (api.Person, error) {
	p, err := s.fillPerson(p)
	if err != nil {
		return api.Person{}, err
	}
	err = s.db.Change(ctx, "add person", func(ctx context.Context, tx bun.Tx) error {
		return s.insertPerson(ctx, tx, p, password)
	})
	if err != nil {
		return api.Person{}, err
	}
	s.forgetPeople()
	p.HasPassword = password != ""
	return p, nil
}

func (s *Store) fillPerson(p api.Person) (api.Person, error) {
	p.Email, p.Name = api.CleanEmail(p.Email), strings.TrimSpace(p.Name)
	if err := p.Validate(); err != nil {
		return p, err
	}
	if p.CreatedAt.IsZero() {
		p.CreatedAt = s.db.Now()
	}
	p.CreatedAt = database.Stamp(p.CreatedAt)
	if p.ID == "" {
		p.ID = api.PersonID(api.NewID(api.PersonPrefix, p.CreatedAt))
	}
	return p, nil
}

func (s *Store) insertPerson(ctx context.Context, tx bun.Tx, p api.Person, password string) error {
	row, err := newPersonRow(p, password)
	if err != nil {
		return err
	}
	if _, err := tx.NewInsert().Model(row).Exec(ctx); err != nil {
		return database.Refused(err, database.Conflict("there is a person with the address %s, or with this identity, already", p.Email), nil)
	}
	for _, org := range slices.Sorted(maps.Keys(p.Roles)) {
		if err := addMember(ctx, tx, p.ID, org, p.Roles[org], p.CreatedAt); err != nil {
			return err
		}
	}
	return nil
}

func addMember(ctx context.Context, tx bun.Tx, id api.PersonID, org api.OrgID, role api.Role, at time.Time) error {
	return database.Insert(ctx, tx, newMemberRow(id, org, role, at), database.Conflict("this person is in the organization already"), fmt.Errorf("organization %q: %w", org, api.ErrNotFound))
}

// Person finds a person with the roles that this person has now, or fails with api.ErrNotFound.
func (s *Store) Person(ctx context.Context, id api.PersonID) (api.Person, error) {
	p, err := s.people.Get(ctx, id)
	if errors.Is(err, api.ErrNotFound) {
		return p, noPerson(id)
	}
	return p, err
}

func (s *Store) loadPerson(ctx context.Context, id api.PersonID) (api.Person, error) {
	p, _, err := s.findPerson(ctx, "id = ?", string(id))
	return p, err
}

// PersonByEmail finds a person and what is kept of the password, or fails with api.ErrNotFound.
func (s *Store) PersonByEmail(ctx context.Context, email string) (_ api.Person, password string, _ error) {
	return s.findPerson(ctx, "email = ?", api.CleanEmail(email))
}

// PersonByIdentity finds the person whom a provider knows under that name, or fails with api.ErrNotFound.
func (s *Store) PersonByIdentity(ctx context.Context, issuer, subject string) (api.Person, error) {
	p, _, err := s.findPerson(ctx, "issuer = ? AND subject = ?", issuer, subject)
	return p, err
}

// Password is what is kept of a person's password, or nothing if there is none.
func (s *Store) Password(ctx context.Context, id api.PersonID) (string, error) {
	_, password, err := s.findPerson(ctx, "id = ?", string(id))
	return password, err
}

func (s *Store) findPerson(ctx context.Context, where string, values ...string) (api.Person, string, error) {
	args := make([]any, len(values))
	for i, v := range values {
		if !database.Askable(v) {
			return api.Person{}, "", api.ErrNotFound
		}
		args[i] = v
	}
	var row personRow
	err := s.db.Read.NewSelect().Model(&row).Where(where, args...).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return api.Person{}, "", fmt.Errorf("person: %w", api.ErrNotFound)
	}
	if err != nil {
		return api.Person{}, "", s.db.Fail("find person", err)
	}
	people, err := s.withRoles(ctx, []personRow{row})
	if err != nil {
		return api.Person{}, "", err
	}
	if len(people) == 0 {
		return api.Person{}, "", s.db.Fail("find person", database.CheckRow(&row))
	}
	return people[0], row.Password, nil
}

// withRoles are the people of rows with their roles. Damaged rows are left out and logged; a damaged membership gives
// no role.
func (s *Store) withRoles(ctx context.Context, rows []personRow) ([]api.Person, error) {
	ids := make([]api.PersonID, 0, len(rows))
	out := make([]api.Person, 0, len(rows))
	at := map[api.PersonID]int{}
	for i := range rows {
		p, err := rows[i].Decode()
		if err != nil {
			s.db.Log.Error("skipped a damaged catalog row", "catalog", s.db.Name, "error", err)
			continue
		}
		if seen, ok := s.seen.person(p.ID); ok && (p.SeenAt == nil || seen.After(*p.SeenAt)) {
			p.SeenAt = &seen
		}
		at[p.ID] = len(out)
		ids, out = append(ids, p.ID), append(out, p)
	}
	if len(ids) == 0 {
		return out, nil
	}
	var members []memberRow
	err := s.db.Read.NewSelect().Model(&members).Where("person_id IN ?", bun.Tuple(ids)).Order("created_at").Scan(ctx)
	if err != nil {
		return nil, s.db.Fail("list memberships", err)
	}
	first := make([]int64, len(out))
	for i := range members {
		if err := database.CheckRow(&members[i]); err != nil {
			s.db.Log.Error("skipped a damaged catalog row", "catalog", s.db.Name, "error", err)
			continue
		}
		n := at[members[i].Person]
		switch p := &out[n]; {
		case len(p.Roles) == 0:
			p.Home, first[n] = members[i].Org, members[i].CreatedAt
		case members[i].CreatedAt == first[n]:
			p.Home = ""
		}
		out[n].Roles[members[i].Org] = members[i].Role
	}
	return out, nil
}

// People lists everybody who may sign in, by email address.
func (s *Store) People(ctx context.Context) ([]api.Person, error) {
	var rows []personRow
	if err := s.db.Read.NewSelect().Model(&rows).Order("email").Scan(ctx); err != nil {
		return nil, s.db.Fail("list people", err)
	}
	return s.withRoles(ctx, rows)
}

// Members lists the people of an organization, by email address.
func (s *Store) Members(ctx context.Context, org api.OrgID) ([]api.Member, error) {
	var members []memberRow
	if err := s.db.Read.NewSelect().Model(&members).Where("org_id = ?", org).Scan(ctx); err != nil {
		return nil, s.db.Fail("list members", err)
	}
	since := map[api.PersonID]int64{}
	for _, m := range members {
		since[m.Person] = m.CreatedAt
	}
	var rows []personRow
	in := s.db.Read.NewSelect().Model((*memberRow)(nil)).Column("person_id").Where("org_id = ?", org)
	if err := s.db.Read.NewSelect().Model(&rows).Where("id IN (?)", in).Order("email").Scan(ctx); err != nil {
		return nil, s.db.Fail("list members", err)
	}
	people, err := s.withRoles(ctx, rows)
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
func (s *Store) changePerson(ctx context.Context, doing string, id api.PersonID,
	change func(context.Context, bun.Tx, *personRow) error) error {
	err := s.db.Change(ctx, doing, func(ctx context.Context, tx bun.Tx) error {
		var row personRow
		err := database.Lock(ctx, tx.NewSelect().Model(&row).Where("id = ?", id), noPerson(id))
		if err == nil {
			err = database.CheckRow(&row)
		}
		if err != nil {
			return err
		}
		if err := change(ctx, tx, &row); err != nil {
			return err
		}
		database.SetChecksum(&row)
		_, err = tx.NewUpdate().Model(&row).WherePK().ExcludeColumn("seen_at").Exec(ctx)
		return database.Refused(err, database.Conflict("another person has this address or identity"), nil)
	})
	if err == nil {
		s.forgetPeople()
	}
	return err
}

// SetPassword replaces what is kept of a person's password.
func (s *Store) SetPassword(ctx context.Context, id api.PersonID, password string) error {
	return s.changePerson(ctx, "set the password", id, func(_ context.Context, _ bun.Tx, r *personRow) error {
		r.Password = password
		return nil
	})
}

// RenamePerson changes how a person is called.
func (s *Store) RenamePerson(ctx context.Context, id api.PersonID, name string) error {
	return s.changePerson(ctx, "rename person", id, func(_ context.Context, _ bun.Tx, r *personRow) error {
		name = strings.TrimSpace(name)
		if err := (api.Person{Email: r.Email, Name: name}).Validate(); err != nil {
			return err
		}
		return r.changeBody(func(b *personBody) { b.Name = name })
	})
}

// SetOperator makes a person an operator of the server, or takes that away. Who becomes one signs in again.
func (s *Store) SetOperator(ctx context.Context, id api.PersonID, operator bool) error {
	return s.changePerson(ctx, "set the operator", id, func(ctx context.Context, tx bun.Tx, r *personRow) error {
		var was bool
		err := r.changeBody(func(b *personBody) { was, b.Operator = b.Operator, operator })
		switch {
		case err != nil || was == operator:
			return err
		case was:
			return s.takesBack(ctx, tx, id, "")
		}
		return s.beginsAfresh(ctx, tx, id)
	})
}

// beginsAfresh ends a person's sessions and unused links. An owner of the one organization that a person was in may have
// made a link, and may hold a session by it: neither reaches what the person is given beyond that organization.
func (s *Store) beginsAfresh(ctx context.Context, tx bun.Tx, id api.PersonID) error {
	_, err := tx.NewDelete().Model((*linkRow)(nil)).Where("person_id = ?", id).Where("used_at = 0").Exec(ctx)
	if err != nil {
		return err
	}
	return endSessions(ctx, tx, database.Stamp(s.db.Now()), func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("person_id = ?", id)
	})
}

// operates reports whether the person is an operator.
func (r *personRow) operates() bool {
	var body personBody
	return database.DecodeBody(r.Body, &body, "person "+string(r.ID)) == nil && body.Operator
}

// changeBody changes what is kept in a row's body. The caller sets the checksum.
func (r *personRow) changeBody(change func(*personBody)) error {
	var body personBody
	err := database.DecodeBody(r.Body, &body, "person "+string(r.ID))
	if err == nil {
		change(&body)
		r.Body, err = database.EncodeBody(body)
	}
	return err
}

// LinkIdentity says under which name a provider knows a person.
func (s *Store) LinkIdentity(ctx context.Context, id api.PersonID, issuer, subject string) error {
	return s.changePerson(ctx, "link the identity", id, func(_ context.Context, _ bun.Tx, r *personRow) error {
		r.Issuer, r.Subject = issuer, subject
		return nil
	})
}

// DisablePerson keeps a person from signing in, or lets the person in again; sessions end. The last owner of an
// organization stays.
func (s *Store) DisablePerson(ctx context.Context, id api.PersonID, disable bool) error {
	at := database.Stamp(s.db.Now())
	return s.changePerson(ctx, "disable person", id, func(ctx context.Context, tx bun.Tx, r *personRow) error {
		if !disable {
			r.DisabledAt = 0
			return nil
		}
		err := s.leavesOwners(ctx, tx, id)
		if err == nil && r.operates() {
			err = s.takesBack(ctx, tx, id, "")
		}
		if err != nil {
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

// SetRole gives a person a role in an organization, also one who is not in it yet, and who then signs in again. The last
// owner stays one.
func (s *Store) SetRole(ctx context.Context, id api.PersonID, org api.OrgID, role api.Role) error {
	if !role.Valid() {
		return &api.InvalidError{Problems: []api.Problem{{Field: "role", Message: "must be viewer, editor or owner"}}}
	}
	return s.changePerson(ctx, "set the role", id, func(ctx context.Context, tx bun.Tx, _ *personRow) error {
		if role != api.RoleOwner {
			if err := s.leavesOwner(ctx, tx, id, org); err != nil {
				return err
			}
		}
		row := newMemberRow(id, org, role, s.db.Now())
		var was memberRow
		err := database.ForUpdate(tx.NewSelect().Model(&was).Where("id = ?", row.ID)).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return errors.Join(s.beginsAfresh(ctx, tx, id), addMember(ctx, tx, id, org, role, s.db.Now()))
		}
		if err != nil {
			return err
		}
		row.CreatedAt = was.CreatedAt
		database.SetChecksum(row)
		_, err = tx.NewUpdate().Model(row).WherePK().Exec(ctx)
		return err
	})
}

// RemoveMember takes a person out of an organization, at once. A person who is in no other one is forgotten, with what
// was kept of the password and with all sessions. The last owner stays.
func (s *Store) RemoveMember(ctx context.Context, id api.PersonID, org api.OrgID) error {
	err := s.db.Change(ctx, "remove person", func(ctx context.Context, tx bun.Tx) error {
		if err := s.leavesOwner(ctx, tx, id, org); err != nil {
			return err
		}
		res, err := tx.NewDelete().Model((*memberRow)(nil)).Where("person_id = ?", id).Where("org_id = ?", org).Exec(ctx)
		if err := database.Changed(res, err, noPerson(id)); err != nil {
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
		s.forgetPeople()
	}
	return err
}

// leavesOwners refuses if an organization would have no owner without a person.
func (s *Store) leavesOwners(ctx context.Context, tx bun.Tx, id api.PersonID) error {
	var orgs []api.OrgID
	err := tx.NewSelect().Model((*memberRow)(nil)).Column("org_id").Where("person_id = ?", id).Order("org_id").
		Scan(ctx, &orgs)
	for _, org := range orgs {
		if err == nil {
			err = s.leavesOwner(ctx, tx, id, org)
		}
	}
	return err
}

// leavesOwner refuses if the organization would have no owner without a person. The organization's row is held, so
// that two owners cannot remove each other at once.
func (s *Store) leavesOwner(ctx context.Context, tx bun.Tx, id api.PersonID, org api.OrgID) error {
	var row database.OrganizationRow
	err := database.Lock(ctx, tx.NewSelect().Model(&row).Where("id = ?", org), fmt.Errorf("organization %q: %w", org, api.ErrNotFound))
	if err != nil {
		return err
	}
	var owners []api.PersonID
	err = tx.NewSelect().Model((*memberRow)(nil)).Column("person_id").Where("org_id = ?", org).
		Where("role = ?", api.RoleOwner).Join("JOIN people AS per ON per.id = mem.person_id").
		Where("per.disabled_at = 0").Scan(ctx, &owners)
	switch {
	case err != nil || !slices.Contains(owners, id):
		return err
	case len(owners) == 1:
		return database.Conflict("this is the last owner of the organization: make somebody else an owner first")
	}
	return s.takesBack(ctx, tx, id, org)
}

// takesBack ends what somebody may have made to come back by who owns an organization no more, or who no more runs the
// server if none is named: their open invitations, and unused links that lead in as others.
func (s *Store) takesBack(ctx context.Context, tx bun.Tx, id api.PersonID, org api.OrgID) error {
	links := tx.NewDelete().Model((*linkRow)(nil)).Where("used_at = 0").Where("person_id <> ?", id)
	open := tx.NewSelect().Model((*invitationRow)(nil)).Where("ended_at = 0").Order("id")
	if org != "" {
		links = links.Where("person_id IN (?)", tx.NewSelect().Model((*memberRow)(nil)).Column("person_id").Where("org_id = ?", org))
		open = open.Where("org_id = ?", org)
	}
	if _, err := links.Exec(ctx); err != nil {
		return err
	}
	var rows []invitationRow
	if err := database.ForUpdate(open).Scan(ctx, &rows); err != nil {
		return err
	}
	at := database.Stamp(s.db.Now())
	for i := range rows {
		made, err := rows[i].Decode()
		if err != nil || made.ByID != id { // a damaged one lets nobody in
			continue
		}
		made.RevokedAt = &at
		if err := rows[i].set(made); err != nil {
			return err
		}
		if _, err := tx.NewUpdate().Model(&rows[i]).Column("body", "ended_at", "checksum").WherePK().Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// forgetPeople makes later lookups of people and of sessions ask the database.
func (s *Store) forgetPeople() {
	s.db.Forget(lookPeople, lookSessions)
}

// operatorsMigration is the migration that makes operators of those who were ones as owners of the default organization.
const operatorsMigration = "20261127000001"

// makeOperators makes operators of the people who own the default organization and may sign in, and tells the log.
// Until this migration each owner of that organization was one. A damaged row makes nobody an operator.
func makeOperators(ctx context.Context, db bun.IDB, _ time.Time) (func(*database.DB), error) {
	var made []string
	var owners []memberRow
	if err := db.NewSelect().Model(&owners).Where("org_id = ?", api.DefaultOrg).Order("id").Scan(ctx); err != nil {
		return nil, err
	}
	for i := range owners {
		var row personRow
		if database.CheckRow(&owners[i]) != nil || owners[i].Role != api.RoleOwner {
			continue
		}
		if err := db.NewSelect().Model(&row).Where("id = ?", owners[i].Person).Scan(ctx); err != nil {
			return nil, err
		}
		if database.CheckRow(&row) != nil || row.DisabledAt != 0 {
			continue
		}
		if err := row.changeBody(func(b *personBody) { b.Operator = true }); err != nil {
			return nil, err
		}
		database.SetChecksum(&row)
		if _, err := db.NewUpdate().Model(&row).Column("body", "checksum").WherePK().Exec(ctx); err != nil {
			return nil, err
		}
		made = append(made, row.Email)
	}
	return func(db *database.DB) {
		if len(made) > 0 {
			db.Log.Warn("made the owners of the default organization operators", "catalog", db.Name, "people", made)
		}
	}, nil
}
