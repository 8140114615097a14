package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/uptrace/bunrouter"

	"docent/api"
)

// A Need is what a visitor must be to see a page or do what it offers.
type Need uint8

// What a visitor must be.
const (
	Anybody  Need = iota // no session
	SignedIn             // any session
	Viewer               // this role, or a greater one, in the organization of the address
	Editor               // likewise
	Owner                // likewise
	Operator             // who runs the server: a person who was made an operator, or who came by the printed link
)

// NotKeys beside a need keeps out sessions that were opened with a key: the page is about who may do what.
const NotKeys Need = 1 << 7

// least is a need without what stands beside it.
func (n Need) least() Need { return n &^ NotKeys }

// String returns the need as Rule has it.
func (n Need) String() string {
	return [...]string{"anybody", "signed in", "viewer", "editor", "owner", "operator"}[n.least()]
}

// role is the least role that a need asks for.
func (n Need) role() api.Role {
	return map[Need]api.Role{Viewer: api.RoleViewer, Editor: api.RoleEditor, Owner: api.RoleOwner}[n.least()]
}

// A Route is one page, or one thing that a form does, with what a visitor must be for it.
type Route struct {
	method, pattern string
	need            Need
	serve           func(*Visit) error
	upload          bool // its form has a file
}

// Get returns the route of a page.
func Get(pattern string, need Need, serve func(*Visit) error) Route {
	return Route{http.MethodGet, pattern, need, serve, false}
}

// Post returns the route of what a form does.
func Post(pattern string, need Need, serve func(*Visit) error) Route {
	return Route{http.MethodPost, pattern, need, serve, false}
}

// Upload returns the route of a form with a file, which stands behind its fields.
func Upload(pattern string, need Need, serve func(*Visit) error) Route {
	return Route{http.MethodPost, pattern, need, serve, true}
}

// ProjectPath is the part of an address that names a project: its organization and its domain.
const ProjectPath = "/console/:org/:domain"

// guard is a page behind what every visit passes: who it is, which project is meant, and for forms that they come from
// a page of ours.
func (s *Server) guard(r Route) bunrouter.HandlerFunc {
	return func(w http.ResponseWriter, req bunrouter.Request) error {
		a := w.(*answer)
		v := &Visit{ResponseWriter: a.ResponseWriter, Req: req.Request, params: req, Client: a.client, secure: a.secure,
			Now: s.Now(), route: r, server: s}
		if err := s.recognize(v); err != nil {
			return err
		}
		if r.method == http.MethodPost {
			read := v.readForm
			if r.upload {
				read = v.readUpload
			}
			if err := read(); err != nil {
				return err
			}
		}
		if r.need != Anybody && !v.SignedIn {
			return v.SeeOther("/login?next=" + url.QueryEscape(v.page()))
		}
		if r.method == http.MethodPost && !s.ours(v) {
			return errForm
		}
		if err := s.place(v, r); err != nil {
			return err
		}
		if inOneMemory(r.pattern) {
			if err := s.Setting(v.Context()); err != nil {
				return err
			}
		}
		return r.serve(v)
	}
}

// inOneMemory reports whether a page shows or changes what one process remembers: drafts of projects, and tasks on
// sources.
func inOneMemory(pattern string) bool {
	return strings.HasPrefix(pattern, "/console/setup") || strings.HasPrefix(pattern, ProjectPath+"/sources")
}

// place finds the organization and the project of an address, and refuses who may not be there.
func (s *Server) place(v *Visit, r Route) error {
	if r.need.least() == Operator && !v.Who.Rights.Operator {
		return api.Missing("page")
	}
	v.Org = api.OrgID(v.Param("org"))
	if v.Org == "" {
		return nil
	}
	role := v.Who.Role(v.Org)
	if !role.Valid() {
		return api.Missing("page") // even if there is no such organization
	}
	if domain := v.Param("domain"); domain != "" {
		p, err := s.Catalog.ProjectByDomain(v.Context(), domain)
		if err != nil {
			return api.Named(err, "project")
		}
		if p.Org != v.Org {
			return api.Missing("project")
		}
		v.Project = p
		v.About("", "")
	}
	if need := r.need.role(); need != "" && !role.AtLeast(need) {
		return &api.StateError{Kind: api.ErrForbidden, Reason: "this needs the role " + string(need) +
			", and yours is " + string(role) + "; an owner of the organization can change it"}
	}
	return v.withinKey(r)
}

// withinKey refuses what a session that was opened with a key may not do: what decides on who may do what, and what the
// key's scopes deny at the API.
func (v *Visit) withinKey(r Route) error {
	switch {
	case v.Who.Rights.Key == nil:
		return nil
	case r.need&NotKeys != 0:
		return &api.StateError{Kind: api.ErrForbidden,
			Reason: "this needs a person: a session that was opened with a key sees neither people nor keys nor the audit log"}
	case !v.Who.Rights.Admits(r.method):
		return &api.StateError{Kind: api.ErrForbidden, Reason: "this key lacks the scope " + api.ScopeOf(r.method)}
	}
	return nil
}
