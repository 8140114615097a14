package automation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/job"
	"docent/agent/affected"
	"docent/api"
	"docent/forge"
	"docent/forge/host"
	"docent/internal/task/tasktest"
	"docent/internal/testing/need"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/cluster"
	"docent/persistence/journal"
)

// A clockwork is a Runner with a clock that the test sets, on a real catalog, and with stand-ins for jobs and
// repository.
type clockwork struct {
	*Runner
	t       *testing.T
	tasks   tasktest.Queue
	catalog *catalog.Catalog

	mu       sync.Mutex
	at       time.Time
	jobs     map[api.JobID]*api.JobRow
	asked    []string // "create job_…" or "message job_…", with the prompt
	follows  []job.Follows
	claims   map[string]journal.Claim
	files    map[string]string
	pulls    map[string]api.PullState // by branch
	refuse   []error                  // what the next commands are answered
	changes  map[int]change
	compared []string
	said     map[string]string // by repository, number and key
	lose     bool              // the next command takes place, and its answer is lost
}

// A change is a pull request of a code repository.
type change struct {
	host.Pull
	diff string
}

func (c *clockwork) Ask(_ context.Context, id api.JobID, cmd job.Command) (job.Reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	row := c.jobs[id]
	if _, read := cmd.(job.Read); read {
		if row == nil {
			return job.Reply{}, api.ErrNotFound
		}
		return job.Reply{Row: *row}, nil
	}
	if len(c.refuse) > 0 {
		err := c.refuse[0]
		c.refuse = c.refuse[1:]
		return job.Reply{}, err
	}
	take := func(claim *journal.Claim) error {
		if held, ok := c.claims[claim.Key]; ok {
			return &journal.ClaimedError{Claim: held}
		}
		c.claims[claim.Key] = *claim
		return nil
	}
	switch cmd := cmd.(type) {
	case job.Create:
		if err := take(cmd.Claim); err != nil {
			return job.Reply{}, err
		}
		c.jobs[id] = &api.JobRow{Project: cmd.Project.ID, Branch: "docent/" + string(id), User: string(cmd.User),
			Job: api.Job{ID: id, Status: api.JobActive}}
		c.asked, c.follows = append(c.asked, "create: "+cmd.Prompt), append(c.follows, cmd.Follows)
	case job.FollowUp:
		if row.Archived {
			return job.Reply{}, &api.StateError{Kind: api.ErrConflict, Reason: "archived"}
		}
		if err := take(cmd.Claim); err != nil {
			return job.Reply{}, err
		}
		row.Job.Status = api.JobActive
		c.asked, c.follows = append(c.asked, "message: "+cmd.Prompt), append(c.follows, cmd.Follows)
	}
	if c.lose {
		c.lose = false
		return job.Reply{}, fmt.Errorf("ask: %w", context.DeadlineExceeded)
	}
	return job.Reply{Row: *c.jobs[id], Fresh: true}, nil
}

func (c *clockwork) File(_ context.Context, _ api.Project, path string) ([]byte, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if path == "panic.md" {
		panic("an odd file")
	}
	if text, ok := c.files[path]; ok {
		return []byte(text), "", nil
	}
	return nil, "", &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
}

func (c *clockwork) PullState(_ context.Context, _ api.Project, branch string) (api.PullState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pulls[branch], nil
}

func (c *clockwork) Pages(_ context.Context, _ api.Project) (affected.Docs, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	files := maps.Clone(c.files)
	return affected.Docs{Files: slices.Sorted(maps.Keys(files)), Read: func(p string) ([]byte, error) { return []byte(files[p]), nil }}, nil
}

func (c *clockwork) Change(_ context.Context, _ api.Project, from, to string) (Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compared = append(c.compared, from+".."+to)
	return Change{Diff: c.changes[0].diff, Commits: []forge.Commit{{Hash: to, Subject: "feat: more", Author: "Ann <ann@example.com>"}}}, nil
}

func (c *clockwork) Proposed(_ context.Context, p api.Project, docs, diff string) (Change, error) {
	return Change{Diff: diff, Alive: func(name string) bool { return strings.Contains(c.files[p.Source+"/code.go"], name) }}, nil
}

func (c *clockwork) PullChange(_ context.Context, p api.Project, number int) (host.Pull, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.refuse) > 0 {
		err := c.refuse[0]
		c.refuse = c.refuse[1:]
		return host.Pull{}, "", err
	}
	pull := c.changes[number]
	return pull.Pull, pull.diff, nil
}

func (c *clockwork) Authors(_ context.Context, p api.Project, commits []forge.Commit) ([]string, error) {
	var out []string
	for _, x := range commits {
		name, _, _ := strings.Cut(x.Author, " ")
		out = append(out, strings.ToLower(name)+" of "+p.Repository)
	}
	return out, nil
}

func (c *clockwork) Say(_ context.Context, p api.Project, number int, key, body string, first bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	where := fmt.Sprintf("%s#%d %s", p.Repository, number, key)
	if _, there := c.said[where]; there || first {
		c.said[where] = body
	}
	return nil
}

func (c *clockwork) Claim(key string, _ time.Time) (journal.Claim, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, ok := c.claims[key]
	return held, ok, nil
}

// Start is that of an update.
func (c *clockwork) Start(context.Context, api.ProjectID) (api.UpdateID, error) { return "upd_1", nil }

// pending carries out what is accepted, one run after the other.
func (c *clockwork) pending() {
	c.t.Helper()
	if err := c.beginPending(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.tasks.Run(c.t.Context())
}

// startClockwork opens a catalog with a project; the clock stands at 10:00 on a Saturday.
func startClockwork(t *testing.T) *clockwork {
	t.Helper()
	store, err := catalog.Open(t.Context(), catalogtest.SQLite(t),
		catalog.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.AddProject(t.Context(),
		api.Project{ID: "p", Domain: "p.example.com", Source: "/src", Repository: "acme/docs"}); err != nil {
		t.Fatal(err)
	}
	c := &clockwork{t: t, catalog: store, at: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC),
		jobs:   map[api.JobID]*api.JobRow{},
		claims: map[string]journal.Claim{}, files: map[string]string{"fresh.md": "Check it.\n"},
		pulls: map[string]api.PullState{}, changes: map[int]change{}, said: map[string]string{}}
	c.restart()
	t.Cleanup(func() { store.Close() })
	return c
}

// restart is a new process on the same catalog and journal.
func (c *clockwork) restart() {
	c.tasks = tasktest.Queue{}
	r, err := New(Deps{Owns: cluster.Single{}.Owns, Tasks: &c.tasks, Catalog: c.catalog, Jobs: c, Claims: c, Documentation: c, Code: c, Updates: c, IDs: new(api.IDs),
		Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.at
		}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.Runner = r
}

func (c *clockwork) add(a api.Automation) api.Automation {
	c.t.Helper()
	a.ID, a.Project, a.CreatedAt = api.AutomationID(api.NewID(api.AutomationPrefix, c.at)), "p", c.at
	if a.Prompt == "" && !a.Check {
		a.Prompt = "fresh.md"
	}
	if a.DailyCap == 0 {
		a.DailyCap = 100
	}
	a.Name += string(a.ID)
	if err := c.catalog.AddAutomation(c.t.Context(), a); err != nil {
		c.t.Fatal(err)
	}
	return a
}

// tick sets the clock and lets the loop look at it; it returns how many instructions jobs were given.
func (c *clockwork) tick(at time.Time) int {
	c.t.Helper()
	c.mu.Lock()
	c.at = at
	before := len(c.asked)
	c.mu.Unlock()
	if wait, err := c.acceptDue(c.t.Context()); err != nil || wait <= 0 || wait > tick {
		c.t.Errorf("the loop would wait %v, %v", wait, err)
	}
	c.pending()
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked) - before
}

func (c *clockwork) view(id api.AutomationID) api.Automation {
	c.t.Helper()
	a, err := c.catalog.Automation(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// end brings a job to its end with a pull request.
func (c *clockwork) end(id api.JobID, state api.PullState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	link := "/pulls/1"
	row := c.jobs[id]
	row.Job.Status, row.Job.PRLink = api.JobCompleted, &link
	c.pulls[row.Branch] = state
}

func TestAScheduledAutomationRunsOnceForEachTime(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	a := c.add(api.Automation{Cron: "0 6 * * *"})
	start := c.at
	six := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		what    string
		at      time.Time
		restart bool
		runs    int
		next    time.Time
	}{
		{"it is new", start, false, 0, six},
		{"a second before", six.Add(-time.Second), false, 0, six},
		{"at the time", six, false, 1, six.AddDate(0, 0, 1)},
		{"looked at again", six, false, 0, six.AddDate(0, 0, 1)},
		{"after a restart", six.Add(time.Second), true, 0, six.AddDate(0, 0, 1)},
		{"the clock was set back over it", six.Add(-time.Hour), false, 0, six},
		{"and the time comes a second time", six, false, 0, six.AddDate(0, 0, 1)},
		{"the server was down for ten days", six.AddDate(0, 0, 10).Add(time.Hour), true, 1, six.AddDate(0, 0, 11)},
		{"nothing more is made up for", six.AddDate(0, 0, 10).Add(2 * time.Hour), true, 0, six.AddDate(0, 0, 11)},
		{"the clock jumps a year ahead", six.AddDate(1, 0, 0), false, 1, six.AddDate(1, 0, 1)},
		{"and back", six.AddDate(0, 0, 10).Add(3 * time.Hour), false, 0, six.AddDate(0, 0, 11)},
		{"a time that it ran for while the clock was wrong", six.AddDate(0, 0, 11), false, 0, six.AddDate(0, 0, 12)},
		{"it does not wait for the year to pass", six.AddDate(0, 0, 12), false, 1, six.AddDate(0, 0, 13)},
	} {
		if step.restart {
			c.restart()
			c.pending()
		}
		if got := c.tick(step.at); got != step.runs {
			t.Errorf("%s: %d runs, want %d", step.what, got, step.runs)
		}
		if next := c.view(a.ID).Next; next == nil || !next.Equal(step.next) {
			t.Errorf("%s: next is %v, want %v", step.what, next, step.next)
		}
	}
}

func TestARunSurvivesACrashAtAnyPoint(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	a := c.add(api.Automation{Cron: "* * * * *"})
	c.tick(c.at)

	// Accepted, and the process dies.
	c.at = c.at.Add(time.Minute)
	if _, err := c.acceptDue(c.t.Context()); err != nil {
		t.Fatal(err)
	}
	if last := c.view(a.ID).Last; last == nil || last.Status != api.RunAccepted {
		t.Fatalf("%+v", last)
	}
	c.restart()
	c.pending()
	c.pending() // it is carried out once
	first := c.view(a.ID)
	if len(c.asked) != 1 || first.Last.Status != api.RunStarted || first.Job == "" || first.Last.Job != first.Job {
		t.Fatalf("%q, %+v", c.asked, first.Last)
	}

	// The job has it, and the process dies before it stores that: the job from before has been merged meanwhile.
	c.end(first.Job, api.PullOpen)
	c.lose = true
	c.refuse = nil
	c.Catalog = failingStore{c.catalog}
	c.tick(c.at.Add(time.Minute))
	c.end(first.Job, api.PullMerged)
	c.restart()
	c.pending()
	second := c.view(a.ID)
	if len(c.asked) != 2 || second.Last.Status != api.RunStarted || second.Last.Job != first.Job || !second.Last.FollowUp {
		t.Errorf("%q, %+v", c.asked, second.Last)
	}
}

// failingStore takes no outcome of a run.
type failingStore struct{ *catalog.Catalog }

func (failingStore) SaveRun(context.Context, api.AutomationRun) error {
	return fmt.Errorf("gone: %w", api.ErrNotFound)
}

// The job of a run moves to another node while its instruction is read: the run goes on, here or there.
func TestARunWhoseJobMovesDoesNotFail(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	a := c.add(api.Automation{Cron: "0 6 * * *"})
	c.tick(c.at)
	c.refuse = []error{&cluster.ElsewhereError{Name: "job/1", Node: cluster.Node{Name: "b"}}}
	if n := c.tick(time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)); n != 1 {
		t.Errorf("%d instructions were given", n)
	}
	if last := c.view(a.ID).Last; last == nil || last.Status != api.RunStarted {
		t.Errorf("the run is %+v", last)
	}
}

func TestOnePullRequestIsAppendedTo(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	c.files["fresh.md"] = "Check {{repository}}{{commit}} on {{date}}."
	a := c.add(api.Automation{Cron: "0 * * * *"})
	c.tick(c.at)
	hour := func() { c.t.Helper(); c.tick(c.at.Add(time.Hour)) }
	kinds := func() string {
		var out []string
		for _, s := range c.asked {
			kind, _, _ := strings.Cut(s, ":")
			out = append(out, kind)
		}
		return strings.Join(out, " ")
	}
	hour()
	if c.asked[0] != "create: Check  on 2026-11-21." || c.jobs[c.view(a.ID).Job].User != string(a.ID) {
		t.Errorf("%q", c.asked)
	}
	hour() // it is at work still
	c.end(c.view(a.ID).Job, api.PullOpen)
	hour()
	c.end(c.view(a.ID).Job, api.PullMerged)
	hour()
	c.end(c.view(a.ID).Job, api.PullClosed)
	hour()
	c.end(c.view(a.ID).Job, api.PullOpen)
	c.jobs[c.view(a.ID).Job].Archived = true
	hour()
	c.jobs[c.view(a.ID).Job].Job.Status = api.JobCompleted // nothing had to be changed: no pull request
	hour()
	// It is archived between the look and the command.
	c.refuse = []error{&api.StateError{Kind: api.ErrConflict, Reason: "archived"}}
	hour()
	if got, want := kinds(), "create message message create create create create create"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(c.jobs) != 6 {
		t.Errorf("%d jobs", len(c.jobs))
	}
}

func TestADayHasSoManyRuns(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	a := c.add(api.Automation{Cron: "0 * * * *", DailyCap: 3})
	c.tick(c.at)
	runs := 0
	for range 13 { // up to 23:00
		runs += c.tick(c.at.Add(time.Hour))
	}
	if runs != 3 {
		t.Errorf("%d runs", runs)
	}
	if last := c.view(a.ID).Last; last.Status != api.RunSkipped || !strings.Contains(last.Reason, "3 times") {
		t.Errorf("%+v", last)
	}
	if n := c.tick(c.at.Add(time.Hour)); n != 1 {
		t.Errorf("on the next day %d", n)
	}
}

func TestAPushRunsAnAutomationOnce(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	ctx := t.Context()
	docs := c.add(api.Automation{OnPush: true})
	code := c.add(api.Automation{Repository: "acme/api"})
	release := c.add(api.Automation{Repository: "Acme/API", Branch: "release"})
	count := func() int {
		c.pending()
		n := len(c.asked)
		c.asked = nil
		return n
	}
	commit := func(n int) string { return fmt.Sprintf("%040d", n) }

	c.DocumentationAt(ctx, "p", commit(1)) // where it begins
	if n := count(); n != 0 {
		t.Errorf("%d runs for what was there before", n)
	}
	for range 3 {
		c.DocumentationAt(ctx, "p", commit(2))
	}
	c.restart()
	c.pending()
	c.DocumentationAt(ctx, "p", commit(2))
	if n := count(); n != 1 || c.view(docs.ID).Last.Commit != commit(2) {
		t.Errorf("%d runs for one push", n)
	}

	push := func(p api.Push) api.UpdateID {
		t.Helper()
		id, err := c.Push(ctx, "p", p)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for range 2 { // told twice
		if id := push(api.Push{Repository: "acme/api", Branch: "main", Default: true, Commit: commit(3)}); id != "" {
			t.Errorf("the documentation is read again for a push of something else: %s", id)
		}
	}
	if n := count(); n != 1 || c.view(code.ID).Last.Trigger != api.TriggerPush || c.view(release.ID).Last != nil {
		t.Errorf("%d runs", n)
	}
	push(api.Push{Repository: "acme/api", Branch: "release", Commit: commit(4)})
	if n := count(); n != 1 || c.view(release.ID).Last == nil {
		t.Errorf("%d runs", n)
	}
	if id := push(api.Push{Repository: "ACME/docs", Branch: "main", Default: true, Commit: commit(5)}); id != "upd_1" {
		t.Errorf("a push to the documentation is update %q", id)
	}
	if id := push(api.Push{Repository: "acme/docs", Branch: "wip", Commit: commit(6)}); id != "" {
		t.Errorf("a push to another branch is update %q", id)
	}
	if n := count(); n != 0 {
		t.Errorf("%d runs", n)
	}
	if _, err := c.Push(ctx, "nowhere", api.Push{}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestARunThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	many := make([]error, maxTries+1)
	for i := range many {
		many[i] = fmt.Errorf("x: %w", forge.ErrTemporary)
	}
	for name, s := range map[string]struct {
		file   string
		refuse []error
		status api.RunStatus
		reason string
	}{
		"no file":       {file: "none", status: api.RunFailed, reason: `the prompt file "none" is not in the repository`},
		"an empty file": {file: "empty.md", status: api.RunFailed, reason: "is empty"},
		"no text":       {file: "image.png", status: api.RunFailed, reason: "is no text"},
		"too long":      {file: "long.md", status: api.RunFailed, reason: "more than 100000 characters"},
		"a panic":       {file: "panic.md", status: api.RunFailed, reason: "the server's log has the reason"},
		"refused twice": {file: "fresh.md", refuse: many[:2], status: api.RunStarted},
		"refused always": {file: "fresh.md", refuse: many, status: api.RunFailed,
			reason: "the code host does not answer now"},
		"another fault": {file: "fresh.md", refuse: []error{errors.New("secret path")}, status: api.RunFailed,
			reason: "the server's log has the reason"},
	} {
		c.files["empty.md"], c.files["image.png"], c.files["long.md"] = " \n", "\x89PNG\x00",
			strings.Repeat("x", maxPromptFile+1)
		a := c.add(api.Automation{OnPush: true, Prompt: s.file})
		c.refuse = s.refuse
		if err := c.Accept(t.Context(), api.AutomationRun{Automation: a.ID, Key: name},
			func(*api.Automation) {}); err != nil {
			t.Fatal(err)
		}
		c.pending()
		if last := c.view(a.ID).Last; last.Status != s.status || !strings.Contains(last.Reason, s.reason) || s.reason == "" &&
			last.Reason != "" {
			t.Errorf("%s: %+v", name, last)
		}
	}
}

func TestTimesOfACronLine(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		t.Helper()
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct{ cron, zone, after, want string }{
		{"0 6 * * 1", "", "2026-11-21T10:00:00Z", "2026-11-23T06:00:00Z"},
		{"0 6 * * 1", "Europe/Berlin", "2026-11-21T10:00:00Z", "2026-11-23T05:00:00Z"},
		{"*/15 * * * *", "", "2026-11-21T10:00:00Z", "2026-11-21T10:15:00Z"},
		{"@daily", "America/New_York", "2026-11-21T10:00:00Z", "2026-11-22T05:00:00Z"},
		{"0 0 29 2 *", "", "2026-11-21T10:00:00Z", "2028-02-29T00:00:00Z"},
		// The hour that is left out in spring: not twice, and not never.
		{"30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", ""},
		// The hour that comes twice in autumn: one of them.
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", ""},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
	} {
		got, err := NextTime(api.Automation{Cron: c.cron, TimeZone: c.zone}, at(c.after))
		if err != nil {
			t.Errorf("%s: %v", c.cron, err)
			continue
		}
		if c.want != "" && !got.Equal(at(c.want)) {
			t.Errorf("%s in %q after %s is %s, want %s", c.cron, c.zone, c.after, got.Format(time.RFC3339), c.want)
		}
		if d := got.Sub(at(c.after)); c.want == "" && (d <= 0 || d > 48*time.Hour) {
			t.Errorf("%s in %q after %s is %s", c.cron, c.zone, c.after, got.Format(time.RFC3339))
		}
	}
	for _, bad := range []api.Automation{{Cron: "daily"}, {Cron: "* * * *"}, {Cron: "0 0 6 * * 1"}, {Cron: "61 * * * *"},
		{Cron: "0 0 30 2 *"},
		{Cron: "@nonsense"}, {Cron: "TZ= * * * *"}, {Cron: "0 6 * * 1", TimeZone: "Mars/Olympus"},
		{Cron: "0 6 * * 1", TimeZone: "../etc/passwd"}} {
		var invalid *api.InvalidError
		if next, err := NextTime(bad, at("2026-11-21T10:00:00Z")); !errors.As(err, &invalid) {
			t.Errorf("%q in %q is %v, %v", bad.Cron, bad.TimeZone, next, err)
		}
	}
	if !need.All {
		return
	}
	// Over a year and both changes of the clocks each time is later than the one before.
	for _, line := range []string{"30 2 * * *", "*/7 1-3 * * *", "0 3 * * 0"} {
		when, days := at("2026-01-01T00:00:00Z"), map[string]int{}
		for when.Before(at("2027-01-01T00:00:00Z")) {
			next, err := NextTime(api.Automation{Cron: line, TimeZone: "Europe/Berlin"}, when)
			if err != nil || !next.After(when) {
				t.Fatalf("%s after %v is %v, %v", line, when, next, err)
			}
			when = next
			zone, _ := time.LoadLocation("Europe/Berlin")
			days[next.In(zone).Format(time.DateOnly)]++
		}
		if line == "30 2 * * *" && len(days) < 364 {
			t.Errorf("%s comes on %d days of the year", line, len(days))
		}
	}
}

func TestAPausedAutomationRunsOnlyWhenItIsToldTo(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	ctx := t.Context()
	timed, pushed := c.add(api.Automation{Cron: "0 * * * *"}), c.add(api.Automation{OnPush: true})
	code := c.add(api.Automation{Repository: "acme/api"})
	c.tick(c.at)
	c.DocumentationAt(ctx, "p", fmt.Sprintf("%040d", 1))
	for _, a := range []api.Automation{timed, pushed, code} {
		if err := c.Pause(ctx, a.ID, true); err != nil {
			t.Fatal(err)
		}
	}
	c.tick(c.at.Add(3 * time.Hour))
	c.DocumentationAt(ctx, "p", fmt.Sprintf("%040d", 2))
	if _, err := c.Push(ctx, "p", api.Push{Repository: "acme/api", Branch: "main", Default: true,
		Commit: fmt.Sprintf("%040d", 3)}); err != nil {
		t.Fatal(err)
	}
	c.pending()
	if len(c.asked) != 0 {
		t.Fatalf("paused ones ran: %q", c.asked)
	}
	run := api.AutomationRun{Automation: timed.ID, Trigger: api.TriggerManual, Key: "by hand"}
	if err := c.Accept(ctx, run, func(*api.Automation) {}); err != nil {
		t.Fatal(err)
	}
	c.pending()
	if len(c.asked) != 1 {
		t.Errorf("run by hand: %q", c.asked)
	}
	// What came meanwhile is not made up for.
	for _, a := range []api.Automation{timed, pushed, code} {
		if err := c.Pause(ctx, a.ID, false); err != nil {
			t.Fatal(err)
		}
	}
	c.DocumentationAt(ctx, "p", fmt.Sprintf("%040d", 2))
	c.tick(c.at.Add(time.Minute))
	if len(c.asked) != 1 {
		t.Errorf("after going on: %q", c.asked)
	}
	if n := c.tick(c.at.Add(time.Hour)); n != 1 {
		t.Errorf("at its next time it ran %d times", n)
	}
}

// All automations of a project together have no more pull requests open than it says. A run that would open one more is
// skipped, and what was pushed is part of the next one.
func TestAutomationsOfAProjectHaveSoManyPullRequestsOpen(t *testing.T) {
	c := startClockwork(t)
	ctx := t.Context()
	p, err := c.catalog.Project(ctx, "p")
	if err != nil {
		t.Fatal(err)
	}
	p.Pulls.Most = 2
	if _, err := c.catalog.UpdateProject(ctx, p); err != nil {
		t.Fatal(err)
	}
	var list []api.Automation
	for range 3 {
		list = append(list, c.add(api.Automation{Repository: "acme/api"}))
	}
	push := func(a api.Automation, commit string) api.AutomationRun {
		t.Helper()
		err := c.Accept(ctx, api.AutomationRun{Automation: a.ID, Trigger: api.TriggerPush, Repository: "acme/api", Commit: commit,
			Key: string(a.ID) + " " + commit}, func(*api.Automation) {})
		if err != nil {
			t.Fatal(err)
		}
		c.pending()
		return *c.view(a.ID).Last
	}
	for i, a := range list {
		run := push(a, "c1")
		if skipped := i == 2; (run.Status == api.RunSkipped) != skipped || skipped != strings.Contains(run.Reason, "2 pull requests") {
			t.Errorf("run %d: %+v", i, run)
		}
	}
	if run := push(list[0], "c2"); run.Status != api.RunStarted || !run.FollowUp {
		t.Errorf("a follow-up opens none: %+v", run)
	}
	if a := c.view(list[2].ID); a.SeenCode != "" || a.Job != "" {
		t.Errorf("what was skipped counts as seen: %+v", a)
	}
	c.end(c.view(list[1].ID).Job, api.PullMerged)
	if run := push(list[2], "c2"); run.Status != api.RunStarted || c.view(list[2].ID).SeenCode != "c2" {
		t.Errorf("with room again: %+v", run)
	}
}
