package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/api/client"
	"docent/api/stream"
	"docent/bench"
	"docent/bench/report"
	"docent/persistence/cluster"
	"docent/tests/harness"
)

// TestFiguresOfNodes measures what several nodes on one database do and cost, beside a server on its own files, in turn.
// scripts/measure-nodes runs it.
func TestFiguresOfNodes(t *testing.T) {
	rounds := harness.Atoi(os.Getenv("DOCENT_TEST_FIGURES"))
	if rounds == 0 {
		t.Skip("measures for minutes: scripts/measure-nodes has it run")
	}
	turns := map[string][]turnFigures{}
	kinds := []string{"one server on bbolt", "1 node on PostgreSQL", "2 nodes on PostgreSQL", "3 nodes on PostgreSQL"}
	for round := range rounds {
		for many, kind := range kinds {
			t.Run(fmt.Sprintf("round %d, %s", round+1, kind), func(t *testing.T) {
				turns[kind] = append(turns[kind], measureTurns(t, many))
			})
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n| | turns/s | p50 | p99 | one after the other: p50 | p99 | CPU of a turn, docent | PostgreSQL | both |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, kind := range kinds {
		if len(turns[kind]) == 0 {
			continue // it was left out by -run, or failed
		}
		f := func(get func(turnFigures) float64) float64 {
			var all []float64
			for _, r := range turns[kind] {
				all = append(all, get(r))
			}
			slices.Sort(all)
			return all[len(all)/2]
		}
		fmt.Fprintf(&b, "| %s | %.0f | %.1f ms | %.1f ms | %.2f ms | %.2f ms | %.2f ms | %.2f ms | %.2f ms |\n", kind,
			f(func(r turnFigures) float64 { return r.rate }), f(func(r turnFigures) float64 { return ms(r.p50) }),
			f(func(r turnFigures) float64 { return ms(r.p99) }), f(func(r turnFigures) float64 { return ms(r.alone50) }),
			f(func(r turnFigures) float64 { return ms(r.alone99) }), f(func(r turnFigures) float64 { return ms(r.docent) }),
			f(func(r turnFigures) float64 { return ms(r.postgres) }),
			f(func(r turnFigures) float64 { return ms(r.docent + r.postgres) }))
	}
	t.Run("forwarded", func(t *testing.T) { b.WriteString(measureForwarding(t)) })
	t.Run("taken over", func(t *testing.T) { b.WriteString(measureTakeOver(t, 5*rounds)) })
	t.Log(b.String())
	if name := os.Getenv("DOCENT_TEST_REPORT"); name != "" {
		writeReport(t, name, kinds, turns)
	}
}

// writeReport keeps the turns as a report of docent bench, from which the page on several nodes has its figures.
func writeReport(t *testing.T, name string, kinds []string, turns map[string][]turnFigures) {
	r := report.Report{Name: "Several nodes", About: "Whole turns of the built-in model, asked of all nodes by 32 callers.",
		Made: time.Now().UTC().Truncate(time.Second), Commit: os.Getenv("DOCENT_TEST_COMMIT"), Command: "make measure-nodes",
		Machine: report.ThisMachine()}
	r.Machine.Shared = true
	for many, kind := range kinds {
		for round, f := range turns[kind] {
			n := float64(f.turns)
			r.Results = append(r.Results, bench.Result{Scenario: "nodes", Target: "docent", Load: kind, Size: float64(many), Round: round + 1,
				Asked: f.turns, Completed: f.turns, Elapsed: n / f.rate, Metered: true, Server: bench.Usage{CPU: n * f.docent.Seconds()},
				Latencies: map[string]bench.Latency{"whole": {Count: int64(f.turns), P50: ms(f.p50), P99: ms(f.p99)}},
				Figures:   map[string]float64{"cpu.postgres": ms(f.postgres)}})
		}
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

type turnFigures struct {
	turns                      int
	rate                       float64
	p50, p99, alone50, alone99 time.Duration
	docent, postgres           time.Duration // processor time of a turn
}

// measuredNodes are many nodes on PostgreSQL, which waits for the disk; none: a server on its own files.
func measuredNodes(t *testing.T, many int, text string, flags ...string) (*harness.Nodes, harness.Project) {
	t.Helper()
	var db *harness.Database
	if many > 0 {
		db = harness.NewDatabase(t, "127.0.0.1", false, true)
	}
	l := harness.NewNodes(t, max(many, 1), nil, db, 1, "--config", harness.SettingsFile(t, "log_level = \"warn\"\n"+text))
	l.Open()
	p := harness.NewProject(t, l.Nodes[0].Data, "harbour", harness.WriteFiles(t, harness.Harbour), append(flags,
		"--limit-key-month", harness.Plentiful,
		"--limit-org-hour", harness.Plentiful, "--limit-ip-day", harness.Plentiful)...)
	return l, p
}

var measuring = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: time.Minute}

func readerOf(n *harness.Node, p harness.Project) *client.Client {
	return &client.Client{Base: n.URL, Key: p.Assistant, HTTP: measuring}
}

func measureTurns(t *testing.T, many int) (f turnFigures) {
	l, p := measuredNodes(t, many, "")
	load := func(clients int, lasts time.Duration) (took []time.Duration) {
		var mu sync.Mutex
		var all sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		for c := range clients {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(c), 9))
				for ctx.Err() == nil {
					n := l.Nodes[random.IntN(len(l.Nodes))]
					began := time.Now()
					if _, err := harness.Ask(t.Context(), readerOf(n, p), p, "", "When does the ferry leave?"); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			})
		}
		all.Wait()
		slices.Sort(took)
		return took
	}
	load(8, 3*time.Second) // to warm up
	alone := load(1, 4*time.Second)
	docent, postgres := processorTimes(l)
	began := time.Now()
	took := load(32, 8*time.Second)
	after, afterPostgres := processorTimes(l)
	if t.Failed() || len(took) == 0 {
		t.Fatal(l.Logs())
	}
	n := time.Duration(len(took))
	return turnFigures{turns: len(took), rate: float64(len(took)) / time.Since(began).Seconds(), p50: took[len(took)/2], p99: took[len(took)*99/100],
		alone50: alone[len(alone)/2], alone99: alone[len(alone)*99/100],
		docent: (after - docent) / n, postgres: (afterPostgres - postgres) / n}
}

// processorTimes are what the nodes have used, and the database with all its processes.
func processorTimes(l *harness.Nodes) (docent, postgres time.Duration) {
	l.Helper()
	for _, n := range l.Nodes {
		own, _, _ := processTimes(l, n.Cmd.Process.Pid)
		docent += own
	}
	if l.Database == nil {
		return docent, 0
	}
	text, err := os.ReadFile(filepath.Join(l.Database.Data(l.Database.Primary), "postmaster.pid"))
	if err != nil {
		l.Fatal(err)
	}
	postmaster, _, _ := strings.Cut(string(text), "\n")
	own, ended, _ := processTimes(l, harness.Atoi(postmaster))
	postgres = own + ended
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if own, _, parent := processTimes(l, harness.Atoi(filepath.Base(dir))); parent == harness.Atoi(postmaster) {
			postgres += own
		}
	}
	return docent, postgres
}

// processTimes are the processor time of a process and of its children that have ended, and its parent.
func processTimes(t testing.TB, pid int) (own, ended time.Duration, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, 0 // it has ended
	}
	field := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	tick := func(i int) time.Duration {
		n, _ := strconv.Atoi(field[i])
		return time.Duration(n) * 10 * time.Millisecond // USER_HZ is 100 everywhere
	}
	return tick(11) + tick(12), tick(13) + tick(14), harness.Atoi(field[1])
}

// ownerOf is the node that runs a thread, and another one.
func ownerOf(l *harness.Nodes, id api.ThreadID) (owner, other *harness.Node) {
	l.Helper()
	name := l.Database.SQL(fmt.Sprintf("SELECT n.name FROM cluster_shards s JOIN cluster_nodes n ON n.id = s.node WHERE s.shard = %d",
		cluster.Shard("thread/"+string(id))))
	for _, n := range l.Nodes {
		if n.Name == name {
			owner = n
		} else {
			other = n
		}
	}
	if owner == nil || other == nil {
		l.Fatalf("thread %s is run by %q", id, name)
	}
	return owner, other
}

// askIn asks in a thread, and gives the time to the first event and to the end.
func askIn(ctx context.Context, n *harness.Node, p harness.Project, id api.ThreadID) (thread api.ThreadID, first, whole time.Duration, err error) {
	body := map[string]any{"fp": "anonymous", "messages": []any{map[string]any{"role": "user", "content": "When does the ferry leave?"}}}
	if id != "" {
		body["threadId"] = id
	}
	began := time.Now()
	resp, err := readerOf(n, p).Do(ctx, http.MethodPost, "/discovery/v2/assistant/"+p.Domain+"/message", body)
	if err != nil {
		return "", 0, 0, err
	}
	defer resp.Body.Close()
	decoder := stream.NewDecoder(stream.UIMessages, resp.Body)
	for {
		part, err := decoder.Next()
		if err != nil {
			return "", 0, 0, err
		}
		if first == 0 {
			first = time.Since(began)
		}
		if part.Kind == stream.Finish {
			_, err = io.Copy(io.Discard, resp.Body)
			return api.ThreadID(resp.Header.Get("X-Thread-Id")), first, time.Since(began), err
		}
	}
}

// measureForwarding asks in the same threads at the node that runs them and at another one, in turn.
func measureForwarding(t *testing.T) string {
	const parts, threads, each = 400, 20, 10
	l, p := measuredNodes(t, 3, fmt.Sprintf("stream_pace = \"0s\"\n[models.quick]\nprovider = \"scripted\"\nparts = %d\nrate = 2000\n", parts))
	quick := harness.NewProject(t, l.Nodes[0].Data, "quick", harness.WriteFiles(t, harness.Harbour), "--model", "quick",
		"--limit-key-month", harness.Plentiful, "--limit-org-hour", harness.Plentiful, "--limit-ip-day", harness.Plentiful)
	var b strings.Builder
	for _, project := range []harness.Project{p, quick} {
		var first [2][]time.Duration
		var used [2]time.Duration
		for range threads {
			id, _, _, err := askIn(t.Context(), l.Nodes[0], project, "")
			if err != nil {
				t.Fatal(err)
			}
			owner, other := ownerOf(l, id)
			for i := range 2 * each {
				before, _ := processorTimes(l)
				_, f, _, err := askIn(t.Context(), []*harness.Node{owner, other}[i%2], project, id)
				if err != nil {
					t.Fatal(err)
				}
				after, _ := processorTimes(l)
				first[i%2] = append(first[i%2], f)
				used[i%2] += after - before
			}
		}
		p50 := func(i int) float64 {
			slices.Sort(first[i])
			return ms(first[i][len(first[i])/2])
		}
		p99 := func(i int) float64 { return ms(first[i][len(first[i])*99/100]) }
		n := time.Duration(threads * each)
		fmt.Fprintf(&b, "\nfirst event of %s (%d turns each): at the node that runs the thread p50 %.2f ms, p99 %.2f ms; forwarded p50 %.2f ms, p99 %.2f ms: %+.2f ms. CPU of a turn on all nodes: %.2f ms and %.2f ms",
			project.ID, n, p50(0), p99(0), p50(1), p99(1), p50(1)-p50(0), ms(used[0]/n), ms(used[1]/n))
		if project.ID == "quick" {
			fmt.Fprintf(&b, ", %.1f µs more for each of %d parts that was flushed by itself", float64(used[1]-used[0])/float64(n)/parts/1000, parts)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// measureTakeOver kills the node that gives answers, and measures when their readers go on at another one.
func measureTakeOver(t *testing.T, deaths int) string {
	const streams = 10
	l, p := measuredNodes(t, 3, "[models.slow]\nprovider = \"scripted\"\nparts = 40\nrate = 20\n", "--model", "slow")
	var mu sync.Mutex
	var took []time.Duration
	for death := range deaths {
		n := l.Nodes[death%3]
		others := []*harness.Node{l.Nodes[(death+1)%3], l.Nodes[(death+2)%3]}
		var begun, all sync.WaitGroup
		var died time.Time // set before n dies
		begun.Add(streams)
		for s := range streams {
			all.Go(func() {
				resp, err := readerOf(n, p).Do(t.Context(), http.MethodPost, "/discovery/v2/assistant/"+p.Domain+"/message", map[string]any{
					"fp": "anonymous", "messages": []any{map[string]any{"role": "user", "content": "Tell me all."}}})
				begun.Done()
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := harness.ReadAnswer(resp); err == nil {
					t.Error("a stream outlived its node")
					return
				}
				d, err := resumed(t.Context(), others[s%2], p, resp.Header.Get("X-Thread-Id"), died)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			})
		}
		begun.Wait()
		died = time.Now()
		n.Die()
		all.Wait()
		if err := errors.Join(n.Boot(), n.AwaitReady()); err != nil {
			t.Fatal(err)
		}
		awaitShare(l, n)
	}
	if t.Failed() || len(took) == 0 {
		t.Fatal(l.Logs())
	}
	slices.Sort(took)
	return fmt.Sprintf("\n%d streams of %d nodes that were killed: the first event on another node p50 %.0f ms, p99 %.0f ms, at most %.0f ms after the death\n",
		len(took), deaths, ms(took[len(took)/2]), ms(took[len(took)*99/100]), ms(took[len(took)-1]))
}

// awaitShare waits until a node that has joined runs its share of shards.
func awaitShare(l *harness.Nodes, n *harness.Node) {
	l.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		got := harness.Atoi(l.Database.SQL(fmt.Sprintf("SELECT count(*) FROM cluster_shards s JOIN cluster_nodes n ON n.id = s.node WHERE n.name = '%s' AND n.alive", n.Name)))
		if got >= cluster.Shards/len(l.Nodes) {
			return
		}
		time.Sleep(100 * time.Millisecond) // between two looks
	}
	l.Fatalf("%s does not get its share:\n%s", n.Name, l.Logs())
}

// resumed waits for the first event of a stream that goes on elsewhere, and reads it to its end.
func resumed(ctx context.Context, at *harness.Node, p harness.Project, id string, died time.Time) (time.Duration,
	error) {
	for {
		resp, err := readerOf(at, p).Do(ctx, http.MethodGet, "/discovery/v2/assistant/"+p.Domain+"/message/"+id+"/stream", nil)
		var said *client.Error
		if errors.As(err, &said) && said.Status == http.StatusServiceUnavailable && time.Since(died) < time.Minute {
			time.Sleep(20 * time.Millisecond) // as a client that is turned away
			continue
		}
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		decoder := stream.NewDecoder(stream.UIMessages, resp.Body)
		if _, err := decoder.Next(); err != nil {
			return 0, err
		}
		took := time.Since(died)
		for {
			part, err := decoder.Next()
			if err != nil || part.Kind == stream.Finish {
				return took, err
			}
		}
	}
}
