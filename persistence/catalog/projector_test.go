package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docent/api"
)

// A testLog stands for the journal: streams of jobs in memory, whose events have positions.
type testLog struct {
	mu      sync.Mutex
	changes []string // stream of the event at each position, from 1
	trimmed uint64
	acked   uint64
	rows    map[string]api.JobRow
	faults  map[string]error // of loading
	loads   map[string]int
	look    func() // called at each loading
	changed chan struct{}
}

func newTestLog() *testLog {
	return &testLog{rows: map[string]api.JobRow{}, faults: map[string]error{}, loads: map[string]int{},
		changed: make(chan struct{}, 1)}
}

func (l *testLog) Position() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.changes))
}

func (l *testLog) Head() (uint64, error) { return l.Position(), nil }

func (l *testLog) Trimmed() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trimmed
}

func (l *testLog) Since(pos uint64, yield func(uint64, string) bool) error {
	l.mu.Lock()
	changes := slices.Clone(l.changes)
	l.mu.Unlock()
	for at := pos + 1; at <= uint64(len(changes)); at++ {
		if !yield(at, changes[at-1]) {
			break
		}
	}
	return nil
}

func (l *testLog) Changed() <-chan struct{} { return l.changed }

func (l *testLog) Ack(pos uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = max(l.acked, pos)
}

// change makes an event of a stream, with what it does to the job's row.
func (l *testLog) change(stream string, to func(*api.JobRow)) uint64 {
	return l.changeAll([]string{stream}, to)
}

// changeAll changes streams at once: whoever follows sees all of it, or nothing.
func (l *testLog) changeAll(streams []string, to func(*api.JobRow)) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, stream := range streams {
		if id, ok := strings.CutPrefix(stream, jobStreamPrefix); ok {
			row := l.rows[stream]
			row.Job.ID = api.JobID(id)
			row.Seq++
			to(&row)
			l.rows[stream] = row
		}
		l.changes = append(l.changes, stream)
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return uint64(len(l.changes))
}

func (l *testLog) remove(stream string) {
	l.mu.Lock()
	delete(l.rows, stream)
	l.mu.Unlock()
	l.change(stream, func(*api.JobRow) {})
	l.mu.Lock()
	delete(l.rows, stream)
	l.mu.Unlock()
}

func (l *testLog) load(_ context.Context, stream string) (api.JobRow, bool, error) {
	l.mu.Lock()
	look := l.look
	l.mu.Unlock()
	if look != nil {
		look()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loads[stream]++
	if err := l.faults[stream]; err == errPanics {
		panic(err)
	} else if err != nil {
		return api.JobRow{}, false, err
	}
	row, ok := l.rows[stream]
	return row, ok, nil
}

// errPanics is a fault that comes as a panic.
var errPanics = errors.New("an odd record")

func (l *testLog) setFault(stream string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults[stream] = err
}

func (l *testLog) setLook(look func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look = look
}

// a job of a project, active.
func active(project string) func(*api.JobRow) {
	return func(r *api.JobRow) {
		r.Project, r.Job.Status, r.Halt = api.ProjectID(project), api.JobActive, api.HaltProcessing
	}
}

func completed(r *api.JobRow) { r.Job.Status, r.Halt = api.JobCompleted, api.HaltCompleted }

func archived(r *api.JobRow) {
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	r.Archived, r.Job.ArchivedAt = true, &at
}

func jobStream(n int) string { return fmt.Sprintf("job/job_%04d", n) }

// runProjector runs a projector until the test ends or stop is called.
func runProjector(t *testing.T, c *Catalog, l *testLog) (p *Projector, stop func()) {
	t.Helper()
	p = NewProjector(c, l, l.load, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return p, stop
}

func reach(t *testing.T, p *Projector) {
	t.Helper()
	if err := p.Wait(t.Context(), Newest); err != nil {
		t.Fatal(err)
	}
}

func listed(t *testing.T, c *Catalog, q JobQuery) []string {
	t.Helper()
	return idsOf(must(c.Jobs(t.Context(), q))(t))
}

func idsOf(rows []api.JobRow) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, strings.TrimPrefix(string(r.Job.ID), "job_"))
	}
	return out
}

// current is what a listing shows of a position that it waits for. After listingWait it shows what is there, which on a
// machine that stands still may be too little: then it is asked again, and counted as late.
func current(t *testing.T, c *Catalog, q JobQuery, late *int) []string {
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

func TestAStreamWhoseReadingPanicsHoldsUpNoOther(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		projector, _ := runProjector(t, c, l)
		l.setFault(jobStream(1), errPanics)
		for n := range 3 {
			l.change(jobStream(n), active("docs"))
		}
		reach(t, projector)
		if got := listed(t, c, JobQuery{Project: "docs"}); !slices.Equal(got, []string{"0002", "0000"}) {
			t.Errorf("listed are %v", got)
		}
	})
}

func TestALookUpThatPanicsIsAnErrorForThoseWhoWaitForIt(t *testing.T) {
	l := newLookup(Options{Now: time.Now, Stale: time.Minute}, strings.Clone,
		func(context.Context, string) (int, error) { panic("an odd row") })
	for range 2 {
		var panicked *api.PanicError
		if _, err := l.get(t.Context(), "key"); !errors.As(err, &panicked) {
			t.Errorf("the look-up says %v", err)
		}
	}
}

func TestJobsAreListedNewestFirst(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		projector, _ := runProjector(t, c, l)
		for n := range 10 {
			l.change(jobStream(n), active("docs"))
		}
		l.change(jobStream(99), active("blog"))
		for n := 0; n < 10; n += 2 {
			l.change(jobStream(n), completed)
		}
		for n := range 3 {
			l.change(jobStream(n), archived)
		}
		reach(t, projector)
		yes, no := true, false
		for _, c2 := range []struct {
			query JobQuery
			want  string
		}{
			{JobQuery{}, "0009 0008 0007 0006 0005 0004 0003 0002 0001 0000"},
			{JobQuery{Limit: 3}, "0009 0008 0007"},
			{JobQuery{Limit: 3, Before: "job_0007"}, "0006 0005 0004"},
			{JobQuery{Limit: 3, Before: "job_0000"}, ""},
			{JobQuery{Before: "job_00075"}, "0007 0006 0005 0004 0003 0002 0001 0000"}, // a cursor need not be there
			{JobQuery{Skip: 8}, "0001 0000"},
			{JobQuery{Skip: 2, Limit: 2}, "0007 0006"},
			{JobQuery{Skip: 20}, ""},
			{JobQuery{Status: api.JobActive}, "0009 0007 0005 0003 0001"},
			{JobQuery{Status: api.JobCompleted, Limit: 2, Before: "job_0006"}, "0004 0002"},
			{JobQuery{Status: api.JobFailed}, ""},
			{JobQuery{Archived: &yes}, "0002 0001 0000"},
			{JobQuery{Archived: &no, Limit: 8}, "0009 0008 0007 0006 0005 0004 0003"},
			{JobQuery{Archived: &yes, Status: api.JobActive}, "0001"},
			{JobQuery{Project: "nobody"}, ""},
			{JobQuery{Project: "no\x00body"}, ""},
			{JobQuery{Project: "blog"}, "0099"},
		} {
			if c2.query.Project == "" {
				c2.query.Project = "docs"
			}
			if got := strings.Join(listed(t, c, c2.query), " "); got != c2.want {
				t.Errorf("%+v lists %q, want %q", c2.query, got, c2.want)
			}
		}
	})
}

func TestIDsSortByTimeInEveryDatabase(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		projector, _ := runProjector(t, c, l)
		var want []string
		for i := range 200 { // many letters of both cases, which a language's own order mixes
			id := api.NewID(api.JobPrefix, time.UnixMilli(int64(i)*7919))
			want = append(want, strings.TrimPrefix(id, "job_"))
			l.change("job/"+id, active("docs"))
		}
		slices.Reverse(want)
		reach(t, projector)
		if got := listed(t, c, JobQuery{Project: "docs"}); !slices.Equal(got, want) {
			t.Errorf("listed in the order\n%v, want\n%v", got, want)
		}
		var paged []string
		for before := api.JobID(""); ; {
			page := must(c.Jobs(t.Context(), JobQuery{Project: "docs", Before: before, Limit: 7}))(t)
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				paged = append(paged, strings.TrimPrefix(string(r.Job.ID), "job_"))
			}
			before = page[len(page)-1].Job.ID
		}
		if !slices.Equal(paged, want) {
			t.Errorf("page by page\n%v, want\n%v", paged, want)
		}
	})
}

func TestJobRowIsStoredInFull(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		projector, _ := runProjector(t, c, l)
		var want api.JobRow
		n := 0
		fill(reflect.ValueOf(&want).Elem(), &n)
		want.Project, want.Job.ID, want.Job.Status = "docs", "job_0001", api.JobFailed
		l.change(jobStream(1), func(r *api.JobRow) { *r = want })
		reach(t, projector)
		got := must(c.Jobs(t.Context(), JobQuery{Project: "docs"}))(t)
		if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("listed\n%+v, want\n%+v", got, want)
		}
	})
}

func TestWhoHasCreatedAJobFindsIt(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		runProjector(t, c, l)
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				project := fmt.Sprintf("docs%d", w)
				for n := range 10 {
					pos := l.change(jobStream(w*100+n), active(project))
					if n%2 == 0 {
						pos = Newest
					}
					if got := current(t, c, JobQuery{Project: api.ProjectID(project), MinPos: pos}, new(int)); len(got) != n+1 {
						t.Errorf("after creating %d jobs, %d are listed", n+1, len(got))
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestListingDoesNotWaitForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) {
		c := place{t, "sqlite:" + path}.open(Options{})
		l := newTestLog()
		projector, _ := runProjector(t, c, l)
		l.change(jobStream(1), active("docs"))
		reach(t, projector)
		l.setFault(jobStream(2), api.ErrUnavailable)
		pos := l.change(jobStream(2), active("docs"))
		began := time.Now()
		got := listed(t, c, JobQuery{Project: "docs", MinPos: pos})
		if waited := time.Since(began); waited != listingWait {
			t.Errorf("the listing waited %v, want %v", waited, listingWait)
		}
		if !slices.Equal(got, []string{"0001"}) {
			t.Errorf("listed %v, want what is there", got)
		}
		leaving, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := c.Jobs(leaving, JobQuery{Project: "docs", MinPos: pos}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who went away was answered %v", err)
		}
		l.setFault(jobStream(2), nil) // and it is tried again
		reach(t, projector)
		if got := listed(t, c, JobQuery{Project: "docs"}); len(got) != 2 {
			t.Errorf("once it can be loaded, listed are %v", got)
		}
	})
}

func TestListingCatchesUpAtStart(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		const first = 3*projectBatch + 17 // several transactions
		for n := range first {
			l.change(jobStream(n), active("docs"))
			l.change("thread/thr_1", nil)
		}
		projector, stop := runProjector(t, c, l)
		reach(t, projector)
		if got := listed(t, c, JobQuery{Project: "docs"}); len(got) != first {
			t.Fatalf("%d jobs are listed, want %d", len(got), first)
		}
		for range 40 {
			l.change("thread/thr_1", nil)
		}
		reach(t, projector)
		stop()
		for end := time.Now().Add(time.Minute); l.acked != l.Position() && time.Now().Before(end); {
			// A projector that ends has a second for its last position, which a machine that stands still does not keep.
			projector, stop = runProjector(t, c, l)
			reach(t, projector)
			stop()
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if l.acked != l.Position() {
			t.Errorf("a stopped projector has acknowledged %d of %d", l.acked, l.Position())
		}
		l.change(jobStream(5), completed)
		l.change(jobStream(first), active("docs"))
		clear(l.loads)
		c = p.open(Options{})
		projector, _ = runProjector(t, c, l)
		reach(t, projector)
		if want := map[string]int{jobStream(5): 1, jobStream(first): 1}; !reflect.DeepEqual(l.loads, want) {
			t.Errorf("loaded %v, want %v: only what changed", l.loads, want)
		}
		if got := listed(t, c, JobQuery{Project: "docs", Status: api.JobCompleted}); !slices.Equal(got, []string{"0005"}) {
			t.Errorf("completed are %v", got)
		}
	})
}

// What thousands of changes a second leave to be listed must not take the processors from those who ask.
func TestListingIsWrittenEvenlyWhereNobodyWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) {
		c, l := place{t, "sqlite:" + path}.open(Options{}), newTestLog()
		projector, stop := runProjector(t, c, l)
		defer stop()
		time.Sleep(projectGap) // the first step takes all that there is
		const many = 10 * pacedBatch
		var streams []string
		for n := range many {
			streams = append(streams, jobStream(n))
		}
		rounds := 0
		change := func() { // in one step of the projector: the end of one and the beginning of the next may come close together
			l.changeAll(streams, active([]string{"docs", "blog"}[rounds%2]))
			rounds++
		}
		loaded := func() (n int) {
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, times := range l.loads {
				n += times
			}
			return n
		}
		change()
		began := time.Now()
		for before := 0; before < many; {
			synctest.Wait()
			now := loaded()
			if now-before > pacedBatch {
				t.Fatalf("%d were loaded at once", now-before)
			}
			if before = now; before < many {
				time.Sleep(projectGap / 100)
			}
			if time.Since(began) > 2*projectGap {
				t.Fatalf("after %v %d of %d are loaded", time.Since(began), before, many)
			}
		}
		if got := listed(t, c, JobQuery{Project: "docs"}); len(got) != many {
			t.Errorf("%d are listed", len(got))
		}
		time.Sleep(2 * projectGap)
		change()
		began = time.Now()
		reach(t, projector)
		if took := time.Since(began); took != 0 {
			t.Errorf("who waited did so for %v of rests", took)
		}
		if got := listed(t, c, JobQuery{Project: "blog"}); len(got) != many {
			t.Errorf("%d are listed for who waited", len(got))
		}
	})
}

func TestOlderRowNeverReplacesANewerOne(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		projector, _ := runProjector(t, c, l)
		l.change(jobStream(1), func(r *api.JobRow) { active("docs")(r); r.Seq = 7 })
		reach(t, projector)
		l.change(jobStream(1), func(r *api.JobRow) { completed(r); r.Seq = 6 }) // an old state, loaded late
		reach(t, projector)
		if got := must(c.Jobs(t.Context(), JobQuery{Project: "docs"}))(t); got[0].Seq != 7 ||
			got[0].Job.Status != api.JobActive {
			t.Errorf("listed is %+v", got[0])
		}
	})
}

func TestRemovedJobLeavesTheListing(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		projector, _ := runProjector(t, c, l)
		for n := range 3 {
			l.change(jobStream(n), active("docs"))
		}
		reach(t, projector)
		l.remove(jobStream(1))
		reach(t, projector)
		if got := listed(t, c, JobQuery{Project: "docs"}); !slices.Equal(got, []string{"0002", "0000"}) {
			t.Errorf("listed %v", got)
		}
	})
}

func TestDamagedJobHoldsUpNoOther(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		projector, _ := runProjector(t, c, l)
		l.change(jobStream(1), active("docs"))
		reach(t, projector)
		l.setFault(jobStream(1), ErrCorrupt)
		l.change(jobStream(1), completed)
		l.change(jobStream(2), active("docs"))
		reach(t, projector)
		got := must(c.Jobs(t.Context(), JobQuery{Project: "docs"}))(t)
		if len(got) != 2 || got[1].Job.Status != api.JobActive {
			t.Errorf("listed %+v, want the damaged job as it was and the other one", got)
		}
	})
}

func TestRebuiltListingIsTheSame(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		projector, stop := runProjector(t, c, l)
		for n := range projectBatch + 100 {
			l.change(jobStream(n), active([]string{"docs", "blog"}[n%2]))
			if n%3 == 0 {
				l.change(jobStream(n), completed)
			}
			if n%50 == 0 {
				l.remove(jobStream(n))
			}
		}
		reach(t, projector)
		all := func() (rows []api.JobRow) {
			for _, project := range []api.ProjectID{"docs", "blog"} {
				rows = append(rows, must(c.Jobs(t.Context(), JobQuery{Project: project}))(t)...)
			}
			return rows
		}
		want := all()
		// What should not be there goes, and what is wrong is put right.
		if _, err := c.write.Exec("UPDATE jobs SET seq = 1000, status = 'failed' WHERE id < 'job_0100'"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.write.Exec("UPDATE jobs SET id = 'job_odd' WHERE id = 'job_0201'"); err != nil {
			t.Fatal(err)
		}
		if err := projector.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := all(); !reflect.DeepEqual(got, want) {
			t.Errorf("rebuilt while running, %d rows, want %d, or they differ", len(got), len(want))
		}
		if got := listed(t, c, JobQuery{Project: "docs", Status: api.JobFailed}); len(got) != 0 {
			t.Errorf("listed as failed: %v", got)
		}
		stop()
		idle := NewProjector(c, l, l.load, slog.New(slog.DiscardHandler))
		if err := idle.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := all(); !reflect.DeepEqual(got, want) {
			t.Errorf("rebuilt on its own, %d rows, want %d, or they differ", len(got), len(want))
		}
	})
}

func TestListingOfAnotherJournalIsMadeAnew(t *testing.T) {
	for name, other := range map[string]func(*testLog){
		"a shorter one, as from an older backup": func(*testLog) {},
		"one that has removed what the listing has not seen (restored)": func(l *testLog) {
			l.change("thread/thr_1",
				nil)
			l.trimmed = 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachPlace(t, func(t *testing.T, p place) {
				c, l := p.open(Options{}), newTestLog()
				other(l)
				if l.trimmed == 0 { // a listing that is ahead
					former := newTestLog()
					for n := range 20 {
						former.change(jobStream(100+n), active("docs"))
					}
					projector, stop := runProjector(t, c, former)
					reach(t, projector)
					stop()
				} else { // a listing with rows and no position: as behind as can be
					if _, err := c.write.NewInsert().Model(must(newJobRow(api.JobRow{Project: "docs",
						Job: api.Job{ID: "job_0100"}}))(t)).Exec(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				l.change(jobStream(1), active("docs"))
				projector, _ := runProjector(t, c, l)
				reach(t, projector)
				if got := listed(t, c, JobQuery{Project: "docs"}); !slices.Equal(got, []string{"0001"}) {
					t.Errorf("listed %v", got)
				}
			})
		})
	}
}

func TestNothingIsAcknowledgedThatIsNotStored(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		projector, stop := runProjector(t, c, l)
		for n := range 300 {
			l.change([]string{jobStream(n), "thread/thr_1"}[n%2], active("docs"))
			if n%7 == 0 {
				reach(t, projector)
			}
			l.mu.Lock()
			acked := l.acked
			l.mu.Unlock()
			var stored uint64
			err := c.read.NewRaw("SELECT COALESCE(max(position), 0) FROM projections").Scan(t.Context(), &stored)
			if err != nil {
				t.Fatal(err)
			}
			if acked > stored {
				t.Fatalf("position %d is acknowledged, %d is stored", acked, stored)
			}
		}
		stop()
	})
}

func TestListingOutlivesAFailureOfTheDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) { // the pauses between attempts pass in virtual time
		c := place{t, "sqlite:" + path}.open(Options{})
		l := newTestLog()
		projector, _ := runProjector(t, c, l)
		l.change(jobStream(1), active("docs"))
		reach(t, projector)
		if _, err := c.write.Exec("ALTER TABLE projections RENAME TO away"); err != nil {
			t.Fatal(err)
		}
		l.change(jobStream(2), active("docs"))
		time.Sleep(time.Minute)
		if got := listed(t, c, JobQuery{Project: "docs"}); !slices.Equal(got, []string{"0001"}) {
			t.Errorf("rows without their position: %v", got)
		}
		if _, err := c.write.Exec("ALTER TABLE away RENAME TO projections"); err != nil {
			t.Fatal(err)
		}
		reach(t, projector)
		if got := listed(t, c, JobQuery{Project: "docs"}); len(got) != 2 {
			t.Errorf("after the failure, listed are %v", got)
		}
	})
}

// TestARebuildLeavesEveryListingWhole lists while a rebuild goes on, and after one that was broken off at any row: what
// is acknowledged is there all the time, also what is made meanwhile.
func TestARebuildLeavesEveryListingWhole(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newTestLog()
		projector, _ := runProjector(t, c, l)
		const jobs = projectBatch + 40
		for n := range jobs {
			l.change(jobStream(n), active("docs"))
		}
		reach(t, projector)
		made := jobs
		for _, stop := range []int{0, 1, 20, projectBatch, projectBatch + 20, jobs + 1} {
			rebuilding, cancel := context.WithCancel(t.Context())
			looked := 0
			var mu sync.Mutex
			l.setLook(func() {
				mu.Lock()
				looked++
				now, n := looked, made
				mu.Unlock()
				if now > stop {
					cancel()
				}
				if now%100 == 1 {
					if got := len(listed(t, c, JobQuery{Project: "docs"})); got < jobs {
						t.Errorf("at row %d of a rebuild %d of %d jobs are listed", now, got, n)
					}
				}
			})
			err := projector.Rebuild(rebuilding)
			l.setLook(nil)
			cancel()
			if stop > 0 && stop < jobs && !errors.Is(err, context.Canceled) {
				t.Errorf("a rebuild that was stopped after %d rows: %v", stop, err)
			}
			if got := len(current(t, c, JobQuery{Project: "docs", MinPos: Newest}, new(int))); got != made {
				t.Errorf("after a rebuild that was stopped after %d rows %d of %d jobs are listed", stop, got, made)
			}
			l.change(jobStream(made), active("docs"))
			made++
			if got := len(current(t, c, JobQuery{Project: "docs", MinPos: Newest}, new(int))); got != made {
				t.Errorf("after a job more %d of %d jobs are listed", got, made)
			}
		}
	})
}

// TestAListingThatIsNotWholeYetIsUnavailable has the projector begin far behind the journal and fail on its way.
func TestAListingThatIsNotWholeYetIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) {
		c, l := place{t, "sqlite:" + path}.open(Options{}), newTestLog()
		for n := range 2*projectBatch + 1 {
			l.change(jobStream(n), active("docs"))
		}
		l.setFault(jobStream(2*projectBatch), api.ErrUnavailable)
		projector, _ := runProjector(t, c, l)
		_, err := c.Jobs(t.Context(), JobQuery{Project: "docs", MinPos: Newest})
		if busy := new(api.BusyError); !errors.As(err, &busy) || !errors.Is(err, api.ErrUnavailable) || busy.RetryAfter <= 0 {
			t.Errorf("a listing that lacks a job: %v", err)
		}
		l.setFault(jobStream(2*projectBatch), nil)
		reach(t, projector)
		if got := listed(t, c, JobQuery{Project: "docs", MinPos: Newest}); len(got) != 2*projectBatch+1 {
			t.Errorf("%d jobs are listed", len(got))
		}
	})
}

// TestWhoWaitsForAListingNeedsNoChange empties the listing of an idle journal behind the projector's back: whoever
// waits sets it to work.
func TestWhoWaitsForAListingNeedsNoChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) {
		c, l := place{t, "sqlite:" + path}.open(Options{}), newTestLog()
		l.change(jobStream(1), active("docs"))
		projector, _ := runProjector(t, c, l)
		reach(t, projector)
		synctest.Wait()                               // it waits for a change
		l.changes = append(l.changes, "thread/thr_1") // of which it is not told
		reach(t, projector)
	})
}
