package commands

import (
	"fmt"
	"strings"
	"testing"

	"docent/internal/health"
)

func TestTheStatusOfNodesIsShown(t *testing.T) {
	t.Parallel()
	var shown []string
	line := func(name, format string, args ...any) { shown = append(shown, name+": "+fmt.Sprintf(format, args...)) }
	printCluster(line, nil)
	if len(shown) != 0 {
		t.Errorf("a server that is alone shows %q", shown)
	}
	printCluster(line, &health.Cluster{Without: 3, LastBeat: 4, Nodes: []health.Node{
		{Name: "a", State: "ready", Self: true, Shards: 250},
		{Name: "e", State: "isolated", Reason: "a does not reach it", Address: "10.0.0.5:8080"}}})
	for i, want := range []string{"node a: ready, 250 of 256", "node e: isolated", ": a does not reach it", "shards: 3",
		"database: out of reach since 4.0 s"} {
		if i >= len(shown) || !strings.HasPrefix(shown[i], want) {
			t.Fatalf("shown is %q, want %q at %d", shown, want, i)
		}
	}
	if strings.Contains(shown[0], ", at ") || !strings.Contains(shown[1], ", at 10.0.0.5:8080") {
		t.Errorf("shown is %q", shown)
	}
	if !strings.Contains(shown[0], "this one") || strings.Contains(shown[1], "this one") {
		t.Errorf("shown is %q", shown)
	}
}

func TestTheStatusShowsWhatIsCollected(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	err := printStatus(&printed, health.Status{Sources: []health.Source{{Project: "tea", Label: "manual", Kind: "web", State: "read now"}}})
	if err != nil || !strings.Contains(printed.String(), "manual of tea (web): read now") {
		t.Errorf("%v\n%s", err, &printed)
	}
}
