// Package console provides what all pages share: who visits and what they may do, templates, forms, live parts of pages,
// sessions and the audit log. The packages beside it make the pages, each for one theme, and hand over their routes.
package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/uptrace/bunrouter"

	"docent/api"
)

// Deps is what all pages work with.
type Deps struct {
	Catalog Catalog
	// Cell runs MarkdownKind, and the other renderers and parsers that the pages use.
	Cell func(ctx context.Context, kind string, input []byte) ([]byte, error)
	// Setting says whether this node, of several, has what is being set up and read in the memory of one; it fails if
	// another one has, and the request goes there. It is this one if nil.
	Setting func(ctx context.Context) error

	Log     *slog.Logger // none if nil
	Now     func() time.Time
	Version string
	// Secret signs what browsers bring back: at least 32 random bytes. It must outlive a restart.
	Secret []byte
	// PublicURL is the address at which browsers reach the service, without a slash at the end; it is not known if empty.
	PublicURL string
}

// A Server guards, renders and keeps live the pages that are handed to it.
type Server struct {
	Deps
	router *bunrouter.Router
	csrf   *http.CrossOriginProtection
	feeds  *feeds
	beat   time.Duration // after which a silent live part is shown to be alive

	leaving context.Context // ends when live parts of pages must end
	leave   context.CancelFunc
}

// NewServer returns a server without pages.
func NewServer(deps Deps) *Server {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	deps.PublicURL = strings.TrimRight(deps.PublicURL, "/")
	parsed() // a template that cannot be read ends the start, and no visitor waits for it
	s := &Server{Deps: deps, csrf: http.NewCrossOriginProtection(), feeds: newFeeds(), beat: keepAlive}
	s.leaving, s.leave = context.WithCancel(context.Background())
	s.router = bunrouter.New(bunrouter.WithNotFoundHandler(
		func(http.ResponseWriter, bunrouter.Request) error { return api.Missing("page") }))
	return s
}

// Handle adds pages. It must not be called while pages are served.
func (s *Server) Handle(routes []Route) {
	for _, r := range routes {
		s.router.Handle(r.method, r.pattern, s.guard(r))
		if r.method == http.MethodGet {
			s.router.Handle(http.MethodHead, r.pattern, s.guard(r))
		}
	}
}

// Assets returns the routes of the pages' styles, scripts and pictures.
func (s *Server) Assets() []Route {
	return []Route{
		Get("/assets/:file", Anybody, s.asset),
		Get("/favicon.svg", Anybody, s.icon),
		Get("/favicon.ico", Anybody, s.icon), // what browsers ask for on pages that name none
	}
}

// A Rule is one line of the table of routes: a page, or what a form does, and what a visitor must be for it: anybody,
// signed in, viewer, editor, owner or operator. NotKeys keeps out sessions that were opened with a key.
type Rule struct {
	Method, Pattern, Need string
	NotKeys               bool
}

// Rule returns the line of a route.
func (r Route) Rule() Rule { return Rule{r.method, r.pattern, r.need.String(), r.need&NotKeys != 0} }

// ServePage answers a request for a page. Client is the client's address, and secure is whether the request came over
// TLS. An error is for FailPage.
func (s *Server) ServePage(w http.ResponseWriter, req *http.Request, client netip.Addr, secure bool) error {
	return s.router.ServeHTTPError(&answer{ResponseWriter: w, client: client, secure: secure}, req)
}

// Leave ends the live parts of pages: the server stops.
func (s *Server) Leave() { s.leave() }

// An answer carries the client's address to the handler of a page.
type answer struct {
	http.ResponseWriter
	client netip.Addr
	secure bool
}

// Unwrap lets http.ResponseController find deadlines and flushing.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
