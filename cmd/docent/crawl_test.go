package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// A site is shown before it is read, is a project's documentation and a further source of another, and is followed.
func TestAWebSiteIsPreviewedAddedAndFollowed(t *testing.T) {
	t.Parallel()
	site, change := aChangingSite(t)
	data, address := filepath.Join(t.TempDir(), "data"), site+"/docs/"
	if out := docent(t, "crawl", "preview", address, "--allow-private"); !strings.Contains(out, "following links") ||
		!strings.Contains(out, "Pumps") || strings.Contains(out, "Menu") {
		t.Errorf("the preview:\n%s", out)
	}
	out := docent(t, "project", "add", "manual", "--data", data, "--domain", "manual.example.com", "--kind", "web", "--source", address,
		"--allow-private")
	if !strings.Contains(out, "2 pages") || !strings.Contains(out, site) {
		t.Errorf("added:\n%s", out)
	}
	if out := docent(t, "project", "check", "manual", "--data", data); !strings.Contains(out, address+"pumps ") ||
		!strings.Contains(out, "source docs (web): read 20") ||
		!strings.Contains(out, ": 0 new, 0 changed, 0 gone, 1 left out, 0 failed; again ") {
		t.Errorf("checked:\n%s", out)
	}
	docent(t, "project", "add", "own", "--data", data, "--domain", "own.example.com", "--source", writeFiles(t, onePage))
	if out := docent(t, "source", "add", "own", "manual", "--data", data, "--kind", "web", "--address", address, "--allow-private",
		"--every", "24h"); !strings.Contains(out, "2 pages") {
		t.Errorf("added as a source:\n%s", out)
	}
	change()
	if out := docent(t, "index", "manual", "--data", data); !strings.Contains(out, "2 pages, 2 sections at ") ||
		!strings.Contains(out, ": 0 added, 1 modified, 0 removed") {
		t.Errorf("read again:\n%s", out)
	}
	if out := docent(t, "source", "list", "own", "--data", data); !strings.Contains(out, "web") || !strings.Contains(out, "good") {
		t.Errorf("listed:\n%s", out)
	}
}

// aSite serves a documentation of two pages below /docs/.
func aSite(t *testing.T) (address string) {
	address, _ = aChangingSite(t)
	return address
}

// aChangingSite is aSite, one page of which says something else once change was called.
func aChangingSite(t *testing.T) (address string, change func()) {
	t.Helper()
	var changed atomic.Bool
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/docs/":
			fmt.Fprint(w, `<main><h1>Manual</h1><p>Begin with <a href="pumps">pumps</a> and <a href="gone">more</a>, not <a href="hidden">this</a>.</p></main>`)
		case "/docs/hidden":
			fmt.Fprint(w, `<meta name="robots" content="noindex"><main><h1>Hidden</h1><p>Not for readers who search.</p></main>`)
		case "/docs/pumps":
			text := "A pump is primed by turning the handle twice."
			if changed.Load() {
				text = "A pump is primed by pressing the lever."
			}
			fmt.Fprintf(w, `<nav>Menu</nav><main><h1>Pumps</h1><h2 id="priming-it">Priming a pump</h2><p>%s</p></main>`, text)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(site.Close)
	return site.URL, func() { changed.Store(true) }
}
