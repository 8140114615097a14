package search

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"docent/api"
	"docent/search/page"
	"docent/site"
)

// A publishedCase is one site of testdata/published: its files, and what is to become of each.
type publishedCase struct {
	project api.Project
	files   map[string]string
	says    map[string][]string // what the lines above the files say, by their first word
}

func readPublished(t *testing.T, name string) publishedCase {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	a := txtar.Parse(raw)
	c := publishedCase{project: api.Project{ID: "p"}, files: map[string]string{}, says: map[string][]string{}}
	for line := range strings.Lines(string(a.Comment)) {
		if word, rest, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.Contains(word, " ") {
			c.says[word] = append(c.says[word], strings.TrimSpace(rest))
		}
	}
	for _, f := range a.Files {
		c.files[f.Name] = string(f.Data)
	}
	if dir := c.says["docs-dir"]; len(dir) > 0 {
		c.project.DocsDir = dir[0]
	}
	c.project.Include, c.project.Exclude = c.says["include"], c.says["exclude"]
	return c
}

func eachPublished(t *testing.T, test func(t *testing.T, c publishedCase)) {
	t.Helper()
	names, err := filepath.Glob("testdata/published/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no sites: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { test(t, readPublished(t, name)) })
	}
}

func mustCheck(t *testing.T, l *Library, p api.Project, tree Tree) Check {
	t.Helper()
	c, err := l.Check(t.Context(), p, tree, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What a site does not publish is not found by searching, not read as a page and not listed, whatever it is asked by.
func TestWhatASiteDoesNotPublishIsNeverFound(t *testing.T) {
	eachPublished(t, func(t *testing.T, c publishedCase) {
		l := openTest(t, Options{})
		tree := &memTree{commit: "1", files: c.files}
		mustUpdate(t, l, c.project, tree)
		secrets := 0
		for _, body := range c.files {
			if strings.Contains(body, "Bluefin") {
				secrets++
			}
		}
		if secrets < 2 {
			t.Fatalf("the site has %d secrets", secrets)
		}
		for _, q := range []string{"What is the launch codename?", "codename is Bluefin", "Bluefin", "bluef"} {
			for _, box := range []bool{false, true} {
				for _, h := range mustSearch(t, l, "p", Query{Text: q, Box: box, Limit: 50, Sections: 5}) {
					if strings.Contains(h.Content, "Bluefin") {
						t.Errorf("%q finds %s: %s", q, h.Path, h.Content)
					}
				}
			}
		}
		for _, h := range mustSearch(t, l, "p", Query{Text: "launch nickname Goldfish", Limit: 50}) {
			if strings.Contains(h.Content, "Goldfish") {
				t.Errorf("a page that is not to be searched is found: %s", h.Path)
			}
		}
		snap, err := l.acquire("p")
		if err != nil {
			t.Fatal(err)
		}
		defer snap.release()
		public := map[string]bool{}
		for _, r := range snap.pages {
			public[r.Path] = true
		}
		for name := range c.files {
			rel := strings.TrimPrefix(name, c.project.DocsDir+"/")
			if public[rel] {
				continue
			}
			for _, as := range []string{rel, "/" + rel, name, strings.TrimSuffix(rel, filepath.Ext(rel)),
				"/" + strings.TrimSuffix(rel, filepath.Ext(rel)) + "/"} {
				p, err := l.Page(t.Context(), "p", as, nil)
				if err == nil && (p.Path == rel || strings.Contains(p.Content, "Bluefin")) {
					t.Errorf("%s is read as %q", rel, as)
				} else if err != nil && !errors.Is(err, api.ErrNotFound) {
					t.Error(err)
				}
			}
		}
		for _, r := range snap.Records { // nor do its words help to find others
			if r.Kind != page.KindPage && len(r.Sections) > 0 {
				t.Errorf("%s has sections", r.Path)
			}
		}
		if slices.Contains(snap.words.Texts, "bluefin") {
			t.Error("the dictionary has the secret")
		}
		for _, say := range c.says["part"] { // what a public page shows is found in that page
			word, page, _ := strings.Cut(say, " ")
			if hits := mustSearch(t, l, "p", Query{Text: word}); len(hits) != 1 || hits[0].Path != page {
				t.Errorf("%s is found in %v, want %s", word, texts(hits), page)
			}
		}
	})
}

// A check lists exactly the pages of the index with their URLs, and says of every other file why it is none.
func TestCheckListsWhatTheIndexHolds(t *testing.T) {
	eachPublished(t, func(t *testing.T, c publishedCase) {
		l := openTest(t, Options{})
		tree := &memTree{commit: "1", files: c.files}
		mustUpdate(t, l, c.project, tree)
		check := mustCheck(t, l, c.project, tree)
		snap, err := l.acquire("p")
		if err != nil {
			t.Fatal(err)
		}
		defer snap.release()
		var indexed, listed, want, got []string
		for _, r := range snap.pages {
			indexed = append(indexed, r.Path+" "+snap.url(r, ""))
		}
		for _, p := range check.Pages {
			listed = append(listed, p.Path+" "+p.URL)
			state := "page: "
			if p.State == site.Unlisted {
				state = "unlisted: "
			}
			got = append(got, state+p.Path+" "+p.URL)
			if p.Why == "" {
				t.Errorf("%s: no reason", p.Path)
			}
		}
		slices.Sort(indexed)
		slices.Sort(listed)
		if !slices.Equal(indexed, listed) {
			t.Errorf("the index has\n%s\nthe check lists\n%s", strings.Join(indexed, "\n"), strings.Join(listed, "\n"))
		}
		reasons := map[string]string{}
		for _, p := range check.Pages {
			reasons[p.Path] = p.Why
		}
		for _, kind := range []string{"page", "unlisted"} {
			for _, say := range c.says[kind] {
				f := strings.SplitN(say, " ", 3)
				want = append(want, kind+": "+f[0]+" "+f[1])
				if len(f) == 3 && !strings.Contains(reasons[f[0]], f[2]) {
					t.Errorf("%s is unlisted since %q, want %q", f[0], reasons[f[0]], f[2])
				}
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("public are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		out := map[string]string{}
		for _, o := range check.LeftOut {
			if out[o.Path] = o.Why; o.File != "" {
				out[o.Path] += " (" + o.File + ")"
			}
		}
		for _, say := range c.says["out"] {
			p, why, _ := strings.Cut(say, " ")
			if got, ok := out[p]; !ok || !strings.Contains(got, why) {
				t.Errorf("%s is left out (%t) since %q, want %q", p, ok, got, why)
			}
			delete(out, p)
		}
		for p, why := range out {
			t.Errorf("%s is left out too: %s", p, why)
		}
		dead := map[string]string{}
		for _, d := range check.DeadLinks {
			dead[d.Path+" "+d.Link] = d.Why
		}
		for _, say := range c.says["dead"] {
			f := strings.SplitN(say, " ", 3)
			if !strings.Contains(dead[f[0]+" "+f[1]], f[2]) {
				t.Errorf("the link %s of %s is dead since %q, want %q", f[1], f[0], dead[f[0]+" "+f[1]], f[2])
			}
			delete(dead, f[0]+" "+f[1])
		}
		if len(dead) > 0 {
			t.Errorf("these links are said to be dead: %q", dead)
		}
		if got, want := string(check.Site)+" "+check.Config, c.says["site"][0]; strings.TrimSpace(got) != want {
			t.Errorf("made by %q, want %q", got, want)
		}
		address, key := "", ""
		if say := c.says["address"]; len(say) > 0 {
			address, key, _ = strings.Cut(say[0], " ")
		}
		if check.Address != address || !strings.HasPrefix(check.AddressFrom, key) {
			t.Errorf("the address is %q from %q, want %q from %q", check.Address, check.AddressFrom, address, key)
		}
		for _, say := range c.says["warning"] {
			if !slices.ContainsFunc(check.Warnings, func(w site.Warning) bool { return strings.Contains(w.Text, say) }) {
				t.Errorf("warnings are %q, want one with %q", check.Warnings, say)
			}
		}
	})
}

// What is published follows the project's settings and the site's files at the next update, and an index that came
// there by many updates is the one that is made at once.
func TestWhatIsPublishedFollowsSettingsAndFiles(t *testing.T) {
	l := openTest(t, Options{})
	files := map[string]string{
		"docs.json": `{"navigation": {"pages": ["index", "plan", "use"]}}`, "index.mdx": "# Home\n",
		"plan.mdx": "# Plan\n\nThe launch codename is Bluefin.\n",
		"use.mdx":  "import Part from '/snippets/part.mdx'\n\n## Use\n\n<Part />\n", "snippets/part.mdx": "Wombats dig.\n",
	}
	p := api.Project{ID: "p"}
	found := func(text string) string {
		t.Helper()
		hits := mustSearch(t, l, "p", Query{Text: text})
		if len(hits) == 0 {
			return ""
		}
		return hits[0].Path
	}
	for n, step := range []struct {
		change            func()
		codename, wombats string
		readable          bool // plan.mdx, by its path
	}{
		{func() {}, "plan.mdx", "use.mdx", true},
		{func() { p.Exclude = []string{"plan.mdx"} }, "", "use.mdx", false},
		{func() { p.Exclude = nil }, "plan.mdx", "use.mdx", true},
		{func() { files[".mintignore"] = "plan.mdx\n" }, "", "use.mdx", false},
		{func() { files[".mintignore"] = "snippets/\n" }, "plan.mdx", "", true},
		{func() { delete(files, ".mintignore") }, "plan.mdx", "use.mdx", true},
		{func() { files["docs.json"] = `{"navigation": {"pages": ["index", "use"]}}` }, "", "use.mdx", true},
		{func() { files["docs.json"] = `{"navigation": {"pages": ["index", "use"]}, "seo": {"indexing": "all"}}` },
			"plan.mdx", "use.mdx", true},
		{func() { p.Site = api.SitePlain }, "plan.mdx", "use.mdx", true},
		{func() { p.Include = []string{"use.mdx"} }, "", "use.mdx", false},
	} {
		step.change()
		mustUpdate(t, l, p, &memTree{commit: fmt.Sprint(n), files: maps.Clone(files)})
		if got := found("launch codename Bluefin"); got != step.codename {
			t.Errorf("step %d: the codename is found in %q, want %q", n, got, step.codename)
		}
		if got := found("wombats"); got != step.wombats {
			t.Errorf("step %d: wombats are found in %q, want %q", n, got, step.wombats)
		}
		if _, err := l.Page(t.Context(), "p", "plan", nil); (err == nil) != step.readable {
			t.Errorf("step %d: the page is read: %v", n, err)
		}
		fresh := openTest(t, Options{})
		mustUpdate(t, fresh, p, &memTree{commit: fmt.Sprint(n), files: maps.Clone(files)})
		for _, q := range []string{"launch codename Bluefin", "wombats dig", "home"} {
			one, other := mustSearch(t, l, "p", Query{Text: q}), mustSearch(t, fresh, "p", Query{Text: q})
			if !reflect.DeepEqual(one, other) {
				t.Errorf("step %d, %q: by updates %v, at once %v", n, q, texts(one), texts(other))
			}
		}
	}
}

// A configuration that cannot be read says nothing of what is left out: readers are answered from the state before, as
// they see the site that was made before. The project may say itself what is public.
func TestAConfigurationThatCannotBeReadMakesNothingPublic(t *testing.T) {
	for name, slip := range map[string]string{"docs.json": "{", "mkdocs.yml": "exclude_docs: [", "hugo.toml": "x ="} {
		l := openTest(t, Options{})
		good := map[string]string{"docs.json": `{"navigation": {"pages": ["index"]}}`, "mkdocs.yml": "docs_dir: .\n",
			"hugo.toml": "contentDir = '.'\n"}[name]
		files := map[string]string{name: good, "index.md": "# Home\n\nWombats dig.\n"}
		mustUpdate(t, l, api.Project{ID: "p"}, &memTree{commit: "1", files: maps.Clone(files)})
		files[name], files["secret.md"] = slip, "The launch codename is Bluefin.\n"
		tree := &memTree{commit: "2", files: files}
		if _, err := l.Update(t.Context(), api.Project{ID: "p"}, tree, nil); err == nil ||
			!strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "--exclude") {
			t.Errorf("%s: %v", name, err)
		}
		if hits := mustSearch(t, l, "p", Query{Text: "codename Bluefin"}); len(hits) > 0 {
			t.Errorf("%s: found in %v", name, texts(hits))
		}
		if hits := mustSearch(t, l, "p", Query{Text: "wombats"}); len(hits) != 1 {
			t.Errorf("%s: the state before is gone", name)
		}
		mustUpdate(t, l, api.Project{ID: "p", Site: api.SitePlain, Exclude: []string{"secret.md"}}, tree)
		if hits := mustSearch(t, l, "p", Query{Text: "wombats"}); len(hits) != 1 || l.Commit("p") != "2" {
			t.Errorf("%s: the project cannot say it itself", name)
		}
	}
}

// Of a source whose configuration does not say what it leaves out, nothing is found until the project says what is
// public; check and the update name the setting and what to do.
func TestOfASourceWhoseExclusionsAreUnknownNothingIsAnswered(t *testing.T) {
	l := openTest(t, Options{})
	files := map[string]string{
		"docusaurus.config.js":   "module.exports = {title: 'x', presets: [['classic', {docs: {exclude: leftOut()}}]]}",
		"docs/intro.md":          "# Intro\n\nWombats dig.\n",
		"docs/internal/plan.mdx": "# Plan\n\nThe launch codename is Bluefin.\n",
	}
	p, tree := api.Project{ID: "p"}, &memTree{commit: "1", files: files}
	_, updated := l.Update(t.Context(), p, tree, func(int, int) {})
	checked := mustCheck(t, l, p, tree)
	for _, text := range []string{fmt.Sprint(updated), checked.Withheld} {
		if !strings.Contains(text, "docusaurus.config.js: exclude is computed") ||
			!strings.Contains(text, "--include or --exclude") {
			t.Error(text)
		}
	}
	if len(checked.Pages) > 0 || len(checked.LeftOut) != 2 {
		t.Errorf("check lists %v and leaves out %v", checked.Pages, checked.LeftOut)
	}
	if _, err := l.Search(t.Context(), "p", Query{Text: "wombats"}); !errors.Is(err, ErrNotIndexed) {
		t.Errorf("the search says %v", err)
	}
	p.Exclude = []string{"internal/"}
	tree.commit = "2"
	mustUpdate(t, l, p, tree)
	if hits := mustSearch(t, l, "p", Query{Text: "wombats"}); len(hits) == 0 {
		t.Error("nothing is found of what is public")
	}
	if hits := mustSearch(t, l, "p", Query{Text: "codename Bluefin"}); len(hits) > 0 && strings.Contains(hits[0].Path, "internal") {
		t.Errorf("found %s", hits[0].Path)
	}
}
