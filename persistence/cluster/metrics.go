package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	nodesFigure = prometheus.NewDesc("docent_cluster_nodes",
		"Nodes that are there, as this one sees it. Fewer than were started means that the others carry the load.", nil, nil)
	shardsFigure = prometheus.NewDesc("docent_cluster_shards",
		"Shards that this node runs, of 256. Without an owner they sum up to less over all nodes.", nil, nil)
	takeOversFigure = prometheus.NewDesc("docent_cluster_takeovers_total",
		"Nodes that this one gave up because they showed no life.", nil, nil)
	unreachedFigure = prometheus.NewDesc("docent_cluster_unreachable_nodes",
		"Nodes that this one does not reach at their addresses, or itself. Above 0 for long, an address or the network is wrong.", nil, nil)
	isolatedFigure = prometheus.NewDesc("docent_cluster_isolated",
		"1 while this node runs nothing and is not ready, since it and the others do not reach each other.", nil, nil)
	beatFigure = prometheus.NewDesc("docent_cluster_last_beat_seconds",
		"Time since the last sign of life of this node that arrived in the database. Above 2.5 s it does not act on what it runs.", nil, nil)
)

// Describe is of prometheus.Collector.
func (m *Members) Describe(c chan<- *prometheus.Desc) {
	c <- nodesFigure
	c <- shardsFigure
	c <- takeOversFigure
	c <- beatFigure
	c <- unreachedFigure
	c <- isolatedFigure
}

// Collect is of prometheus.Collector.
func (m *Members) Collect(c chan<- prometheus.Metric) {
	s := m.Status()
	c <- prometheus.MustNewConstMetric(nodesFigure, prometheus.GaugeValue, float64(len(s.Nodes)))
	c <- prometheus.MustNewConstMetric(shardsFigure, prometheus.GaugeValue, float64(m.runs()))
	c <- prometheus.MustNewConstMetric(takeOversFigure, prometheus.CounterValue, float64(m.takes.Load()))
	c <- prometheus.MustNewConstMetric(beatFigure, prometheus.GaugeValue, s.LastBeat.Seconds())
	unreached, isolated := m.unreached()
	c <- prometheus.MustNewConstMetric(unreachedFigure, prometheus.GaugeValue, float64(unreached))
	c <- prometheus.MustNewConstMetric(isolatedFigure, prometheus.GaugeValue, float64(isolated))
}

// unreached is how many nodes this one does not reach, and whether it is isolated, as a number.
func (m *Members) unreached() (nodes, isolated int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.contacts {
		if c.why != "" {
			nodes++
		}
	}
	if m.isolated != "" {
		isolated = 1
	}
	return nodes, isolated
}

// runs is how many shards run here.
func (m *Members) runs() (n int) {
	for shard := range m.acts {
		if m.here(shard) {
			n++
		}
	}
	return n
}

// A Status is what an operator sees of a cluster, from one of its nodes.
type Status struct {
	Nodes    []NodeStatus
	Without  int           // shards that no node runs
	LastBeat time.Duration // since this node's last sign of life that arrived in the database
	Acts     bool          // whether this node acts on what it runs; it does not while it cannot reach the database
}

// A NodeStatus is one of the nodes.
type NodeStatus struct {
	Node
	Self     bool
	Ready    bool   // it takes shards
	Shards   int    // that it runs
	Silence  int    // beats in a row that this node has missed of it
	Isolated string // why it runs nothing though it beats
}

// Status is how the cluster stands, as this node sees it.
func (m *Members) Status() *Status {
	v := m.view.Load()
	shards := map[string]int{}
	for _, id := range v.owner {
		shards[id]++
	}
	s := &Status{Acts: m.fresh() && !m.gone.Load(), LastBeat: m.sinceBeat(), Without: Shards}
	for _, n := range v.members {
		s.Without -= shards[n.ID]
		s.Nodes = append(s.Nodes, NodeStatus{
			Node: n.node(), Self: n.ID == m.config.ID, Ready: n.Ready, Shards: shards[n.ID], Silence: n.Silence,
			Isolated: v.reach[n.ID].Isolated,
		})
	}
	return s
}
