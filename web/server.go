package web

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/internal/cell"
	"docent/internal/required"
	"docent/router/oauth"
	"docent/web/console"
	"docent/web/insights"
	"docent/web/manual"
	"docent/web/people"
	"docent/web/projects"
	"docent/web/system"
	"docent/web/work"
)

// Deps is what the pages work with, as the packages of pages and console.Deps describe it.
type Deps struct {
	Catalog   Catalog
	Log       *slog.Logger // none if nil
	Now       func() time.Time
	Version   string
	Secret    []byte
	PublicURL string
	Cell      func(ctx context.Context, kind string, input []byte) ([]byte, error)
	Setting   func(ctx context.Context) error

	Provider  people.Provider
	Newcomers people.Newcomers
	Counts    people.Counts
	Clients   *oauth.Server

	Setup       projects.Setup
	Tasks       projects.Tasks
	Sources     projects.Sources
	Projects    projects.Conditions
	Allowances  projects.Allowances
	Automations projects.Automations
	Webhooks    projects.Webhooks
	Secrets     projects.Secrets
	PreviewKey  func(p api.Project, now time.Time) string

	Readers console.Readers
	Tries   console.Tries
	Finder  insights.Finder
	Models  insights.Models
	Threads insights.Threads
	Eraser  insights.Eraser
	Topics  insights.Topics
	Reports insights.Reports

	Jobs   job.Asker
	Work   work.Work
	Pulls  work.Pulls
	System system.System

	LanguageModels system.LanguageModels
}

// Catalog knows what all pages list and change.
type Catalog interface {
	console.Catalog
	people.Catalog
	projects.Catalog
	insights.Catalog
	work.Catalog
	system.Catalog
}

// A Server makes the pages.
type Server struct {
	*console.Server
	deps Deps
}

// New makes the pages of a service.
func New(deps Deps) (*Server, error) {
	if err := required.Fields("web", deps, "Catalog", "Pulls", "System", "Projects", "Allowances", "Threads", "Eraser", "Jobs",
		"Work", "Automations", "Cell", "Setting"); err != nil {
		return nil, err
	}
	if len(deps.Secret) < 32 {
		return nil, errors.New("web: Deps.Secret must hold at least 32 bytes")
	}
	s := &Server{console.NewServer(console.Deps{Catalog: deps.Catalog, Cell: deps.Cell, Setting: deps.Setting, Log: deps.Log,
		Now: deps.Now, Version: deps.Version, Secret: deps.Secret, PublicURL: deps.PublicURL}), deps}
	s.Handle(s.routes())
	return s, nil
}

// routes is every page and each thing that a form does.
func (s *Server) routes() []console.Route {
	d := s.deps
	return slices.Concat(s.Assets(),
		people.Routes(s.Server, people.Deps{Catalog: d.Catalog, Provider: d.Provider, Newcomers: d.Newcomers, Counts: d.Counts,
			Clients: d.Clients}),
		projects.Routes(s.Server, projects.Deps{Catalog: d.Catalog, Setup: d.Setup, Tasks: d.Tasks, Sources: d.Sources,
			Conditions: d.Projects, Allowances: d.Allowances, Automations: d.Automations, Webhooks: d.Webhooks, Secrets: d.Secrets,
			Readers: d.Readers, Tries: d.Tries, PreviewKey: d.PreviewKey}),
		insights.Routes(s.Server, insights.Deps{Catalog: d.Catalog, Threads: d.Threads, Eraser: d.Eraser, Readers: d.Readers,
			Tries: d.Tries, Finder: d.Finder, Models: d.Models, Topics: d.Topics, Reports: d.Reports}),
		manual.Routes(s.Server),
		work.Routes(s.Server, work.Deps{Catalog: d.Catalog, Jobs: d.Jobs, Work: d.Work, Models: d.Models, Pulls: d.Pulls}),
		system.Routes(s.Server, system.Deps{Catalog: d.Catalog, System: d.System, Models: d.LanguageModels}))
}

// Routes yields the method and the pattern of each page.
func (s *Server) Routes() iter.Seq2[string, string] {
	return func(yield func(method, pattern string) bool) {
		for _, r := range s.Rules() {
			if !yield(r.Method, r.Pattern) {
				return
			}
		}
	}
}

// Rules returns the table of routes: every page, and each thing that a form does, with who may see or do it. It is the
// same for any server, also for one that New has not made.
func (s *Server) Rules() (list []console.Rule) {
	for _, r := range s.routes() {
		list = append(list, r.Rule())
	}
	return list
}

// RenderKinds returns the renderers of what people, models and repositories write, which the program runs in the cell.
func RenderKinds() []cell.Kind { return []cell.Kind{console.MarkdownKind(), work.PreviewKind()} }
