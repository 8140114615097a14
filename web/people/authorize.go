package people

import (
	"crypto/rand"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"time"

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
		v.SetCookie(clientCookie, cookie, 15*time.Minute)
	}
	if view.Request, err = s.Clients.Read(v.Context(), query); err != nil {
		return view, h, err
	}
	view.Next = oauth.AuthorizePath + "?" + query
	if at := view.Project.ReaderSignIn; at != "" && !view.Agent && h.Reader == "" {
		if u, err := url.Parse(at); err == nil {
			q := u.Query()
			q.Set("request", s.Clients.Keep(query, cookie, ""))
			u.RawQuery = q.Encode()
			view.Site = u.String()
		}
	}
	if !v.SignedIn && h.Reader == "" {
		return view, h, nil
	}
	if view.Who, _, err = s.Clients.May(v.Context(), view.Request, h); err != nil {
		if errors.Is(err, api.ErrForbidden) || errors.Is(err, api.ErrUnauthorized) {
			view.Who, view.Problem, err = "", err.Error(), nil
		}
		return view, h, err
	}
	view.Kept = s.Clients.Keep(query, cookie, h.Reader)
	return view, h, s.Clients.Identify(v.Context(), &view.Request)
}

// showAuthorize asks whether a client may act for the visitor, once it is known who that is.
func (s *handler) showAuthorize(v *console.Visit) error {
	view, _, err := s.asked(v, v.Query("request"))
	if err != nil {
		return err
	}
	return s.Render(v, "authorize", "Connect to "+view.Project.Domain, view)
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
		return s.RenderStatus(v, http.StatusForbidden, "authorize", "Connect to "+view.Project.Domain, view)
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
