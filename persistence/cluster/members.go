package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"docent/api"
)

// A Config is what a node joins with.
type Config struct {
	DSN     func() string // of the database, as it is now; a password may change
	ID      string        // made with NewID; "" makes one
	Name    string
	Address string // of its internal listener; "" if there is none: the node is then the only one
	Version string
	Keys    []string // public ones that this node knows nodes by, its own first; it joins nodes whose own it knows and that know its own
	// Probe asks what answers at a node's address for the node's id, "" from one that cannot say. Without it nobody
	// finds out whether nodes reach each other.
	Probe func(ctx context.Context, n Node) (id string, err error)
	Log   *slog.Logger
	Beat  time.Duration // between two signs of life, 1 s; other nodes have the same
	Wait  time.Duration // how long Check waits for an owner that is to come, 10 s
	Drain time.Duration // how long a shard that is to move waits for its open streams, if this node goes on
}

// A Handler learns which shards this node runs. Its functions but Open are called one after the other.
type Handler struct {
	// Gained says that this node runs these shards from now on. It says so again of all that run here when the node may
	// act on them after beats were missing: what was to begin meanwhile was refused. It returns soon.
	Gained func(shards []int)
	// Lost says that another node is to run these shards. It returns when nothing of theirs runs here any more; only then
	// the other node begins.
	Lost func(ctx context.Context, shards []int)
	// Open returns how many streams of a shard are open here, which break off when another node comes to run it. It
	// returns at once.
	Open func(shard int) int
}

// Members is this node's view of the cluster, and its part in it.
type Members struct {
	config Config
	log    *slog.Logger
	ctx    context.Context // until the node has left, was given up or is closed
	end    context.CancelFunc
	ended  chan struct{} // closed when nothing of it runs any more
	given  chan struct{}
	limit  time.Duration // after a beat that it may act as an owner; less than others wait before they give it up

	view  atomic.Pointer[view]
	last  atomic.Int64 // when the last beat that arrived was sent, since base
	base  time.Time
	acts  [Shards]atomic.Bool // shards that run here, but for want of beats
	gone  atomic.Bool         // given up, left or closed
	takes atomic.Int64        // nodes that this one gave up
	kick  kick

	mu       sync.Mutex
	changed  chan struct{} // closed at the next change of what Check looks at
	idle     bool          // no beat arrived for too long: what runs alone was told to end
	state    [Shards]held
	handlers []Handler
	tasks    map[*task]struct{}
	meant    map[int]time.Time // shards that run here and that another node is to run, since when
	awaited  bool              // some of them wait for their streams
	handover []int             // shards that nothing runs any more and that wait to be handed over
	ready    bool
	leaving  bool
	released bool // nobody can take what ran here
	events   []func()
	more     *sync.Cond          // there are events, or it has ended
	reason   string              // why it was given up
	contacts map[string]*contact // the nodes that were probed, this one among them, by their ids
	proven   bool                // the others reach it: it takes part in judging who is isolated
	isolated string              // why it runs nothing though it is there
	judged   judged              // of the session alone
	away     bool                // the database is, or takes no writes; of the session alone
	freeing  map[string]int      // how often nodes' connections were ended; of the session alone
	wanted   int                 // beats in which shards were not as they should be; of the session alone
}

// What becomes of a shard on this node.
type held uint8

const (
	notHeld held = iota
	runs
	ends // those who run it were told to end
)

// A member is a node as the tables have it.
type member struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Address string    `json:"address"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Ready   bool      `json:"ready"`
	Leaving bool      `json:"leaving"`
	Counter int64     `json:"counter"`
	Locked  bool      `json:"locked"`
	Silence int       `json:"-"` // looks in a row at a counter that stood still
}

func (n member) node() Node {
	return Node{ID: n.ID, Name: n.Name, Address: n.Address, Version: n.Version, Started: n.Started, Leaving: n.Leaving}
}

// A view is what the tables said last. It is not changed.
type view struct {
	epoch   int64
	members []member            // those alive, in the order they joined
	reach   map[string]standing // of those among them that look, by their ids
	nodes   map[string]Node
	owner   [Shards]string
	next    [Shards]string
}

// Self is this node.
func (m *Members) Self() Node {
	if n, ok := m.view.Load().nodes[m.config.ID]; ok {
		return n
	}
	return Node{ID: m.config.ID, Name: m.config.Name, Address: m.config.Address, Version: m.config.Version}
}

// Nodes are those that are there, this one among them, in the order they joined.
func (m *Members) Nodes() []Node {
	var list []Node
	for _, n := range m.view.Load().members {
		list = append(list, n.node())
	}
	return list
}

// Owns implements Ownership.
func (m *Members) Owns(name string) bool { return m.here(Shard(name)) }

// Several implements Ownership.
func (m *Members) Several() bool { return true }

func (m *Members) here(shard int) bool {
	return m.acts[shard].Load() && m.fresh() && !m.gone.Load()
}

// fresh reports whether no other node can have taken over what runs here: they wait longer than this before they give a
// node up. It compares no clocks. A process that is stopped right after it asked answers what was true when it asked.
func (m *Members) fresh() bool { return m.sinceBeat() < m.limit }

// sinceBeat is how long ago the last beat that arrived was sent.
func (m *Members) sinceBeat() time.Duration { return time.Since(m.base) - time.Duration(m.last.Load()) }

// Check implements Ownership.
func (m *Members) Check(ctx context.Context, name string) error {
	shard := Shard(name)
	if m.here(shard) {
		return nil
	}
	timeout := time.NewTimer(m.config.Wait)
	defer timeout.Stop()
	gone := left(ctx)
	for {
		changed := m.Changed() // before it is looked at: no change is missed
		select {
		case <-gone: // its sender may have sent it again by now, to another node
			return ErrLeft
		default:
		}
		if m.here(shard) {
			return nil
		}
		if m.gone.Load() {
			return m.busy()
		}
		// A node that was stopped, or cut off, may know only who ran what before.
		if n, ok := m.owner(shard); ok && n.ID != m.config.ID && m.fresh() {
			elsewhere := &ElsewhereError{Name: name, Node: n}
			Note(ctx, elsewhere)
			return elsewhere
		}
		select {
		case <-changed:
		case <-timeout.C:
			return m.busy()
		case <-m.ctx.Done():
			return m.busy()
		case <-gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *Members) busy() error {
	return &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: max(m.config.Beat, time.Second)}
}

// Changed implements Ownership.
func (m *Members) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// owner is the node that runs a shard, as far as this one knows.
func (m *Members) owner(shard int) (Node, bool) {
	v := m.view.Load()
	n, ok := v.nodes[v.owner[shard]]
	return n, ok
}

// Evicted is closed when the other nodes have given this one up: it can write nothing any more, and its actors live
// elsewhere. The process ends then, and is started again as another node; see decision 0044.
func (m *Members) Evicted() <-chan struct{} { return m.given }

// Reason is why this node was given up, for people.
func (m *Members) Reason() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reason
}

// Handle tells h which shards run here, beginning with those that already do. The node takes shards from the first call
// on: what handles requests has to be there by then.
func (m *Members) Handle(h Handler) {
	m.mu.Lock()
	m.handlers = append(m.handlers, h)
	m.ready = true
	if shards := m.running(); len(shards) > 0 {
		m.event(func() { h.gained(shards) })
	}
	m.mu.Unlock()
	m.kick.now()
}

func (h Handler) gained(shards []int) {
	if h.Gained != nil {
		h.Gained(shards)
	}
}

// Leave hands all shards to the other nodes and ends the membership. If there is no other node, or ctx ends, the
// rest is free for nodes that come later. Nothing can be appended afterwards.
func (m *Members) Leave(ctx context.Context) error {
	if err := m.HandOver(ctx); err != nil {
		m.log.Warn("left the cluster before handing over everything", "error", err)
	}
	m.Close()
	if reason := m.Reason(); reason != "" {
		return fmt.Errorf("leave the cluster: %w: %s", ErrGiven, reason)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*m.limit)
	defer cancel()
	if err := m.leave(end); err != nil {
		return fmt.Errorf("leave the cluster: %w", err)
	}
	m.log.Info("left the cluster")
	return nil
}

// HandOver hands all shards to the other nodes and takes none. The node stays a member: it knows who runs what. If
// there is no other node the shards are given up.
func (m *Members) HandOver(ctx context.Context) error {
	m.mu.Lock()
	m.leaving = true
	m.mu.Unlock()
	m.kick.now()
	for {
		changed := m.Changed()
		if m.gone.Load() || !m.holds() {
			return nil
		}
		if v := m.view.Load(); v.nodes[m.config.ID].Leaving && len(v.takers()) == 0 {
			m.release()
		}
		select {
		case <-changed:
		case <-m.ctx.Done():
			return nil
		case <-ctx.Done():
			return fmt.Errorf("hand over to the other nodes: %w", context.Cause(ctx))
		}
	}
}

// Close ends the membership without telling the others, as the end of the process does.
func (m *Members) Close() {
	m.gone.Store(true)
	m.end()
	<-m.ended
}

// holds reports whether something runs here, or was not handed over yet.
func (m *Members) holds() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.state[:], func(s held) bool { return s != notHeld })
}

// takers are the nodes that may be given shards.
func (v *view) takers() []string {
	var ids []string
	for _, n := range v.members {
		if n.Ready && !n.Leaving {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// change wakes those who wait for something else to be true. The caller holds mu.
func (m *Members) change() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// End gives this node up, when the tables say that it does not count any more or for what it has found out by itself.
func (m *Members) End(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reason != "" {
		return
	}
	m.reason = cmp.Or(reason, "its row is not there any more")
	m.gone.Store(true)
	for shard := range m.acts {
		m.acts[shard].Store(false)
	}
	for t := range m.tasks {
		t.end()
	}
	close(m.given)
	m.change()
	m.log.Error("the other nodes have removed this node: it can no longer write", "reason", m.reason)
}

// A refusedError says why a node cannot join those that are there.
type refusedError struct {
	self   Config
	others []member // who stand in its way
}

func (e *refusedError) Error() string {
	var names []string
	unreachable := false
	for _, n := range e.others {
		switch {
		case n.Name == e.self.Name:
			return fmt.Sprintf("node_name: another node that runs on this database has the name %s: set node_name to a name that no other node has",
				n.Name)
		case n.Address != "" && n.Address == e.self.Address:
			return fmt.Sprintf("node_address: %s is the address of node %s as well: set node_address of %s to where other nodes reach its own node_listen",
				n.Address, n.Name, e.self.Name)
		}
		names = append(names, n.Name)
		unreachable = unreachable || n.Address == ""
	}
	who := strings.Join(names, ", ")
	switch {
	case unreachable:
		return fmt.Sprintf("node %s runs on this database and has no node_listen, so that no other node can join it: "+
			"stop it, or set node_listen and node_address on every node", who)
	case e.self.Address == "":
		return fmt.Sprintf("node_listen: other nodes run on this database (%s): set node_listen and node_address on %s as well, "+
			"or give it a database of its own", who, e.self.Name)
	default:
		return fmt.Sprintf("the node secret of %s is not the one of the nodes on this database (%s): give all of them the same; "+
			"to replace it, restart each with both, OLD NEW, then NEW OLD, then NEW alone", e.self.Name, who)
	}
}

// errFormat says that the tables are another cluster's.
var errFormat = errors.New("the tables of the cluster in this database are of another form")
