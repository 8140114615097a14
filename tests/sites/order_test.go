package sites

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/net/html"

	"docent/bench/corpora"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

// eachOrder runs a test over the sites of testdata/order, each with the llms.txt that its navigation makes.
func eachOrder(t *testing.T, run func(t *testing.T, s map[string]string, site corpora.Tree, want string)) {
	names, err := filepath.Glob("testdata/order/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no sites: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want, site := "", corpora.Tree{}
			for _, f := range a.Files {
				if f.Name == "llms.txt" {
					want = string(f.Data)
					continue
				}
				site[f.Name] = f.Data
			}
			run(t, says(a.Comment), site, want)
		})
	}
}

// llms.txt lists pages as the site's navigation does: its groups, its order and its names.
func TestPagesAreListedAsTheSiteShowsThem(t *testing.T) {
	t.Parallel()
	harness.SkipShort(t)
	eachOrder(t, func(t *testing.T, _ map[string]string, site corpora.Tree, want string) {
		dir, to := t.TempDir(), filepath.Join(t.TempDir(), "out")
		if err := site.Write(dir); err != nil {
			t.Fatal(err)
		}
		harness.Docent(t, "llms", "--source", dir, "--site-url", "https://acme.test", "--to", to)
		text, err := os.ReadFile(filepath.Join(to, "llms.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if _, got, _ := strings.Cut(string(text), "\n\n## "); "## "+got != want {
			t.Errorf("llms.txt has\n## %s\nand not\n%s", got, want)
		}
	})
}

var llmsLine = regexp.MustCompile(`(?m)^- \[(.*)\]\((.*?)\)`)

// What they are held to is what their generators' own sidebars show.
func TestTheOrderIsTheGenerators(t *testing.T) {
	need.Everything(t, "builds sites with their generators")
	eachOrder(t, func(t *testing.T, s map[string]string, site corpora.Tree, want string) {
		if s["build"] == "" {
			t.Skip("it was built by hand")
		}
		links, err := cascadia.ParseGroup(s["nav"])
		if err != nil {
			t.Fatal(err)
		}
		out := builtBy(t, s, site)
		var longest []string // of all pages' sidebars, which may show a part
		err = filepath.WalkDir(out, func(name string, d fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) != ".html" {
				return err
			}
			raw, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			doc, err := html.Parse(strings.NewReader(string(raw)))
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(out, name)
			base := &url.URL{Path: "/" + filepath.ToSlash(rel)}
			var shown []string
			for _, a := range cascadia.QueryAll(doc, links) {
				to, err := base.Parse(attr(a, "href"))
				if line := fmt.Sprint(addressKey(to.Path), " ", textOf(a)); err == nil && attr(a, "href") != "" && to.Host == "" && to.Fragment == "" && !slices.Contains(shown, line) {
					shown = append(shown, line)
				}
			}
			if len(shown) > len(longest) {
				longest = shown
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// llms.txt has each page under its group, the groups as they come first in the sidebar.
		var listed []string
		group := map[string]int{}
		shown, _, _ := strings.Cut(want, "## Other pages\n")
		for i, section := range strings.Split(shown, "## ")[1:] {
			for _, m := range llmsLine.FindAllStringSubmatch(section, -1) {
				at := addressKey(strings.TrimPrefix(strings.TrimSuffix(m[2], ".md"), "https://acme.test"))
				line := at + " " + m[1]
				listed, group[line] = append(listed, line), i
			}
		}
		first := map[int]int{}
		for i, line := range longest {
			if _, met := first[group[line]]; !met {
				first[group[line]] = i
			}
		}
		slices.SortStableFunc(longest, func(a, b string) int { return first[group[a]] - first[group[b]] })
		if !slices.Equal(listed, longest) {
			t.Errorf("the sidebar shows\n%s\nand llms.txt lists\n%s", strings.Join(longest, "\n"), strings.Join(listed, "\n"))
		}
	})
}
