package kill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"docent/api"
	"docent/cmd/docent/server"
	"docent/forge/forgetest"
	"docent/tests/harness"
)

// A movingSource is a repository that people push to all the time: each job on it fetches, and kills come in the middle
// of that.
type movingSource struct {
	bare, work string
	random     *rand.Rand
	told       *witness
	pushed     chan struct{} // receives after a push
}

// agentsAddress is that of the commits of jobs.
const agentsAddress = "agent@docent.invalid"

// newMovingSource makes the repository; nil if git is not installed.
func newMovingSource(x *torture, commits ...map[string]string) *movingSource {
	x.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		return nil
	}
	dir := x.TempDir()
	m := &movingSource{bare: filepath.Join(dir, "moving.git"), work: filepath.Join(dir, "work"),
		random: rand.New(rand.NewPCG(x.seed, 5)), told: x.told, pushed: make(chan struct{}, 1)}
	forgetest.Bare(x, m.bare, commits...)
	forgetest.Git(x, dir, "clone", "-q", m.bare, m.work)
	return m
}

// move pushes commits until ctx ends.
func (m *movingSource) move(ctx context.Context) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(100+m.random.IntN(600)) * time.Millisecond): // the load is the test's random input
		}
		for i := range 1 + m.random.IntN(3) {
			page := filepath.Join(m.work, fmt.Sprintf("pushed/%d/page-%d.md", n%7, n))
			text := fmt.Sprintf("# Page %d\n\nIts version %d.\n", n, i)
			if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
				m.told.wrong("%v", err)
				return
			}
			if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
				m.told.wrong("%v", err)
				return
			}
			m.git("add", "-A")
			m.git("commit", "-q", "-m", fmt.Sprintf("Push %d.%d", n, i))
		}
		m.git("push", "-q", "origin", "HEAD:main")
		select {
		case m.pushed <- struct{}{}:
		default:
		}
	}
}

func (m *movingSource) git(args ...string) {
	cmd := exec.Command("git", append([]string{"-c", "user.name=A Person", "-c", "user.email=person@example.org"}, args...)...)
	cmd.Dir = m.work
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		m.told.wrong("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// moment waits for the moment of a kill. Some come right after a push, while jobs fetch what it brought.
func (x *torture) moment(random *rand.Rand) {
	wait := x.gap/10 + time.Duration(random.ExpFloat64()*float64(x.gap)*0.9)
	if x.source != nil && random.IntN(3) == 0 {
		select {
		case <-x.source.pushed:
		default:
		}
		time.Sleep(wait)
		select {
		case <-x.source.pushed:
		case <-time.After(x.gap): // the source does not move any more: the test goes on
		}
		wait = time.Duration(random.IntN(120)) * time.Millisecond
	}
	time.Sleep(wait) // the moment of the kill is the test's random input
}

// followed holds the repository of the moving source against the source: git finds it sound, its history is that of the
// source from the first fetch on, and every open pull request is shown and can be merged.
func (c *tortureCheck) followed(a *server.Server, x *torture) {
	hub := a.Stores.Hub
	p, err := a.Stores.Catalog.Project(c.Context(), api.ProjectID(x.moving.ID))
	if err != nil {
		c.Fatal(err)
	}
	if _, _, err := hub.Sync(c.Context(), p, nil); err != nil {
		c.Fatal(err)
	}
	broken, err := hub.Broken(c.Context(), p)
	if err != nil || len(broken) > 0 {
		c.wrong("%d pull requests lack their branch, %v", len(broken), err)
	}
	pulls, err := hub.Pulls(c.Context(), p.ID, api.PullOpen)
	if err != nil {
		c.Fatal(err)
	}
	for _, pull := range pulls {
		if d, err := hub.Diff(c.Context(), pull.ID); err != nil || len(d.Files) == 0 {
			c.wrong("pull request #%d shows %d files, %v", pull.Number, len(d.Files), err)
		}
	}
	dir := filepath.Join(c.data, "repos", x.moving.ID+".git")
	shallow, err := os.ReadFile(filepath.Join(dir, "shallow"))
	if err != nil {
		c.Fatal(err)
	}
	ends := strings.Fields(string(shallow))
	if len(ends) != 1 {
		c.wrong("the history ends at %d commits", len(ends))
		return
	}
	here := forgetest.Git(c, dir, "rev-list", "--count", "main")
	there := forgetest.Git(c, x.source.bare, "rev-list", "--count", "main", "^"+ends[0])
	if harness.Atoi(here) != harness.Atoi(there)+1 {
		c.wrong("main has %s commits, and the source has %s after the first of them", here, there)
	}
	for _, pull := range pulls {
		if merged, err := hub.Merge(c.Context(), pull.ID); err != nil || merged.State != api.PullMerged {
			c.wrong("pull request #%d cannot be merged: %v", pull.Number, err)
		}
	}
	for _, p := range []harness.Project{x.built, x.metered, x.moving} {
		forgetest.Fsck(c, filepath.Join(c.data, "repos", p.ID+".git"))
	}
	forgetest.Fsck(c, x.source.bare)
	c.Logf("%d pull requests on %s commits of a moving source", len(pulls), there)
}
