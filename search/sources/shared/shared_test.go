package shared_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/cluster"
	"docent/persistence/datadir"
	"docent/search"
	"docent/search/sources"
	"docent/search/sources/shared"
	"docent/search/sources/uploads"
)

// A node is what one server has of the sources, with a data directory of its own.
type node struct {
	*sources.Reader
	id      string
	dir     string
	library *search.Library
	sources *shared.Sources
	uploads *uploads.Store
	breaks  *breaking
	follow  func() // begins, as a server does
}

// A site is a web site that the nodes collect: how often, and what it has now.
type site struct {
	text  atomic.Pointer[string]
	asked atomic.Int32
	busy  atomic.Int32
	hold  chan struct{} // a collection waits here; nil for none
}

func (s *site) Collect(ctx context.Context, _ api.Project, dir string, _ sources.Progress) (sources.Collected, error) {
	if s.busy.Add(1) > 1 {
		return sources.Collected{}, errors.New("collected by two nodes at once")
	}
	defer s.busy.Add(-1)
	s.asked.Add(1)
	if s.hold != nil {
		<-s.hold
	}
	text := *s.text.Load()
	if text == "" {
		return sources.Collected{}, errors.New("the site does not answer")
	}
	page := filepath.Join(dir, sources.PagesDir, "a", "page.md")
	return sources.Collected{Pages: 1}, errors.Join(os.MkdirAll(filepath.Dir(page), 0o700), os.WriteFile(page, []byte(text), 0o600),
		os.WriteFile(filepath.Join(dir, "state"), []byte(text), 0o600))
}

// members are the nodes of one test.
type members struct {
	self string
	all  *sync.Map // name by id
}

func (m members) Self() cluster.Node { return cluster.Node{ID: m.self} }

func (m members) Nodes() (all []cluster.Node) {
	m.all.Range(func(id, name any) bool {
		all = append(all, cluster.Node{ID: id.(string), Name: name.(string)})
		return true
	})
	return all
}

// newCluster makes nodes that share a database. They do nothing by themselves before follow, and then only what another one
// has turned: there is no interval at which they look.
func newCluster(t *testing.T, n int, s *site) []*node {
	t.Helper()
	dsn := catalogtest.Postgres(t)
	log := slog.New(slog.DiscardHandler)
	var all sync.Map
	nodes := make([]*node, n)
	for i := range nodes {
		c, err := catalog.Open(t.Context(), dsn, catalog.Options{Log: log, Nodes: i > 0}) // the first is told nothing, and looks
		if err != nil {
			t.Fatal(err)
		}
		db, err := c.Shared(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		dir, id := t.TempDir(), fmt.Sprint("n", i)
		hub, err := forge.Open(filepath.Join(dir, "repos"), c, forge.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		library, err := search.Open(filepath.Join(dir, "index"), search.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		guard, err := sources.OpenGuard(filepath.Join(dir, "reading"), "1", false, time.Now, log)
		if err != nil {
			t.Fatal(err)
		}
		m := members{self: id, all: &all}
		all.Store(id, "node "+id)
		own := shared.New(db)
		if err := own.Among(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, datadir.Sources)
		up := &uploads.Store{Dir: folder, Share: func(ctx context.Context, dir string, zip io.Reader) error {
			return own.Upload(ctx, api.ProjectID(filepath.Base(dir)), zip)
		}}
		breaks := &breaking{Sources: own}
		reader := sources.New(sources.Deps{Catalog: c, Repositories: hub, Index: library, Guard: guard, Log: log,
			Collecting: folder, Collectors: map[api.SourceKind]sources.Collector{api.SourceWeb: s, api.SourceZip: uploads.Zips{}},
			Nodes: breaks})
		ctx, stop := context.WithCancel(context.Background())
		var follows sync.WaitGroup
		nodes[i] = &node{Reader: reader, id: id, dir: dir, library: library, sources: own, uploads: up, breaks: breaks,
			follow: func() { follows.Go(func() { reader.Follow(ctx, 0) }) }}
		t.Cleanup(func() {
			stop()
			follows.Wait()
			reader.Close()
			if err := errors.Join(hub.Shutdown(context.Background()), library.Close(), c.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	return nodes
}

// breaking is a database whose connection breaks so many times when other nodes are told.
type breaking struct {
	*shared.Sources
	times atomic.Int32
}

func (b *breaking) Turn(ctx context.Context, id api.ProjectID, commit string) (int64, error) {
	if b.times.Add(-1) >= 0 {
		return 0, errors.New("the connection broke")
	}
	return b.Sources.Turn(ctx, id, commit)
}

func quiet(string, int, int) {}

// finds reports whether readers are answered from a page that has a word.
func (n *node) finds(t *testing.T, source api.ProjectID, word string) bool {
	t.Helper()
	hits, err := n.library.Search(t.Context(), source, search.Query{Text: word, Limit: 3})
	if err != nil && !errors.Is(err, search.ErrNotIndexed) {
		t.Fatal(err)
	}
	for _, h := range hits {
		if strings.Contains(strings.ToLower(h.Title+" "+h.Content), word) {
			return true
		}
	}
	return false
}

// soon waits until something holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// A repo is a repository on another machine.
type repo struct{ url, work string }

func newRepo(t *testing.T) *repo {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	r := &repo{work: t.TempDir()}
	r.git(t, "init", "-q", "--bare", filepath.Join(root, "docs.git"))
	r.git(t, "init", "-q")
	r.git(t, "remote", "add", "origin", filepath.Join(root, "docs.git"))
	server := httptest.NewServer(&cgi.Handler{Path: path, Args: []string{"http-backend"}, Stderr: io.Discard, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}})
	t.Cleanup(server.Close)
	r.url = server.URL + "/docs.git"
	return r
}

func (r *repo) git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com",
		"-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = r.work
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// push changes the repository's only page.
func (r *repo) push(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.work, "index.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.git(t, "add", "-A")
	r.git(t, "commit", "-q", "-m", "change")
	r.git(t, "push", "-q", "origin", "HEAD:main")
}

func (n *node) add(t *testing.T, url string) api.Project {
	t.Helper()
	added, err := n.Add(t.Context(), api.Project{ID: "docs", Domain: "docs", Source: url, Host: api.HostGit}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return added.Project
}

// TestAnUpdateHasEndedWhenEveryNodeAnswersFromIt pushes and updates, on one node after the other.
func TestAnUpdateHasEndedWhenEveryNodeAnswersFromIt(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.push(t, "# Walrus\n\nThe walrus has tusks.\n")
	nodes := newCluster(t, 3, new(site))
	for _, n := range nodes {
		n.follow()
	}
	p := nodes[0].add(t, r.url)
	for _, n := range nodes {
		soon(t, n.id+" does not read a project that was added elsewhere", func() bool { return n.finds(t, "docs", "walrus") })
	}
	for i, word := range []string{"pelican", "heron", "gannet"} {
		r.push(t, "# "+word+"\n\nThe "+word+" eats fish.\n")
		nodes[i].breaks.times.Store(2)
		if _, err := nodes[i].Refresh(t.Context(), p, quiet); err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			if !n.finds(t, "docs", word) || n.library.Commit("docs") != nodes[i].library.Commit("docs") {
				t.Errorf("%s answers from an older state after the update on %s", n.id, nodes[i].id)
			}
		}
	}
	if err := nodes[1].Remove(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		soon(t, n.id+" keeps the index of a project that was removed elsewhere", func() bool { return n.library.Commit("docs") == "" })
	}
}

// TestANodeThatWasAwayCatchesUpBeforeItAnswers has one that does not follow while an update is made.
func TestANodeThatWasAwayCatchesUpBeforeItAnswers(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.push(t, "# Walrus\n\nThe walrus has tusks.\n")
	nodes := newCluster(t, 2, new(site))
	p := nodes[0].add(t, r.url)
	if err := nodes[1].CatchUp(t.Context()); err != nil || nodes[1].library.Commit("docs") != "" {
		t.Errorf("a node that starts waits for an index that it never had: %v", err)
	}
	if _, err := nodes[1].Refresh(t.Context(), p, quietUntilOthers(t, nodes[0])); err != nil {
		t.Fatal(err)
	}
	r.push(t, "# Pelican\n\nThe pelican eats fish.\n")
	if _, err := nodes[0].Refresh(t.Context(), p, quietUntilOthers(t, nodes[1])); err != nil {
		t.Fatal(err)
	}
	if err := nodes[1].CatchUp(t.Context()); err != nil || !nodes[1].finds(t, "docs", "pelican") {
		t.Errorf("it answers from what was there before: %v", err)
	}
}

// quietUntilOthers ends the waiting for a node that does not follow.
func quietUntilOthers(t *testing.T, other *node) sources.Progress {
	return func(text string, _, _ int) {
		if strings.Contains(text, "other nodes") {
			heads, err := other.sources.Heads(t.Context())
			if err == nil {
				err = other.sources.Serves(t.Context(), "docs", heads["docs"].Number)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// TestAWebSiteIsCollectedByOneNodeForAll adds, reads, and removes one on different nodes.
func TestAWebSiteIsCollectedByOneNodeForAll(t *testing.T) {
	t.Parallel()
	r, s := newRepo(t), new(site)
	r.push(t, "# Walrus\n\nThe walrus has tusks.\n")
	text := "# Pelican\n\nThe pelican eats fish.\n"
	s.text.Store(&text)
	nodes := newCluster(t, 3, s)
	nodes[0].add(t, r.url)
	for _, n := range nodes {
		n.follow()
	}
	web := api.Source{Label: "site", Kind: api.SourceWeb, Address: "https://site.example.com"}
	if _, err := nodes[0].AddSource(t.Context(), "docs", web, quiet); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		soon(t, n.id+" does not have what another node has collected", func() bool { return n.finds(t, "docs@site", "pelican") })
	}
	if got := s.asked.Load(); got != 1 {
		t.Errorf("the site was collected %d times", got)
	}
	next := "# Heron\n\nThe heron stands in water.\n"
	s.text.Store(&next)
	part, err := nodes[2].Part(t.Context(), "docs@site")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes[2].Refresh(t.Context(), part, quiet); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if !n.finds(t, "docs@site", "heron") || n.finds(t, "docs@site", "pelican") {
			t.Errorf("%s answers from an older state", n.id)
		}
		state, err := os.ReadFile(filepath.Join(n.CollectedDir("docs@site"), "state"))
		if c, ok := n.LastCollection("docs@site"); !ok || c.Pages != 1 || string(state) != next || err != nil {
			t.Errorf("%s cannot go on from there: %+v, %q, %v", n.id, c, state, err)
		}
	}
	if got := s.asked.Load(); got != 2 {
		t.Errorf("the site was collected %d times", got)
	}
	none := ""
	s.text.Store(&none)
	if _, err := nodes[1].Refresh(t.Context(), part, quiet); err == nil {
		t.Error("a site that does not answer is read")
	}
	if _, err := nodes[0].Refresh(t.Context(), part, quiet); err == nil || !nodes[0].finds(t, "docs@site", "heron") {
		t.Error("what answered before is gone")
	}
	if c, _ := nodes[0].LastCollection("docs@site"); c.Error == "" {
		t.Error("another node does not know that it failed")
	}
	if err := nodes[0].RemoveSource(t.Context(), "docs", "site"); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		soon(t, n.id+" keeps what was collected of a source that is no more", func() bool {
			_, err := os.Stat(n.CollectedDir("docs@site"))
			return errors.Is(err, os.ErrNotExist) && n.library.Commit("docs@site") == ""
		})
	}
}

// TestTwoNodesThatReadASiteAtOnceCollectItOnce has the second wait, and take what the first has.
func TestTwoNodesThatReadASiteAtOnceCollectItOnce(t *testing.T) {
	t.Parallel()
	r, s := newRepo(t), &site{hold: make(chan struct{})}
	r.push(t, "# Walrus\n\nThe walrus has tusks.\n")
	text := "# Pelican\n\nThe pelican eats fish.\n"
	s.text.Store(&text)
	nodes := newCluster(t, 2, s)
	p := nodes[0].add(t, r.url)
	_, err := nodes[0].Catalog.ChangeProject(t.Context(), p.ID, func(p api.Project) (api.Project, error) {
		p.Sources = []api.Source{{Label: "site", Kind: api.SourceWeb, Address: "https://site.example.com"}}
		return p, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		n.follow() // both find that it is due
	}
	soon(t, "nobody collects", func() bool { return s.asked.Load() > 0 })
	close(s.hold)
	for _, n := range nodes {
		soon(t, n.id+" does not answer from it", func() bool { return n.finds(t, "docs@site", "pelican") })
	}
	if got := s.asked.Load(); got != 1 {
		t.Errorf("the site was collected %d times", got)
	}
}

func zipped(t *testing.T, text string) io.Reader {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	f, err := w.Create("page.md")
	if err == nil {
		_, err = f.Write([]byte(text))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return &out
}

// TestAnUploadToAnyNodeIsOnAll uploads to one node after the other, and the first one's again.
func TestAnUploadToAnyNodeIsOnAll(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.push(t, "# Walrus\n\nThe walrus has tusks.\n")
	nodes := newCluster(t, 2, new(site))
	nodes[0].add(t, r.url)
	for _, n := range nodes {
		n.follow()
	}
	if _, err := nodes[0].AddSource(t.Context(), "docs", api.Source{Label: "blog", Kind: api.SourceZip}, quiet); err != nil {
		t.Fatal(err)
	}
	words := []string{"pelican", "heron", "pelican"}
	for i, word := range words {
		at := nodes[i%2]
		if word == words[0] {
			at = nodes[0] // which has it still, unless it followed
		}
		in, err := at.uploads.Read(strings.Repeat("a", 26), zipped(t, "# "+word+"\n\nThe "+word+" is a bird.\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Keep(t.Context(), at.CollectedDir("docs@blog")); err != nil {
			t.Fatal(err)
		}
		part, err := at.Part(t.Context(), "docs@blog")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := at.Refresh(t.Context(), part, quiet); err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			if !n.finds(t, "docs@blog", word) {
				t.Errorf("%s does not have the upload of %s to %s", n.id, word, at.id)
			}
		}
	}
}

// TestADataDirectoryIsTakenOver shares what a server had that was alone.
func TestADataDirectoryIsTakenOver(t *testing.T) {
	t.Parallel()
	s := new(site)
	text := "# Pelican\n\nThe pelican eats fish.\n"
	s.text.Store(&text)
	nodes := newCluster(t, 2, s)
	folder := filepath.Join(nodes[0].dir, datadir.Sources)
	pages := filepath.Join(folder, "docs@site", sources.PagesDir)
	if err := errors.Join(os.MkdirAll(pages, 0o700), os.WriteFile(filepath.Join(pages, "a.md"), []byte(text), 0o600),
		os.MkdirAll(filepath.Join(folder, "docs@blog"), 0o700),
		os.WriteFile(filepath.Join(folder, "docs@blog", datadir.Upload), []byte("a zip"), 0o600)); err != nil {
		t.Fatal(err)
	}
	parts := []api.Project{{ID: "docs"}, {ID: "docs@site", Kind: api.SourceWeb}, {ID: "docs@blog", Kind: api.SourceZip},
		{ID: "docs@new", Kind: api.SourceWeb}}
	for range 2 {
		if err := nodes[0].sources.TakeOver(t.Context(), parts, folder); err != nil {
			t.Fatal(err)
		}
	}
	for i, file := range []string{filepath.Join(sources.PagesDir, "a.md"), datadir.Upload} {
		dir := filepath.Join(nodes[1].dir, "taken", string(parts[i+1].ID))
		changed, err := nodes[1].sources.Take(t.Context(), parts[i+1], dir)
		if got, _ := os.ReadFile(filepath.Join(dir, file)); !changed || err != nil || !strings.Contains(text+"a zip", string(got)) || len(got) == 0 {
			t.Errorf("%s: %q, %v, %v", file, got, changed, err)
		}
		if changed, err := nodes[1].sources.Take(t.Context(), parts[i+1], dir); changed || err != nil {
			t.Errorf("%s is taken twice: %v", file, err)
		}
	}
}
