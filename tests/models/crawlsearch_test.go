package models

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	ghtml "github.com/yuin/goldmark/renderer/html"

	"docent/api"
	"docent/bench/corpora"
	"docent/bench/retrieval"
	"docent/internal/cell"
	"docent/search"
	website "docent/search/sources/crawl"
	"docent/site/markup"
)

var crawledSites = flag.String("crawled", "prometheus", "documentation sets that are built as web sites and read, separated by commas")

// A corpusSite is a documentation set as a web site: each page below the site's frame, with its navigation.
type corpusSite struct {
	pages map[string][]byte // by path
	from  map[string]string // the page's file, by path
	mu    sync.Mutex
	sent  map[string]int // bodies
	asked int
}

func (s *corpusSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := s.pages[r.URL.Path]
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	tag := fmt.Sprintf(`"%x"`, len(body)) + fmt.Sprintf(`"%x"`, bytes.Count(body, []byte("e")))
	tag = `"` + strings.ReplaceAll(tag, `"`, "") + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.mu.Lock()
	s.sent[r.URL.Path]++
	s.mu.Unlock()
	_, _ = w.Write(body)
}

var (
	hugoShortcode = regexp.MustCompile(`\{\{[<%][^}]*[>%]\}\}`)
	linkToFile    = regexp.MustCompile(`href="([^":#?]+\.mdx?)(#[^"]*)?"`)
	importLine    = regexp.MustCompile(`(?m)^(?:import|export) .*$`)
)

// siteOfCorpus makes a site of the pages that the search publishes of a tree.
func siteOfCorpus(t *testing.T, tree corpora.Tree, published []search.CheckedPage) *corpusSite {
	t.Helper()
	md := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.DefinitionList),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithAttribute()), goldmark.WithRendererOptions(ghtml.WithUnsafe()))
	s := &corpusSite{pages: map[string][]byte{}, from: map[string]string{}, sent: map[string]int{}}
	shown, taken := map[string]string{}, map[string]bool{}
	for _, p := range published {
		u, err := url.Parse(p.URL)
		if err != nil {
			t.Fatal(err)
		}
		shown[p.Path] = strings.TrimSuffix(u.Path, "/") + "/"
		if taken[shown[p.Path]] { // of two pages with one address a site shows one
			shown[p.Path] = "/" + strings.TrimSuffix(p.Path, path.Ext(p.Path)) + "/"
		}
		taken[shown[p.Path]] = true
	}
	at := func(file string) string { return shown[file] }
	var nav strings.Builder
	titles, bodies := map[string]string{}, map[string]*markup.Page{}
	for _, p := range published {
		page := markup.Parse(p.Path, tree[p.Path])
		title, _ := page.Front.Values["title"].(string)
		if title == "" && len(page.Headings) > 0 {
			title = page.Headings[0].Text
		}
		titles[p.Path], bodies[p.Path] = title, page
		fmt.Fprintf(&nav, "<li><a href=%q>%s</a></li>", at(p.Path), html.EscapeString(title))
	}
	for _, p := range published {
		page := bodies[p.Path]
		body := importLine.ReplaceAll(hugoShortcode.ReplaceAll(page.Src[page.Body.Start:page.Body.End], nil), nil)
		var out bytes.Buffer
		description, _ := page.Front.Values["description"].(string)
		fmt.Fprintf(&out, `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>%s | Docs</title><meta name="description" content="%s"></head><body>
			<header><a href="/">Docs</a><form><input><button>Search</button></form></header><nav class="sidebar"><ul>%s</ul></nav><main><nav aria-label="breadcrumb"><a href="/">Home</a></nav><article>`,
			html.EscapeString(titles[p.Path]), html.EscapeString(description), nav.String())
		if len(page.Headings) == 0 || page.Headings[0].Level != 1 {
			fmt.Fprintf(&out, "<h1>%s</h1>", html.EscapeString(titles[p.Path]))
		}
		if params := page.Front.Values["params"]; params != nil { // signatures and other names, as gohugo.io shows them
			fmt.Fprintf(&out, "<p><code>%s</code></p>", html.EscapeString(strings.Trim(fmt.Sprint(params), "map[]")))
		}
		var text bytes.Buffer
		if err := md.Convert(body, &text); err != nil {
			t.Fatal(err)
		}
		out.Write(linkToFile.ReplaceAllFunc(text.Bytes(), func(link []byte) []byte { // as every generator does
			m := linkToFile.FindSubmatch(link)
			to := path.Join(path.Dir(p.Path), string(m[1]))
			if shown[to] == "" {
				return link
			}
			return fmt.Appendf(nil, `href="%s%s"`, at(to), m[2])
		}))
		out.WriteString(`<a href="https://github.com/x/y/edit/main/z.md">Edit this page</a></article><aside><ul><li><a href="#top">On this page</a></li></ul></aside></main><footer>Was this page helpful? © 2026</footer></body></html>`)
		s.pages[at(p.Path)], s.from[at(p.Path)] = out.Bytes(), p.Path
	}
	if s.pages["/"] == nil {
		s.pages["/"] = []byte("<main><h1>Documentation</h1><p>All pages.</p></main><nav>" + nav.String() + "</nav>")
	}
	return s
}

// folderTree reads a folder as the search does.
func folderTree(t *testing.T, dir string) corpora.Tree {
	t.Helper()
	tree, root := corpora.Tree{}, os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			tree[name], err = fs.ReadFile(root, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// A site that is built from a documentation set and read from the web answers like the set itself, and is not read twice.
// `-crawled hugo,electron` does it for others, over a thousand pages.
func TestACrawledSiteIsSearchedLikeItsSource(t *testing.T) {
	queries := corpora.Queries[retrieval.Query](t)
	library, err := search.Open(t.TempDir(), search.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	for name := range strings.SplitSeq(*crawledSites, ",") {
		tree := corpora.Judged(t, name)
		own := api.Project{ID: api.ProjectID(name)}
		check, err := library.Check(t.Context(), own, tree, func(int, int) {})
		if err != nil {
			t.Fatal(err)
		}
		site := siteOfCorpus(t, tree, check.Pages)
		server := httptest.NewServer(site)
		defer server.Close()
		place := website.Place{Pages: filepath.Join(t.TempDir(), "pages"), State: t.TempDir()}
		settings := website.Settings{Start: server.URL, AllowPrivate: true, MaxPages: 20_000}
		crawl := func() website.Report {
			began := time.Now()
			report, err := website.New(website.Options{Pause: -1, Cell: cell.InProcess(website.Kinds()...)}).Crawl(t.Context(), settings, place, func(string, int, int) {})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %s in %s", name, report, time.Since(began).Round(time.Millisecond))
			return report
		}
		first := crawl()
		if first.Pages < len(check.Pages) || first.Pages > len(check.Pages)+1 {
			t.Errorf("%d pages are read of %d: %v", first.Pages, len(check.Pages), first.Problems)
		}
		if again := crawl(); again.New+again.Changed+again.Gone > 0 || again.Unchanged < first.Pages {
			t.Errorf("again: %s", again)
		}
		for at, n := range site.sent {
			if n > 1 {
				t.Errorf("%s was downloaded %d times", at, n)
			}
		}
		crawled := api.Project{ID: own.ID + "-web", Site: api.SiteCollected}
		for p, from := range map[*api.Project]search.Tree{&own: tree, &crawled: folderTree(t, place.Pages)} {
			if _, err := library.Update(t.Context(), *p, from, func(int, int) {}); err != nil {
				t.Fatal(err)
			}
		}
		judged := slices.DeleteFunc(slices.Clone(queries), func(q retrieval.Query) bool { return q.Corpus != name })
		ranks := map[string]int{} // from git, by query
		score := func(p api.Project) (retrieval.Score, map[string]retrieval.Score) {
			outcomes, err := retrieval.Run(t.Context(), judged, func(ctx context.Context, q retrieval.Query) ([]retrieval.Found, error) {
				hits, err := library.Search(ctx, p.ID, search.Query{Text: q.Query, Limit: 10, Box: true})
				out := make([]retrieval.Found, len(hits))
				for i, h := range hits {
					out[i] = retrieval.Found{Path: h.Path, Anchor: h.Anchor}
					if u, err := url.Parse(h.URL); err == nil && p.ID == crawled.ID {
						out[i].Path = site.from[cmp.Or(u.Path, "/")]
					}
				}
				return out, err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range outcomes {
				if p.ID == own.ID {
					ranks[o.Judged.ID] = o.Rank
				} else if o.Rank > 5 || o.Rank == 0 && ranks[o.Judged.ID] > 0 {
					t.Logf("%s: %q wants %v, which is at %d from git and at %d from the web: %v", name, o.Judged.Query, o.Judged.Relevant,
						ranks[o.Judged.ID], o.Rank, o.Found)
				}
			}
			return retrieval.Summarize(outcomes, func(retrieval.Outcome) string { return "" })[""],
				retrieval.Summarize(outcomes, func(o retrieval.Outcome) string { return o.Judged.Kind })
		}
		git, gitKinds := score(own)
		web, webKinds := score(crawled)
		for kind := range gitKinds {
			g, w := gitKinds[kind], webKinds[kind]
			t.Logf("%-11s %-9s n %3d: hit@5 %.3f from git, %.3f from the web; mrr %.3f and %.3f; section@1 %.3f and %.3f", name, kind, g.Queries, g.HitAt5,
				w.HitAt5, g.MRR, w.MRR, g.Section1, w.Section1)
		}
		t.Logf("%-11s all       n %3d: hit@5 %.4f from git, %.4f from the web; mrr %.4f and %.4f", name, git.Queries, git.HitAt5, web.HitAt5, git.MRR, web.MRR)
		if web.HitAt5 < git.HitAt5-0.01 {
			t.Errorf("%s: hit@5 is %.4f from git and %.4f from the web", name, git.HitAt5, web.HitAt5)
		}
	}
}
