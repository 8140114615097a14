package web

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"docent/api"
	"docent/web/password"
)

type accountView struct {
	Person     api.Person
	Sessions   []sessionLine
	Provider   string // empty where there is none
	Connected  bool
	AsksOld    bool // a new password needs the one before
	Problems   map[string]string
	Values     map[string]string
	Shortest   int
	Key        api.Key
	MakesOwner bool // who came by the operator's link can make a person of themselves
}

type sessionLine struct {
	api.SignIn
	Device string
	Here   bool
}

// mine says whose sessions the visitor's are.
func (w visitor) mine() api.SessionQuery {
	return api.SessionQuery{Person: w.person.ID, Key: w.signIn.Key}
}

func (s *Server) accountOf(v *visit) (accountView, error) {
	view := accountView{Person: v.who.person, Key: v.who.key, Connected: v.who.person.Subject != "",
		AsksOld: asksOld(v), Shortest: password.Shortest, MakesOwner: v.who.signIn.Kind == api.SessionOfLink,
		Values: map[string]string{"name": v.who.person.Name}}
	if s.Provider != nil {
		view.Provider = s.Provider.Name()
	}
	all, err := s.People.Sessions(v.Context(), v.who.mine())
	if err != nil {
		return view, err
	}
	if len(all) == 0 {
		all = []api.SignIn{v.who.signIn}
	}
	for _, in := range all {
		view.Sessions = append(view.Sessions, sessionLine{in, device(in.Agent), in.ID == v.who.signIn.ID})
	}
	return view, nil
}

// asksOld reports whether a new password needs the one before. Who came by a link that was made for it may have
// forgotten that.
func asksOld(v *visit) bool { return v.who.person.HasPassword && v.who.signIn.How != byLink }

func (s *Server) showAccount(v *visit) error {
	view, err := s.accountOf(v)
	if err != nil {
		return err
	}
	return s.render(v, "account", "Your account", view)
}

// accountProblem shows the page again with what is wrong.
func (s *Server) accountProblem(v *visit, problems map[string]string) error {
	view, err := s.accountOf(v)
	if err != nil {
		return err
	}
	view.Problems = problems
	for _, field := range []string{"name", "email"} {
		if v.form().Has(field) {
			view.Values[field] = v.form().Get(field)
		}
	}
	return s.renderStatus(v, http.StatusBadRequest, "account", "Your account", view)
}

const accountPath = "/console/account"

var errNotAPerson = &api.StateError{Kind: api.ErrForbidden,
	Reason: "this session is not a person's: sign in as one to change an account"}

func (s *Server) renameMe(v *visit) error {
	if v.who.person.ID == "" {
		return errNotAPerson
	}
	err := s.People.RenamePerson(v.Context(), v.who.person.ID, v.form().Get("name"))
	if errors.Is(err, api.ErrInvalid) {
		return s.accountProblem(v, problemsOf(err))
	}
	if err != nil {
		return err
	}
	return v.done(accountPath, "Your name is changed.")
}

// changePassword ends all other sessions: whoever had the password before is out.
func (s *Server) changePassword(v *visit) error {
	p := v.who.person
	if p.ID == "" {
		return errNotAPerson
	}
	problems := map[string]string{}
	if asksOld(v) {
		bounds := []bound{{"account " + p.Email, mostOfAccount}}
		wait, err := s.attempt(v, bounds...)
		if err != nil {
			return err
		}
		if wait > 0 {
			return &api.LimitError{Name: "sign-in", Limit: mostOfAccount, Window: attemptWindow, RetryAfter: wait}
		}
		kept, err := s.People.Password(v.Context(), p.ID)
		if err != nil {
			return err
		}
		ok, err := s.passwords.Verify(v.Context(), kept, v.form().Get("current"))
		if err != nil {
			return err
		}
		if ok {
			s.giveBack(v, bounds...)
		} else {
			problems["current"] = "is not your password"
		}
	}
	kept, ok, err := s.chosenPassword(v, p, problems)
	if err != nil || !ok {
		return err
	}
	if err := s.People.SetPassword(v.Context(), p.ID, kept); err != nil {
		return err
	}
	v.auditMine("person.password", p.Email, "")
	if err := s.People.EndSessionsOf(v.Context(), api.SessionQuery{Person: p.ID, Except: v.who.signIn.ID}); err != nil {
		return err
	}
	if err := s.beginPerson(v, p, "password"); err != nil {
		return err
	}
	return v.done(accountPath, "Your password is changed. All other sessions have ended.")
}

// connectMe sends the browser to the provider from a page instead of from the form: forms may lead to this site only.
func (s *Server) connectMe(v *visit) error {
	if v.who.person.ID == "" {
		return errNotAPerson
	}
	address, err := s.toProvider(v, flow{Connect: v.who.person.ID})
	if err != nil {
		return err
	}
	v.Header().Set("Refresh", "0; url="+address)
	return s.render(v, "connect", "To "+s.Provider.Name(), address)
}

func (s *Server) disconnectMe(v *visit) error {
	if v.who.person.ID == "" {
		return errNotAPerson
	}
	if !v.who.person.HasPassword {
		return &api.StateError{Kind: api.ErrConflict, Reason: "choose a password first: else you could not sign in any more"}
	}
	if err := s.People.LinkIdentity(v.Context(), v.who.person.ID, "", ""); err != nil {
		return err
	}
	v.auditMine("person.disconnect", v.who.person.Email, "")
	return v.done(accountPath, "Your account is not connected any more.")
}

// endSession ends one of the visitor's own sessions.
func (s *Server) endSession(v *visit) error {
	id := api.SessionID(v.form().Get("session"))
	all, err := s.People.Sessions(v.Context(), v.who.mine())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(in api.SignIn) bool { return in.ID == id }) {
		return api.Missing("session")
	}
	if err := s.People.EndSession(v.Context(), id); err != nil {
		return err
	}
	v.auditMine("session.end", "one of the own", "")
	if id == v.who.signIn.ID {
		v.setCookie(sessionCookie, "", 0)
		return v.seeOther("/login")
	}
	return v.done(accountPath, "The session has ended.")
}

func (s *Server) endOtherSessions(v *visit) error {
	q := v.who.mine()
	q.Except = v.who.signIn.ID
	if err := s.People.EndSessionsOf(v.Context(), q); err != nil {
		return err
	}
	v.auditMine("session.end", "all others of the own", "")
	return v.done(accountPath, "All other sessions have ended.")
}

// makeOwner makes of who came by the operator's link a person who can sign in again.
func (s *Server) makeOwner(v *visit) error {
	if v.who.signIn.Kind != api.SessionOfLink {
		return errNotAPerson
	}
	p := api.Person{Name: v.form().Get("name"), Email: api.CleanEmail(v.form().Get("email")),
		Roles: map[api.OrgID]api.Role{api.DefaultOrg: api.RoleOwner}}
	problems := problemsOf(p.Validate())
	kept, ok, err := s.chosenPassword(v, p, problems)
	if err != nil || !ok {
		return err
	}
	p, err = s.People.AddPerson(v.Context(), p, kept)
	if errors.Is(err, api.ErrConflict) {
		return s.accountProblem(v, map[string]string{"email": "belongs to an account that is there already"})
	}
	if err != nil {
		return err
	}
	v.audit("person.add", p.Email, "as owner, by the operator's link")
	if err := s.beginPerson(v, p, "password"); err != nil {
		return err
	}
	return v.done(s.start(v), "Welcome, "+p.Name+". From now on you sign in with your address and password.")
}

// chosenPassword is what is kept of the password that a form chooses for a person. It is false, and the page shows them,
// where there are problems with it or with the rest of the form.
func (s *Server) chosenPassword(v *visit, p api.Person, problems map[string]string) (kept string, ok bool, err error) {
	chosen := v.form().Get("password")
	if problem := password.Problem(chosen, p.Email, p.Name); problem != "" {
		problems["password"] = problem
	}
	if len(problems) > 0 {
		return "", false, s.accountProblem(v, problems)
	}
	kept, err = s.passwords.Hash(v.Context(), chosen)
	return kept, err == nil, err
}

// device is what a browser says of itself, in words that people recognise.
func device(agent string) string {
	name := first(agent, [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
		{"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}}, "Unknown browser")
	system := first(agent, [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"},
		{"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}, "")
	if system == "" {
		return name
	}
	return name + " on " + system
}

// first is the name of the first sign that a text has.
func first(text string, signs [][2]string, none string) string {
	for _, s := range signs {
		if strings.Contains(text, s[0]) {
			return s[1]
		}
	}
	return none
}
