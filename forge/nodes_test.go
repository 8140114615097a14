package forge_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/forge/shared"
	"docent/persistence/catalog/catalogtest"
)

// database opens what nodes share, as the server does: in the catalog's database, without prepared statements.
func database(t testing.TB, dsn string) (*shared.Store, *sql.DB) {
	t.Helper()
	db, err := sql.Open("pgx", dsn+"&default_query_exec_mode=exec")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	store, err := shared.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return store, db
}

// A cluster is several nodes with a data directory each, on one database.
type cluster struct {
	project api.Project
	pulls   *forgetest.Pulls
	store   *shared.Store
	db      *sql.DB
	nodes   []*rig
	next    atomic.Int32
}

func newCluster(t *testing.T, p api.Project, nodes int) *cluster {
	t.Helper()
	c := &cluster{project: p, pulls: &forgetest.Pulls{}}
	c.store, c.db = database(t, catalogtest.Postgres(t))
	for range nodes {
		c.nodes = append(c.nodes, c.node(t, forge.Options{}))
	}
	return c
}

// node starts one more node with an empty data directory.
func (c *cluster) node(t *testing.T, o forge.Options) *rig {
	t.Helper()
	return c.nodeOn(t, t.TempDir(), o)
}

func (c *cluster) nodeOn(t *testing.T, dir string, o forge.Options) *rig {
	t.Helper()
	o.Shared = c.store
	r := open(t, dir, c.project, c.pulls, o)
	t.Cleanup(func() { r.Shutdown(context.Background()) })
	return r
}

// any is another node each time, as behind a load balancer.
func (c *cluster) any() *rig { return c.nodes[int(c.next.Add(1))%len(c.nodes)] }

func (c *cluster) Tip(ctx context.Context, p api.Project, branch string) (forge.Tip, error) {
	return c.any().Tip(ctx, p, branch)
}

func (c *cluster) Tree(ctx context.Context, p api.Project, commit string) (*forge.Tree, error) {
	return c.any().Tree(ctx, p, commit)
}

func (c *cluster) Publish(ctx context.Context, p forge.Publication) (forge.Published, error) {
	return c.any().Publish(ctx, p)
}

func (c *cluster) Access(ctx context.Context, p api.Project) error { return c.any().Access(ctx, p) }

func (c *cluster) host(t *testing.T) forgetest.Host {
	h := c.nodes[0].host(t)
	h.Forge = c
	// A node that was never there before has every commit that counts.
	h.Commits = func(t *testing.T, branch string) []string {
		fresh := c.node(t, forge.Options{})
		fresh.sync(t)
		fsck(t, fresh.repository())
		return log(t, fresh.repository(), branch)
	}
	h.Merge = func(t *testing.T, branch string) {
		t.Helper()
		if _, err := c.any().Merge(t.Context(), c.any().pullOf(t, branch).ID); err != nil {
			t.Fatal(err)
		}
	}
	h.Close = func(t *testing.T, branch string) {
		t.Helper()
		if _, err := c.any().Hub.Close(t.Context(), c.any().pullOf(t, branch).ID); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// byHand puts a page on a branch at a node, as a person does who works on it.
func (c *cluster) byHand(t *testing.T, branch, path, content string) {
	t.Helper()
	n := c.any()
	p := forgetest.Publication(c.project, n.tip(t, branch), "")
	p.Message, p.Changes = "by hand", []forge.Change{put(path, content)}
	if _, err := n.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func TestBuiltinHostOfSeveralNodes(t *testing.T) {
	t.Run("folder", func(t *testing.T) {
		forgetest.Test(t, func(t *testing.T) forgetest.Host {
			folder := t.TempDir()
			write(t, folder, forgetest.Files)
			c := newCluster(t, project(folder), 3)
			h := c.host(t)
			h.Push = func(t *testing.T, branch, path, content string) {
				t.Helper()
				if branch == "main" {
					write(t, folder, map[string]string{path: content})
					return
				}
				c.byHand(t, branch, path, content)
			}
			return h
		})
	})
	t.Run("repository", func(t *testing.T) {
		forgetest.Test(t, func(t *testing.T) forgetest.Host {
			bare := bareSource(t)
			c := newCluster(t, project(bare), 2)
			h := c.host(t)
			h.Push = func(t *testing.T, branch, path, content string) {
				t.Helper()
				if branch == "main" {
					pushTo(t, bare, branch, path, content)
					return
				}
				c.byHand(t, branch, path, content)
			}
			return h
		})
	})
}

// Many nodes publish and merge at the same time: every publication that was acknowledged is in the documentation.
func TestNodesThatPublishAndMergeAtOnceLoseNothing(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	c := newCluster(t, project(folder), 3)
	const jobs = 12
	var work sync.WaitGroup
	for i := range jobs {
		work.Go(func() {
			branch, page := fmt.Sprintf("docent/job-%d", i), fmt.Sprintf("page-%d.md", i)
			n := c.nodes[i%3]
			tip, err := n.Tip(t.Context(), c.project, branch)
			if err != nil {
				t.Error(err)
				return
			}
			p := forgetest.Publication(c.project, tip, "")
			p.Changes = []forge.Change{put(page, page)}
			// Two nodes that carry out the same instruction, as when one was given up and lives on.
			var twice [2]forge.Published
			var both sync.WaitGroup
			for k := range twice {
				both.Go(func() {
					var err error
					if twice[k], err = c.nodes[(i+k)%3].Publish(t.Context(), p); err != nil {
						t.Errorf("publish %s: %v", branch, err)
					}
				})
			}
			both.Wait()
			if twice[0].Commit != twice[1].Commit || twice[0].Number != twice[1].Number {
				t.Errorf("the same publication on two nodes: %+v and %+v", twice[0], twice[1])
			}
			id := strings.TrimPrefix(twice[0].Link, "/pulls/")
			for k := range twice {
				both.Go(func() {
					merged, err := c.nodes[(i+k+1)%3].Merge(t.Context(), id)
					if err != nil || merged.State != api.PullMerged {
						t.Errorf("merge %s: %v, %v", branch, merged.State, err)
					}
				})
			}
			both.Wait()
		})
	}
	work.Wait()
	fresh := c.node(t, forge.Options{})
	tip, _ := fresh.sync(t)
	fsck(t, fresh.repository())
	files, here := fresh.files(t, tip.Commit), contents(t, folder)
	for i := range jobs {
		page := fmt.Sprintf("page-%d.md", i)
		if files[page] != page || here[page] != page {
			t.Errorf("%s is %q in the repository and %q in the folder", page, files[page], here[page])
		}
	}
	merges := strings.Count(git(t, fresh.repository(), "log", "--merges", "--format=%s", "main"), "Merge pull request")
	if merges != jobs {
		t.Errorf("%d merges of %d pull requests", merges, jobs)
	}
	for _, n := range c.nodes {
		if again := n.tip(t, "main"); again.Commit != tip.Commit {
			t.Errorf("a node stands at %s, another at %s", again.Commit, tip.Commit)
		}
	}
}

// A node dies after each step of a publication and of a merge; another one carries on with what is in the database.
func TestAnotherNodeCompletesWhatADeadOneHasBegun(t *testing.T) {
	for dies := 1; ; dies++ {
		folder := t.TempDir()
		write(t, folder, forgetest.Files)
		c := newCluster(t, project(folder), 1)
		died := errors.New("the node died")
		steps, last := 0, ""
		dying := c.node(t, forge.Failing(forge.Options{}, func(step string) error {
			if steps++; steps >= dies {
				last = step
				return died
			}
			return nil
		}))
		attempt := func() error {
			tip, err := dying.Tip(t.Context(), c.project, "docent/a")
			if err != nil {
				return err
			}
			p := forgetest.Publication(c.project, tip, "# Set up\n\nAnew.\n")
			done, err := dying.Publish(t.Context(), p)
			if err != nil {
				return err
			}
			_, err = dying.Merge(t.Context(), strings.TrimPrefix(done.Link, "/pulls/"))
			return err
		}
		err := attempt()
		if err == nil {
			if dies < 8 {
				t.Fatalf("there are only %d steps", dies-1)
			}
			return
		}
		if !errors.Is(err, died) {
			t.Fatalf("step %d: %v", dies, err)
		}
		other := c.nodes[0]
		tip := other.tip(t, "docent/a")
		if tip.Pull != api.PullMerged {
			base := other.tip(t, "main")
			p := forgetest.Publication(c.project, forge.Tip{Branch: "docent/a", Base: "main", Commit: base.Commit},
				"# Set up\n\nAnew.\n")
			done, err := other.Publish(t.Context(), p)
			if errors.Is(err, forge.ErrNoChange) { // it was merged, and not yet recorded
				done.Link = "/pulls/" + other.pullOf(t, "docent/a").ID
			} else if err != nil {
				t.Fatalf("after %q: %v", last, err)
			}
			if _, err := other.Merge(t.Context(), strings.TrimPrefix(done.Link, "/pulls/")); err != nil {
				t.Fatalf("after %q: %v", last, err)
			}
		}
		fresh := c.node(t, forge.Options{})
		head, _ := fresh.sync(t)
		fsck(t, fresh.repository())
		const want = "# Set up\n\nAnew.\n"
		if got := fresh.files(t, head.Commit)["guide/setup.md"]; got != want {
			t.Errorf("after %q: the page is %q", last, got)
		}
		if got := contents(t, folder)["guide/setup.md"]; got != want {
			t.Errorf("after %q: the folder's page is %q", last, got)
		}
		if n := len(log(t, fresh.repository(), "docent/a")); n != 2 {
			t.Errorf("after %q: %d commits on the branch", last, n)
		}
		if n := strings.Count(git(t, fresh.repository(), "log", "--merges", "--format=%s", "main"), "Merge"); n != 1 {
			t.Errorf("after %q: %d merges", last, n)
		}
	}
}

// Somebody closes a pull request at another node while a job adds to its branch: it stays closed, and there is no
// second one.
func TestAPullRequestThatIsClosedDuringAPublicationStaysClosed(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	c := newCluster(t, project(folder), 1)
	closing := func() {}
	publishing := c.node(t, forge.Failing(forge.Options{}, func(step string) error {
		if step == "shared" {
			closing()
		}
		return nil
	}))
	publishing.publish(t, "docent/a", put("a.md", "one"))
	id := publishing.pullOf(t, "docent/a").ID
	closed := make(chan error, 1)
	closing = func() {
		closing = func() {}
		go func() {
			_, err := c.nodes[0].Hub.Close(t.Context(), id)
			closed <- err
		}()
		// It has closed the pull request, or waits for the turn.
		for waits := false; !waits && len(closed) == 0; {
			if err := c.db.QueryRow("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)").Scan(&waits); err != nil {
				t.Error(err)
				return
			}
		}
	}
	publishing.publish(t, "docent/a", put("b.md", "two"))
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	pulls, err := c.pulls.Pulls(t.Context(), c.project.ID, "")
	if err != nil || len(pulls) == 0 {
		t.Fatal(pulls, err)
	}
	for _, pull := range pulls {
		if pull.ID != id || pull.State != api.PullClosed {
			t.Errorf("pull request %s is %s; %s was closed", pull.ID, pull.State, id)
		}
	}
}

// Pages of pull requests, merged, closed and open ones, on a node that had no part in them.
func TestANewNodeShowsAllPullRequests(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	c := newCluster(t, project(folder), 2)
	a, b := c.nodes[0], c.nodes[1]
	ids := map[string]string{}
	for _, branch := range []string{"docent/open", "docent/merged", "docent/closed"} {
		a.publish(t, branch, put(branch+".md", branch))
		ids[branch] = a.pullOf(t, branch).ID
	}
	if _, err := b.Merge(t.Context(), ids["docent/merged"]); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Hub.Close(t.Context(), ids["docent/closed"]); err != nil {
		t.Fatal(err)
	}
	fresh := c.node(t, forge.Options{})
	for branch, id := range ids {
		for _, n := range []*rig{a, fresh} {
			d, err := n.Diff(t.Context(), id)
			if err != nil {
				t.Fatalf("%s: %v", branch, err)
			}
			if len(d.Files) != 1 || d.Files[0].Path != branch+".md" {
				t.Errorf("%s changes %+v", branch, d.Files)
			}
			list, err := n.Commits(t.Context(), id)
			if err != nil || len(list) != 1 {
				t.Errorf("%s: %d commits, %v", branch, len(list), err)
			}
		}
	}
	// The merge button of a node that has seen nothing yet.
	last := c.node(t, forge.Options{})
	if _, err := last.Merge(t.Context(), ids["docent/open"]); err != nil {
		t.Fatal(err)
	}
	if tip := a.tip(t, "docent/open"); tip.Pull != api.PullMerged {
		t.Errorf("the first node says %q", tip.Pull)
	}
}

// What a crash, a disk or an operator does to a copy costs a fetch and nothing else.
func TestACopyThatIsLostOrDamagedIsBroughtAgain(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	for name, harm := range map[string]func(t *testing.T, dir string){
		"removed": func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		},
		"objects gone": func(t *testing.T, dir string) {
			for _, sub := range []string{"objects"} {
				if err := os.RemoveAll(filepath.Join(dir, sub)); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Join(dir, sub, "pack"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
		},
		"mark empty": func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "docent-copy"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, project(folder), 1)
			dir := t.TempDir()
			n := c.nodeOn(t, dir, forge.Options{})
			before := n.publish(t, "docent/a", put("a.md", "a"))
			if err := n.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			harm(t, n.repository())
			c.nodes[0].publish(t, "docent/b", put("b.md", "b")) // meanwhile
			n = c.nodeOn(t, dir, forge.Options{})
			if tip := n.tip(t, "docent/a"); tip.Commit != before.Commit {
				t.Errorf("the branch is at %s, was at %s", tip.Commit, before.Commit)
			}
			if tip := n.tip(t, "docent/b"); n.files(t, tip.Commit)["b.md"] != "b" {
				t.Error("what another node has published is not there")
			}
			fsck(t, n.repository())
		})
	}
}

// A repository of the time when one node was alone moves into the database and back, and none of it is left out.
func TestRepositoriesMoveIntoTheDatabaseAndBack(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	p := project(folder)
	pulls := &forgetest.Pulls{}
	alone := open(t, t.TempDir(), p, pulls, forge.Options{})
	alone.publish(t, "docent/open", put("open.md", "open"))
	alone.publish(t, "docent/merged", put("merged.md", "merged"))
	if _, err := alone.Merge(t.Context(), alone.pullOf(t, "docent/merged").ID); err != nil {
		t.Fatal(err)
	}
	if err := alone.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	refs := func(dir string) string { return git(t, dir, "for-each-ref", "--format=%(refname) %(objectname)") }
	want := refs(alone.repository())
	// A node that starts on the folder takes it in, before another one can begin a repository of its own.
	taken := &cluster{project: p, pulls: pulls}
	taken.store, _ = database(t, catalogtest.Postgres(t))
	copied := filepath.Join(t.TempDir(), "repos")
	if err := os.CopyFS(copied, os.DirFS(alone.dir)); err != nil {
		t.Fatal(err)
	}
	if err := taken.nodeOn(t, copied, forge.Options{}).TakeIn(t.Context(), []api.Project{p}); err != nil {
		t.Fatal(err)
	}
	second := taken.node(t, forge.Options{})
	second.sync(t)
	if got := refs(second.repository()); got != want {
		t.Errorf("taken in:\n%s\nand not\n%s", got, want)
	}
	// So does one that is asked for something before it has taken it in, and goes on with what it has.
	first := &cluster{project: p, pulls: pulls}
	first.store, _ = database(t, catalogtest.Postgres(t))
	served := filepath.Join(t.TempDir(), "repos")
	if err := os.CopyFS(served, os.DirFS(alone.dir)); err != nil {
		t.Fatal(err)
	}
	asked := first.nodeOn(t, served, forge.Options{})
	if d, err := asked.Diff(t.Context(), asked.pullOf(t, "docent/open").ID); err != nil || len(d.Files) != 1 {
		t.Errorf("a pull request of before changes %+v; %v", d.Files, err)
	}
	if got := refs(asked.repository()); got != want {
		t.Errorf("after the first request:\n%s\nand not\n%s", got, want)
	}
	store, _ := database(t, catalogtest.Postgres(t))
	hosted := api.Project{ID: "hosted", Domain: "h.example.org", Source: "https://example.org/x.git", Host: api.HostGitHub}
	for before := range 2 { // a second time nothing is left to do
		moved, err := forge.ToShared(t.Context(), alone.dir, []api.Project{p, hosted}, store, forge.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(moved) != 1 || moved[0].Project != p.ID || moved[0].References != 5 || moved[0].Before != (before == 1) {
			t.Errorf("moved %+v", moved)
		}
	}
	if got := refs(alone.repository()); got != want {
		t.Errorf("the repository was changed by copying: %s", got)
	}
	// It is served from there, also on the folder that it came from.
	c := &cluster{project: p, pulls: pulls, store: store}
	for _, n := range []*rig{c.node(t, forge.Options{}), c.nodeOn(t, alone.dir, forge.Options{})} {
		n.sync(t)
		if got := refs(n.repository()); got != want {
			t.Errorf("a node has\n%s\nand not\n%s", got, want)
		}
		if aside, _ := filepath.Glob(filepath.Join(n.dir, "*.damaged-*")); len(aside) > 0 {
			t.Errorf("put aside: %v", aside)
		}
		if err := n.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	back := t.TempDir()
	if moved, err := forge.FromShared(t.Context(), store, back, []api.Project{p, hosted}, forge.Options{}); err != nil ||
		len(moved) != 1 || moved[0].References != 5 {
		t.Fatalf("moved back %+v, %v", moved, err)
	}
	again := open(t, back, p, pulls, forge.Options{})
	if got := refs(again.repository()); got != want {
		t.Errorf("moved back:\n%s\nand not\n%s", got, want)
	}
	fsck(t, again.repository())
	again.publish(t, "docent/later", put("later.md", "later"))
	if err := again.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	// One that went on by itself does not replace what is there.
	if _, err := forge.ToShared(t.Context(), back, []api.Project{p}, store, forge.Options{}); !errors.Is(err, forge.ErrRefused) {
		t.Errorf("copying over another repository = %v", err)
	}
}

// Packs in the database do not grow in number without end, and a node that joins nothing misses nothing.
func TestPacksInTheDatabaseAreJoined(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	c := newCluster(t, project(folder), 2)
	c.nodes[1].sync(t)
	const publications = 80
	for i := range publications {
		c.nodes[0].publish(t, fmt.Sprintf("docent/%d", i), put(fmt.Sprintf("p%d.md", i), fmt.Sprint(i)))
	}
	if err := c.nodes[0].Shutdown(t.Context()); err != nil { // waits for what is joined
		t.Fatal(err)
	}
	if err := c.store.Join(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	var packs, orphans int
	if err := c.db.QueryRow("SELECT (SELECT count(*) FROM host_packs), (SELECT count(*) FROM host_parts WHERE pack NOT IN "+
		"(SELECT pack FROM host_packs))").Scan(&packs, &orphans); err != nil {
		t.Fatal(err)
	}
	if packs >= 32 || orphans != 0 {
		t.Errorf("%d packs, %d parts without one", packs, orphans)
	}
	for _, n := range []*rig{c.nodes[1], c.node(t, forge.Options{})} {
		tip := n.tip(t, fmt.Sprintf("docent/%d", publications-1))
		if n.files(t, tip.Commit)[fmt.Sprintf("p%d.md", publications-1)] == "" {
			t.Error("the last publication is not there")
		}
		fsck(t, n.repository())
		if got := len(strings.Fields(git(t, n.repository(), "for-each-ref", "--format=%(refname)"))); got != publications+1 {
			t.Errorf("%d references", got)
		}
	}
}

// Branches that hold the same files have objects in common, which come in several packs.
func TestAJoinedPackHoldsEachObjectOnce(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	c := newCluster(t, project(folder), 2)
	const publications = 40
	for i := range publications {
		c.nodes[i%2].publish(t, fmt.Sprintf("docent/%d", i), put("same/page.md", "The same on each branch.\n"),
			put(fmt.Sprintf("p%d.md", i), fmt.Sprint(i)))
	}
	for _, n := range c.nodes {
		if err := n.Shutdown(t.Context()); err != nil { // waits for what is joined
			t.Fatal(err)
		}
	}
	if err := c.store.Join(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	var most int
	if err := c.db.QueryRow("SELECT max(objects) FROM host_packs").Scan(&most); err != nil {
		t.Fatal(err)
	}
	if most < publications {
		t.Fatalf("no pack was joined: the largest has %d objects", most)
	}
	fresh := c.node(t, forge.Options{})
	fresh.sync(t)
	fsck(t, fresh.repository())
	dir := t.TempDir()
	if _, err := forge.FromShared(t.Context(), c.store, dir, []api.Project{c.project}, forge.Options{}); err != nil {
		t.Fatal(err)
	}
	fsck(t, filepath.Join(dir, "docs.git"))
}

// A pack of many parts is there whole or not at all.
func TestALargePackIsThereWholeOrNotAtAll(t *testing.T) {
	folder := t.TempDir()
	files := maps.Clone(forgetest.Files)
	noise := make([]byte, 5<<20)
	for i, x := 0, uint32(1); i < len(noise); i++ { // it does not deflate
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		noise[i] = byte(x)
	}
	files["large.bin"] = string(noise)
	write(t, folder, files)
	c := newCluster(t, project(folder), 1)
	count := func() (packs, parts int) {
		t.Helper()
		if err := c.db.QueryRow("SELECT (SELECT count(*) FROM host_packs), (SELECT count(*) FROM host_parts)").
			Scan(&packs, &parts); err != nil {
			t.Fatal(err)
		}
		return packs, parts
	}
	// The connection is lost when some parts were sent.
	if _, err := c.db.Exec("ALTER TABLE host_parts ADD CONSTRAINT few CHECK (part < 3)"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.nodes[0].Sync(t.Context(), c.project, nil); err == nil {
		t.Fatal("the import went through")
	}
	if packs, _ := count(); packs != 0 {
		t.Errorf("%d packs after an upload that broke off", packs)
	}
	if _, err := c.db.Exec("ALTER TABLE host_parts DROP CONSTRAINT few"); err != nil {
		t.Fatal(err)
	}
	tip, _ := c.nodes[0].sync(t)
	if packs, parts := count(); packs != 1 || parts < 5 {
		t.Errorf("%d packs of %d parts", packs, parts)
	}
	fresh := c.node(t, forge.Options{})
	fresh.sync(t)
	if fresh.files(t, tip.Commit)["large.bin"] != files["large.bin"] {
		t.Error("the large file is another one on a new node")
	}
}

// A node without the folder works with what the others have read of it, and says why it cannot merge.
func TestANodeWithoutTheFolderWorksWithWhatOthersRead(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "docs")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, folder, forgetest.Files)
	c := newCluster(t, project(folder), 2)
	a, b := c.nodes[0], c.nodes[1]
	tip, _ := a.sync(t)
	away := folder + "-away"
	if err := os.Rename(folder, away); err != nil {
		t.Fatal(err)
	}
	if got, _ := b.sync(t); got.Commit != tip.Commit {
		t.Errorf("the node without the folder is at %s, the other at %s", got.Commit, tip.Commit)
	}
	done := b.publish(t, "docent/a", put("a.md", "a"))
	_, err := b.Merge(t.Context(), strings.TrimPrefix(done.Link, "/pulls/"))
	if err == nil || !strings.Contains(err.Error(), "is not on this node") {
		t.Errorf("merged without the folder: %v", err)
	}
	if err := os.Rename(away, folder); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Merge(t.Context(), strings.TrimPrefix(done.Link, "/pulls/")); err != nil {
		t.Error(err)
	}
	if contents(t, folder)["a.md"] != "a" {
		t.Error("the merge is not in the folder")
	}
}

// A project that was removed and made again under its name has nothing of the one before, on any node.
func TestARemovedRepositoryIsGoneOnEveryNode(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	c := newCluster(t, project(folder), 2)
	a, b := c.nodes[0], c.nodes[1]
	a.publish(t, "docent/a", put("a.md", "a"))
	b.sync(t)
	if err := a.Discard(t.Context(), c.project.ID); err != nil {
		t.Fatal(err)
	}
	if c.node(t, forge.Options{}).Holds(c.project.ID) {
		t.Error("the repository is held after it was removed")
	}
	a.sync(t)
	b.sync(t)
	for _, n := range []*rig{a, b} {
		if got := git(t, n.repository(), "for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
			t.Errorf("references = %q", got)
		}
	}
	var rest []string
	for _, n := range []*rig{a, b} {
		rest = append(rest, log(t, n.repository(), "main")...)
	}
	slices.Sort(rest)
	if len(slices.Compact(rest)) != 1 {
		t.Errorf("the nodes have other histories: %v", rest)
	}
}

// Nodes that are started together find no table, and one of them makes them.
func TestNodesThatStartTogetherMakeTheTablesOnce(t *testing.T) {
	t.Parallel()
	dsn := catalogtest.Postgres(t)
	var starting sync.WaitGroup
	for range 8 {
		starting.Go(func() {
			db, err := sql.Open("pgx", dsn+"&default_query_exec_mode=exec")
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if _, err := shared.Open(context.Background(), db); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
}
