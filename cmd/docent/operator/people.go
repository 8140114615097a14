package operator

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"docent/api"
	"docent/cmd/docent/config"
)

// How long one-time links are good: the operator's is opened by who has just asked for it, a person's is sent on.
const (
	OperatorLink = time.Hour
	personLink   = 24 * time.Hour
)

type (
	// LinkMade is a link that lets somebody into the console once.
	LinkMade struct {
		ID        api.LinkID `json:"id"`
		URL       string     `json:"url"`
		ExpiresAt time.Time  `json:"expiresAt"`
		Serving   bool       `json:"serving"` // a server runs that it leads to
	}
	// PersonParams describe a person, or a change to one.
	PersonParams struct {
		Email   string    `json:"email"`
		Name    string    `json:"name,omitempty"`
		Org     api.OrgID `json:"organization,omitempty"`
		Role    api.Role  `json:"role,omitempty"`
		Disable bool      `json:"disable,omitempty"`
		// Operator makes the person an operator of the server.
		Operator bool `json:"operator,omitempty"`
	}
	// PersonMade is a new person with the link to the first password.
	PersonMade struct {
		api.Person
		Link LinkMade `json:"link"`
	}
	// AuditParams say which entries of the audit log are listed.
	AuditParams struct {
		Org   api.OrgID `json:"organization"`
		Limit int       `json:"limit"`
	}
)

// Link makes a one-time link: the operator's, or a person's.
func (o *Service) Link(ctx context.Context, person api.PersonID, life time.Duration) (LinkMade, error) {
	token, at := rand.Text(), time.Now().Add(life)
	l, err := o.stores.Catalog.AddLink(ctx, api.Link{Person: person, ExpiresAt: at}, api.HashSecret(token))
	if err != nil {
		return LinkMade{}, err
	}
	return LinkMade{ID: l.ID, URL: config.ConsoleURL(o.stores.Config) + "/enter/" + token, ExpiresAt: l.ExpiresAt, Serving: o.server != nil}, nil
}

func (o *Service) consoleLink(ctx context.Context, _ struct{}) (LinkMade, error) {
	return o.Link(ctx, "", OperatorLink)
}

// personOf finds the person with an email address.
func (o *Service) personOf(ctx context.Context, email string) (api.Person, error) {
	p, _, err := o.stores.Catalog.PersonByEmail(ctx, email)
	if err != nil {
		return p, fmt.Errorf("person %q: %w", email, err)
	}
	return p, nil
}

func (o *Service) addPerson(ctx context.Context, p PersonParams) (PersonMade, error) {
	name := p.Name
	if name == "" {
		name, _, _ = strings.Cut(p.Email, "@")
	}
	made, err := o.stores.Catalog.AddPerson(ctx, api.Person{Email: p.Email, Name: name,
		Roles: map[api.OrgID]api.Role{p.Org: p.Role}, Operator: p.Operator}, "")
	if err != nil {
		return PersonMade{}, err
	}
	link, err := o.Link(ctx, made.ID, personLink)
	return PersonMade{made, link}, err
}

func (o *Service) listPeople(ctx context.Context, _ struct{}) ([]api.Person, error) {
	return o.stores.Catalog.People(ctx)
}

func (o *Service) setRole(ctx context.Context, p PersonParams) error {
	person, err := o.personOf(ctx, p.Email)
	if err != nil {
		return err
	}
	return o.stores.Catalog.SetRole(ctx, person.ID, p.Org, p.Role)
}

// makeOperator makes a person an operator of the server, or takes that away. Who reaches the server's own commands is one.
func (o *Service) makeOperator(ctx context.Context, p PersonParams) error {
	person, err := o.personOf(ctx, p.Email)
	if err != nil {
		return err
	}
	return o.stores.Catalog.SetOperator(ctx, person.ID, p.Operator)
}

func (o *Service) removePerson(ctx context.Context, p PersonParams) error {
	person, err := o.personOf(ctx, p.Email)
	if err != nil {
		return err
	}
	return o.stores.Catalog.RemoveMember(ctx, person.ID, p.Org)
}

func (o *Service) enablePerson(ctx context.Context, p PersonParams) error {
	person, err := o.personOf(ctx, p.Email)
	if err != nil {
		return err
	}
	return o.stores.Catalog.DisablePerson(ctx, person.ID, p.Disable)
}

func (o *Service) linkPerson(ctx context.Context, p PersonParams) (LinkMade, error) {
	person, err := o.personOf(ctx, p.Email)
	if err != nil {
		return LinkMade{}, err
	}
	return o.Link(ctx, person.ID, personLink)
}

func (o *Service) listAudit(ctx context.Context, p AuditParams) ([]api.AuditEntry, error) {
	var all []api.AuditEntry
	for len(all) < p.Limit {
		q := api.AuditQuery{Org: p.Org, Limit: min(p.Limit-len(all), 1000)}
		if len(all) > 0 {
			q.After = all[len(all)-1].ID
		}
		page, err := o.stores.Catalog.AuditLog(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < q.Limit {
			break
		}
	}
	return all, nil
}
