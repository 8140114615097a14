package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"docent/api"
	"docent/backoff"

	"github.com/uptrace/bun"
	"golang.org/x/sync/errgroup"
)

// Names under which the listings follow the journal, which keeps what they have not stored until they have.
const (
	JobListing      = "jobs"
	QuestionListing = "threads"
)

// A Source is what a projector needs of the journal: a journal.Follower.
type Source interface {
	// Position is the position of the last event on disk.
	Position() uint64
	// Head is Position where several nodes write to the journal: that of the last event of all of them.
	Head() (uint64, error)
	// Trimmed is the highest position whose event was removed from the log: a listing that has not come so far must begin
	// from the start.
	Trimmed() uint64
	// Since yields, in the order of positions, the streams that changed after pos, removed ones included.
	Since(pos uint64, yield func(pos uint64, stream string) bool) error
	// Changed receives after commits; several may be told as one.
	Changed() <-chan struct{}
	// Ack says that everything up to pos is handled and remembered.
	Ack(pos uint64)
}

const (
	jobStreamPrefix = "job/"

	projectBatch = 512                    // most streams in one transaction
	pacedBatch   = 64                     // the same, where nobody waits
	yieldEvery   = 8                      // rows, made in under a millisecond, after which others get the processor
	projectGap   = 100 * time.Millisecond // a step's time, where nobody waits: one sync for many changes
	storeEvery   = time.Second            // between writes of the position alone, while no stream changes
	retryFirst   = 100 * time.Millisecond // after a failure; doubled up to retryMost
	retryMost    = 5 * time.Second
)

// A projection is what a Projector keeps: rows that are copies of the streams of one kind.
type projection struct {
	name   string        // of its position in the catalogue
	title  string        // for the log
	kind   string        // of its streams, as the log's key for one of them
	prefix string        // of its streams' names
	table  string        // that holds the rows
	column string        // with a stream's name, without the prefix
	gap    time.Duration // a step's time, where nobody waits
	// load makes what is stored of a stream. It says false where the stream does not exist or holds nothing to show. What
	// the stream's events up to the position since say is stored already.
	load func(ctx context.Context, stream string, since uint64) (any, bool, error)
	// write stores what load made, and removes what is stored of streams that are no more. It notes what has changed.
	write func(ctx context.Context, tx bun.Tx, rows []any, gone []string, noted *changes) error
	// also removes what is stored elsewhere of all streams; nil where nothing is.
	also func(ctx context.Context, tx bun.Tx) error
	// beside runs as long as the projector; nil where there is nothing to do.
	beside func(ctx context.Context)
}

// changes are what a transaction has changed in listings.
type changes struct {
	all      bool                   // also of projects that are not known here
	projects map[api.ProjectID]bool // that have another row, or one less
	quarters map[quarterOf]bool     // of questions
	texts    bool                   // there are words to be written
}

func (n *changes) of(project api.ProjectID) {
	if n.projects == nil {
		n.projects = make(map[api.ProjectID]bool)
	}
	n.projects[project] = true
}

func (n *changes) question(r *questionRow) {
	n.of(r.Project)
	if n.quarters == nil {
		n.quarters = make(map[quarterOf]bool)
	}
	n.quarters[quarterOf{r.Project, quarterAt(r.Num >> numberBits)}] = true
	n.texts = true
}

// committed tells everybody who has to know of changes.
func (c *Catalog) committed(noted *changes) {
	c.days.forget(noted.quarters)
	c.cited.forget(noted.quarters)
	if noted.texts {
		c.textsQueued()
	}
	if noted.all {
		c.watched.tell(nil)
	} else if len(noted.projects) > 0 {
		c.watched.tell(noted.projects)
	}
}

// drop removes all that is stored.
func (of projection) drop(ctx context.Context, tx bun.Tx) error {
	_, err := tx.NewRaw("DELETE FROM ?", bun.Ident(of.table)).Exec(ctx)
	if err == nil && of.also != nil {
		err = of.also(ctx, tx)
	}
	return err
}

// listed reads which streams something is stored of, in the order of their names without the prefix, from the one after
// the name given.
func (of projection) listed(ctx context.Context, c *Catalog, after string, n int) (names []string, err error) {
	err = c.read.NewSelect().Distinct().Table(of.table).Column(of.column).Where("? > ?", bun.Ident(of.column), after).
		OrderBy(of.column, bun.OrderAsc).Limit(int64(n)).Scan(ctx, &names)
	return names, c.fail("read which "+of.kind+"s are listed", err)
}

// upsert has an insert replace columns of the rows that are there.
func upsert(insert *bun.InsertQuery, columns ...string) *bun.InsertQuery {
	insert = insert.On("CONFLICT (id) DO UPDATE")
	for _, name := range columns {
		insert = insert.Set("? = EXCLUDED.?", bun.Ident(name), bun.Ident(name))
	}
	return insert
}

// A Projector keeps a listing in the catalogue up with the journal: that of jobs, or that of the questions that threads
// have answered. A listing's rows and the position that they reflect are written in one transaction, so that whatever
// dies, it goes on where it was. A job or thread whose stream is damaged keeps its last rows and is logged; the others
// go on.
type Projector struct {
	projection
	catalog *Catalog
	source  Source
	log     *slog.Logger
	hurry   chan struct{} // somebody waits

	runs      atomic.Bool // here; of several nodes, one runs it
	elsewhere atomic.Bool // somebody waits at another node

	work   sync.Mutex // one step at a time: the loop's or a rebuild's
	begun  bool       // guarded by work, as are the next three
	first  bool       // step, which may find the whole log
	stored uint64     // the position in the catalogue
	asOf   time.Time  // of the last write

	mu      sync.Mutex
	reached uint64
	whole   bool // the listing has come to where the journal ended when this projector began
	target  uint64
	aimed   bool // target was read
	waiting map[chan struct{}]uint64
}

// A JobLoader makes the row of a job's stream. It says false where the stream does not exist or is no job.
type JobLoader func(ctx context.Context, stream string) (api.JobRow, bool, error)

// NewProjector makes the projector of a catalogue's job listings and lets the catalogue's listings wait for it. It
// does nothing before Run.
func NewProjector(c *Catalog, source Source, load JobLoader, log *slog.Logger) *Projector {
	p := newProjector(c, source, jobListing(load), log)
	c.projector.Store(p)
	return p
}

func newProjector(c *Catalog, source Source, of projection, log *slog.Logger) *Projector {
	if log == nil {
		log = slog.Default()
	}
	p := &Projector{projection: of, catalog: c, source: source, log: log,
		hurry: make(chan struct{}, 1), waiting: make(map[chan struct{}]uint64)}
	if c.nodes != nil {
		p.look() // another node may have brought it to the journal's end long ago, and say nothing
	}
	return p
}

// Run catches up and follows the journal until ctx ends. Where the catalogue or the journal cannot be used, it tries
// again. It must have returned before the catalogue is closed.
//
// Of several nodes on one database, one runs it at a time, and may run it again later. What the others list waits for it.
func (p *Projector) Run(ctx context.Context) {
	p.work.Lock()
	p.begun = false // another node may have gone on
	p.work.Unlock()
	p.runs.Store(true)
	defer p.runs.Store(false)
	var beside sync.WaitGroup
	if p.beside != nil {
		beside.Go(func() { p.beside(ctx) })
		defer beside.Wait()
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		p.work.Lock()
		defer p.work.Unlock()
		if reached := p.position(); p.begun && reached > p.stored {
			if err := p.write(last, nil, nil, reached); err != nil {
				p.log.Warn("the position of "+p.title+" is not stored", "error", err)
			}
		}
	}()
	failures, retry := 0, backoff.Exponential(retryFirst, retryMost)
	for ctx.Err() == nil {
		began := time.Now()
		err := api.Guard(func() error { return p.step(ctx) })
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			pause := retry(failures)
			p.log.Warn(p.title+" is behind", "error", err, "again", pause)
			_ = backoff.Sleep(ctx, pause)
			continue
		}
		// Also after a step that had nothing to write: the journal may have hundreds of commits a second, none of them of a
		// stream of this kind.
		p.rest(ctx, began.Add(p.gap))
		failures = 0
		if p.awaited() {
			continue // somebody has come since the step, and there may be no change to wake us
		}
		select {
		case <-ctx.Done():
		case <-p.source.Changed():
		case <-p.hurry:
		}
	}
}

// rest waits until a time, or until somebody waits for the listing.
func (p *Projector) rest(ctx context.Context, until time.Time) {
	if time.Until(until) <= 0 || p.awaited() {
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-p.hurry:
	case <-timer.C:
	}
}

// awaited is whether somebody waits for the listing.
func (p *Projector) awaited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) > 0
}

// step brings the listing up to the journal's end.
func (p *Projector) step(ctx context.Context) error {
	p.work.Lock()
	defer p.work.Unlock()
	if err := p.begin(ctx); err != nil {
		return err
	}
	gap := p.gap
	if p.first {
		gap, p.first = 0, false
	}
	return p.advance(ctx, gap)
}

// readPosition is how far the listing is, in the database; zero where there is none.
func (p *Projector) readPosition(ctx context.Context) (pos uint64, err error) {
	err = p.catalog.read.NewRaw("SELECT position FROM projections WHERE name = ?", p.name).Scan(ctx, &pos)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, p.catalog.fail("read the listing's position", err)
	}
	return pos, nil
}

// begin reads, once, how far the listing is, and drops it where the journal cannot take it from there.
func (p *Projector) begin(ctx context.Context) error {
	if p.begun {
		return nil
	}
	pos, err := p.readPosition(ctx)
	if err != nil {
		return err
	}
	last, err := p.source.Head()
	if err != nil {
		return err
	}
	trimmed := p.source.Trimmed()
	if pos > last || pos < trimmed {
		if pos > 0 {
			p.log.Warn(p.title+" does not fit the journal and is made anew", "listing", pos, "journal", last, "trimmed", trimmed)
		}
		if err := p.drop(ctx); err != nil {
			return err
		}
		pos = 0
	}
	p.begun, p.first, p.stored = true, true, pos
	p.mu.Lock()
	p.target, p.aimed = last, true
	p.mu.Unlock()
	p.reach(pos)
	return nil
}

// drop empties the listing.
func (p *Projector) drop(ctx context.Context) error {
	err := p.catalog.update(ctx, "drop "+p.title, func(ctx context.Context, tx bun.Tx) error {
		if err := p.projection.drop(ctx, tx); err != nil {
			return err
		}
		if err := p.storePosition(ctx, tx, 0); err != nil {
			return err
		}
		return p.catalog.sayListed(ctx, tx, p.name, 0, &changes{all: true})
	})
	if err == nil {
		p.catalog.days.forgetAll()
		p.catalog.cited.forgetAll()
		p.catalog.watched.tell(nil)
	}
	return err
}

// Rebuild makes every row of the listing again from the journal, and removes those of streams that no longer exist. Run
// need not be running; where it is, the listing follows the journal all the while. Each row is there at any time, as it
// was or as it should be: listings are complete also meanwhile, and where this breaks off.
func (p *Projector) Rebuild(ctx context.Context) error {
	if err := p.rebuild(ctx); err != nil {
		return fmt.Errorf("rebuild %s: %w", p.title, err)
	}
	return nil
}

func (p *Projector) rebuild(ctx context.Context) error {
	catchUp := func() error {
		p.work.Lock()
		defer p.work.Unlock()
		if err := p.begin(ctx); err != nil {
			return err
		}
		return p.advance(ctx, 0)
	}
	if err := catchUp(); err != nil { // from here on nothing is dropped
		return err
	}
	known := make(map[string]bool)
	var batch []string
	flush := func() error {
		err := p.renew(ctx, batch)
		batch = batch[:0]
		return err
	}
	var failed error
	err := p.source.Since(0, func(_ uint64, stream string) bool {
		if strings.HasPrefix(stream, p.prefix) && !known[stream] {
			known[stream] = true
			if batch = append(batch, stream); len(batch) >= projectBatch {
				failed = flush()
			}
		}
		return failed == nil && ctx.Err() == nil
	})
	if err := errors.Join(failed, err, ctx.Err()); err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	for after, more := "", true; more; {
		names, err := p.listed(ctx, p.catalog, after, projectBatch)
		if err != nil {
			return err
		}
		for _, name := range names {
			if after = name; !known[p.prefix+name] { // it is no more, or has come meanwhile
				batch = append(batch, p.prefix+name)
			}
		}
		if err := flush(); err != nil {
			return err
		}
		more = len(names) == projectBatch
	}
	return catchUp()
}

// renew makes the rows of streams again, also those that seem to be newer than what the journal has.
func (p *Projector) renew(ctx context.Context, streams []string) error {
	if len(streams) == 0 {
		return nil
	}
	p.work.Lock()
	defer p.work.Unlock()
	rows, gone, made, err := p.loadAll(ctx, streams, 0)
	if err != nil {
		return err
	}
	var noted changes
	err = p.catalog.update(ctx, "write "+p.title, func(ctx context.Context, tx bun.Tx) error {
		if err := p.projection.write(ctx, tx, nil, made, &noted); err != nil {
			return err
		}
		if err := p.projection.write(ctx, tx, rows, gone, &noted); err != nil {
			return err
		}
		return p.catalog.sayListed(ctx, tx, "", 0, &noted)
	})
	if err == nil {
		p.catalog.committed(&noted)
	}
	return err
}

// advance reads which streams changed, loads their rows, and writes them batch by batch, each with the position
// reached. Where nobody waits, it does so evenly over the time given: what thousands of questions a second leave to be
// listed would otherwise take all processors for half a second, once a second, and requests would wait meanwhile.
func (p *Projector) advance(ctx context.Context, over time.Duration) error {
	from, last, end := p.position(), p.position(), p.source.Position()
	began := time.Now()
	batch := func() int {
		if over > 0 && !p.awaited() {
			return pacedBatch
		}
		return projectBatch
	}
	var dirty []string
	seen := make(map[string]bool)
	flush := func(reached uint64) error {
		rows, gone, _, err := p.loadAll(ctx, dirty, p.position())
		if err != nil {
			return err
		}
		if len(dirty) > 0 || reached > p.stored && (time.Since(p.asOf) >= storeEvery || p.elsewhere.Swap(false)) {
			if err := p.write(ctx, rows, gone, reached); err != nil {
				return err
			}
		}
		dirty = dirty[:0]
		clear(seen)
		p.reach(reached)
		return nil
	}
	var failed error
	err := p.source.Since(from, func(pos uint64, stream string) bool {
		if over > 0 && pos > end {
			return false // what has come meanwhile is the next step's
		}
		if strings.HasPrefix(stream, p.prefix) && !seen[stream] {
			if len(dirty) >= batch() {
				failed = flush(last)
				p.rest(ctx, began.Add(time.Duration(float64(over)*float64(last-from)/float64(end-from))))
			}
			seen[stream] = true
			dirty = append(dirty, stream)
		}
		last = pos
		return failed == nil && ctx.Err() == nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("read the journal from position %d: %w", from, err)
	}
	return flush(max(last, end))
}

// loadAll loads the rows of streams, and says which of them are no more and which have rows. What their events up to
// the position since say may be left out.
func (p *Projector) loadAll(ctx context.Context, streams []string, since uint64) (
	rows []any, gone, made []string, err error) {
	loaded := make([]any, len(streams))
	absent := make([]bool, len(streams))
	group, ctx := errgroup.WithContext(ctx)
	load := func(i int) error {
		var row any
		var ok bool
		err := api.Guard(func() (err error) {
			row, ok, err = p.load(ctx, streams[i], since)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, api.ErrUnavailable):
			return fmt.Errorf("load %s: %w", streams[i], err)
		case err != nil:
			// Trying again would hold up all others and not mend this one.
			p.log.Error(p.title+" keeps what it had of one stream",
				p.kind, strings.TrimPrefix(streams[i], p.prefix), "error", err)
			return nil
		}
		if absent[i] = !ok; ok {
			loaded[i] = row
		}
		return nil
	}
	// A goroutine for each would cost as much as the loading.
	const least = pacedBatch
	each := max(least, (len(streams)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	for from := 0; from < len(streams); from += each {
		group.Go(func() error {
			for i := from; i < min(from+each, len(streams)); i++ {
				if err := load(i); err != nil {
					return err
				}
				if i%yieldEvery == yieldEvery-1 {
					runtime.Gosched()
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, nil, err
	}
	for i, stream := range streams {
		switch {
		case loaded[i] != nil:
			rows = append(rows, loaded[i])
			made = append(made, strings.TrimPrefix(stream, p.prefix))
		case absent[i]:
			gone = append(gone, strings.TrimPrefix(stream, p.prefix))
		}
	}
	return rows, gone, made, nil
}

// write stores rows and position together.
func (p *Projector) write(ctx context.Context, rows []any, gone []string, pos uint64) error {
	var noted changes
	err := p.catalog.update(ctx, "write "+p.title, func(ctx context.Context, tx bun.Tx) error {
		if err := p.projection.write(ctx, tx, rows, gone, &noted); err != nil {
			return err
		}
		if err := p.storePosition(ctx, tx, pos); err != nil {
			return err
		}
		return p.catalog.sayListed(ctx, tx, p.name, pos, &noted)
	})
	if err != nil {
		return err
	}
	p.catalog.committed(&noted)
	p.stored, p.asOf = pos, time.Now()
	p.source.Ack(pos) // not before: what is acknowledged may be removed from the log
	return nil
}

func (p *Projector) storePosition(ctx context.Context, tx bun.Tx, pos uint64) error {
	return p.catalog.placeFollower(ctx, tx, p.name, pos)
}

// beginFollower stores where a follower begins. It says false where one has begun already.
func beginFollower(ctx context.Context, tx bun.Tx, name string, pos uint64) (bool, error) {
	res, err := tx.NewRaw("INSERT INTO projections (name, position) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", name, pos).Exec(ctx)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// placeFollower stores how far a follower of the journal has come.
func (c *Catalog) placeFollower(ctx context.Context, tx bun.Tx, name string, pos uint64) error {
	if c.journaled && pos > 0 {
		var end uint64
		if err := tx.NewRaw("SELECT position FROM journal_head").Scan(ctx, &end); err != nil {
			return err
		}
		if end < pos {
			return fmt.Errorf("%w: the journal has lost its events from position %d on, of which %s has those up to %d",
				api.ErrUnavailable, end+1, name, pos)
		}
	}
	_, err := tx.NewRaw("INSERT INTO projections (name, position) VALUES (?, ?) "+
		"ON CONFLICT (name) DO UPDATE SET position = EXCLUDED.position", name, pos).Exec(ctx)
	if err == nil && pos > 0 {
		_, err = tx.NewRaw("UPDATE stores SET position = ? WHERE name = ? AND position < ?", pos, storeJournal, pos).Exec(ctx)
	}
	return err
}

// Name is under what name the listing follows the journal.
func (p *Projector) Name() string { return p.name }

// Position is the position of the journal that the listing reflects.
func (p *Projector) Position() uint64 { return p.position() }

func (p *Projector) position() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reached
}

// reach tells those who wait how far the listing is.
func (p *Projector) reach(pos uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reachTo(pos)
}

// reachTo is reach for a caller that holds mu.
func (p *Projector) reachTo(pos uint64) {
	p.reached = pos
	p.whole = p.whole || p.aimed && pos >= p.target
	for c, until := range p.waiting {
		if until <= pos {
			close(c)
			delete(p.waiting, c)
		}
	}
}

// Wait returns once the listing reflects the journal up to pos, or up to its end where pos lies beyond it.
func (p *Projector) Wait(ctx context.Context, pos uint64) error {
	head, err := p.source.Head()
	if err != nil {
		return err
	}
	pos = min(pos, head)
	p.mu.Lock()
	if p.reached >= pos {
		p.mu.Unlock()
		return nil
	}
	c := make(chan struct{})
	p.waiting[c] = pos
	p.mu.Unlock()
	p.hasten()
	if p.catalog.nodes != nil {
		defer p.lookNow(ctx)()
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		delete(p.waiting, c)
		p.mu.Unlock()
		return ctx.Err()
	}
}

// await waits, for a short time, until the listing reflects the journal up to pos. Where it cannot, a listing that is a
// little old is better than none. But one that is still on its way to where the journal ended when the process began
// may lack most of what was acknowledged: it is unavailable.
func (p *Projector) await(ctx context.Context, pos uint64) error {
	waiting, cancel := context.WithTimeout(ctx, listingWait)
	defer cancel()
	if p.Wait(waiting, pos) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.usable()
}

// usable fails while the listing is being made anew and is not whole.
func (p *Projector) usable() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.whole {
		return fmt.Errorf("%s is being made from the journal: %w", p.title,
			&api.BusyError{Kind: api.ErrUnavailable, RetryAfter: listingWait})
	}
	return nil
}
