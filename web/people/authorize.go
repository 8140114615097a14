package people

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"

	"docent/api"
	"docent/router/oauth"
	"docent/web/console"
)

// clientCookie ties the request of a client to the browser that it came with.
const clientCookie = "docent_client"

type authorizeView struct {
	oauth.Request
	Who     string // who gives the client what they may do themselves; empty if nobody is known who may
	Problem string // why the visitor may not
	Kept    string // the request, for the form
	Next    string // the page itself, for who signs in first
	Site    string // where the site signs its readers in; empty if it does not
}

// asked reads the request that a page is about, and says for whom it would be.
func (s *handler) asked(v *console.Visit, sealed string) (view authorizeView, h oauth.Holder, err error) {
	if s.Clients == nil {
		return view, h, api.Missing("page")
	}
	h = oauth.Holder{Person: v.Who.Person, Address: v.Client.String()}
	cookie := v.Cookie(clientCookie)
	query := v.Req.URL.RawQuery
	if sealed != "" {
		var ok bool
		if query, h.Reader, ok = s.Clients.Kept(sealed, cookie); !ok {
			return view, h, &api.StateError{Kind: api.ErrForbidden,
				Reason: "this request began in another browser or too long ago: connect again from the program that wants to be let in"}
		}
	} else if len(cookie) != len(rand.Text()) {
		cookie = rand.Text()
	}
	v.SetCookie(clientCookie, cookie, oauth.RequestLife) // the visitor has the time of this page
	known := v.SignedIn || h.Reader != ""
	view.Request, err = s.Clients.Read(v.Context(), query)
	if err != nil && (known || !errors.Is(err, oauth.ErrUnknown)) {
		return view, h, err
	}
	view.Next = oauth.AuthorizePath + "?" + query
	open := view.Project.ReaderSignIn != "" && !view.Agent // the site sends anybody here
	if !open && !known {
		view.Project = api.Project{} // strangers do not learn whether there is such a project
	}
	if !open && known && !v.Who.Reads(view.Project.Org) {
		return view, h, s.Clients.Unknown()
	}
	if open {
		view.Site = site(view.Project, s.Clients.Keep(query, cookie, ""))
	}
	if !known || open && h.Reader == "" && !v.Who.Reads(view.Project.Org) { // of another organization: as a stranger
		return view, h, nil
	}
	if view.Who, _, err = s.Clients.May(v.Context(), view.Request, h); err != nil {
		if errors.Is(err, api.ErrForbidden) || errors.Is(err, api.ErrUnauthorized) {
			view.Who, view.Problem, err = "", err.Error(), nil
		}
		return view, h, err
	}
	if h.Reader != "" {
		view.Site = "" // that is who it is
	}
	// Each may have a description fetched, and a session stored.
	who := sha256.Sum256(fmt.Append(nil, h.Person.ID, "\x00", view.Project.ID, "\x00", h.Reader != "", view.Who))
	if err = s.attempt(v, bound(fmt.Sprintf("client %x", who), maxOfClients)); err != nil {
		return view, h, err
	}
	view.Kept = s.Clients.Keep(query, cookie, h.Reader)
	return view, h, s.Clients.Identify(v.Context(), &view.Request)
}

// site is where a project's site signs a reader in who has come with a request.
func site(p api.Project, sealed string) string {
	u, err := url.Parse(p.ReaderSignIn)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("request", sealed)
	u.RawQuery = q.Encode()
	return u.String()
}

// title is the page's.
func (a authorizeView) title() string { return "Connect to " + cmp.Or(a.Project.Domain, "Docent") }

// showAuthorize asks whether a client may act for the visitor, once it is known who that is.
func (s *handler) showAuthorize(v *console.Visit) error {
	view, _, err := s.asked(v, v.Query("request"))
	if err != nil {
		return err
	}
	return s.Render(v, "authorize", view.title(), view)
}

// decide sends the browser back to the client with what the visitor has decided. It goes from a page: forms may lead to
// this site only.
func (s *handler) decide(v *console.Visit) error {
	sealed := v.Form.Get("request")
	if sealed == "" {
		return console.Invalid("request", "is required")
	}
	view, holder, err := s.asked(v, sealed)
	if err != nil {
		return err
	}
	if view.Who == "" { // rights have gone meanwhile
		return s.RenderStatus(v, http.StatusForbidden, "authorize", view.title(), view)
	}
	to := s.Clients.Deny(view.Request)
	if v.Form.Get("decision") == "allow" {
		if to, err = s.Clients.Allow(v.Context(), view.Request, holder); err != nil {
			return err
		}
		if holder.Reader == "" {
			v.AuditIn(view.Project.Org, view.Project.ID, "client.allow", view.Client.Name, "answer to "+view.To())
		}
	}
	v.Header().Set("Refresh", "0; url="+to)
	return s.Render(v, "connect", "To "+view.To(), template.URL(to)) // of no scheme that a browser would run
}
