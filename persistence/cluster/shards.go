package cluster

import (
	"context"
	"slices"
	"time"

	"docent/internal/background"
)

// together is how many shards are handed over at once: those that wait for their turn run on.
const together = 16

// A task is something that runs alone, here.
type task struct {
	shard int
	end   context.CancelFunc
	ended chan struct{}
}

// Hold implements Ownership.
func (m *Members) Hold(ctx context.Context, name string) (held context.Context, release func()) {
	shard := Shard(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.here(shard) || m.idle || ctx.Err() != nil {
		return nil, nil
	}
	run, cancel := context.WithCancel(ctx)
	t := &task{shard: shard, end: cancel, ended: make(chan struct{})}
	m.tasks[t] = struct{}{}
	return run, func() {
		cancel()
		m.mu.Lock()
		delete(m.tasks, t)
		m.mu.Unlock()
		close(t.ended)
	}
}

// take makes what was read the view, and begins what follows for the shards of this node. It reports whether what runs
// here is still this node's, which only a database denies that has forgotten something.
func (m *Members) take(now *reading) bool {
	old := m.view.Load()
	v := &view{epoch: now.Epoch, members: now.Nodes, reach: now.Reach, nodes: make(map[string]Node, len(now.Nodes)), owner: old.owner, next: old.next}
	for _, n := range now.Nodes {
		v.nodes[n.ID] = n.node()
	}
	if now.Epoch == old.epoch {
		m.view.Store(v)
		m.mu.Lock()
		defer m.mu.Unlock()
		return !m.awaited || m.reconcile(v)
	}
	for shard, s := range now.Shards {
		v.owner[shard], v.next[shard] = s[0], s[1]
	}
	m.view.Store(v)
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.change()
	return m.reconcile(v)
}

// reconcile compares what runs here with what should. The caller holds mu.
func (m *Members) reconcile(v *view) bool {
	var gained, leaving []int
	busy := false
	for shard := range m.state {
		ours, next := v.owner[shard] == m.config.ID, v.next[shard]
		if !ours || next == "" {
			delete(m.meant, shard)
		}
		switch m.state[shard] {
		case notHeld:
			switch {
			case ours && next == "" && m.released:
			case ours && next == "":
				m.state[shard] = runs
				m.acts[shard].Store(true)
				gained = append(gained, shard)
			case ours && !slices.Contains(m.handover, shard): // it never ran here
				m.state[shard] = ends
				m.handover = append(m.handover, shard)
			}
		case runs:
			if !ours {
				return false
			}
			if next != "" {
				leaving = append(leaving, shard)
			}
		case ends:
			busy = true
		}
	}
	if len(gained) > 0 {
		m.gain(gained)
	}
	if !busy {
		if leaving = m.movable(leaving); len(leaving) > 0 {
			m.lose(leaving[:min(together, len(leaving))])
		}
	}
	if len(m.handover) > 0 {
		m.kick.now()
	}
	return true
}

// movable returns those of the shards that another node is to run that can go now, those with the fewest open streams
// first. A node that goes on lets streams end before a shard moves, for as long as a stop would wait for them. The
// caller holds mu.
func (m *Members) movable(shards []int) []int {
	m.awaited = false
	open := make(map[int]int, len(shards))
	for _, h := range m.handlers {
		for _, shard := range shards {
			if h.Open != nil {
				open[shard] += h.Open(shard)
			}
		}
	}
	if !m.leaving && m.isolated == "" {
		now := time.Now()
		shards = slices.DeleteFunc(shards, func(shard int) bool {
			since, known := m.meant[shard]
			if !known {
				since = now
				m.meant[shard] = now
			}
			waits := open[shard] > 0 && now.Sub(since) < m.config.Drain
			m.awaited = m.awaited || waits
			return waits
		})
	}
	slices.SortStableFunc(shards, func(a, b int) int { return open[a] - open[b] })
	return shards
}

// gain tells the handlers that shards run here. The caller holds mu.
func (m *Members) gain(shards []int) {
	handlers := slices.Clone(m.handlers)
	m.event(func() {
		for _, h := range handlers {
			h.gained(shards)
		}
	})
}

// lose ends what runs of the shards, and then has them handed over. The caller holds mu.
func (m *Members) lose(shards []int) {
	shards = slices.Clone(shards)
	for _, shard := range shards {
		m.state[shard] = ends
		m.acts[shard].Store(false)
	}
	var tasks []*task
	for t := range m.tasks {
		if slices.Contains(shards, t.shard) {
			t.end()
			tasks = append(tasks, t)
		}
	}
	m.change()
	handlers := slices.Clone(m.handlers)
	m.event(func() {
		var ending background.Work
		for _, h := range handlers {
			if h.Lost != nil {
				ending.Go("persistence/cluster.lose", func() { h.Lost(m.ctx, shards) })
			}
		}
		ending.Wait()
		for _, t := range tasks {
			select {
			case <-t.ended:
			case <-m.ctx.Done(): // and nothing is handed over
				return
			}
		}
		m.mu.Lock()
		m.handover = append(m.handover, shards...)
		m.mu.Unlock()
		m.kick.now()
	})
}

// handedOver notes that the tables were told of what was in handover.
func (m *Members) handedOver(shards []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handover = slices.DeleteFunc(m.handover, func(s int) bool { return slices.Contains(shards, s) })
	for _, shard := range shards {
		m.state[shard] = notHeld
	}
	m.change()
	m.kick.now() // read again whether they are elsewhere now, or come back as they could not be given
}

// release ends what runs here when nobody can take it.
func (m *Members) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.released = true
	if shards := m.running(); len(shards) > 0 {
		m.lose(shards)
	}
}

// running are the shards that this node runs. The caller holds mu.
func (m *Members) running() (shards []int) {
	for shard, s := range m.state {
		if s == runs {
			shards = append(shards, shard)
		}
	}
	return shards
}

// event queues f after earlier calls. The caller holds mu.
func (m *Members) event(f func()) {
	m.events = append(m.events, f)
	m.more.Signal()
}

// handle calls what is to be called, one after the other.
func (m *Members) handle() {
	stop := context.AfterFunc(m.ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.more.Broadcast()
	})
	defer stop()
	for {
		m.mu.Lock()
		for len(m.events) == 0 && m.ctx.Err() == nil {
			m.more.Wait()
		}
		if m.ctx.Err() != nil {
			m.mu.Unlock()
			return
		}
		f := m.events[0]
		m.events = m.events[1:]
		m.mu.Unlock()
		f()
	}
}
