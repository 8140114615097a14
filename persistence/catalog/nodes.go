package catalog

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"

	"docent/api"
	"docent/backoff"
)

const (
	nodePing = time.Second     // between two looks at whether the connection that hears is alive
	nodeDeaf = 3 * time.Second // after which one that did not answer is not
	mostSaid = 7000            // bytes of a message: PostgreSQL takes less than 8000
)

// otherNodes is what the catalogues of several nodes on one database tell each other. A nil one is that of a single node.
//
// What is remembered from the database is forgotten when another node says that it has changed it, and all of it when
// the connection that hears was lost. While it is lost, nothing is remembered for longer than Options.Stale.
type otherNodes struct {
	self    string
	channel string
	connect func(context.Context) (*pgx.Conn, error)
	heard   atomic.Bool   // the connection stands, and all that was said since is known
	changed chan struct{} // receives after a change by another node
	turned  chan struct{} // receives after another node has turned a source
	swept   atomic.Int64  // when counts were last swept
}

// said is a message.
type said struct {
	From   string   `json:"from"`
	Change bool     `json:"change,omitempty"` // of what stands nowhere else
	Forget []string `json:"forget,omitempty"` // look-ups
	// Listing was brought up to Position, or somebody waits for it.
	Listing  string          `json:"listing,omitempty"`
	Position uint64          `json:"position,omitempty"`
	Hurry    bool            `json:"hurry,omitempty"`
	Turned   bool            `json:"turned,omitempty"` // a source
	All      bool            `json:"all,omitempty"`    // of all projects something may have changed
	Projects []api.ProjectID `json:"projects,omitempty"`
	Quarters []saidQuarter   `json:"quarters,omitempty"`
}

type saidQuarter struct {
	Project api.ProjectID `json:"p"`
	N       int64         `json:"n"`
}

// nodeTables are made where they are first needed: a database of a single node does not have them.
const nodeTables = `CREATE TABLE IF NOT EXISTS node_counts (
	name TEXT COLLATE "C" PRIMARY KEY, taken BIGINT NOT NULL, until_at TIMESTAMPTZ NOT NULL);
CREATE INDEX IF NOT EXISTS node_counts_until ON node_counts (until_at)`

// openNodes has the catalogue tell other nodes of its changes, and hear of theirs.
func (c *Catalog) openNodes(ctx context.Context, connect func(context.Context) (*pgx.Conn, error)) error {
	err := c.update(ctx, "prepare for several nodes", func(ctx context.Context, tx bun.Tx) error {
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
	is, err := c.Identity(ctx)
	if err != nil {
		return err
	}
	c.nodes = &otherNodes{self: rand.Text(), channel: "docent_" + strings.ToLower(is.ID), connect: connect,
		changed: make(chan struct{}, 1), turned: make(chan struct{}, 1)}
	return nil
}

// Changes receives after another node has changed something that stands nowhere else; several changes may be told as
// one. It never does on a single node.
func (c *Catalog) Changes() <-chan struct{} {
	if c.nodes == nil {
		return nil
	}
	return c.nodes.changed
}

// say tells the other nodes something, as part of a transaction or by itself. A single node has nobody to tell.
func (c *Catalog) say(ctx context.Context, db bun.IDB, what said) error {
	if c.nodes == nil {
		return nil
	}
	what.From = c.nodes.self
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "SELECT pg_notify(?, ?)", c.nodes.channel, string(text))
	return err
}

// forget has look-ups asked of the database again, by all nodes. Where the others cannot be told, what they remember
// is at most Options.Stale old.
func (c *Catalog) forget(names ...string) {
	c.forgetHere(names)
	if c.nodes == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), nodeDeaf)
	defer cancel()
	if err := c.say(ctx, c.write, said{Forget: names}); err != nil {
		c.log.Warn("other nodes could not be told of a change, and see it a little later", "error", err)
	}
}

// Names of look-ups, as nodes tell them to each other.
const (
	lookKeys     = "keys"
	lookProjects = "projects"
	lookPeople   = "people"
	lookSessions = "sessions"
)

func (c *Catalog) forgetHere(names []string) {
	for _, name := range names {
		switch name {
		case lookKeys:
			c.keys.forget()
		case lookProjects:
			c.projects.forget()
			c.domains.forget()
		case lookPeople:
			c.people.forget()
		case lookSessions:
			c.sessions.forget()
		}
	}
}

// sayListed tells others of what a projector has written, in its transaction.
func (c *Catalog) sayListed(ctx context.Context, tx bun.Tx, listing string, pos uint64, noted *changes) error {
	if c.nodes == nil {
		return nil
	}
	what := said{Listing: listing, Position: pos, All: noted.all}
	size := 0
	for project := range noted.projects {
		what.Projects = append(what.Projects, project)
		size += len(project) + 3
	}
	for q := range noted.quarters {
		what.Quarters = append(what.Quarters, saidQuarter{q.project, q.n})
		size += len(q.project) + 30
	}
	if size > mostSaid {
		what.All, what.Projects, what.Quarters = true, nil, nil
	}
	return c.say(ctx, tx, what)
}

// hearNodes listens to the other nodes until ctx ends.
func (c *Catalog) hearNodes(ctx context.Context) {
	pause := backoff.Exponential(100*time.Millisecond, 2*time.Second)
	for failures := 0; ctx.Err() == nil; {
		err := c.hear(ctx, func() { failures = 0 })
		c.nodes.heard.Store(false)
		if ctx.Err() != nil {
			return
		}
		failures++
		c.log.Warn("what other nodes change is seen later: the connection that hears of it is lost", "error", err)
		_ = backoff.Sleep(ctx, pause(failures))
	}
}

// hear listens over one connection until it is lost.
func (c *Catalog) hear(ctx context.Context, stands func()) error {
	opening, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := c.nodes.connect(opening)
	if err != nil {
		return err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		conn.Close(ending)
	}()
	if _, err := conn.Exec(opening, "LISTEN "+pgx.Identifier{c.nodes.channel}.Sanitize()); err != nil {
		return err
	}
	stands()
	c.forgetAll() // what was said before was not heard
	c.nodes.heard.Store(true)
	for {
		waiting, cancel := context.WithTimeout(ctx, nodePing)
		note, err := conn.WaitForNotification(waiting)
		quiet := waiting.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			c.hearOne(note.Payload)
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
func (c *Catalog) forgetAll() {
	c.forgetHere([]string{lookKeys, lookProjects, lookPeople, lookSessions})
	c.days.forgetAll()
	c.cited.forgetAll()
	for _, p := range []*Projector{c.projector.Load(), c.threads.Load()} {
		if p != nil {
			p.look()
		}
	}
	c.watched.tell(nil)
	c.nodes.tell()
}

// tell has those look who act on changes of other nodes.
func (n *otherNodes) tell() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// hearOne takes a message.
func (c *Catalog) hearOne(text string) {
	var what said
	if err := json.Unmarshal([]byte(text), &what); err != nil {
		c.log.Error("a message of another node cannot be read", "error", err)
		c.forgetAll()
		return
	}
	if what.From == c.nodes.self {
		return
	}
	c.forgetHere(what.Forget)
	noted := changes{all: what.All}
	for _, project := range what.Projects {
		noted.of(project)
	}
	for _, q := range what.Quarters {
		if noted.quarters == nil {
			noted.quarters = make(map[quarterOf]bool)
		}
		noted.quarters[quarterOf{q.Project, q.N}] = true
	}
	if what.All {
		c.days.forgetAll()
		c.cited.forgetAll()
	}
	c.committed(&noted)
	if what.Turned {
		select {
		case c.nodes.turned <- struct{}{}:
		default:
		}
	}
	if what.Change {
		c.watched.tell(nil)
		c.nodes.tell()
	}
	if p := c.listing(what.Listing); p != nil {
		p.heard(what)
	}
}

// listing is the projector of that name; nil where there is none.
func (c *Catalog) listing(name string) *Projector {
	for _, p := range []*Projector{c.projector.Load(), c.threads.Load()} {
		if p != nil && p.name == name {
			return p
		}
	}
	return nil
}
