package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"docent/actors/thread"
	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/server"
	"docent/forge/forgetest"
	"docent/internal/testing/need"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

// What a run by hand may set, with what holds where it does not.
type tortureSettings struct {
	seed     uint64
	kills    int
	clients  int
	duration time.Duration // go on for so long, whatever the number of kills
	gap      time.Duration // between two kills, about
	think    time.Duration // of a client between two things that it does
	peace    time.Duration // within which every job has to end once the faults have stopped
}

func tortureFromEnvironment(t *testing.T) tortureSettings {
	t.Helper()
	s := tortureSettings{seed: uint64(time.Now().UnixNano()), kills: 4, clients: 60, gap: 2 * time.Second,
		think: time.Second, peace: 3 * time.Minute}
	if need.All {
		s.kills, s.clients, s.gap, s.think = 12, 200, 3*time.Second, 2*time.Second
	}
	number := func(name string, set func(uint64)) {
		if text := os.Getenv("DOCENT_TEST_" + name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("DOCENT_TEST_%s: %v", name, err)
			}
			set(n)
		}
	}
	span := func(name string, set *time.Duration) {
		if text := os.Getenv("DOCENT_TEST_" + name); text != "" {
			d, err := time.ParseDuration(text)
			if err != nil {
				t.Fatalf("DOCENT_TEST_%s: %v", name, err)
			}
			*set = d
		}
	}
	number("SEED", func(n uint64) { s.seed = n })
	number("KILLS", func(n uint64) { s.kills = int(n) })
	number("CLIENTS", func(n uint64) { s.clients = int(n) })
	span("DURATION", &s.duration)
	span("GAP", &s.gap)
	span("THINK", &s.think)
	span("PEACE", &s.peace)
	return s
}

// meteredLimit is the quota of the project whose quota is small.
const meteredLimit = 25

// TestAcceptedWorkSurvivesKills kills the real server at random moments, also while it starts, under clients that
// create jobs, send follow-ups, ask questions and poll, while the model and the code host fail, stall, refuse, and
// break off after they have acted. Each client goes on over all lives of the server, sends again what was not
// answered, and remembers what it was told; afterwards the faults stop, and all of it has to be true, and nothing
// twice.
//
// What is random follows from a seed. It is printed, and makes the same kills and the same clients again; what meets
// what is up to the machine.
func TestAcceptedWorkSurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("kills the server many times; left out with -short")
	}
	o := tortureFromEnvironment(t)
	t.Logf("seed %d: set DOCENT_TEST_SEED, or SEED with make torture, to run these moments again", o.seed)
	random := rand.New(rand.NewPCG(o.seed, 1))

	x := newTorture(t, o)
	data := filepath.Join(t.TempDir(), "data")
	running := harness.NewServer(t, data, "--config", x.config)
	x.makeProjects(data)
	x.makeMoving(data)

	quiet := x.visits(running)
	began := time.Now()
	kills, early, slowest := 0, 0, time.Duration(0)
	for kills < o.kills || time.Since(began) < o.duration {
		x.moment(random)
		running.Kill()
		kills++
		for random.IntN(5) == 0 { // and while it starts
			if err := running.Launch(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			running.Kill()
			kills++
			early++
		}
		up := time.Now()
		running.Start()
		slowest = max(slowest, time.Since(up))
		if kills%20 == 0 {
			x.told.mu.Lock()
			t.Logf("%v: %d kills, %d jobs and %d questions acknowledged, %d answers lost", time.Since(began).Round(time.Second),
				kills, len(x.told.jobs), len(x.told.questions), x.told.lost)
			x.told.mu.Unlock()
		}
	}
	// On a machine that stands still clients may have come to little before the kills were over.
	harness.Until(t, "clients have done enough for it to tell something", func() bool { return x.enough(kills) })
	quiet()
	x.wasLoaded(kills)

	peace := time.Now()
	check := &tortureCheck{T: t, witness: x.told, server: running, data: data}
	check.awaitJobs(o.peace)
	settled := time.Since(peace)
	check.quotas(x.projects, x.metered, true)
	for _, p := range x.all() {
		check.listing(p)
	}
	running.Stop()
	for _, p := range x.all() {
		if x.remote != nil && p == x.away {
			x.checkRemote(check)
		} else {
			check.repository(filepath.Join(data, "repos", p.ID+".git"), p, check.pulls(p))
		}
	}
	check.inside(x.config, func(a *server.Server) {
		check.threads(a, x.built, x.brain)
		if x.source != nil {
			check.followed(a, x)
		}
	})
	if out, err := harness.TryDocent(t, "journal", "check", "--data", data); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%d kills in %v, %d of them while it started; slowest start %v; %s; at rest after %v; ended otherwise: %v",
		kills, peace.Sub(began).Round(time.Second), early, slowest.Round(time.Millisecond), x.tally(),
		settled.Round(time.Millisecond), check.others)
}

// A torture is the load of a kill test: its clients, the model and the code host, and what clients were told.
type torture struct {
	*testing.T
	tortureSettings
	told     *witness
	air      *weather
	brain    *modelStandIn
	remote   *hostStandIn // nil if git is not installed
	config   string       // a file of settings for the servers
	projects []harness.Project
	built    harness.Project // on the built-in host
	metered  harness.Project // and its quota is small
	away     harness.Project // on the code host
	moving   harness.Project // its source is pushed to
	source   *movingSource   // nil if git is not installed, or the test has none
}

const tokenOfTorture = "TOKEN_OF_TORTURE_TEST"

// newTorture starts the stand-ins, and writes settings by which servers find them. more are settings besides. A model that
// says nothing is given up later than a machine stands still: what is cut off then is no fault that the stand-in knows of.
func newTorture(t *testing.T, o tortureSettings, more ...string) *torture {
	t.Helper()
	x := &torture{T: t, tortureSettings: o, told: newWitness(t), air: newWeather(o.seed)}
	x.brain = newModelStandIn(t, x.air, x.told)
	x.config = filepath.Join(t.TempDir(), "docent.toml")
	text := fmt.Sprintf(`%[2]slog_level = "warn"
max_running_jobs = 16
[models.standin]
provider = "openai"
base_url = "%[1]s/v1"
model = "stand-in"
rewrite = "off"  # its model counts what it is asked
claims = "off"   # each answer names the question that it is for, which no passage says
fallback = false # and which only the stand-in does
idle = "8s"
timeout = "20s"
[models.worker]
provider = "anthropic"
base_url = "%[1]s"
model = "stand-in"
idle = "8s"
timeout = "20s"
`, x.brain.url, strings.Join(more, ""))
	if err := os.WriteFile(x.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(tokenOfTorture, "the-token-of-the-code-host")
	x.remote = newHostStandIn(t, x.air, os.Getenv(tokenOfTorture))
	return x
}

// makeProjects makes what clients ask about and change.
func (x *torture) makeProjects(data string) {
	x.Helper()
	files := map[string]string{
		"index.md":   "---\ntitle: Home\n---\n\nThe harbour has three piers and a lighthouse.\n",
		"ferries.md": "---\ntitle: Ferries\n---\n\n# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n\n## Tickets\n\nTickets are sold on board and cost four coins.\n",
	}
	limits := []string{"--model", "standin", "--limit-key-month", harness.Plentiful, "--limit-org-hour", harness.Plentiful,
		"--limit-ip-day", harness.Plentiful}
	x.built = harness.NewProject(x.T, data, "harbour", harness.WriteFiles(x, files), append(limits, "--limit-project-hour",
		harness.Plentiful)...)
	x.metered = harness.NewProject(x.T, data, "metered", harness.WriteFiles(x, files),
		append(limits, "--limit-project-hour", strconv.Itoa(meteredLimit))...)
	x.projects = []harness.Project{x.built, x.built, x.built, x.built}
	if x.remote != nil {
		at := x.remote.Project(api.HostGitea, tokenOfTorture)
		x.away = harness.NewProject(x.T, data, "away", at.Source, append(limits, "--host", string(at.Host), "--host-url",
			at.HostURL,
			"--repository", at.Repository, "--token-env", at.TokenEnv, "--limit-project-hour", harness.Plentiful)...)
		x.projects = append(x.projects, x.away)
	}
}

// all are the projects, each once.
func (x *torture) all() []harness.Project {
	list := []harness.Project{x.built, x.metered}
	if x.remote != nil {
		list = append(list, x.away)
	}
	if x.source != nil {
		list = append(list, x.moving)
	}
	return list
}

// makeMoving makes a project whose source is pushed to.
func (x *torture) makeMoving(data string) {
	x.Helper()
	if x.source = newMovingSource(x, map[string]string{"index.md": "# Home\n"},
		map[string]string{"index.md": "# Home\n\nThe pier is closed.\n"}); x.source == nil {
		return
	}
	x.moving = harness.NewProject(x.T, data, "moving", x.source.bare, "--model", "standin", "--limit-key-month",
		harness.Plentiful,
		"--limit-org-hour", harness.Plentiful, "--limit-ip-day", harness.Plentiful, "--limit-project-hour", harness.Plentiful)
	x.projects = append(x.projects, x.moving)
}

// visits has the clients come, and the outside fail now and then, until quiet is called. It waits for what they have begun.
func (x *torture) visits(server *harness.Server) (quiet func()) {
	x.air.faults.Store(true)
	ctx, leave := context.WithCancel(x.Context())
	var visitors sync.WaitGroup
	for n := range x.clients {
		v := &visitor{witness: x.told, hard: x.Context(), server: server,
			random: rand.New(rand.NewPCG(x.seed, 100+uint64(n))), number: n, think: x.think, projects: x.projects,
			metered: x.metered}
		visitors.Go(func() { v.visit(ctx) })
	}
	if x.source != nil {
		visitors.Go(func() { x.source.move(ctx) })
	}
	return func() {
		x.air.faults.Store(false)
		leave()
		visitors.Wait()
	}
}

// wasLoaded fails the test where there was too little to do for faults to meet anything.
func (x *torture) wasLoaded(faults int) {
	x.Helper()
	if len(x.told.jobs) < 3*faults || len(x.told.questions) < 3*faults || x.told.lost < faults || x.brain.faulty == 0 {
		x.Fatalf("only %d jobs and %d questions were acknowledged, %d answers lost and %d questions met a faulty model over %d lives: the test put no load on the server",
			len(x.told.jobs), len(x.told.questions), x.told.lost, x.brain.faulty, faults)
	}
}

// enough says whether clients have done what wasLoaded asks for, but for lost answers, which come of faults alone.
func (x *torture) enough(faults int) bool {
	x.told.mu.Lock()
	defer x.told.mu.Unlock()
	x.brain.mu2.Lock()
	defer x.brain.mu2.Unlock()
	return len(x.told.jobs) >= 3*faults && len(x.told.questions) >= 3*faults && x.brain.faulty > 0
}

// checkRemote holds the code host against what was acknowledged.
func (x *torture) checkRemote(check *tortureCheck) {
	heads := map[string]int{}
	for _, pull := range x.remote.Pulls("") {
		heads[pull.Head]++
	}
	check.repository(x.remote.Dir, x.away, heads)
}

// tally is what there was to do.
func (x *torture) tally() string {
	lines, outside := 0, int64(0)
	for _, j := range x.told.jobs {
		lines += len(j.lines)
	}
	if x.remote != nil {
		outside = x.remote.faulty.Load()
	}
	return fmt.Sprintf("%d jobs, %d follow-ups and %d questions acknowledged; %d answers lost; refused %v; faults: %d of the models, %d of the code host; %d steps with tools",
		len(x.told.jobs), lines, len(x.told.questions), x.told.lost, x.told.refused, x.brain.faulty, outside, x.brain.tools)
}

// A tortureCheck holds what clients were told against what is there.
type tortureCheck struct {
	*testing.T
	*witness
	server *harness.Server
	data   string
	others map[string]int // jobs that ended otherwise than completed, by reason
	failed map[api.JobID]bool
}

// excuses are the ends of a job that faults of the outside explain.
var excuses = regexp.MustCompile(
	`^The work on this instruction broke off \d+ times|^The code host did not answer for a long time|^Gitea ask(s|ed) for fewer requests|^The language model (could not be asked|failed)`)

// awaitJobs waits until every acknowledged job has ended, for at most so long.
func (c *tortureCheck) awaitJobs(within time.Duration) {
	c.others, c.failed = map[string]int{}, map[api.JobID]bool{}
	ctx, cancel := context.WithTimeout(c.Context(), within)
	defer cancel()
	for _, seen := range c.jobs {
		cl := c.server.Client(seen.project.Admin)
		path := "/v2/agent/" + seen.project.ID + "/job/" + string(seen.id)
		for {
			var j api.Job
			err := cl.Get(ctx, path+"?wait=20", &j)
			if ctx.Err() != nil {
				c.unended(within)
			}
			if err != nil {
				c.wrong("job %s, which was acknowledged: %v", seen.id, err)
				break
			}
			if j.Status == api.JobActive {
				continue
			}
			if j.Status != api.JobCompleted {
				reason := excuses.FindString(j.Message)
				if reason == "" {
					c.wrong("job %s of %s ended %s: %s", j.ID, seen.project.ID, j.Status, j.Message)
				}
				c.others[reason]++
				c.failed[j.ID] = true
			} else if j.PRLink == nil {
				c.wrong("job %s ended without a pull request: %s", j.ID, j.Message)
			}
			if seen.link != "" && (j.PRLink == nil || *j.PRLink != seen.link) {
				c.wrong("job %s had the pull request %s and has %s", j.ID, seen.link, shownLink(j.PRLink))
			}
			break
		}
	}
	if n := len(c.failed); n > 2+len(c.jobs)/50 {
		c.wrong("%d of %d jobs were given up: %v", n, len(c.jobs), c.others)
	}
}

// unended fails the test, and says which jobs have not come to an end.
func (c *tortureCheck) unended(within time.Duration) {
	active := map[string]int{}
	for _, seen := range c.jobs {
		var j api.Job
		if err := c.server.Client(seen.project.Admin).Get(c.Context(), "/v2/agent/"+seen.project.ID+"/job/"+string(seen.id),
			&j); err != nil || j.Status != api.JobActive {
			continue
		}
		if active[seen.project.ID]++; active[seen.project.ID] < 4 {
			c.Errorf("job %s of %s, last changed at %v, is still active: %s", j.ID, seen.project.ID, j.UpdatedAt, j.Message)
		}
	}
	log := c.server.Log.String()
	c.Fatalf("%v after the faults stopped %v jobs have not ended; the server says, at last:\n%s", within, active,
		log[max(0, len(log)-4000):])
}

// quotas asks what the quotas have counted: no less than what was acknowledged, and no more than what was sent. near says
// that the server sees the address that clients had before.
func (c *tortureCheck) quotas(projects []harness.Project, metered harness.Project, near bool) {
	remaining := regexp.MustCompile(`"([a-z-]+)";r=(\d+)`)
	left := func(resp *http.Response, name string) int {
		for _, m := range remaining.FindAllStringSubmatch(resp.Header.Get("RateLimit"), -1) {
			if m[1] == name {
				return harness.Atoi(m[2])
			}
		}
		c.wrong("no word on quota %s: %q", name, resp.Header.Get("RateLimit"))
		return 0
	}
	hold := func(what string, u *used, counted int, span time.Duration) {
		now := time.Now()
		least, most := 0, 0
		for _, sent := range u.acknowledged {
			if now.Sub(sent) < span-time.Minute {
				least++
			}
			most++
		}
		most += len(u.lost)
		if counted < least || counted > most {
			c.wrong("%s: %d uses are counted, %d were acknowledged and %d sent", what, counted, least, most)
		}
	}
	seen := map[string]bool{}
	for _, p := range projects {
		if seen[p.ID] {
			continue
		}
		seen[p.ID] = true
		sent := time.Now()
		resp, err := c.server.Client(p.Admin).Do(c.Context(), http.MethodPost, "/v2/agent/"+p.ID+"/job",
			map[string]string{"prompt": "do nothing that can be understood", "model": "builtin"})
		if err != nil {
			c.wrong("a job at the end: %v", err)
			continue
		}
		resp.Body.Close()
		c.count(p.ID, sent, true)
		hold("jobs and follow-ups of "+p.ID, c.uses[p.ID], harness.Atoi(harness.Plentiful)-left(resp, "project-hour"),
			time.Hour)
	}
	sent := time.Now()
	resp, err := c.server.Client(projects[0].Assistant).Do(c.Context(), http.MethodPost, "/discovery/v2/assistant/"+
		projects[0].Domain+"/message",
		map[string]any{"fp": "anonymous",
			"messages": []any{map[string]any{"role": "user", "content": "And what does it cost in the end? (q 0.0.0)"}}})
	if err != nil {
		c.wrong("a question at the end: %v", err)
	} else {
		c.count("questions", sent, true)
		hold("questions in the month", c.uses["questions"], harness.Atoi(harness.Plentiful)-left(resp, "key-month"),
			32*24*time.Hour)
		hold("questions in the hour", c.uses["questions"], harness.Atoi(harness.Plentiful)-left(resp, "org-hour"), time.Hour)
		if near {
			hold("questions in the day", c.uses["questions"], harness.Atoi(harness.Plentiful)-left(resp, "ip-day"), 24*time.Hour)
		}
		if _, err := harness.ReadAnswer(resp); err != nil {
			c.wrong("a question at the end: %v", err)
		}
	}
	if u := c.uses[metered.ID]; u != nil { // more than the limit in no hour
		for i, sent := range u.acknowledged {
			n := 0
			for _, other := range u.acknowledged[i:] {
				if d := other.Sub(sent); d >= 0 && d < time.Hour-2*time.Minute {
					n++
				}
			}
			if n > meteredLimit {
				c.wrong("%d jobs were accepted in an hour where %d are allowed", n, meteredLimit)
				break
			}
		}
	}
}

// listing looks for every acknowledged job in the listing, once. What else is listed was sent and never answered.
func (c *tortureCheck) listing(p harness.Project) {
	out := harness.Docent(c, "job", "list", "--url", c.server.URL, "--project", p.ID, "--key", p.Admin, "--limit", "0",
		"--json")
	listed := map[api.JobID]int{}
	for line := range strings.Lines(out) {
		var j api.Job
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			c.Fatalf("%v: %s", err, line)
		}
		listed[j.ID]++
	}
	for _, j := range c.jobs {
		if j.project.ID == p.ID && listed[j.id] != 1 {
			c.wrong("job %s is listed %d times", j.id, listed[j.id])
		}
	}
}

// pulls counts the pull requests of the built-in host by their branch.
func (c *tortureCheck) pulls(p harness.Project) map[string]int {
	pulls := map[string]int{}
	for line := range strings.Lines(harness.Docent(c, "pull", "list", "--data", c.data, "--project", p.ID, "--json")) {
		var pull api.PullRequest
		if err := json.Unmarshal([]byte(line), &pull); err != nil {
			c.Fatalf("%v: %s", err, line)
		}
		pulls[pull.Head]++
	}
	return pulls
}

// repository holds a host's repository against what was acknowledged: for each job one branch and one pull request,
// and on the branch each instruction's effect once. A branch that nobody was told of comes from a request whose answer
// was lost.
func (c *tortureCheck) repository(path string, p harness.Project, pulls map[string]int) {
	repo, err := git.PlainOpen(path)
	if err != nil {
		c.Fatal(err)
	}
	branches := map[string]plumbing.Hash{}
	refs, err := repo.Branches()
	if err != nil {
		c.Fatal(err)
	}
	if err := refs.ForEach(func(r *plumbing.Reference) error {
		branches[r.Name().Short()] = r.Hash()
		return nil
	}); err != nil {
		c.Fatal(err)
	}
	mine := map[string]*seenJob{}
	for _, j := range c.jobs {
		if j.project.ID != p.ID {
			continue
		}
		branch := "docent/" + string(j.id)
		if mine[branch] != nil {
			c.wrong("pages %s and %s were answered with the same job %s", mine[branch].page, j.page, j.id)
		}
		mine[branch] = j
		if _, ok := branches[branch]; !ok && !c.failed[j.id] {
			c.wrong("job %s of %s has no branch", j.id, p.ID)
		}
		if pulls[branch] != 1 && (!c.failed[j.id] || pulls[branch] > 1) {
			c.wrong("job %s has %d pull requests", j.id, pulls[branch])
		}
	}
	for branch, n := range pulls {
		if n > 1 {
			c.wrong("%s has %d pull requests", branch, n)
		}
	}
	unknown := map[string]int{}
	for branch, head := range branches {
		switch j := mine[branch]; {
		case !strings.HasPrefix(branch, "docent/"):
		case j != nil:
			c.branch(repo, head, j)
		case len(strings.TrimPrefix(branch, "docent/")) != len(c.jobs[0].id):
			c.wrong("%s is a second branch of its job", branch)
		default:
			page := c.madePage(repo, head)
			if unknown[page]++; unknown[page] > c.maybe[p.ID+" "+page] {
				c.wrong("%s made page %q, for %d requests whose answer was lost", branch, page, c.maybe[p.ID+" "+page])
			}
		}
	}
}

// madePage finds the page that a branch's job has made.
func (c *tortureCheck) madePage(repo *git.Repository, head plumbing.Hash) (page string) {
	commit, err := repo.CommitObject(head)
	if err != nil {
		c.wrong("%v", err)
		return ""
	}
	files, err := commit.Files()
	if err != nil {
		c.wrong("%v", err)
		return ""
	}
	_ = files.ForEach(func(f *object.File) error {
		if strings.HasPrefix(f.Name, "made/") || strings.HasPrefix(f.Name, "metered/") {
			page = f.Name
		}
		return nil
	})
	return page
}

// story is what the journal has of a job.
func (c *tortureCheck) story(id api.JobID) string {
	out, err := harness.TryDocent(c.T, "journal", "show", "--data", c.data, string(id))
	if err != nil {
		return err.Error()
	}
	return out
}

func (c *tortureCheck) branch(repo *git.Repository, head plumbing.Hash, j *seenJob) {
	commit, text, err := pageAt(repo, head, j.page)
	if err != nil {
		c.wrong("job %s: %v", j.id, err)
		return
	}
	last := -1
	for _, n := range slices.Concat(j.lines, j.maybe) {
		line := fmt.Sprintf("line %d of follow-ups", n)
		count := strings.Count(text, line)
		if count > 1 || count == 0 && slices.Contains(j.lines, n) && !c.failed[j.id] {
			c.wrong("job %s: follow-up %d took effect %d times\n%s", j.id, n, count, c.story(j.id))
		}
		if at := strings.Index(text, line); count == 1 {
			if at < last {
				c.wrong("job %s: follow-up %d took effect before an earlier one", j.id, n)
			}
			last = at
		}
	}
	if j.project.ID == "moving" { // what the source has is on it as well
		own := strings.Count(forgetest.Git(c, filepath.Join(c.data, "repos", "moving.git"), "log", "--format=%ae", head.String()),
			agentsAddress)
		if want := 1 + strings.Count(text, "of follow-ups"); own != want {
			c.wrong("job %s has %d commits on its branch, want %d", j.id, own, want)
		}
		return
	}
	commits := 0
	if err := object.NewCommitPreorderIter(commit, nil, nil).ForEach(func(*object.Commit) error {
		commits++
		return nil
	}); err != nil {
		c.wrong("job %s: %v", j.id, err)
	}
	lines := strings.Count(text, "of follow-ups")
	if want := 1 + 1 + lines; commits != want {
		c.wrong("job %s has %d commits on its branch with the import, want %d", j.id, commits, want)
	}
}

// inside calls check with the server's own parts, in this process.
func (c *tortureCheck) inside(settings string, check func(a *server.Server)) {
	conf, err := config.Load(settings, harness.NoEnvironment, nil)
	if err != nil {
		c.Fatal(err)
	}
	conf.Data, conf.Listen = c.data, "127.0.0.1:0"
	dir, err := datadir.Open(c.data, datadir.Server, time.Second)
	if err != nil {
		c.Fatal(err)
	}
	defer dir.Close()
	a, err := server.New(c.Context(), server.Deps{Dir: dir, Config: conf, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.Fatal(err)
	}
	defer func() {
		a.CancelWork()
		if err := a.Close(); err != nil {
			c.Error(err)
		}
	}()
	check(a)
}

// threads reads every thread with the actors themselves, which finish what the last kill has left over.
func (c *tortureCheck) threads(a *server.Server, p harness.Project, brain *modelStandIn) {
	for _, q := range c.questions {
		e := awaitAnswer(c.T, a, p, harness.AcceptedQuestion{Thread: q.thread, Text: q.text})
		if e == nil {
			c.wrong("question %s, which was acknowledged, is not in its thread %s", q.tag, q.thread)
			continue
		}
		q.turn = string(e.Turn)
		asked := brain.turn(q.turn)
		switch {
		case !e.Done:
			c.wrong("question %s has no end", q.tag)
		case q.finished && (e.Error != "" || e.Answer != q.answer):
			c.wrong("question %s was answered %q (%s); its reader saw %q finished", q.tag, e.Answer, e.Error, q.answer)
		case e.Error != "" && asked.faults == 0:
			c.wrong("question %s ended with %q, and the model was well: it was asked %d times", q.tag, e.Error, asked.times)
		case e.Error != "":
			c.others[e.Error]++
		case !strings.Contains(e.Answer, "answer "+q.tag+" of "+string(e.Turn)):
			c.wrong("question %s has the answer to another one: %q", q.tag, e.Answer)
		}
		if n := brain.keysOf(q.tag); n > 1+c.retries[q.tag] {
			c.wrong("question %s was put to the model as %d turns, and sent %d times", q.tag, n, 1+c.retries[q.tag])
		}
	}
	c.order(a, p)
}

// order holds each thread against the order in which its questions were asked.
func (c *tortureCheck) order(a *server.Server, p harness.Project) {
	asked := map[api.ThreadID][]string{}
	for _, q := range c.questions {
		asked[q.thread] = append(asked[q.thread], q.text)
	}
	for id, texts := range asked {
		read, err := a.System.Threads().Read(c.Context(), id, thread.Read{Project: api.ProjectID(p.ID)})
		if err != nil {
			c.wrong("thread %s: %v", id, err)
			continue
		}
		var there []string
		for _, e := range read.Turns {
			there = append(there, e.Question)
		}
		if !slices.Equal(there, texts) {
			c.wrong("thread %s has the questions %q; asked were %q", id, there, texts)
		}
	}
}
