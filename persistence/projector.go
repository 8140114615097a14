package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"docent/api"

	"github.com/uptrace/bun"
	"golang.org/x/sync/errgroup"
)

// A ProjectionSource is what the projector needs of the journal: FollowJournal makes one.
type ProjectionSource interface {
	// Position is the position of the last event on disk.
	Position() uint64
	// Trimmed is the highest position whose event was removed from the log: who has not come so far must begin anew.
	Trimmed() uint64
	// Since yields, in the order of positions, the streams that changed after pos, removed ones included.
	Since(pos uint64, yield func(pos uint64, stream string) bool) error
	// Changed receives after commits; several may be told as one.
	Changed() <-chan struct{}
	// Ack says that everything up to pos is handled and remembered.
	Ack(pos uint64)
}

const (
	jobsProjection  = "jobs"
	jobStreamPrefix = "job/"

	projectBatch = 512                    // most streams in one transaction
	pacedBatch   = 64                     // the same, where nobody waits
	breath       = 8                      // rows that are made before whoever waits for a processor goes first: under a millisecond
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
	gap    time.Duration // a step's time, where nobody waits
	// load makes what is stored of a stream. It says false where the stream does not exist or holds nothing to show. What
	// the stream's events up to the position since say is stored already.
	load func(ctx context.Context, stream string, since uint64) (any, bool, error)
	// write stores what load made, and removes what is stored of streams that are no more.
	write func(ctx context.Context, tx bun.Tx, rows []any, gone []string) error
	drop  func(ctx context.Context, tx bun.Tx) error // removes all that is stored
}

// A Projector keeps a listing in the catalogue up with the journal: that of jobs, or that of the questions that threads
// have answered. A listing's rows and the position that they reflect are written in one transaction, so that whatever
// dies, it goes on where it was. A job or thread whose stream is damaged keeps its last rows and is logged; the others go
// on.
type Projector struct {
	projection
	catalog *Catalog
	source  ProjectionSource
	log     *slog.Logger
	hurry   chan struct{} // somebody waits

	work   sync.Mutex // one step at a time: the loop's or a rebuild's
	begun  bool       // guarded by work, as are the next three
	first  bool       // step, which may find the whole log
	stored uint64     // the position in the catalogue
	asOf   time.Time  // of the last write

	mu      sync.Mutex
	reached uint64
	waiting map[chan struct{}]uint64
}

// NewProjector makes the projector of a catalogue's job listings and lets the catalogue's listings wait for it. The row of
// a stream comes from load, which says false where the stream does not exist or is no job. It does nothing before Run.
func NewProjector(c *Catalog, source ProjectionSource, load func(ctx context.Context, stream string) (api.JobRow, bool, error), log *slog.Logger) *Projector {
	p := newProjector(c, source, jobListing(load), log)
	c.projector.Store(p)
	return p
}

func newProjector(c *Catalog, source ProjectionSource, of projection, log *slog.Logger) *Projector {
	if log == nil {
		log = slog.Default()
	}
	return &Projector{projection: of, catalog: c, source: source, log: log,
		hurry: make(chan struct{}, 1), waiting: make(map[chan struct{}]uint64)}
}

// Run catches up and follows the journal until ctx ends. Where the catalogue or the journal cannot be used, it tries again.
// It must have returned before the catalogue is closed.
func (p *Projector) Run(ctx context.Context) {
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
	retry := retryFirst
	for ctx.Err() == nil {
		began := time.Now()
		err := api.Guard(func() error { return p.step(ctx) })
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.log.Warn(p.title+" is behind", "error", err, "again", retry)
			pause(ctx, retry, nil)
			retry = min(2*retry, retryMost)
			continue
		}
		// Also after a step that had nothing to write: the journal may have hundreds of commits a second, none of them of a
		// stream of this kind.
		p.rest(ctx, began.Add(p.gap))
		retry = retryFirst
		select {
		case <-ctx.Done():
		case <-p.source.Changed():
		}
	}
}

// rest waits until a time, or until somebody waits for the listing.
func (p *Projector) rest(ctx context.Context, until time.Time) {
	if left := time.Until(until); left > 0 && !p.awaited() {
		pause(ctx, left, p.hurry)
	}
}

// awaited is whether somebody waits for the listing.
func (p *Projector) awaited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) > 0
}

func pause(ctx context.Context, d time.Duration, hurry <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-hurry:
	case <-timer.C:
	}
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

// begin reads, once, how far the listing is, and drops it where the journal cannot take it from there.
func (p *Projector) begin(ctx context.Context) error {
	if p.begun {
		return nil
	}
	var pos uint64
	err := p.catalog.read.NewRaw("SELECT position FROM projections WHERE name = ?", p.name).Scan(ctx, &pos)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return p.catalog.fail("read the listing's position", err)
	}
	last, trimmed := p.source.Position(), p.source.Trimmed()
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
	p.reach(pos)
	return nil
}

// drop empties the listing.
func (p *Projector) drop(ctx context.Context) error {
	return p.catalog.update(ctx, "drop "+p.title, func(ctx context.Context, tx bun.Tx) error {
		if err := p.projection.drop(ctx, tx); err != nil {
			return err
		}
		return p.storePosition(ctx, tx, 0)
	})
}

// Rebuild drops the listing and makes it anew from the journal. Run need not be running. Listings are incomplete until it
// returns.
func (p *Projector) Rebuild(ctx context.Context) error {
	p.work.Lock()
	defer p.work.Unlock()
	if err := p.drop(ctx); err != nil {
		return fmt.Errorf("rebuild %s: %w", p.title, err)
	}
	p.begun, p.stored = true, 0
	p.mu.Lock()
	p.reached = 0
	p.mu.Unlock()
	if err := p.advance(ctx, 0); err != nil {
		return fmt.Errorf("rebuild %s: %w", p.title, err)
	}
	if reached := p.position(); reached > p.stored {
		return p.write(ctx, nil, nil, reached)
	}
	return nil
}

// advance reads which streams changed, loads their rows, and writes them batch by batch, each with the position reached.
// Where nobody waits, it does so evenly over the time given: what thousands of questions a second leave to be listed would
// otherwise take all processors for half a second, once a second, and whoever asks meanwhile would wait.
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
		rows, gone, err := p.loadAll(ctx, dirty)
		if err != nil {
			return err
		}
		if len(dirty) > 0 || reached > p.stored && time.Since(p.asOf) >= storeEvery {
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

// loadAll loads the rows of streams, and says which of them are no more.
func (p *Projector) loadAll(ctx context.Context, streams []string) (rows []any, gone []string, err error) {
	loaded := make([]any, len(streams))
	absent := make([]bool, len(streams))
	since := p.position()
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
			p.log.Error(p.title+" keeps what it had of one stream", p.kind, strings.TrimPrefix(streams[i], p.prefix), "error", err)
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
				if i%breath == breath-1 {
					runtime.Gosched()
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for i, stream := range streams {
		switch {
		case loaded[i] != nil:
			rows = append(rows, loaded[i])
		case absent[i]:
			gone = append(gone, strings.TrimPrefix(stream, p.prefix))
		}
	}
	return rows, gone, nil
}

// write stores rows and position together.
func (p *Projector) write(ctx context.Context, rows []any, gone []string, pos uint64) error {
	err := p.catalog.update(ctx, "write "+p.title, func(ctx context.Context, tx bun.Tx) error {
		if err := p.projection.write(ctx, tx, rows, gone); err != nil {
			return err
		}
		return p.storePosition(ctx, tx, pos)
	})
	if err != nil {
		return err
	}
	p.stored, p.asOf = pos, time.Now()
	p.source.Ack(pos) // not before: what is acknowledged may be removed from the log
	return nil
}

func (p *Projector) storePosition(ctx context.Context, tx bun.Tx, pos uint64) error {
	_, err := tx.NewRaw("INSERT INTO projections (name, position) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET position = EXCLUDED.position",
		p.name, pos).Exec(ctx)
	return err
}

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
	p.reached = pos
	for c, until := range p.waiting {
		if until <= pos {
			close(c)
			delete(p.waiting, c)
		}
	}
}

// Wait returns once the listing reflects the journal up to pos, or up to its end where pos lies beyond it.
func (p *Projector) Wait(ctx context.Context, pos uint64) error {
	pos = min(pos, p.source.Position())
	p.mu.Lock()
	if p.reached >= pos {
		p.mu.Unlock()
		return nil
	}
	c := make(chan struct{})
	p.waiting[c] = pos
	p.mu.Unlock()
	select {
	case p.hurry <- struct{}{}:
	default:
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

// FollowJournal makes the journal the source of the job listings' projector. The journal keeps what the listing has not
// stored until it has; the returned function ends the notifications, after Run has returned.
func FollowJournal(j *Journal) (source ProjectionSource, end func(), err error) {
	return followAs(j, jobsProjection)
}

func followAs(j *Journal, name string) (source ProjectionSource, end func(), err error) {
	f, err := j.Follow(name)
	if err != nil {
		return nil, nil, err
	}
	return followedJournal{j, f}, f.Close, nil
}

type followedJournal struct {
	j *Journal
	f *Follower
}

func (s followedJournal) Position() uint64         { return s.j.Position() }
func (s followedJournal) Trimmed() uint64          { return s.j.Trimmed() }
func (s followedJournal) Changed() <-chan struct{} { return s.f.Changed() }
func (s followedJournal) Ack(pos uint64)           { s.f.Ack(pos) }

func (s followedJournal) Since(pos uint64, yield func(uint64, string) bool) error {
	return s.j.Since(pos, yield)
}
