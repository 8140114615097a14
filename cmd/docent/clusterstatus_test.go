package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"docent/cluster"
	"docent/health"
)

func TestTheStatusOfNodesIsShown(t *testing.T) {
	t.Parallel()
	var shown []string
	line := func(name, format string, args ...any) { shown = append(shown, name+": "+fmt.Sprintf(format, args...)) }
	printCluster(line, clusterStatus(nil))
	if len(shown) != 0 {
		t.Errorf("a server that is alone shows %q", shown)
	}
	printCluster(line, clusterStatus(&cluster.Status{Without: 3, LastBeat: 4 * time.Second, Nodes: []cluster.NodeStatus{
		{Node: cluster.Node{Name: "c", Leaving: true}, Ready: true}, {Node: cluster.Node{Name: "a"}, Ready: true, Self: true, Shards: 250},
		{Node: cluster.Node{Name: "b"}}, {Node: cluster.Node{Name: "d"}, Ready: true, Silence: 3}}}))
	for i, want := range []string{"node a: ready, 250 of 256", "node b: starting", "node c: leaving", "node d: silent", "shards: 3",
		"database: out of reach since 4.0 s"} {
		if i >= len(shown) || !strings.HasPrefix(shown[i], want) {
			t.Fatalf("shown is %q, want %q at %d", shown, want, i)
		}
	}
	if strings.Contains(shown[0], ", at ") {
		t.Errorf("a node without an address shows %q", shown[0])
	}
	if !strings.Contains(shown[0], "this one") || strings.Contains(shown[1], "this one") {
		t.Errorf("shown is %q", shown)
	}
}

func TestTheDoctorKnowsWhatNodesNeed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		commit     string
		most, used int
		pooled     bool
		says       string
	}{
		{"on", 100, 30, false, "keeps what it acknowledges"},
		{"remote_apply", 100, 30, false, "keeps what it acknowledges"},
		{"off", 100, 30, false, "synchronous_commit is off"},
		{"local", 100, 30, false, "synchronous_commit is local"},
		{"on", 100, 80, false, "20 of 100 connections are free"},
		{"on", 100, 30, true, "a pooler gives each transaction another session"},
	} {
		if found := judgeDatabase(c.commit, c.most, c.used, c.pooled); len(found) != 1 || !strings.Contains(fmt.Sprint(found), c.says) {
			t.Errorf("%+v: %v", c, found)
		}
	}
	there, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	const gone = "127.0.0.1:1" // where nobody listens; one that was closed somebody else may get
	found := judgeNodes(t.Context(), []health.Node{{Name: "a", Self: true, Version: "1"}, {Name: "b", Version: "1", Address: there.Addr().String()},
		{Name: "c", Version: "2", Address: gone}})
	var says []string
	for _, f := range found {
		says = append(says, fmt.Sprint(f))
	}
	if len(found) != 4 || !strings.Contains(says[1], "can be reached") || !strings.Contains(says[2], "cannot be reached") ||
		!strings.Contains(says[3], "2 versions") {
		t.Errorf("found are %q", says)
	}
}
