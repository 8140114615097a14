package database

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"

	"docent/api"
	"docent/internal/backoff"
)

const (
	nodePing = time.Second     // between two looks at whether the connection that hears is alive
	nodeDeaf = 3 * time.Second // after which one that did not answer is not
)

// otherNodes is what the catalogs of several nodes on one database tell each other. That of a single node is empty.
//
// What is remembered from the database is forgotten when another node says that it has changed it, and all of it when
// the connection that hears was lost. While it is lost, nothing is remembered for longer than Options.Stale.
type otherNodes struct {
	self    string
	channel string
	connect func(context.Context) (*pgx.Conn, error)
	changed chan struct{} // receives after a change by another node
	turned  chan struct{} // receives after another node has turned a source
}

// A Message is what one node tells the others.
type Message struct {
	From   string   `json:"from"`
	Change bool     `json:"change,omitempty"` // of what stands nowhere else
	Forget []string `json:"forget,omitempty"` // lookups
	// Sessions are hashes of tokens that lead elsewhere now.
	Sessions [][]byte `json:"sessions,omitempty"`
	// Listing was brought up to Position, or somebody waits for it.
	Listing  string          `json:"listing,omitempty"`
	Position uint64          `json:"position,omitempty"`
	Hurry    bool            `json:"hurry,omitempty"`
	Turned   bool            `json:"turned,omitempty"` // a source
	All      bool            `json:"all,omitempty"`    // of all projects something may have changed
	Projects []api.ProjectID `json:"projects,omitempty"`
	Quarters []Quarter       `json:"quarters,omitempty"`
}

// A Quarter is a quarter of an hour, of a project whose questions are counted.
type Quarter struct {
	Project api.ProjectID `json:"p"`
	N       int64         `json:"n"`
}

// nodeTables are created when they are first needed: a database of a single node does not have them.
const nodeTables = `CREATE TABLE IF NOT EXISTS node_counts (
	name TEXT COLLATE "C" PRIMARY KEY, taken BIGINT NOT NULL, until_at TIMESTAMPTZ NOT NULL);
CREATE INDEX IF NOT EXISTS node_counts_until ON node_counts (until_at)`

// openNodes connects the catalog to other nodes: it announces its changes, and hears of theirs.
func (db *DB) openNodes(ctx context.Context, connect func(context.Context) (*pgx.Conn, error)) error {
	err := db.InTx(ctx, "prepare for several nodes", func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(7234150847)"); err != nil {
			return err
		}
		for statement := range strings.SplitSeq(nodeTables, ";") {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	is, err := db.Identity(ctx)
	if err != nil {
		return err
	}
	db.nodes = otherNodes{self: rand.Text(), channel: "docent_" + strings.ToLower(is.ID), connect: connect,
		changed: make(chan struct{}, 1), turned: make(chan struct{}, 1)}
	db.Say, db.listen = db.notify, db.hearNodes
	return nil
}

// hearer is a part that acts on what other nodes say.
type hearer struct {
	heard  func(Message)
	missed func()
}

// OnMessage registers a function for each message of another node, and for when some may have been missed. It is
// called before Start.
func (db *DB) OnMessage(heard func(Message), missed func()) {
	db.hearers = append(db.hearers, hearer{heard, missed})
}

// Turned receives after another node has turned or removed a source; it is nil on a single node.
func (db *DB) Turned() <-chan struct{} { return db.nodes.turned }

// Changes receives after another node has changed something that stands nowhere else; several changes may be told as
// one. It never does on a single node.
func (db *DB) Changes() <-chan struct{} { return db.nodes.changed }

// notify is Say if there are several nodes.
func (db *DB) notify(ctx context.Context, tx bun.IDB, what Message) error {
	what.From = db.nodes.self
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "SELECT pg_notify(?, ?)", db.nodes.channel, string(text))
	return err
}

// Forget makes all nodes ask the database again. If the others cannot be told, what they remember
// is at most Options.Stale old.
func (db *DB) Forget(names ...string) {
	db.forgetHere(names)
	db.Announce(Message{Forget: names})
}

// Announce tells the other nodes of a change that they may also see later.
func (db *DB) Announce(what Message) {
	ctx, cancel := context.WithTimeout(context.Background(), nodeDeaf)
	defer cancel()
	if err := db.Say(ctx, db.Write, what); err != nil {
		db.Log.Warn("could not notify other nodes of a change; they will notice it shortly", "error", err)
	}
}

func (db *DB) forgetHere(groups []string) {
	for _, l := range db.lookups {
		if slices.Contains(groups, l.group) {
			l.forget()
		}
	}
}

// hearNodes listens to the other nodes until ctx ends.
func (db *DB) hearNodes(ctx context.Context) {
	pause := backoff.Exponential(100*time.Millisecond, 2*time.Second)
	for failures := 0; ctx.Err() == nil; {
		err := db.hear(ctx, func() { failures = 0 })
		if ctx.Err() != nil {
			return
		}
		failures++
		db.Log.Warn("what other nodes change is seen later: the connection that hears of it is lost", "error", err)
		_ = backoff.Sleep(ctx, pause(failures))
	}
}

// hear listens over one connection until it is lost.
func (db *DB) hear(ctx context.Context, stands func()) error {
	opening, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := db.nodes.connect(opening)
	if err != nil {
		return err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		conn.Close(ending)
	}()
	if _, err := conn.Exec(opening, "LISTEN "+pgx.Identifier{db.nodes.channel}.Sanitize()); err != nil {
		return err
	}
	stands()
	db.forgetAll() // what was said before was not heard
	for {
		waiting, cancel := context.WithTimeout(ctx, nodePing)
		note, err := conn.WaitForNotification(waiting)
		quiet := waiting.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			db.hearOne(note.Payload)
			continue
		case !quiet:
			return err
		}
		asking, cancel := context.WithTimeout(ctx, nodeDeaf)
		err = conn.Ping(asking)
		cancel()
		if err != nil {
			return err
		}
	}
}

// forgetAll forgets all that other nodes may have changed, and has everybody look again.
func (db *DB) forgetAll() {
	for _, l := range db.lookups {
		l.forget()
	}
	for _, h := range db.hearers {
		h.missed()
	}
	db.Tell(nil)
	db.nodes.tell()
}

// tell wakes the parts that act on changes of other nodes.
func (n *otherNodes) tell() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// hearOne takes a message.
func (db *DB) hearOne(text string) {
	var what Message
	if err := json.Unmarshal([]byte(text), &what); err != nil {
		db.Log.Error("could not read a message from another node", "error", err)
		db.forgetAll()
		return
	}
	if what.From == db.nodes.self {
		return
	}
	db.forgetHere(what.Forget)
	for _, h := range db.hearers {
		h.heard(what)
	}
	if what.Turned {
		select {
		case db.nodes.turned <- struct{}{}:
		default:
		}
	}
	if what.Change {
		db.Tell(nil)
		db.nodes.tell()
	}
}
