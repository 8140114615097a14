package router

import (
	"net/http"
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
	return list
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

// About lets a page say what it is about, for the log.
func (x *exchange) About(key api.Key, project api.ProjectID, job api.JobID, thread api.ThreadID) {
	x.key, x.project.ID, x.job, x.thread = key, project, job, thread
}
