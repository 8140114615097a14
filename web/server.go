package web

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/web/password"
)

// Deps is what the pages work with. The ports must be set.
type Deps struct {
	Catalog Catalog
	Pulls   Pulls
	People  People
	// Readers, Tries, Finder and Models are the playground's; the set-up's first question goes through them too.
	Readers Readers
	Tries   Tries
	Finder  Finder
	Models  Models
	// Provider signs people in by OpenID Connect. There is none where it is nil.
	Provider Provider
	// Newcomers says who may sign in with the provider without having been invited.
	Newcomers Newcomers
	System    System
	// Setup, Tasks and Sources are those of a project on its way and of its sources.
	Setup    Setup
	Tasks    Tasks
	Sources  Sources
	Figures  Figures
	Projects Projects

	Keys       Keys
	Allowances Allowances

	Conversations Conversations
	Threads       Threads
	Eraser        Eraser

	// Analytics, gaps and weekly reports.
	Usage         Usage
	Topics        Topics
	Indexes       Indexes
	Kinds         Kinds
	Reports       Reports
	ReportStore   ReportStore
	ReportSecrets ReportSecrets
	Jobs          Jobs
	Work          Work
	Listings      Listings
	Automations   Automations
	Webhooks      Webhooks

	// Counts are what several nodes count together: attempts to sign in. A single one counts in memory, where it is nil.
	Counts Counts
	// Setting says whether this node, of several, has what is being set up and read in the memory of one; it fails where
	// another one has, and the request goes there. It is this one where nil.
	Setting func(ctx context.Context) error

	Log     *slog.Logger // none where nil
	Now     func() time.Time
	Version string
	// Secret signs what browsers bring back: at least 32 random bytes. It must outlive a restart.
	Secret []byte
	// PublicURL is where browsers reach the service, without a slash at the end; it is not known where empty.
	PublicURL string
	// PreviewKey is a key with which the widget's preview asks; the preview does not ask where it is nil.
	PreviewKey func(p api.Project, now time.Time) string
}

// A Server makes the pages.
type Server struct {
	Deps
	router    *bunrouter.Router
	csrf      *http.CrossOriginProtection
	attempts  *attempts
	passwords *password.Hasher
	feeds     *feeds
	drafts    drafts // projects that are on their way
	counts    counts // of analytics
	previews  chan struct{}
	reference func() (template.HTML, error)

	leaving context.Context // ends when live parts of pages must end
	leave   context.CancelFunc
}

// New makes the pages of a service.
func New(deps Deps) (*Server, error) {
	for name, port := range map[string]any{"Catalog": deps.Catalog, "Pulls": deps.Pulls, "People": deps.People, "System": deps.System,
		"Figures": deps.Figures, "Projects": deps.Projects,
		"Keys": deps.Keys, "Allowances": deps.Allowances,
		"Conversations": deps.Conversations, "Threads": deps.Threads, "Eraser": deps.Eraser,
		"Jobs": deps.Jobs, "Work": deps.Work, "Listings": deps.Listings, "Automations": deps.Automations} {
		if port == nil {
			return nil, fmt.Errorf("web: Deps.%s is not set", name)
		}
	}
	if len(deps.Secret) < 32 {
		return nil, errors.New("web: Deps.Secret must hold at least 32 bytes")
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	deps.PublicURL = strings.TrimRight(deps.PublicURL, "/")
	templates() // a template that cannot be read ends the start, and no visitor waits for it
	s := &Server{Deps: deps, csrf: http.NewCrossOriginProtection(), attempts: newAttempts(),
		passwords: password.NewHasher(), feeds: newFeeds(), previews: make(chan struct{}, mostPreviews)}
	s.reference = sync.OnceValues(s.makeReference)
	s.leaving, s.leave = context.WithCancel(context.Background())
	s.router = bunrouter.New(bunrouter.WithNotFoundHandler(
		func(http.ResponseWriter, bunrouter.Request) error { return api.Missing("page") }))
	for _, r := range s.routes() {
		s.router.Handle(r.method, r.pattern, s.guard(r))
		if r.method == http.MethodGet {
			s.router.Handle(http.MethodHead, r.pattern, s.guard(r))
		}
	}
	return s, nil
}

// Routes yields the method and the pattern of each page.
func (s *Server) Routes() iter.Seq2[string, string] {
	return func(yield func(method, pattern string) bool) {
		for _, r := range s.routes() {
			if !yield(r.method, r.pattern) {
				return
			}
		}
	}
}

// A Rule is one line of the table of routes: a page, or what a form does, and what a visitor must be for it: anybody,
// signed in, viewer, editor, owner or operator.
type Rule struct{ Method, Pattern, Need string }

// Rules is the table of routes.
func (s *Server) Rules() (list []Rule) {
	for _, r := range s.routes() {
		list = append(list, Rule{r.method, r.pattern, r.need.String()})
	}
	return list
}

// ServePage answers a request for a page. Client is who asks, and secure is whether the request came over TLS. An
// error is for FailPage.
func (s *Server) ServePage(w http.ResponseWriter, req *http.Request, client netip.Addr, secure bool) error {
	return s.router.ServeHTTPError(&answer{ResponseWriter: w, client: client, secure: secure}, req)
}

// Leave ends the live parts of pages: the server stops.
func (s *Server) Leave() { s.leave() }

// An answer carries who asks to the handler of a page.
type answer struct {
	http.ResponseWriter
	client netip.Addr
	secure bool
}

// Unwrap lets http.ResponseController find deadlines and flushing.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
