package nodes

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api/client"
	"docent/bench/lab"
	"docent/internal/backoff"
	"docent/tests/harness"
)

// untilNotReady waits until a server says that it is not ready, and returns how.
func untilNotReady(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		res, err := http.Get(url + "/readyz")
		if err == nil {
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode == http.StatusServiceUnavailable {
				return string(body)
			}
		}
		if backoff.Sleep(ctx, 20*time.Millisecond) != nil {
			t.Fatalf("%s is ready still", url)
		}
	}
}

// innerAddress is where a node of a lab listens to the others.
func innerAddress(n *harness.Node) string { return n.Flags[slices.Index(n.Flags, "--node-listen")+1] }

// accepting listens and does with each connection what take says.
func accepting(t *testing.T, take func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go take(conn)
		}
	}()
	return l.Addr().String()
}

func TestANodeWhoseAddressIsNotItsOwnIsRefused(t *testing.T) {
	t.Parallel()
	l := harness.NewNodes(t, 1, nil, harness.NewDatabase(t, "127.0.0.1", false, false), 1)
	l.Open()
	silent := accepting(t, func(conn net.Conn) {
		t.Cleanup(func() { conn.Close() }) // and never says a word
	})
	others := accepting(t, func(conn net.Conn) { harness.HandOn(conn, innerAddress(l.Nodes[0])) })
	for name, c := range map[string]struct{ address, want string }{
		"nobody":         {harness.OwnAddress(t), "connection refused"},
		"silent":         {silent, "nothing answers there within 2s"},
		"another-node":   {others, "node n1 answers there"},
		"taken":          {innerAddress(l.Nodes[0]), "is the address of node n1 as well"},
		"another-server": {l.Nodes[0].Listen, "n1 does not reach it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &harness.Server{T: t, Data: filepath.Join(t.TempDir(), "data"), Listen: harness.OwnAddress(t),
				Log:   new(harness.LockedBuffer),
				Flags: []string{"--node-name", name, "--node-listen", harness.OwnAddress(t), "--node-address", c.address}}
			if err := s.Launch(); err != nil {
				t.Fatal(err)
			}
			defer s.Kill()
			select {
			case <-s.Ended:
			case <-time.After(5 * time.Minute):
				t.Fatalf("it does not end:\n%s", s.Log)
			}
			if code := s.Cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("it ended with status %d, want 1", code)
			}
			for _, want := range []string{c.address, c.want, "node_address"} {
				if !strings.Contains(s.Log.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, s.Log)
				}
			}
		})
	}
}

// TestReadyMeansThatWritesAreTaken has the database refuse writes, as after a failover to a replica.
func TestReadyMeansThatWritesAreTaken(t *testing.T) {
	t.Parallel()
	for _, many := range []int{1, 2} { // a server of its own, with the catalog alone in the database, and nodes
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			db := harness.NewDatabase(t, "127.0.0.1", false, false)
			var l *harness.Nodes
			if many == 1 {
				l = harness.NewNodes(t, 1, nil, nil, 1, "--catalog-dsn", db.DSN())
			} else {
				l = harness.NewNodes(t, many, nil, db, 1)
			}
			l.Open()
			db.SQL("ALTER SYSTEM SET default_transaction_read_only = on")
			db.SQL("SELECT pg_reload_conf()")
			for _, n := range l.Nodes {
				untilNotReady(t, n.URL)
			}
			db.SQL("ALTER SYSTEM SET default_transaction_read_only = off")
			db.SQL("SELECT pg_reload_conf()")
			since := time.Now()
			for _, n := range l.Nodes {
				if err := n.AwaitReady(); err != nil {
					t.Error(err)
				}
			}
			t.Logf("ready again after %v", time.Since(since))
		})
	}
}

// TestANodeThatIsCutOffFromItsPeersAloneHandsOverAndForwardsGoOn cuts the ways between one machine and the others, and
// not the one to the database.
func TestANodeThatIsCutOffFromItsPeersAloneHandsOverAndForwardsGoOn(t *testing.T) {
	network := harness.NewNetwork(t)
	db := harness.NewDatabase(t, network.Address(1), false, false)
	l := harness.NewNodes(t, 3, network, db, 1)
	l.Open()
	p := harness.NewProject(t, l.Nodes[0].Data, "harbour", harness.WriteFiles(t, harness.Harbour), "--limit-key-month", harness.Plentiful, "--limit-org-hour",
		harness.Plentiful, "--limit-ip-day", harness.Plentiful)
	ask := func(n *harness.Node, thread string) client.Answer {
		t.Helper()
		a, err := n.Client(p.Assistant).Ask(t.Context(), client.Question{Domain: p.Domain, Caller: "ann", Thread: thread,
			Text: "When does the ferry leave?"}, io.Discard)
		if err != nil {
			t.Fatalf("%s: %v\n%s", n.Name, err, l.Logs())
		}
		return a
	}
	var threads []string
	for _, n := range l.Nodes {
		threads = append(threads, ask(n, "").ThreadID)
	}
	lone := l.Nodes[2]
	lone.Machine.Part([]string{l.Nodes[0].Machine.Address, l.Nodes[1].Machine.Address})
	if said := untilNotReady(t, lone.URL); !strings.Contains(lone.Log.String(), "handing over its work") {
		t.Errorf("it is not ready, and not for being isolated: %s\n%s", said, lone.Log)
	}
	for _, n := range l.Nodes[:2] {
		for _, thread := range threads { // one was run by the node that is cut off
			ask(n, thread)
		}
		if _, err := lab.Get(t.Context(), n.URL+"/readyz"); err != nil {
			t.Errorf("%s is not ready: %v", n.Name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		out := harness.Docent(t, "status", "--data", l.Nodes[0].Data)
		if strings.Contains(out, "isolated, 0 of 256 shards") {
			break
		}
		if backoff.Sleep(ctx, 100*time.Millisecond) != nil {
			t.Fatalf("the status does not tell of it:\n%s", out)
		}
	}
	lone.Machine.Join()
	if err := lone.AwaitReady(); err != nil {
		t.Error(err)
	}
	ask(lone, threads[0])
	if t.Failed() {
		t.Log(l.Logs())
	}
}
