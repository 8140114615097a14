package crawl

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"docent/internal/cell"
)

// A fakeSite is a site of HTTP with what its server counts.
type fakeSite struct {
	*httptest.Server
	mu     sync.Mutex
	pages  map[string]string // bodies by path, with the query if there is one
	header map[string]http.Header
	code   map[string]int
	plain  bool           // no validators
	asked  map[string]int // requests by path
	sent   map[string]int // of them, those that were answered with a body
	before func(w http.ResponseWriter, r *http.Request) bool
}

func newSite(t *testing.T, pages map[string]string) *fakeSite {
	t.Helper()
	s := &fakeSite{pages: pages, header: map[string]http.Header{}, code: map[string]int{}, asked: map[string]int{},
		sent: map[string]int{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *fakeSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := r.URL.RequestURI()
	s.mu.Lock()
	s.asked[at]++
	body, ok := s.pages[at]
	header, code, before := s.header[at], s.code[at], s.before
	s.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	maps.Copy(w.Header(), header)
	if code != 0 {
		w.WriteHeader(code)
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	body = strings.ReplaceAll(body, "SITE", s.URL)
	tag := `"` + short(body) + `"`
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	}
	if !s.plain {
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	s.mu.Lock()
	s.sent[at]++
	s.mu.Unlock()
	_, _ = io.WriteString(w, body)
}

// set changes the site between two crawls.
func (s *fakeSite) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *fakeSite) counts() (asked, sent map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.asked), maps.Clone(s.sent)
}

// quick crawls as fast as it can, on this machine.
func quick() Options {
	return Options{Cell: cell.InProcess(Kinds()...), Pause: -1, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
}

type reading struct {
	t       *testing.T
	crawler *Crawler
	place   Place
}

func newReading(t *testing.T, o Options) reading {
	dir := t.TempDir()
	return reading{t, New(o), Place{filepath.Join(dir, "pages"), filepath.Join(dir, "state")}}
}

func (r reading) crawl(s Settings) Report {
	r.t.Helper()
	out, err := r.try(s)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r reading) try(s Settings) (Report, error) {
	return r.crawler.Crawl(r.t.Context(), s, r.place, func(string, int, int) {})
}

// files are the pages that were written.
func (r reading) files() map[string]string {
	r.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(r.place.Pages, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == collectedFile {
			return err
		}
		raw, err := os.ReadFile(p)
		rel, _ := filepath.Rel(r.place.Pages, p)
		out[filepath.ToSlash(rel)] = string(raw)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r reading) names() []string { return slices.Sorted(maps.Keys(r.files())) }

func page(title, body string) string {
	return "<html><head><title>" + title + " | Docs</title></head><body><nav><a href=/>Home</a></nav><main><h1>" + title +
		"</h1>" + body + "</main></body></html>"
}

func problem(r Report, url string) string {
	for _, p := range r.Problems {
		if strings.HasSuffix(p.URL, url) {
			return p.Why
		}
	}
	return ""
}

func wantNames(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("pages %q, want %q", got, want)
	}
}

func TestASiteIsReadByFollowingItsLinksBelowThePrefix(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{
		"/docs/":              page("Docs", `<p>Begin.</p><a href="guide/">Guide</a> <a href="/blog/">Blog</a> <a href="https://other.example/x">x</a><a href="logo.png">l</a>`),
		"/docs/guide/":        page("Guide", `<h2 id="set-up">Set up</h2><p>See <a href="../api.html?utm_source=x#top">the API</a>.</p><a href="deep/er">d</a>`),
		"/docs/api.html":      page("API", `<p>Calls.</p><a href="/docs/guide/#set-up">g</a>`),
		"/docs/guide/deep/er": page("Deeper", `<p>Deep.</p><a href="mailto:a@b.c">m</a>`),
		"/blog/":              page("Blog", "<p>No.</p>"),
		"/docs/logo.png":      "x",
	})
	r := newReading(t, quick())
	got := r.crawl(Settings{Start: site.URL + "/docs/"})
	if got.Pages != 4 || got.New != 4 || got.Method != "following links" || !got.Complete {
		t.Errorf("%+v", got)
	}
	wantNames(t, r.names(), "docs/api.md", "docs/guide/deep/er.md", "docs/guide/index.md", "docs/index.md")
	guide := r.files()["docs/guide/index.md"]
	want := "---\ntitle: \"Guide\"\nurl: \"" + site.URL + "/docs/guide/\"\n---\n\n## Set up {#set-up}\n\nSee [the API](/docs/api.html?utm_source=x#top).\n\n[d](/docs/guide/deep/er)\n"
	if guide != want {
		t.Errorf("%s\nwant\n%s", guide, want)
	}
	asked, _ := site.counts()
	for _, never := range []string{"/blog/", "/docs/logo.png", "/docs/api.html?utm_source=x"} {
		if asked[never] > 0 {
			t.Errorf("%s was asked for", never)
		}
	}
}

// What a server says is unchanged is not downloaded again, whether links or a sitemap lead to it; what was changed, is
// gone, or cannot be asked for now is told apart.
func TestOnlyWhatChangedIsDownloadedAgain(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{
		"/": page("Home", `<a href="/a">A</a><a href="/b">B</a><a href="/c">C</a><a href="/d">D</a>`), "/a": page("A", "<p>One.</p>"),
		"/b": page("B", "<p>One.</p>"), "/c": page("C", "<p>One.</p>"), "/d": page("D", "<p>One.</p>"),
	})
	r := newReading(t, quick())
	r.crawl(Settings{Start: site.URL})
	again := r.crawl(Settings{Start: site.URL})
	if again.Unchanged != 5 || again.New+again.Changed+again.Gone != 0 || again.Pages != 5 {
		t.Errorf("%+v", again)
	}
	for at, n := range second(site.counts()) {
		if n != 1 {
			t.Errorf("%s was downloaded %d times", at, n)
		}
	}
	site.set(func() {
		site.pages["/a"] = page("A", "<p>Two.</p>")
		delete(site.pages, "/b")
		site.code["/c"] = http.StatusBadGateway
		site.code["/d"] = http.StatusGone
	})
	third := r.crawl(Settings{Start: site.URL})
	if third.Changed != 1 || third.Gone != 2 || third.Failed != 1 || third.Pages != 3 || problem(third, "/c") == "" {
		t.Errorf("%+v", third)
	}
	wantNames(t, r.names(), "a.md", "c.md", "index.md")
	if !strings.Contains(r.files()["a.md"], "Two.") || !strings.Contains(r.files()["c.md"], "One.") {
		t.Errorf("%q", r.files())
	}
	site.set(func() { site.code = map[string]int{} })
	if got := r.crawl(Settings{Start: site.URL}); got.Failed != 0 || got.Changed != 0 || got.New != 1 || got.Pages != 4 {
		t.Errorf("when it is well again: %+v", got)
	}
	// A file that somebody has changed is not what the server calls unchanged.
	if err := os.WriteFile(filepath.Join(r.place.Pages, "a.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.crawl(Settings{Start: site.URL}); got.Changed != 1 || !strings.Contains(r.files()["a.md"], "Two.") {
		t.Errorf("a file that was damaged: %+v", got)
	}
}

func second(_, b map[string]int) map[string]int { return b }

func TestAPageThatNothingLeadsToAnyMoreIsTakenOut(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{"/": page("Home", `<a href="/a">A</a><a href="/b">B</a>`), "/a": page("A", "<p>One.</p>"),
		"/b": page("B", "<p>One.</p>")})
	r := newReading(t, quick())
	r.crawl(Settings{Start: site.URL})
	site.set(func() { site.pages["/"] = page("Home", `<p>Less.</p><a href="/a">A</a>`) })
	if got := r.crawl(Settings{Start: site.URL}); got.Gone != 1 || got.Pages != 2 {
		t.Errorf("%+v", got)
	}
	wantNames(t, r.names(), "a.md", "index.md")
}

func TestSitemapsSayWhichPagesThereAreAndWhichAreUnchanged(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>SITE/b/</loc></url></urlset>`)
	site := newSite(t, nil)
	z.Close()
	plain := strings.ReplaceAll(`<urlset><url><loc>SITE/b/</loc></url><url><loc>https://elsewhere.example/</loc></url></urlset>`, "SITE", site.URL)
	packed.Reset()
	z = gzip.NewWriter(&packed)
	fmt.Fprint(z, plain)
	z.Close()
	site.plain = true // no validators: only the sitemap says what changed
	site.set(func() {
		site.pages = map[string]string{
			"/robots.txt": "User-agent: *\nDisallow: /private/\nSitemap: SITE/maps/index.xml\n",
			"/maps/index.xml": `<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>SITE/maps/one.xml</loc></sitemap>
				<sitemap><loc>SITE/maps/two.xml.gz</loc></sitemap><sitemap><loc>SITE/maps/index.xml</loc></sitemap></sitemapindex>`,
			"/maps/one.xml": `<urlset><url><loc>SITE/a</loc><lastmod>2026-01-01</lastmod></url>
				<url><loc>SITE/private/x</loc></url></urlset>`,
			"/maps/two.xml.gz": packed.String(),
			"/":                page("Home", `<a href="/unlisted">x</a>`), "/a": page("A", "<p>One.</p>"), "/b/": page("B", "<p>One.</p>"),
			"/unlisted": page("U", "<p>x</p>"), "/private/x": page("X", "<p>x</p>"),
		}
		site.header["/robots.txt"] = http.Header{"Content-Type": {"text/plain"}}
		site.header["/maps/two.xml.gz"] = http.Header{"Content-Type": {"application/gzip"}}
		for _, at := range []string{"/maps/index.xml", "/maps/one.xml"} {
			site.header[at] = http.Header{"Content-Type": {"application/xml"}}
		}
	})
	r := newReading(t, quick())
	got := r.crawl(Settings{Start: site.URL})
	if got.Found != 3 || got.Pages != 3 || !strings.Contains(got.Method, "/maps/index.xml and 2 more sitemaps") {
		t.Errorf("%+v", got)
	}
	wantNames(t, r.names(), "a.md", "b/index.md", "index.md")
	if why := problem(got, "/private/x"); !strings.Contains(why, "robots.txt") {
		t.Errorf("what robots.txt forbids: %q", why)
	}
	r.crawl(Settings{Start: site.URL})
	asked, sent := site.counts()
	if sent["/a"] != 1 || sent["/b/"] != 2 || asked["/private/x"]+asked["/unlisted"] > 0 {
		t.Errorf("downloaded: %v", sent)
	}
	site.set(func() {
		site.pages["/maps/one.xml"] = `<urlset><url><loc>SITE/a</loc><lastmod>2026-02-02</lastmod></url></urlset>`
		site.pages["/a"] = page("A", "<p>Two.</p>")
	})
	if got := r.crawl(Settings{Start: site.URL}); got.Changed != 1 {
		t.Errorf("after a new lastmod: %+v", got)
	}
	// A sitemap that cannot be read now says nothing of its pages.
	site.set(func() { site.code["/maps/one.xml"] = 503 })
	if _, err := r.try(Settings{Start: site.URL}); err == nil || len(r.files()) != 3 {
		t.Errorf("a sitemap that fails: %v, %v", err, r.names())
	}
}

// Sites that are built several times a day say on which day, as MkDocs does.
func TestAPageThatChangesTwiceOnADayIsReadTwice(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{"/": page("Home", "<p>x</p>"), "/a": page("A", "<p>One.</p>"), "/b": page("B", "<p>One.</p>"),
		"/sitemap.xml": `<urlset><url><loc>SITE/a</loc><lastmod>` + time.Now().UTC().Format(time.DateOnly) + `</lastmod></url>
			<url><loc>SITE/b</loc><lastmod>2026-01-01</lastmod></url></urlset>`})
	site.set(func() { site.header["/sitemap.xml"] = http.Header{"Content-Type": {"application/xml"}} })
	r := newReading(t, quick())
	r.crawl(Settings{Start: site.URL})
	site.set(func() { site.pages["/a"], site.pages["/b"] = page("A", "<p>Two.</p>"), page("B", "<p>Two.</p>") })
	if got := r.crawl(Settings{Start: site.URL}); got.Changed != 1 || got.Skipped != 1 {
		t.Errorf("%+v; want /a read again, and /b not", got)
	}
}

func TestMarkdownThatLLMsTxtListsIsTakenInPlaceOfHTML(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{
		"/": page("Home", "<p>x</p>"),
		"/llms.txt": "# Acme\n\n> Docs\n\n## Guides\n\n- [Start](SITE/guide/start.md): how to begin\n- [Index](/guide/index.md)\n- [Old](/old.md)\n" +
			"## Optional\n- [Blog](https://blog.example/x.md)\n",
		"/sitemap.xml":    `<urlset><url><loc>SITE/guide/start/</loc></url><url><loc>SITE/more</loc></url></urlset>`,
		"/guide/start.md": "> ## Documentation Index\n> Fetch the index at: SITE/llms.txt\n\n# Start here\n\nRun `it`.\n\n## Then\n\nMore.\n",
		"/guide/index.md": "---\ntitle: Guides\ndescription: All of them\n---\n\n# Guides\n\nText.\n", "/old.md": page("App", "<p>An app for whatever is not there.</p>"),
		"/old": page("Old", "<p>Old page.</p>"), "/more": page("More", "<p>In HTML.</p>"),
	})
	site.set(func() {
		for at := range site.pages {
			if strings.HasSuffix(at, "x.md") || strings.HasSuffix(at, "start.md") {
				site.header[at] = http.Header{"Content-Type": {"text/markdown"}}
			}
		}
		site.header["/llms.txt"] = http.Header{"Content-Type": {"text/plain"}}
		site.header["/sitemap.xml"] = http.Header{"Content-Type": {"text/xml"}}
	})
	r := newReading(t, quick())
	got := r.crawl(Settings{Start: site.URL})
	wantNames(t, r.names(), "guide/index.md", "guide/start/index.md", "index.md", "more.md", "old.md")
	if !strings.Contains(got.Method, "llms.txt (3 Markdown pages)") {
		t.Errorf("%s", got.Method)
	}
	want := "---\ntitle: \"Start here\"\nurl: \"" + site.URL + "/guide/start/\"\n---\n\nRun `it`.\n\n## Then\n\nMore.\n"
	if f := r.files(); f["guide/start/index.md"] != want || !strings.Contains(f["guide/index.md"], `description: "All of them"`) ||
		!strings.Contains(f["old.md"], "Old page.") {
		t.Errorf("%q", f)
	}
}

func TestAWholeSiteInOneFileIsReadOnce(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{
		"/": page("Home", "<p>x</p>"), "/llms.txt": "# Acme\n\n- [Start](/start)\n",
		"/llms-full.txt": "# Start\nSource: SITE/start\n\nBegin.\n\n```md\n# Not a page\nSource: SITE/no\n```\n\n# Next\nSource: SITE/guide/next\n\n## Then\n\nMore.\n",
	})
	site.header["/llms.txt"] = http.Header{"Content-Type": {"text/plain"}}
	site.header["/llms-full.txt"] = http.Header{"Content-Type": {"text/plain"}}
	r := newReading(t, quick())
	r.crawl(Settings{Start: site.URL})
	wantNames(t, r.names(), "guide/next.md", "index.md", "start.md")
	if got := r.crawl(Settings{Start: site.URL}); got.Pages != 3 || got.Changed+got.Gone != 0 {
		t.Errorf("%+v", got)
	}
	if _, sent := site.counts(); sent["/llms-full.txt"] != 1 {
		t.Errorf("downloaded: %v", sent)
	}
	site.set(func() { site.pages["/llms-full.txt"] += "\n# Third\nURL: SITE/third\n\nNew.\n" })
	if got := r.crawl(Settings{Start: site.URL}); got.New != 1 || got.Changed != 0 {
		t.Errorf("%+v", got)
	}
}

func TestRedirectsAreFollowedWithinThePrefixAndNotForEver(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{
		"/docs/":    page("Home", `<a href="/docs/old">o</a><a href="/docs/out">o</a><a href="/docs/ring">r</a><a href="/docs/far0">f</a><a href="/docs/away">a</a>`),
		"/docs/new": page("New", "<p>Text.</p>"), "/docs/refreshed": page("Fresh", "<p>Text.</p>"),
		"/docs/away": `<meta http-equiv="refresh" content="0; url=/docs/refreshed">`,
		"/secret":    page("S", "<p>x</p>"), "/docs/far9": page("Far", "<p>x</p>"),
	})
	to := func(from, to string) {
		site.header[from], site.code[from] = http.Header{"Location": {to}}, http.StatusFound
	}
	to("/docs/old", "new")
	to("/docs/out", "/secret")
	to("/docs/ring", "/docs/ring2")
	to("/docs/ring2", "/docs/ring")
	for i := range 9 {
		to(fmt.Sprint("/docs/far", i), fmt.Sprint("/docs/far", i+1))
	}
	r := newReading(t, quick())
	got := r.crawl(Settings{Start: site.URL + "/docs/"})
	wantNames(t, r.names(), "docs/index.md", "docs/new.md", "docs/refreshed.md")
	asked, _ := site.counts()
	if asked["/secret"] > 0 || asked["/docs/far9"] > 0 || asked["/docs/ring"] != 1 {
		t.Errorf("%v", asked)
	}
	if why := problem(got, "/docs/out"); !strings.Contains(why, "lies outside") {
		t.Errorf("out of the prefix: %q", why)
	}
	// A start that leads elsewhere is told with the address to name.
	to("/docs/", "https://elsewhere.example/docs/")
	if _, err := r.try(Settings{Start: site.URL + "/docs/"}); err == nil || !strings.Contains(err.Error(), "https://elsewhere.example/docs/") {
		t.Errorf("%v", err)
	}
	if len(r.files()) != 3 {
		t.Errorf("%q", r.names())
	}
}

// A calendar has a page for each day forever, and each leads to the next; a path that goes round in circles grows for
// ever.
func TestTrapsEnd(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		if r.URL.Path == "/robots.txt" || strings.Contains(r.URL.Path, "llms") || strings.Contains(r.URL.Path, "sitemap") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		day := n.Load()
		fmt.Fprint(w, page(fmt.Sprint("Day ", day), fmt.Sprintf(`<p>%d</p><a href="/cal?day=%d">n</a><a href="%s/x/x/">d</a><a href="/deep/%d">z</a>`, day, day,
			strings.TrimSuffix(r.URL.Path, "/"), day)))
	}))
	t.Cleanup(server.Close)
	r := newReading(t, quick())
	got := r.crawl(Settings{Start: server.URL, MaxPages: 100})
	if got.Pages != 100 || got.Complete || len(got.Notes) < 2 {
		t.Errorf("%d pages, %v", got.Pages, got.Notes)
	}
	for _, name := range r.names() {
		if strings.Count(name, "x") > maxRepeats {
			t.Errorf("%s", name)
		}
	}
	if queries := strings.Count(strings.Join(r.names(), " "), "cal~"); queries > maxQueries {
		t.Errorf("%d addresses with a query", queries)
	}
}

func TestRulesForRobotsAreKept(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{
		"/robots.txt": "User-agent: Docent\nDisallow: /no/\nAllow: /no/but-this\nCrawl-delay: 0\n\nUser-agent: *\nDisallow: /\n",
		"/":           page("Home", `<a href="/no/x">x</a><a href="/no/but-this">y</a><a href="/hidden">h</a><a href="/tagged">t</a><a href="/dead-end">d</a><a rel="nofollow" href="/nf">n</a>`),
		"/no/x":       page("X", "<p>x</p>"), "/no/but-this": page("Y", "<p>y</p>"), "/nf": page("N", "<p>x</p>"),
		"/hidden":     `<meta name="robots" content="noindex"><main><p>Hidden.</p><a href="/by-hidden">b</a></main>`,
		"/by-hidden":  page("By", "<p>x</p>"),
		"/tagged":     page("T", "<p>x</p>"),
		"/dead-end":   `<head><meta name="robots" content="nofollow"></head><body><main><p>Text.</p><a href="/never">n</a></main>`,
		"/never":      page("Never", "<p>x</p>"),
		"/other-only": page("O", "<p>x</p>"),
	})
	site.header["/robots.txt"] = http.Header{"Content-Type": {"text/plain"}}
	site.header["/tagged"] = http.Header{"X-Robots-Tag": {"googlebot: nofollow", "docent: noindex"}}
	r := newReading(t, quick())
	got := r.crawl(Settings{Start: site.URL})
	wantNames(t, r.names(), "by-hidden.md", "dead-end.md", "index.md", "no/but-this.md")
	asked, _ := site.counts()
	if asked["/no/x"]+asked["/never"]+asked["/nf"] > 0 {
		t.Errorf("%v", asked)
	}
	for _, at := range []string{"/hidden", "/tagged"} {
		if !strings.Contains(problem(got, at), "noindex") {
			t.Errorf("%s: %q", at, problem(got, at))
		}
	}
	// A page that they come to forbid is taken out; while they cannot be read nothing is asked for.
	site.set(func() { site.pages["/robots.txt"] = "User-agent: docent\nDisallow: /no/" })
	r.crawl(Settings{Start: site.URL})
	wantNames(t, r.names(), "by-hidden.md", "dead-end.md", "index.md")
	site.set(func() { site.code["/robots.txt"] = 500 })
	before, _ := site.counts()
	if _, err := r.try(Settings{Start: site.URL}); err == nil || !strings.Contains(err.Error(), "robots.txt") {
		t.Errorf("%v", err)
	}
	if after, _ := site.counts(); after["/"] != before["/"] || len(r.files()) != 3 {
		t.Error("the site was read without its rules")
	}
}

func TestAServerThatWantsToBeLeftAloneIs(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{"/": page("Home", `<a href="/busy">b</a>`), "/busy": page("Busy", "<p>x</p>")})
	var first, then atomic.Int64
	site.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/busy" {
			return false
		}
		if first.CompareAndSwap(0, time.Now().UnixNano()) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		then.Store(time.Now().UnixNano())
		return false
	}
	r := newReading(t, quick())
	if got := r.crawl(Settings{Start: site.URL}); got.Pages != 2 || got.Failed != 0 {
		t.Errorf("%+v", got)
	}
	if waited := time.Duration(then.Load() - first.Load()); waited < 900*time.Millisecond {
		t.Errorf("asked again after %s", waited)
	}
	// For longer than a crawl lasts: it ends, and goes on another time.
	site.before = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	if _, err := r.try(Settings{Start: site.URL}); err == nil || len(r.files()) != 2 {
		t.Errorf("%v, %q", err, r.names())
	}
}

func TestRequestsToAHostHaveAPauseBetweenThem(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var at []time.Time
	open, most := 0, 0
	site := newSite(t, map[string]string{"/": page("Home", `<a href="/a">a</a><a href="/b">b</a><a href="/c">c</a>`), "/a": page("A", "<p>x</p>"),
		"/b": page("B", "<p>x</p>"), "/c": page("C", "<p>x</p>")})
	site.before = func(http.ResponseWriter, *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Now())
		open++
		most = max(most, open)
		open--
		return false
	}
	o := quick()
	o.Pause, o.AtOnce = 30*time.Millisecond, 2
	r := newReading(t, o)
	other := reading{t, r.crawler, Place{t.TempDir(), t.TempDir()}}
	var both sync.WaitGroup
	began := time.Now()
	for _, r := range []reading{r, other} { // two sources on one host share its pace
		both.Go(func() { _, _ = r.try(Settings{Start: site.URL}) })
	}
	both.Wait()
	mu.Lock()
	defer mu.Unlock()
	// From before the first one, which the site may have noticed late.
	if took := at[len(at)-1].Sub(began); took < time.Duration(len(at)-1)*25*time.Millisecond {
		t.Errorf("%d requests in %s", len(at), took)
	}
}

func TestDuplicatesAreJoinedByTheirCanonicalAddress(t *testing.T) {
	t.Parallel()
	canonical := func(to, body string) string {
		return `<html><head><link rel="canonical" href="` + to + `"></head><body><main><h1>T</h1>` + body + `</main></body></html>`
	}
	site := newSite(t, map[string]string{
		"/": page("Home", `<a href="/guide?tab=1">1</a><a href="/guide">2</a><a href="/guide/">3</a><a href="/lost">4</a><a href="/away">5</a>
			<a href="/w1">a</a><a href="/w2">b</a><a href="/w3">c</a><a href="/w4">d</a><a href="/w5">e</a>`),
		"/guide": canonical("/guide", "<p>Guide.</p>"), "/guide?tab=1": canonical("/guide", "<p>Guide.</p>"),
		"/guide/": canonical("", "<p>Guide.</p>"), "/lost": canonical("/nowhere", "<p>Lost.</p>"),
		"/away": canonical("https://docs.example.com/away", "<p>Of another host.</p>"),
		"/w1":   canonical("/", "<p>One.</p>"), "/w2": canonical("/", "<p>Two.</p>"), "/w3": canonical("/", "<p>Three.</p>"),
		"/w4": canonical("/", "<p>Four.</p>"), "/w5": canonical("/", "<p>Five.</p>"),
	})
	o := quick()
	o.AtOnce = 1 // so that it is known which of two equal pages comes first
	r := newReading(t, o)
	for round := range 2 {
		r.crawl(Settings{Start: site.URL})
		wantNames(t, r.names(), "away.md", "guide.md", "index.md", "lost.md", "w1.md", "w2.md", "w3.md", "w4.md", "w5.md")
		if _, sent := site.counts(); sent["/guide"] != 1 || sent["/guide/"] != 1 || sent["/lost"] > 2 {
			t.Errorf("round %d downloaded: %v", round, sent)
		}
	}
}

func TestPagesAreReadInTheCharactersThatTheyAreWrittenIn(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{
		"/":         page("Home", `<a href="/header">h</a><a href="/lies">l</a><a href="/meta">m</a><a href="/sniffed">s</a><a href="/japanese">j</a><a href="/wrong">w</a>`),
		"/header":   "<main><p>Gr\xfc\xdfe</p></main>",
		"/lies":     "<main><p>Grüße</p></main>",
		"/meta":     `<head><meta charset="iso-8859-2"></head><main><p>` + "\xb3\xf3d\xbc" + `</p></main>`,
		"/sniffed":  "<main><p>Gr\xfc\xdfe \x84so\x93</p></main>",
		"/japanese": `<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS"><main><p>` + "\x93\xfa\x96{" + `</p></main>`,
		"/wrong":    "<main><p>Gr\xfc\xdfe</p></main>",
	})
	for at, charset := range map[string]string{"/header": "; charset=ISO-8859-1", "/lies": "; charset=ISO-8859-1", "/meta": "", "/sniffed": "",
		"/japanese": "", "/wrong": "; charset=utf-8"} {
		site.header[at] = http.Header{"Content-Type": {"text/html" + charset}}
	}
	r := newReading(t, quick())
	r.crawl(Settings{Start: site.URL})
	files := r.files()
	for name, want := range map[string]string{"header": "Grüße", "lies": "Grüße", "meta": "łódź", "sniffed": "Grüße „so“", "japanese": "日本",
		"wrong": "Grüße"} {
		if got := files[name+".md"]; !strings.HasSuffix(got, "\n"+want+"\n") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A page of 100 MB is not read to its end, whether it tells its length or not.
func TestALargePageIsLeftOut(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{"/": page("Home", `<a href="/told">t</a><a href="/untold">u</a><a href="/small">s</a>`),
		"/small": page("Small", "<p>x</p>")})
	var wrote atomic.Int64
	site.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "told") {
			return false
		}
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/told" {
			w.Header().Set("Content-Length", fmt.Sprint(100<<20))
		}
		chunk := bytes.Repeat([]byte("<p>much</p>"), 100_000)
		for range 100 {
			n, err := w.Write(chunk)
			wrote.Add(int64(n))
			if err != nil {
				break
			}
		}
		return true
	}
	o := quick()
	o.MaxPage = 1 << 20
	r := newReading(t, o)
	got := r.crawl(Settings{Start: site.URL})
	wantNames(t, r.names(), "index.md", "small.md")
	for _, at := range []string{"/told", "/untold"} {
		if problem(got, at) != "is larger than 1 MB" {
			t.Errorf("%s: %q", at, problem(got, at))
		}
	}
	if wrote.Load() > 60<<20 || got.Bytes > 2<<20 {
		t.Errorf("%d bytes were written, %d read", wrote.Load(), got.Bytes)
	}
}

func TestWhatCanBeReadDependsOnItsType(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{
		"/":     page("Home", `<a href="/text">t</a><a href="/mark.md">m</a><a href="/paper.pdf">p</a><a href="/image">i</a><a href="/app">a</a>`),
		"/text": "Plain words.", "/mark.md": "# Marked\n\nWords.\n", "/paper.pdf": "%PDF-1.7 words", "/image": "\x89PNG",
		"/app": `<html><head><title>App</title></head><body><div id="root"></div><script src="x.js"></script></body></html>`,
	})
	for at, kind := range map[string]string{"/text": "text/plain", "/mark.md": "text/markdown; charset=utf-8", "/paper.pdf": "application/pdf",
		"/image": "image/png"} {
		site.header[at] = http.Header{"Content-Type": {kind}}
	}
	r := newReading(t, quick())
	got := r.crawl(Settings{Start: site.URL})
	wantNames(t, r.names(), "index.md", "mark.md", "paper.pdf", "text.md")
	if files := r.files(); files["paper.pdf"] != "%PDF-1.7 words" || !strings.Contains(files["mark.md"], `title: "Marked"`) {
		t.Errorf("%q", files)
	}
	if why := problem(got, "/app"); why != "has no text without JavaScript" {
		t.Errorf("an app: %q", why)
	}
	if why := problem(got, "/image"); !strings.Contains(why, "image/png") {
		t.Errorf("an image: %q", why)
	}
	raw, err := os.ReadFile(filepath.Join(r.place.Pages, collectedFile))
	if err != nil || !strings.Contains(string(raw), `"paper.pdf": "`+site.URL+`/paper.pdf"`) {
		t.Errorf("%s, %v", raw, err)
	}
}

// A crawl that is cut off resumes where it was: what it had read is not asked for again.
func TestACrawlThatWasCutOffGoesOn(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	var links strings.Builder
	for i := range 60 {
		fmt.Fprintf(&links, `<a href="/p%d">p</a>`, i)
		pages[fmt.Sprint("/p", i)] = page(fmt.Sprint("Page ", i), "<p>Text.</p>")
	}
	pages["/"] = page("Home", links.String())
	site := newSite(t, pages)
	site.plain = true // nothing but our own memory keeps a page from being downloaded twice
	r := newReading(t, quick())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := r.crawler.Crawl(ctx, Settings{Start: site.URL}, r.place, func(_ string, done, _ int) {
		if done == 25 {
			cancel()
		}
	})
	if err == nil {
		t.Fatal("it was not cut off")
	}
	// The process died while it wrote a line.
	f, err := os.OpenFile(filepath.Join(r.place.State, stateFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, `{"record":{"url":"`+site.URL+`/p59","kind":"page","rou`)
	f.Close()
	got := reading{t, New(quick()), r.place}.crawl(Settings{Start: site.URL})
	if got.Pages != 61 || got.New != 61 {
		t.Errorf("%+v", got)
	}
	twice := 0
	for at, n := range second(site.counts()) {
		if n > 1 {
			twice++
		}
		if n > 2 {
			t.Errorf("%s was downloaded %d times", at, n)
		}
	}
	if twice > quick().AtOnce+4 { // those that were under way
		t.Errorf("%d pages were downloaded twice", twice)
	}
}

// names is a resolver whose only server answers the next address of a list at each question.
func names(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				ip := netip.MustParseAddr(answers[0])
				if len(answers) > 1 {
					answers = answers[1:]
				}
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
					Body: &dnsmessage.AResource{A: ip.As4()}}}
			}
			if reply, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// A name that leads to an allowed address while the site's rules are read, and into the server's own network when its
// pages are asked for.
func TestANameThatChangesItsAnswerReachesNothing(t *testing.T) {
	t.Parallel()
	inside, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("this system has no address 127.0.0.2: ", err)
	}
	_, port, _ := net.SplitHostPort(inside.Addr().String())
	outside, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Skip("the port is taken: ", err)
	}
	var reached, asked atomic.Int64
	serve := func(l net.Listener, n *atomic.Int64) {
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			w.Header().Set("Connection", "close") // so that the name is looked up again
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, page("Secret", "<p>x</p>"))
		})}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { s.Close() })
	}
	serve(outside, &asked)
	serve(inside, &reached)
	o := quick()
	o.Resolver = names(t, "127.0.0.1", "127.0.0.2")
	r := newReading(t, o)
	_, err = r.try(Settings{Start: "http://docs.example.com:" + port + "/"})
	if err == nil || !strings.Contains(err.Error(), "private network") {
		t.Errorf("%v", err)
	}
	if reached.Load() > 0 || asked.Load() != 1 || len(r.files()) > 0 {
		t.Errorf("the server's network was asked %d times, the site %d times", reached.Load(), asked.Load())
	}
}

func TestPrivateAddressesAreOnlyReadWhereTheOperatorAllowsIt(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{"/": page("Home", `<a href="/a">a</a>`), "/a": page("A", "<p>x</p>")})
	_, port, _ := net.SplitHostPort(site.Listener.Addr().String())
	strict := Options{Cell: cell.InProcess(Kinds()...), Pause: -1}
	for _, address := range []string{site.URL, "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://0.0.0.0:" + port,
		"http://169.254.169.254/", "http://10.0.0.1/", "http://[fd00::1]/", "http://[::1]:" + port} {
		if _, err := newReading(t, strict).try(Settings{Start: address}); err == nil || !strings.Contains(err.Error(), "private network") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if asked, _ := site.counts(); len(asked) > 0 {
		t.Errorf("%v", asked)
	}
	if got := newReading(t, strict).crawl(Settings{Start: site.URL, AllowPrivate: true}); got.Pages != 2 {
		t.Errorf("%+v", got)
	}
	if _, err := newReading(t, strict).try(Settings{Start: "http://169.254.169.254/", AllowPrivate: true}); err == nil {
		t.Error("the address that clouds give credentials at was asked")
	}
	for _, address := range []string{"file:///etc/passwd", "gopher://x/", "https://user:pw@example.com/", "", "//x"} {
		if _, err := newReading(t, strict).try(Settings{Start: address}); err == nil {
			t.Errorf("%q is read", address)
		}
	}
}

func TestAPreviewShowsTheFirstPagesAndKeepsNothing(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{"/": page("Home", `<a href="/a">a</a><a href="/b">a</a><a href="/c">c</a>`),
		"/a": page("A", "<p>One two.</p>"), "/b": page("B", "<p>x</p>"), "/c": page("C", "<p>x</p>")})
	o := quick()
	o.Scratch = filepath.Join(t.TempDir(), "previews")
	got, err := New(o).Preview(t.Context(), Settings{Start: site.URL}, 2, func(string, int, int) {})
	if err != nil || len(got.Read) != 2 || got.Read[1].Title != "A" && got.Read[0].Title != "A" || got.Complete {
		t.Errorf("%+v, %v", got, err)
	}
	if left, err := os.ReadDir(o.Scratch); err != nil || len(left) > 0 {
		t.Errorf("in its own folder is left: %v %v", left, err)
	}
}

// A version is a folder of the address, above the page; nothing else that looks like one is.
func TestAnAddressTellsTheVersionOfItsPage(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"/docs/2.1/guide": "2.1", "/v3/guide/": "v3", "/en/latest/": "", "/en/latest/x": "latest",
		"/api/v1/users": "", "/docs/1.2": "", "/blog/2026/11/x": "", "/docs/next/a/b": "next", "/": "", "/2.x/y": "2.x", "/docs/12/x": "12"} {
		u := &url.URL{Path: address}
		if got := versionOf(u); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// A site that names sitemaps which are not there has others where they lie mostly.
func TestASitemapIsFoundThoughAnotherOneIsNamed(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{
		"/robots.txt":        "User-agent: *\nSitemap: SITE/old/sitemap.xml\n",
		"/sitemap-index.xml": `<urlset><url><loc>SITE/a</loc></url><url><loc>SITE/b</loc></url></urlset>`,
		"/":                  page("Home", "<p>x</p>"), "/a": page("A", "<p>One.</p>"), "/b": page("B", "<p>One.</p>"),
	})
	site.set(func() {
		site.header["/robots.txt"] = http.Header{"Content-Type": {"text/plain"}}
		site.header["/sitemap-index.xml"] = http.Header{"Content-Type": {"application/xml"}}
	})
	r := newReading(t, quick())
	if got := r.crawl(Settings{Start: site.URL}); !strings.Contains(got.Method, "/sitemap-index.xml") {
		t.Errorf("%+v", got)
	}
	wantNames(t, r.names(), "a.md", "b.md", "index.md")
}
