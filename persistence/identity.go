package persistence

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"docent/api"

	"github.com/uptrace/bun"
)

// Journal and catalogue belong together: the journal tells what became of jobs and threads, the catalogue who may ask for them,
// and each holds copies of what the other once said. Each has an identity and remembers the other's, with how far the other
// had come. So a store that is missing, another one's or an older copy is not taken for a new one.

// A MismatchError says why journal and catalogue cannot be used together.
type MismatchError struct{ Reason string }

func (e *MismatchError) Error() string {
	return "the journal and the catalogue do not belong together: " + e.Reason
}

// journalIdentity is what the journal says.
type journalIdentity struct {
	id       string
	catalog  string // the identity of the catalogue that it works with; empty where there is none yet
	revision uint64 // the last change of the catalogue that it has heard of
	position uint64 // of its last event
	seen     uint64 // the position that the catalogue had seen, as far as the journal has heard
}

// catalogIdentity is what the catalogue says.
type catalogIdentity struct {
	id       string
	revision uint64 // the number of its last change of what stands nowhere else
	journal  string // the identity of the journal that it works with; empty where there is none yet
	position uint64 // the last position of the journal that it has seen
	partial  bool   // a listing was being made anew when the catalogue was brought up to date: position may be too low
}

// disagreement says why the two cannot be used together; empty where they can. After a restore, the listings may have seen more
// than the journal holds: a backup copies the catalogue after the journal.
func disagreement(j journalIdentity, c catalogIdentity, restored bool) string {
	switch {
	case c.journal != "" && c.journal != j.id && j.catalog == "" && j.position == 0:
		return fmt.Sprintf("the journal is new, and the catalogue works with one that it has seen up to position %d", c.position)
	case c.journal != "" && c.journal != j.id:
		return fmt.Sprintf("the catalogue works with another journal, which it has seen up to position %d; this one ends at position %d", c.position, j.position)
	case j.catalog != "" && j.catalog != c.id && c.journal == "" && c.position == 0:
		return fmt.Sprintf("the catalogue is new, and the journal, which ends at position %d, works with another one", j.position)
	case j.catalog != "" && j.catalog != c.id:
		return fmt.Sprintf("the journal, which ends at position %d, works with another catalogue", j.position)
	case c.position > j.position && !restored:
		return fmt.Sprintf("the journal ends at position %d, and the catalogue has seen it up to position %d: it is an older copy, or its last %d events are lost",
			j.position, c.position, c.position-j.position)
	case j.revision > c.revision:
		return fmt.Sprintf("the catalogue is an older copy: its last %d changes of keys, projects, pull requests and the like, of which the journal has heard, are lost",
			j.revision-c.revision)
	case j.seen > c.position && !c.partial:
		return fmt.Sprintf("the catalogue is an older copy, or a new one: it has seen the journal up to position %d, and the journal has heard that it had seen position %d",
			c.position, j.seen)
	}
	return ""
}

// Pair makes sure that journal and catalogue belong together, and has each remember how far the other has come until end is
// called, which must be before either is closed. Two that know of no other store become a pair: new ones, and those of a
// version that had no identities. Where they do not belong together it changes nothing and fails with a *MismatchError.
//
// Restored says that both were put back from a backup.
func Pair(ctx context.Context, j *Journal, c *Catalog, restored bool) (end func(), err error) {
	is, has, err := identities(ctx, j, c)
	if err != nil {
		return nil, err
	}
	if reason := disagreement(is, has, restored); reason != "" {
		return nil, &MismatchError{reason}
	}
	return bind(ctx, j, c, is, has)
}

// Adopt makes a pair of a journal and a catalogue as they stand. The listings are emptied, and follow the journal from its
// start: positions of another journal mean nothing in this one.
func Adopt(ctx context.Context, j *Journal, c *Catalog) error {
	is, has, err := identities(ctx, j, c)
	if err != nil {
		return err
	}
	err = c.update(ctx, "empty the listings", func(ctx context.Context, tx bun.Tx) error {
		for _, of := range []projection{jobListing(c, nil), c.questionListing(nil)} {
			if err := of.drop(ctx, tx); err != nil {
				return err
			}
		}
		_, err := tx.NewRaw("UPDATE projections SET position = 0").Exec(ctx)
		return err
	})
	if err != nil {
		return err
	}
	has.position = is.position + 1 // so that it is stored
	end, err := bind(ctx, j, c, is, has)
	if err == nil {
		end()
	}
	return err
}

// Disagreement says why journal and catalogue cannot be used together; empty where they can.
func Disagreement(ctx context.Context, j *Journal, c *Catalog) (string, error) {
	is, has, err := identities(ctx, j, c)
	return disagreement(is, has, false), err
}

func identities(ctx context.Context, j *Journal, c *Catalog) (is journalIdentity, has catalogIdentity, err error) {
	is = j.identity()
	has, err = c.identity(ctx)
	return is, has, err
}

// bind stores what each has to know of the other. The catalogue comes first: a journal that knows of a catalogue which does not
// know of it would be another one's.
func bind(ctx context.Context, j *Journal, c *Catalog, is journalIdentity, has catalogIdentity) (end func(), err error) {
	if is.id == "" {
		is.id = rand.Text()
		if err := j.remember(is); err != nil {
			return nil, err
		}
	}
	if has.journal != is.id || has.position > is.position {
		if err := c.rememberJournal(ctx, has, is); err != nil {
			return nil, err
		}
	}
	// What it has not heard of yet is stored later: a disk may be full now.
	if is.catalog != has.id || is.revision > has.revision {
		is.catalog, is.revision = has.id, has.revision
		if err := j.remember(is); err != nil {
			return nil, err
		}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		j.hear(c, is, stop)
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-ended
	}), nil
}

// hearEvery is the least time between two writes of what the journal has heard of the catalogue.
const hearEvery = time.Second

// hear has the journal remember the catalogue's changes until stop is closed.
func (j *Journal) hear(c *Catalog, is journalIdentity, stop <-chan struct{}) {
	store := func() {
		revision := c.revision.Load()
		if revision <= is.revision {
			return
		}
		next := is
		next.revision = revision
		if err := j.remember(next); err != nil {
			if !errors.Is(err, api.ErrShuttingDown) {
				j.log.Warn("the journal does not know yet of the catalogue's last changes", "error", err)
			}
			return
		}
		is = next
	}
	tick := time.NewTicker(hearEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			store()
			return
		case <-tick.C:
			store()
		}
	}
}

var metaIdentity = []byte("identity")

func (i journalIdentity) encode() []byte {
	buf := appendString(appendString(head(nil), i.id), i.catalog)
	buf = binary.AppendUvarint(buf, i.revision)
	seal(metaIdentity, buf)
	return buf
}

// decodeIdentity reads what stands in the file: nothing in one that an older version made.
func decodeIdentity(body []byte) (i journalIdentity, err error) {
	if body == nil {
		return i, nil
	}
	if err := sealed(metaIdentity, body); err != nil {
		return i, err
	}
	d := decoder{rest: body[journalHead:]}
	i.id, i.catalog, i.revision = d.string(maxEventType), d.string(maxEventType), d.uvarint()
	return i, d.err
}

// identity is what the journal says of itself now.
func (j *Journal) identity() journalIdentity {
	is := *j.known.Load()
	is.position = j.Position()
	j.followMu.Lock()
	defer j.followMu.Unlock()
	for _, m := range j.followers {
		is.seen = max(is.seen, m.acked)
	}
	return is
}

// remember stores the journal's identity, and what it knows of the catalogue.
func (j *Journal) remember(is journalIdentity) error {
	err := j.do(func(c *journalCommit) error {
		if err := c.tx.Bucket(bucketMeta).Put(metaIdentity, is.encode()); err != nil {
			return fmt.Errorf("%w: %w", errFatal, err)
		}
		c.wrote = true
		return nil
	})
	if err != nil {
		return fmt.Errorf("remember the catalogue in the journal: %w", err)
	}
	j.known.Store(&is)
	return nil
}

type storeRow struct {
	bun.BaseModel `bun:"table:stores"`

	Name     string `bun:"name,pk"`
	ID       string `bun:"id"`
	Position uint64 `bun:"position"`
}

const (
	storeCatalog = "catalog"
	storeJournal = "journal"
)

// identify gives a catalogue its identity, at the migration that brings these.
func identify(ctx context.Context, db bun.IDB) error {
	var seen uint64
	if err := db.NewRaw("SELECT COALESCE(MAX(position), 0) FROM projections").Scan(ctx, &seen); err != nil {
		return err
	}
	rows := []storeRow{{Name: storeCatalog, ID: rand.Text()}, {Name: storeJournal, Position: seen}}
	_, err := db.NewInsert().Model(&rows).Exec(ctx)
	return err
}

// identity is what the catalogue says of itself now.
func (c *Catalog) identity(ctx context.Context) (is catalogIdentity, err error) {
	var rows []storeRow
	if err := c.read.NewSelect().Model(&rows).Scan(ctx); err != nil {
		return is, c.fail("read the catalogue's identity", err)
	}
	for _, r := range rows {
		switch r.Name {
		case storeCatalog:
			is.id, is.revision = r.ID, r.Position
		case storeJournal:
			is.journal, is.position = r.ID, r.Position
		}
	}
	if is.id == "" {
		return is, fmt.Errorf("read the catalogue's identity: %w: %s has none", ErrCorrupt, c.name)
	}
	if is.journal == "" {
		var reset int
		if err := c.read.NewRaw("SELECT COUNT(*) FROM projections WHERE position = 0").Scan(ctx, &reset); err != nil {
			return is, c.fail("read the listings' positions", err)
		}
		is.partial = reset > 0
	}
	c.heard(is.revision)
	return is, nil
}

// rememberJournal makes a journal the one that the catalogue works with, unless another process was faster with another one.
func (c *Catalog) rememberJournal(ctx context.Context, was catalogIdentity, is journalIdentity) error {
	return c.update(ctx, "remember the journal", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewUpdate().Model((*storeRow)(nil)).Set("id = ?", is.id).Set("position = ?", is.position).
			Where("name = ?", storeJournal).Where("id = ?", was.journal).Exec(ctx)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, &MismatchError{"another process has just made the catalogue work with another journal"})
		}
		return nil
	})
}

// change runs fn in one transaction, which counts as a change of what stands nowhere else.
func (c *Catalog) change(ctx context.Context, doing string, fn func(context.Context, bun.Tx) error) error {
	var revision uint64
	err := c.update(ctx, doing, func(ctx context.Context, tx bun.Tx) error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		// Last, since on PostgreSQL others who change something wait here until this has ended.
		return tx.NewRaw("UPDATE stores SET position = position + 1 WHERE name = ? RETURNING position", storeCatalog).Scan(ctx, &revision)
	})
	if err == nil {
		c.heard(revision)
	}
	return err
}

// heard remembers the highest number of a change.
func (c *Catalog) heard(revision uint64) {
	for {
		old := c.revision.Load()
		if old >= revision || c.revision.CompareAndSwap(old, revision) {
			return
		}
	}
}

// SeenJournal says up to which position the catalogue has seen a journal, and whether it has worked with one at all.
func (c *Catalog) SeenJournal(ctx context.Context) (position uint64, worked bool, err error) {
	is, err := c.identity(ctx)
	return is.position, is.journal != "" || is.position > 0, err
}

// ListedOnly yields what is listed of jobs and questions of which the journal knows nothing.
func (c *Catalog) ListedOnly(ctx context.Context, j *Journal, yield func(table, id string, body json.RawMessage) error) error {
	for _, of := range []struct{ table, stream, prefix string }{{"jobs", "id", jobStreamPrefix}, {"questions", "thread_id", threadStreamPrefix}} {
		for after, more := "", true; more; {
			var rows []struct {
				ID     string          `bun:"id"`
				Stream string          `bun:"stream"`
				Body   json.RawMessage `bun:"body"`
			}
			err := c.read.NewSelect().Table(of.table).Column("id", "body").ColumnExpr("? AS stream", bun.Ident(of.stream)).
				Where("id > ?", after).OrderBy("id", bun.OrderAsc).Limit(projectBatch).Scan(ctx, &rows)
			if err != nil {
				return c.fail("read "+of.table, err)
			}
			for _, r := range rows {
				after = r.ID
				known, err := j.Load(of.prefix + r.Stream)
				if err != nil || known.Seq > 0 { // a damaged stream is one that the journal knows
					continue
				}
				if err := yield(of.table, r.ID, r.Body); err != nil {
					return err
				}
			}
			more = len(rows) == projectBatch
		}
	}
	return nil
}
