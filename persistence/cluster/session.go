package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// reconnect is how long after a failure the next connection is tried, in beats over eight.
const reconnect = 8

// A kick cuts short the wait for the next beat.
type kick struct {
	mu     sync.Mutex
	due    bool
	cancel context.CancelFunc
}

func (k *kick) now() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.due = true
	if k.cancel != nil {
		k.cancel()
	}
}

// until is a context that ends at a time, or with a kick.
func (k *kick) until(ctx context.Context, at time.Time) (context.Context, func()) {
	ctx, cancel := context.WithDeadline(ctx, at)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.due {
		k.due = false
		cancel()
	}
	k.cancel = cancel
	return ctx, func() {
		k.mu.Lock()
		k.cancel, k.due = nil, false
		k.mu.Unlock()
		cancel()
	}
}

// connect opens the one connection over which this node beats, listens, and holds its lock.
func (m *Members) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(m.config.DSN())
	if err != nil {
		return nil, errors.New("the DSN of the database is not a valid postgres:// URL") // it may hold a password
	}
	config.RuntimeParams["application_name"] = Application(m.config.ID)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	ctx, cancel := context.WithTimeout(ctx, 2*m.limit)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	// What waits for somebody else's lock is tried again; this node's own beats go on.
	if _, err := conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", m.config.Beat.Milliseconds())); err != nil {
		conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// again is a new connection of a node that has joined before.
func (m *Members) again(ctx context.Context) (*pgx.Conn, error) {
	conn, err := m.connect(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*m.limit)
	defer cancel()
	for {
		var done bool
		if err := conn.QueryRow(ctx, "SELECT cluster_return_1($1)", m.config.ID).Scan(&done); err != nil {
			conn.Close(ctx)
			return nil, err
		}
		if done {
			return conn, nil
		}
		m.pause(ctx)
	}
}

func (m *Members) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(m.config.Beat / reconnect):
	}
}

// run beats until the node ends.
func (m *Members) run(conn *pgx.Conn, seen *watch) {
	for {
		err := m.session(conn, seen)
		close, cancel := context.WithTimeout(context.Background(), m.config.Beat)
		conn.Close(close)
		cancel()
		for m.ctx.Err() == nil && !m.gone.Load() {
			if m.away {
				m.pause(m.ctx)
			} else {
				m.log.Warn("the cluster's database is unreachable or read-only; trying again", "error", err)
				m.away = true
			}
			if conn, err = m.again(m.ctx); err == nil {
				break
			}
		}
		if m.ctx.Err() != nil || m.gone.Load() {
			if err == nil {
				conn.Close(context.Background())
			}
			m.end()
			return
		}
		seen = newWatch(m.config.Beat)
	}
}

// session beats over one connection until it breaks or the node ends.
func (m *Members) session(conn *pgx.Conn, seen *watch) error {
	if err := m.listen(conn); err != nil {
		return err
	}
	for m.ctx.Err() == nil && !m.gone.Load() {
		next := time.Now().Add(m.config.Beat)
		if err := m.round(m.ctx, conn, seen); err != nil {
			return err
		}
		if m.away && !m.gone.Load() {
			m.away = false
			m.log.Info("the cluster's database accepts this node's heartbeats again")
		}
		if err := m.wait(conn, next); err != nil {
			return err
		}
	}
	return nil
}

// listen subscribes to changes of the tables over the connection.
func (m *Members) listen(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(m.ctx, 2*m.limit)
	defer cancel()
	var channel string
	if err := conn.QueryRow(ctx, "SELECT 'docent_cluster_' || 'cluster_nodes'::regclass::oid").Scan(&channel); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "LISTEN "+channel)
	return err
}

// wait returns when it is time for the next beat, or something has changed.
func (m *Members) wait(conn *pgx.Conn, next time.Time) error {
	ctx, done := m.kick.until(m.ctx, next)
	defer done()
	for ctx.Err() == nil {
		told, err := conn.WaitForNotification(ctx)
		if err != nil {
			if ctx.Err() != nil && !conn.IsClosed() {
				return nil
			}
			return err
		}
		if epoch, err := strconv.ParseInt(told.Payload, 10, 64); err != nil || epoch > m.view.Load().epoch {
			return nil
		}
	}
	return nil
}

// A reading is what a beat tells.
type reading struct {
	Epoch  int64
	Known  bool
	Reason *string
	Alive  bool
	Held   bool
	Nodes  []member
	Reach  map[string]standing
	Shards [][2]string
}

func (m *Members) look(ctx context.Context, conn *pgx.Conn) (*reading, error) {
	var data []byte
	err := conn.QueryRow(ctx, "SELECT cluster_beat_2($1, $2)", m.config.ID, m.view.Load().epoch).Scan(&data)
	if err != nil {
		return nil, err
	}
	r := new(reading)
	return r, json.Unmarshal(data, r)
}

// round beats once, takes in what there is to see, and does what follows from it.
func (m *Members) round(ctx context.Context, conn *pgx.Conn, seen *watch) error {
	ctx, cancel := context.WithTimeout(ctx, 2*m.limit)
	defer cancel()
	sent := time.Since(m.base)
	now, err := m.look(ctx, conn)
	if err != nil {
		return err
	}
	switch {
	case !now.Alive:
		reason := ""
		if now.Reason != nil {
			reason = *now.Reason
		}
		m.End(reason)
		return nil
	case now.Epoch < m.view.Load().epoch:
		m.End("the database has lost what it had acknowledged")
		return nil
	case !now.Held:
		return errors.New("the session does not hold the node's lock: connect to the server itself, not through a pooler that shares sessions")
	}
	dead := seen.look(time.Now(), m.config.ID, now.Nodes)
	if !m.take(now) {
		m.End("another node has its shards")
		return nil
	}
	m.beaten(sent)
	m.judge(time.Now())
	return kept(conn, errors.Join(
		m.tell(ctx, conn),
		m.report(ctx, conn),
		m.giveUpOthers(ctx, conn, now.Nodes, dead),
		m.free(ctx, conn),
		m.arrange(ctx, conn),
		m.hand(ctx, conn)), m)
}

// kept passes on the errors after which the connection cannot be used; others are tried again with the next beat.
func kept(conn *pgx.Conn, err error, m *Members) error {
	var refused *pgconn.PgError
	if err == nil || !errors.As(err, &refused) || conn.IsClosed() {
		return err
	}
	if !locked(err) {
		m.log.Error("a cluster step failed; trying again", "error", err)
	}
	return nil
}

// locked reports whether somebody else held a lock for too long.
func locked(err error) bool {
	const lockTimeout = "55P03"
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == lockTimeout
}

// beaten notes that a beat arrived that was sent at a time since base.
func (m *Members) beaten(sent time.Duration) {
	before := time.Duration(m.last.Swap(int64(sent)))
	lapsed := time.Since(m.base)-before >= m.limit // even if watchBeats has not seen it
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.fresh() {
		return // the next beat finds this one too old
	}
	if m.idle {
		m.idle = false
		m.log.Info("this node resumed its work")
	}
	if !lapsed {
		return
	}
	m.change()
	if shards := m.running(); len(shards) > 0 {
		m.gain(shards)
	}
}

// watchBeats ends exclusive work when no beat arrives.
func (m *Members) watchBeats() {
	for {
		left := m.limit - (time.Since(m.base) - time.Duration(m.last.Load()))
		if left <= 0 {
			m.mu.Lock()
			if !m.idle && !m.fresh() {
				m.idle = true
				m.log.Warn("no heartbeat reached the database for too long: this node pauses its work until one does")
				for t := range m.tasks {
					t.end()
				}
				m.change()
			}
			m.mu.Unlock()
			left = m.config.Beat / 4
		}
		select {
		case <-m.ctx.Done():
			return
		case <-time.After(left):
		}
	}
}

// tell writes what this node says of itself.
func (m *Members) tell(ctx context.Context, conn *pgx.Conn) error {
	m.mu.Lock()
	ready, leaving := m.ready && m.isolated == "", m.leaving
	m.mu.Unlock()
	for _, n := range m.view.Load().members {
		if n.ID == m.config.ID && (n.Ready != ready || n.Leaving != leaving) {
			_, err := conn.Exec(ctx, "SELECT cluster_set_1($1, $2, $3)", m.config.ID, ready, leaving)
			return err
		}
	}
	return nil
}

// giveUpOthers gives up those that show no life.
func (m *Members) giveUpOthers(ctx context.Context, conn *pgx.Conn, nodes []member, dead map[string]string) error {
	for _, n := range nodes {
		why, ok := dead[n.ID]
		if !ok {
			continue
		}
		gone, err := m.bury(ctx, conn, n, why)
		if err != nil {
			return fmt.Errorf("give up node %s: %w", n.Name, err)
		}
		if gone {
			m.takes.Add(1)
			m.log.Warn("removed an unresponsive node", "node", n.Name, "reason", why)
		}
	}
	return nil
}

// bury marks a node as dead unless it has moved since it was seen.
func (m *Members) bury(ctx context.Context, conn *pgx.Conn, n member, why string) (gone bool, err error) {
	err = conn.QueryRow(ctx, "SELECT cluster_dead_1($1, $2, $3)", n.ID, n.Counter, why).Scan(&gone)
	return gone, err
}

// freeTries is how often the connections of a node that was given up are ended before its shards are freed in any case,
// an eighth of a beat apart.
const freeTries = 40

// free lets the shards of those that were given up go to others, once none of their connections is left.
func (m *Members) free(ctx context.Context, conn *pgx.Conn) error {
	v := m.view.Load()
	done := map[string]bool{"": true}
	for _, id := range v.owner {
		if _, alive := v.nodes[id]; alive || done[id] {
			continue
		}
		done[id] = true
		m.freeing[id]++
		var backends int
		err := conn.QueryRow(ctx, "SELECT cluster_free_1($1, $2)", id, m.freeing[id] == freeTries).Scan(&backends)
		if err != nil {
			return fmt.Errorf("free the shards of a node: %w", err)
		}
		if backends > 0 && m.freeing[id] < freeTries {
			m.pause(ctx)
		} else {
			delete(m.freeing, id)
		}
		m.kick.now()
	}
	return nil
}

// arrange writes down which node is to run each shard, if that differs from the tables. The first of the nodes
// does it; the others do if it does not.
func (m *Members) arrange(ctx context.Context, conn *pgx.Conn) error {
	v := m.view.Load()
	var which []int
	var nodes, nexts []string
	for shard, to := range assign(v.meant(), v.takers()) {
		node, next := v.owner[shard], ""
		switch _, alive := v.nodes[node]; {
		case node == "":
			node = to
		case !alive: // its shards are freed first
			next = v.next[shard]
		case to != node:
			next = to
		}
		if node != v.owner[shard] || next != v.next[shard] {
			which, nodes, nexts = append(which, shard), append(nodes, node), append(nexts, next)
		}
	}
	if len(which) == 0 {
		m.wanted = 0
		return nil
	}
	if m.wanted++; v.members[0].ID != m.config.ID && m.wanted < 2 {
		return nil
	}
	var done bool
	err := conn.QueryRow(ctx, "SELECT cluster_assign_1($1, $2::bigint[]::int[], $3, $4)", v.epoch, which, nodes, nexts).Scan(&done)
	if err != nil {
		return fmt.Errorf("assign shards: %w", err)
	}
	return nil
}

// meant is the node that each shard is moving to.
func (v *view) meant() [Shards]string {
	to := v.owner
	for shard, next := range v.next {
		if next != "" {
			to[shard] = next
		}
	}
	return to
}

// hand gives away the shards that nothing runs any more.
func (m *Members) hand(ctx context.Context, conn *pgx.Conn) error {
	m.mu.Lock()
	shards := slices.Clone(m.handover)
	m.mu.Unlock()
	if len(shards) == 0 {
		return nil
	}
	if _, err := conn.Exec(ctx, "SELECT cluster_handover_1($1, $2::bigint[]::int[])", m.config.ID, shards); err != nil {
		return fmt.Errorf("hand over shards: %w", err)
	}
	m.handedOver(shards)
	return nil
}

// leave ends the membership in the tables, over a connection of its own.
func (m *Members) leave(ctx context.Context) error {
	conn, err := m.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SET lock_timeout = 0"); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT cluster_leave_1($1)", m.config.ID)
	return err
}
