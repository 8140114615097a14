package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/search/index"
)

// made is a documentation set of n pages; every page says which round it was written in.
func made(n, round int) *memTree {
	t := &memTree{commit: fmt.Sprint("round-", round), files: make(map[string]string, n)}
	for i := range n {
		t.files[madePath(i)] = madePage(i, round)
	}
	return t
}

func madePath(i int) string { return fmt.Sprintf("docs/part%d/page-%d.md", i%7, i) }

func madePage(i, round int) string {
	return fmt.Sprintf("---\ntitle: Page %[1]d\n---\n\nAbout topic%[1]d and common things.\n\n## Round%[2]d state\n\nWritten in round%[2]d with `--flag-%[1]d`.\n\n## Further\n\nMore of topic%[1]d, see [the next](/part%[3]d/page-%[4]d).\n",
		i, round, (i+1)%7, i+1)
}

func texts(hits []Hit) []string {
	out := make([]string, len(hits))
	for i, h := range hits {
		out[i] = fmt.Sprintf("%s#%s %.6f", h.Path, h.Anchor, h.Score)
	}
	return out
}

var docs = api.Project{ID: "docs", DocsDir: "docs"}

func mustUpdate(t testing.TB, l *Library, p api.Project, tree Tree) Report {
	t.Helper()
	r, err := l.Update(t.Context(), p, tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustSearch(t testing.TB, l *Library, p api.ProjectID, q Query) []Hit {
	t.Helper()
	hits, err := l.Search(t.Context(), p, q)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func TestProjectWithoutIndexIsToldApart(t *testing.T) {
	l := openTest(t, Options{})
	if _, err := l.Search(t.Context(), "none", Query{Text: "x"}); !errors.Is(err, ErrNotIndexed) {
		t.Fatalf("search: %v", err)
	}
	if _, err := l.Page(t.Context(), "none", "x", nil); !errors.Is(err, ErrNotIndexed) {
		t.Fatalf("page: %v", err)
	}
	if c := l.Commit("none"); c != "" {
		t.Fatalf("commit %q", c)
	}
	mustUpdate(t, l, api.Project{ID: "empty"}, &memTree{commit: "a"})
	if hits := mustSearch(t, l, "empty", Query{Text: "x"}); len(hits) != 0 {
		t.Fatal(hits)
	}
	if c := l.Commit("empty"); c != "a" {
		t.Fatalf("commit %q", c)
	}
	if err := l.Remove("empty"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Search(t.Context(), "empty", Query{Text: "x"}); !errors.Is(err, ErrNotIndexed) {
		t.Fatalf("search after remove: %v", err)
	}
}

// countingTree notes what is read.
type countingTree struct {
	*memTree
	mu   sync.Mutex
	read []string
}

func (t *countingTree) Read(ctx context.Context, p string) ([]byte, error) {
	t.mu.Lock()
	t.read = append(t.read, p)
	t.mu.Unlock()
	return t.memTree.Read(ctx, p)
}

// A brokenTree has a page that makes the program panic, wherever that page is read.
type brokenTree struct {
	*memTree
	page string
}

func (t *brokenTree) Read(ctx context.Context, p string) ([]byte, error) {
	if p == t.page {
		panic("an odd page")
	}
	return t.memTree.Read(ctx, p)
}

// One bad page ends the update that reads it, and neither the process nor what was there before.
func TestAPageThatPanicsEndsItsUpdateAlone(t *testing.T) {
	l := openTest(t, Options{})
	tree := made(20, 0)
	mustUpdate(t, l, docs, tree)
	next := &memTree{commit: "round-1", files: maps.Clone(tree.files)}
	next.files[madePath(7)] = madePage(7, 1)
	_, err := l.Update(t.Context(), docs, &brokenTree{next, madePath(7)}, func(int, int) {})
	if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(madePath(7), "docs/")) ||
		!strings.Contains(err.Error(), "an odd page") {
		t.Fatalf("the update says %v", err)
	}
	if c := l.Commit(docs.ID); c != tree.commit {
		t.Errorf("the index is of commit %q, want %q", c, tree.commit)
	}
	mustUpdate(t, l, docs, next)
}

func TestUpdateReadsOnlyWhatChanged(t *testing.T) {
	l := openTest(t, Options{})
	tree := made(1000, 0)
	rep := mustUpdate(t, l, docs, tree)
	if rep.Pages != 1000 || rep.Sections != 3000 || len(rep.Added) != 1000 {
		t.Fatalf("first: %d pages, %d sections, %d added", rep.Pages, rep.Sections, len(rep.Added))
	}
	next := &memTree{commit: "round-1", files: maps.Clone(tree.files)}
	var changed []string
	for i := 10; i < 14; i++ {
		next.files[madePath(i)] = madePage(i, 1)
		changed = append(changed, madePath(i))
	}
	delete(next.files, madePath(20))
	next.files["docs/new.md"] = "# Brand new\n\nSomething about zebras.\n"
	changed = append(changed, "docs/new.md")
	counting := &countingTree{memTree: next}
	begin := time.Now()
	rep = mustUpdate(t, l, docs, counting)
	t.Logf("update took %v", time.Since(begin))
	slices.Sort(changed)
	slices.Sort(counting.read)
	if !slices.Equal(counting.read, changed) {
		t.Fatalf("read %v, want %v", counting.read, changed)
	}
	if len(rep.Added) != 1 || len(rep.Modified) != 4 || len(rep.Removed) != 1 || rep.Pages != 1000 ||
		rep.Commit != "round-1" {
		t.Fatalf("report %+v", rep)
	}
	if hits := mustSearch(t, l, "docs", Query{Text: "zebras"}); len(hits) != 1 || hits[0].Path != "new.md" {
		t.Fatalf("new page: %v", hits)
	}
	if hits := mustSearch(t, l, "docs", Query{Text: "topic20"}); len(hits) != 0 {
		t.Fatalf("deleted page: %v", texts(hits))
	}
	if _, err := l.Page(t.Context(), "docs", "part6/page-20", nil); !errors.Is(err, api.ErrNotFound) {
		t.Fatalf("deleted page: %v", err)
	}
	if hits := mustSearch(t, l, "docs", Query{Text: "round1", Limit: 50}); len(hits) != 4 {
		t.Fatalf("changed pages: %v", texts(hits))
	}
	// Nothing changed but the commit.
	same := &countingTree{memTree: &memTree{commit: "round-2", files: next.files}}
	rep = mustUpdate(t, l, docs, same)
	if len(same.read) != 0 || l.Commit("docs") != "round-2" || rep.Pages != 1000 || rep.Sections == 0 {
		t.Fatalf("read %v, commit %s, %+v", same.read, l.Commit("docs"), rep)
	}
}

// Whatever way an index came to its state, it answers as one that was made at once.
func TestManyUpdatesAnswerAsOneBuild(t *testing.T) {
	l := openTest(t, Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	tree := made(60, 0)
	mustUpdate(t, l, docs, tree)
	files := maps.Clone(tree.files)
	for round := 1; round <= rounds(30); round++ {
		for range 1 + rng.IntN(4) {
			i := rng.IntN(70)
			if rng.IntN(4) == 0 {
				delete(files, madePath(i))
			} else {
				files[madePath(i)] = madePage(i, round)
			}
		}
		now := &memTree{commit: fmt.Sprint("round-", round), files: maps.Clone(files)}
		step := mustUpdate(t, l, docs, now)
		fresh := api.Project{ID: api.ProjectID(fmt.Sprint("fresh-", round)), DocsDir: "docs"}
		whole := mustUpdate(t, l, fresh, now)
		if step.Pages != whole.Pages || step.Sections != whole.Sections {
			t.Fatalf("round %d: %d/%d pages, %d/%d sections", round, step.Pages, whole.Pages, step.Sections, whole.Sections)
		}
		for _, text := range []string{"topic7", "topic12 common", "written in round3", "--flag-9", "more of topic4", "page 3",
			"next", fmt.Sprint("round", round)} {
			for _, box := range []bool{false, true} {
				q := Query{Text: text, Limit: 20, Box: box}
				if a, b := texts(mustSearch(t, l, "docs", q)), texts(mustSearch(t, l, fresh.ID, q)); !slices.Equal(a, b) {
					t.Fatalf("round %d, %q:\n%v\n%v", round, text, a, b)
				}
			}
		}
		if err := l.Remove(fresh.ID); err != nil {
			t.Fatal(err)
		}
	}
	entries, _ := os.ReadDir(filepath.Join(l.dir, "docs"))
	if len(entries) != 2 { // CURRENT and one generation
		t.Fatalf("left behind: %v", entries)
	}
}

// Every page of a round says the same round: a query that saw two rounds at once would show it.
func TestUpdateIsSeenWholeOrNotAtAll(t *testing.T) {
	l := openTest(t, Options{})
	const pages = 40
	mustUpdate(t, l, docs, made(pages, 0))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	faults := make(chan string, 8)
	for range 4 {
		wg.Go(func() {
			last := ""
			for ctx.Err() == nil {
				hits, err := l.Search(t.Context(), "docs", Query{Text: "state", Limit: 50})
				if err != nil {
					faults <- err.Error()
					return
				}
				seen := make(map[string]int)
				for _, h := range hits {
					seen[h.Heading]++
				}
				if len(seen) != 1 || len(hits) != pages {
					faults <- fmt.Sprint("a query saw ", seen)
					return
				}
				for heading := range seen {
					last = heading
				}
				if !strings.HasPrefix(last, "Round") {
					faults <- "unexpected heading " + last
					return
				}
			}
		})
	}
	for round := 1; round <= rounds(25); round++ {
		mustUpdate(t, l, docs, made(pages, round))
	}
	cancel()
	wg.Wait()
	select {
	case f := <-faults:
		t.Fatal(f)
	default:
	}
}

func TestFewIndexesStayOpen(t *testing.T) {
	l := openTest(t, Options{MaxOpen: 5, IdleAfter: -1})
	const projects = 30
	for p := range projects {
		mustUpdate(t, l, api.Project{ID: api.ProjectID(fmt.Sprint("p", p))},
			&memTree{commit: "c", files: map[string]string{"a.md": fmt.Sprintf("# Title%d\n\nproject%d\n", p, p)}})
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 60 {
				p := (i*7 + g) % projects
				hits, err := l.Search(t.Context(), api.ProjectID(fmt.Sprint("p", p)), Query{Text: fmt.Sprint("project", p)})
				if err != nil || len(hits) != 1 {
					t.Errorf("project %d: %v %v", p, hits, err)
				}
			}
		})
	}
	wg.Wait()
	if n := l.Open(); n > 5 {
		t.Fatalf("%d indexes are open", n)
	}
}

// A query that outlives its project, and the project's second life, harm neither.
func TestRemovedProjectMayComeBackWhileItIsRead(t *testing.T) {
	l := openTest(t, Options{})
	mustUpdate(t, l, docs, made(5, 0))
	late, err := l.acquire("docs")
	if err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, l, docs, made(5, 1))
	if err := l.Remove("docs"); err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, l, docs, made(5, 2))
	if hits, err := late.search(t.Context(), Query{Text: "round0"}); err != nil || len(hits) != 5 {
		t.Fatalf("%v %v", texts(hits), err)
	}
	late.release()
	s := l.projects["docs"]
	l.mu.Lock()
	old := s.shut()
	l.mu.Unlock()
	old.close() // opened again from disk
	if hits := mustSearch(t, l, "docs", Query{Text: "round2"}); len(hits) != 5 {
		t.Fatal(texts(hits))
	}
}

func TestCloseWaitsForQueriesAndEndsThem(t *testing.T) {
	l := openTest(t, Options{})
	mustUpdate(t, l, docs, made(20, 0))
	snap, err := l.acquire("docs")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }()
	if _, err := snap.search(t.Context(), Query{Text: "topic3"}); err != nil {
		t.Fatal(err)
	}
	snap.release()
	<-closed
	if _, err := l.Search(t.Context(), "docs", Query{Text: "topic3"}); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

// Files on disk are cut, deleted and flipped while nothing is open. What then answers is right, or says that it cannot.
func TestDamageIsFound(t *testing.T) {
	dir := t.TempDir()
	tree := made(60, 0)
	changed := &memTree{commit: "round-1", files: maps.Clone(tree.files)}
	changed.files[madePath(3)] = madePage(3, 1)
	questions := []Query{{Text: "topic3"}, {Text: "round1"}, {Text: "common things", Limit: 20},
		{Text: "topc17", Box: true}}
	build := func() [][]string {
		l, err := Open(dir, Options{Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		mustUpdate(t, l, docs, tree)
		mustUpdate(t, l, docs, changed)
		var out [][]string
		for _, q := range questions {
			out = append(out, texts(mustSearch(t, l, "docs", q)))
		}
		return out
	}
	want := build()
	keep := filepath.Join(t.TempDir(), "sound")
	if err := os.CopyFS(keep, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	var files []string
	filepath.WalkDir(keep, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(keep, p)
			files = append(files, rel)
		}
		return err
	})
	rng := rand.New(rand.NewPCG(3, 4))
	found := 0
	times := rounds(130)
	for n := range times {
		os.RemoveAll(dir)
		if err := os.CopyFS(dir, os.DirFS(keep)); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, files[rng.IntN(len(files))])
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		how := "flipped"
		switch {
		case n >= times*10/13 && n%2 == 0:
			how = "deleted"
			err = os.Remove(name)
		case n >= times*10/13:
			how = "cut"
			err = os.Truncate(name, int64(rng.IntN(len(content))))
		default:
			content[rng.IntN(len(content))] ^= 1 << rng.IntN(8)
			err = os.WriteFile(name, content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		l, err := Open(dir, Options{Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		check := func(when string) bool {
			for i, q := range questions {
				hits, err := l.Search(t.Context(), "docs", q)
				if errors.Is(err, ErrNotIndexed) {
					return false
				}
				if err != nil {
					t.Fatalf("%s %s, %s: %v", name, how, when, err)
				}
				if got := texts(hits); !slices.Equal(got, want[i]) {
					t.Fatalf("%s %s, %s: %q\n%v\n%v", name, how, when, q.Text, got, want[i])
				}
			}
			return true
		}
		if !check("before the update") {
			found++
			if c := l.Commit("docs"); c != "" {
				t.Fatalf("%s %s: commit %q", name, how, c)
			}
		}
		mustUpdate(t, l, docs, changed)
		if !check("after the update") {
			t.Fatalf("%s %s: not rebuilt", name, how)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Fatal("no damage was noticed")
	}
	t.Logf("%d of %d damages had to be repaired", found, times)
}

// An index that another version made, by other rules for text or for what is public, is not answered from and is built
// again.
func TestOldSchemaIsRebuilt(t *testing.T) {
	t.Run("schema", func(t *testing.T) { testOldIndex(t, func(m *index.Manifest) { m.Schema-- }) })
	t.Run("analysis", func(t *testing.T) { testOldIndex(t, func(m *index.Manifest) { m.Analysis++ }) })
}

func testOldIndex(t *testing.T, age func(*index.Manifest)) {
	dir := t.TempDir()
	l, err := Open(dir, Options{Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, l, docs, made(10, 0))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	gen := filepath.Join(dir, "docs", index.List(filepath.Join(dir, "docs"))[0])
	m, err := index.ReadManifest(gen)
	if err != nil {
		t.Fatal(err)
	}
	age(&m)
	if err := index.SaveManifest(gen, m); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(dir, Options{Log: quiet()}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Search(t.Context(), "docs", Query{Text: "topic3"}); !errors.Is(err, ErrNotIndexed) {
		t.Fatal(err)
	}
	if rep := mustUpdate(t, l, docs, made(10, 0)); len(rep.Added) != 10 {
		t.Fatalf("%+v", rep)
	}
	if hits := mustSearch(t, l, "docs", Query{Text: "topic3"}); len(hits) == 0 {
		t.Fatal("nothing found")
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("DOCENT_TEST_INDEX"); dir != "" {
		indexUntilKilled(dir)
		return
	}
	if dir := os.Getenv("DOCENT_TEST_INDEX_FOLDER"); dir != "" {
		indexFolder(dir)
		return
	}
	os.Exit(m.Run())
}

// indexUntilKilled updates one project again and again and says each round that is done.
func indexUntilKilled(dir string) {
	l, err := Open(dir, Options{Log: quiet()})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for round := 1; ; round++ {
		fmt.Println("begin", round)
		tree := made(40, round)
		if round%3 != 0 { // mostly small changes
			tree = made(40, round-round%3)
			for i := range 1 + round%3 {
				tree.files[madePath(i)] = madePage(i, round)
			}
		}
		if _, err := l.Update(context.Background(), docs, tree, nil); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// A process that is killed while it indexes leaves an index that answers for one of its rounds, whole.
func TestKilledWhileIndexing(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	times := rounds(50)
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(5, 6))
	for n := range times {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "DOCENT_TEST_INDEX="+dir)
		rounds := 1 + rng.IntN(4)
		out := &lineTrigger{after: rounds, reached: make(chan struct{})}
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-out.reached
		time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond) // somewhere within a round: any moment will do
		cmd.Process.Kill()
		cmd.Wait()
		l, err := Open(dir, Options{Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		hits, err := l.Search(t.Context(), "docs", Query{Text: "state", Limit: 50})
		if err != nil && !errors.Is(err, ErrNotIndexed) {
			t.Fatalf("kill %d: %v", n, err)
		}
		if err == nil {
			whole := make(map[string]string)
			for _, h := range hits {
				whole[h.Path] = h.Content
			}
			if len(whole) != 40 {
				t.Fatalf("kill %d: %d pages", n, len(whole))
			}
		}
		final := made(40, 1000+n)
		mustUpdate(t, l, docs, final)
		if hits := mustSearch(t, l, "docs", Query{Text: fmt.Sprint("round", 1000+n), Limit: 50}); len(hits) != 40 {
			t.Fatalf("kill %d: %d pages after the update", n, len(hits))
		}
		l.Close()
		if entries, _ := os.ReadDir(filepath.Join(dir, "docs")); len(entries) != 2 {
			t.Fatalf("kill %d: left behind %v", n, entries)
		}
	}
}

// lineTrigger closes reached once so many lines have come.
type lineTrigger struct {
	after   int
	reached chan struct{}
}

func (l *lineTrigger) Write(p []byte) (int, error) {
	if l.after > 0 {
		if l.after -= bytes.Count(p, []byte("\n")); l.after <= 0 {
			close(l.reached)
		}
	}
	return len(p), nil
}

func TestPageIsFoundByAnyOfItsNames(t *testing.T) {
	l := openTest(t, Options{})
	p := api.Project{ID: "names", DocsDir: "docs", SiteURL: "https://example.org/manual/"}
	mustUpdate(t, l, p, &memTree{commit: "c", files: map[string]string{
		"docs/guide/start.mdx":   "---\ntitle: Start\n---\nBegin here.\n",
		"docs/guide/index.md":    "# Guide\n\nOverview.\n",
		"docs/index.md":          "# Home\n\nWelcome.\n",
		"docs/secret.md":         "---\ntitle: Secret\ngroups: [staff]\n---\nFor few eyes.\n",
		"docs/hidden.md":         "---\ntitle: Hidden\nhidden: true\n---\nInvisible ink.\n",
		"docs/.vitepress/x.md":   "# no\n",
		"docs/node_modules/a.md": "# no\n",
		"README.md":              "# outside\n",
		"docs/logo.png":          "\x89PNG",
	}})
	for name, want := range map[string]string{
		"guide/start": "guide/start.mdx", "/guide/start.mdx": "guide/start.mdx", "guide/start/": "guide/start.mdx",
		"https://example.org/manual/guide/start#x": "guide/start.mdx", "/guide": "guide/index.md",
		"guide/index": "guide/index.md",
		"/":           "index.md", "": "index.md", "https://example.org/manual": "index.md",
		"docs/guide/start.mdx": "guide/start.mdx",
		"hidden":               "hidden.md",
	} {
		page, err := l.Page(t.Context(), "names", name, nil)
		if err != nil || page.Path != want {
			t.Errorf("%q: %q, %v", name, page.Path, err)
		}
	}
	page, err := l.Page(t.Context(), "names", "guide/start", nil)
	if err != nil || page.Content != "Begin here.\n" || page.Title != "Start" ||
		page.URL != "https://example.org/manual/guide/start" {
		t.Errorf("%+v %v", page, err)
	}
	for _, gone := range []string{"README/x", "node_modules/a", ".vitepress/x", "guide/other", "secret"} {
		if _, err := l.Page(t.Context(), "names", gone, nil); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%q: %v", gone, err)
		}
	}
	if page, err := l.Page(t.Context(), "names", "secret", []string{"staff"}); err != nil ||
		!slices.Equal(page.Groups, []string{"staff"}) {
		t.Errorf("secret: %+v %v", page, err)
	}
	if hits := mustSearch(t, l, "names", Query{Text: "few eyes"}); len(hits) != 0 {
		t.Errorf("restricted page found: %v", texts(hits))
	}
	if hits := mustSearch(t, l, "names",
		Query{Text: "few eyes", Filter: Filter{Groups: []string{"staff"}}}); len(hits) != 1 {
		t.Errorf("restricted page not found: %v", texts(hits))
	}
	if hits := mustSearch(t, l, "names", Query{Text: "invisible ink"}); len(hits) != 0 {
		t.Errorf("hidden page found: %v", texts(hits))
	}
	published, err := l.Published(t.Context(), "names")
	var listed []string
	for _, p := range published {
		listed = append(listed, p.Path+" "+p.Title+" "+p.URL)
	}
	if want := []string{"guide/index.md Guide https://example.org/manual/guide",
		"guide/start.mdx Start https://example.org/manual/guide/start", "index.md Home https://example.org/manual",
	}; err != nil || !slices.Equal(listed, want) {
		t.Errorf("published are %q, %v; want %q", listed, err, want)
	}
	mustUpdate(t, l, api.Project{ID: "names", DocsDir: "docs"},
		&memTree{commit: "d", files: map[string]string{"docs/guide/start.mdx": "---\ntitle: Start\n---\nBegin here.\n"}})
	if hits := mustSearch(t, l, "names", Query{Text: "begin"}); len(hits) != 1 || hits[0].URL != "/guide/start" {
		t.Errorf("%+v", hits)
	}
}

func TestFiltersAndCurrentPage(t *testing.T) {
	l := openTest(t, Options{})
	page := func(front, body string) string { return "---\n" + front + "\n---\n" + body + "\n" }
	mustUpdate(t, l, api.Project{ID: "f"}, &memTree{commit: "c", files: map[string]string{
		"v1/install.md":  page("title: Install\nversion: v1", "Install the widget by hand."),
		"v2/install.md":  page("title: Install\nversion: v2", "Install the widget by hand."),
		"v2/other.md":    page("title: Other\nversion: v2", "Nothing."),
		"de/install.md":  page("title: Installieren\nlanguage: de", "Die Widgets werden von Hand installiert."),
		"all/install.md": page("title: Install\ntags: [ops]", "Install the widget by hand."),
	}})
	paths := func(q Query) string {
		var out []string
		for _, h := range mustSearch(t, l, "f", q) {
			out = append(out, h.Path)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	for want, q := range map[string]Query{
		"v1/install.md":                {Text: "install", Filter: Filter{Version: "v1"}},
		"all/install.md":               {Text: "install", Filter: Filter{Tag: "ops"}},
		"de/install.md":                {Text: "installieren", Filter: Filter{Language: "de"}},
		"all/install.md v2/install.md": {Text: "install", CurrentPath: "/v2/other"},
	} {
		if got := paths(q); got != want {
			t.Errorf("%+v: %s, want %s", q, got, want)
		}
	}
	if got := paths(Query{Text: "widgets", Limit: 9}); got != "all/install.md v2/install.md" {
		t.Errorf("without a filter: %s", got)
	}
	if hits := mustSearch(t, l, "f",
		Query{Text: "install widget", CurrentPath: "v2/other", Limit: 1}); hits[0].Path != "v2/install.md" {
		t.Errorf("from v2: %v", texts(hits))
	}
	for _, h := range mustSearch(t, l, "f", Query{Text: "install", Limit: 9}) {
		if h.Score <= 0 || h.Score > 1 {
			t.Errorf("score %v", h.Score)
		}
	}
	if hits := mustSearch(t, l, "f", Query{Text: "install", Threshold: 0.99}); len(hits) != 0 {
		t.Errorf("above the threshold: %v", texts(hits))
	}
}

// What other files add to a page changes with them: the text of imported files, link texts, names in the navigation.
func TestPagesFollowTheirNeighbors(t *testing.T) {
	l := openTest(t, Options{})
	p := api.Project{ID: "n"}
	files := map[string]string{
		"docs.json":         `{"navigation": {"groups": [{"group": "More", "pages": ["other"]}], "versions": [{"version": "v9", "groups": [{"group": "Beginnings", "pages": ["page"]}]}]}}`,
		"page.mdx":          "---\ntitle: Page\n---\nimport Part from \"/snippets/part.mdx\"\n\n## Here\n\n<Part />\n\n## There\n\nNothing else.\n",
		"other.mdx":         "---\ntitle: Other\n---\nRead [the wombat handbook](/page).\n",
		"snippets/part.mdx": "Quokkas are small.\n",
		"deep/openapi.json": `{"openapi": "3.1.0", "info": {"title": "Burrows"}, "paths": {"/burrows": {"post": {"operationId": "dig", "summary": "Dig a burrow"}}}}`,
		"package.json":      `{"name": "bandicoot"}`,
	}
	plain := map[string]string{
		"old.html": "<html><head><title>Old times</title><script>var platypus</script></head><body><h1>Old times</h1><p>Long ago.</p><h2 id=\"eggs\">Eggs</h2><p>Echidnas lay eggs.</p></body></html>",
	}
	update := func() {
		t.Helper()
		mustUpdate(t, l, p, &memTree{commit: fmt.Sprint(len(files), files["docs.json"]), files: maps.Clone(files)})
	}
	best := func(text string) string {
		t.Helper()
		hits := mustSearch(t, l, "n", Query{Text: text})
		if len(hits) == 0 {
			return ""
		}
		return hits[0].Path + "#" + hits[0].Anchor + " " + hits[0].Version
	}
	update()
	for text, want := range map[string]string{
		"quokkas": "page.mdx#here v9", "wombat handbook": "other.mdx# ", "beginnings": "page.mdx#here v9",
		"dig a burrow": "deep/openapi.json/dig# ",
		"echidnas":     "", "bandicoot": "",
	} {
		if got := best(text); got != want {
			t.Errorf("%q finds %q, want %q", text, got, want)
		}
	}
	if hits := mustSearch(t, l, "n", Query{Text: "wombat"}); len(hits) != 2 {
		t.Errorf("a link's text describes its target: %v", texts(hits))
	}
	mustUpdate(t, l, api.Project{ID: "html"}, &memTree{commit: "1", files: plain})
	if hits := mustSearch(t, l, "html", Query{Text: "echidnas"}); len(hits) != 1 || hits[0].Anchor != "eggs" {
		t.Errorf("a page in HTML: %v", texts(hits))
	}
	if hits := mustSearch(t, l, "html", Query{Text: "platypus"}); len(hits) != 0 {
		t.Errorf("a script is found: %v", texts(hits))
	}
	files["snippets/part.mdx"] = "Numbats are striped.\n"
	files["other.mdx"] = "---\ntitle: Other\n---\nRead [the dingo handbook](/page).\n"
	files["docs.json"] = `{"navigation": {"groups": [{"group": "Endings", "pages": ["page", "other"]}]}}`
	update()
	for text, want := range map[string]string{"quokkas": "", "numbats": "page.mdx#here ", "wombat": "",
		"endings": "page.mdx#here ", "beginnings": ""} {
		if got := best(text); got != want {
			t.Errorf("after the update %q finds %q, want %q", text, got, want)
		}
	}
	delete(files, "snippets/part.mdx")
	update()
	if got := best("numbats"); got != "" {
		t.Errorf("after the part is gone: %q", got)
	}
}

// Indexes are opened before anybody asks, as many as stay open.
func TestIndexesAreOpenedAhead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openIn(t, dir)
	for n := range 3 {
		mustUpdate(t, l, api.Project{ID: api.ProjectID(fmt.Sprint("p", n))}, made(2, n))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for most, open := range map[int]int{2: 2, 5: 3} {
		l, err := Open(dir, Options{Log: quiet(), IdleAfter: -1, MaxOpen: most})
		if err != nil {
			t.Fatal(err)
		}
		l.Warm(t.Context())
		if n := l.Open(); n != open {
			t.Errorf("%d of 3 indexes are open, of at most %d", n, most)
		}
		l.Close()
	}
}
