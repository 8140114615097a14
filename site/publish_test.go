package site

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
)

func openFiles(p api.Project, files map[string]string) Site {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return Open(p, names, func(p string) ([]byte, error) {
		if text, ok := files[p]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	})
}

// Hugo's dates come true while nothing else changes.
func TestDatesOfHugoFollowTheClock(t *testing.T) {
	s := openFiles(api.Project{}, map[string]string{"hugo.toml": "", "content/a.md": ""})
	at := func(text string) time.Time {
		when, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	e := Entry{Path: "content/a.md",
		Front: ReadFront(map[string]any{"publishDate": at("2026-05-01 00:00:00"), "expiryDate": "2026-06-01"})}
	for now, want := range map[string]State{
		"2026-04-30 23:59:59": LeftOut, "2026-05-01 00:00:00": Published, "2026-05-31 23:59:59": Published,
		"2026-06-01 00:00:00": LeftOut,
	} {
		if got := s.Decide([]Entry{e}, at(now))[0]; got.State != want {
			t.Errorf("at %s it is %v, want %s", now, got, want)
		}
	}
	s = openFiles(api.Project{},
		map[string]string{"hugo.toml": "buildFuture = true\nbuildExpired = true\nbuildDrafts = true\n", "content/a.md": ""})
	e.Front.Draft = "draft: true"
	for _, now := range []string{"2026-01-01 00:00:00", "2027-01-01 00:00:00"} {
		if got := s.Decide([]Entry{e}, at(now))[0]; got.State != Published {
			t.Errorf("a site that builds all has %v", got)
		}
	}
}

// What cannot be read of a configuration without running it is said, as it may leave pages out.
func TestComputedSettingsAreSaid(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"exclude": {"docusaurus.config.js",
			"export default {title: 'x', presets: [['classic', {docs: {exclude: leftOut()}}]]}",
			[]string{"exclude is computed; set --exclude"}},
		"a part of it": {"docusaurus.config.js",
			"export default {title: 'x', presets: [['classic', {docs: {exclude: ['a', ...b]}}]]}",
			[]string{"exclude is computed; set --exclude"}},
		"a negation": {"docusaurus.config.js",
			"export default {title: 'x', presets: [['classic', {docs: {exclude: ['!(a)/**']}}]]}",
			[]string{`the pattern "!(a)/**" of exclude is not understood; set --exclude`}},
		"all": {"docusaurus.config.js", "export default async () => make()",
			[]string{"its settings are computed; set --exclude"}},
		"a name": {"docusaurus.config.js",
			"const out = ['a/**'];\nconst docs = {exclude: out};\nmodule.exports = {title: 'x', presets: [['classic', {docs}]]}",
			nil},
		"an address": {"docusaurus.config.js", "module.exports = {title: 'x', url: process.env.URL}",
			[]string{"url is computed; set --site-url"}},
		"srcExclude": {".vitepress/config.ts",
			"export default defineConfig({title: 'x', srcExclude: list(process.env.X)})",
			[]string{"srcExclude is computed; set --exclude"}},
		"a spread": {".vitepress/config.ts", "export default {...shared, title: 'x'}",
			[]string{"takes in settings that are computed; set --exclude"}},
		"exclude_docs": {"mkdocs.yml", "exclude_docs: !ENV [X, '']\n", []string{"exclude_docs is computed; set --exclude"}},
		"site_url": {"mkdocs.yml", "site_url: !ENV [X, 'https://a.dev']\n",
			nil},
		"site_url of the environment alone": {"mkdocs.yml", "site_url: !ENV X\n",
			[]string{"site_url is computed; set --site-url"}},
		"nothing of it": {"mkdocs.yml", "site_name: x\n", nil},
		"an example": {"hugo.toml", "baseURL = 'https://example.org/'\n",
			[]string{"baseURL is https://example.org/, which is only an example"}},
		"a bad pattern": {"hugo.toml", "ignoreFiles = ['(']\n",
			[]string{`the pattern "(" of ignoreFiles is not understood; set --exclude`}},
		"no JSON": {"docs.json", "{", nil},
	} {
		s := openFiles(api.Project{}, map[string]string{c.file: c.text})
		var got []string
		for _, w := range s.Warnings() {
			got = append(got, w.Text)
		}
		if name == "no JSON" {
			if len(got) != 1 {
				t.Errorf("%s: %q", name, got)
			}
			continue
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: warned of %q, want %q", name, got, c.want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add("docs.json", `{"navigation": {"$ref": "docs.json"}}`)
	f.Add("docusaurus.config.js",
		"const a = a; module.exports = {presets: [a, ['classic', {docs: {...a, exclude: b}}]], plugins: [[[]], []]}")
	f.Add(".vitepress/config.ts", "export default {title: '', rewrites: {':a*/:a': ':a', '(': ')'}, srcExclude: ['[']}")
	f.Add("mkdocs.yml", "INHERIT: mkdocs.yml\nexclude_docs: |\n  [\nplugins: [exclude]\n")
	f.Add("hugo.toml", "ignoreFiles = ['(']\n[languages.en]\ncontentDir = '../..'\n[[cascade]]\n[cascade.target]\npath = '{'\n[cascade.build]\nrender = 0\n")
	f.Add("astro.config.mjs", "export default {site: 'https://a', integrations: ['@astrojs/starlight']}")
	f.Fuzz(func(_ *testing.T, name, text string) {
		if Configures(name) == "" {
			return
		}
		s := openFiles(api.Project{DocsDir: "docs"}, map[string]string{name: text, "a/_index.md": "", "content/b.md": ""})
		s.Address()
		s.Decide([]Entry{{Path: "a/_index.md", Front: ReadFront(map[string]any{"cascade": text})}, {Path: "content/b.md"},
			{Path: name}}, time.Unix(0, 0))
		s.Shown(Page{Path: "content/b.md"})
	})
}

// A PDF file is public if the site's generator shows files as they are.
func TestPDFFilesArePublicWhereTheSiteShowsThem(t *testing.T) {
	for config, want := range map[string]map[string]string{
		"":                     {"manual.pdf": "manual.pdf", "deep/Manual.PDF": "deep/Manual.PDF", "_drafts/a.pdf": ""},
		"docs.json":            {"files/manual.pdf": "files/manual.pdf"},
		"mkdocs.yml":           {"docs/files/manual.pdf": "files/manual.pdf", "notes/manual.pdf": ""},
		"docusaurus.config.js": {"static/files/manual.pdf": "files/manual.pdf", "docs/manual.pdf": ""},
		"hugo.toml":            {"static/manual.pdf": "manual.pdf", "content/manual.pdf": ""},
	} {
		files := map[string]string{"docs/index.md": ""}
		if config != "" {
			files[config] = "{}"
			if strings.HasSuffix(config, ".js") {
				files[config] = "export default {presets: [['classic', {}]]}"
			} else if strings.HasSuffix(config, ".toml") {
				files[config] = ""
			}
		}
		s := openFiles(api.Project{}, files)
		for name, shown := range want {
			d := s.Decide([]Entry{{Path: name}}, time.Now())[0]
			if got := s.Shown(Page{Path: name}); d.State.IsPage() != (shown != "") || shown != "" && got != shown {
				t.Errorf("%s of %q is %s at %q (%s), not at %q", name, config, d.State, got, d.Rule, shown)
			}
		}
	}
}

// A file named _index.md is a sign of Hugo, and no proof: other generators have such names as well, and Hugo's rules would
// leave out whatever lies below an index.md.
func TestOneFileIsNoHugo(t *testing.T) {
	for _, c := range []struct {
		files []string
		want  api.SiteKind
	}{
		{[]string{"content/_index.md", "content/a/_index.md", "content/a/b.md"}, api.SiteHugo},
		{[]string{"_index.md", "a/_index.md", "a/b/index.md"}, api.SiteHugo},
		{[]string{"index.md", "a/_index.md", "a/install.md"}, ""},
		{[]string{"index.md", "a/_index.md", "b/_index.md", "b/install.md"}, ""},
		{[]string{"a.md", "b/_index.md", "b/c.md"}, ""},
		{[]string{"hugo.toml", "content/index.md", "content/a/_index.md"}, api.SiteHugo},
		{[]string{"mkdocs.yml", "docs/index.md", "docs/a/_index.md"}, api.SiteMkDocs},
	} {
		files := map[string]string{}
		for _, f := range c.files {
			files[f] = ""
		}
		if s := openFiles(api.Project{}, files); s.Kind != c.want {
			t.Errorf("%v: %q, want %q", c.files, s.Kind, c.want)
		}
	}
}
