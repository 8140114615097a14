package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/persistence/catalog"
	"docent/persistence/catalog/listing"
)

// A Log stands for the journal: streams of jobs in memory, whose events have positions.
type Log struct {
	Mu      sync.Mutex
	Changes []string // stream of the event at each position, from 1
	Cut     uint64   // up to which the log was trimmed
	Acked   uint64
	rows    map[string]api.JobRow
	faults  map[string]error // of loading
	Loads   map[string]int
	look    func() // called at each loading
	changed chan struct{}
}

// NewLog makes a log in which nothing has happened.
func NewLog() *Log {
	return &Log{rows: map[string]api.JobRow{}, faults: map[string]error{}, Loads: map[string]int{},
		changed: make(chan struct{}, 1)}
}

// Position is that of the last event.
func (l *Log) Position() uint64 {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return uint64(len(l.Changes))
}

// End is Position.
func (l *Log) End() (uint64, error) { return l.Position(), nil }

// Trimmed is up to which position events were removed.
func (l *Log) Trimmed() uint64 {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Cut
}

// Since yields the streams of events after a position.
func (l *Log) Since(pos uint64, yield func(uint64, string) bool) error {
	l.Mu.Lock()
	changes := slices.Clone(l.Changes)
	l.Mu.Unlock()
	for at := pos + 1; at <= uint64(len(changes)); at++ {
		if !yield(at, changes[at-1]) {
			break
		}
	}
	return nil
}

// Changed receives after events.
func (l *Log) Changed() <-chan struct{} { return l.changed }

// Ack remembers what was handled.
func (l *Log) Ack(pos uint64) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Acked = max(l.Acked, pos)
}

// Change makes an event of a stream, with what it does to the job's row.
func (l *Log) Change(stream string, to func(*api.JobRow)) uint64 {
	return l.ChangeAll([]string{stream}, to)
}

// ChangeAll changes streams at once: followers see all of it, or nothing.
func (l *Log) ChangeAll(streams []string, to func(*api.JobRow)) uint64 {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for _, stream := range streams {
		if id, ok := strings.CutPrefix(stream, "job/"); ok {
			row := l.rows[stream]
			row.Job.ID = api.JobID(id)
			row.Seq++
			to(&row)
			l.rows[stream] = row
		}
		l.Changes = append(l.Changes, stream)
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return uint64(len(l.Changes))
}

// Remove removes a job's stream.
func (l *Log) Remove(stream string) {
	l.Mu.Lock()
	delete(l.rows, stream)
	l.Mu.Unlock()
	l.Change(stream, func(*api.JobRow) {})
	l.Mu.Lock()
	delete(l.rows, stream)
	l.Mu.Unlock()
}

// Load is a listing.JobLoader.
func (l *Log) Load(_ context.Context, stream string) (api.JobRow, bool, error) {
	l.Mu.Lock()
	look := l.look
	l.Mu.Unlock()
	if look != nil {
		look()
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Loads[stream]++
	if err := l.faults[stream]; err == ErrPanics {
		panic(err)
	} else if err != nil {
		return api.JobRow{}, false, err
	}
	row, ok := l.rows[stream]
	return row, ok, nil
}

// ErrPanics is a fault that comes as a panic.
var ErrPanics = errors.New("an odd record")

// SetFault makes the loading of a stream fail; nil ends that.
func (l *Log) SetFault(stream string, err error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.faults[stream] = err
}

// SetLook sets a function to call at each loading.
func (l *Log) SetLook(look func()) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.look = look
}

// Active makes a row that of a job of a project at work.
func Active(project string) func(*api.JobRow) {
	return func(r *api.JobRow) {
		r.Project, r.Job.Status, r.Halt = api.ProjectID(project), api.JobActive, api.HaltProcessing
	}
}

// Completed ends a job well.
func Completed(r *api.JobRow) { r.Job.Status, r.Halt = api.JobCompleted, api.HaltCompleted }

// JobStream is the name of a job's stream.
func JobStream(n int) string { return fmt.Sprintf("job/job_%04d", n) }

// RunProjector keeps the listing of a log's jobs until the test ends or stop is called.
func RunProjector(t *testing.T, c *catalog.Catalog, l *Log) (p *listing.Projector, stop func()) {
	t.Helper()
	p = c.NewProjector(l, l.Load, slog.New(slog.NewTextHandler(t.Output(), nil)))
	return p, Run(t, p)
}

// Run runs a projector until the test ends or stop is called.
func Run(t *testing.T, p *listing.Projector) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running background.Work
	running.Go("persistence/catalog/catalogtest.Run", func() { p.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// Reach waits until a listing reflects the log's end.
func Reach(t *testing.T, p *listing.Projector) {
	t.Helper()
	if err := p.Wait(t.Context(), listing.Newest); err != nil {
		t.Fatal(err)
	}
}

// Listed are the ids of the jobs that a query finds.
func Listed(t *testing.T, c *catalog.Catalog, q listing.JobQuery) []string {
	t.Helper()
	return idsOf(Must(c.Jobs(t.Context(), q))(t))
}

func idsOf(rows []api.JobRow) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, strings.TrimPrefix(string(r.Job.ID), "job_"))
	}
	return out
}

// listingWait is how long a listing waits for a position.
const listingWait = 2 * time.Second

// Current is what a listing shows of a position that it waits for. After listingWait it shows what is there, which on a
// machine that stands still may be too little: then it is asked again, and counted as late.
func Current(t *testing.T, c *catalog.Catalog, q listing.JobQuery, late *int) []string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; *late++ {
		began := time.Now()
		rows, err := c.Jobs(t.Context(), q)
		if time.Since(began) >= listingWait && time.Now().Before(end) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return idsOf(rows)
	}
}
