package console

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"docent/api"
	"docent/internal/brief"
	"docent/internal/cell"
	"docent/internal/gzipped"
	"docent/persistence/catalog"
	"docent/web/assets"
	"docent/web/templates"
)

// parsed returns all pages and parts of pages. They are read once, when a server of pages is made: the commands of the
// program have no use for them.
var parsed = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"asset": assets.Path,
		"when":  func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
		"clock": func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04:05 UTC") },
		"iso":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"count": brief.Count,
		"dict":  dict,
		"list":  func(values ...string) []string { return values },
		"lower": strings.ToLower,
		"percent": func(d catalog.Day) string {
			if n := AnsweredPercent(d); n >= 0 {
				return strconv.Itoa(n) + "%"
			}
			return "–"
		},
		"size": FormatBytes, "seconds": FormatSeconds, "dollars": func(cents float64) string { return fmt.Sprintf("$%.2f", cents/100) },
		"whole": func(n int64) uint64 { return uint64(max(n, 0)) },

		"plus":       func(a, b int) int { return a + b },
		"markdown":   ownMarkdown,
		"webAddress": webAddress,

		"partOf": partOf, "percentOf": PercentOf, "cut": Shorten, "outside": outside,
		"join":  func(words []string) string { return strings.Join(words, " ") },
		"minus": func(a, b int) int { return a - b }, "gapWords": gapWords, "gapBadge": gapBadge, "jobState": JobState, "plain": plainText,
	}).ParseFS(templates.Files, "*.html"))
})

// Execute returns a page or a part of one as HTML.
func Execute(name string, data any) (template.HTML, error) {
	var b strings.Builder
	if err := parsed().ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	if name == "shell" { // what it frames is labeled
		return template.HTML(b.String()), nil
	}
	return template.HTML(labeled(b.String())), nil // of our own templates, which escape
}

// policy lets a page load and run nothing but what this server sends in files of their own. Its forms come back here.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// A page is what a template is given: its own view, and what every page needs.
type page struct {
	View    any
	Title   string
	Name    string      // of the template
	Token   string      // what each form must bring along
	Who     string      // who is signed in; empty if nobody is
	Person  bool        // it is a person, and no key and no one-time link
	ByKey   bool        // it is a key
	Project api.Project // empty if the page is of none
	Base    string      // address of the project's overview
	Org     api.OrgID
	Nav     bool   // the page has the console's menu
	Flash   string // what the page before has done
	Path    string // the page's own address
	Version string
	Content template.HTML // of the page, in the shell
	Faults  []fault       // what is wrong with the page's form
	Failed  bool          // what the visitor did was not done
	visit   *Visit
}

// May reports whether the visitor has that role in the page's organization, or is the operator.
func (p page) May(role string) bool {
	switch {
	case p.visit == nil:
		return false
	case role == "operator":
		return p.visit.Who.Rights.Operator
	}
	return p.visit.Who.Role(p.visit.Org).AtLeast(api.Role(role))
}

// Operator reports whether the visitor runs the server.
func (p page) Operator() bool { return p.May("operator") }

// Here returns the address to which a visitor comes back who signs in first, with what it asks for.
func (p page) Here() string {
	if p.visit == nil {
		return p.Path
	}
	return p.visit.page()
}

// Side reports whether the page has a menu beside it.
func (p page) Side() bool { return p.Nav || p.Name == "manual" }

// help are the pages of the documentation that explain pages, by the beginnings of their templates' names.
var help = map[string]string{
	"account": "console/people", "analytics": "console/analytics", "audit": "console/people", "authorize": "assistant/mcp", "automation": "agent/automations",
	"automations": "agent/automations", "connect": "api/outgoing-webhooks", "conversations": "console/conversations",
	"forget": "console/conversations", "gap": "console/gaps", "gaps": "console/gaps", "hooks": "api/outgoing-webhooks", "job": "api/agent#in-the-console",
	"jobs": "api/agent#in-the-console", "keys": "api/keys#in-the-console", "models": "deploy/models", "overview": "console#overview",
	"people": "console/people", "playground": "console/playground", "projects": "console", "pull": "agent/pull-requests#on-the-built-in-code-host", "pulls": "agent/pull-requests#on-the-built-in-code-host",
	"reference": "api/overview", "report": "console/analytics#weekly-report", "settings": "concepts/projects#check-change-or-remove-a-project", "setup": "console#add-a-project",
	"sources": "deploy/sources#in-the-console", "system": "console#system", "thread": "console/conversations", "webhook": "api/updates",
	"widget": "assistant/widget",
}

// Help returns the page of the documentation that explains this one, below /docs; empty if none does.
func (p page) Help() string {
	name, _, _ := strings.Cut(p.Name, ".")
	return help[name]
}

// Current says whether an entry of the menu leads to the page itself ("page") or to what it is a part of ("true").
func (p page) Current(at string) string {
	at, _, _ = strings.Cut(at, "?")
	switch {
	case p.Path == at:
		return "page"
	case at != p.Base && at != "/console" && at != "/console/system" && strings.HasPrefix(p.Path, at+"/"):
		return "true"
	}
	return ""
}

func (s *Server) page(v *Visit, name, title string, view any) page {
	p := page{View: view, Title: title, Name: name, Project: v.Project, Org: v.Org, Version: s.Version, visit: v,
		Path: v.Req.URL.Path}
	if v.Project.ID != "" {
		p.Base = v.Base()
	}
	p.ByKey = v.Who.Rights.Key != nil
	if v.SignedIn {
		p.Who, p.Person, p.Token = v.Who.Name, v.Who.Person.ID != "", v.formToken()
		p.Nav = (p.Path == "/console" || strings.HasPrefix(p.Path, "/console/")) && !strings.HasPrefix(p.Path, "/console/setup") ||
			p.Base != "" && strings.HasPrefix(p.Path, "/pulls/")
	}
	return p
}

// Render writes a page: its template within the shell.
func (s *Server) Render(v *Visit, name, title string, view any) error {
	return s.RenderStatus(v, http.StatusOK, name, title, view)
}

// RenderStatus writes a page with another status than 200.
func (s *Server) RenderStatus(v *Visit, status int, name, title string, view any) error {
	p := s.page(v, name, title, view)
	p.Flash = v.flash()
	if !v.SignedIn { // only a page's own form, which is the one for signing in
		p.Token = s.token(s.visitCookie(v))
	}
	return write(v, v.Req, status, p)
}

// write renders a page into the shell, and the shell to the browser.
func write(w http.ResponseWriter, req *http.Request, status int, p page) error {
	var err error
	if p.Content, err = Execute(p.Name, p); err != nil {
		return err
	}
	if p.Failed = status >= http.StatusBadRequest; p.Failed {
		p.Faults = faultsOf(p.Content)
	}
	whole, err := Execute("shell", p)
	if err != nil {
		return err
	}
	sendTo(w, req, status, "text/html; charset=utf-8", []byte(whole))
	return nil
}

// Part writes a part of a page, for htmx.
func (s *Server) Part(v *Visit, name string, view any) error {
	text, err := Execute(name, s.page(v, name, "", view))
	if err == nil {
		Send(v, http.StatusOK, "text/html; charset=utf-8", []byte(text))
	}
	return err
}

// protect sets what keeps a page from being misused.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // a path may be what opens a page: other sites do not get to see it
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Add("Vary", "HX-Request") // the same address gives a page and a part of it
}

// Send answers a visit.
func Send(v *Visit, status int, kind string, body []byte) { sendTo(v, v.Req, status, kind, body) }

// sendTo answers a request. HTML is compressed if the browser reads that.
func sendTo(w http.ResponseWriter, req *http.Request, status int, kind string, body []byte) {
	h := w.Header()
	if strings.HasPrefix(kind, "text/html") {
		protect(h)
		body = gzipped.Answer(h, gzipped.Taken(req), body)
	}
	h.Set("Content-Type", kind)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // if it can
	w.WriteHeader(status)
	w.Write(body) // a browser that has gone is no error of ours
}

// writeTimeout is how long a browser may take to read what it is sent.
const writeTimeout = 30 * time.Second

type errorView struct {
	Status   int
	Name     string
	Message  string
	Problems []api.Problem
	Request  string
}

// FailPage writes an error for a person.
func (s *Server) FailPage(w http.ResponseWriter, req *http.Request, status int, message string,
	problems []api.Problem, request string) {
	view := errorView{Status: status, Name: brief.Capital(strings.ToLower(http.StatusText(status))), Message: message, Problems: problems, Request: request}
	p := s.page(s.visitOf(w, req), "error", view.Name, view)
	if req.Header.Get("HX-Request") == "true" {
		if part, err := Execute("error.part", p); err == nil {
			w.Header().Set("HX-Retarget", "#problems")
			w.Header().Set("HX-Reswap", "innerHTML")
			sendTo(w, req, status, "text/html; charset=utf-8", []byte(part))
			return
		}
	}
	if err := write(w, req, status, p); err != nil {
		s.Log.Error("could not show an error page", "error", err)
		sendTo(w, req, http.StatusInternalServerError, "text/plain; charset=utf-8", []byte(message))
	}
}

// visitOf is who sees an error, so that it is shown with the menu that the visitor knows. Nobody is signed in if it cannot be
// told.
func (s *Server) visitOf(w http.ResponseWriter, req *http.Request) *Visit {
	v := &Visit{ResponseWriter: w, Req: req, Now: s.Now(), server: s}
	if p, ok := w.(interface{ Peer() (netip.Addr, bool) }); ok {
		v.Client, v.secure = p.Peer()
	}
	who, ok, err := s.identify(v)
	if err != nil || !ok {
		return v
	}
	v.SignedIn, v.Who = true, who
	parts := strings.Split(req.URL.Path, "/")
	if len(parts) < 4 || parts[1] != "console" || !who.Role(api.OrgID(parts[2])).Valid() {
		return v
	}
	v.Org = api.OrgID(parts[2])
	if p, err := s.Catalog.ProjectByDomain(v.Context(), parts[3]); err == nil && p.Org == v.Org {
		v.Project = p
	}
	return v
}

// renderer renders what people and models write. Raw HTML and links that run programs are left out: that is goldmark's
// default, which nothing here may change. Table cells are aligned by attribute, since a page takes no inline styles.
var renderer = goldmark.New(goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
	extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))))

// Markdown renders what people and models write, as nothing but text with its form. It is done in the cell: a text may
// be written to take long. What cannot be rendered is shown as it is written.
func (s *Server) Markdown(ctx context.Context, project api.ProjectID, text string) template.HTML {
	if text == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(cell.WithOwner(ctx, string(project)), MaxRendering)
	defer cancel()
	out, err := s.Cell(ctx, kindMarkdown, []byte(text))
	if err != nil {
		s.Log.Warn("showing a text as plain text", "project", project, "bytes", len(text), "error", err)
		return template.HTML("<pre>" + template.HTMLEscapeString(text) + "</pre>\n")
	}
	return template.HTML(out)
}

// MaxRendering is how long a page waits for a text to be rendered, with all that others have rendered before it.
const MaxRendering = 20 * time.Second

const kindMarkdown = "Markdown"

// MarkdownKind returns the renderer of what people and models write, which the program runs in the cell.
func MarkdownKind() cell.Kind {
	return cell.Kind{Name: kindMarkdown, Time: time.Second, MaxInput: 256 << 10, MaxOutput: 4 << 20, Read: render}
}

// ownMarkdown renders what comes with the program: descriptions of its API.
func ownMarkdown(text string) (template.HTML, error) {
	out, err := render([]byte(text))
	return template.HTML(out), err
}

func render(text []byte) ([]byte, error) {
	var b bytes.Buffer
	err := renderer.Convert(text, &b)
	return b.Bytes(), err
}

// dict gives a template inside a template several values by name.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: %d values are no pairs", len(pairs))
	}
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is no name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// asset serves a style, a script or a picture. Its name has the hash of what it holds.
func (s *Server) asset(v *Visit) error {
	a, ok := assets.Find(v.Param("file"))
	if !ok {
		return api.Missing("file")
	}
	v.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	v.Header().Set("X-Content-Type-Options", "nosniff")
	v.Header().Add("Vary", "Accept-Encoding")
	if a.Compressed != nil && gzipped.Taken(v.Req) {
		v.Header().Set("Content-Encoding", "gzip")
		a.Content = a.Compressed
	}
	Send(v, http.StatusOK, a.Type, a.Content)
	return nil
}

// icon is what browsers show beside a page's name.
func (s *Server) icon(v *Visit) error {
	v.Header().Set("Cache-Control", "public, max-age=86400")
	a := assets.Source("favicon.svg")
	Send(v, http.StatusOK, a.Type, a.Content)
	return nil
}
