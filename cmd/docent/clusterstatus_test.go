package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"docent/cmd/docent/commands"
	"docent/cmd/docent/server"
	"docent/persistence/cluster"
)

func TestTheStatusOfNodesIsShown(t *testing.T) {
	t.Parallel()
	var shown []string
	line := func(name, format string, args ...any) { shown = append(shown, name+": "+fmt.Sprintf(format, args...)) }
	commands.PrintCluster(line, server.ClusterStatus(nil))
	if len(shown) != 0 {
		t.Errorf("a server that is alone shows %q", shown)
	}
	commands.PrintCluster(line, server.ClusterStatus(&cluster.Status{Without: 3, LastBeat: 4 * time.Second, Nodes: []cluster.NodeStatus{
		{Node: cluster.Node{Name: "c", Leaving: true}, Ready: true}, {Node: cluster.Node{Name: "a"}, Ready: true, Self: true, Shards: 250},
		{Node: cluster.Node{Name: "b"}}, {Node: cluster.Node{Name: "d"}, Ready: true, Silence: 3}, {Node: cluster.Node{Name: "e"}, Isolated: "a does not reach it"}}}))
	for i, want := range []string{"node a: ready, 250 of 256", "node b: starting", "node c: leaving", "node d: silent", "node e: isolated", ": a does not reach it", "shards: 3",
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
