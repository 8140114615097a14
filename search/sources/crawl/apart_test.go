package crawl

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"docent/internal/cell"
	"docent/internal/testing/need"
)

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestASitemapThatRepeatsItselfIsOnePage(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	t.Parallel()
	body := gzipped(t, "<urlset>"+strings.Repeat("<url><loc>/a</loc></url>", 500_000)+"</urlset>")
	out, err := readSitemap(sitemapInput{body, Settings{Start: "https://docs.example.com/"}, 21_000})
	if err != nil || len(out.Pages) != 1 || out.Listed != 500_000 || out.Beyond {
		t.Errorf("%d pages of %d entries, beyond %v, %v", len(out.Pages), out.Listed, out.Beyond, err)
	}
}

// What is made of lists is counted: no more pages than may be asked for, from all of them together.
func TestListsOfASiteAreReadUpToWhatMayBeAskedFor(t *testing.T) {
	t.Parallel()
	var entries, lines strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&entries, "<url><loc>/p%d</loc></url>", i)
		fmt.Fprintf(&lines, "https://docs.example.com/p%d\n", i)
	}
	site := Settings{Start: "https://docs.example.com/"}
	for name, body := range map[string]string{"XML": "<urlset>" + entries.String() + "</urlset>", "lines": lines.String()} {
		out, err := readSitemap(sitemapInput{gzipped(t, body), site, 1000})
		if err != nil || len(out.Pages) != 1000 || !out.Beyond {
			t.Errorf("%s: %d pages, beyond %v, %v", name, len(out.Pages), out.Beyond, err)
		}
	}
	maps := "<sitemapindex>" + strings.ReplaceAll(strings.ReplaceAll(entries.String(), "<url>", "<sitemap>"), "</url>", "</sitemap>")
	if out, err := readSitemap(sitemapInput{[]byte(maps + "</sitemapindex>"), site, 1000}); err != nil || len(out.More) != sitemapFiles || !out.Beyond {
		t.Errorf("%d sitemaps, beyond %v, %v", len(out.More), out.Beyond, err)
	}
	sc, err := newScope(site)
	if err != nil {
		t.Fatal(err)
	}
	base, _ := url.Parse(site.Start)
	text := strings.NewReplacer("<url><loc>", "[x](", "</loc></url>", ".md) ").Replace(entries.String())
	if out, beyond := readLLMs(sc, base, []byte(text), 1000); len(out) != 1000 || !beyond {
		t.Errorf("llms.txt: %d pages, beyond %v", len(out), beyond)
	}
	full := strings.NewReplacer("<url><loc>", "# t\nsource: https://docs.example.com", "</loc></url>", "\ntext\n").Replace(entries.String())
	if out, beyond := readFull(sc, []byte(full), 1000); len(out) != 1000 || !beyond {
		t.Errorf("llms-full.txt: %d pages, beyond %v", len(out), beyond)
	}
}

func TestTheSitemapsOfASiteAreBoundedTogether(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{"/": "<main><p>Home"})
	robots := ""
	for n := range 4 {
		var b strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&b, "<url><loc>/%d/%d</loc></url>", n%2, i)
		}
		at := fmt.Sprintf("/map%d.xml", n)
		site.pages[at] = "<urlset>" + b.String() + "</urlset>"
		site.header[at] = http.Header{"Content-Type": {"application/xml"}}
		robots += "Sitemap: SITE" + at + "\n"
	}
	site.pages["/robots.txt"] = robots
	site.header["/robots.txt"] = http.Header{"Content-Type": {"text/plain"}}
	o := quick()
	got := newReading(t, o).crawl(Settings{Start: site.URL, MaxPages: 50})
	if got.Found != 1200 || got.Complete || !strings.Contains(strings.Join(got.Notes, "\n"), "more than 1200 pages") {
		t.Errorf("%d found, complete %v, %q", got.Found, got.Complete, got.Notes)
	}
}

// A page that breaks its parser is left out with why, and what was read of it before still answers.
func TestAPageThatBreaksItsParserCostsNoOtherPage(t *testing.T) {
	t.Parallel()
	site := newSite(t, map[string]string{"/": `<main><p>Home <a href="/b">b</a> <a href="/c">c</a>`, "/b": "<main><p>Hostile",
		"/c": "<main><p>Third"})
	o := quick()
	parse, hostile := o.Cell, false
	o.Cell = func(ctx context.Context, kind string, input []byte) ([]byte, error) {
		if hostile && bytes.Contains(input, []byte("Hostile")) {
			return nil, &cell.UnreadableError{Why: "it takes too much memory to be read", Broke: true}
		}
		return parse(ctx, kind, input)
	}
	r := newReading(t, o)
	if got := r.crawl(Settings{Start: site.URL}); got.Pages != 3 {
		t.Fatalf("%+v", got)
	}
	hostile = true
	site.set(func() { site.pages["/b"] += " again"; site.pages["/c"] += " time" })
	got := r.crawl(Settings{Start: site.URL})
	if got.Pages != 3 || got.Changed != 1 || got.Failed != 1 || len(got.Problems) != 1 || !got.Problems[0].Kept ||
		got.Problems[0].Why != "it takes too much memory to be read" {
		t.Errorf("%+v", got)
	}
}

func TestASiteWhosePagesAllBreakTheirParserIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	links := ""
	for i := range 200 {
		links += fmt.Sprintf(`<a href="/p%d">p</a> `, i)
		pages[fmt.Sprintf("/p%d", i)] = "<main><p>Hostile"
	}
	pages["/"] = "<main><p>Home " + links
	site := newSite(t, pages)
	o := quick()
	parse := o.Cell
	o.Cell = func(ctx context.Context, kind string, input []byte) ([]byte, error) {
		if bytes.Contains(input, []byte("Hostile")) {
			return nil, &cell.UnreadableError{Why: "it takes too long to be read", Broke: true}
		}
		return parse(ctx, kind, input)
	}
	got := newReading(t, o).crawl(Settings{Start: site.URL})
	if got.Pages != 1 || got.Failed > maxBroken+o.AtOnce+4 || got.Complete ||
		!strings.Contains(strings.Join(got.Notes, "\n"), "20 pages broke the program that reads them") {
		t.Errorf("%d pages, %d failed, %q", got.Pages, got.Failed, got.Notes)
	}
}

// FuzzReadSitemap counts what is made of a list: each page once, and none beyond what may be taken.
func FuzzReadSitemap(f *testing.F) {
	f.Add("<urlset><url><loc>/a</loc><lastmod>2026</lastmod></url></urlset>", uint8(3))
	f.Add("<sitemapindex><sitemap><loc>/b</loc></sitemap>", uint8(0))
	f.Add("\xef\xbb\xbf <?xml version='1.0' encoding='latin1'?><url><loc>/é", uint8(1))
	f.Add("https://docs.example.com/a\nhttps://docs.example.com/a\n", uint8(9))
	f.Add("\x1f\x8b", uint8(9))
	f.Fuzz(func(t *testing.T, body string, most uint8) {
		out, err := readSitemap(sitemapInput{[]byte(body), Settings{Start: "https://docs.example.com/"}, int(most)})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, p := range out.Pages {
			if seen[p.Loc] || !strings.HasPrefix(p.Loc, "https://docs.example.com/") {
				t.Errorf("%q", out.Pages)
			}
			seen[p.Loc] = true
		}
		if len(out.Pages) > int(most) || len(out.More) > sitemapFiles || out.Listed > len(body) {
			t.Errorf("%d pages, %d sitemaps, %d entries", len(out.Pages), len(out.More), out.Listed)
		}
	})
}
