package llms

import (
	"strings"
	"testing"

	"docent/api"
	"docent/search"
)

// A page is as Markdown at its own address with the ending .md, and is found there.
func TestAPageIsAtItsAddress(t *testing.T) {
	for _, c := range []struct{ site, url, path, file, asked string }{
		{"https://x.test", "https://x.test/guides/connect", "docs/guides/connect.md", "guides/connect.md", "guides/connect"},
		{"https://x.test/", "https://x.test/guides/", "src/guides/index.md", "guides/index.html.md", "guides"},
		{"https://x.test", "https://x.test/", "docs/index.md", "index.html.md", "/"},
		{"https://x.test/docs/", "https://x.test/docs", "index.md", "index.html.md", "/"},
		{"https://x.test/docs", "https://x.test/docs/a.html", "a.md", "a.html.md", "a.html"},
		{"https://x.test", "https://x.test/gr%C3%BC%C3%9Fe", "gruesse.md", "grüße.md", "grüße"},
		{"https://x.test", "https://elsewhere.test/a", "@blog/a.mdx", "@blog/a.md", "@blog/a"},
		{"", "/guides/connect", "docs/guides/connect.md", "docs/guides/connect.md", "docs/guides/connect"},
		{"https://x.test", "https://x.test/../../etc/a", "b/a.md", "b/a.md", "b/a"},
		{"https://x.test", "https://x.test/%2e%2e/%2e%2e/a", "b/a.md", "%2e%2e/%2e%2e/a.md", "%2e%2e/%2e%2e/a"},
	} {
		file := File(search.PageInfo{URL: c.url, Path: c.path}, c.site)
		asked, ok := Asked(file)
		if file != c.file || asked != c.asked || !ok {
			t.Errorf("%s of %s is at %q and asks for %q", c.url, c.site, file, asked)
		}
	}
}

func TestSectionsAreThoseOfTheNavigation(t *testing.T) {
	var b strings.Builder
	page := func(path, title string, order int, crumbs ...string) search.PageInfo {
		return search.PageInfo{Path: path, Title: title, Order: order, Crumbs: crumbs, Current: true, Own: true, URL: "https://x.test/" + title}
	}
	err := Index(&b, api.Project{Domain: "x.test", SiteURL: "https://x.test"}, []search.PageInfo{
		page("docs/a.md", "a", 0, "Reference"), page("docs/b.md", "b", 2, "Guides", "More"), page("docs/c.md", "c", 1, "Start"),
		page("docs/d.md", "d", 0, "Guides"), page("docs/z.md", "z", 300, "Guides"), page("e.md", "e", 0)}, "https://x.test")
	want := "\n## Start\n\n- [c](https://x.test/c.md)\n\n## Guides\n\n- [b](https://x.test/b.md)\n- [z](https://x.test/z.md)\n- [d](https://x.test/d.md)\n" +
		"\n## Reference\n\n- [a](https://x.test/a.md)\n\n## Other pages\n\n- [e](https://x.test/e.md)\n"
	if got := b.String(); err != nil || !strings.HasSuffix(got, want) {
		t.Errorf("%v, %s", err, got)
	}
}

// A site says of itself what its first page says; each source has its own order.
func TestTheIndexSaysWhatTheSiteIsAbout(t *testing.T) {
	var b strings.Builder
	page := func(source, path, title string, order int) search.PageInfo {
		return search.PageInfo{Source: source, Path: path, Title: title, Order: order, Current: true, Own: true}
	}
	home := page("", "index.md", "Home", 2)
	home.Description = "Boats for\n everybody."
	err := Index(&b, api.Project{Name: "Boats", Domain: "x.test"}, []search.PageInfo{page("", "a.md", "A", 1), home,
		page("Blog", "@blog/a.md", "Second", 2), page("Blog", "@blog/b.md", "First", 1)}, "https://x.test")
	want := "# Boats\n\n> Boats for everybody.\n\n## Pages\n\n- [A](https://x.test/a.md)\n- [Home](https://x.test/index.md): Boats for everybody.\n" +
		"\n## Blog\n\n- [First](https://x.test/@blog/b.md)\n- [Second](https://x.test/@blog/a.md)\n"
	if got := b.String(); err != nil || got != want {
		t.Errorf("%v, %s", err, got)
	}
}
