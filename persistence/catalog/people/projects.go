package people

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/internal/idn"
	"docent/persistence/catalog/database"
)

func (r *projectRow) Contents() (table, key string, fields []any) {
	return "projects", string(r.ID), []any{string(r.ID), string(r.Org), r.Domain, []byte(r.Body), r.CreatedAt}
}

type projectRow struct {
	bun.BaseModel `bun:"table:projects"`

	ID        api.ProjectID   `bun:"id,pk"`
	Org       api.OrgID       `bun:"org_id"`
	Domain    string          `bun:"domain"`
	Body      json.RawMessage `bun:"body"`
	CreatedAt time.Time       `bun:"created_at"`
	database.Checked
}

func newProjectRow(p api.Project) (*projectRow, error) {
	body, err := database.EncodeBody(p)
	r := &projectRow{ID: p.ID, Org: p.Org, Domain: p.Domain, Body: body, CreatedAt: p.CreatedAt}
	database.SetChecksum(r)
	return r, err
}

func (r *projectRow) Decode() (api.Project, error) {
	var p api.Project
	if err := database.CheckRow(r); err != nil {
		return p, err
	}
	if err := database.DecodeBody(r.Body, &p, "project "+string(r.ID)); err != nil {
		return api.Project{}, err
	}
	p.ID, p.Org, p.Domain, p.CreatedAt = r.ID, r.Org, r.Domain, r.CreatedAt.UTC()
	return p, nil
}

// AddProject stores a new project, with its defaults filled in (api.Project.WithDefaults, the default organization, the
// time). It fails with *api.InvalidError when settings are wrong, and with a *api.StateError of kind api.ErrConflict
// when the id or the domain is taken.
func (s *Store) AddProject(ctx context.Context, p api.Project) (api.Project, error) {
	p.Domain = idn.ASCII(p.Domain)
	p = p.WithDefaults()
	p.Org = cmp.Or(p.Org, api.DefaultOrg)
	if p.CreatedAt.IsZero() {
		p.CreatedAt = s.db.Now()
	}
	p.CreatedAt = database.Stamp(p.CreatedAt)
	if err := p.Validate(); err != nil {
		return api.Project{}, err
	}
	row, err := newProjectRow(p)
	if err != nil {
		return api.Project{}, err
	}
	err = s.db.Change(ctx, "add project", func(ctx context.Context, tx bun.Tx) error {
		return database.Insert(ctx, tx, row, errTaken, fmt.Errorf("organization %q: %w", p.Org, api.ErrNotFound))
	})
	if errors.Is(err, errTaken) {
		return api.Project{}, s.taken(ctx, p)
	}
	if err != nil {
		return api.Project{}, err
	}
	s.forgetProjects()
	return p, nil
}

// UpdateProject replaces the settings of a project; its organization and its creation stay.
func (s *Store) UpdateProject(ctx context.Context, p api.Project) (api.Project, error) {
	return s.ChangeProject(ctx, p.ID, func(api.Project) (api.Project, error) { return p, nil })
}

// ChangeProject replaces the settings of a project by what change makes of them as they stand; nobody else changes them
// meanwhile, on any node. Change may be called again.
func (s *Store) ChangeProject(
	ctx context.Context, id api.ProjectID, change func(api.Project) (api.Project, error),
) (p api.Project, err error) {
	err = s.db.Change(ctx, "update project", func(ctx context.Context, tx bun.Tx) error {
		var row projectRow
		if err := database.ForUpdate(tx.NewSelect().Model(&row).Where("id = ?", id)).Scan(ctx); errors.Is(err, sql.ErrNoRows) {
			return database.NoProject(id)
		} else if err != nil {
			return err
		}
		was, err := row.Decode()
		if err == nil {
			p, err = change(was)
		}
		if err != nil {
			return err
		}
		p.Domain = idn.ASCII(p.Domain)
		p = p.WithDefaults()
		p.ID, p.Org, p.CreatedAt = was.ID, was.Org, was.CreatedAt
		if err := p.Validate(); err != nil {
			return err
		}
		now, err := newProjectRow(p)
		if err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(now).WherePK().Exec(ctx)
		return database.Refused(err, errTaken, nil)
	})
	if errors.Is(err, errTaken) {
		return api.Project{}, s.taken(ctx, p)
	}
	if err != nil {
		return api.Project{}, err
	}
	s.forgetProjects()
	return p, nil
}

var errTaken = errors.New("the id or the domain is taken")

// RemoveProject forgets a project and its keys. Its jobs, threads and repository stay where they are.
func (s *Store) RemoveProject(ctx context.Context, id api.ProjectID) error {
	err := s.db.Change(ctx, "remove project", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewDelete().Model((*database.SettingRow)(nil)).Where("name = ?", deliverySetting+string(id)).Exec(ctx)
		if err != nil {
			return err
		}
		res, err := tx.NewDelete().Model((*projectRow)(nil)).Where("id = ?", id).Exec(ctx)
		return database.Changed(res, err, database.NoProject(id))
	})
	if err != nil {
		return err
	}
	s.forgetProjects()
	s.db.Forget(lookKeys)
	return nil
}

// Project finds a project by its id, or fails with api.ErrNotFound.
func (s *Store) Project(ctx context.Context, id api.ProjectID) (api.Project, error) {
	p, err := s.projects.Get(ctx, id)
	if errors.Is(err, api.ErrNotFound) {
		return p, database.NoProject(id)
	}
	return p, err
}

// ProjectByDomain finds the project that a domain belongs to, or fails with api.ErrNotFound.
func (s *Store) ProjectByDomain(ctx context.Context, domain string) (api.Project, error) {
	p, err := s.domains.Get(ctx, idn.ASCII(domain))
	if errors.Is(err, api.ErrNotFound) {
		return p, fmt.Errorf("project of domain %q: %w", domain, api.ErrNotFound)
	}
	return p, err
}

// Projects lists all projects by id.
func (s *Store) Projects(ctx context.Context) ([]api.Project, error) {
	return database.List[api.Project, projectRow](ctx, s.db, s.db.Read.NewSelect().Order("id"), "projects")
}

func (s *Store) loadProject(ctx context.Context, id api.ProjectID) (api.Project, error) {
	return s.findProject(ctx, "id = ?", string(id))
}

func (s *Store) loadDomain(ctx context.Context, domain string) (api.Project, error) {
	return s.findProject(ctx, "domain = ?", domain)
}

func (s *Store) findProject(ctx context.Context, where, value string) (api.Project, error) {
	if !database.Askable(value) {
		return api.Project{}, api.ErrNotFound
	}
	return database.One[api.Project, projectRow](ctx, s.db, s.db.Read.NewSelect().Where(where, value), "project")
}

// taken says which of a project's names belongs to another one.
func (s *Store) taken(ctx context.Context, p api.Project) error {
	var row projectRow
	err := s.db.Read.NewSelect().Model(&row).Where("domain = ?", p.Domain).Where("id <> ?", p.ID).Scan(ctx)
	if err == nil {
		return database.Conflict("the domain %q belongs to the project %q already", p.Domain, row.ID)
	}
	return database.Conflict("a project with the id %q exists already", p.ID)
}

func (s *Store) forgetProjects() {
	s.db.Forget(lookProjects)
}

// reportsMigration is the migration since which a project's report has no webhook of its own, which had the time zone.
const reportsMigration = "20261128000002"

// moveTimeZones gives projects the time zones of their reports. package work takes the table away after that.
func moveTimeZones(ctx context.Context, tx bun.IDB, _ time.Time) (func(*database.DB), error) {
	var hooks []struct {
		Project api.ProjectID   `bun:"project_id"`
		Body    json.RawMessage `bun:"body"`
	}
	if err := tx.NewRaw("SELECT project_id, body FROM report_hooks").Scan(ctx, &hooks); err != nil {
		return nil, err
	}
	for _, h := range hooks {
		var old struct{ TimeZone string }
		var row projectRow
		if json.Unmarshal(h.Body, &old) != nil || old.TimeZone == "" {
			continue
		}
		if err := tx.NewSelect().Model(&row).Where("id = ?", h.Project).Scan(ctx); err != nil {
			return nil, err
		}
		p, err := row.Decode()
		if err != nil {
			continue // it is damaged
		}
		p.TimeZone = old.TimeZone
		now, err := newProjectRow(p)
		if err != nil {
			return nil, err
		}
		if _, err := tx.NewUpdate().Model(now).Column("body", "checksum").WherePK().Exec(ctx); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
