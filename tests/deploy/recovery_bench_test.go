package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/stores"
	"docent/internal/health"
	"docent/persistence/catalog"
	"docent/persistence/datadir"
	"docent/persistence/journal"
	"docent/tests/harness"
)

// BenchmarkReady answers: how long after its start a server takes requests, and how long until it has worked off the
// jobs that were active when it was killed, with so many idle threads and active jobs on disk. The threads are copies
// of one that was asked two questions, the jobs of a dry run, so that it is the server's speed that shows and not that
// of Git.
//
//	DOCENT_BENCH_THREADS=1000000 DOCENT_BENCH_JOBS=10000 go test ./tests/deploy -run '^$' -bench Ready -benchtime 3x -timeout 1h
//
// Without the variables it compares 1,000 idle threads with 50,000.
func BenchmarkReady(b *testing.B) {
	threads, jobs := []int{1_000, 50_000}, 200
	if n := environmentNumber(b, "DOCENT_BENCH_THREADS"); n > 0 {
		threads = []int{1_000, n}
	}
	if n := environmentNumber(b, "DOCENT_BENCH_JOBS"); n > 0 {
		jobs = n
	}
	for _, n := range threads {
		b.Run(fmt.Sprintf("threads=%d/jobs=%d", n, jobs), func(b *testing.B) {
			data := filepath.Join(b.TempDir(), "data")
			fillDataDirectory(b, data, n, jobs)
			journal := filepath.Join(data, "journal.db")
			catalog := filepath.Join(data, "catalog.db")
			copySparse(b, journal+".whole", journal)
			copySparse(b, catalog+".whole", catalog)
			var ready, done time.Duration
			for b.Loop() {
				b.StopTimer()
				copySparse(b, journal, journal+".whole")
				copySparse(b, catalog, catalog+".whole") // which knows how far the journal was
				os.Remove(catalog + "-wal")
				os.Remove(catalog + "-shm")
				b.StartTimer()
				began := time.Now()
				server := harness.NewServer(b, data, "--log-level", "warn")
				ready += time.Since(began)
				for {
					var s health.Status
					if err := json.Unmarshal([]byte(harness.Docent(b, "status", "--data", data, "--json")), &s); err != nil {
						b.Fatal(err)
					}
					if s.Start.Pending < jobs {
						b.Fatalf("%d streams called for work, not %d or one more", s.Start.Pending, jobs)
					}
					if s.Journal.Pending == 0 {
						break
					}
					time.Sleep(50 * time.Millisecond)
				}
				done += time.Since(began)
				b.StopTimer()
				server.Kill()
				b.StartTimer()
			}
			b.ReportMetric(ready.Seconds()/float64(b.N), "s-to-ready")
			b.ReportMetric(done.Seconds()/float64(b.N), "s-to-done")
		})
	}
}

func environmentNumber(b *testing.B, name string) int {
	n := 0
	if s := os.Getenv(name); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
	}
	return n
}

// fillDataDirectory makes the data directory of a server that was killed: so many threads at rest, so many jobs with
// work to do. What one real thread and one real job left in the journal is written again under other names, and the
// catalog has come to know all of it.
func fillDataDirectory(b *testing.B, data string, threads, jobs int) {
	p := harness.NewProject(b, data, "widgets", harness.WriteFiles(b, map[string]string{
		"index.md": "# Widgets\n\nA widget counts what passes by. Reset a widget with the red button.\n"}))
	server := harness.NewServer(b, data)
	q, err := harness.Ask(b.Context(), server.Client(p.Assistant), p, "", "How do I reset a widget?")
	if err == nil {
		_, err = harness.Ask(b.Context(), server.Client(p.Assistant), p, string(q.Thread), "What does it count?")
	}
	if err != nil {
		b.Fatal(err)
	}
	server.Stop() // the thread goes to sleep, with a snapshot
	server.Start()
	var j api.Job
	if err := server.Client(p.Admin).Post(b.Context(), "/v2/agent/"+p.ID+"/job", map[string]any{
		"prompt": `append "A widget is never full." to index.md`, "dryRun": true}, &j); err != nil {
		b.Fatal(err)
	}
	server.Kill() // the job's events are still in the log

	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	dir, err := datadir.Open(data, datadir.Server, 10*time.Second)
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	stores, err := stores.Open(b.Context(), dir, config.Default(), log)
	if err != nil {
		b.Fatal(err)
	}
	defer stores.Close()
	store, err := journal.Open(dir.File(datadir.Journal),
		journal.Options{Log: log, UnsafeNoSync: true, CheckpointEvery: time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()

	aThread, err := store.Load(thread.Stream(q.Thread))
	if err != nil {
		b.Fatal(err)
	}
	aJob, err := store.Load(job.Stream(j.ID))
	if err != nil || len(aJob.Events) < 2 {
		b.Fatalf("the job has %d events in the log: %v", len(aJob.Events), err)
	}
	now := time.Now()
	var failed atomic.Pointer[error]
	each := func(n int, f func() error) {
		var left atomic.Int64
		left.Store(int64(n))
		var all sync.WaitGroup
		for range 4 * runtime.GOMAXPROCS(0) * 16 {
			all.Go(func() {
				for left.Add(-1) >= 0 && failed.Load() == nil {
					if err := f(); err != nil {
						failed.Store(&err)
					}
				}
			})
		}
		all.Wait()
		if err := failed.Load(); err != nil {
			b.Fatal(*err)
		}
	}
	each(jobs, func() error {
		id := api.NewID(api.JobPrefix, now)
		var events []journal.Event
		for _, e := range aJob.Events[:2] { // it was created, and told what to do
			events = append(events, journal.Event{Type: e.Type, Data: bytes.ReplaceAll(e.Data, []byte(j.ID), []byte(id))})
		}
		_, err := store.Append(context.Background(),
			journal.Append{Stream: job.Stream(api.JobID(id)), Events: events, Pending: true})
		return err
	})
	each(threads, func() error {
		stream := thread.Stream(api.ThreadID(api.NewID(api.ThreadPrefix, now)))
		_, err := store.Append(context.Background(),
			journal.Append{Stream: stream, Events: []journal.Event{{Type: "bench.slept.1"}}})
		if err == nil {
			store.Snapshot(stream, 1, aThread.Snapshot)
		}
		return err
	})
	caughtUp, stop := context.WithCancel(b.Context())
	var following sync.WaitGroup
	jobSource, err := store.Follow(catalog.JobListing)
	if err != nil {
		b.Fatal(err)
	}
	defer jobSource.Close()
	threadSource, err := store.Follow(catalog.QuestionListing)
	if err != nil {
		b.Fatal(err)
	}
	defer threadSource.Close()
	for _, projector := range []*catalog.Projector{
		stores.Catalog.NewProjector(jobSource, func(_ context.Context, stream string) (api.JobRow, bool, error) {
			recovered, err := store.Load(stream)
			if err != nil {
				return api.JobRow{}, false, err
			}
			return job.Row(api.JobID(strings.TrimPrefix(stream, job.Stream(""))), recovered)
		}, log),
		stores.Catalog.NewThreadProjector(threadSource,
			func(context.Context, string, uint64) (api.ThreadRow, bool, error) {
				return api.ThreadRow{}, false, nil // a million questions in the catalog are not what is measured
			}, log),
	} {
		following.Go(func() { projector.Run(caughtUp) })
		if err := projector.Wait(b.Context(), store.Position()); err != nil {
			b.Error(err)
		}
	}
	stop()
	following.Wait()
	for store.Stats().Streams > jobs+1 { // the threads come to rest as their events are removed
		time.Sleep(10 * time.Millisecond)
	}
}

// copySparse copies a file; the space that was reserved at its end stays empty.
func copySparse(b *testing.B, to, from string) {
	b.Helper()
	in, err := os.Open(from)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		b.Fatal(err)
	}
	if err := out.Close(); err != nil {
		b.Fatal(err)
	}
}
