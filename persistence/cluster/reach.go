package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docent/internal/background"
)

// A node may beat in the database and still be out of reach of the others. So each node asks the others, once a beat
// and at their addresses, who they are, and writes into the database which of them it reaches when that changes. From
// these rows every node reads the same: which nodes have to run nothing so that all others reach each other. Such a
// node is isolated. It says itself that it takes no shards, by which the others take over what it ran. See decision
// 0056.

const (
	probeBeats    = 2   // how long a probe waits for its answer, in beats
	probesLost    = 5   // that fail in a row: the node is out of reach. A process may stand still for as long as two take.
	probesFound   = 5   // that succeed in a row: it is in reach again
	looksIsolated = 3   // in a row that find this node isolated: what others find by then is there
	looksBack     = 10  // in a row that find it in reach again
	maxLooksBack  = 320 // the same, for a node that was isolated again and again
	steadyBeats   = 600 // without being isolated, after which what was before does not count
	proveBeats    = 60  // for which a node that joins waits for what the others find
	silentPeer    = 3   // looks at a counter that stands still: nobody waits for what this node finds
	maxWhy        = 200 // bytes of a reason
)

// A contact is what this node has found of one node.
type contact struct {
	known  bool   // reached and why count
	why    string // it is not reached; "" if it is
	streak int    // probes in a row that contradict this
}

// took takes in how a probe ended, and reports whether that changed what counts.
func (c *contact) took(why string) bool {
	if c.known && (c.why == "") == (why == "") {
		c.streak = 0
		return false
	}
	c.streak++
	enough := probesFound
	switch {
	case why != "":
		enough = probesLost
	case !c.known:
		enough = 1
	}
	if c.streak < enough {
		return false
	}
	*c = contact{known: true, why: why}
	return true
}

// A standing is what a node says of the others and of itself.
type standing struct {
	Sees     map[string]string `json:"sees"`     // by id: why that node is not reached, "" if it is
	Isolated string            `json:"isolated"` // why this one runs nothing
}

// probe asks all nodes who they are, until the node ends.
func (m *Members) probe() {
	for m.config.Probe != nil && m.ctx.Err() == nil {
		next := time.NewTimer(m.config.Beat)
		m.probeAll()
		m.untilProbe(next.C)
		next.Stop()
	}
}

// untilProbe waits for the next time to probe, which has come at once when there is a new node.
func (m *Members) untilProbe(next <-chan time.Time) {
	for {
		changed := m.Changed()
		if slices.ContainsFunc(m.probed(), func(n Node) bool { return m.contact(n.ID) == nil }) {
			return
		}
		select {
		case <-changed:
		case <-next:
			return
		case <-m.ctx.Done():
			return
		}
	}
}

// probed are the nodes that are probed, this one among them. One that leaves closes its listener.
func (m *Members) probed() []Node {
	return slices.DeleteFunc(m.Nodes(), func(n Node) bool { return n.Leaving || n.Address == "" })
}

func (m *Members) contact(id string) *contact {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.contacts[id]
}

func (m *Members) probeAll() {
	nodes := m.probed()
	whys := make([]string, len(nodes))
	var probing background.Work
	for i, n := range nodes {
		whys[i] = "the probe broke off" // unless it ends
		probing.Go("cluster probe", func() { whys[i] = m.probeOne(n) })
	}
	probing.Wait()
	if m.ctx.Err() != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := false
	there := make(map[string]*contact, len(nodes))
	for i, n := range nodes {
		c := m.contacts[n.ID]
		if c == nil {
			c = new(contact)
		}
		there[n.ID] = c
		if !c.took(whys[i]) {
			continue
		}
		changed = true
		switch {
		case c.why != "":
			m.log.Warn("a node is unreachable", "node", n.Name, "address", n.Address, "error", c.why)
		case m.contacts[n.ID] != nil:
			m.log.Info("a node is reachable again", "node", n.Name, "address", n.Address)
		}
	}
	m.contacts = there
	if changed {
		m.change()
		m.kick.now()
	}
}

// probeOne returns why a node is not reached, "" if it is.
func (m *Members) probeOne(n Node) string {
	ctx, cancel := context.WithTimeout(m.ctx, probeBeats*m.config.Beat)
	defer cancel()
	id, err := m.config.Probe(ctx, n)
	why := ""
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		why = fmt.Sprintf("nothing answers there within %s", probeBeats*m.config.Beat)
	case err != nil:
		why = cmp.Or(err.Error(), "it fails")
	case id != n.ID && id != "":
		other := "another node"
		if there, ok := m.view.Load().nodes[id]; ok {
			other = "node " + there.Name
		}
		why = other + " answers there"
	}
	return strings.ToValidUTF8(why[:min(len(why), maxWhy)], "")
}

// sees is what this node has found. The caller holds mu.
func (m *Members) sees(v *view) map[string]string {
	sees := make(map[string]string, len(m.contacts))
	for id, c := range m.contacts {
		if _, there := v.nodes[id]; there && c.known {
			sees[id] = c.why
		}
	}
	return sees
}

// report writes down what this node has found and that is not in the database.
func (m *Members) report(ctx context.Context, conn *pgx.Conn) error {
	v := m.view.Load()
	m.mu.Lock()
	proven, now := m.proven, standing{m.sees(v), m.isolated}
	m.mu.Unlock()
	was, there := v.reach[m.config.ID]
	if !proven || there && was.Isolated == now.Isolated && maps.Equal(was.Sees, now.Sees) {
		return nil
	}
	data, err := json.Marshal(now.Sees)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "SELECT cluster_reach_1($1, $2, $3)", m.config.ID, string(data), now.Isolated); err != nil {
		return fmt.Errorf("report which nodes are reached: %w", err)
	}
	return nil
}

// judges are the nodes that say which others they reach, in the order they joined, and what they say.
func (v *view) judges() (ids []string) {
	for _, n := range v.members {
		if _, says := v.reach[n.ID]; says && !n.Leaving {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// isolate names the nodes that are to run nothing, so that the rest reach each other. One after the other goes who has
// most ways cut, in either direction. Of two that are alike the one goes that is isolated already, then the one that
// fewer reach, itself included, and then the one that joined later. One always stays.
func isolate(ids []string, reach map[string]standing) map[string]bool {
	out := map[string]bool{}
	for {
		worst, most := "", []int{0}
		for order, id := range ids {
			if out[id] {
				continue
			}
			cut, unreached, before := 0, 0, 0
			for _, other := range ids {
				if out[other] {
					continue
				}
				if reach[other].Sees[id] != "" {
					unreached++
				}
				if other != id && reach[other].Sees[id] != "" {
					cut++
				}
				if other != id && reach[id].Sees[other] != "" {
					cut++
				}
			}
			if reach[id].Isolated != "" {
				before = 1
			}
			if rank := []int{cut, before, unreached, order}; cut > 0 && slices.Compare(rank, most) > 0 {
				worst, most = id, rank
			}
		}
		if worst == "" {
			return out
		}
		out[worst] = true
	}
}

// whyIsolated says which ways between a node and the others are cut.
func (v *view) whyIsolated(id string, ids []string, reach map[string]standing) string {
	var cuts []string
	for _, other := range ids {
		if why := reach[other].Sees[id]; why != "" && other != id {
			cuts = append(cuts, fmt.Sprintf("%s does not reach it: %s", v.nodes[other].Name, why))
		}
		if why := reach[id].Sees[other]; why != "" && other != id {
			cuts = append(cuts, fmt.Sprintf("it does not reach %s: %s", v.nodes[other].Name, why))
		}
	}
	const shown = 3
	if len(cuts) > shown {
		cuts = append(cuts[:shown], fmt.Sprintf("and %d more", len(cuts)-shown))
	}
	return strings.Join(cuts, "; ")
}

// judged is how often in a row the tables said something else about this node than it goes by.
type judged struct {
	looks    int
	last     time.Time // of the look that counted
	back     time.Time // when it was in reach again
	relapses int
}

// judge finds out whether this node is isolated.
func (m *Members) judge(now time.Time) {
	v := m.view.Load()
	ids := v.judges()
	out := isolate(ids, v.reach)[m.config.ID]
	m.mu.Lock()
	defer m.mu.Unlock()
	j := &m.judged
	if !m.proven || m.leaving || out == (m.isolated != "") {
		j.looks, j.last = 0, now
		return
	}
	alone := !out && len(v.takers()) == 0
	if now.Sub(j.last) < m.config.Beat && !alone {
		return
	}
	j.looks++
	j.last = now
	switch {
	case out && j.looks >= looksIsolated:
		if now.Sub(j.back) > steadyBeats*m.config.Beat {
			j.relapses = 0
		} else {
			j.relapses++
		}
		m.isolated = cmp.Or(v.whyIsolated(m.config.ID, ids, v.reach), "it is cut off from the other nodes")
		m.log.Error("this node and the others cannot reach each other: handing over its work", "reason", m.isolated)
	case !out && (alone || j.looks >= min(looksBack<<j.relapses, maxLooksBack)):
		m.isolated = ""
		j.back = now
		m.log.Info("this node and the others can reach each other again: taking its share of the work")
	default:
		return
	}
	j.looks = 0
	m.change()
}

// errUnreached refuses a node that the others do not reach.
var errUnreached = errors.New("nodes have to reach each other")

// prove returns once it is certain that the others reach this node, or if there are none, that it reaches itself.
func (m *Members) prove(ctx context.Context) error {
	if m.config.Probe == nil {
		return nil
	}
	limit := time.NewTimer(proveBeats * m.config.Beat)
	defer limit.Stop()
	often := time.NewTicker(m.config.Beat / 4)
	defer often.Stop()
	late := false
	for {
		changed := m.Changed()
		if m.gone.Load() {
			return fmt.Errorf("%w: %s", ErrGiven, m.Reason())
		}
		switch why, sure := m.proof(); {
		case sure && why == "":
			m.mu.Lock()
			m.proven = true
			m.mu.Unlock()
			m.kick.now()
			return nil
		case sure || late:
			return fmt.Errorf("%w: node_address of %s is %s, and %s. Set node_address to where the other nodes reach this one's "+
				"node_listen, and let them through to that port", errUnreached, m.config.Name, m.config.Address, why)
		}
		select {
		case <-changed:
		case <-often.C:
		case <-limit.C:
			late = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// proof returns why this node and those that are there do not reach each other, and whether that is certain.
func (m *Members) proof() (why string, sure bool) {
	v, self := m.view.Load(), m.config.ID
	m.mu.Lock()
	sees := m.sees(v)
	m.mu.Unlock()
	reach := maps.Clone(v.reach)
	if reach == nil {
		reach = map[string]standing{}
	}
	reach[self] = standing{Sees: sees, Isolated: "it joins"}
	silent := func(id string) bool {
		return slices.ContainsFunc(v.members, func(n member) bool { return n.ID == id && n.Silence >= silentPeer })
	}
	ids := slices.DeleteFunc(v.judges(), silent)
	var waits []string
	asked := false
	for _, id := range ids {
		if v.reach[id].Isolated != "" {
			continue
		}
		asked = true
		_, found := v.reach[id].Sees[self]
		if _, finds := sees[id]; !found || !finds {
			waits = append(waits, v.nodes[id].Name)
		}
	}
	if !asked {
		why, sure = sees[self]
		if why != "" {
			why = "the node does not reach itself there: " + why
		}
		return why, sure
	}
	if len(waits) > 0 {
		return "it is not known yet whether it is reached by " + strings.Join(waits, ", "), false
	}
	ids = append(ids, self)
	if isolate(ids, reach)[self] {
		return v.whyIsolated(self, ids, reach), true
	}
	return "", true
}

// Serving returns nil while this node takes what readers write. It asks nobody: a beat that arrives has been written.
func (m *Members) Serving() error {
	if m.gone.Load() {
		return ErrGiven
	}
	if !m.fresh() {
		return fmt.Errorf("nothing was written to the database for %.1f s: it is away, or takes no writes", m.sinceBeat().Seconds())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isolated != "" {
		return fmt.Errorf("this node is isolated: %s", m.isolated)
	}
	return nil
}
