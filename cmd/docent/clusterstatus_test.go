package main

import (
	"fmt"
	"strings"
	"testing"

	"docent/cmd/docent/commands"
	"docent/internal/health"
	"docent/persistence/cluster"
)

func TestTheStatusOfNodesIsShown(t *testing.T) {
	t.Parallel()
	var shown []string
	line := func(name, format string, args ...any) { shown = append(shown, name+": "+fmt.Sprintf(format, args...)) }
	commands.PrintCluster(line, cluster.Single{}.Status())
	if len(shown) != 0 {
		t.Errorf("a server that is alone shows %q", shown)
	}
	commands.PrintCluster(line, &health.Cluster{Without: 3, LastBeat: 4, Nodes: []health.Node{
		{Name: "a", State: "ready", Self: true, Shards: 250}, {Name: "b", State: "starting"}, {Name: "c", State: "leaving"},
		{Name: "d", State: "silent"}, {Name: "e", State: "isolated", Reason: "a does not reach it"}}})
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
