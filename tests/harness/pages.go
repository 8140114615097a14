package harness

import (
	"archive/zip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// Site serves a documentation of two pages below /docs/.
func Site(t *testing.T) (address string) {
	address, _ = ChangingSite(t)
	return address
}

// ChangingSite is Site, one page of which says something else once change was called.
func ChangingSite(t *testing.T) (address string, change func()) {
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

// ZipOf makes a zip of files and gives its path.
func ZipOf(t *testing.T, files map[string]string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pages.zip")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(out)
	for path, text := range files {
		f, err := w.Create(path)
		if err == nil {
			_, err = io.WriteString(f, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}
