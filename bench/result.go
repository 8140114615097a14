package bench

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"docent/internal/background"
)

// A Target is a server under measurement.
type Target struct {
	Name    string // in reports: "docent", "limit"
	URL     string
	Domain  string
	Key     string // of the assistant
	Project string
	Admin   string // admin key, for jobs
}

// A Result is what callers saw of one scenario under one load, and what it took the server.
type Result struct {
	Scenario string  `json:"scenario"`
	Target   string  `json:"target"`
	Load     string  `json:"load"` // in words: "1000 streams"
	Size     float64 `json:"size"` // the figure in Load: a number of streams, or of requests a second
	Round    int     `json:"round"`

	Asked     int `json:"asked"`
	Completed int `json:"completed"` // whole and in order
	Refused   int `json:"refused"`   // answered 429 or 503, before work began
	// broken off, not whole, out of order, failed or refused for another reason
	Lost     int      `json:"lost"`
	Failures []string `json:"failures,omitempty"` // the first few, in words

	// Latencies by name: firstEvent, firstText and whole from the due start; late of each part behind the model's
	// schedule, counted from the first text; refusal from the due start to a refusal; and those of other scenarios.
	Latencies map[string]Latency `json:"latencies"`
	// Turns are the medians of whole in milliseconds by the turn of a thread, where threads have several.
	Turns []float64 `json:"turns,omitempty"`

	// Figures are those that a scenario has of its own, by the names of figureNames.
	Figures map[string]float64 `json:"figures,omitempty"`

	Parts    int64   `json:"parts,omitempty"` // text parts read
	Bytes    int64   `json:"bytes,omitempty"`
	Reads    int64   `json:"reads,omitempty"`   // how often the client found something to read
	Elapsed  float64 `json:"elapsed"`           // seconds
	Planned  float64 `json:"planned,omitempty"` // seconds that the schedule takes
	MostOpen int     `json:"mostOpen,omitempty"`

	Metered bool     `json:"metered"` // the server told what it used
	Before  Usage    `json:"before"`
	Server  Usage    `json:"server"` // counters during the measurement, memory at its most
	Series  []Sample `json:"series,omitempty"`
}

// A Sample is one moment of a measurement.
type Sample struct {
	At        float64 `json:"at"` // seconds from the beginning
	Open      int     `json:"open"`
	Parts     float64 `json:"parts"`     // text parts a second since the sample before
	Completed float64 `json:"completed"` // requests completed a second
	Refused   float64 `json:"refused"`
	CPU       float64 `json:"cpu"` // processors busy with the server
	Resident  int64   `json:"resident"`
	Heap      int64   `json:"heap"`
	Pauses    float64 `json:"pauses"` // milliseconds a second that the garbage collector stopped everything
	GC        float64 `json:"gc"`     // collections a second
}

// Stretch is how much longer the run took than its schedule; 0 where there is none.
func (r *Result) Stretch() float64 { return Ratio(r.Elapsed, r.Planned) }

// CPUPerPart is in microseconds.
func (r *Result) CPUPerPart() float64 { return Ratio(r.Server.CPU*1e6, float64(r.Parts)) }

// CPUPerRequest is in microseconds, for each completed request.
func (r *Result) CPUPerRequest() float64 { return Ratio(r.Server.CPU*1e6, float64(r.Completed)) }

// Divide tells what a turn costs by itself and what each further part does, from a second measurement of the same load
// with answers of fewer parts: CPUPerPart divides all that the server has done by the parts.
func (r *Result) Divide(short Result) {
	parts := func(r *Result) float64 { return Ratio(float64(r.Parts), float64(r.Completed)) }
	if parts(r) <= parts(&short) || r.Server.CPU == 0 || short.Server.CPU == 0 {
		return
	}
	further := (r.CPUPerRequest() - short.CPUPerRequest()) / (parts(r) - parts(&short))
	if r.Figures == nil {
		r.Figures = make(map[string]float64)
	}
	r.Figures["cpu.marginal"] = further / 1000
	r.Figures["cpu.turn"] = (short.CPUPerRequest() - further*parts(&short)) / 1000
}

// AllocationsPerPart is in objects.
func (r *Result) AllocationsPerPart() float64 {
	return Ratio(float64(r.Server.Allocations), float64(r.Parts))
}

// AllocationsPerRequest is in objects, for each completed request.
func (r *Result) AllocationsPerRequest() float64 {
	return Ratio(float64(r.Server.Allocations), float64(r.Completed))
}

// MemoryPerStream is in bytes, where most were open at once: without pages of files, where the server tells them apart.
// How many of the journal's are mapped depends on what is stored, and not on what is open.
func (r *Result) MemoryPerStream() float64 {
	if r.Before.Anonymous > 0 {
		return r.perStream(r.Server.Anonymous - r.Before.Anonymous)
	}
	return r.perStream(r.Server.Resident - r.Before.Resident)
}

func (r *Result) perStream(bytes int64) float64 {
	if r.Parts == 0 {
		return 0 // no streams
	}
	return Ratio(float64(bytes), float64(r.MostOpen))
}

// Throughput is in completed requests a second.
func (r *Result) Throughput() float64 { return Ratio(float64(r.Completed), r.Elapsed) }

// Ratio is a to b; 0 where b is.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// A Progress hears how a measurement goes, now and then.
type Progress func(open, ended, due int)

// A meter counts while a scenario runs, and samples the server.
type meter struct {
	url      string
	progress Progress
	due      int

	open, mostOpen, completed, refused, lost, parts, bytes, reads atomic.Int64

	recorders map[string]*recorder // made before the run begins

	mu       sync.Mutex
	failures []string
}

func newMeter(t Target, due int, progress Progress, latencies ...string) *meter {
	m := &meter{url: t.URL, progress: progress, due: due, recorders: make(map[string]*recorder)}
	for _, name := range latencies {
		m.recorders[name] = new(recorder)
	}
	return m
}

func (m *meter) opened() {
	for n := m.open.Add(1); ; {
		most := m.mostOpen.Load()
		if n <= most || m.mostOpen.CompareAndSwap(most, n) {
			return
		}
	}
}

// end counts how a request ended.
func (m *meter) end(refused bool, err error) {
	switch {
	case refused:
		m.refused.Add(1)
	case err != nil:
		m.lost.Add(1)
	default:
		m.completed.Add(1)
	}
	if err == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.failures) < 5 {
		m.failures = append(m.failures, err.Error())
	}
}

// run measures while work runs. It fails only where nothing could be measured.
func (m *meter) run(ctx context.Context, work func(ctx context.Context) error) (Result, error) {
	before, meterErr := ServerUsage(ctx, m.url) // a server without metrics is measured from outside only
	watching, stop := context.WithCancel(ctx)
	type watched struct {
		most   Usage
		series []Sample
	}
	seen := make(chan watched, 1)
	began := time.Now()
	background.Go("bench.run", func() {
		most, series := m.watch(watching, began, before, meterErr == nil)
		seen <- watched{most, series}
	})
	err := work(ctx)
	elapsed := time.Since(began)
	stop()
	w := <-seen
	if err != nil {
		return Result{}, err
	}
	r := Result{
		Asked: m.due, Completed: int(m.completed.Load()), Refused: int(m.refused.Load()), Lost: int(m.lost.Load()),
		Failures:  m.failures,
		Latencies: make(map[string]Latency), Parts: m.parts.Load(), Bytes: m.bytes.Load(), Reads: m.reads.Load(),
		Elapsed: elapsed.Seconds(), MostOpen: int(m.mostOpen.Load()), Metered: meterErr == nil, Before: before,
		Series: w.series,
	}
	for name, recorder := range m.recorders {
		r.Latencies[name] = recorder.latency()
	}
	if meterErr != nil {
		return r, nil
	}
	after, err := ServerUsage(ctx, m.url)
	if err != nil {
		return r, err
	}
	if after.CPU < before.CPU || after.Allocated < before.Allocated {
		before = Usage{} // another process, which began during the measurement
	}
	r.Server = after.since(before)
	for _, most := range []struct {
		to   *int64
		seen int64
	}{{&r.Server.Resident, w.most.Resident}, {&r.Server.Anonymous, w.most.Anonymous}, {&r.Server.Heap, w.most.Heap},
		{&r.Server.Stacks, w.most.Stacks}, {&r.Server.Goroutines, w.most.Goroutines},
		{&r.Server.OpenFiles, w.most.OpenFiles}} {
		*most.to = max(*most.to, most.seen)
	}
	return r, nil
}

// watch samples the server and reports progress until ctx ends.
func (m *meter) watch(ctx context.Context, began time.Time, last Usage, metered bool) (most Usage, series []Sample) {
	const period = 500 * time.Millisecond
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	at := began
	var parts, completed, refused int64
	for {
		select {
		case <-ctx.Done():
			return most, series
		case <-ticker.C:
		}
		now := last
		if metered {
			var err error
			if now, err = ServerUsage(ctx, m.url); err != nil {
				continue // it may be restarting; the next sample covers the time
			}
		}
		if now.CPU < last.CPU {
			last = Usage{} // another process
		}
		t := time.Now()
		seconds := t.Sub(at).Seconds()
		p, c, f := m.parts.Load(), m.completed.Load(), m.refused.Load()
		used := now.since(last)
		series = append(series, Sample{
			At: t.Sub(began).Seconds(), Open: int(m.open.Load()), Parts: float64(p-parts) / seconds,
			Completed: float64(c-completed) / seconds,
			Refused:   float64(f-refused) / seconds, CPU: used.CPU / seconds, Resident: now.Resident, Heap: now.Heap,
			Pauses: used.Pauses * 1000 / seconds, GC: float64(used.Collections) / seconds,
		})
		most.Resident, most.Heap, most.Stacks = max(most.Resident, now.Resident), max(most.Heap, now.Heap),
			max(most.Stacks, now.Stacks)
		most.Anonymous = max(most.Anonymous, now.Anonymous)
		most.Goroutines, most.OpenFiles = max(most.Goroutines, now.Goroutines), max(most.OpenFiles, now.OpenFiles)
		at, last, parts, completed, refused = t, now, p, c, f
		if m.progress != nil {
			m.progress(int(m.open.Load()), int(c+f+m.lost.Load()), m.due)
		}
	}
}

// Median is the middle of some values; 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
