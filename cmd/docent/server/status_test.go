package server

import (
	"testing"
	"time"

	"docent/persistence/cluster"
)

func TestEachNodeHasOneState(t *testing.T) {
	t.Parallel()
	if c := clusterStatus(nil); c != nil {
		t.Errorf("a server that is alone has %+v", c)
	}
	c := clusterStatus(&cluster.Status{Without: 3, LastBeat: 4 * time.Second, Nodes: []cluster.NodeStatus{
		{Node: cluster.Node{Name: "c", Leaving: true}, Ready: true}, {Node: cluster.Node{Name: "a"}, Ready: true, Self: true, Shards: 250},
		{Node: cluster.Node{Name: "b"}}, {Node: cluster.Node{Name: "d"}, Ready: true, Silence: 3},
		{Node: cluster.Node{Name: "e"}, Isolated: "a does not reach it"}}})
	for i, want := range []string{"a ready", "b starting", "c leaving", "d silent", "e isolated"} {
		if got := c.Nodes[i].Name + " " + c.Nodes[i].State; got != want {
			t.Errorf("node %d is %s, want %s", i, got, want)
		}
	}
	if c.Without != 3 || c.LastBeat != 4 || c.Nodes[0].Shards != 250 || !c.Nodes[0].Self || c.Nodes[4].Reason != "a does not reach it" {
		t.Errorf("%+v", c)
	}
}
