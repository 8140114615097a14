package people

import (
	"errors"
	"time"

	"docent/api"
	"docent/web/console"
)

// linkGood is how long a one-time link that an owner makes is good.
const linkGood = 24 * time.Hour

var errLink = &api.StateError{Kind: api.ErrNotFound,
	Reason: "this link has been used, has expired, or is incomplete. Operators get a new one with docent console; owners create one for a person on the page People"}

type enterView struct {
	Token string
	For   string // the person whom it lets in; empty for the operator
}

// showEnter asks before the link is used: programs that look at links in messages would use it up.
func (s *handler) showEnter(v *console.Visit) error {
	link, err := s.Catalog.LinkByHash(v.Context(), api.HashSecret(v.Param("token")))
	if errors.Is(err, api.ErrNotFound) {
		return errLink
	}
	if err != nil {
		return err
	}
	view := enterView{Token: v.Param("token")}
	if link.Person != "" {
		p, err := s.Catalog.Person(v.Context(), link.Person)
		if err != nil {
			return api.Named(err, "person")
		}
		view.For = p.Name
	}
	return s.Render(v, "enter", "Sign in", view)
}

// enter uses the link up.
func (s *handler) enter(v *console.Visit) error {
	link, err := s.Catalog.UseLink(v.Context(), api.HashSecret(v.Param("token")))
	if errors.Is(err, api.ErrNotFound) {
		return errLink
	}
	if err != nil {
		return err
	}
	if link.Person == "" {
		err := s.Begin(v, console.LinkVisitor(), api.SignIn{Kind: api.SessionOfLink, Link: link.ID, How: byLink})
		if err != nil {
			return err
		}
		return v.SeeOther(s.start(v))
	}
	p, err := s.Catalog.Person(v.Context(), link.Person)
	if err != nil {
		return api.Named(err, "person")
	}
	if p.DisabledAt != nil {
		return errDisabled
	}
	if err := s.BeginPerson(v, p, byLink); err != nil {
		return err
	}
	return v.Done("/console/account", "Set a password to finish.")
}

// byLink is how a person came in who may choose a password without knowing the one before.
const byLink = "one-time link"

var errDisabled = &api.StateError{Kind: api.ErrForbidden,
	Reason: "this account is disabled; an owner of the organization can enable it"}

// start is where the operator begins: the setup while there is nothing to look at.
func (s *handler) start(v *console.Visit) string {
	all, err := s.Catalog.Projects(v.Context())
	if err != nil || len(all) > 0 {
		return "/console"
	}
	return "/console/setup"
}

// callback is where the provider sends the browser back to. If the configured address is one of this machine alone it
// is below the host that the browser came by: the provider takes only addresses that were registered with it.
func (s *handler) callback(v *console.Visit) string {
	if base := s.PublicURL; base != "" && (!console.Loopback(base) || console.Loopback("http://"+v.Req.Host)) {
		return base + callbackPath
	}
	return v.CameBy(callbackPath)
}
