package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"docent/actors/thread"
	"docent/api"
	"docent/api/client"
	"docent/cmd/docent/config"
	"docent/cmd/docent/server"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

// An acceptedJob is a job that the server acknowledged, with what it was told to do.
type acceptedJob struct {
	id        api.JobID
	page      string // the page that its first instruction creates
	followUps int    // acknowledged; each appends one line
}

// A tally is what clients were told, over all lives of the server.
type tally struct {
	mu        sync.Mutex
	jobs      []*acceptedJob
	questions []harness.AcceptedQuestion
}

// createJobs creates jobs and sends them follow-ups until the server dies.
func (c *tally) createJobs(ctx context.Context, cl *client.Client, p harness.Project, page int, random *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("made/p%d-%d.md", page, n)
		prompt := fmt.Sprintf(`create page %s titled "Page %d %d" with content: "made by job"`, name, page, n)
		made, err := cl.CreateJob(ctx, p.ID, client.CreateJob{Prompt: prompt})
		if err != nil {
			return
		}
		accepted := &acceptedJob{id: made.ID, page: name}
		c.mu.Lock()
		c.jobs = append(c.jobs, accepted)
		c.mu.Unlock()
		for range random.IntN(3) {
			c.mu.Lock()
			next := accepted.followUps + 1
			c.mu.Unlock()
			prompt := fmt.Sprintf(`append "line %d of follow-ups" to %s`, next, name)
			if _, err := cl.FollowUp(ctx, p.ID, string(made.ID), prompt); err != nil {
				return
			}
			c.mu.Lock()
			accepted.followUps = next
			c.mu.Unlock()
		}
	}
}

// askQuestions asks in threads of one or two questions until the server dies.
func (c *tally) askQuestions(ctx context.Context, cl *client.Client, p harness.Project, random *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		id := ""
		for turn := range 1 + random.IntN(2) {
			text := fmt.Sprintf("How much are tickets for the ferry? (%d.%d.%d)", random.Uint64(), n, turn)
			q, err := harness.Ask(ctx, cl, p, id, text)
			if q.Thread != "" {
				c.mu.Lock()
				c.questions = append(c.questions, q)
				c.mu.Unlock()
			}
			if err != nil {
				return
			}
			id = string(q.Thread)
		}
	}
}

func awaitJobs(t *testing.T, server *harness.Server, p harness.Project, jobs []*acceptedJob) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cl := server.Client(p.Admin)
	for _, accepted := range jobs {
		j, err := cl.WaitForJob(ctx, p.ID, string(accepted.id))
		if err != nil {
			t.Fatalf("acknowledged job %s: %v", accepted.id, err)
		}
		if j.Status != api.JobCompleted || j.PRLink == nil {
			t.Errorf("job %s ended %s (%s), link %v", j.ID, j.Status, j.Message, j.PRLink)
		}
	}
}

// checkListing looks for every acknowledged job in the listing, once.
func checkListing(t *testing.T, server *harness.Server, p harness.Project, jobs []*acceptedJob) {
	t.Helper()
	out := harness.Docent(t, "job", "list", "--url", server.URL, "--project", p.ID, "--key", p.Admin, "--limit", "0",
		"--json")
	listed := map[api.JobID]int{}
	for line := range strings.Lines(out) {
		var j api.Job
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		listed[j.ID]++
	}
	for _, accepted := range jobs {
		if listed[accepted.id] != 1 {
			t.Errorf("job %s is listed %d times", accepted.id, listed[accepted.id])
		}
	}
}

// checkRepository reads the built-in host's repository: one branch and one pull request for each job, and on the branch
// each instruction's effect once.
func checkRepository(t *testing.T, data string, p harness.Project, jobs []*acceptedJob) {
	t.Helper()
	repo, err := git.PlainOpen(filepath.Join(data, "repos", p.ID+".git"))
	if err != nil {
		t.Fatal(err)
	}
	branches := map[string]plumbing.Hash{}
	refs, err := repo.Branches()
	if err != nil {
		t.Fatal(err)
	}
	if err := refs.ForEach(func(r *plumbing.Reference) error {
		branches[r.Name().Short()] = r.Hash()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	pulls := map[string]int{}
	out := harness.Docent(t, "pull", "list", "--data", data, "--project", p.ID, "--json")
	for line := range strings.Lines(out) {
		var pull api.PullRequest
		if err := json.Unmarshal([]byte(line), &pull); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		pulls[pull.Head]++
	}
	for _, accepted := range jobs {
		branch := "docent/" + string(accepted.id)
		head, ok := branches[branch]
		if !ok {
			t.Errorf("job %s has no branch", accepted.id)
			continue
		}
		for name := range branches {
			if name != branch && strings.Contains(name, string(accepted.id)) {
				t.Errorf("job %s has a second branch %s", accepted.id, name)
			}
		}
		if pulls[branch] != 1 {
			t.Errorf("job %s has %d pull requests", accepted.id, pulls[branch])
		}
		checkBranch(t, repo, head, accepted)
	}
}

// pageAt is a branch's newest commit, and what a page holds there.
func pageAt(repo *git.Repository, head plumbing.Hash, name string) (*object.Commit, string, error) {
	commit, err := repo.CommitObject(head)
	if err != nil {
		return nil, "", err
	}
	file, err := commit.File(name)
	if err != nil {
		return nil, "", fmt.Errorf("page %s: %w", name, err)
	}
	text, err := file.Contents()
	return commit, text, err
}

func checkBranch(t *testing.T, repo *git.Repository, head plumbing.Hash, accepted *acceptedJob) {
	t.Helper()
	commit, text, err := pageAt(repo, head, accepted.page)
	if err != nil {
		t.Errorf("job %s: %v", accepted.id, err)
		return
	}
	// A follow-up that was sent but not acknowledged may have been accepted all the same: at most the one in flight.
	for n := 1; n <= accepted.followUps+1; n++ {
		count := strings.Count(text, fmt.Sprintf("line %d of follow-ups", n))
		if count != 1 && (n <= accepted.followUps || count > 1) {
			t.Errorf("job %s: follow-up %d of %d took effect %d times", accepted.id, n, accepted.followUps, count)
		}
	}
	commits := 0
	if err := object.NewCommitPreorderIter(commit, nil, nil).ForEach(func(*object.Commit) error {
		commits++
		return nil
	}); err != nil {
		t.Errorf("job %s: %v", accepted.id, err)
	}
	lines := strings.Count(text, "of follow-ups")
	if want := 1 + 1 + lines; commits != want {
		t.Errorf("job %s has %d commits on its branch with the import, want %d", accepted.id, commits, want)
	}
}

// checkThreads reads every thread with the actors themselves, in this process.
func checkThreads(t *testing.T, data, settings string, p harness.Project, questions []harness.AcceptedQuestion) {
	t.Helper()
	c, err := config.Load(settings, harness.NoEnvironment, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Data, c.Listen = data, "127.0.0.1:0"
	dir, err := datadir.Open(data, datadir.Server, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	a, err := server.New(t.Context(), server.Deps{Dir: dir, Config: c, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		a.CancelWork()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, q := range questions {
		exchange := awaitAnswer(t, a, p, q)
		switch {
		case exchange == nil:
			t.Errorf("question %q is not in its thread %s", q.Text, q.Thread)
		case !exchange.Done || exchange.Error != "":
			t.Errorf("question %q was not answered: %s", q.Text, exchange.Error)
		case q.Finished && exchange.Answer != q.Answer:
			t.Errorf("question %q was answered %q, the client saw %q finished", q.Text, exchange.Answer, q.Answer)
		}
	}
}

// awaitAnswer finds the question in its thread, once, and waits for its answer: the last kill may have left it to be
// finished now.
func awaitAnswer(t *testing.T, a *server.Server, p harness.Project, q harness.AcceptedQuestion) *thread.Exchange {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		c, err := a.System.Threads().Read(t.Context(), q.Thread, thread.Read{Project: api.ProjectID(p.ID)})
		if err != nil {
			t.Fatalf("thread %s: %v", q.Thread, err)
		}
		found := slices.IndexFunc(c.Turns, func(e thread.Exchange) bool { return e.Question == q.Text })
		if found < 0 {
			return nil
		}
		if slices.ContainsFunc(c.Turns[found+1:], func(e thread.Exchange) bool { return e.Question == q.Text }) {
			t.Errorf("question %q is in its thread twice", q.Text)
		}
		if c.Turns[found].Done || time.Now().After(deadline) {
			return &c.Turns[found]
		}
		time.Sleep(20 * time.Millisecond)
	}
}
