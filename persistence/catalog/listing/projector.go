package listing

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

	"github.com/uptrace/bun"

	"docent/api"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/persistence/catalog/database"
)

// Names under which the listings follow the journal, which keeps what they have not stored until they have.
const (
	JobListing      = "jobs"
	QuestionListing = "threads"
)

// A Source is what a projector needs of the journal: a journal.Follower.
type Source interface {
	// Position is the position of the last event that this process has heard of.
	Position() uint64
	// End is the position of the last event that the journal holds, of this process or another one.
	End() (uint64, error)
	// Trimmed is the highest position whose event was removed from the log: a listing that has not come so far must begin
	// from the start.
	Trimmed() uint64
	// Since yields, in the order of positions, the streams that changed after pos, removed ones included.
	Since(pos uint64, yield func(pos uint64, stream string) bool) error
	// Changed receives after commits; several may be reported as one.
	Changed() <-chan struct{}
	// Ack says that everything up to pos is handled and remembered.
	Ack(pos uint64)
}

const (
	jobStreamPrefix = "job/"

	Batch      = 512                    // most streams in one transaction
	pacedBatch = 64                     // the same, when nobody waits
	yieldEvery = 8                      // rows, made in under a millisecond, after which others get the processor
	projectGap = 100 * time.Millisecond // a step's time, when nobody waits: one sync for many changes
	storeEvery = time.Second            // between writes of the position alone, while no stream changes
	retryFirst = 100 * time.Millisecond // after a failure; doubled up to retryMost
	retryMost  = 5 * time.Second
)

// A Projection is what a Projector keeps: rows that are copies of the streams of one kind.
type Projection struct {
	Name   string        // of its position in the catalog
	Title  string        // for the log
	Kind   string        // of its streams, as the log's key for one of them
	Prefix string        // of its streams' names
	Table  string        // that holds the rows
	Column string        // with a stream's name, without the prefix
	Gap    time.Duration // a step's time, when nobody waits
	// Load makes what is stored of a stream. It returns false if the stream does not exist or holds nothing to show. What
	// the stream's events up to the position since say is stored already.
	Load func(ctx context.Context, stream string, since uint64) (any, bool, error)
	// Write stores what load made, and removes what is stored of streams that are no more. It notes what has changed.
	Write func(ctx context.Context, tx bun.Tx, rows []any, gone []string, noted *Changes) error
	// Also removes what is stored elsewhere of all streams; nil if nothing is.
	Also func(ctx context.Context, tx bun.Tx) error
	// Beside runs as long as the projector; nil if there is nothing to do.
	Beside func(ctx context.Context)
}

// Changes are what a transaction has changed in listings.
type Changes struct {
	All      bool                      // also of projects that are not known here
	Projects map[api.ProjectID]bool    // that have another row, or one less
	Quarters map[database.Quarter]bool // of questions
	Texts    bool                      // there are words to be written
}

// Of notes that something of a project has changed.
func (n *Changes) Of(project api.ProjectID) {
	if n.Projects == nil {
		n.Projects = make(map[api.ProjectID]bool)
	}
	n.Projects[project] = true
}

// Quarter notes that what is counted of a quarter of an hour has changed.
func (n *Changes) Quarter(of database.Quarter) {
	if n.Quarters == nil {
		n.Quarters = make(map[database.Quarter]bool)
	}
	n.Quarters[of] = true
}

// committed tells everybody who has to know of changes.
func (s *Store) committed(noted *Changes) {
	for _, o := range s.observers {
		o.changed(noted)
	}
	if noted.All {
		s.db.Tell(nil)
	} else if len(noted.Projects) > 0 {
		s.db.Tell(noted.Projects)
	}
}

// drop removes all that is stored.
func (of Projection) drop(ctx context.Context, tx bun.Tx) error {
	_, err := tx.NewRaw("DELETE FROM ?", bun.Ident(of.Table)).Exec(ctx)
	if err == nil && of.Also != nil {
		err = of.Also(ctx, tx)
	}
	return err
}

// listed reads which streams something is stored of, in the order of their names without the prefix, from the one after
// the name given.
func (of Projection) listed(ctx context.Context, s *Store, after string, n int) (names []string, err error) {
	err = s.db.Read.NewSelect().Distinct().Table(of.Table).Column(of.Column).Where("? > ?", bun.Ident(of.Column), after).
		OrderBy(of.Column, bun.OrderAsc).Limit(int64(n)).Scan(ctx, &names)
	return names, s.db.Fail("read which "+of.Kind+"s are listed", err)
}

// A Projector keeps a listing in the catalog up with the journal: that of jobs, or that of the questions that threads
// have answered. A listing's rows and the position that they reflect are written in one transaction, so that whatever
// dies, it goes on where it was. A job or thread whose stream is damaged keeps its last rows and is logged; the others
// go on.
type Projector struct {
	of     Projection
	store  *Store
	source Source
	log    *slog.Logger
	hurry  chan struct{} // somebody waits

	runs      atomic.Bool // here; of several nodes, one runs it
	elsewhere atomic.Bool // somebody waits at another node

	work   sync.Mutex // one step at a time: the loop's or a rebuild's
	begun  bool       // guarded by work, as are the next three
	first  bool       // step, which may find the whole log
	stored uint64     // the position in the catalog
	asOf   time.Time  // of the last write

	mu      sync.Mutex
	reached uint64
	whole   bool // the listing has come to where the journal ended when this projector began
	target  uint64
	aimed   bool // target was read
	waiting map[chan struct{}]uint64
}

// Keep makes the projector of a listing and lets what reads the listing wait for it. It does nothing before Run.
func (s *Store) Keep(of Projection, source Source, log *slog.Logger) *Projector {
	if log == nil {
		log = slog.Default()
	}
	p := &Projector{of: of, store: s, source: source, log: log,
		hurry: make(chan struct{}, 1), waiting: make(map[chan struct{}]uint64)}
	p.look() // another node may have brought it to the journal's end long ago, and say nothing
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projectors[of.Name] = p
	return p
}

// Run catches up and follows the journal until ctx ends. If the catalog or the journal cannot be used, it tries
// again. It must have returned before the catalog is closed.
//
// Of several nodes on one database, one runs it at a time, and may run it again later. What the others list waits for it.
func (p *Projector) Run(ctx context.Context) {
	p.work.Lock()
	p.begun = false // another node may have gone on
	p.work.Unlock()
	p.runs.Store(true)
	defer p.runs.Store(false)
	var beside background.Work
	if p.of.Beside != nil {
		beside.Essential("persistence/catalog.Run", func() { p.of.Beside(ctx) })
		defer beside.Wait()
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		p.work.Lock()
		defer p.work.Unlock()
		if reached := p.position(); p.begun && reached > p.stored {
			if err := p.write(last, nil, nil, reached); err != nil {
				p.log.Warn("the position of "+p.of.Title+" is not stored", "error", err)
			}
		}
	}()
	failures, retry := 0, backoff.Exponential(retryFirst, retryMost)
	for ctx.Err() == nil {
		began := time.Now()
		err := background.Guard(func() error { return p.step(ctx) })
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			pause := retry(failures)
			p.log.Warn(p.of.Title+" is behind", "error", err, "again", pause)
			_ = backoff.Sleep(ctx, pause)
			continue
		}
		// Also after a step that had nothing to write: the journal may have hundreds of commits a second, none of them
		// of a stream of this kind.
		p.rest(ctx, began.Add(p.of.Gap))
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

// awaited reports whether somebody waits for the listing.
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
	gap := p.of.Gap
	if p.first {
		gap, p.first = 0, false
	}
	return p.advance(ctx, gap)
}

// readPosition is how far the listing is, in the database; zero if there is none.
func (p *Projector) readPosition(ctx context.Context) (pos uint64, err error) {
	err = p.store.db.Read.NewRaw("SELECT position FROM projections WHERE name = ?", p.of.Name).Scan(ctx, &pos)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, p.store.db.Fail("read the listing's position", err)
	}
	return pos, nil
}

// begin reads, once, how far the listing is, and drops it if the journal cannot take it from there.
func (p *Projector) begin(ctx context.Context) error {
	if p.begun {
		return nil
	}
	pos, err := p.readPosition(ctx)
	if err != nil {
		return err
	}
	last, err := p.source.End()
	if err != nil {
		return err
	}
	trimmed := p.source.Trimmed()
	if pos > last || pos < trimmed {
		if pos > 0 {
			p.log.Warn(p.of.Title+" does not match the journal, rebuilding", "listing", pos, "journal", last, "trimmed", trimmed)
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
	err := p.store.db.InTx(ctx, "drop "+p.of.Title, func(ctx context.Context, tx bun.Tx) error {
		if err := p.of.drop(ctx, tx); err != nil {
			return err
		}
		if err := p.storePosition(ctx, tx, 0); err != nil {
			return err
		}
		return p.store.sayListed(ctx, tx, p.of.Name, 0, &Changes{All: true})
	})
	if err == nil {
		p.store.reset()
		p.store.db.Tell(nil)
	}
	return err
}

// Rebuild makes every row of the listing again from the journal, and removes those of streams that no longer exist. Run
// need not be running; if it is, the listing follows the journal all the while. Each row is there at any time, as it
// was or as it should be: listings are complete also meanwhile, and if this breaks off.
func (p *Projector) Rebuild(ctx context.Context) error {
	if err := p.rebuild(ctx); err != nil {
		return fmt.Errorf("rebuild %s: %w", p.of.Title, err)
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
		if strings.HasPrefix(stream, p.of.Prefix) && !known[stream] {
			known[stream] = true
			if batch = append(batch, stream); len(batch) >= Batch {
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
		names, err := p.of.listed(ctx, p.store, after, Batch)
		if err != nil {
			return err
		}
		for _, name := range names {
			if after = name; !known[p.of.Prefix+name] { // it is no more, or has come meanwhile
				batch = append(batch, p.of.Prefix+name)
			}
		}
		if err := flush(); err != nil {
			return err
		}
		more = len(names) == Batch
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
	var noted Changes
	err = p.store.db.InTx(ctx, "write "+p.of.Title, func(ctx context.Context, tx bun.Tx) error {
		if err := p.of.Write(ctx, tx, nil, made, &noted); err != nil {
			return err
		}
		if err := p.of.Write(ctx, tx, rows, gone, &noted); err != nil {
			return err
		}
		return p.store.sayListed(ctx, tx, "", 0, &noted)
	})
	if err == nil {
		p.store.committed(&noted)
	}
	return err
}

// advance reads which streams changed, loads their rows, and writes them batch by batch, each with the position
// reached. When nobody waits, it does so evenly over the time given: what thousands of questions a second leave to be
// listed would otherwise take all processors for half a second, once a second, and requests would wait meanwhile.
func (p *Projector) advance(ctx context.Context, over time.Duration) error {
	from, last, end := p.position(), p.position(), p.source.Position()
	began := time.Now()
	batch := func() int {
		if over > 0 && !p.awaited() {
			return pacedBatch
		}
		return Batch
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
		if strings.HasPrefix(stream, p.of.Prefix) && !seen[stream] {
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
	group, ctx := background.WithContext(ctx)
	load := func(i int) error {
		var row any
		var ok bool
		err := background.Guard(func() (err error) {
			row, ok, err = p.of.Load(ctx, streams[i], since)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, api.ErrUnavailable):
			return fmt.Errorf("load %s: %w", streams[i], err)
		case err != nil:
			// Trying again would hold up all others and not mend this one.
			p.log.Error(p.of.Title+" keeps what it had of one stream",
				p.of.Kind, strings.TrimPrefix(streams[i], p.of.Prefix), "error", err)
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
			made = append(made, strings.TrimPrefix(stream, p.of.Prefix))
		case absent[i]:
			gone = append(gone, strings.TrimPrefix(stream, p.of.Prefix))
		}
	}
	return rows, gone, made, nil
}

// write stores rows and position together.
func (p *Projector) write(ctx context.Context, rows []any, gone []string, pos uint64) error {
	var noted Changes
	err := p.store.db.InTx(ctx, "write "+p.of.Title, func(ctx context.Context, tx bun.Tx) error {
		if err := p.of.Write(ctx, tx, rows, gone, &noted); err != nil {
			return err
		}
		if err := p.storePosition(ctx, tx, pos); err != nil {
			return err
		}
		return p.store.sayListed(ctx, tx, p.of.Name, pos, &noted)
	})
	if err != nil {
		return err
	}
	p.store.committed(&noted)
	p.stored, p.asOf = pos, time.Now()
	p.source.Ack(pos) // not before: what is acknowledged may be removed from the log
	return nil
}

func (p *Projector) storePosition(ctx context.Context, tx bun.Tx, pos uint64) error {
	return p.store.db.PlaceFollower(ctx, tx, p.of.Name, pos)
}

// Name is under what name the listing follows the journal.
func (p *Projector) Name() string { return p.of.Name }

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

// Wait returns once the listing reflects the journal up to pos, or up to its end if pos is beyond it.
func (p *Projector) Wait(ctx context.Context, pos uint64) error {
	head, err := p.source.End()
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
	defer p.lookNow(ctx)()
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

// await waits, for a short time, until the listing reflects the journal up to pos. If it cannot, a listing that is a
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

// usable fails while the listing is being rebuilt and is not complete.
func (p *Projector) usable() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.whole {
		return fmt.Errorf("%s is being made from the journal: %w", p.of.Title,
			&api.BusyError{Kind: api.ErrUnavailable, RetryAfter: listingWait})
	}
	return nil
}
