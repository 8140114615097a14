package router

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/uptrace/bunrouter"

	"docent/api"
)

// pages are the routes of what people look at in a browser. Package web makes the pages; here they pass what every
// request passes.
func (s *Server) pages() []route {
	if s.Pages == nil {
		return nil
	}
	var list []route
	for method, pattern := range s.Pages.Routes() {
		list = append(list, route{method, pattern, page, s.page})
	}
	if s.Manual != nil {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			list = append(list, route{method, manualAPI + "/*path", open, s.manual})
		}
	}
	return list
}

// manualAPI is what the widget on the pages of Docent's own documentation takes for the address of the server.
const manualAPI = "/docs/-"

// manual has something answered from Docent's own documentation.
func (s *Server) manual(x *exchange, req bunrouter.Request) error {
	r := req.Clone(req.Context())
	r.RemoteAddr = netip.AddrPortFrom(x.client, 0).String()
	r.URL.Path, r.URL.RawPath = strings.TrimPrefix(r.URL.Path, manualAPI), strings.TrimPrefix(r.URL.RawPath, manualAPI)
	return s.Manual(x, r)
}

func (s *Server) page(x *exchange, req bunrouter.Request) error {
	if isForm(req.Request) {
		if err := s.whole(x, req.Request, s.Bounds.BodyBytes); err != nil {
			return err
		}
	}
	if err := x.arrived(); err != nil { // a file that is sent: its page finds out who sends it before it reads it
		return err
	}
	x.stream = func() { s.release(x) }
	return s.Pages.ServePage(x, req.Request, x.client, x.secure)
}

// failPage writes an error for a person.
func (s *Server) failPage(x *exchange, req *http.Request, a answer) {
	s.Pages.FailPage(x, req, a.status, a.message, a.details, x.id)
}

// wantsPage reports whether the caller is a browser that shows a page.
func wantsPage(req *http.Request) bool {
	return strings.Contains(req.Header.Get("Accept"), "text/html") || req.Header.Get("HX-Request") != ""
}

// Stream lets a page say that its answer goes on for long: it is no request that is worked on any more.
func (x *exchange) Stream() { x.stream() }

// Peer lets a page know the client's address, and whether the request came over TLS.
func (x *exchange) Peer() (netip.Addr, bool) { return x.client, x.secure }

// About lets a page say what it is about, for the log.
func (x *exchange) About(key api.Key, project api.ProjectID, job api.JobID, thread api.ThreadID) {
	x.key, x.project.ID, x.job, x.thread = key, project, job, thread
}
