package kill

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/server"
	"docent/internal/testing/need"
	"docent/persistence/cluster"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

// What may befall a node.
const (
	killed   = "killed"         // and started again after a moment
	stopped  = "stopped"        // by SIGSTOP; it wakes up long after others took over
	cutOff   = "cut off"        // from everybody
	isolated = "isolated"       // from the database and the other nodes; clients reach it
	restart  = "database again" // the database crashes and comes back
	failover = "failed over"    // to its replica; once
)

// cutFor is how long a node is cut off, from half of it to half more.
const cutFor = 15 * time.Second

// finishedWithin is by when a turn is finished whose node has died. A short run, as CI makes it on machines of any speed, only says
// which were later.
const finishedWithin = 15 * time.Second

// A nodesTorture is what befalls nodes.
type nodesTorture struct {
	*torture
	lab     *harness.Nodes
	random  *rand.Rand
	sleeps  time.Duration // how long a node is stopped
	counts  map[string]int
	healing sync.WaitGroup

	mu       sync.Mutex
	down     map[*harness.Node]bool
	database []time.Time // moments at which it failed
}

// TestAcceptedWorkSurvivesTheDeathOfNodes is TestAcceptedWorkSurvivesKills with three nodes on one database: every few
// seconds one is killed, stopped for long, or cut off; the database crashes, and fails over once. Each request goes to a
// node at random. Beside what a single server has to keep, a turn is finished in time when its node dies, and a node
// that wakes up after others took over writes nothing.
func TestAcceptedWorkSurvivesTheDeathOfNodes(t *testing.T) {
	if os.Getenv("DOCENT_TEST_KILLS") == "" {
		need.Everything(t, "nodes are killed for minutes")
	}
	o := tortureFromEnvironment(t)
	if os.Getenv("DOCENT_TEST_CLIENTS") == "" {
		o.clients = 100
	}
	if os.Getenv("DOCENT_TEST_GAP") == "" {
		o.gap = 5 * time.Second
	}
	t.Logf("seed %d: set DOCENT_TEST_SEED, or SEED with make torture-nodes, to run these moments again", o.seed)
	network := harness.NewNetwork(t)
	db := harness.NewDatabase(t, network.Address(1), true, false)
	x := &nodesTorture{torture: newTorture(t, o), random: rand.New(rand.NewPCG(o.seed, 1)), sleeps: cutFor,
		counts: map[string]int{}, down: map[*harness.Node]bool{}}
	if o.kills >= 100 {
		x.sleeps = time.Minute
	}
	x.lab = harness.NewNodes(t, 3, network, db, o.seed, "--config", x.config)
	harness.Setenv(t, "DOCENT_PUBLIC_URL", x.lab.Front.URL) // links do not tell which node made them
	for _, n := range x.lab.Nodes {
		n.Machine.Show(strings.TrimPrefix(x.brain.url, "http://"))
		if x.remote != nil {
			n.Machine.Show(strings.TrimPrefix(x.remote.Project(api.HostGitea, tokenOfTorture).HostURL, "http://"))
		}
	}
	x.lab.Open()
	x.keepBooks()
	x.makeProjects(x.lab.Nodes[0].Data)
	t.Cleanup(func() {
		if t.Failed() {
			x.keepLogs()
		}
	})

	quiet := x.visits(x.lab.Front)
	began := time.Now()
	faults := 0
	for faults < o.kills || time.Since(began) < o.duration {
		// The moment of a fault is the test's random input.
		time.Sleep(o.gap/10 + time.Duration(x.random.ExpFloat64()*float64(o.gap)*0.9))
		if !x.strike(faults, o.kills) {
			continue
		}
		if faults++; faults%20 == 0 {
			x.told.mu.Lock()
			t.Logf("%v: %v, %d jobs and %d questions acknowledged, %d answers lost", time.Since(began).Round(time.Second),
				x.counts, len(x.told.jobs), len(x.told.questions), x.told.lost)
			x.told.mu.Unlock()
		}
	}
	x.healing.Wait()
	harness.Until(t, "clients have done enough for it to tell something", func() bool { return x.enough(faults) })
	quiet()
	x.wasLoaded(faults)
	for _, n := range x.lab.Nodes {
		if err := n.AwaitReady(); err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
	}

	peace := time.Now()
	check := &tortureCheck{T: t, witness: x.told, server: x.lab.Front, data: x.lab.Nodes[0].Data}
	check.awaitJobs(o.peace)
	settled := time.Since(peace)
	for _, p := range x.all() {
		check.listing(p)
	}
	for _, n := range x.lab.Nodes {
		n.Leave()
	}
	// What the nodes have left is moved back to a single server, which is held against what was told as one that was never
	// a node: what a node says may be out of date, and this is what was stored.
	check.data = filepath.Join(t.TempDir(), "alone")
	harness.Docent(t, "journal", "copy", "--to", config.JournalBolt, "--data", check.data)
	harness.Setenv(t, "DOCENT_JOURNAL", config.JournalBolt)
	harness.Setenv(t, "DOCENT_CATALOG_DSN", "sqlite:"+filepath.Join(check.data, datadir.Catalog))
	check.server = harness.NewServer(t, check.data, "--config", x.config)
	check.quotas(x.projects, x.metered, false)
	for _, p := range x.all() {
		check.listing(p)
	}
	check.server.Stop()
	x.checkRepositories(check)
	check.inside(x.config, func(a *server.Server) { check.threads(a, x.built, x.brain) })
	t.Logf("%v in %v; %s; at rest after %v; ended otherwise: %v; %s; %s", x.counts, peace.Sub(began).Round(time.Second), x.tally(),
		settled.Round(time.Millisecond), check.others, x.takeOvers(), x.sleepersWroteNothing())
}

// strike does something to a node or to the database, unless one node alone is well.
func (x *nodesTorture) strike(nth, of int) bool {
	x.Helper()
	switch {
	case nth == of/3, nth > 0 && nth%25 == 0:
		x.counts[restart]++
		x.databaseFails()
		x.lab.Database.Restart()
		return true
	case nth == of*2/3:
		x.counts[failover]++
		x.databaseFails()
		x.lab.Database.FailOver()
		return true
	}
	kind := []string{killed, stopped, cutOff, isolated}[(nth+x.random.IntN(2))%4]
	answered := x.answered()
	n := x.victim(answered)
	if n == nil {
		return false
	}
	x.counts[kind]++
	x.mark(answered[n.Name])
	lasts := cutFor
	if kind == stopped {
		lasts = x.sleeps
	}
	lasts = lasts/2 + time.Duration(x.random.Int64N(int64(lasts)))
	var heal func()
	switch kind {
	case killed:
		n.Die()
		lasts = time.Duration(x.random.Int64N(int64(3 * time.Second)))
		heal = func() {
			if err := n.Boot(); err != nil {
				x.Error(err)
			}
		}
	case stopped:
		n.Signal(syscall.SIGSTOP)
		heal = func() { n.Signal(syscall.SIGCONT) }
	case cutOff:
		n.Machine.Cut()
		heal = n.Machine.Mend
	case isolated:
		var peers []string
		for _, other := range x.lab.Nodes {
			if other != n {
				peers = append(peers, other.Machine.Address)
			}
		}
		n.Machine.Isolate(strings.Join(x.lab.Database.Ports[:], ","), peers)
		heal = n.Machine.Join
	}
	x.mu.Lock()
	x.down[n] = true
	x.mu.Unlock()
	x.healing.Go(func() {
		time.Sleep(lasts) // how long the fault lasts is its input
		heal()
		if err := n.AwaitReady(); err != nil {
			x.Errorf("%s, after it was %s for %v: %v", n.Name, kind, lasts, err)
		}
		x.mu.Lock()
		delete(x.down, n)
		x.mu.Unlock()
	})
	return true
}

func (x *nodesTorture) databaseFails() {
	x.mu.Lock()
	x.database = append(x.database, time.Now())
	x.mu.Unlock()
}

// victim is a node that is well, as long as another one is.
func (x *nodesTorture) victim(answered map[string][]*seenQuestion) *harness.Node {
	x.mu.Lock()
	defer x.mu.Unlock()
	var well []*harness.Node
	for _, n := range x.lab.Nodes {
		if !x.down[n] {
			well = append(well, n)
		}
	}
	if len(well) < 2 {
		return nil
	}
	n := well[x.random.IntN(len(well))]
	if x.random.IntN(2) == 0 {
		return n
	}
	// What happens to those who read is what is looked for: one that gives more answers than others.
	return slices.MaxFunc(well, func(a, b *harness.Node) int {
		return cmp.Compare(len(answered[a.Name]),
			len(answered[b.Name]))
	})
}

// answered are the questions that are being answered, by the name of the node that does it.
func (x *nodesTorture) answered() map[string][]*seenQuestion {
	x.Helper()
	owner := map[string]string{}
	for line := range strings.Lines(x.lab.Database.SQL(
		"SELECT s.shard, n.name FROM cluster_shards s JOIN cluster_nodes n ON n.id = s.node WHERE n.alive")) {
		shard, name, _ := strings.Cut(strings.TrimSpace(line), "|")
		owner[shard] = name
	}
	x.told.mu.Lock()
	defer x.told.mu.Unlock()
	by := map[string][]*seenQuestion{}
	for _, q := range x.told.questions {
		if name, ok := owner[fmt.Sprint(cluster.Shard("thread/"+string(q.thread)))]; ok && !q.finished && !q.left && q.broke == "" {
			by[name] = append(by[name], q)
		}
	}
	return by
}

// mark notes with each question that the node which answers it is about to die.
func (x *nodesTorture) mark(questions []*seenQuestion) {
	now := time.Now()
	x.told.mu.Lock()
	defer x.told.mu.Unlock()
	for _, q := range questions {
		q.died = now
	}
}

// keepBooks has the database itself write down, in the order of commits, which machine appended to the journal, and which
// node came and went. It knows nothing of what the nodes say of themselves.
func (x *nodesTorture) keepBooks() {
	x.lab.Database.SQL(`CREATE TABLE books (at bigserial, what text, address text, node text);
CREATE FUNCTION book_append() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO books (what, address) VALUES ('append', host(inet_client_addr()));
	RETURN NULL;
END $$;
CREATE FUNCTION book_node() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		INSERT INTO books (what, address, node) VALUES ('came', split_part(NEW.address, ':', 1), NEW.id);
	ELSIF OLD.alive AND NOT NEW.alive THEN
		INSERT INTO books (what, address, node)
		VALUES (CASE WHEN NEW.left THEN 'left' ELSE 'given up' END, split_part(NEW.address, ':', 1), NEW.id);
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER book_append AFTER INSERT ON journal_events FOR EACH STATEMENT EXECUTE FUNCTION book_append();
CREATE TRIGGER book_node AFTER INSERT OR UPDATE ON cluster_nodes FOR EACH ROW EXECUTE FUNCTION book_node();
INSERT INTO books (what, address, node) SELECT 'came', split_part(address, ':', 1), id FROM cluster_nodes WHERE alive`)
}

// sleepersWroteNothing looks in the books for appends of a machine whose node was gone.
func (x *nodesTorture) sleepersWroteNothing() string {
	x.Helper()
	here := map[string]map[string]bool{} // nodes that are there, by machine: one that was killed is given up after the next came
	appends, givenUp := 0, 0
	for line := range strings.Lines(x.lab.Database.SQL("SELECT at, what, address, node FROM books ORDER BY at")) {
		field := strings.Split(strings.TrimSpace(line), "|")
		switch what, address := field[1], field[2]; what {
		case "append":
			appends++
			if len(here[address]) == 0 {
				x.told.wrong("%s appended to the journal, at %s of the books, and its node was gone", address, field[0])
			}
		case "came":
			if here[address] == nil {
				here[address] = map[string]bool{}
			}
			here[address][field[3]] = true
		case "given up":
			givenUp++
			delete(here[address], field[3])
		case "left":
			delete(here[address], field[3])
		}
	}
	asleep := x.counts[stopped] + x.counts[cutOff] + x.counts[isolated]
	if givenUp < asleep/2 || appends < len(x.told.questions) {
		x.told.wrong("the books have %d appends and %d nodes that were given up, after %d questions and %v", appends, givenUp,
			len(x.told.questions), x.counts)
	}
	return fmt.Sprintf("%d nodes were given up by the others, and none of their machines appended anything (of %d) until it had joined again",
		givenUp, appends)
}

// checkRepositories holds the repositories of both hosts against what was acknowledged.
func (x *nodesTorture) checkRepositories(check *tortureCheck) {
	for _, p := range x.all() {
		if x.remote != nil && p == x.away {
			x.checkRemote(check)
			continue
		}
		check.repository(filepath.Join(check.data, "repos", p.ID+".git"), p, check.pulls(p))
	}
}

// takeOvers says how long it took from the death of a node until readers had the whole of the answers that it was giving,
// and fails the test where that took too long.
func (x *nodesTorture) takeOvers() string {
	var took []time.Duration
	aside, most := 0, time.Duration(0) // where the model was well
	for _, q := range x.told.questions {
		if q.died.IsZero() || q.left {
			continue
		}
		// A model that fails is asked again after a while, or the answer ends there; and nobody can finish a turn without a
		// database.
		faulty := x.brain.turn(q.turn).faults > 0
		away := q.finished && slices.ContainsFunc(x.database, func(at time.Time) bool {
			return at.After(q.died.Add(-5*time.Second)) && at.Before(q.ended)
		})
		d := q.ended.Sub(q.died)
		switch {
		case !q.finished && faulty, q.finished && d > finishedWithin && (faulty || away):
			aside++
		case !q.finished:
			x.told.wrong("question %s: its node died, and its reader did not see its end: %s", q.tag, q.broke)
		case d > finishedWithin:
			late := x.Logf
			if x.kills >= 20 {
				late = x.told.wrong
			}
			late("question %s (%s of %s) was answered whole %v after its node had died at %v, within %v was asked", q.tag, q.turn, q.thread, d,
				q.died.Format(time.TimeOnly), finishedWithin)
		default:
			took = append(took, d)
			if !faulty {
				most = max(most, d)
			}
		}
	}
	if len(took) == 0 {
		const none = "no node died while it gave an answer to its end"
		if x.kills >= 20 { // of a few faults, all can meet nodes that are giving no answer
			x.told.wrong(none)
		}
		return none
	}
	slices.Sort(took)
	return fmt.Sprintf("%d readers saw the whole of an answer whose node died, p50 %v, p99 %v, at most %v after its death, %v where the model did not fail (%d beside: the model broke off permanently, or the database was away too)",
		len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond),
		took[len(took)-1].Round(time.Millisecond), most.Round(time.Millisecond), aside)
}

// keepLogs keeps what the nodes and the database said.
func (x *nodesTorture) keepLogs() {
	dir, err := os.MkdirTemp("", "nodes-logs")
	if err != nil {
		x.Error(err)
		return
	}
	for _, n := range x.lab.Nodes {
		_ = os.WriteFile(filepath.Join(dir, n.Name), []byte(n.Log.String()), 0o600)
	}
	for i := range 2 {
		text, _ := os.ReadFile(filepath.Join(x.lab.Database.Dir, fmt.Sprintf("log%d", i)))
		_ = os.WriteFile(filepath.Join(dir, fmt.Sprintf("database%d", i)), text, 0o600)
	}
	x.Logf("logs: %s", dir)
}
