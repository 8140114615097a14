package router

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/forge"
)

//go:embed pages.css
var css string

//go:embed pages.html
var pagesHTML string

//go:embed pages.js
var script string

//go:embed favicon.svg
var favicon []byte

var pages = template.Must(template.New("pages").Funcs(template.FuncMap{
	"css":    func() template.CSS { return template.CSS(css) },
	"script": func() template.JS { return template.JS(script) },
	"when":   func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
	"iso":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
}).Parse(pagesHTML))

// policy lets a page load and run nothing but its own: its style and its script, named by their hashes, its icon, and
// more of itself. Its forms come back here.
var policy = func() string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src " + hash(css) + "; script-src " + hash(script) +
		"; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

type pullView struct {
	Pull     api.PullRequest
	Project  string
	Diff     forge.Diff
	Title    string
	Body     template.HTML
	Files    []fileView
	One      bool // of the files is shown, which was asked for
	SignedIn bool
	MayMerge bool
	Token    string
}

type fileView struct {
	forge.FileDiff
	Anchor   string
	Hunks    []hunk
	Later    bool // its changes are fetched when it is opened
	TooLarge bool
}

type loginView struct {
	Next    string
	Token   string
	Key     string // name of the key that is signed in
	Problem string
}

type errorView struct {
	Status  int
	Name    string
	Message string
	Request string
}

// render writes a page.
func (s *Server) render(x *exchange, status int, name, title string, view any) error {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, map[string]any{"Title": title, "View": view}); err != nil {
		return fmt.Errorf("render the page %s: %w", name, err)
	}
	h := x.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin") // the path is what opens a pull request: other sites do not get to see it
	write(x, status, "text/html; charset=utf-8", b.Bytes())
	return nil
}

// failPage writes an error for a person.
func (s *Server) failPage(x *exchange, req *http.Request, a answer) {
	v := errorView{Status: a.status, Name: http.StatusText(a.status), Message: a.message, Request: x.id}
	if err := s.render(x, a.status, "error", v.Name, v); err != nil {
		x.err = err
		write(x, http.StatusInternalServerError, "text/plain; charset=utf-8", []byte(a.message))
	}
}

// wantsPage reports whether the caller is a browser that shows a page.
func wantsPage(req *http.Request) bool {
	return strings.Contains(req.Header.Get("Accept"), "text/html")
}

// icon is what browsers show beside a page's name.
func (s *Server) icon(x *exchange, _ bunrouter.Request) error {
	x.Header().Set("Cache-Control", "public, max-age=86400")
	write(x, http.StatusOK, "image/svg+xml", favicon)
	return nil
}

// index says what this is to whoever opens the address in a browser.
func (s *Server) index(x *exchange, req bunrouter.Request) error {
	return s.render(x, http.StatusOK, "index", "Docent", s.Version)
}
