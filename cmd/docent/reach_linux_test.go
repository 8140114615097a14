package main

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
func innerAddress(n *node) string { return n.flags[slices.Index(n.flags, "--node-listen")+1] }

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
	l := newNodesLab(t, 1, nil, newDatabase(t, "127.0.0.1", false, false), 1)
	l.open()
	silent := accepting(t, func(conn net.Conn) {
		t.Cleanup(func() { conn.Close() }) // and never says a word
	})
	others := accepting(t, func(conn net.Conn) { handOn(conn, innerAddress(l.nodes[0])) })
	for name, c := range map[string]struct{ address, want string }{
		"nobody":         {addressFor(t), "connection refused"},
		"silent":         {silent, "nothing answers there within 2s"},
		"another-node":   {others, "node n1 answers there"},
		"taken":          {innerAddress(l.nodes[0]), "is the address of node n1 as well"},
		"another-server": {l.nodes[0].listen, "n1 does not reach it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &testServer{t: t, data: filepath.Join(t.TempDir(), "data"), listen: addressFor(t), log: new(lockedBuffer),
				flags: []string{"--node-name", name, "--node-listen", addressFor(t), "--node-address", c.address}}
			if err := s.launch(); err != nil {
				t.Fatal(err)
			}
			defer s.kill()
			select {
			case <-s.ended:
			case <-time.After(5 * time.Minute):
				t.Fatalf("it does not end:\n%s", s.log)
			}
			if code := s.cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("it ended with status %d, want 1", code)
			}
			for _, want := range []string{c.address, c.want, "node_address"} {
				if !strings.Contains(s.log.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, s.log)
				}
			}
		})
	}
}

// TestReadyMeansThatWritesAreTaken has the database refuse writes, as after a failover to a replica.
func TestReadyMeansThatWritesAreTaken(t *testing.T) {
	t.Parallel()
	for _, many := range []int{1, 2} { // a server of its own, with the catalogue alone in the database, and nodes
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			db := newDatabase(t, "127.0.0.1", false, false)
			var l *nodesLab
			if many == 1 {
				l = newNodesLab(t, 1, nil, nil, 1, "--catalog-dsn", db.dsn())
			} else {
				l = newNodesLab(t, many, nil, db, 1)
			}
			l.open()
			db.sql("ALTER SYSTEM SET default_transaction_read_only = on")
			db.sql("SELECT pg_reload_conf()")
			for _, n := range l.nodes {
				untilNotReady(t, n.url)
			}
			db.sql("ALTER SYSTEM SET default_transaction_read_only = off")
			db.sql("SELECT pg_reload_conf()")
			since := time.Now()
			for _, n := range l.nodes {
				if err := n.awaitReady(); err != nil {
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
	network := newNetwork(t)
	db := newDatabase(t, network.address(1), false, false)
	l := newNodesLab(t, 3, network, db, 1)
	l.open()
	p := newTestProject(t, l.nodes[0].data, "harbour", writeFiles(t, harbour), "--limit-key-month", plentiful, "--limit-org-hour",
		plentiful, "--limit-ip-day", plentiful)
	ask := func(n *node, thread string) client.Answer {
		t.Helper()
		a, err := n.client(p.assistant).Ask(t.Context(), client.Question{Domain: p.domain, Caller: "ann", Thread: thread,
			Text: "When does the ferry leave?"}, io.Discard)
		if err != nil {
			t.Fatalf("%s: %v\n%s", n.name, err, l.logs())
		}
		return a
	}
	var threads []string
	for _, n := range l.nodes {
		threads = append(threads, ask(n, "").ThreadID)
	}
	lone := l.nodes[2]
	lone.machine.part([]string{l.nodes[0].machine.address, l.nodes[1].machine.address})
	if said := untilNotReady(t, lone.url); !strings.Contains(lone.log.String(), "it hands over what it runs") {
		t.Errorf("it is not ready, and not for being isolated: %s\n%s", said, lone.log)
	}
	for _, n := range l.nodes[:2] {
		for _, thread := range threads { // one was run by the node that is cut off
			ask(n, thread)
		}
		if _, err := lab.Get(t.Context(), n.url+"/readyz"); err != nil {
			t.Errorf("%s is not ready: %v", n.name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		out := docent(t, "status", "--data", l.nodes[0].data)
		if strings.Contains(out, "isolated, 0 of 256 shards") {
			break
		}
		if backoff.Sleep(ctx, 100*time.Millisecond) != nil {
			t.Fatalf("the status does not tell of it:\n%s", out)
		}
	}
	lone.machine.join()
	if err := lone.awaitReady(); err != nil {
		t.Error(err)
	}
	ask(lone, threads[0])
	if t.Failed() {
		t.Log(l.logs())
	}
}
