package people

import (
	"errors"
	"net/http"
	"slices"

	"docent/api"
	"docent/web/console"
	"docent/web/password"
)

type accountView struct {
	Person     api.Person
	Sessions   []console.SessionLine
	Provider   string // empty if there is none
	Connected  bool
	AsksOld    bool // a new password needs the one before
	Problems   map[string]string
	Values     map[string]string
	Shortest   int
	Key        api.Key
	MakesOwner bool // who came by the operator's link can make a person of themselves
}

// mine says whose sessions the visitor's are.
func mine(w console.Visitor) api.SessionQuery {
	return api.SessionQuery{Person: w.Person.ID, Key: w.SignIn.Key, Links: w.SignIn.Kind == api.SessionOfLink}
}

func (s *handler) accountOf(v *console.Visit) (accountView, error) {
	view := accountView{Person: v.Who.Person, Key: v.Who.Key, Connected: v.Who.Person.Subject != "",
		AsksOld: asksOld(v), Shortest: password.Shortest, MakesOwner: v.Who.SignIn.Kind == api.SessionOfLink,
		Values: map[string]string{"name": v.Who.Person.Name}}
	if s.Provider != nil {
		view.Provider = s.Provider.Name()
	}
	all, err := s.Catalog.Sessions(v.Context(), mine(v.Who))
	if err != nil {
		return view, err
	}
	if len(all) == 0 {
		all = []api.SignIn{v.Who.SignIn}
	}
	view.Sessions = v.SessionLines(all)
	return view, nil
}

// asksOld reports whether a new password needs the one before. Who came by a link that was made for it may have
// forgotten that.
func asksOld(v *console.Visit) bool { return v.Who.Person.HasPassword && v.Who.SignIn.How != byLink }

func (s *handler) showAccount(v *console.Visit) error {
	view, err := s.accountOf(v)
	if err != nil {
		return err
	}
	return s.Render(v, "account", "Your account", view)
}

// accountProblem shows the page again with what is wrong.
func (s *handler) accountProblem(v *console.Visit, problems map[string]string) error {
	view, err := s.accountOf(v)
	if err != nil {
		return err
	}
	view.Problems = problems
	for _, field := range []string{"name", "email"} {
		if v.Form.Has(field) {
			view.Values[field] = v.Form.Get(field)
		}
	}
	return s.RenderStatus(v, http.StatusBadRequest, "account", "Your account", view)
}

const accountPath = "/console/account"

var errNotAPerson = &api.StateError{Kind: api.ErrForbidden,
	Reason: "this session is not a person's: sign in as one to change an account"}

func (s *handler) renameMe(v *console.Visit) error {
	if v.Who.Person.ID == "" {
		return errNotAPerson
	}
	err := s.Catalog.RenamePerson(v.Context(), v.Who.Person.ID, v.Form.Get("name"))
	if errors.Is(err, api.ErrInvalid) {
		return s.accountProblem(v, console.Faults(err))
	}
	if err != nil {
		return err
	}
	v.AuditMine("person.rename", v.Who.Person.Email, "")
	return v.Done(accountPath, "Name changed.")
}

// changePassword ends all other sessions: anybody who knew the old password is signed out.
func (s *handler) changePassword(v *console.Visit) error {
	p := v.Who.Person
	if p.ID == "" {
		return errNotAPerson
	}
	problems := map[string]string{}
	if asksOld(v) {
		tries := bound("change of "+string(p.ID), maxOfAddress)
		if err := s.attempt(v, tries); err != nil {
			return err
		}
		kept, err := s.Catalog.Password(v.Context(), p.ID)
		if err != nil {
			return err
		}
		ok, err := s.passwords.Verify(v.Context(), kept, v.Form.Get("current"))
		if err != nil {
			return err
		}
		if ok {
			s.giveBack(v, tries)
		} else {
			problems["current"] = "is not your password"
		}
	}
	kept, ok, err := s.chosenPassword(v, p, problems)
	if err != nil || !ok {
		return err
	}
	if err := s.Catalog.SetPassword(v.Context(), p.ID, kept); err != nil {
		return err
	}
	v.AuditMine("person.password", p.Email, "")
	if err := s.Catalog.EndSessionsOf(v.Context(), api.SessionQuery{Person: p.ID, Except: v.Who.SignIn.ID}); err != nil {
		return err
	}
	if err := s.BeginPerson(v, p, "password"); err != nil {
		return err
	}
	return v.Done(accountPath, "Password changed. All other sessions are ended.")
}

// connectMe begins the sign-in by which a person connects the account with the provider.
func (s *handler) connectMe(v *console.Visit) error {
	if v.Who.Person.ID == "" {
		return errNotAPerson
	}
	return s.goToProvider(v, flow{Connect: v.Who.Person.ID})
}

func (s *handler) disconnectMe(v *console.Visit) error {
	if v.Who.Person.ID == "" {
		return errNotAPerson
	}
	if !v.Who.Person.HasPassword {
		return &api.StateError{Kind: api.ErrConflict, Reason: "choose a password first: else you could not sign in any more"}
	}
	if err := s.Catalog.LinkIdentity(v.Context(), v.Who.Person.ID, "", ""); err != nil {
		return err
	}
	v.AuditMine("person.disconnect", v.Who.Person.Email, "")
	return v.Done(accountPath, "Account disconnected.")
}

// endSession ends one of the visitor's own sessions.
func (s *handler) endSession(v *console.Visit) error {
	id := api.SessionID(v.Form.Get("session"))
	all, err := s.Catalog.Sessions(v.Context(), mine(v.Who))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(in api.SignIn) bool { return in.ID == id }) {
		return api.Missing("session")
	}
	if err := s.Catalog.EndSession(v.Context(), id); err != nil {
		return err
	}
	v.AuditMine("session.end", "one of the own", "")
	if id == v.Who.SignIn.ID {
		v.SetCookie(console.SessionCookie, "", 0)
		return v.SeeOther("/login")
	}
	return v.Done(accountPath, "Session ended.")
}

func (s *handler) endOtherSessions(v *console.Visit) error {
	q := mine(v.Who)
	q.Except = v.Who.SignIn.ID
	if err := s.Catalog.EndSessionsOf(v.Context(), q); err != nil {
		return err
	}
	v.AuditMine("session.end", "all others of the own", "")
	return v.Done(accountPath, "All other sessions are ended.")
}

// makeOwner makes of who came by the operator's link a person who can sign in again.
func (s *handler) makeOwner(v *console.Visit) error {
	if v.Who.SignIn.Kind != api.SessionOfLink {
		return errNotAPerson
	}
	p := api.Person{Name: v.Form.Get("name"), Email: api.CleanEmail(v.Form.Get("email")),
		Roles: map[api.OrgID]api.Role{api.DefaultOrg: api.RoleOwner}, Operator: true}
	if err := v.Who.Rights.MayGive(api.GivenPerson(p)); err != nil {
		return err
	}
	problems := console.Faults(p.Validate())
	kept, ok, err := s.chosenPassword(v, p, problems)
	if err != nil || !ok {
		return err
	}
	p, err = s.Catalog.AddPerson(v.Context(), p, kept)
	if errors.Is(err, api.ErrConflict) {
		return s.accountProblem(v, map[string]string{"email": "belongs to an account that is there already"})
	}
	if err != nil {
		return err
	}
	v.Audit("person.add", p.Email, "as owner and operator, by the operator's link")
	if err := s.BeginPerson(v, p, "password"); err != nil {
		return err
	}
	return v.Done(s.start(v), "Welcome, "+p.Name+". From now on you sign in with your address and password.")
}

// chosenPassword is what is kept of the password that a form chooses for a person. It is false, and the page shows them,
// if there are problems with it or with the rest of the form.
func (s *handler) chosenPassword(v *console.Visit, p api.Person, problems map[string]string) (kept string, ok bool, err error) {
	chosen := v.Form.Get("password")
	if problem := password.Problem(chosen, p.Email, p.Name); problem != "" {
		problems["password"] = problem
	}
	if len(problems) > 0 {
		return "", false, s.accountProblem(v, problems)
	}
	kept, err = s.passwords.Hash(v.Context(), chosen)
	return kept, err == nil, err
}
