package web

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"docent/api"
)

// invitationLife is how long an invitation can be accepted.
const invitationLife = 7 * 24 * time.Hour

type peopleView struct {
	Organization string
	Members      []memberLine
	Invitations  []api.Invitation
	Roles        []api.Role
	Provider     string
	Link         string // shown once
	LinkFor      string // what the link is
	Problems     map[string]string
	Email        string
	Role         api.Role
}

type memberLine struct {
	api.Member
	You  bool
	Only bool // is in no other organization: an owner may do with the account what an operator may
}

// only reports whether a person is in that organization alone, and so in the hands of its owners.
func only(p api.Person, org api.OrgID) bool {
	_, ok := p.Roles[org]
	return ok && len(p.Roles) == 1
}

func (s *Server) peopleOf(v *visit) (peopleView, error) {
	view := peopleView{Roles: api.Roles, Role: api.RoleViewer}
	var err error
	if view.Organization, err = s.People.Organization(v.Context(), v.org); err != nil {
		return view, api.Named(err, "organization")
	}
	members, err := s.People.Members(v.Context(), v.org)
	if err != nil {
		return view, err
	}
	for _, m := range members {
		view.Members = append(view.Members, memberLine{m, m.ID == v.who.person.ID, only(m.Person, v.org)})
	}
	if v.may(owner) {
		if view.Invitations, err = s.People.Invitations(v.Context(), v.org); err != nil {
			return view, err
		}
	}
	if s.Provider != nil {
		view.Provider = s.Provider.Name()
	}
	return view, nil
}

func (s *Server) showPeople(v *visit) error {
	view, err := s.peopleOf(v)
	if err != nil {
		return err
	}
	return s.render(v, "people", "People", view)
}

func (v *visit) peoplePath() string { return "/console/" + string(v.org) + "/people" }

// invite makes an invitation. Its link is on the page that answers, and nowhere else.
func (s *Server) invite(v *visit) error {
	role, email := api.Role(v.form().Get("role")), api.CleanEmail(v.form().Get("email"))
	token := rand.Text()
	i, err := s.People.AddInvitation(v.Context(), api.Invitation{Org: v.org, Role: role, Email: email, By: v.who.name,
		CreatedAt: v.now, ExpiresAt: v.now.Add(invitationLife)}, api.HashSecret(token))
	view, also := s.peopleOf(v)
	if also != nil {
		return also
	}
	if errors.Is(err, api.ErrInvalid) {
		view.Problems, view.Email, view.Role = problemsOf(err), email, role
		return s.renderStatus(v, http.StatusBadRequest, "people", "People", view)
	}
	if err != nil {
		return err
	}
	v.audit("invitation.create", cmp.Or(email, string(i.ID)), "as "+string(role))
	view.Link = v.absolute("/invite/" + token)
	view.LinkFor = fmt.Sprintf("lets one person in as %s, within seven days", role)
	if email != "" {
		view.LinkFor = fmt.Sprintf("lets %s in as %s, within seven days", email, role)
	}
	return s.render(v, "people", "People", view)
}

func (s *Server) revokeInvitation(v *visit) error {
	i, err := s.People.RevokeInvitation(v.Context(), v.org, api.InvitationID(v.form().Get("invitation")))
	if err != nil {
		return api.Named(err, "open invitation")
	}
	v.audit("invitation.revoke", cmp.Or(i.Email, string(i.ID)), "")
	return v.done(v.peoplePath(), "The invitation is taken back.")
}

// member is the person that a form is about, who must be in the address's organization.
func (s *Server) member(v *visit) (api.Person, error) {
	p, err := s.People.Person(v.Context(), api.PersonID(v.form().Get("person")))
	if err != nil {
		return p, api.Named(err, "person")
	}
	if _, ok := p.Roles[v.org]; !ok {
		return p, api.Missing("person")
	}
	return p, nil
}

func (s *Server) changeRole(v *visit) error {
	p, err := s.member(v)
	if err != nil {
		return err
	}
	role := api.Role(v.form().Get("role"))
	if err := s.People.SetRole(v.Context(), p.ID, v.org, role); err != nil {
		return err
	}
	v.audit("person.role", p.Email, fmt.Sprintf("%s, was %s", role, p.Roles[v.org]))
	return v.done(v.peoplePath(), p.Name+" is now "+string(role)+".")
}

func (s *Server) removePerson(v *visit) error {
	p, err := s.member(v)
	if err != nil {
		return err
	}
	if err := s.People.RemoveMember(v.Context(), p.ID, v.org); err != nil {
		return err
	}
	v.audit("person.remove", p.Email, "was "+string(p.Roles[v.org]))
	return v.done(v.peoplePath(), p.Name+" is removed, and all sessions have ended.")
}

var errElsewhere = &api.StateError{Kind: api.ErrForbidden,
	Reason: "this person is in another organization too: only who runs the server can do this, with the command docent person"}

// disablePerson keeps a person out, or lets the person in again.
func (s *Server) disablePerson(v *visit) error {
	p, err := s.member(v)
	if err != nil {
		return err
	}
	if !only(p, v.org) && !v.may(operator) {
		return errElsewhere
	}
	disable := v.form().Get("enable") == ""
	if err := s.People.DisablePerson(v.Context(), p.ID, disable); err != nil {
		return err
	}
	if disable {
		v.audit("person.disable", p.Email, "")
		return v.done(v.peoplePath(), p.Name+" cannot sign in any more, and all sessions have ended.")
	}
	v.audit("person.enable", p.Email, "")
	return v.done(v.peoplePath(), p.Name+" can sign in again.")
}

// endPersonsSessions signs a person out everywhere, as when a device is lost.
func (s *Server) endPersonsSessions(v *visit) error {
	p, err := s.member(v)
	if err != nil {
		return err
	}
	if !only(p, v.org) && !v.may(operator) {
		return errElsewhere
	}
	if err := s.People.EndSessionsOf(v.Context(), api.SessionQuery{Person: p.ID}); err != nil {
		return err
	}
	v.audit("session.end", p.Email, "all")
	return v.done(v.peoplePath(), "All sessions of "+p.Name+" have ended.")
}

// linkPerson makes a link by which a person gets in who has lost the password. Who holds it is that person: it is for
// people of this organization alone, so that no owner gets into another one by it.
func (s *Server) linkPerson(v *visit) error {
	p, err := s.member(v)
	if err != nil {
		return err
	}
	if !only(p, v.org) && !v.may(operator) {
		return errElsewhere
	}
	token := rand.Text()
	_, err = s.People.AddLink(v.Context(), api.Link{Person: p.ID, ExpiresAt: v.now.Add(linkGood)}, api.HashSecret(token))
	if err != nil {
		return err
	}
	v.audit("person.link", p.Email, "a one-time link")
	view, err := s.peopleOf(v)
	if err != nil {
		return err
	}
	view.Link = v.absolute("/enter/" + token)
	view.LinkFor = "lets " + p.Email + " in once, within a day, to choose a password"
	return s.render(v, "people", "People", view)
}
