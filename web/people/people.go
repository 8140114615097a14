package people

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"docent/api"
	"docent/web/console"
)

// invitationLife is how long an invitation can be accepted.
const invitationLife = 7 * 24 * time.Hour

// A shownLink lets somebody in; it is shown once.
type shownLink struct {
	Link      string
	LocalOnly bool   // the link leads to this machine: public_url is not set
	LinkFor   string // what the link is
}

type peopleView struct {
	Organization string
	Members      []memberLine
	Invitations  []api.Invitation
	Links        []console.OpenLink // of people whose accounts are in the visitor's hands
	Roles        []api.Role
	Provider     string
	shownLink
	Problems map[string]string
	Email    string
	Role     api.Role
}

type memberLine struct {
	api.Member
	You   bool
	Hands bool // the visitor may do with the account what an operator may
	Keeps bool // the visitor may disable the account and end its sessions
}

// only reports whether a person is in that organization alone, and so in the hands of its owners.
func only(p api.Person, org api.OrgID) bool {
	_, ok := p.Roles[org]
	return ok && len(p.Roles) == 1
}

func (s *handler) peopleOf(v *console.Visit) (peopleView, error) {
	view := peopleView{Roles: api.Roles, Role: api.RoleViewer}
	var err error
	if view.Organization, err = s.Catalog.Organization(v.Context(), v.Org); err != nil {
		return view, api.Named(err, "organization")
	}
	members, err := s.Catalog.Members(v.Context(), v.Org)
	if err != nil {
		return view, err
	}
	for _, m := range members {
		view.Members = append(view.Members, memberLine{m, m.ID == v.Who.Person.ID, inHands(v, m.Person) == nil,
			keeps(v, m.Person) == nil})
	}
	if v.May(console.Owner) {
		if view.Links, err = s.linksOf(v, view.Members); err != nil {
			return view, err
		}
		if view.Invitations, err = s.Catalog.Invitations(v.Context(), v.Org); err != nil {
			return view, err
		}
	}
	if s.Provider != nil {
		view.Provider = s.Provider.Name()
	}
	return view, nil
}

func (s *handler) showPeople(v *console.Visit) error {
	view, err := s.peopleOf(v)
	if err != nil {
		return err
	}
	v.TakeOnce(&view.shownLink)
	return s.Render(v, "people", "People", view)
}

func peoplePath(v *console.Visit) string { return "/console/" + string(v.Org) + "/people" }

// invite makes an invitation. Its link is on the page that it leads to, once, and nowhere else.
func (s *handler) invite(v *console.Visit) error {
	role, email := api.Role(v.Form.Get("role")), api.CleanEmail(v.Form.Get("email"))
	token := rand.Text()
	if err := v.Who.Rights.MayGive(api.GivenRole(v.Org, role)); err != nil {
		return err
	}
	if email != "" && s.Provider == nil {
		return &api.InvalidError{Problems: []api.Problem{{Field: "email",
			Message: "can't be verified without single sign-on: leave it empty, and give the link only to whom it is for"}}}
	}
	i, err := s.Catalog.AddInvitation(v.Context(), api.Invitation{Org: v.Org, Role: role, Email: email, By: v.Who.Name, ByID: v.Who.Person.ID,
		CreatedAt: v.Now, ExpiresAt: v.Now.Add(invitationLife)}, api.HashSecret(token))
	if errors.Is(err, api.ErrInvalid) {
		view, also := s.peopleOf(v)
		if also != nil {
			return also
		}
		view.Problems, view.Email, view.Role = console.Faults(err), email, role
		return s.RenderStatus(v, http.StatusBadRequest, "people", "People", view)
	}
	if err != nil {
		return err
	}
	v.Audit("invitation.create", cmp.Or(email, string(i.ID)), "as "+string(role))
	return v.Once(peoplePath(v), shownLink{v.Absolute("/invite/" + token), v.LocalOnly(),
		fmt.Sprintf("lets %s in as %s, within seven days", cmp.Or(email, "one person"), role)})
}

func (s *handler) revokeInvitation(v *console.Visit) error {
	i, err := s.Catalog.RevokeInvitation(v.Context(), v.Org, api.InvitationID(v.Form.Get("invitation")))
	if err != nil {
		return api.Named(err, "open invitation")
	}
	v.Audit("invitation.revoke", cmp.Or(i.Email, string(i.ID)), "")
	return v.Done(peoplePath(v), "Invitation revoked.")
}

// member is the person that a form is about, who must be in the address's organization.
func (s *handler) member(v *console.Visit) (api.Person, error) {
	p, err := s.Catalog.Person(v.Context(), api.PersonID(v.Form.Get("person")))
	if err != nil {
		return p, api.Named(err, "person")
	}
	if _, ok := p.Roles[v.Org]; !ok {
		return p, api.Missing("person")
	}
	return p, nil
}

func (s *handler) changeRole(v *console.Visit) error {
	p, err := s.member(v)
	if err != nil {
		return err
	}
	role := api.Role(v.Form.Get("role"))
	if err := v.Who.Rights.MayGive(api.GivenRole(v.Org, role)); err != nil {
		return err
	}
	if err := s.Catalog.SetRole(v.Context(), p.ID, v.Org, role); err != nil {
		return err
	}
	v.Audit("person.role", p.Email, fmt.Sprintf("%s, was %s", role, p.Roles[v.Org]))
	return v.Done(peoplePath(v), p.Name+" is now "+string(role)+".")
}

// changeOperator makes a person an operator of the server, or takes that away.
func (s *handler) changeOperator(v *console.Visit) error {
	p, err := s.member(v)
	if err != nil {
		return err
	}
	if err := v.Who.Rights.MayGive(api.Rights{Operator: true}); err != nil {
		return err
	}
	give := v.Form.Get("take") == ""
	if err := s.Catalog.SetOperator(v.Context(), p.ID, give); err != nil {
		return err
	}
	if give {
		v.Audit("person.operator", p.Email, "given")
		return v.Done(peoplePath(v), p.Name+" is now an operator of this server.")
	}
	v.Audit("person.operator", p.Email, "taken away")
	return v.Done(peoplePath(v), p.Name+" is not an operator of this server any more.")
}

func (s *handler) removePerson(v *console.Visit) error {
	p, err := s.member(v)
	if err != nil {
		return err
	}
	if only(p, v.Org) { // who is in no other organization is forgotten
		if err := inHands(v, p); err != nil {
			return err
		}
	}
	if err := s.Catalog.RemoveMember(v.Context(), p.ID, v.Org); err != nil {
		return err
	}
	v.Audit("person.remove", p.Email, "was "+string(p.Roles[v.Org]))
	return v.Done(peoplePath(v), p.Name+" is removed from the organization.")
}

var (
	errElsewhere = &api.StateError{Kind: api.ErrForbidden,
		Reason: "this person is in another organization too: only who runs the server can do this, with the command docent person"}
	errOperators = &api.StateError{Kind: api.ErrForbidden,
		Reason: "this person is an operator of this server: only another operator can do this"}
)

// keeps is inHands for what takes from a person without giving anybody anything: the owners of the organization that the
// person was in first keep the right to it, also after the person has joined another one.
func keeps(v *console.Visit, p api.Person) error {
	if p.Home == v.Org && !p.Operator {
		return nil
	}
	return inHands(v, p)
}

// inHands refuses what is done with a person's account, which is more than one organization's: to people of this
// organization alone its owners may do it, to operators only an operator.
func inHands(v *console.Visit, p api.Person) error {
	switch {
	case v.May(console.Operator):
		return nil
	case !only(p, v.Org):
		return errElsewhere
	case p.Operator:
		return errOperators
	}
	return nil
}

// disablePerson keeps a person out, or lets the person in again.
func (s *handler) disablePerson(v *console.Visit) error {
	p, err := s.member(v)
	if err != nil {
		return err
	}
	if err := keeps(v, p); err != nil {
		return err
	}
	disable := v.Form.Get("enable") == ""
	if !disable {
		if err := v.Who.Rights.MayGive(api.GivenPerson(p)); err != nil {
			return err
		}
	}
	if err := s.Catalog.DisablePerson(v.Context(), p.ID, disable); err != nil {
		return err
	}
	if disable {
		v.Audit("person.disable", p.Email, "")
		return v.Done(peoplePath(v), p.Name+" cannot sign in any more, and all sessions have ended.")
	}
	v.Audit("person.enable", p.Email, "")
	return v.Done(peoplePath(v), p.Name+" can sign in again.")
}

// endPersonsSessions signs a person out everywhere, as when a device is lost.
func (s *handler) endPersonsSessions(v *console.Visit) error {
	p, err := s.member(v)
	if err != nil {
		return err
	}
	if err := keeps(v, p); err != nil {
		return err
	}
	if err := s.Catalog.EndSessionsOf(v.Context(), api.SessionQuery{Person: p.ID}); err != nil {
		return err
	}
	v.Audit("session.end", p.Email, "all")
	return v.Done(peoplePath(v), "All sessions of "+p.Name+" have ended.")
}

// linkPerson makes a link by which a person gets in who has lost the password. Who holds it is that person: it is for
// people of this organization alone, so that no owner gets into another one by it.
func (s *handler) linkPerson(v *console.Visit) error {
	p, err := s.member(v)
	if err != nil {
		return err
	}
	if err := inHands(v, p); err != nil {
		return err
	}
	if err := v.Who.Rights.MayGive(api.GivenPerson(p)); err != nil {
		return err
	}
	token := rand.Text()
	made, err := s.Catalog.AddLink(v.Context(), api.Link{Person: p.ID, ExpiresAt: v.Now.Add(linkGood)}, api.HashSecret(token))
	if err != nil {
		return err
	}
	v.Audit("person.link", p.Email, string(made.ID))
	return v.Once(peoplePath(v), shownLink{v.Absolute("/enter/" + token), v.LocalOnly(),
		"lets " + p.Email + " in once, within a day, to choose a password"})
}

// linksOf are the unused links of those members whose accounts are in the visitor's hands.
func (s *handler) linksOf(v *console.Visit, members []memberLine) (lines []console.OpenLink, err error) {
	links, err := s.Catalog.Links(v.Context())
	for _, l := range links {
		at := slices.IndexFunc(members, func(m memberLine) bool { return m.ID == l.Person })
		if at >= 0 && members[at].Hands {
			lines = append(lines, console.OpenLink{Link: l, For: members[at].Name})
		}
	}
	return lines, err
}

// revokePersonsLink takes back a link that was made for a person of the address's organization.
func (s *handler) revokePersonsLink(v *console.Visit) error {
	view, err := s.peopleOf(v)
	if err != nil {
		return err
	}
	id := api.LinkID(v.Form.Get("link"))
	at := slices.IndexFunc(view.Links, func(l console.OpenLink) bool { return l.ID == id })
	if at < 0 {
		return api.Missing("open link")
	}
	if err := s.Catalog.RevokeLink(v.Context(), id); err != nil {
		return api.Named(err, "open link")
	}
	v.Audit("link.revoke", string(id), "for "+view.Links[at].For)
	return v.Done(peoplePath(v), "Link revoked.")
}
