package web

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"docent/api"
)

// linkGood is how long a one-time link that an owner makes is good.
const linkGood = 24 * time.Hour

var errLink = &api.StateError{Kind: api.ErrNotFound,
	Reason: "this link has been used, has expired or is not whole. Who runs the server gets another one with the command docent console; an owner makes one for a person on the page People"}

type enterView struct {
	Token string
	For   string // the person whom it lets in; empty for the operator
}

// showEnter asks before the link is used: programs that look at links in messages would use it up.
func (s *Server) showEnter(v *visit) error {
	link, err := s.People.LinkByHash(v.Context(), api.HashSecret(v.param("token")))
	if errors.Is(err, api.ErrNotFound) {
		return errLink
	}
	if err != nil {
		return err
	}
	view := enterView{Token: v.param("token")}
	if link.Person != "" {
		p, err := s.People.Person(v.Context(), link.Person)
		if err != nil {
			return api.Named(err, "person")
		}
		view.For = p.Name
	}
	return s.render(v, "enter", "Enter", view)
}

// enter uses the link up.
func (s *Server) enter(v *visit) error {
	link, err := s.People.UseLink(v.Context(), api.HashSecret(v.param("token")))
	if errors.Is(err, api.ErrNotFound) {
		return errLink
	}
	if err != nil {
		return err
	}
	if link.Person == "" {
		err := s.begin(v, visitor{id: "link", name: "Operator", operator: true},
			api.SignIn{Kind: api.SessionOfLink, Link: link.ID, How: "one-time link"})
		if err != nil {
			return err
		}
		return v.seeOther(s.start(v))
	}
	p, err := s.People.Person(v.Context(), link.Person)
	if err != nil {
		return api.Named(err, "person")
	}
	if p.DisabledAt != nil {
		return errDisabled
	}
	if err := s.beginPerson(v, p, byLink); err != nil {
		return err
	}
	return v.done("/console/account", "You are in. Choose a password, so that you can sign in again.")
}

// byLink is how a person came in who may choose a password without knowing the one before.
const byLink = "one-time link"

var errDisabled = &api.StateError{Kind: api.ErrForbidden,
	Reason: "this account is disabled; an owner of the organization can enable it"}

// start is where the operator begins: the set-up while there is nothing to look at.
func (s *Server) start(v *visit) string {
	const setup = "/console/setup"
	all, err := s.Catalog.Projects(v.Context())
	if err != nil || len(all) > 0 {
		return "/console"
	}
	for _, pattern := range s.Routes() {
		if pattern == setup {
			return setup
		}
	}
	return "/console"
}

// absolute is the address under which others reach a path of ours. Where the configured address is one of this machine
// alone, the one that the visitor came by is better.
func (v *visit) absolute(path string) string {
	base := v.server.PublicURL
	if base == "" || loopback(base) && !loopback("http://"+v.Req.Host) {
		base = "http://" + v.Req.Host
		if v.secure {
			base = "https://" + v.Req.Host
		}
	}
	return base + path
}

// loopback reports whether an address leads to the machine itself.
func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" || strings.HasSuffix(u.Hostname(), ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && net.IP(ip.AsSlice()).IsLoopback()
}
