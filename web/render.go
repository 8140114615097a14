package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"docent/api"
	"docent/gzipped"
	"docent/persistence/catalog"
	"docent/web/assets"
)

//go:embed templates/*.html
var templateFiles embed.FS

// templates are all pages and parts of pages. A file keys.html defines "keys" and parts such as "keys.rows".
//
// They are read once, when a server of pages is made: the commands of the program have no use for them.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"asset": assets.Path,
		"when":  func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
		"iso":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"count": count,
		"dict":  dict,
		"list":  func(values ...string) []string { return values },
		"lower": strings.ToLower,
		"percent": func(d catalog.Day) string {
			if n := share(d); n >= 0 {
				return strconv.Itoa(n) + " %"
			}
			return "–"
		},
		"size": size, "seconds": seconds, "dollars": func(cents float64) string { return fmt.Sprintf("$%.2f", cents/100) },
		"whole": func(n int64) uint64 { return uint64(max(n, 0)) },

		"plus":       func(a, b int) int { return a + b },
		"markdown":   markdown,
		"webAddress": webAddress,

		"partOf": partOf, "percentOf": percentOf, "cut": cutText, "outside": outside,
		"join":  func(words []string) string { return strings.Join(words, " ") },
		"minus": func(a, b int) int { return a - b }, "gapWords": gapWords, "gapBadge": gapBadge,
	}).ParseFS(templateFiles, "templates/*.html"))
})

// policy lets a page load and run nothing but what this server sends in files of their own. Its forms come back here.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// A page is what a template is given: its own view, and what every page needs.
type page struct {
	View    any
	Title   string
	Name    string      // of the template
	Token   string      // what each form must bring along
	Who     string      // who is signed in; empty where nobody is
	Person  bool        // it is a person, and no key and no one-time link
	Project api.Project // empty where the page is of none
	Base    string      // address of the project's overview
	Org     api.OrgID
	Nav     bool   // the page has the console's menu
	Flash   string // what the page before has done
	Path    string // the page's own address
	Version string
	Content template.HTML // of the page, in the shell
	visit   *visit
}

// May reports whether the visitor has that role in the page's organization, or is the operator.
func (p page) May(role string) bool {
	switch {
	case p.visit == nil:
		return false
	case role == "operator":
		return p.visit.who.operator
	}
	return p.visit.who.role(p.visit.org).AtLeast(api.Role(role))
}

// Current says whether an entry of the menu leads to the page itself ("page") or to what it is a part of ("true").
func (p page) Current(at string) string {
	at, _, _ = strings.Cut(at, "?")
	switch {
	case p.Path == at:
		return "page"
	case at != p.Base && at != "/console" && strings.HasPrefix(p.Path, at+"/"):
		return "true"
	}
	return ""
}

func (s *Server) page(v *visit, name, title string, view any) page {
	p := page{View: view, Title: title, Name: name, Project: v.project, Org: v.org, Version: s.Version, visit: v,
		Path: v.Req.URL.Path}
	if v.project.ID != "" {
		p.Base = v.base()
	}
	if v.signedIn {
		p.Who, p.Person, p.Token = v.who.name, v.who.person.ID != "", v.formToken()
		p.Nav = (p.Path == "/console" || strings.HasPrefix(p.Path, "/console/")) && !strings.HasPrefix(p.Path, "/console/setup")
	}
	return p
}

// render writes a page: its template within the shell.
func (s *Server) render(v *visit, name, title string, view any) error {
	return s.renderStatus(v, http.StatusOK, name, title, view)
}

func (s *Server) renderStatus(v *visit, status int, name, title string, view any) error {
	p := s.page(v, name, title, view)
	p.Flash = v.flash()
	if !v.signedIn { // only a page's own form, which is the one for signing in
		p.Token = s.token(s.visitCookie(v))
	}
	return write(v, v.Req, status, p)
}

// write renders a page into the shell, and the shell to the browser.
func write(w http.ResponseWriter, req *http.Request, status int, p page) error {
	var content, whole bytes.Buffer
	if err := templates().ExecuteTemplate(&content, p.Name, p); err != nil {
		return fmt.Errorf("render the page %s: %w", p.Name, err)
	}
	p.Content = template.HTML(content.String()) // of our own templates, which escape
	if err := templates().ExecuteTemplate(&whole, "shell", p); err != nil {
		return fmt.Errorf("render the shell of %s: %w", p.Name, err)
	}
	sendTo(w, req, status, "text/html; charset=utf-8", whole.Bytes())
	return nil
}

// part writes a part of a page, for htmx.
func (s *Server) part(v *visit, name string, view any) error {
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, name, s.page(v, name, "", view)); err != nil {
		return fmt.Errorf("render the part %s: %w", name, err)
	}
	send(v, http.StatusOK, "text/html; charset=utf-8", b.Bytes())
	return nil
}

// protect sets what keeps a page from being misused.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // a path may be what opens a page: other sites do not get to see it
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Add("Vary", "HX-Request") // the same address gives a page and a part of it
}

// send answers a visit.
func send(v *visit, status int, kind string, body []byte) { sendTo(v, v.Req, status, kind, body) }

// sendTo answers a request. HTML is compressed where the browser reads that.
func sendTo(w http.ResponseWriter, req *http.Request, status int, kind string, body []byte) {
	h := w.Header()
	if strings.HasPrefix(kind, "text/html") {
		protect(h)
		body = compress(h, req, body)
	}
	h.Set("Content-Type", kind)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // where it can
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
	view := errorView{
		Status:   status,
		Name:     http.StatusText(status),
		Message:  message,
		Problems: problems,
		Request:  request,
	}
	p := page{View: view, Title: view.Name, Name: "error", Path: req.URL.Path, Version: s.Version}
	if req.Header.Get("HX-Request") == "true" {
		var b bytes.Buffer
		if templates().ExecuteTemplate(&b, "error.part", p) == nil {
			w.Header().Set("HX-Retarget", "#problems")
			w.Header().Set("HX-Reswap", "innerHTML")
			sendTo(w, req, status, "text/html; charset=utf-8", b.Bytes())
			return
		}
	}
	if err := write(w, req, status, p); err != nil {
		s.Log.Error("an error could not be shown", "error", err)
		sendTo(w, req, http.StatusInternalServerError, "text/plain; charset=utf-8", []byte(message))
	}
}

// renderer renders what people and models write. Raw HTML and links that run programs are left out: that is goldmark's
// default, which nothing here may change. Table cells are aligned by attribute, since a page takes no inline styles.
var renderer = goldmark.New(goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
	extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))))

// markdown renders what people and models write, as nothing but text with its form.
func markdown(text string) (template.HTML, error) {
	var b bytes.Buffer
	if err := renderer.Convert([]byte(text), &b); err != nil {
		return "", fmt.Errorf("render Markdown: %w", err)
	}
	return template.HTML(b.String()), nil
}

// count is a number with its noun, as in "1 page" and "2 pages".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
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
func (s *Server) asset(v *visit) error {
	a, ok := assets.Find(v.param("file"))
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
	send(v, http.StatusOK, a.Type, a.Content)
	return nil
}

// icon is what browsers show beside a page's name.
func (s *Server) icon(v *visit) error {
	v.Header().Set("Cache-Control", "public, max-age=86400")
	a := assets.Source("favicon.svg")
	send(v, http.StatusOK, a.Type, a.Content)
	return nil
}
