package site

import (
	"slices"
	"testing"
	"time"

	"docent/api"
	"docent/site/markup"
)

// The addresses are those of sites that the generators built of files with these names: Starlight 0.37.7 with Astro
// 5.18.2, Hugo 0.163.3 and MkDocs 1.4.2.
func TestNamesOfFilesBecomeAddressesAsTheGeneratorMakesThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, starlight, hugo, mkdocs string }{
		{"Getting Started", "getting-started", "getting-started", "Getting Started"},
		{"v1.2 notes", "v12-notes", "v1.2-notes", "v1.2 notes"},
		{"UPPER", "upper", "upper", "UPPER"},
		{"under_score", "under_score", "under_score", "under_score"},
		{"plus+sign", "plussign", "plus+sign", "plus+sign"},
		{"naïve", "naïve", "naïve", "naïve"},
		{"a&b", "ab", "ab", "a&b"},
		{"it's", "its", "its", "it's"},
		{"dots.in.name", "dotsinname", "dots.in.name", "dots.in.name"},
		{"paren(s)", "parens", "parens", "paren(s)"},
		{"comma,name", "commaname", "commaname", "comma,name"},
		{"at@home", "athome", "at@home", "at@home"},
		{"two  spaces", "two--spaces", "two--spaces", "two  spaces"},
		{"100%25", "10025", "100%25", "100%25"},
		{"日本", "日本", "日本", "日本"},
		{"Folder Name/page", "folder-name/page", "folder-name/page", "Folder Name/page"},
		{"dot.dir/page", "dotdir/page", "dot.dir/page", "dot.dir/page"},
	} {
		for config, want := range map[string]string{
			"astro.config.mjs": c.starlight, "hugo.toml": c.hugo, "mkdocs.yml": c.mkdocs,
		} {
			folder := map[string]string{"astro.config.mjs": "src/content/docs/", "hugo.toml": "content/", "mkdocs.yml": "docs/"}[config]
			text := map[string]string{"astro.config.mjs": "import starlight from '@astrojs/starlight'"}[config]
			file := folder + c.file + ".md"
			s := openFiles(api.Project{}, map[string]string{config: text, file: ""})
			if got := s.Shown(Page{Path: file}); got != want+"/" {
				t.Errorf("%s: %q is shown at %q, not at %q", config, c.file, got, want+"/")
			}
		}
	}
}

// The addresses are those of sites that Hugo, Jekyll and MkDocs built.
func TestSettingsMakeAddresses(t *testing.T) {
	t.Parallel()
	at := time.Date(2013, 5, 6, 2, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		config, text, file string
		page               Page
		want               string
	}{
		{"hugo.toml", "[permalinks]\nblog = '/news/:year/:month/:slug/'\n", "content/blog/spring.md", Page{Title: "Spring News", Date: at.Unix()}, "news/2013/05/spring-news/"},
		{"hugo.toml", "[permalinks.page]\nblog = '/:sections/x/:filename'\n", "content/blog/a/spring/index.md", Page{}, "blog/a/x/spring/"},
		{"hugo.toml", "[permalinks]\nblog = '/:unheard/'\n", "content/blog/spring.md", Page{}, "blog/spring/"},
		{"hugo.toml", "[permalinks]\nblog = '/:year/:slug/'\n", "content/blog/_index.md", Page{}, "blog/"},
		{"_config.yml", "timezone: America/Los_Angeles\npermalink: /news/:year/:month/:day/:title/\n", "_posts/2013-05-06-a.md", Page{Date: at.Unix()}, "news/2013/05/05/a/"},
		{"_config.yml", "timezone: America/Los_Angeles\npermalink: /news/:year/:month/:day/:title/\n", "_posts/2013-05-06-a.md",
			Page{Date: at.Truncate(24 * time.Hour).Unix()}, "news/2013/05/06/a/"},
	} {
		s := openFiles(api.Project{}, map[string]string{c.config: c.text, c.file: ""})
		c.page.Path = c.file
		if got := s.Shown(c.page); got != c.want {
			t.Errorf("%s is shown at %q, not at %q", c.file, got, c.want)
		}
	}
	s := openFiles(api.Project{}, map[string]string{"mkdocs.yml": "theme:\n  name: material\n  custom_dir: docs/theme\n", "docs/theme/main.html": "", "docs/a.md": ""})
	got := s.Decide([]Entry{{Path: "docs/theme/main.html"}, {Path: "docs/a.md"}}, time.Now())
	if got[0].State != LeftOut || got[1].State != Published {
		t.Errorf("%+v", got)
	}
	s = openFiles(api.Project{}, map[string]string{"_config.yml": "title: x\n", "_data/limits.yml": "keys: 12\n"})
	if site, _ := s.Rules().Values["site"].(map[string]any); site == nil || site["data"].(map[string]any)["limits"] == nil {
		t.Errorf("the data are %v", s.Rules().Values)
	}
}

// The anchors are those of pages that the generators built of these headings. Code keeps its hyphens.
func TestHyphensOfHeadingsBecomeDashesAsTheGeneratorMakesThem(t *testing.T) {
	t.Parallel()
	page := markup.Parse("a.md", []byte("## Stop -- and wait\n\n## `--flag` option\n\n## Under_score--dash\n\n## Run with --watch\n"))
	for name, c := range map[string]struct {
		config, text string
		want         []string
	}{
		"Starlight": {"astro.config.mjs", "export default {integrations: [starlight()]} // @astrojs/starlight",
			[]string{"stop--and-wait", "--flag-option", "under_scoredash", "run-with-watch"}},
		"Starlight without smartypants": {"astro.config.mjs",
			"export default {integrations: [starlight()], markdown: {smartypants: false}} // @astrojs/starlight",
			[]string{"stop----and-wait", "--flag-option", "under_score--dash", "run-with---watch"}},
		"Hugo": {"hugo.toml", "", []string{"stop--and-wait", "--flag-option", "under_scoredash", "run-with-watch"}},
		"Hugo without its typographer": {"hugo.toml", "[markup.goldmark.extensions.typographer]\ndisable = true\n",
			[]string{"stop----and-wait", "--flag-option", "under_score--dash", "run-with---watch"}},
		"MkDocs": {"mkdocs.yml", "site_name: x\n", []string{"stop-and-wait", "-flag-option", "under_score-dash", "run-with-watch"}},
	} {
		s := openFiles(api.Project{}, map[string]string{c.config: c.text, "content/a.md": ""})
		if got := s.Anchors(page.Headings); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
