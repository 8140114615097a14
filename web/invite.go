package web

import (
	"errors"
	"net/http"

	"docent/api"
	"docent/web/password"
)

var errInvitation = &api.StateError{Kind: api.ErrNotFound,
	Reason: "this invitation has been accepted, was taken back, has expired or is not whole. Ask who invited you for another one"}

type inviteView struct {
	Token        string
	Invitation   api.Invitation
	Organization string
	Provider     string
	Name, Email  string
	Problems     map[string]string // by field
	Shortest     int
}

func (s *Server) invitation(v *visit) (inviteView, error) {
	token := v.param("token")
	i, err := s.People.InvitationByHash(v.Context(), api.HashSecret(token))
	if errors.Is(err, api.ErrNotFound) || err == nil && !i.Open(v.now) {
		return inviteView{}, errInvitation
	}
	if err != nil {
		return inviteView{}, err
	}
	name, err := s.People.Organization(v.Context(), i.Org)
	if err != nil {
		return inviteView{}, api.Named(err, "organization")
	}
	view := inviteView{Token: token, Invitation: i, Organization: name, Email: i.Email, Shortest: password.Shortest}
	if s.Provider != nil {
		view.Provider = s.Provider.Name()
	}
	return view, nil
}

func (s *Server) showInvitation(v *visit) error {
	view, err := s.invitation(v)
	if err != nil {
		return err
	}
	return s.render(v, "invite", "Join "+view.Organization, view)
}

// acceptInvitation lets in who is signed in as a person, and else makes a person.
func (s *Server) acceptInvitation(v *visit) error {
	view, err := s.invitation(v)
	if err != nil {
		return err
	}
	hash := api.HashSecret(view.Token)
	if v.who.person.ID != "" {
		return s.accepted(v, hash, v.who.person, "", v.who.signIn.How)
	}
	view.Name, view.Email = v.form().Get("name"), api.CleanEmail(v.form().Get("email"))
	if view.Invitation.Email != "" {
		view.Email = view.Invitation.Email
	}
	chosen := v.form().Get("password")
	p := api.Person{Name: view.Name, Email: view.Email}
	view.Problems = problemsOf(p.Validate())
	if problem := password.Problem(chosen, view.Email, view.Name); problem != "" {
		view.Problems["password"] = problem
	}
	if len(view.Problems) > 0 {
		return s.renderStatus(v, http.StatusBadRequest, "invite", "Join "+view.Organization, view)
	}
	kept, err := s.passwords.Hash(v.Context(), chosen)
	if err != nil {
		return err
	}
	err = s.accepted(v, hash, p, kept, "invitation")
	if errors.Is(err, api.ErrConflict) {
		view.Problems["email"] = "belongs to an account that is there already: sign in with it, and open the invitation again"
		return s.renderStatus(v, http.StatusConflict, "invite", "Join "+view.Organization, view)
	}
	return err
}

// accepted uses the invitation up and signs in whom it let in.
func (s *Server) accepted(v *visit, hash [32]byte, p api.Person, kept, how string) error {
	p, i, err := s.People.AcceptInvitation(v.Context(), hash, p, kept)
	if errors.Is(err, api.ErrNotFound) {
		return errInvitation
	}
	if err != nil {
		return err
	}
	if err := s.beginPerson(v, p, how); err != nil { // another token, since the rights are others
		return err
	}
	v.auditIn(i.Org, "", "invitation.accept", p.Email, "as "+string(i.Role)+", invited by "+i.By)
	return v.done("/console", "Welcome, "+p.Name+".")
}

// problemsOf is what is wrong with each field, for the form that is shown again.
func problemsOf(err error) map[string]string {
	out := map[string]string{}
	var invalid *api.InvalidError
	if errors.As(err, &invalid) {
		for _, p := range invalid.Problems {
			out[p.Field] = p.Message
		}
	}
	return out
}
