package people

import (
	"errors"
	"net/http"

	"docent/api"
	"docent/web/console"
	"docent/web/password"
)

var errInvitation = &api.StateError{Kind: api.ErrNotFound,
	Reason: "this invitation has been accepted, was taken back, has expired or is not whole. Ask who invited you for another one"}

type inviteView struct {
	Token        string
	Invitation   api.Invitation
	Organization string
	Provider     string
	Email        string // that the invitation is for; empty if it is for anybody with the link
	Name         string
	Address      string            // as it was written into the form
	Problems     map[string]string // by field
	Shortest     int
}

func (s *handler) invitation(v *console.Visit) (inviteView, error) {
	token := v.Param("token")
	i, err := s.Catalog.InvitationByHash(v.Context(), api.HashSecret(token))
	if errors.Is(err, api.ErrNotFound) || err == nil && !i.Open(v.Now) {
		return inviteView{}, errInvitation
	}
	if err != nil {
		return inviteView{}, err
	}
	name, err := s.Catalog.Organization(v.Context(), i.Org)
	if err != nil {
		return inviteView{}, api.Named(err, "organization")
	}
	view := inviteView{Token: token, Invitation: i, Organization: name, Email: i.Email, Shortest: password.Shortest}
	if s.Provider != nil {
		view.Provider = s.Provider.Name()
	}
	return view, nil
}

func (s *handler) showInvitation(v *console.Visit) error {
	view, err := s.invitation(v)
	if err != nil {
		return err
	}
	return s.Render(v, "invite", "Join "+view.Organization, view)
}

// acceptInvitation lets in who is signed in as a person, and else makes a person.
func (s *handler) acceptInvitation(v *console.Visit) error {
	view, err := s.invitation(v)
	if err != nil {
		return err
	}
	hash := api.HashSecret(view.Token)
	if v.Who.Person.ID != "" {
		return s.accepted(v, hash, v.Who.Person, "", v.Who.SignIn.How, "")
	}
	view.Name, view.Address = v.Form.Get("name"), api.CleanEmail(v.Form.Get("email"))
	chosen := v.Form.Get("password")
	p := api.Person{Name: view.Name, Email: view.Address}
	view.Problems = console.Faults(p.Validate())
	if problem := password.Problem(chosen, view.Address, view.Name); problem != "" {
		view.Problems["password"] = problem
	}
	if len(view.Problems) > 0 {
		return s.RenderStatus(v, http.StatusBadRequest, "invite", "Join "+view.Organization, view)
	}
	kept, err := s.passwords.Hash(v.Context(), chosen)
	if err != nil {
		return err
	}
	err = s.accepted(v, hash, p, kept, "invitation", "")
	if errors.Is(err, api.ErrConflict) {
		view.Problems["email"] = "belongs to an account that is there already: sign in with it, and open the invitation again"
		return s.RenderStatus(v, http.StatusConflict, "invite", "Join "+view.Organization, view)
	}
	return err
}

// joinWithProvider accepts the invitation by a sign-in with the provider. Only this form begins that, which the page
// with the invitation has: a link that somebody follows accepts nothing.
func (s *handler) joinWithProvider(v *console.Visit) error {
	view, err := s.invitation(v)
	if err != nil {
		return err
	}
	return s.goToProvider(v, flow{Next: "/console", Invite: view.Token})
}

// accepted uses the invitation up and signs in whom it let in. Verified is the address that the provider has verified.
func (s *handler) accepted(v *console.Visit, hash [32]byte, p api.Person, kept, how, verified string) error {
	p, i, err := s.Catalog.AcceptInvitation(v.Context(), hash, p, kept, verified)
	if errors.Is(err, api.ErrNotFound) {
		return errInvitation
	}
	if err != nil {
		return err
	}
	if err := s.BeginPerson(v, p, how); err != nil { // another token, since the rights are others
		return err
	}
	v.AuditIn(i.Org, "", "invitation.accept", p.Email, "as "+string(i.Role)+", invited by "+i.By)
	return v.Done("/console", "Welcome, "+p.Name+".")
}
