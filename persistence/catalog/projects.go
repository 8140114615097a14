package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"docent/api"

	"github.com/uptrace/bun"
)

type projectRow struct {
	bun.BaseModel `bun:"table:projects"`

	ID        api.ProjectID   `bun:"id,pk"`
	Org       api.OrgID       `bun:"org_id"`
	Domain    string          `bun:"domain"`
	Body      json.RawMessage `bun:"body"`
	CreatedAt time.Time       `bun:"created_at"`
	checked
}

func newProjectRow(p api.Project) (*projectRow, error) {
	body, err := encodeBody(p)
	r := &projectRow{ID: p.ID, Org: p.Org, Domain: p.Domain, Body: body, CreatedAt: p.CreatedAt}
	setChecksum(r)
	return r, err
}

func (r *projectRow) value() (api.Project, error) {
	var p api.Project
	if err := checkRow(r); err != nil {
		return p, err
	}
	if err := decodeBody(r.Body, &p, "project "+string(r.ID)); err != nil {
		return api.Project{}, err
	}
	p.ID, p.Org, p.Domain, p.CreatedAt = r.ID, r.Org, r.Domain, r.CreatedAt.UTC()
	return p, nil
}

// AddProject stores a new project, with its defaults filled in (api.Project.WithDefaults, the default organization, the
// time). It fails with *api.InvalidError when settings are wrong, and with a *api.StateError of kind api.ErrConflict
// when the id or the domain is taken.
func (c *Catalog) AddProject(ctx context.Context, p api.Project) (api.Project, error) {
	p = p.WithDefaults()
	if p.Org == "" {
		p.Org = DefaultOrg
	}
	if p.CreatedAt.IsZero() {
		p.CreatedAt = c.now()
	}
	p.CreatedAt = stamp(p.CreatedAt)
	if err := p.Validate(); err != nil {
		return api.Project{}, err
	}
	row, err := newProjectRow(p)
	if err != nil {
		return api.Project{}, err
	}
	err = c.change(ctx, "add project", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(row).Exec(ctx)
		switch {
		case violates(err, unique):
			return errTaken
		case violates(err, reference):
			return fmt.Errorf("organization %q: %w", p.Org, api.ErrNotFound)
		}
		return err
	})
	if errors.Is(err, errTaken) {
		return api.Project{}, c.taken(ctx, p)
	}
	if err != nil {
		return api.Project{}, err
	}
	c.forgetProjects()
	return p, nil
}

// UpdateProject replaces the settings of a project; its organization and its creation stay.
func (c *Catalog) UpdateProject(ctx context.Context, p api.Project) (api.Project, error) {
	return c.ChangeProject(ctx, p.ID, func(api.Project) (api.Project, error) { return p, nil })
}

// ChangeProject replaces the settings of a project by what change makes of them as they stand; nobody else changes them
// meanwhile, on any node. Change may be called again.
func (c *Catalog) ChangeProject(
	ctx context.Context, id api.ProjectID, change func(api.Project) (api.Project, error),
) (p api.Project, err error) {
	err = c.change(ctx, "update project", func(ctx context.Context, tx bun.Tx) error {
		var row projectRow
		if err := forUpdate(tx.NewSelect().Model(&row).Where("id = ?", id)).Scan(ctx); errors.Is(err, sql.ErrNoRows) {
			return noProject(id)
		} else if err != nil {
			return err
		}
		was, err := row.value()
		if err == nil {
			p, err = change(was)
		}
		if err != nil {
			return err
		}
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
		if violates(err, unique) {
			return errTaken
		}
		return err
	})
	if errors.Is(err, errTaken) {
		return api.Project{}, c.taken(ctx, p)
	}
	if err != nil {
		return api.Project{}, err
	}
	c.forgetProjects()
	return p, nil
}

var errTaken = errors.New("the id or the domain is taken")

// RemoveProject forgets a project and its keys. Its jobs, threads and repository stay where they are.
func (c *Catalog) RemoveProject(ctx context.Context, id api.ProjectID) error {
	err := c.change(ctx, "remove project", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewDelete().Model((*settingRow)(nil)).Where("name = ?", deliverySetting+string(id)).Exec(ctx)
		if err != nil {
			return err
		}
		res, err := tx.NewDelete().Model((*projectRow)(nil)).Where("id = ?", id).Exec(ctx)
		return changed(res, err, noProject(id))
	})
	if err != nil {
		return err
	}
	c.forgetProjects()
	c.forget(lookKeys)
	return nil
}

// Project finds a project by its id, or fails with api.ErrNotFound.
func (c *Catalog) Project(ctx context.Context, id api.ProjectID) (api.Project, error) {
	p, err := c.projects.get(ctx, id)
	if errors.Is(err, api.ErrNotFound) {
		return p, noProject(id)
	}
	return p, err
}

// ProjectByDomain finds the project that a domain belongs to, or fails with api.ErrNotFound.
func (c *Catalog) ProjectByDomain(ctx context.Context, domain string) (api.Project, error) {
	p, err := c.domains.get(ctx, strings.ToLower(domain))
	if errors.Is(err, api.ErrNotFound) {
		return p, fmt.Errorf("project of domain %q: %w", domain, api.ErrNotFound)
	}
	return p, err
}

// Projects lists all projects by id.
func (c *Catalog) Projects(ctx context.Context) ([]api.Project, error) {
	return list[api.Project, projectRow](ctx, c, c.read.NewSelect().Order("id"), "projects")
}

func (c *Catalog) loadProject(ctx context.Context, id api.ProjectID) (api.Project, error) {
	return c.findProject(ctx, "id = ?", string(id))
}

func (c *Catalog) loadDomain(ctx context.Context, domain string) (api.Project, error) {
	return c.findProject(ctx, "domain = ?", domain)
}

func (c *Catalog) findProject(ctx context.Context, where, value string) (api.Project, error) {
	if !askable(value) {
		return api.Project{}, api.ErrNotFound
	}
	return one[api.Project, projectRow](ctx, c, c.read.NewSelect().Where(where, value), "project")
}

// taken says which of a project's names belongs to another one.
func (c *Catalog) taken(ctx context.Context, p api.Project) error {
	var row projectRow
	err := c.read.NewSelect().Model(&row).Where("domain = ?", p.Domain).Where("id <> ?", p.ID).Scan(ctx)
	if err == nil {
		return conflict("the domain %q belongs to the project %q already", p.Domain, row.ID)
	}
	return conflict("a project with the id %q exists already", p.ID)
}

func (c *Catalog) forgetProjects() {
	c.forget(lookProjects)
}

func noProject(id api.ProjectID) error { return fmt.Errorf("project %q: %w", id, api.ErrNotFound) }
