package actors_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/actors"
	"docent/actors/job"
	"docent/actors/thread"
	"docent/agent"
	"docent/api"
	"docent/internal/tracing"
	"docent/model"
	"docent/persistence/journal"
)

// What follows answers: what does an idle actor cost, what does asking one cost, how many durable turns a second does
// one node take, and how fast does it come back.
//
//	go test ./actors -run '^$' -bench . -benchtime 2s

// plain keeps nothing of what it was asked: for measuring.
type plain struct{ answer string }

func (p plain) Answer(_ context.Context, _ string, _ model.Request, emit func(model.Delta) error) (model.Result,
	error) {
	for w := range strings.FieldsSeq(p.answer) {
		if err := emit(model.Delta{Text: w + " ", Cite: []int{0, 1}}); err != nil {
			return model.Result{}, err
		}
	}
	return model.Result{Model: "plain", Reason: "stop", Answered: true}, nil
}

func (plain) Local(string) bool { return false }

func (plain) FallsBack(string, error) bool { return false }

func (plain) Fallback(context.Context, string, model.Request, func(model.Delta) error) (model.Result, error) {
	panic("no model answers in its place")
}

// still edits nothing.
type still struct{}

func (still) Edit(context.Context, agent.Task, func(agent.Progress)) (agent.Result, error) {
	return agent.Result{Model: "still", Message: "Nothing to change."}, nil
}

func (still) Model(string) string { return "still" }

func benchWorld(b *testing.B, change func(*actors.Deps)) *world {
	w := newWorld(b, func(d *actors.Deps) {
		d.Log, d.Shards, d.Model, d.Editor = discard, 32, plain{strings.Repeat("word ", 40)}, still{}
		if change != nil {
			change(d)
		}
	})
	j, err := journal.Open(filepath.Join(b.TempDir(), "journal"), journal.Options{Log: discard})
	if err != nil {
		b.Fatal(err)
	}
	w.journal = j
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
	})
	return w.start()
}

func (w *world) answered(id api.ThreadID, q thread.Ask) {
	turn, err := w.system.Threads().Ask(context.Background(), id, q)
	if err != nil {
		w.t.Error(err)
		return
	}
	<-turn.Log.Done()
}

// BenchmarkTurns runs whole turns, each durable twice (question, answer), in threads of their own.
func BenchmarkTurns(b *testing.B) {
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			w := benchWorld(b, func(d *actors.Deps) { d.Awake = 20_000 })
			defer w.stop()
			var next atomic.Int64
			took := make([]time.Duration, b.N)
			var all sync.WaitGroup
			b.ResetTimer()
			for range callers {
				all.Go(func() {
					for {
						i := next.Add(1) - 1
						if i >= int64(b.N) {
							return
						}
						began := time.Now()
						w.answered(newThread(), opening("what is a histogram and what is a summary"))
						took[i] = time.Since(began)
					}
				})
			}
			all.Wait()
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
			b.ReportMetric(float64(took[b.N*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkTracedTurns runs whole turns of 64 callers, with no tracing, with one trace in a hundred, and with all.
func BenchmarkTracedTurns(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer collector.Close()
	for _, part := range []float64{-1, 0.01, 1} {
		b.Run(fmt.Sprint("sample=", part), func(b *testing.B) {
			var tracer *tracing.Tracer
			if part >= 0 {
				var err error
				if tracer, err = tracing.New(tracing.Config{Endpoint: collector.URL, Sample: &part}); err != nil {
					b.Fatal(err)
				}
				defer tracer.Close(context.Background())
			}
			w := benchWorld(b, func(d *actors.Deps) { d.Awake, d.Tracer = 20_000, tracer })
			defer w.stop()
			var next atomic.Int64
			var all sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range 64 {
				all.Go(func() {
					for next.Add(1) <= int64(b.N) {
						ctx, span := tracer.Root(context.Background(), "request", tracing.Server, time.Now(), tracing.Origin{})
						turn, err := w.system.Threads().Ask(ctx, newThread(), opening("what is a histogram"))
						if err != nil {
							b.Error(err)
							return
						}
						<-turn.Log.Done()
						span.End()
					}
				})
			}
			all.Wait()
			b.StopTimer()
		})
	}
}

// BenchmarkAsk reads an actor that is awake.
func BenchmarkAsk(b *testing.B) {
	w := benchWorld(b, nil)
	defer w.stop()
	id := newJob()
	w.create(id, "nothing")
	w.settled(id)
	for _, callers := range []int{1, 256} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
			if callers == 1 {
				took := make([]time.Duration, 0, 1<<20)
				for b.Loop() {
					began := time.Now()
					w.ask(id, job.Read{Project: "p"})
					if len(took) < cap(took) {
						took = append(took, time.Since(began))
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
				b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					w.ask(id, job.Read{Project: "p"})
				}
			})
		})
	}
}

// BenchmarkIdle tells what a thread of two turns (1.4 KB of text, two sources each) costs while it is awake and idle,
// and after it went to sleep and the journal has made its checkpoint.
func BenchmarkIdle(b *testing.B) {
	const n = 20_000
	for state, idle := range map[string]time.Duration{"awake": time.Hour, "asleep": 50 * time.Millisecond} {
		b.Run(state, func(b *testing.B) {
			for b.Loop() {
				w := benchWorld(b, func(d *actors.Deps) { d.Model, d.Idle = plain{strings.Repeat("word ", 120)}, idle })
				ids := make([]api.ThreadID, n)
				for i := range ids {
					ids[i] = newThread()
				}
				before := heap()
				parallel(512, ids, func(id api.ThreadID) {
					w.answered(id, opening("what is a histogram and what is a summary"))
					w.answered(id, question("and how do I choose between the two of them"))
				})
				j := w.journal.(*journal.Journal)
				for state == "asleep" && (w.system.Stats().Live > 0 || j.Trimmed() < j.Position()) {
					time.Sleep(100 * time.Millisecond)
				}
				b.ReportMetric(float64(heap()-before)/n, "B/actor")
				w.stop()
			}
		})
	}
}

// BenchmarkRecover starts on a journal of 10,000 jobs that wait for work and tells how long it takes until all are
// awake and done.
func BenchmarkRecover(b *testing.B) {
	const n = 10_000
	m := newMemory() // the journal's own speed is measured there
	w := newWorld(b, func(d *actors.Deps) { d.Log, d.Shards, d.Editor = discard, 32, still{} })
	w.journal = m
	blocked := newWorld(b, func(d *actors.Deps) { d.Log, d.Shards, d.Editor = discard, 32, asleep{} })
	blocked.journal, blocked.memory = m, m
	blocked.start()
	ids := make([]api.JobID, n)
	for i := range ids {
		ids[i] = newJob()
	}
	parallel(64, ids, func(id api.JobID) { blocked.create(id, "nothing") })
	blocked.stop()
	saved := make(map[string]memoryStream)
	for name, s := range m.streams {
		saved[name] = *s
	}
	for b.Loop() {
		b.StopTimer()
		for name, s := range saved {
			*m.streams[name] = s
		}
		b.StartTimer()
		began := time.Now()
		w.start()
		<-w.system.Woken()
		woken := time.Since(began)
		parallel(64, ids, func(id api.JobID) { w.settled(id) })
		b.ReportMetric(woken.Seconds()*1000, "woken-ms")
		b.ReportMetric(time.Since(began).Seconds()*1000, "done-ms")
		b.StopTimer()
		w.stop()
		b.StartTimer()
	}
}

type asleep struct{}

func (asleep) Model(string) string { return "asleep" }

func (asleep) Edit(ctx context.Context, _ agent.Task, _ func(agent.Progress)) (agent.Result, error) {
	<-ctx.Done()
	return agent.Result{}, ctx.Err()
}

func parallel[T any](n int, items []T, f func(T)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(items)) {
					return
				}
				f(items[i])
			}
		})
	}
	all.Wait()
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
