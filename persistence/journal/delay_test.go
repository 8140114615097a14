package journal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// busyJournal is one that lately had an append each millisecond.
func busyJournal(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := Open(path, Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		time.Sleep(time.Millisecond)
		mustAppend(t, j, Append{Stream: fmt.Sprint("job/", i), Events: events("x")})
	}
	return j
}

// appending appends from a goroutine of its own, and says to done how it went.
func appending(ctx context.Context, j *Journal, a Append, done chan<- error) {
	go func() {
		_, err := j.Append(ctx, a)
		done <- err
	}()
}

func TestAnAppendThatCanWaitSharesTheNextCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	for name, next := range map[string]func(*testing.T, *Journal){
		"of an append": func(t *testing.T, j *Journal) { mustAppend(t, j, Append{Stream: "job/now", Events: events("x")}) },
		"of another change": func(t *testing.T, j *Journal) {
			if err := j.do(func(*commit) error { return nil }); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := busyJournal(t, path+name)
				defer j.Close()
				before := j.Stats().Commits
				done := make(chan error, 3)
				for i := range cap(done) {
					appending(t.Context(), j, Append{Stream: fmt.Sprint("thread/", i), Events: events("x"), Urgency: Later}, done)
				}
				synctest.Wait()
				if n := j.Stats().Commits - before; len(done) != 0 || n != 0 {
					t.Fatalf("%d of them are done, in %d commits", len(done), n)
				}
				next(t, j)
				synctest.Wait()
				if n := j.Stats().Commits - before; len(done) != cap(done) || n != 1 {
					t.Fatalf("%d of three are done, in %d commits", len(done), n)
				}
				for range cap(done) {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func TestAnAppendThatCanWaitDoesNotWaitLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	synctest.Test(t, func(t *testing.T) {
		j := busyJournal(t, path)
		defer j.Close()
		took := func(stream string) time.Duration {
			began := time.Now()
			mustAppend(t, j, Append{Stream: stream, Events: events("x"), Urgency: Later})
			return time.Since(began)
		}
		if d := took("thread/a"); d != laterDelay {
			t.Fatalf("with others expected it waited %v", d)
		}
		if d := took("thread/b"); d != 0 {
			t.Fatalf("with nobody for a while it waited %v", d)
		}
		time.Sleep(time.Minute)
		mustAppend(t, j, Append{Stream: "job/now", Events: events("x")})
		if d := took("thread/c"); d != 0 {
			t.Fatalf("after a lone append it waited %v", d)
		}
	})
}

func TestEndsShareACommitWhereNobodyBegins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	const ends = 41
	for _, c := range []struct {
		name    string
		busy    int
		apart   time.Duration
		longest time.Duration
		commits uint64
	}{
		// the first one after a pause, and then with the next three
		{"fast", delaySiblings, 6 * time.Millisecond, endsDelay, 11},
		{"slow", delaySiblings, 2 * endsDelay, 0, ends},
		{"alone", delaySiblings - 1, 6 * time.Millisecond, 0, ends},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openAt(t, path+c.name, Options{})
				defer j.Close()
				atWork(t, j, c.busy)
				time.Sleep(time.Minute) // since anything began
				next := 0
				end := func(n int) (longest time.Duration) {
					waits := make(chan time.Duration, n)
					for range n {
						next++
						a := Append{Stream: fmt.Sprint("thread/", next), Events: events("x"), Urgency: Later}
						go func() {
							began := time.Now()
							if _, err := j.Append(t.Context(), a); err != nil {
								t.Error(err)
							}
							waits <- time.Since(began)
						}()
						time.Sleep(c.apart)
					}
					for range n {
						longest = max(longest, <-waits)
					}
					return longest
				}
				end(100) // until it is known how fast they come
				time.Sleep(endsDelay)
				before := j.Stats().Commits
				longest := end(ends)
				if n := j.Stats().Commits - before; n != c.commits || longest != c.longest {
					t.Errorf("%d ends in %d commits, the longest wait %v", ends, n, longest)
				}
			})
		})
	}
}

// atWork makes n streams of the journal have work under way.
func atWork(t *testing.T, j *Journal, n int) {
	t.Helper()
	for i := range n {
		mustAppend(t, j, Append{Stream: fmt.Sprint("thread/at-work-", i), Events: events("x"), Pending: true})
	}
}

func TestAppendsThatBeginWorkShareACommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	for _, c := range []struct {
		apart      time.Duration
		first, all time.Duration // until the first one is written, and all of twelve
		commits    uint64
	}{
		{12 * time.Millisecond, 12 * time.Millisecond, 132 * time.Millisecond, 6}, // for one more
		{6 * time.Millisecond, 12 * time.Millisecond, 66 * time.Millisecond, 4},   // for two more
		{2 * time.Millisecond, 6 * time.Millisecond, 22 * time.Millisecond, 3},    // for three more, and never for a fourth
		{20 * time.Millisecond, 0, 220 * time.Millisecond, 12},                    // for nobody
	} {
		t.Run(c.apart.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openAt(t, path+c.apart.String(), Options{})
				defer j.Close()
				atWork(t, j, delaySiblings)
				for i := range 100 { // until it is known how fast they come
					time.Sleep(c.apart)
					mustAppend(t, j, Append{Stream: fmt.Sprint("job/", i), Events: events("x")})
				}
				before, began := j.Stats().Commits, time.Now().Add(c.apart)
				first := time.Duration(-1)
				done := make(chan error, 12)
				for i := range cap(done) {
					time.Sleep(c.apart)
					appending(t.Context(), j, Append{Stream: fmt.Sprint("thread/", i), Events: events("x"), Urgency: Soon}, done)
					synctest.Wait()
					if len(done) > 0 && first < 0 {
						first = time.Since(began)
					}
				}
				if n := j.Stats().Commits - before; len(done) != cap(done) || n != c.commits || first != c.first ||
					time.Since(began) != c.all {
					t.Errorf("the first one after %v, %d in %d commits after %v", first, len(done), n, time.Since(began))
				}
			})
		})
	}
}

func TestAnAppendThatBeginsWorkDoesNotWaitLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	for busy, want := range map[int]time.Duration{delaySiblings - 1: 0, delaySiblings: soonDelay} {
		synctest.Test(t, func(t *testing.T) {
			j := busyJournal(t, path+fmt.Sprint(busy))
			defer j.Close()
			atWork(t, j, busy)
			began := time.Now()
			mustAppend(t, j, Append{Stream: "thread/a", Events: events("x"), Urgency: Soon})
			if d := time.Since(began); d != want {
				t.Errorf("with %d streams at work it waited %v", busy, d)
			}
		})
	}
}

func TestManyAppendsThatCanWaitAreWrittenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	synctest.Test(t, func(t *testing.T) {
		j := busyJournal(t, path)
		defer j.Close()
		before, began := j.Stats().Appends, time.Now()
		large := Append{Stream: "thread/large", Events: []Event{{"test.said.1", make([]byte, delayedBytes)}}, Urgency: Later}
		mustAppend(t, j, large)
		for i := range delayedMost {
			go func() {
				if _, err := j.Append(t.Context(), Append{Stream: fmt.Sprint("thread/", i), Events: events("x"),
					Urgency: Later}); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if n := j.Stats().Appends - before; n != delayedMost+1 || !time.Now().Equal(began) {
			t.Fatalf("%d are written after %v", n, time.Since(began))
		}
	})
}

func TestWhatIsHeldBackIsWrittenByClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	synctest.Test(t, func(t *testing.T) {
		j := busyJournal(t, path)
		began := time.Now()
		result := make(chan error, 1)
		appending(t.Context(), j, Append{Stream: "thread/a", Events: events("one"), Urgency: Later}, result)
		withdrawn, withdraw := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		appending(withdrawn, j, Append{Stream: "thread/b", Events: events("one"), Urgency: Later}, gone)
		synctest.Wait()
		withdraw()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-result; err != nil || !time.Now().Equal(began) {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
	})
	j := openAt(t, path, Options{})
	wantTexts(t, j, "thread/a", "one")
	if rec := mustLoad(t, j, "thread/b"); rec.Seq != 0 {
		t.Fatalf("the append that was withdrawn is there: %+v", rec)
	}
}

func TestOneOfAWriterThatWaitsAndOneThatDoesNotWins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	synctest.Test(t, func(t *testing.T) {
		j := busyJournal(t, path)
		defer j.Close()
		results := make(chan error, 2)
		for i, urgency := range []Urgency{Later, AtOnce} {
			appending(t.Context(), j, Append{Stream: "job/0", After: 1, Events: events(fmt.Sprint(i)), Urgency: urgency},
				results)
			synctest.Wait()
		}
		// Of two that want to be the same event one wins, whichever waited.
		errs := []error{<-results, <-results}
		if n := len(slices.DeleteFunc(errs, func(err error) bool { return err != nil })); n != 1 {
			t.Fatalf("%d have won", n)
		}
		if rec := mustLoad(t, j, "job/0"); rec.Seq != 2 {
			t.Fatalf("%+v", rec)
		}
	})
}
