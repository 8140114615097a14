package kill

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"docent/bench/lab"
	"docent/tests/harness"
)

// hostilePages are the bodies of pages of a site that was written to end the server, to take its memory, or to stop it.
var hostilePages = map[string]string{
	// a label that is a panel of other tabs
	"tabs": `<main><h1>N</h1><p>Some text.</p><div class="tabbed-set"><div class="blocks"><p>X</p></div><div class="tabs blocks"><label>L1</label></div><div class="tabs"><label>L2</label></div></div></main>`,
	// a table of 40 million columns
	"wide": `<table><tr><td colspan=40000000>a</td></tr></table>`,
	// lists of tabs without panels, whose reading took time with their third power
	"lists": "<main><h1>Lists</h1>" + strings.Repeat("<ul role=tablist><li role=tab>a<li role=tab>b</ul>", 1000) +
		strings.Repeat("<div role=tabpanel><p>x</div>", 1000) + "</main>",
	// four million parts of a page
	"heavy": "<main><h1>Heavy</h1>" + strings.Repeat("<p>x", 2_000_000),
	"good":  "<main><h1>Good</h1><p>The good page tells how a valve is bled.</main>",
}

// hostileSite serves them, and a sitemap that names one page half a million times.
func hostileSite(t *testing.T) *httptest.Server {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, "<urlset>")
	for name := range hostilePages {
		fmt.Fprintf(z, "<url><loc>/%s</loc></url>", name)
	}
	_, _ = io.WriteString(z, strings.Repeat("<url><loc>/good</loc></url>", 500_000)+"</urlset>")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		w.Header().Set("Content-Type", "text/html")
		switch body, ok := hostilePages[name]; {
		case ok:
			_, _ = io.WriteString(w, body)
		case name == "":
			_, _ = io.WriteString(w, "<main><h1>Home</h1><p>Where it begins.</main>")
		case name == "robots.txt":
			w.Header().Set("Content-Type", "text/plain")
			for i := range 4 {
				fmt.Fprintf(w, "Sitemap: http://%s/map%d.xml.gz\n", r.Host, i)
			}
		case strings.HasPrefix(name, "map"):
			w.Header().Set("Content-Type", "application/gzip")
			_, _ = w.Write(packed.Bytes())
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(site.Close)
	return site
}

// What a web site and a description of an API hold ends neither the server nor the reading of others: it is told where
// the source is shown.
func TestAHostileSourceIsReadApart(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "hostile", harness.WriteFiles(t, harness.OnePage))
	before := metricOf(t, server, "go_memstats_alloc_bytes_total")
	site := hostileSite(t)
	out := harness.Docent(t, "source", "add", "hostile", "site", "--data", data, "--kind", "web", "--address", site.URL+"/", "--allow-private")
	if !strings.Contains(out, "5 pages") {
		t.Errorf("added:\n%s", out)
	}
	if took := metricOf(t, server, "go_memstats_alloc_bytes_total") - before; took > 400<<20 {
		t.Errorf("the server took %.0f bytes", took)
	}
	if out := harness.Docent(t, "source", "list", "hostile", "--data", data, "--json"); !strings.Contains(out, site.URL+"/heavy: it takes too much memory to be read") {
		t.Errorf("the sources:\n%s", out)
	}
	answered := func(p harness.Project, question, want string) {
		t.Helper()
		if answer := harness.Docent(t, "ask", "--url", server.URL, "--domain", p.Domain, "--key", p.Assistant, question); !strings.Contains(answer, want) {
			t.Errorf("%s answers %s", p.ID, answer)
		}
	}
	answered(p, "How is a valve bled?", "valve")

	files := map[string]string{"index.md": "# API\n\nThe pages of an API."}
	for i := range 3 {
		files[fmt.Sprintf("openapi%d.json", i)] = itself(20)
	}
	harness.Docent(t, "source", "add", "hostile", "api", "--data", data, "--address", harness.WriteFiles(t, files))
	other := harness.NewProject(t, data, "other", harness.WriteFiles(t, map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n"}))
	answered(other, "How is green tea brewed?", "eighty")
	if out := harness.Docent(t, "crawl", "preview", site.URL+"/", "--allow-private"); !strings.Contains(out, "it takes too much memory to be read") {
		t.Errorf("the preview:\n%s", out)
	}
}

// itself is a description of an API of some hundred bytes whose schema is k times a part of itself.
func itself(k int) string {
	var properties []string
	for i := range k {
		properties = append(properties, fmt.Sprintf(`"%c":{"$ref":"#/S"}`, 'a'+i))
	}
	call := `{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/S"}}}}}}`
	return `{"openapi":"3.1.0","info":{"title":"X"},"paths":{"/1":` + call + `,"/2":` + call + `},"S":{"properties":{` +
		strings.Join(properties, ",") + `}}}`
}

// metricOf is a figure of the server's metrics.
func metricOf(t *testing.T, s *harness.Server, name string) (value float64) {
	t.Helper()
	page, err := lab.Get(t.Context(), s.URL+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(rest, &value); err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
