package published_test

import (
	"fmt"
	"strings"
	"testing"

	"docent/site/published"
)

func text(s string) func() []byte { return func() []byte { return []byte(s) } }

// Words that no two of the texts below share.
func words(about string) string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "%s%d ", about, i)
	}
	return b.String()
}

func TestPagesAreMappedToTheirFiles(t *testing.T) {
	t.Parallel()
	const host = "https://docs.example.com"
	files := []published.File{
		{Path: "index.md", URL: host + "/", Text: text(words("home"))},
		{Path: "guide/install.md", URL: host + "/guide/install/", Text: text(words("install"))},
		{Path: "guide/moved.md", URL: host + "/guide/moved/", Text: text("---\ntitle: x\n---\n\n" + words("moved"))},
		{Path: "secret.md", URL: host + "/secret/", Hidden: true, Text: text(words("secret"))},
		{Path: "README.md", URL: host + "/readme/", Text: text(words("readme"))},
		{Path: "twin-a.md", URL: host + "/a", Text: text(words("twin"))},
		{Path: "guide/twin-b.md", URL: host + "/b", Text: text(words("twin"))},
	}
	pages := []published.Page{
		{Path: "index.md", URL: host},
		{Path: "guide/install.md", URL: host + "/guide/install/index.html"},
		{Path: "guide/elsewhere.md", URL: host + "/guide/elsewhere", Text: text("Menu. " + words("moved") + " and what was included.")},
		{Path: "guide/one.md", URL: host + "/guide/one", Text: text(words("twin"))},
		{Path: "linked.md", URL: host + "/linked", Edit: "https://github.com/a/b/edit/main/docs/guide/install.md?x=1"},
		{Path: "slash.md", URL: host + "/slash", Edit: "https://github.com/a/b/edit/feature/x/docs/README.md"},
		{Path: "gitea.md", URL: host + "/gitea", Edit: "https://codeberg.org/a/b/src/branch/main/docs/README.md"},
		{Path: "gitlab.md", URL: host + "/gitlab", Edit: "https://gitlab.com/a/b/c/-/edit/main/docs/README.md"},
		{Path: "sphinx.md", URL: host + "/sphinx.html", Edit: host + "/_sources/README.md.txt"},
		{Path: "code.md", URL: host + "/code", Edit: "https://github.com/a/b/blob/main/lib/deep/down/README.md", Text: text(words("code"))},
		{Path: "secret.md", URL: host + "/secret/"},
		{Path: "api.md", URL: host + "/api", Text: text(words("api"))},
		{Path: "empty.md", URL: host + "/empty"},
	}
	m := published.Match(pages, files, "docs")
	for page, want := range map[string]string{
		"index.md": "index.md its address", "guide/install.md": "guide/install.md its address",
		"guide/elsewhere.md": "guide/moved.md its text", "guide/one.md": "guide/twin-b.md its text",
		"linked.md": "guide/install.md its edit link", "slash.md": "README.md its edit link",
		"gitea.md": "README.md its edit link", "gitlab.md": "README.md its edit link", "sphinx.md": "README.md its edit link",
		"code.md": " ", "secret.md": "secret.md its address", "api.md": " ", "empty.md": " ",
	} {
		if row, ok := m.Of(page); !ok || row.File+" "+string(row.By) != want {
			t.Errorf("%s: %+v, not %s", page, row, want)
		}
	}
	if row, _ := m.Of("guide/one.md"); !row.Doubtful() {
		t.Errorf("of two files with one text: %+v", row)
	}
	if file := m.Files()[published.Key(host+"/guide/install.html#x")]; file != "guide/install.md" {
		t.Errorf("by its address: %q", file)
	}
	shown := func(path, url string, anchors ...string) published.Shown {
		return published.Shown{Path: path, URL: url, Anchors: anchors}
	}
	c := published.Compare(&m, []published.Shown{shown("index.md", host, "a"), shown("guide/elsewhere.md", host+"/guide/elsewhere")},
		[]published.Shown{shown("index.md", host+"/", "a", "b"), shown("guide/moved.md", host+"/guide/moved/"), shown("unused.md", host+"/unused")},
		[]string{"left/out.md"}, "docs", nil)
	if len(c.Anchors) != 1 || c.Anchors[0].Says != "#b" || len(c.Silent) != 1 || c.Silent[0] != "unused.md" ||
		!strings.HasPrefix(c.Summary, "13 pages on the site, 3 files; 2 mapped, 1 file publishes nothing, 3 pages generated") {
		t.Errorf("%+v", c)
	}
}

// What all files begin with tells none from another, and is not counted for each of them with each page.
func TestFilesThatBeginAlikeAreToldApart(t *testing.T) {
	t.Parallel()
	var pages []published.Page
	var files []published.File
	for i := range 300 {
		var b strings.Builder
		b.WriteString(strings.Repeat("this notice stands on every single page of the whole set ", 2))
		for n := range 100 {
			fmt.Fprintf(&b, "word%dx%d ", i, n)
		}
		text := func() []byte { return []byte(b.String()) }
		pages = append(pages, published.Page{Path: fmt.Sprintf("p%d.md", i), URL: fmt.Sprintf("https://acme.test/p%d", i), Text: text})
		files = append(files, published.File{Path: fmt.Sprintf("f%d.md", i), Text: text})
	}
	m := published.Match(pages, files, "")
	for i, row := range m.Rows {
		if row.File != fmt.Sprintf("f%d.md", i) || row.Doubtful() {
			t.Fatalf("%+v", row)
		}
	}
}

// Versions of one page are as like: the words of their addresses tell them apart, and none is sure, the last one neither.
func TestVersionsOfAPageAreInDoubt(t *testing.T) {
	text := func() []byte {
		return []byte("Press the blue button, wait until the kettle whistles, and pour the water into the cup at once, then let it stand for a while.")
	}
	var pages []published.Page
	var files []published.File
	for _, v := range []string{"3.0", "2.0", "1.0"} {
		pages = append(pages, published.Page{Path: v + ".md", URL: "https://acme.test/" + v + "/boil", Text: text})
	}
	for _, v := range []string{"1.0", "2.0", "3.0"} {
		files = append(files, published.File{Path: "versions/" + v + "/boil.md", Text: text})
	}
	m := published.Match(pages, files, "")
	for i, row := range m.Rows {
		if want := []string{"versions/3.0/boil.md", "versions/2.0/boil.md", "versions/1.0/boil.md"}[i]; row.File != want || !row.Doubtful() {
			t.Errorf("%+v, not of %s in doubt", row, want)
		}
	}
}
