// Package forgetest provides the contract of a code host as a test: whatever publishes for jobs, to whichever host,
// passes it.
package forgetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/internal/background"
)

// A Forge is what a job needs of a code host.
type Forge interface {
	Tip(ctx context.Context, p api.Project, branch string) (forge.Tip, error)
	Tree(ctx context.Context, p api.Project, commit string) (*forge.Tree, error)
	Publish(ctx context.Context, p forge.Publication) (forge.Published, error)
	Access(ctx context.Context, p api.Project) error
}

// A Host is a fresh repository on a code host with the files of Files on its documentation's branch.
type Host struct {
	Forge   Forge
	Project api.Project
	// Requests counts the pull requests, in whatever state, of a branch; nil if the host has none.
	Requests func(t *testing.T, branch string) int
	// Commits lists a branch's commits as the host itself has them, newest first; none if it has no such branch.
	Commits func(t *testing.T, branch string) []string
	// Merge merges a branch into the documentation's one, as a maintainer does.
	Merge func(t *testing.T, branch string)
	// Close closes a branch's pull request; nil if the host has none.
	Close func(t *testing.T, branch string)
	// Push adds a commit of somebody else to a branch.
	Push func(t *testing.T, branch, path, content string)
	// Narrow takes from the project's credentials the right to write, though their owner has it; nil if the
	// host has no credentials.
	Narrow func(t *testing.T)
	// Rename gives the repository another name, to which those who ask for the old one are sent; nil if it cannot.
	Rename func(t *testing.T)
}

// Files are what a Host starts with.
var Files = map[string]string{
	"index.md":       "# Welcome\n\nThe first page.\n",
	"guide/setup.md": "# Set up\n\nRun it.\n",
	"guide/use.md":   "# Use\n\nUse it.\n",
	"docs.json":      "{\"name\": \"Test\"}\n",
}

var at = time.Date(2026, 11, 3, 10, 20, 30, 0, time.UTC)

// Publication is one that edits the setup page on top of a tip.
func Publication(p api.Project, tip forge.Tip, content string) forge.Publication {
	return forge.Publication{
		Project: p, Job: "job_1", Branch: tip.Branch, Base: tip.Base, Parent: tip.Commit, At: at,
		Changes: []forge.Change{{Path: "guide/setup.md", Content: []byte(content)}},
		Message: "docs: explain the setup", Title: "Explain the setup", Body: "What was asked.",
	}
}

// Test runs the contract; open makes a fresh host for each part.
func Test(t *testing.T, open func(t *testing.T) Host) {
	parts := []struct {
		name string
		run  func(*testing.T, Host)
	}{
		{"TipOfANewBranchIsTheBase", tipOfNew},
		{"PublishMakesOneCommitAndOneRequest", publishOnce},
		{"RepeatChangesNothing", repeat},
		{"FollowUpAddsToTheSameRequest", followUp},
		{"OthersCommitsAreKept", othersCommits},
		{"MovedBranchIsRefused", movedBranch},
		{"BaseMayMoveMeanwhile", baseMoves},
		{"MergedBranchStartsAnew", merged},
		{"ClosedRequestStartsAnew", closed},
		{"HostileEditsAreRefused", hostile},
		{"NothingToChange", nothing},
		{"ManyBranchesAtOnce", many},
		{"SameBranchAtOnce", sameAtOnce},
		{"AnEqualOpenRequestIsJoined", equal},
		{"EqualChangesAtOnceOpenOneRequest", equalAtOnce},
		{"DeletedAndMovedFiles", deleted},
		{"CredentialsThatMayNotWriteAreRefusedBeforehand", narrow},
		{"ARenamedRepositoryKeepsItsRequests", renamed},
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) { part.run(t, open(t)) })
	}
}

func (h Host) tip(t *testing.T, branch string) forge.Tip {
	t.Helper()
	tip, err := h.Forge.Tip(t.Context(), h.Project, branch)
	if err != nil {
		t.Fatalf("tip of %s: %v", branch, err)
	}
	return tip
}

func (h Host) publish(t *testing.T, p forge.Publication) forge.Published {
	t.Helper()
	done, err := h.Forge.Publish(t.Context(), p)
	if err != nil {
		t.Fatalf("publish %s: %v", p.Branch, err)
	}
	return done
}

func (h Host) read(t *testing.T, commit, path string) string {
	t.Helper()
	tree, err := h.Forge.Tree(t.Context(), h.Project, commit)
	if err != nil {
		t.Fatalf("tree of %s: %v", commit, err)
	}
	data, err := tree.Read(t.Context(), path)
	if errors.Is(err, fs.ErrNotExist) {
		return "(none)"
	}
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	return string(data)
}

func (h Host) requests(t *testing.T, branch string, want int) {
	t.Helper()
	if h.Requests == nil {
		return
	}
	if got := h.Requests(t, branch); got != want {
		t.Errorf("%s has %d pull requests, want %d", branch, got, want)
	}
}

func tipOfNew(t *testing.T, h Host) {
	tip := h.tip(t, "docent/job_1")
	if tip.Branch != "docent/job_1" || tip.Base == "" || tip.Base == tip.Branch || tip.Pull != "" {
		t.Errorf("tip = %+v", tip)
	}
	if base := h.Commits(t, tip.Base); len(base) == 0 || base[0] != tip.Commit {
		t.Errorf("tip is at %s, the base at %v", tip.Commit, base)
	}
	tree, err := h.Forge.Tree(t.Context(), h.Project, tip.Commit)
	if err != nil {
		t.Fatal(err)
	}
	if tree.Commit() != tip.Commit {
		t.Errorf("the tree of %s says %s", tip.Commit, tree.Commit())
	}
	files, err := tree.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(Files) {
		t.Errorf("%d files, want %d", len(files), len(Files))
	}
	for _, f := range files {
		if want := Files[f.Path]; h.read(t, tip.Commit, f.Path) != want || f.Size != int64(len(want)) {
			t.Errorf("%s: %d bytes %q", f.Path, f.Size, h.read(t, tip.Commit, f.Path))
		}
	}
	for _, path := range []string{"no.md", "guide", "guide/", "../index.md", "/index.md", ".git/config", ""} {
		if _, err := tree.Read(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading %q: %v, want fs.ErrNotExist", path, err)
		}
	}
	if h.Commits(t, tip.Branch) != nil {
		t.Error("asking for a branch has made it")
	}
}

func publishOnce(t *testing.T, h Host) {
	tip := h.tip(t, "docent/job_1")
	done := h.publish(t, Publication(h.Project, tip, "# Set up\n\nNew.\n"))
	if !done.New || done.Commit == "" || done.Commit == tip.Commit {
		t.Errorf("published = %+v", done)
	}
	got := h.Commits(t, tip.Branch)
	if len(got) < 2 || got[0] != done.Commit || got[1] != tip.Commit {
		t.Errorf("the branch has %v, want %s on %s", got, done.Commit, tip.Commit)
	}
	h.requests(t, tip.Branch, 1)
	if text := h.read(t, done.Commit, "guide/setup.md"); text != "# Set up\n\nNew.\n" {
		t.Errorf("the page is %q", text)
	}
	for _, other := range []string{"index.md", "guide/use.md", "docs.json"} {
		if h.read(t, done.Commit, other) != Files[other] {
			t.Errorf("%s changed too", other)
		}
	}
	if base := h.Commits(t, tip.Base); base[0] != tip.Commit {
		t.Error("the base moved")
	}
	if now := h.tip(t, tip.Branch); now.Commit != done.Commit || now.Pull != api.PullOpen {
		t.Errorf("tip afterwards = %+v", now)
	}
}

func repeat(t *testing.T, h Host) {
	p := Publication(h.Project, h.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
	first := h.publish(t, p)
	before := len(h.Commits(t, p.Branch))
	for range 3 {
		again := h.publish(t, p)
		if again.Commit != first.Commit || again.Link != first.Link || again.Number != first.Number || again.New {
			t.Errorf("repeat = %+v, first = %+v", again, first)
		}
	}
	h.requests(t, p.Branch, 1)
	if len(h.Commits(t, p.Branch)) != before {
		t.Error("a repeat has added a commit")
	}
}

func followUp(t *testing.T, h Host) {
	p := Publication(h.Project, h.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
	first := h.publish(t, p)
	tip := h.tip(t, p.Branch)
	if tip.Fork != p.Parent || p.Parent == tip.Commit {
		t.Errorf("the branch begins at %s, want %s", tip.Fork, p.Parent)
	}
	next := Publication(h.Project, tip, "# Set up\n\nNewer.\n")
	next.Title, next.At = "Another title", at.Add(time.Minute)
	second := h.publish(t, next)
	if second.Link != first.Link || second.Number != first.Number || second.New || second.Commit == first.Commit {
		t.Errorf("second = %+v, first = %+v", second, first)
	}
	h.requests(t, p.Branch, 1)
	got := h.Commits(t, p.Branch)
	if len(got) < 3 || got[0] != second.Commit || got[1] != first.Commit {
		t.Errorf("the branch has %v", got)
	}
	// The first one asked again, late: it took effect long ago.
	if late := h.publish(t, p); late.Commit != first.Commit || late.Link != first.Link {
		t.Errorf("late repeat = %+v", late)
	}
	if now := h.Commits(t, p.Branch); now[0] != second.Commit {
		t.Error("a late repeat moved the branch")
	}
}

func narrow(t *testing.T, h Host) {
	h.tip(t, "docent/job_1")
	if err := h.Forge.Access(t.Context(), h.Project); err != nil {
		t.Errorf("access: %v", err)
	}
	if h.Narrow == nil {
		return
	}
	h.Narrow(t)
	if err := h.Forge.Access(t.Context(), h.Project); !errors.Is(err, forge.ErrMisconfigured) {
		t.Errorf("access without the right to write: %v", err)
	}
}

// renamed: no branch is left without a pull request, and no pull request is opened twice.
func renamed(t *testing.T, h Host) {
	first := Publication(h.Project, h.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
	done := h.publish(t, first)
	if h.Rename == nil {
		return // the host has no names
	}
	h.Rename(t)
	next := Publication(h.Project, h.tip(t, first.Branch), "# Set up\n\nNewer.\n")
	next.At = at.Add(time.Minute)
	if again := h.publish(t, next); again.Number != done.Number || again.New {
		t.Errorf("after the renaming %+v, before %+v", again, done)
	}
	h.requests(t, first.Branch, 1)
	other := Publication(h.Project, h.tip(t, "docent/job_2"), "# Set up\n\nOther.\n")
	if made := h.publish(t, other); !made.New {
		t.Errorf("a new branch: %+v", made)
	}
	h.requests(t, other.Branch, 1)
}

func othersCommits(t *testing.T, h Host) {
	p := Publication(h.Project, h.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
	h.publish(t, p)
	h.Push(t, p.Branch, "guide/use.md", "# Use\n\nBy hand.\n")
	tip := h.tip(t, p.Branch)
	done := h.publish(t, Publication(h.Project, tip, "# Set up\n\nNewer.\n"))
	if h.read(t, done.Commit, "guide/use.md") != "# Use\n\nBy hand.\n" ||
		h.read(t, done.Commit, "guide/setup.md") != "# Set up\n\nNewer.\n" {
		t.Error("the other commit is lost")
	}
	h.requests(t, p.Branch, 1)
}

func movedBranch(t *testing.T, h Host) {
	p := Publication(h.Project, h.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
	h.publish(t, p)
	stale := Publication(h.Project, h.tip(t, p.Branch), "# Set up\n\nStale.\n")
	h.Push(t, p.Branch, "guide/use.md", "# Use\n\nBy hand.\n")
	before := h.Commits(t, p.Branch)
	if _, err := h.Forge.Publish(t.Context(), stale); !errors.Is(err, forge.ErrMoved) {
		t.Errorf("publishing on a moved branch: %v, want ErrMoved", err)
	}
	if now := h.Commits(t, p.Branch); now[0] != before[0] {
		t.Error("the branch moved all the same")
	}
	// A new branch under a name that is taken is a moved branch too.
	taken := Publication(h.Project, h.tip(t, "docent/other"), "# Set up\n\nStale.\n")
	taken.Branch = p.Branch
	if _, err := h.Forge.Publish(t.Context(), taken); !errors.Is(err, forge.ErrMoved) {
		t.Errorf("publishing over another's branch: %v, want ErrMoved", err)
	}
}

func baseMoves(t *testing.T, h Host) {
	tip := h.tip(t, "docent/job_1")
	h.Push(t, tip.Base, "index.md", "# Welcome\n\nChanged meanwhile.\n")
	moved := h.tip(t, "docent/job_2")
	if moved.Commit == tip.Commit {
		t.Error("the base's new commit is not seen")
	}
	done := h.publish(t, Publication(h.Project, tip, "# Set up\n\nNew.\n"))
	h.Merge(t, tip.Branch)
	after := h.tip(t, "docent/job_3")
	if h.read(t, after.Commit, "index.md") != "# Welcome\n\nChanged meanwhile.\n" ||
		h.read(t, after.Commit, "guide/setup.md") != "# Set up\n\nNew.\n" {
		t.Error("the merge lost one side")
	}
	if again := h.publish(t, Publication(h.Project, tip, "# Set up\n\nNew.\n")); again.Commit != done.Commit || again.New {
		t.Errorf("repeat after the merge = %+v, want %+v", again, done)
	}
	h.requests(t, tip.Branch, 1)
}

func merged(t *testing.T, h Host) {
	p := Publication(h.Project, h.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
	first := h.publish(t, p)
	h.Merge(t, p.Branch)
	tip := h.tip(t, p.Branch)
	if tip.Pull != api.PullMerged {
		t.Fatalf("tip = %+v, want a merged pull request", tip)
	}
	if h.read(t, tip.Commit, "guide/setup.md") != "# Set up\n\nNew.\n" {
		t.Error("the base does not have the edit")
	}
	next := Publication(h.Project, tip, "# Set up\n\nNewer.\n")
	next.Branch = "docent/job_1-2"
	second := h.publish(t, next)
	if !second.New || second.Commit == first.Commit {
		t.Errorf("second = %+v", second)
	}
	h.requests(t, p.Branch, 1)
	h.requests(t, next.Branch, 1)
}

func closed(t *testing.T, h Host) {
	if h.Close == nil {
		t.Skip("this host has no pull requests to close")
	}
	p := Publication(h.Project, h.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
	h.publish(t, p)
	onTop := Publication(h.Project, h.tip(t, p.Branch), "# Set up\n\nNewer.\n")
	h.Close(t, p.Branch)
	tip := h.tip(t, p.Branch)
	if tip.Pull != api.PullClosed || h.read(t, tip.Commit, "guide/setup.md") != Files["guide/setup.md"] {
		t.Errorf("tip = %+v", tip)
	}
	if _, err := h.Forge.Publish(t.Context(), onTop); !errors.Is(err, forge.ErrMoved) {
		t.Errorf("publishing to a closed pull request: %v, want ErrMoved", err)
	}
	next := Publication(h.Project, tip, "# Set up\n\nNewer.\n")
	next.Branch = "docent/job_1-2"
	if done := h.publish(t, next); !done.New {
		t.Errorf("published = %+v", done)
	}
}

func hostile(t *testing.T, h Host) {
	tip := h.tip(t, "docent/job_1")
	refused := func(name string, change func(*forge.Publication)) {
		t.Helper()
		p := Publication(h.Project, tip, "x\n")
		change(&p)
		if _, err := h.Forge.Publish(t.Context(), p); !errors.Is(err, forge.ErrRefused) {
			t.Errorf("%s: %v, want ErrRefused", name, err)
		}
	}
	for _, path := range []string{
		"../out.md", "a/../../out.md", "/etc/passwd", "", ".", "..", "a//b.md", "a/", "./a.md", "a/./b.md",
		".git/config", "sub/.git/hooks/x", ".GIT/config", ".git./x", ".git /x", "git~1/x", ".git::$INDEX_ALLOCATION/x",
		"a\\b.md", "a\x00b.md", "a\nb.md", "a\x7fb.md", "\xff.md", "a\u202eb.md", ".g\u200cit/config",
		"INDEX.md", "Guide/new.md", "index.md/below.md", "guide",
	} {
		refused(fmt.Sprintf("path %q", path), func(p *forge.Publication) { p.Changes[0].Path = path })
		if path != "guide" && path != "INDEX.md" && path != "Guide/new.md" {
			refused(fmt.Sprintf("deleting %q", path),
				func(p *forge.Publication) { p.Changes = []forge.Change{{Path: path, Delete: true}} })
		}
	}
	refused("the same file twice", func(p *forge.Publication) { p.Changes = append(p.Changes, p.Changes[0]) })
	refused("deleting what is not there",
		func(p *forge.Publication) { p.Changes = []forge.Change{{Path: "no.md", Delete: true}} })
	refused("two names that differ in case", func(p *forge.Publication) {
		p.Changes = []forge.Change{{Path: "new.md", Content: []byte("a")}, {Path: "New.md", Content: []byte("b")}}
	})
	refused("outside the documentation folder",
		func(p *forge.Publication) { p.Project.DocsDir = "guide"; p.Changes[0].Path = "index.md" })
	refused("beside the documentation folder",
		func(p *forge.Publication) { p.Project.DocsDir = "guide"; p.Changes[0].Path = "guide2/index.md" })
	for _, branch := range []string{"", "-x", "a..b", "a b", "a\nb", "x.lock", "a/.b", "/a", "a/", "HEAD", "a~1", "a^",
		"a:b", "a?", "a*", "a[", "a\\b", "@", "a@{1}", "a\u202eb", tip.Base} {
		refused(fmt.Sprintf("branch %q", branch), func(p *forge.Publication) { p.Branch = branch })
	}
	if h.Commits(t, tip.Branch) != nil {
		t.Error("a refused publication left a branch")
	}
	h.requests(t, tip.Branch, 0)
}

func nothing(t *testing.T, h Host) {
	tip := h.tip(t, "docent/job_1")
	_, err := h.Forge.Publish(t.Context(), Publication(h.Project, tip, Files["guide/setup.md"]))
	if !errors.Is(err, forge.ErrNoChange) {
		t.Errorf("publishing nothing: %v, want ErrNoChange", err)
	}
	if h.Commits(t, tip.Branch) != nil {
		t.Error("a branch without a change")
	}
	h.requests(t, tip.Branch, 0)
}

func many(t *testing.T, h Host) {
	const n = 12
	var wg background.Work
	done := make([]forge.Published, n)
	errs := make([]error, n)
	tips := make([]forge.Tip, n)
	for i := range n {
		wg.Go("forge/forgetest.many", func() {
			tips[i], errs[i] = h.Forge.Tip(t.Context(), h.Project, fmt.Sprintf("docent/job_%d", i))
			if errs[i] != nil {
				return
			}
			p := Publication(h.Project, tips[i], fmt.Sprintf("# Set up\n\nNumber %d.\n", i))
			done[i], errs[i] = h.Forge.Publish(t.Context(), p)
		})
	}
	wg.Wait()
	numbers := map[int]bool{}
	for i := range n {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if got := h.Commits(t, tips[i].Branch); len(got) < 2 || got[0] != done[i].Commit || got[1] != tips[i].Commit {
			t.Errorf("%s has %v", tips[i].Branch, got)
		}
		if h.Requests != nil && (numbers[done[i].Number] || done[i].Number == 0) {
			t.Errorf("pull request number %d twice", done[i].Number)
		}
		numbers[done[i].Number] = true
		h.requests(t, tips[i].Branch, 1)
	}
}

func sameAtOnce(t *testing.T, h Host) {
	p := Publication(h.Project, h.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
	const n = 6
	var wg background.Work
	done := make([]forge.Published, n)
	errs := make([]error, n)
	for i := range n {
		wg.Go("forge/forgetest.sameAtOnce", func() { done[i], errs[i] = h.Forge.Publish(t.Context(), p) })
	}
	wg.Wait()
	opened := 0
	for i := range n {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if done[i].Commit != done[0].Commit || done[i].Link != done[0].Link {
			t.Errorf("published %+v and %+v", done[i], done[0])
		}
		if done[i].New {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("%d of them opened it, want 1", opened)
	}
	h.requests(t, p.Branch, 1)
}

func deleted(t *testing.T, h Host) {
	tip := h.tip(t, "docent/job_1")
	p := Publication(h.Project, tip, "")
	p.Changes = []forge.Change{
		{Path: "guide/setup.md", Delete: true},
		{Path: "guide/use.md", Delete: true},
		{Path: "start/setup.md", Content: []byte(Files["guide/setup.md"])},
		{Path: "index.md", Delete: true},
		{Path: "Index.md", Content: []byte(Files["index.md"])}, // another spelling, once the first is gone
		{Path: "guide", Content: []byte("a file where a folder was\n")},
	}
	done := h.publish(t, p)
	tree, err := h.Forge.Tree(t.Context(), h.Project, done.Commit)
	if err != nil {
		t.Fatal(err)
	}
	files, err := tree.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Path)
	}
	if want := "[Index.md docs.json guide start/setup.md]"; fmt.Sprint(got) != want {
		t.Errorf("files = %v, want %s", got, want)
	}
}
