package site

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/site/markup"
)

// The expected anchors are made by the generators' own libraries, run once over these headings as one page:
// github-slugger 2.0.0 (astro takes off one hyphen at the end, as @astrojs/markdown-remark 6.3.1 does),
// @mdit-vue/shared 3.0.2 with markdown-it-anchor's rule for repeated slugs, @mintlify/common 1.0.1211 with
// @sindresorhus/slugify 2.2.0, Python-Markdown 3.4.1 and PyMdown Extensions 9.5.
func TestAnchorsAreThoseOfEachGenerator(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/anchors.json")
	if err != nil {
		t.Fatal(err)
	}
	var table map[string][]string
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	sites := map[string]Site{}
	open := func(name, file, text string) {
		sites[name] = Open(api.Project{}, []string{file, "docs/index.md"},
			func(string) ([]byte, error) { return []byte(text), nil })
	}
	sites["github"] = Site{Kind: api.SitePlain}
	sites["astro"] = Site{Kind: api.SiteStarlight}
	open("vitepress", ".vitepress/config.ts", "export default {}")
	open("mintlify", "docs.json", "{}")
	open("mkdocs", "mkdocs.yml", "site_name: x\n")
	open("mkdocs separator _", "mkdocs.yml", "markdown_extensions:\n  - attr_list\n  - toc:\n      separator: '_'\n")
	open("mkdocs unicode", "mkdocs.yml",
		"markdown_extensions:\n  - toc: {permalink: true, slugify: !!python/name:markdown.extensions.toc.slugify_unicode }\n")
	open("pymdownx lower", "mkdocs.yml",
		"markdown_extensions:\n  - toc:\n      slugify: !!python/object/apply:pymdownx.slugs.slugify\n        kwds:\n          case: lower\n")
	open("pymdownx fold encoded", "mkdocs.yml",
		"markdown_extensions:\n  toc:\n    slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: fold, percent_encode: true}}\n")
	open("pymdownx gfm", "mkdocs.yml",
		"markdown_extensions:\n  - markdown.extensions.toc:\n      slugify: !!python/name:pymdownx.slugs.gfm\n")
	open("pymdownx NFKD", "mkdocs.yml",
		"markdown_extensions:\n  - toc:\n      slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {normalize: NFKD}}\n")
	var headings []markup.Heading
	for _, text := range table["headings"] {
		headings = append(headings, markup.Heading{Text: text})
	}
	for name, want := range table {
		if name == "headings" {
			continue
		}
		s, ok := sites[name]
		if !ok {
			t.Errorf("no site for %s", name)
		}
		for i, got := range s.Anchors(headings) {
			if got != want[i] {
				t.Errorf("%s: %q has the anchor %q, not %q", name, headings[i].Text, got, want[i])
			}
		}
	}
}

// The expected anchors are those of Hugo's own tests (markup/goldmark/autoid_test.go and convert_test.go of version
// 0.166-DEV).
func TestHugosAnchorsFollowItsSettings(t *testing.T) {
	t.Parallel()
	for config, list := range map[string][][2]string{
		"title = 'x'\n": {{"God is good: 神真美好", "god-is-good-神真美好"}, {"Question?", "question"}, {"1+2=3", "123"},
			{"Special !\"#$%&(parens)=?´* chars", "special-parens-chars"},
			{"Resumé", "resumé"}, {"One-Hyphen", "one-hyphen"}, {"Multiple--Hyphens", "multiple--hyphens"},
			{"Trailing hyphen-", "trailing-hyphen-"}, {"Many   spaces  here", "many---spaces--here"},
			{"Forward/slash", "forwardslash"}, {"Under_score", "under_score"}, {"Nonbreaking\u00a0Space", "nonbreakingspace"},
			{"Tab\tSpace", "tabspace"}, {"Question?", "question-1"}, {"?", "heading"}, {"!", "heading-1"}},
		"[markup.goldmark.parser]\nautoHeadingIDType = 'github-ascii'\n": {{"god is神真美好 good", "god-is-good"},
			{"Resumé", "resume"}},
		"[markup.goldmark.parser]\nautoIDType = 'blackfriday'\n": {{"Let's try this, shall we?",
			"let-s-try-this-shall-we"}},
	} {
		s := Open(api.Project{}, []string{"hugo.toml", "content/a.md"},
			func(string) ([]byte, error) { return []byte(config), nil })
		var headings []markup.Heading
		var want []string
		for _, c := range list {
			headings, want = append(headings, markup.Heading{Text: c[0]}), append(want, c[1])
		}
		if got := s.Anchors(headings); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", config, got, want)
		}
	}
}

// Explicit anchors stay as they are, and no heading gets one of them again if the generator looks at them first.
func TestExplicitAnchorsAreKept(t *testing.T) {
	t.Parallel()
	const page = "# [A](b) `c` <b>d</b>\n\n## Own {#own}\n\n## Own\n\n## Later\n\n## x {#later}\n\n## 译 %{#translated}%\n"
	p := markup.Parse("a.md", []byte(page))
	for kind, want := range map[api.SiteKind][]string{
		api.SiteVitePress: {"a-c-d", "own", "own-1", "later", "later", "translated"},
		api.SiteMkDocs:    {"a-c-d", "own", "own_1", "later_1", "later", "translated"},
		api.SiteHugo:      {"a-c-d", "own", "own-1", "later", "later", "translated"},
	} {
		if got := (&Site{Kind: kind}).Anchors(p.Headings); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", kind, got, want)
		}
	}
}

// The expected names are those of prepareStringToBeValidFilename of @mintlify/common 1.0.1211.
func TestOperationsAreWhereMintlifyShowsThem(t *testing.T) {
	t.Parallel()
	for _, c := range [][5]string{
		{"Pets & Dogs", "get", "/pets", "List (all) pets, please.", "api-reference/pets-&-dogs/list-all-pets-please"},
		{"", "GET", "/pets/{petId}/toys", "", "api-reference/get-pets-toys"},
		{"Users", "PUT", "/x", "User's -- data", "api-reference/users/users--data"},
		{"a", "PUT", "/x", "{a} b", "api-reference/a/-b"},
		{"a", "PUT", "/x", "Créer: un", "api-reference/a/créer:-un"},
	} {
		if got := OperationAddress("api-reference", c[0], c[1], c[2], c[3]); got != c[4] {
			t.Errorf("%v is at %q, not at %q", c, got, c[4])
		}
	}
}

// The identifiers are those that docutils 0.19 makes with Sphinx's settings, and kramdown's parser of GitHub's Markdown.
func TestAnchorsOfDocutilsAndKramdown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, text, want string }{
		"Sphinx": {"conf.py", "project = 'x'\nextensions = []\nhtml_theme = 'a'\n", "what-s-new-in-2-0 uberblick-uber-groszen setup id1 from-source id2 a-b-c"},
		"Jekyll": {"_config.yml", "title: x\n", "whats-new-in-20 überblick-über-größen setup setup-1 2-from-source 日本語 abc"},
	} {
		s := Open(api.Project{}, []string{c.config, "a.md"}, func(string) ([]byte, error) { return []byte(c.text), nil })
		var headings []markup.Heading
		for _, text := range []string{"What's new in 2.0?", "Überblick über Größen", "Setup", "Setup", "2. From source", "日本語", "a.b.c()"} {
			headings = append(headings, markup.Heading{Text: text})
		}
		if got := strings.Join(s.Anchors(headings), " "); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}
