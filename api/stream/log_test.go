package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"docent/api/stream"
)

func text(s string) stream.Part { return stream.Part{Kind: stream.Text, Text: s} }

func appendAll(t testing.TB, l *stream.Log, parts ...stream.Part) {
	t.Helper()
	for _, p := range parts {
		if err := l.Append(p); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryReaderGetsEveryPartOnceInOrder(t *testing.T) {
	const parts, readers = 2000, 32
	l := stream.NewLog()
	var wg sync.WaitGroup
	errs := make(chan error, readers)
	for n := range readers {
		from := n * 10
		r := l.Reader(from)
		wg.Go(func() {
			defer r.Close()
			next := from
			for {
				got, ok, err := r.Next(t.Context())
				if err != nil {
					errs <- err
					return
				}
				if !ok {
					break
				}
				for _, p := range got {
					if p.Text != strconv.Itoa(next) {
						errs <- fmt.Errorf("reader from %d: part %d is %q", from, next, p.Text)
						return
					}
					next++
				}
			}
			if next != parts {
				errs <- fmt.Errorf("reader from %d ended at %d", from, next)
			}
		})
	}
	for i := range parts {
		appendAll(t, l, text(strconv.Itoa(i)))
	}
	l.Close()
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

func TestAReaderTakesAllThatIsThereAtOnce(t *testing.T) {
	l := stream.NewLog()
	appendAll(t, l, text("a"), text("b"), text("c"))
	r := l.Reader(1)
	got, ok, err := r.Next(t.Context())
	if err != nil || !ok || len(got) != 2 || got[0].Text != "b" {
		t.Fatalf("got %v, %v, %v", got, ok, err)
	}
	appendAll(t, l, text("d"))
	if len(got) != 2 || cap(got) != 2 || got[1].Text != "c" {
		t.Fatalf("the window changed: %v", got)
	}
	l.Close()
	if got, ok, _ := r.Next(t.Context()); !ok || len(got) != 1 || got[0].Text != "d" {
		t.Fatalf("got %v, %v", got, ok)
	}
	if got, ok, err := r.Next(t.Context()); ok || err != nil || got != nil {
		t.Fatalf("after the end: %v, %v, %v", got, ok, err)
	}
}

func TestAWaitingReaderIsWokenByAppendAndByClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stream.NewLog()
		r := l.Reader(0)
		got := make(chan int)
		go func() {
			defer close(got)
			for {
				parts, ok, err := r.Next(context.Background())
				if err != nil || !ok {
					return
				}
				got <- len(parts)
			}
		}()
		synctest.Wait() // the reader waits
		appendAll(t, l, text("a"))
		if n := <-got; n != 1 {
			t.Fatalf("woken with %d parts", n)
		}
		synctest.Wait()
		if err := l.Append(text("b"), text("c")); err != nil {
			t.Fatal(err)
		}
		if n := <-got; n != 2 {
			t.Fatalf("woken with %d parts", n)
		}
		synctest.Wait()
		l.Close()
		if n, open := <-got; open {
			t.Fatalf("woken with %d parts by the end", n)
		}
	})
}

func TestReadyNeverMissesAnAppend(t *testing.T) {
	const parts = 5000
	l := stream.NewLog()
	r := l.Reader(0)
	done := make(chan int)
	go func() {
		n := 0
		for more := true; more; { // waits before the first Take and after a Take that had parts
			<-r.Ready()
			var got []stream.Part
			got, more = r.Take()
			n += len(got)
		}
		done <- n
	}()
	for range parts {
		appendAll(t, l, text("x"))
	}
	l.Close()
	if n := <-done; n != parts {
		t.Fatalf("%d of %d parts", n, parts)
	}
}

func TestNextEndsWithItsContextAlone(t *testing.T) {
	l := stream.NewLog()
	r := l.Reader(0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok, err := r.Next(ctx); ok || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, %v", ok, err)
	}
	appendAll(t, l, text("a"))
	if got, ok, err := r.Next(t.Context()); err != nil || !ok || len(got) != 1 {
		t.Fatalf("the reader does not go on: %v, %v, %v", got, ok, err)
	}
}

func TestAReaderMayStartAheadOfTheLog(t *testing.T) {
	l := stream.NewLog()
	r := l.Reader(2)
	appendAll(t, l, text("a"), text("b"))
	if got, more := r.Take(); len(got) != 0 || !more {
		t.Fatalf("got %v, %v", got, more)
	}
	appendAll(t, l, text("c"))
	if got, more := r.Take(); len(got) != 1 || got[0].Text != "c" || !more {
		t.Fatalf("got %v, %v", got, more)
	}
	far := l.Reader(100)
	l.Close()
	if _, ok, err := far.Next(t.Context()); ok || err != nil {
		t.Fatalf("a reader beyond the end: %v, %v", ok, err)
	}
}

func TestAClosedLogRefusesPartsAndMayBeClosedAgain(t *testing.T) {
	l := stream.NewLog()
	select {
	case <-l.Done():
		t.Fatal("done before the end")
	default:
	}
	l.Close()
	l.Close()
	<-l.Done()
	if err := l.Append(text("late")); !errors.Is(err, stream.ErrClosed) {
		t.Fatalf("got %v", err)
	}
	if l.Len() != 0 {
		t.Fatalf("%d parts", l.Len())
	}
}

func TestALimitedLogRefusesMoreTextButTakesTheEnd(t *testing.T) {
	l := stream.NewLog(stream.Limit(8))
	appendAll(t, l, stream.Part{Kind: stream.Start, Message: "msg_1"}, text("abc"))
	if err := l.Append(text("a"), text("123456789")); !errors.Is(err, stream.ErrFull) {
		t.Fatalf("got %v", err)
	}
	if l.Len() != 2 {
		t.Fatalf("a refused append left %d parts", l.Len())
	}
	appendAll(t, l, stream.Part{Kind: stream.Finish, Thread: "thr_a_long_id", Reason: "length"})
	if l.Len() != 3 {
		t.Fatalf("%d parts", l.Len())
	}
}

func TestAClosedReaderLeavesTheOthersAlone(t *testing.T) {
	l := stream.NewLog()
	readers := make([]*stream.Reader, 5)
	for i := range readers {
		readers[i] = l.Reader(0)
		readers[i].Take() // now it waits
	}
	readers[1].Close()
	readers[4].Close()
	readers[4].Close()
	appendAll(t, l, text("a"))
	for i, r := range readers {
		got, more := r.Take()
		if closed := i == 1 || i == 4; closed && (more || len(got) != 0) || !closed && (!more || len(got) != 1) {
			t.Errorf("reader %d: %v, %v", i, got, more)
		}
	}
}

// What a part costs from the writer to the last of its readers.
func BenchmarkLog(b *testing.B) {
	for _, readers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			b.ReportAllocs()
			const parts = 200 // one answer
			p := text("a few words ")
			var wakes int64
			for b.Loop() {
				l := stream.NewLog()
				var wg sync.WaitGroup
				for range readers {
					r := l.Reader(0)
					wg.Go(func() {
						for {
							if _, ok, _ := r.Next(context.Background()); !ok {
								return
							}
						}
					})
				}
				for range parts {
					_ = l.Append(p)
				}
				l.Close()
				wg.Wait()
				wakes++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(wakes*parts), "ns/part")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(wakes*parts*int64(readers)), "ns/part/reader")
		})
	}
}

func TestAReaderAtRestHearsOfTheEndAlone(t *testing.T) {
	l := stream.NewLog()
	r, other := l.Reader(0), l.Reader(0)
	rings := func(r *stream.Reader) bool {
		select {
		case <-r.Ready():
			return true
		default:
			return false
		}
	}
	<-r.Ready()
	<-other.Ready()
	r.Take()
	other.Take()
	r.Rest(true)
	appendAll(t, l, text("a"))
	if rings(r) || !rings(other) {
		t.Fatal("an append wakes those that rest, or not the others")
	}
	r.Rest(false)
	if !rings(r) {
		t.Fatal("a reader that rests no more does not hear of what came meanwhile")
	}
	if got, _ := r.Take(); len(got) != 1 {
		t.Fatalf("%d parts", len(got))
	}
	appendAll(t, l, text("b"))
	if !rings(r) {
		t.Fatal("a reader that does not rest is not woken")
	}
	r.Take()
	r.Rest(true)
	l.Close()
	if !rings(r) {
		t.Fatal("a reader at rest does not hear of the end")
	}
}

func TestAWatchIsToldOfWhatAReaderWaitsFor(t *testing.T) {
	l := stream.NewLog()
	told := 0
	r := l.Watch(1, func() { told++ })
	heard := func(want string, times int) {
		t.Helper()
		if told != times {
			t.Fatalf("%s: told %d times, want %d", want, told, times)
		}
		told = 0
	}
	appendAll(t, l, text("a"), text("b"))
	heard("before it took anything", 0)
	if got, more := r.Take(); len(got) != 1 || got[0].Text != "b" || !more {
		t.Fatalf("took %v, %v", got, more)
	}
	heard("all was taken", 0)
	appendAll(t, l, text("c"))
	appendAll(t, l, text("d"))
	heard("two appends", 1)
	r.TakeInto(make([]stream.Part, 0, 1), 0)
	heard("something is left", 1)
	r.Take()
	r.Rest(true)
	appendAll(t, l, text("e"))
	heard("at rest", 0)
	r.Rest(false)
	heard("no more at rest", 1)
	r.Take()
	l.Close()
	heard("the end", 1)
	if _, more := r.Take(); more {
		t.Fatal("the end is not told")
	}
}

func TestALogYieldsWhatWasAppendedHoweverItIsTaken(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 9))
	for range 50 {
		l := stream.NewLog()
		readers := []*stream.Reader{l.Reader(0), l.Reader(3), l.Reader(100), l.Reader(0)}
		room, most := []int{0, 5, 0, 1}, []int{0, 100, 300, 0}
		got := make([][]stream.Part, len(readers))
		take := func(n int) bool {
			var into []stream.Part
			if room[n] > 0 {
				into = make([]stream.Part, 0, room[n])
			}
			parts, more := readers[n].TakeInto(into, most[n])
			held := 0
			for i, p := range parts {
				if most[n] > 0 && held >= most[n] {
					t.Fatalf("part %d was taken after %d bytes, of which %d were wanted", i, held, most[n])
				}
				held += len(p.ID) + len(p.Text) + len(p.URL)
			}
			if room[n] > 0 && len(parts) > room[n] {
				t.Fatalf("took %d parts into room for %d", len(parts), room[n])
			}
			got[n] = append(got[n], parts...)
			return more
		}
		var want []stream.Part
		for i := range 300 {
			p := stream.Part{Kind: stream.Text, Text: strings.Repeat(string(rune('a'+i%26)), random.IntN(20))}
			switch random.IntN(12) {
			case 0:
				p.Text = strings.Repeat("long ", random.IntN(400))
			case 1:
				p = stream.Part{Kind: stream.Source, ID: strconv.Itoa(i), URL: "https://example.com"}
			}
			want = append(want, p)
			appendAll(t, l, p)
			take(random.IntN(len(readers)))
		}
		l.Close()
		for n := range readers {
			for take(n) {
			}
			if from := []int{0, 3, 100, 0}[n]; !reflect.DeepEqual(got[n], want[from:]) {
				t.Fatalf("reader %d did not get what was appended", n)
			}
		}
		for _, from := range []int{0, 3, 299, 300, 400} {
			text := ""
			for _, p := range want[min(from, len(want)):] {
				text += p.Text
			}
			if l.Text(from) != text {
				t.Fatalf("the text from part %d is not what was appended", from)
			}
		}
	}
}
