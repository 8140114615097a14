package listing_test

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
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/listing"
)

func archived(r *api.JobRow) {
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	r.Archived, r.Job.ArchivedAt = true, &at
}

func TestAStreamWhoseReadingPanicsHoldsUpNoOther(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, _ := catalogtest.RunProjector(t, c, l)
		l.SetFault(catalogtest.JobStream(1), catalogtest.ErrPanics)
		for n := range 3 {
			l.Change(catalogtest.JobStream(n), catalogtest.Active("docs"))
		}
		catalogtest.Reach(t, projector)
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs"}); !slices.Equal(got, []string{"0002", "0000"}) {
			t.Errorf("listed are %v", got)
		}
	})
}

func TestJobsAreListedNewestFirst(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, _ := catalogtest.RunProjector(t, c, l)
		for n := range 10 {
			l.Change(catalogtest.JobStream(n), catalogtest.Active("docs"))
		}
		l.Change(catalogtest.JobStream(99), catalogtest.Active("blog"))
		for n := 0; n < 10; n += 2 {
			l.Change(catalogtest.JobStream(n), catalogtest.Completed)
		}
		for n := range 3 {
			l.Change(catalogtest.JobStream(n), archived)
		}
		catalogtest.Reach(t, projector)
		yes, no := true, false
		for _, c2 := range []struct {
			query listing.JobQuery
			want  string
		}{
			{listing.JobQuery{}, "0009 0008 0007 0006 0005 0004 0003 0002 0001 0000"},
			{listing.JobQuery{Limit: 3}, "0009 0008 0007"},
			{listing.JobQuery{Limit: 3, Before: "job_0007"}, "0006 0005 0004"},
			{listing.JobQuery{Limit: 3, Before: "job_0000"}, ""},
			{listing.JobQuery{Before: "job_00075"}, "0007 0006 0005 0004 0003 0002 0001 0000"}, // a cursor need not be there
			{listing.JobQuery{Skip: 8}, "0001 0000"},
			{listing.JobQuery{Skip: 2, Limit: 2}, "0007 0006"},
			{listing.JobQuery{Skip: 20}, ""},
			{listing.JobQuery{Status: api.JobActive}, "0009 0007 0005 0003 0001"},
			{listing.JobQuery{Status: api.JobCompleted, Limit: 2, Before: "job_0006"}, "0004 0002"},
			{listing.JobQuery{Status: api.JobFailed}, ""},
			{listing.JobQuery{Archived: &yes}, "0002 0001 0000"},
			{listing.JobQuery{Archived: &no, Limit: 8}, "0009 0008 0007 0006 0005 0004 0003"},
			{listing.JobQuery{Archived: &yes, Status: api.JobActive}, "0001"},
			{listing.JobQuery{Project: "nobody"}, ""},
			{listing.JobQuery{Project: "no\x00body"}, ""},
			{listing.JobQuery{Project: "blog"}, "0099"},
		} {
			if c2.query.Project == "" {
				c2.query.Project = "docs"
			}
			if got := strings.Join(catalogtest.Listed(t, c, c2.query), " "); got != c2.want {
				t.Errorf("%+v lists %q, want %q", c2.query, got, c2.want)
			}
		}
	})
}

func TestIDsSortByTimeInEveryDatabase(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, _ := catalogtest.RunProjector(t, c, l)
		var want []string
		for i := range 200 { // many letters of both cases, which a language's own order mixes
			id := api.NewID(api.JobPrefix, time.UnixMilli(int64(i)*7919))
			want = append(want, strings.TrimPrefix(id, "job_"))
			l.Change("job/"+id, catalogtest.Active("docs"))
		}
		slices.Reverse(want)
		catalogtest.Reach(t, projector)
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs"}); !slices.Equal(got, want) {
			t.Errorf("listed in the order\n%v, want\n%v", got, want)
		}
		var paged []string
		for before := api.JobID(""); ; {
			page := catalogtest.Must(c.Jobs(t.Context(), listing.JobQuery{Project: "docs", Before: before, Limit: 7}))(t)
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
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, _ := catalogtest.RunProjector(t, c, l)
		var want api.JobRow
		n := 0
		catalogtest.Fill(reflect.ValueOf(&want).Elem(), &n)
		want.Project, want.Job.ID, want.Job.Status = "docs", "job_0001", api.JobFailed
		l.Change(catalogtest.JobStream(1), func(r *api.JobRow) { *r = want })
		catalogtest.Reach(t, projector)
		got := catalogtest.Must(c.Jobs(t.Context(), listing.JobQuery{Project: "docs"}))(t)
		if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("listed\n%+v, want\n%+v", got, want)
		}
	})
}

func TestWhoHasCreatedAJobFindsIt(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		catalogtest.RunProjector(t, c, l)
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				project := fmt.Sprintf("docs%d", w)
				for n := range 10 {
					pos := l.Change(catalogtest.JobStream(w*100+n), catalogtest.Active(project))
					if n%2 == 0 {
						pos = listing.Newest
					}
					if got := catalogtest.Current(t, c, listing.JobQuery{Project: api.ProjectID(project), MinPos: pos}, new(int)); len(got) != n+1 {
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
		c := catalogtest.Place{T: t, DSN: "sqlite:" + path}.Open(catalog.Options{})
		l := catalogtest.NewLog()
		projector, _ := catalogtest.RunProjector(t, c, l)
		l.Change(catalogtest.JobStream(1), catalogtest.Active("docs"))
		catalogtest.Reach(t, projector)
		l.SetFault(catalogtest.JobStream(2), api.ErrUnavailable)
		pos := l.Change(catalogtest.JobStream(2), catalogtest.Active("docs"))
		began := time.Now()
		got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs", MinPos: pos})
		if waited := time.Since(began); waited != listing.ListingWait {
			t.Errorf("the listing waited %v, want %v", waited, listing.ListingWait)
		}
		if !slices.Equal(got, []string{"0001"}) {
			t.Errorf("listed %v, want what is there", got)
		}
		leaving, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := c.Jobs(leaving, listing.JobQuery{Project: "docs", MinPos: pos}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who went away was answered %v", err)
		}
		l.SetFault(catalogtest.JobStream(2), nil) // and it is tried again
		catalogtest.Reach(t, projector)
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs"}); len(got) != 2 {
			t.Errorf("once it can be loaded, listed are %v", got)
		}
	})
}

func TestListingCatchesUpAtStart(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		const first = 3*listing.Batch + 17 // several transactions
		for n := range first {
			l.Change(catalogtest.JobStream(n), catalogtest.Active("docs"))
			l.Change("thread/thr_1", nil)
		}
		projector, stop := catalogtest.RunProjector(t, c, l)
		catalogtest.Reach(t, projector)
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs"}); len(got) != first {
			t.Fatalf("%d jobs are listed, want %d", len(got), first)
		}
		for range 40 {
			l.Change("thread/thr_1", nil)
		}
		catalogtest.Reach(t, projector)
		stop()
		for end := time.Now().Add(time.Minute); l.Acked != l.Position() && time.Now().Before(end); {
			// A projector that ends has a second for its last position, which a machine that stands still does not keep.
			projector, stop = catalogtest.RunProjector(t, c, l)
			catalogtest.Reach(t, projector)
			stop()
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if l.Acked != l.Position() {
			t.Errorf("a stopped projector has acknowledged %d of %d", l.Acked, l.Position())
		}
		l.Change(catalogtest.JobStream(5), catalogtest.Completed)
		l.Change(catalogtest.JobStream(first), catalogtest.Active("docs"))
		clear(l.Loads)
		c = p.Open(catalog.Options{})
		projector, _ = catalogtest.RunProjector(t, c, l)
		catalogtest.Reach(t, projector)
		if want := map[string]int{catalogtest.JobStream(5): 1, catalogtest.JobStream(first): 1}; !reflect.DeepEqual(l.Loads, want) {
			t.Errorf("loaded %v, want %v: only what changed", l.Loads, want)
		}
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs", Status: api.JobCompleted}); !slices.Equal(got, []string{"0005"}) {
			t.Errorf("completed are %v", got)
		}
	})
}

// What thousands of changes a second leave to be listed must not take the processors from those who ask.
func TestListingIsWrittenEvenlyWhereNobodyWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) {
		c, l := catalogtest.Place{T: t, DSN: "sqlite:" + path}.Open(catalog.Options{}), catalogtest.NewLog()
		projector, stop := catalogtest.RunProjector(t, c, l)
		defer stop()
		time.Sleep(listing.ProjectGap) // the first step takes all that there is
		const many = 10 * listing.PacedBatch
		var streams []string
		for n := range many {
			streams = append(streams, catalogtest.JobStream(n))
		}
		rounds := 0
		change := func() { // in one step of the projector: the end of one and the beginning of the next may come close together
			l.ChangeAll(streams, catalogtest.Active([]string{"docs", "blog"}[rounds%2]))
			rounds++
		}
		loaded := func() (n int) {
			l.Mu.Lock()
			defer l.Mu.Unlock()
			for _, times := range l.Loads {
				n += times
			}
			return n
		}
		change()
		began := time.Now()
		for before := 0; before < many; {
			synctest.Wait()
			now := loaded()
			if now-before > listing.PacedBatch {
				t.Fatalf("%d were loaded at once", now-before)
			}
			if before = now; before < many {
				time.Sleep(listing.ProjectGap / 100)
			}
			if time.Since(began) > 2*listing.ProjectGap {
				t.Fatalf("after %v %d of %d are loaded", time.Since(began), before, many)
			}
		}
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs"}); len(got) != many {
			t.Errorf("%d are listed", len(got))
		}
		time.Sleep(2 * listing.ProjectGap)
		change()
		began = time.Now()
		catalogtest.Reach(t, projector)
		if took := time.Since(began); took != 0 {
			t.Errorf("who waited did so for %v of rests", took)
		}
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "blog"}); len(got) != many {
			t.Errorf("%d are listed for who waited", len(got))
		}
	})
}

func TestOlderRowNeverReplacesANewerOne(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, _ := catalogtest.RunProjector(t, c, l)
		l.Change(catalogtest.JobStream(1), func(r *api.JobRow) { catalogtest.Active("docs")(r); r.Seq = 7 })
		catalogtest.Reach(t, projector)
		l.Change(catalogtest.JobStream(1), func(r *api.JobRow) { catalogtest.Completed(r); r.Seq = 6 }) // an old state, loaded late
		catalogtest.Reach(t, projector)
		if got := catalogtest.Must(c.Jobs(t.Context(), listing.JobQuery{Project: "docs"}))(t); got[0].Seq != 7 ||
			got[0].Job.Status != api.JobActive {
			t.Errorf("listed is %+v", got[0])
		}
	})
}

func TestRemovedJobLeavesTheListing(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, _ := catalogtest.RunProjector(t, c, l)
		for n := range 3 {
			l.Change(catalogtest.JobStream(n), catalogtest.Active("docs"))
		}
		catalogtest.Reach(t, projector)
		l.Remove(catalogtest.JobStream(1))
		catalogtest.Reach(t, projector)
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs"}); !slices.Equal(got, []string{"0002", "0000"}) {
			t.Errorf("listed %v", got)
		}
	})
}

func TestDamagedJobHoldsUpNoOther(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, _ := catalogtest.RunProjector(t, c, l)
		l.Change(catalogtest.JobStream(1), catalogtest.Active("docs"))
		catalogtest.Reach(t, projector)
		l.SetFault(catalogtest.JobStream(1), catalog.ErrCorrupt)
		l.Change(catalogtest.JobStream(1), catalogtest.Completed)
		l.Change(catalogtest.JobStream(2), catalogtest.Active("docs"))
		catalogtest.Reach(t, projector)
		got := catalogtest.Must(c.Jobs(t.Context(), listing.JobQuery{Project: "docs"}))(t)
		if len(got) != 2 || got[1].Job.Status != api.JobActive {
			t.Errorf("listed %+v, want the damaged job as it was and the other one", got)
		}
	})
}

func TestRebuiltListingIsTheSame(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, stop := catalogtest.RunProjector(t, c, l)
		for n := range listing.Batch + 100 {
			l.Change(catalogtest.JobStream(n), catalogtest.Active([]string{"docs", "blog"}[n%2]))
			if n%3 == 0 {
				l.Change(catalogtest.JobStream(n), catalogtest.Completed)
			}
			if n%50 == 0 {
				l.Remove(catalogtest.JobStream(n))
			}
		}
		catalogtest.Reach(t, projector)
		all := func() (rows []api.JobRow) {
			for _, project := range []api.ProjectID{"docs", "blog"} {
				rows = append(rows, catalogtest.Must(c.Jobs(t.Context(), listing.JobQuery{Project: project}))(t)...)
			}
			return rows
		}
		want := all()
		// What should not be there goes, and what is wrong is fixed.
		if _, err := c.Write.Exec("UPDATE jobs SET seq = 1000, status = 'failed' WHERE id < 'job_0100'"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write.Exec("UPDATE jobs SET id = 'job_odd' WHERE id = 'job_0201'"); err != nil {
			t.Fatal(err)
		}
		if err := projector.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := all(); !reflect.DeepEqual(got, want) {
			t.Errorf("rebuilt while running, %d rows, want %d, or they differ", len(got), len(want))
		}
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs", Status: api.JobFailed}); len(got) != 0 {
			t.Errorf("listed as failed: %v", got)
		}
		stop()
		idle := c.NewProjector(l, l.Load, slog.New(slog.DiscardHandler))
		if err := idle.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := all(); !reflect.DeepEqual(got, want) {
			t.Errorf("rebuilt on its own, %d rows, want %d, or they differ", len(got), len(want))
		}
	})
}

func TestListingOfAnotherJournalIsMadeAnew(t *testing.T) {
	for name, other := range map[string]func(*catalogtest.Log){
		"a shorter one, as from an older backup": func(*catalogtest.Log) {},
		"one that has removed what the listing has not seen (restored)": func(l *catalogtest.Log) {
			l.Change("thread/thr_1",
				nil)
			l.Cut = 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
				c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
				other(l)
				if l.Cut == 0 { // a listing that is ahead
					former := catalogtest.NewLog()
					for n := range 20 {
						former.Change(catalogtest.JobStream(100+n), catalogtest.Active("docs"))
					}
					projector, stop := catalogtest.RunProjector(t, c, former)
					catalogtest.Reach(t, projector)
					stop()
				} else { // a listing with rows and no position: as behind as can be
					if _, err := c.Write.NewInsert().Model(catalogtest.Must(listing.NewJobRow(api.JobRow{Project: "docs",
						Job: api.Job{ID: "job_0100"}}))(t)).Exec(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				l.Change(catalogtest.JobStream(1), catalogtest.Active("docs"))
				projector, _ := catalogtest.RunProjector(t, c, l)
				catalogtest.Reach(t, projector)
				if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs"}); !slices.Equal(got, []string{"0001"}) {
					t.Errorf("listed %v", got)
				}
			})
		})
	}
}

func TestNothingIsAcknowledgedThatIsNotStored(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, stop := catalogtest.RunProjector(t, c, l)
		for n := range 300 {
			l.Change([]string{catalogtest.JobStream(n), "thread/thr_1"}[n%2], catalogtest.Active("docs"))
			if n%7 == 0 {
				catalogtest.Reach(t, projector)
			}
			l.Mu.Lock()
			acked := l.Acked
			l.Mu.Unlock()
			var stored uint64
			err := c.Read.NewRaw("SELECT COALESCE(max(position), 0) FROM projections").Scan(t.Context(), &stored)
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
		c := catalogtest.Place{T: t, DSN: "sqlite:" + path}.Open(catalog.Options{})
		l := catalogtest.NewLog()
		projector, _ := catalogtest.RunProjector(t, c, l)
		l.Change(catalogtest.JobStream(1), catalogtest.Active("docs"))
		catalogtest.Reach(t, projector)
		if _, err := c.Write.Exec("ALTER TABLE projections RENAME TO away"); err != nil {
			t.Fatal(err)
		}
		l.Change(catalogtest.JobStream(2), catalogtest.Active("docs"))
		time.Sleep(time.Minute)
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs"}); !slices.Equal(got, []string{"0001"}) {
			t.Errorf("rows without their position: %v", got)
		}
		if _, err := c.Write.Exec("ALTER TABLE away RENAME TO projections"); err != nil {
			t.Fatal(err)
		}
		catalogtest.Reach(t, projector)
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs"}); len(got) != 2 {
			t.Errorf("after the failure, listed are %v", got)
		}
	})
}

// TestARebuildLeavesEveryListingWhole lists while a rebuild goes on, and after one that was broken off at any row: what
// is acknowledged is there all the time, also what is made meanwhile.
func TestARebuildLeavesEveryListingWhole(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, _ := catalogtest.RunProjector(t, c, l)
		const jobs = listing.Batch + 40
		for n := range jobs {
			l.Change(catalogtest.JobStream(n), catalogtest.Active("docs"))
		}
		catalogtest.Reach(t, projector)
		made := jobs
		for _, stop := range []int{0, 1, 20, listing.Batch, listing.Batch + 20, jobs + 1} {
			rebuilding, cancel := context.WithCancel(t.Context())
			looked := 0
			var mu sync.Mutex
			l.SetLook(func() {
				mu.Lock()
				looked++
				now, n := looked, made
				mu.Unlock()
				if now > stop {
					cancel()
				}
				if now%100 == 1 {
					if got := len(catalogtest.Listed(t, c, listing.JobQuery{Project: "docs"})); got < jobs {
						t.Errorf("at row %d of a rebuild %d of %d jobs are listed", now, got, n)
					}
				}
			})
			err := projector.Rebuild(rebuilding)
			l.SetLook(nil)
			cancel()
			if stop > 0 && stop < jobs && !errors.Is(err, context.Canceled) {
				t.Errorf("a rebuild that was stopped after %d rows: %v", stop, err)
			}
			if got := len(catalogtest.Current(t, c, listing.JobQuery{Project: "docs", MinPos: listing.Newest}, new(int))); got != made {
				t.Errorf("after a rebuild that was stopped after %d rows %d of %d jobs are listed", stop, got, made)
			}
			l.Change(catalogtest.JobStream(made), catalogtest.Active("docs"))
			made++
			if got := len(catalogtest.Current(t, c, listing.JobQuery{Project: "docs", MinPos: listing.Newest}, new(int))); got != made {
				t.Errorf("after a job more %d of %d jobs are listed", got, made)
			}
		}
	})
}

// TestAListingThatIsNotWholeYetIsUnavailable has the projector begin far behind the journal and fail on its way.
func TestAListingThatIsNotWholeYetIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) {
		c, l := catalogtest.Place{T: t, DSN: "sqlite:" + path}.Open(catalog.Options{}), catalogtest.NewLog()
		for n := range 2*listing.Batch + 1 {
			l.Change(catalogtest.JobStream(n), catalogtest.Active("docs"))
		}
		l.SetFault(catalogtest.JobStream(2*listing.Batch), api.ErrUnavailable)
		projector, _ := catalogtest.RunProjector(t, c, l)
		_, err := c.Jobs(t.Context(), listing.JobQuery{Project: "docs", MinPos: listing.Newest})
		if busy := new(api.BusyError); !errors.As(err, &busy) || !errors.Is(err, api.ErrUnavailable) || busy.RetryAfter <= 0 {
			t.Errorf("a listing that lacks a job: %v", err)
		}
		l.SetFault(catalogtest.JobStream(2*listing.Batch), nil)
		catalogtest.Reach(t, projector)
		if got := catalogtest.Listed(t, c, listing.JobQuery{Project: "docs", MinPos: listing.Newest}); len(got) != 2*listing.Batch+1 {
			t.Errorf("%d jobs are listed", len(got))
		}
	})
}

// TestWhoWaitsForAListingNeedsNoChange empties the listing of an idle journal behind the projector's back: a
// caller that waits sets it to work.
func TestWhoWaitsForAListingNeedsNoChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) {
		c, l := catalogtest.Place{T: t, DSN: "sqlite:" + path}.Open(catalog.Options{}), catalogtest.NewLog()
		l.Change(catalogtest.JobStream(1), catalogtest.Active("docs"))
		projector, _ := catalogtest.RunProjector(t, c, l)
		catalogtest.Reach(t, projector)
		synctest.Wait()                               // it waits for a change
		l.Changes = append(l.Changes, "thread/thr_1") // of which it is not told
		catalogtest.Reach(t, projector)
	})
}
