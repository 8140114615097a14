package cluster

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"docent/internal/health"
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
	c <- prometheus.MustNewConstMetric(beatFigure, prometheus.GaugeValue, s.LastBeat)
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

// Status is how the cluster stands, as this node sees it.
func (m *Members) Status() *health.Cluster {
	v := m.view.Load()
	shards := map[string]int{}
	for _, id := range v.owner {
		shards[id]++
	}
	c := &health.Cluster{Acts: m.fresh() && !m.gone.Load(), LastBeat: m.sinceBeat().Seconds(), Without: Shards}
	for _, n := range v.members {
		c.Without -= shards[n.ID]
		isolated := v.reach[n.ID].Isolated
		c.Nodes = append(c.Nodes, health.Node{Name: n.Name, Address: n.Address, Version: n.Version, Started: n.Started.UTC(),
			Self: n.ID == m.config.ID, State: n.state(isolated), Reason: isolated, Shards: shards[n.ID]})
	}
	slices.SortFunc(c.Nodes, func(a, b health.Node) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func (n member) state(isolated string) string {
	switch {
	case n.Silence > 1:
		return "silent"
	case n.Leaving:
		return "leaving"
	case isolated != "":
		return "isolated"
	case !n.Ready:
		return "starting"
	}
	return "ready"
}
