package people

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/internal/brief"
	"docent/web/console"
	"docent/web/oidc"
)

// Newcomers says who may sign in with the provider without having been invited: people with a verified email address of
// one of the domains. They get that role in that organization.
type Newcomers struct {
	Domains []string
	Org     api.OrgID
	Role    api.Role
}

// lets reports whether somebody with that address may come.
func (n Newcomers) lets(email string) bool {
	_, domain, ok := strings.Cut(email, "@")
	return ok && slices.ContainsFunc(n.Domains, func(d string) bool { return strings.EqualFold(d, domain) })
}

const (
	flowCookie   = "docent_oidc"
	flowLife     = 10 * time.Minute
	callbackPath = "/login/callback"
)

// A flow is a sign-in with the provider on its way. The browser keeps it, signed.
type flow struct {
	oidc.Flow
	Next    string       `json:"next,omitempty"`
	Invite  string       `json:"invite,omitempty"`  // the token of the invitation that is accepted by it
	Connect api.PersonID `json:"connect,omitempty"` // who connects their account
	Until   int64        `json:"until"`
}

func (s *handler) keepFlow(v *console.Visit, f flow) error {
	f.Until = v.Now.Add(flowLife).Unix()
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	signed := append(api.Sign(s.Secret, "flow", raw), raw...)
	v.SetCookie(flowCookie, base64.RawURLEncoding.EncodeToString(signed), flowLife)
	return nil
}

// takeFlow is the flow that this browser has begun; an empty one if it has begun none.
func (s *handler) takeFlow(v *console.Visit) (f flow) {
	raw, err := base64.RawURLEncoding.DecodeString(v.Cookie(flowCookie))
	v.SetCookie(flowCookie, "", 0)
	if err != nil || len(raw) < 32 || !hmac.Equal(raw[:32], api.Sign(s.Secret, "flow", raw[32:])) {
		return flow{}
	}
	if err := json.Unmarshal(raw[32:], &f); err != nil || v.Now.Unix() > f.Until {
		return flow{}
	}
	return f
}

// toProvider begins a flow, and gives the address that the browser is to go to.
func (s *handler) toProvider(v *console.Visit, f flow) (address string, err error) {
	if s.Provider == nil {
		return "", api.Missing("page")
	}
	address, f.Flow, err = s.Provider.Begin(v.Context(), s.callback(v))
	if err != nil {
		return "", err
	}
	return address, s.keepFlow(v, f)
}

// goToProvider begins a flow from a form. It sends the browser on from a page: forms may lead to this site only.
func (s *handler) goToProvider(v *console.Visit, f flow) error {
	address, err := s.toProvider(v, f)
	if err != nil {
		return s.providerFailed(v, f, err)
	}
	v.Header().Set("Refresh", "0; url="+address)
	return s.Render(v, "connect", "To "+s.Provider.Name(), address)
}

// loginWithProvider sends the browser to the provider.
func (s *handler) loginWithProvider(v *console.Visit) error {
	f := flow{Next: local(v.Query("next"))}
	address, err := s.toProvider(v, f)
	if err != nil {
		return s.providerFailed(v, f, err)
	}
	return v.SeeOther(address)
}

// providerFailed says on the sign-in page that the provider cannot be asked. The other ways in are there.
func (s *handler) providerFailed(v *console.Visit, f flow, err error) error {
	status, problem := http.StatusUnauthorized, ""
	switch {
	case errors.Is(err, api.ErrUnavailable):
		status = http.StatusServiceUnavailable
		problem = s.Provider.Name() + " cannot be reached now. Try again shortly, or sign in another way."
	case errors.Is(err, oidc.ErrRefused):
		problem = "The sign-in with " + s.Provider.Name() + " did not work. Start again in this browser."
	case errors.Is(err, errNoAccount), errors.Is(err, errHasPassword), errors.Is(err, errDisabled):
		status, problem = http.StatusForbidden, err.Error()
	default:
		return err
	}
	s.Log.Warn("a sign-in with the provider was refused", "error", err, "client", v.Client.String())
	return s.loginPage(v, status, loginView{Next: local(f.Next), Problem: problem})
}

// fromProvider handles the browser's return from the provider.
func (s *handler) fromProvider(v *console.Visit) error {
	if s.Provider == nil {
		return api.Missing("page")
	}
	f := s.takeFlow(v)
	id, err := s.Provider.Finish(v.Context(), s.callback(v), f.Flow, v.Req.URL.Query())
	if err != nil {
		return s.providerFailed(v, f, err)
	}
	if f.Connect != "" {
		return s.connect(v, f, id)
	}
	p, err := s.Catalog.PersonByIdentity(v.Context(), id.Issuer, id.Subject)
	switch {
	case err == nil && p.DisabledAt != nil:
		err = errDisabled
	case err == nil && f.Invite != "":
		return s.accepted(v, api.HashSecret(f.Invite), p, "", s.Provider.Name(), id.Verified())
	case errors.Is(err, api.ErrNotFound):
		return s.stranger(v, f, id)
	}
	if err != nil {
		return s.providerFailed(v, f, err)
	}
	if err := s.BeginPerson(v, p, s.Provider.Name()); err != nil {
		return err
	}
	return v.SeeOther(local(f.Next))
}

var (
	errNoAccount = &api.StateError{Kind: api.ErrForbidden,
		Reason: "You have no account here. Ask an owner of the organization for an invitation."}
	errHasPassword = &api.StateError{Kind: api.ErrForbidden,
		Reason: "An account with your address already exists. Sign in with its password, and connect the two under Your account."}
)

// stranger lets in whom the provider knows and no person is connected with: who has an invitation, whose verified
// address is that of a person without another way in, and who is of a domain that is let in.
func (s *handler) stranger(v *console.Visit, f flow, id oidc.Identity) error {
	how := s.Provider.Name()
	var known api.Person
	if id.EmailVerified {
		p, _, err := s.Catalog.PersonByEmail(v.Context(), id.Email)
		switch {
		case errors.Is(err, api.ErrNotFound):
		case err != nil:
			return err
		case p.DisabledAt != nil:
			return s.providerFailed(v, f, errDisabled)
		case p.HasPassword || p.Subject != "":
			// Who chose the password need not be who has the address: the two are connected by who knows both.
			return s.providerFailed(v, f, errHasPassword)
		default:
			if err := s.Catalog.LinkIdentity(v.Context(), p.ID, id.Issuer, id.Subject); err != nil {
				return err
			}
			v.AuditOf(p, "person.connect", how+", by the verified address")
			known = p
		}
	}
	fresh := api.Person{Name: shown(id.Name), Email: id.Email, Issuer: id.Issuer, Subject: id.Subject}
	switch {
	case f.Invite != "" && known.ID != "":
		return s.accepted(v, api.HashSecret(f.Invite), known, "", how, id.Verified())
	case f.Invite != "":
		err := s.accepted(v, api.HashSecret(f.Invite), fresh, "", how, id.Verified())
		if errors.Is(err, api.ErrConflict) {
			return s.providerFailed(v, f, errHasPassword)
		}
		return err
	case known.ID != "":
	case id.EmailVerified && s.Newcomers.lets(id.Email):
		fresh.Roles = map[api.OrgID]api.Role{s.Newcomers.Org: s.Newcomers.Role}
		var err error
		if known, err = s.Catalog.AddPerson(v.Context(), fresh, ""); err != nil {
			return err
		}
		how += ", of a domain that is let in"
	default:
		return s.providerFailed(v, f, errNoAccount)
	}
	if err := s.BeginPerson(v, known, how); err != nil {
		return err
	}
	return v.SeeOther(local(f.Next))
}

// shown is a name from outside as a person can have it.
func shown(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	name = brief.Runes(name, 100, "")
	return strings.TrimSpace(name)
}

// connect gives the person who is signed in a second way in.
func (s *handler) connect(v *console.Visit, f flow, id oidc.Identity) error {
	if !v.SignedIn || v.Who.Person.ID != f.Connect {
		return s.providerFailed(v, flow{}, oidc.ErrRefused)
	}
	err := s.Catalog.LinkIdentity(v.Context(), f.Connect, id.Issuer, id.Subject)
	if errors.Is(err, api.ErrConflict) {
		return &api.StateError{Kind: api.ErrConflict,
			Reason: "another account here is connected with this account of " + s.Provider.Name()}
	}
	if err != nil {
		return err
	}
	v.AuditMine("person.connect", v.Who.Person.Email, s.Provider.Name())
	return v.Done("/console/account", "Your account is connected with "+s.Provider.Name()+".")
}
