package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"docent/internal/background"
)

//go:embed tables.sql
var tables string

// format is of the tables. A node refuses tables of another one; what is added to them does not change it.
const format = 1

// functions is raised with what tables.sql adds, so that it is carried out once.
const functions = 2

const (
	defaultBeat = time.Second
	defaultWait = 10 * time.Second
)

// NewID makes the id of a node.
func NewID() string { return "node_" + strings.ToLower(rand.Text()) }

// Application is the application_name of a node's connections to the database. A node that evicts this one ends those.
func Application(id string) string { return "docent " + id }

// Admit lets a new connection be used unless the node was given up. With it as the AfterConnect of a pool whose
// connections bear the node's Application, a node that was given up writes nothing, in any table.
func Admit(ctx context.Context, conn *pgx.Conn, id string) error {
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('cluster_nodes') IS NOT NULL", pgx.QueryExecModeExec).Scan(&there); err != nil {
		return err
	}
	if !there {
		return nil
	}
	var refused bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM cluster_nodes WHERE id = $1 AND NOT alive AND NOT "left")`,
		pgx.QueryExecModeExec, id).Scan(&refused)
	if err == nil && refused {
		err = ErrGiven
	}
	return err
}

// ErrGiven says that the node was given up by the others.
var ErrGiven = errors.New("the other nodes have given this one up")

// Join makes this process a node of the cluster in the database. It takes no shards before Handle is called.
func Join(ctx context.Context, c Config) (*Members, error) {
	c.ID = cmp.Or(c.ID, NewID())
	c.Beat, c.Wait = cmp.Or(c.Beat, defaultBeat), cmp.Or(c.Wait, defaultWait)
	m := &Members{
		config: c, log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), base: time.Now(),
		limit: roundsFree*c.Beat - c.Beat/2, changed: make(chan struct{}), ended: make(chan struct{}), given: make(chan struct{}),
		tasks: map[*task]struct{}{}, freeing: map[string]int{}, contacts: map[string]*contact{},
		meant: map[int]time.Time{},
	}
	m.more = sync.NewCond(&m.mu)
	m.view.Store(&view{epoch: -1})
	conn, err := m.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	if err := m.join(ctx, conn); err != nil {
		conn.Close(ctx)
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	m.ctx, m.end = context.WithCancel(context.WithoutCancel(ctx))
	seen := newWatch(c.Beat)
	if err := m.round(m.ctx, conn, seen); err != nil {
		m.end()
		conn.Close(ctx)
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	var running background.Work
	running.Essential("cluster membership", func() { m.run(conn, seen) })
	running.Essential("cluster shard handover", m.handle)
	running.Essential("cluster beat watch", m.watchBeats)
	running.Essential("cluster probes", m.probe)
	background.Essential("persistence/cluster.Join", func() {
		running.Wait()
		close(m.ended)
	})
	if err := m.prove(ctx); err != nil {
		m.Close()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*m.limit)
		defer cancel()
		if left := m.leave(end); left != nil {
			m.log.Warn("could not tell the other nodes that this node did not join; they will notice", "error", left)
		}
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	m.log.Info("joined the cluster", "node", c.Name, "nodes", len(m.Nodes()))
	return m, nil
}

// join enters the cluster. If somebody locks its tables, as another node does that creates them, it tries again.
func (m *Members) join(ctx context.Context, conn *pgx.Conn) error {
	for told := false; ; told = true {
		err := m.tryJoin(ctx, conn)
		if !locked(err) {
			return err
		}
		if !told {
			m.log.Warn("this node joins the cluster once nothing locks its tables", "error", err)
		}
		if m.pause(ctx); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// tryJoin creates the tables if they do not exist, and this node's row.
func (m *Members) tryJoin(ctx context.Context, conn *pgx.Conn) error {
	if err := makeTables(ctx, conn); err != nil {
		return err
	}
	seen := newWatch(m.config.Beat)
	for {
		others, err := m.enter(ctx, conn)
		if err != nil || others == nil {
			return err
		}
		// Those who stand in the way may have died. Who beats is there.
		state, err := m.look(ctx, conn)
		if err != nil {
			return err
		}
		seen.look(time.Now(), m.config.ID, state.Nodes)
		buried := false
		for _, n := range state.Nodes {
			switch {
			case seen.nodes[n.ID] == nil:
			case !slices.ContainsFunc(others, func(o member) bool { return o.ID == n.ID }):
			case seen.nodes[n.ID].heard:
				return &refusedError{self: m.config, others: others}
			case !n.Locked && (n.Name == m.config.Name || n.Address != "" && n.Address == m.config.Address):
				// The process before this one.
				buried, err = m.bury(ctx, conn, n, "it was started again")
			case seen.nodes[n.ID].why(n.Locked) != "":
				_, err = m.bury(ctx, conn, n, seen.nodes[n.ID].why(n.Locked))
			}
			if err != nil {
				return err
			}
		}
		if buried {
			continue
		}
		select {
		case <-time.After(m.config.Beat):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// enter makes this node's row, unless others stand in its way.
func (m *Members) enter(ctx context.Context, conn *pgx.Conn) (others []member, err error) {
	var data []byte
	c := m.config
	keys := append([]string{}, c.Keys...) // never NULL
	err = conn.QueryRow(ctx, "SELECT cluster_join_2($1, $2, $3, $4, $5)", c.ID, c.Name, c.Address, c.Version, keys).Scan(&data)
	if err != nil {
		return nil, err
	}
	var answer struct{ Others []member }
	return answer.Others, json.Unmarshal(data, &answer)
}

func makeTables(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('cluster_version') IS NOT NULL").Scan(&there); err != nil {
		return err
	}
	if there {
		var have int
		if err := conn.QueryRow(ctx, "SELECT max(functions) FROM cluster_version").Scan(&have); err != nil {
			return err
		}
		if have >= functions {
			return checkTables(ctx, conn)
		}
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after a commit it does nothing
	// Nodes that start at the same time make them one after the other.
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(7234150849)"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, tables); err != nil {
		return fmt.Errorf("make the tables of the cluster: %w", err)
	}
	const version = `CREATE TABLE IF NOT EXISTS cluster_version (functions int PRIMARY KEY)`
	if _, err := tx.Exec(ctx, version); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "INSERT INTO cluster_version VALUES ($1) ON CONFLICT DO NOTHING", functions); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO cluster_state (format, shards, epoch) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING", format, Shards)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO cluster_shards (shard) SELECT generate_series(0, shards - 1) FROM cluster_state
		ON CONFLICT DO NOTHING`)
	if err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	return checkTables(ctx, conn)
}

func checkTables(ctx context.Context, conn *pgx.Conn) error {
	var theirs, shards int
	if err := conn.QueryRow(ctx, "SELECT format, shards FROM cluster_state").Scan(&theirs, &shards); err != nil {
		return err
	}
	if theirs != format || shards != Shards {
		return fmt.Errorf("%w: format %d with %d shards, and this version knows format %d with %d: "+
			"use the version that made them, or another database", errFormat, theirs, shards, format, Shards)
	}
	return nil
}
