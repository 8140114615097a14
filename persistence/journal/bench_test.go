package journal

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"go.etcd.io/bbolt"
)

// A benchStore is something that takes events of 512 bytes: op writes one for writer w and returns when it is on disk,
// size says how much of the file is in use.
type benchStore struct {
	name string
	open func(b *testing.B, path string, writers int) (op func(w int) error, size func() int64)
}

var benchStores = []benchStore{
	{"journal", journalStore(0)},
	{"journal+snapshots", journalStore(64)},
	{"raw", rawStore},
	{"update", boltStore((*bbolt.DB).Update)},
	{"batch", boltStore((*bbolt.DB).Batch)},
}

// writeAll lets the writers call op until goOn says no, and returns how long each call took.
func writeAll(b *testing.B, writers int, op func(int) error, goOn func() bool) *hdrhistogram.Histogram {
	times := make([]*hdrhistogram.Histogram, writers)
	var wg sync.WaitGroup
	for w := range writers {
		times[w] = hdrhistogram.New(1, 10_000_000, 3)
		wg.Go(func() {
			for goOn() {
				began := time.Now()
				if err := op(w); err != nil {
					b.Error(err)
					return
				}
				_ = times[w].RecordValue(time.Since(began).Microseconds())
			}
		})
	}
	wg.Wait()
	for _, h := range times[1:] {
		times[0].Merge(h)
	}
	return times[0]
}

// BenchmarkAppend answers: how many events of 512 bytes a second are on disk before their writers go on, how long one
// waits, and how far that is from what the disk can do (a log file with one sync for all that wait) and from bbolt as
// it comes (a transaction each, or Batch), where the key of an event is its stream and sequence number.
//
//	go test -run '^$' -bench 'Append$' -benchtime 3s ./persistence
func BenchmarkAppend(b *testing.B) {
	for _, store := range benchStores {
		for _, writers := range benchWriters {
			b.Run(fmt.Sprintf("%s/writers=%d", store.name, writers), func(b *testing.B) {
				op, size := store.open(b, filepath.Join(b.TempDir(), "store"), writers)
				before := size()
				var left atomic.Int64
				left.Store(int64(b.N))
				cpu := processorTime(b)
				b.ResetTimer()
				times := writeAll(b, writers, op, func() bool { return left.Add(-1) >= 0 })
				b.StopTimer()
				cpu = processorTime(b) - cpu
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
				b.ReportMetric(float64(times.ValueAtQuantile(50)), "p50-µs")
				b.ReportMetric(float64(times.ValueAtQuantile(99)), "p99-µs")
				b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/event")
				b.ReportMetric(float64(size()-before)/float64(b.N), "disk-B/event")
			})
		}
	}
}

var benchWriters = []int{1, 16, 256, 1024}

// BenchmarkAppendSideBySide answers how the stores compare on a machine that others use as well, where one figure after
// another says more of the neighbors than of the store. All stores are open at once and take turns of a sixteenth of a
// second, so that a slow moment meets all of them; each benchmark iteration is such a round. It prints the median of
// each store's rate and 99th percentile, and the median over the rounds of the ratios within a round.
//
//	go test -run '^$' -bench AppendSideBySide -benchtime 25x ./persistence
func BenchmarkAppendSideBySide(b *testing.B) {
	type cell struct{ rate, p99 []float64 }
	type running struct {
		cell
		op      func(int) error
		size    func() int64
		written int64
		before  int64
	}
	cells := make(map[string]map[int]*running)
	for _, store := range benchStores {
		cells[store.name] = make(map[int]*running)
		for _, writers := range benchWriters {
			op, size := store.open(b, filepath.Join(b.TempDir(), "store"), writers)
			cells[store.name][writers] = &running{op: op, size: size, before: size()}
		}
	}
	b.ResetTimer()
	for b.Loop() {
		for _, writers := range benchWriters {
			for _, i := range rand.Perm(len(benchStores)) {
				c := cells[benchStores[i].name][writers]
				began := time.Now()
				times := writeAll(b, writers, c.op, func() bool { return time.Since(began) < time.Second/16 })
				c.rate = append(c.rate, float64(times.TotalCount())/time.Since(began).Seconds())
				c.p99 = append(c.p99, float64(times.ValueAtQuantile(99))/1000)
				c.written += times.TotalCount()
			}
		}
	}
	b.StopTimer()
	b.Logf("%-18s %10s %10s %10s %10s  %9s %12s", "events/s", "1", "16", "256", "1024", "p99 @256", "bytes @256")
	for _, store := range benchStores {
		line := fmt.Sprintf("%-18s", store.name)
		for _, writers := range benchWriters {
			line += fmt.Sprintf(" %10.0f", median(cells[store.name][writers].rate))
		}
		at := cells[store.name][256]
		b.Logf("%s  %6.1f ms %12.0f", line, median(at.p99), float64(at.size()-at.before)/float64(at.written))
	}
	ratio := func(a, b []float64) float64 {
		r := make([]float64, len(a))
		for i := range a {
			r[i] = a[i] / b[i]
		}
		return median(r)
	}
	for _, name := range []string{"journal", "journal+snapshots"} {
		at := cells[name]
		b.Logf("%s, 256 writers: %.0f times a lone writer, %.1f times Batch, %.1f times Update, %.2f of the log file", name,
			ratio(at[256].rate, at[1].rate), ratio(at[256].rate, cells["batch"][256].rate), ratio(at[256].rate,
				cells["update"][256].rate),
			ratio(at[256].rate, cells["raw"][256].rate))
	}
	own := cells["journal"][256]
	b.ReportMetric(ratio(own.rate, cells["journal"][1].rate), "x-lone")
	b.ReportMetric(ratio(own.rate, cells["batch"][256].rate), "x-batch")
	b.ReportMetric(ratio(own.rate, cells["raw"][256].rate), "of-raw")
	b.ReportMetric(median(own.p99), "p99-ms")
	b.ReportMetric(median(cells["raw"][1].p99), "raw-lone-p99-ms")
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

const benchEvent = 512

// journalStore gives each writer a few streams, as actors have; every so many events of a stream it is snapshotted.
func journalStore(every uint64) func(*testing.B, string, int) (func(int) error, func() int64) {
	return func(b *testing.B, path string, writers int) (func(int) error, func() int64) {
		j := openAt(b, path, Options{})
		type own struct {
			seqs  [32]uint64
			names [32]string
			n     int
		}
		owns := make([]own, writers)
		for w := range owns {
			for i := range owns[w].names {
				owns[w].names[i] = benchStream(w, i)
			}
		}
		data, state := make([]byte, benchEvent), make([]byte, 4096)
		b.Cleanup(func() {
			s := j.Stats()
			b.ReportMetric(float64(s.Appends)/float64(s.Commits), "events/commit")
		})
		used := func() int64 {
			var n int64
			if err := j.do(func(c *commit) error { n = c.tx.Size(); return nil }); err != nil {
				b.Fatal(err)
			}
			return n
		}
		return func(w int) error {
			o := &owns[w]
			o.n = (o.n + 1) % len(o.seqs)
			last, err := j.Append(b.Context(), Append{Stream: o.names[o.n], After: o.seqs[o.n],
				Events: []Event{{"bench.said.1", data}}})
			o.seqs[o.n] = last
			if every > 0 && last%every == 0 {
				j.Snapshot(o.names[o.n], last, state)
			}
			return err
		}, used
	}
}

func benchStream(w, i int) string {
	return fmt.Sprintf("thread/%016x%04d%02d", uint64(w*32+i)*0x9E3779B97F4A7C15, w, i)
}

// rawStore appends to a file, with one sync for all that wait.
func rawStore(b *testing.B, path string, _ int) (func(int) error, func() int64) {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	var buf, other []byte
	waiting, wake := make(chan struct{}), make(chan struct{}, 1)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-wake:
			case <-stop:
				return
			}
			mu.Lock()
			buf, other = other[:0], buf
			group := waiting
			waiting = make(chan struct{})
			mu.Unlock()
			if _, err := f.Write(other); err != nil {
				b.Error(err)
			}
			if err := syncData(f); err != nil {
				b.Error(err)
			}
			close(group)
		}
	}()
	b.Cleanup(func() { close(stop); <-done; f.Close() })
	data := make([]byte, benchEvent)
	return func(int) error {
			mu.Lock()
			buf = append(buf, data...)
			group := waiting
			mu.Unlock()
			select {
			case wake <- struct{}{}:
			default:
			}
			<-group
			return nil
		}, func() int64 {
			st, err := f.Stat()
			if err != nil {
				b.Fatal(err)
			}
			return st.Size()
		}
}

func boltStore(commit func(*bbolt.DB, func(*bbolt.Tx) error) error) func(*testing.B, string, int) (func(int) error,
	func() int64) {
	return func(b *testing.B, path string, writers int) (func(int) error, func() int64) {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { db.Close() })
		name := []byte("events")
		if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(name); return err }); err != nil {
			b.Fatal(err)
		}
		next := make([]uint64, writers*32) // as many streams as the journal gets
		names := make([]string, len(next))
		for i := range names {
			names[i] = benchStream(i/32, i%32)
		}
		turn := make([]int, writers)
		data := make([]byte, benchEvent)
		return func(w int) error {
				turn[w] = (turn[w] + 1) % 32
				i := w*32 + turn[w]
				next[i]++
				key := binary.BigEndian.AppendUint64([]byte(names[i]), next[i])
				return commit(db, func(tx *bbolt.Tx) error { return tx.Bucket(name).Put(key, data) })
			}, func() (n int64) {
				if err := db.View(func(tx *bbolt.Tx) error { n = tx.Size(); return nil }); err != nil {
					b.Fatal(err)
				}
				return n
			}
	}
}

// BenchmarkOpen answers: how long a journal takes to open with many idle streams (a snapshot of 600 bytes each), after
// it was closed and after a crash, and what they cost in memory.
//
//	DOCENT_BENCH_STREAMS=1000000 go test -run '^$' -bench 'Open$' -benchtime 3x ./persistence
func BenchmarkOpen(b *testing.B) {
	n := 20_000
	if s := os.Getenv("DOCENT_BENCH_STREAMS"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			b.Fatal(err)
		}
	}
	path := filepath.Join(b.TempDir(), "journal.db")
	j := openAt(b, path, Options{UnsafeNoSync: true, CheckpointEvery: time.Millisecond})
	state := make([]byte, 600)
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < n; i += 64 {
				name := fmt.Sprintf("thread/%016x%08d", uint64(i)*0x9E3779B97F4A7C15, i)
				if _, err := j.Append(b.Context(), Append{Stream: name,
					Events: []Event{{"bench.said.1", state[:100]}}}); err != nil {
					b.Error(err)
					return
				}
				j.Snapshot(name, 1, state)
			}
		})
	}
	wg.Wait()
	flush(b, j)
	crashed := filepath.Join(b.TempDir(), "crashed.db")
	copyFile(b, crashed, path)
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, path string }{{"crashed", crashed}, {"closed", path}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				run := c.path + ".run"
				copyFile(b, run, c.path)
				b.StartTimer()
				j, err := Open(run, Options{Log: quiet})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if s := j.Stats(); s.Streams != 0 {
					b.Fatalf("%d streams in memory", s.Streams)
				}
				b.ReportMetric(float64(j.Stats().FileBytes)/float64(n), "disk-B/stream")
				if err := j.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkRecover answers: how long it takes to load 10,000 streams with a snapshot of 4 KB and 20 events each.
func BenchmarkRecover(b *testing.B) {
	const n = 10_000
	path := filepath.Join(b.TempDir(), "journal.db")
	j := openAt(b, path, Options{UnsafeNoSync: true, CheckpointEvery: time.Millisecond})
	var wg sync.WaitGroup
	state, data := make([]byte, 4096), make([]byte, benchEvent)
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < n; i += 64 {
				name := fmt.Sprintf("job/%016x", uint64(i)*0x9E3779B97F4A7C15)
				for seq := range uint64(25) {
					if _, err := j.Append(b.Context(), Append{Stream: name, After: seq, Pending: true,
						Events: []Event{{"bench.said.1", data}}}); err != nil {
						b.Error(err)
						return
					}
				}
				j.Snapshot(name, 5, state)
			}
		})
	}
	wg.Wait()
	flush(b, j)
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		j, err := Open(path, Options{Log: quiet})
		if err != nil {
			b.Fatal(err)
		}
		names := make(chan string)
		for range 4 {
			wg.Go(func() {
				for name := range names {
					if rec, err := j.Load(name); err != nil || rec.Seq != 25 || len(rec.Events) != 20 {
						b.Errorf("%s: %d, %v", name, rec.Seq, err)
					}
				}
			})
		}
		if err := j.Pending(func(s string) bool { names <- s; return true }); err != nil {
			b.Fatal(err)
		}
		close(names)
		wg.Wait()
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "streams/s")
}

// BenchmarkHistory answers whether an append, a snapshot and a load cost more when much has gone before: the thousandth
// event of a stream beside its first ones, and a new stream beside a hundred thousand (DOCENT_BENCH_STREAMS) others.
// The young and the old take turns, so that a slow moment meets both.
//
//	DOCENT_BENCH_STREAMS=1000000 go test -run '^$' -bench History -benchtime 5x ./persistence
func BenchmarkHistory(b *testing.B) {
	n := 100_000
	if s := os.Getenv("DOCENT_BENCH_STREAMS"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			b.Fatal(err)
		}
	}
	const each = 100 // of each kind, in a round
	state, data := make([]byte, 4096), make([]byte, benchEvent)
	path := filepath.Join(b.TempDir(), "full.db")
	full := openAt(b, path, Options{UnsafeNoSync: true, CheckpointEvery: time.Millisecond})
	name := func(kind string, i int) string {
		return fmt.Sprintf("%s/%016x%08d", kind, uint64(i)*0x9E3779B97F4A7C15, i)
	}
	live := func(j *Journal, stream string, after, events uint64) {
		for seq := after; seq < after+events; seq++ {
			if _, err := j.Append(b.Context(), Append{Stream: stream, After: seq,
				Events: []Event{{"bench.said.1", data}}}); err != nil {
				b.Error(err)
				return
			}
			if (seq+1)%20 == 0 || seq+1 == after+events {
				j.Snapshot(stream, seq+1, state)
			}
		}
	}
	var wg sync.WaitGroup
	for w := range 256 {
		wg.Go(func() {
			for i := w; i < n; i += 256 {
				live(full, name("thread", i), 0, 1)
			}
		})
	}
	wg.Wait()
	for i := range each {
		live(full, name("old", i), 0, 1000)
	}
	flush(b, full)
	if err := full.Close(); err != nil {
		b.Fatal(err)
	}
	full = openAt(b, path, Options{})
	empty := openNew(b, Options{})
	newStreams := func(j *Journal, round int) time.Duration {
		began := time.Now()
		for i := range each {
			live(j, name("new", round*each+i), 0, 1)
		}
		return time.Since(began)
	}
	turns := func(kind string, after uint64) time.Duration {
		began := time.Now()
		for i := range each {
			live(full, name(kind, i), after, 2)
		}
		return time.Since(began)
	}
	loads := func(kind string, want uint64) time.Duration {
		began := time.Now()
		for i := range each {
			if rec, err := full.Load(name(kind, i)); err != nil || rec.Seq != want {
				b.Fatalf("%d, %v", rec.Seq, err)
			}
		}
		return time.Since(began)
	}
	for i := range each {
		live(full, name("young", i), 0, 1)
	}
	var first, last, youngTurn, oldTurn, youngLoad, oldLoad []float64
	round := 0
	b.ResetTimer()
	for b.Loop() {
		seq := uint64(2 * round)
		first = append(first, newStreams(empty, round).Seconds())
		last = append(last, newStreams(full, round).Seconds())
		flush(b, full)
		youngTurn = append(youngTurn, turns("young", 1+seq).Seconds())
		oldTurn = append(oldTurn, turns("old", 1000+seq).Seconds())
		flush(b, full)
		youngLoad = append(youngLoad, loads("young", 3+seq).Seconds())
		oldLoad = append(oldLoad, loads("old", 1002+seq).Seconds())
		round++
	}
	b.StopTimer()
	report := func(old, young []float64, unit string) {
		r := make([]float64, len(old))
		for i := range r {
			r[i] = old[i] / young[i]
		}
		b.ReportMetric(median(r), unit)
	}
	report(last, first, "new-stream-x")
	report(oldTurn, youngTurn, "turn-x")
	report(oldLoad, youngLoad, "load-x")
	b.ReportMetric(median(last)/each*1e6, "new-stream-µs")
	b.ReportMetric(median(oldTurn)/each*1e6, "turn-µs")
	b.ReportMetric(median(oldLoad)/each*1e6, "load-µs")
}
