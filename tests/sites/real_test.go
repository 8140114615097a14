package sites

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"docent/api"
	"docent/bench/corpora"
	"docent/internal/cell"
	website "docent/search/sources/crawl"
	"docent/site"
	"docent/site/published"
)

// Before harness.Main takes them out of the environment.
var realSites, saidSites = os.Getenv("DOCENT_SITES"), os.Getenv("DOCENT_SITES_SAY")

// What is read of real repositories, and of the sites that their generators make of them, is held against these sites.
// DOCENT_SITES is a folder in which src/NAME is a repository and out/NAME its built site, for each of
// testdata/real/sites.txtar that is there; DOCENT_SITES_SAY names those whose differences are said.
func TestRealRepositories(t *testing.T) {
	root := realSites
	if root == "" {
		t.Skip("no folder of repositories and their sites is named by DOCENT_SITES")
	}
	list, err := txtar.ParseFile("testdata/real/sites.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, f := range list.Files {
		out := filepath.Join(root, "out", f.Name)
		if _, err := os.Stat(out); err != nil {
			t.Logf("%s is not built", f.Name)
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			rows = append(rows, realSite(t, says(f.Data), filepath.Join(root, "src", f.Name), out)...)
		})
	}
	t.Logf("\n%s", strings.Join(rows, "\n"))
}

// realSite is a site's rows of the table.
func realSite(t *testing.T, s map[string]string, dir, out string) []string {
	tree := inFolder(t, dir)
	how, err := lookOf(s["content"], s["gone"])
	if err != nil {
		t.Fatal(err)
	}
	shown, err := how.built(out)
	if err != nil {
		t.Fatal(err)
	}
	say := strings.Contains(saidSites+" ", path.Base(dir)+" ")
	generated := oneOf(s["generated"])
	read, of := fromSource(t, api.Project{DocsDir: s["docs-dir"]}, tree)
	v := compare(shown, read, generated)

	crawled, said := crawl(t, out, s["base"], s["start"])
	pages, _ := fromSource(t, api.Project{Site: api.SiteCollected}, crawled)
	byAddress := map[string]*reading{}
	for _, r := range pages {
		at := said.Addresses[r.file]
		byAddress[addressKey(strings.TrimPrefix(strings.TrimPrefix(at, said.Address), s["base"]))] = r
	}
	w := compare(shown, byAddress, generated)
	if say {
		t.Log("from source:\n" + strings.Join(v.said, "\n"))
		t.Log("by the site:\n" + strings.Join(w.said, "\n"))
	}
	m := mapping{say: say, t: t}
	m.measure(tree, s["docs-dir"], s["base"], read, crawled, said, func(at string) bool { return generated(at) || shown[at] != nil && shown[at].bare })
	kind := fmt.Sprintf("%s (%s)", s["repository"], of.Site.Kind)
	return []string{kind + " source: " + v.row(), kind + " site: " + w.row(), kind + " map: " + m.row()}
}

// origins are those of a sitemap's addresses: where the site is really published.
var origins = regexp.MustCompile(`(<loc>|Sitemap: )https?://[^/<\s]+`)

func inFolder(t *testing.T, dir string) corpora.Tree {
	t.Helper()
	tree := corpora.Tree{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			if err == nil && (d.Name() == ".git" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		tree[filepath.ToSlash(rel)], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// host serves a built site as a static host does, below a base.
func host(t *testing.T, dir, base string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		below, ok := strings.CutPrefix(path.Clean(r.URL.Path), base)
		name := filepath.Join(dir, filepath.FromSlash(below))
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			if !strings.HasSuffix(r.URL.Path, "/") {
				http.Redirect(w, r, r.URL.Path+"/", http.StatusMovedPermanently)
				return
			}
			name = filepath.Join(name, "index.html")
		} else if err != nil {
			name += ".html"
		}
		body, err := os.ReadFile(name)
		if !ok || err != nil {
			http.NotFound(w, r)
			return
		}
		if path.Ext(name) == ".xml" || path.Base(name) == "robots.txt" {
			body = origins.ReplaceAll(body, []byte("${1}http://"+r.Host))
		}
		if path.Ext(name) == ".html" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return server
}

// crawl reads a built site from where it starts.
func crawl(t *testing.T, dir, base, start string) (pages corpora.Tree, said site.Collected) {
	t.Helper()
	server, to := host(t, dir, base), t.TempDir()
	at := website.Place{Pages: filepath.Join(to, "pages"), State: to}
	report, err := website.New(website.Options{Pause: -1, Cell: cell.InProcess(website.Kinds()...)}).Crawl(t.Context(),
		website.Settings{Start: server.URL + base + "/" + start, AllowPrivate: true}, at, func(string, int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report.String())
	pages = inFolder(t, at.Pages)
	if err := json.Unmarshal(pages[site.CollectedFile], &said); err != nil {
		t.Fatal(err)
	}
	return pages, said
}

// A mapping counts how a site's pages are mapped to files.
type mapping struct {
	t   *testing.T
	say bool

	files, there                int      // public files of the repository, and how many of them are on the site at their addresses
	pages, mapped, by, doubtful int      // as it is: pages of files, and how many are mapped by their links
	without                     [3]count // without links to edit; by text alone, surely; by text alone, in doubt
}

type count struct{ right, wrong, none int }

func (c *count) add(got, want string) bool {
	switch got {
	case want:
		c.right++
	case "":
		c.none++
	default:
		c.wrong++
		return false
	}
	return true
}

// measure maps a site's pages. What an edit link says is the truth; where a site has none, what the address says.
func (m *mapping) measure(tree corpora.Tree, docsDir, base string, read map[string]*reading, crawled corpora.Tree, said site.Collected, generated func(string) bool) {
	var files, nowhere []published.File
	for _, at := range slices.Sorted(maps.Keys(read)) {
		r := read[at]
		f := published.File{Path: r.file, URL: base + r.url, Hidden: r.hidden, Text: func() []byte { return tree[path.Join(docsDir, r.file)] }}
		files = append(files, f)
		f.URL = ""
		nowhere = append(nowhere, f)
	}
	var pages, unlinked []published.Page
	for _, name := range slices.Sorted(maps.Keys(said.Addresses)) {
		at := said.Addresses[name]
		p := published.Page{Path: name, URL: at, Edit: said.Edits[name], Text: func() []byte { return crawled[name] }}
		if generated(addressKey(strings.TrimPrefix(strings.TrimPrefix(at, said.Address), base))) {
			continue
		}
		pages = append(pages, p)
		p.Edit = ""
		unlinked = append(unlinked, p)
	}
	whole := published.Match(pages, files, docsDir)
	linkless, alone := published.Match(unlinked, files, docsDir), published.Match(unlinked, nowhere, docsDir)
	there := whole.Files()
	for _, f := range files {
		if !f.Hidden {
			m.files++
			if there[published.Key(f.URL)] == f.Path {
				m.there++
			}
		}
	}
	for _, row := range whole.Rows {
		m.pages++
		switch {
		case row.File == "":
			if m.say {
				m.t.Logf("%s is of no file; its link is %q", row.URL, said.Edits[row.Page])
			}
			continue
		case row.Doubtful():
			m.doubtful++
			continue
		}
		m.mapped++
		if row.By == published.ByLink {
			m.by++
		}
		got, _ := linkless.Of(row.Page)
		if !m.without[0].add(got.File, row.File) && m.say {
			m.t.Logf("%s is of %s, not %s (%s, %.2f)", row.URL, row.File, got.File, got.By, got.Sure)
		}
		got, _ = alone.Of(row.Page)
		which := 1
		if got.Doubtful() {
			which = 2
		}
		if !m.without[which].add(got.File, row.File) && m.say {
			m.t.Logf("by text alone %s is of %s, not %s (%.2f)", row.URL, row.File, got.File, got.Sure)
		}
	}
}

func (m *mapping) row() string {
	return fmt.Sprintf("%d pages, %d mapped (%d by link), %d in doubt, %d of %d files are there; without links %+v; by text alone, sure %+v, in doubt %+v",
		m.pages, m.mapped, m.by, m.doubtful, m.there, m.files, m.without[0], m.without[1], m.without[2])
}
