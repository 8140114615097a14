// Package bench drives assistant streams against a server, through its public API and over real connections, and
// reports what a reader would have seen: the time until the answer begins, gaps in it, what was lost. Latencies count
// from the moment at which a request was due by the schedule, not from when it could be sent, so that a server that
// stalls cannot hide it (coordinated omission).
package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"docent/stream"
)

// A Scenario says what load to put on which server.
type Scenario struct {
	URL      string
	Domain   string
	Key      string
	Question string        // asked by every stream
	Streams  int           // how many, each in a thread of its own
	Ramp     time.Duration // over which their starts are spread evenly
	Form     stream.Form   // wire form
	// Parts is how many text parts a complete answer has; 0 where that is not known. A stream with another number counts
	// as lost.
	Parts    int
	Interval time.Duration         // between two parts by the model's schedule; 0 where there is none
	Progress func(open, ended int) // called now and then while it runs; may be nil
}

// A Result is what the streams saw.
type Result struct {
	Streams    int           `json:"streams"`
	Completed  int           `json:"completed"`  // ended with finish, and whole
	Refused    int           `json:"refused"`    // answered 429 or 503 before a stream began
	Lost       int           `json:"lost"`       // broken off, ended without finish, or not whole
	Failures   []string      `json:"failures"`   // the first few, in words
	FirstEvent Latency       `json:"firstEvent"` // from the due start to the first event
	FirstText  Latency       `json:"firstText"`  // … to the first piece of text
	Whole      Latency       `json:"whole"`      // … to finish
	Late       Latency       `json:"late"`       // of each part behind the model's schedule, counted from the first text
	Parts      int64         `json:"parts"`      // text parts read
	Bytes      int64         `json:"bytes"`
	Elapsed    time.Duration `json:"elapsed"`
	MostOpen   int           `json:"mostOpen"` // streams open at once
	Server     Usage         `json:"server"`
}

// A Latency is a distribution in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// recorder gathers latencies of many streams, in microseconds.
type recorder struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram
}

func newRecorder() *recorder {
	return &recorder{hist: hdrhistogram.New(1, int64(time.Hour/time.Microsecond), 3)}
}

func (r *recorder) record(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.hist.RecordValue(min(max(1, d.Microseconds()), r.hist.HighestTrackableValue())) // so that it fits
}

func (r *recorder) latency() Latency {
	ms := func(micros int64) float64 { return float64(micros) / 1000 }
	return Latency{ms(r.hist.ValueAtQuantile(50)), ms(r.hist.ValueAtQuantile(90)), ms(r.hist.ValueAtQuantile(99)), ms(r.hist.Max())}
}

// run is one scenario under way.
type run struct {
	Scenario
	client *http.Client
	body   []byte

	firstEvent, firstText, whole, late *recorder

	mu       sync.Mutex
	result   Result
	open     int
	mostOpen int
}

// Streams runs the scenario. It fails only where it could not run at all; what the server did badly is in the Result.
func Streams(ctx context.Context, s Scenario) (Result, error) {
	if s.Streams < 1 {
		return Result{}, errors.New("a scenario needs at least one stream")
	}
	version, ok := map[stream.Form]string{stream.DataStream: "v1", stream.UIMessages: "v2"}[s.Form]
	if !ok {
		return Result{}, fmt.Errorf("form %v is neither of the two wire forms", s.Form)
	}
	body, err := json.Marshal(map[string]any{
		"fp": "bench",
		"messages": []map[string]any{{"role": "user", "content": s.Question,
			"parts": []map[string]any{{"type": "text", "text": s.Question}}}},
	})
	if err != nil {
		return Result{}, err
	}
	r := &run{
		Scenario: s, body: body, firstEvent: newRecorder(), firstText: newRecorder(), whole: newRecorder(), late: newRecorder(),
		client: &http.Client{Transport: &http.Transport{
			MaxIdleConns: s.Streams, MaxIdleConnsPerHost: s.Streams, DisableCompression: true, ReadBufferSize: 4 << 10, WriteBufferSize: 2 << 10,
		}},
	}
	defer r.client.CloseIdleConnections()
	target := s.URL + "/discovery/" + version + "/assistant/" + url.PathEscape(s.Domain) + "/message"

	before, err := ServerUsage(ctx, s.URL)
	if err != nil {
		return Result{}, err
	}
	watch, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	peak := make(chan Usage, 1)
	go func() { peak <- r.watch(watch) }()

	begin := time.Now()
	var group errgroup.Group
	for i := range s.Streams {
		due := begin.Add(time.Duration(int64(s.Ramp) * int64(i) / int64(s.Streams)))
		group.Go(func() error {
			if err := wait(ctx, due); err != nil {
				return err
			}
			r.end(r.stream(ctx, target, due))
			return ctx.Err()
		})
	}
	err = group.Wait()
	elapsed := time.Since(begin)
	stopWatching()
	most := <-peak
	if err != nil {
		return Result{}, err
	}
	after, err := ServerUsage(ctx, s.URL)
	if err != nil {
		return Result{}, err
	}
	out := r.result
	out.Streams, out.Elapsed, out.MostOpen = s.Streams, elapsed, r.mostOpen
	out.FirstEvent, out.FirstText, out.Whole, out.Late = r.firstEvent.latency(), r.firstText.latency(), r.whole.latency(), r.late.latency()
	out.Server = Usage{CPU: after.CPU - before.CPU, Resident: max(most.Resident, after.Resident), ResidentBefore: before.Resident,
		OpenFiles: most.OpenFiles, Allocations: after.Allocations - before.Allocations}
	return out, nil
}

// wait returns at the time given.
func wait(ctx context.Context, due time.Time) error {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// An outcome is how one stream ended.
type outcome struct {
	refused bool
	err     error
	parts   int
	bytes   int64
}

// stream asks one question and reads its answer to the end.
func (r *run) stream(ctx context.Context, target string, due time.Time) (o outcome) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(r.body))
	if err != nil {
		return outcome{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+r.Key)
	resp, err := r.client.Do(req)
	if err != nil {
		return outcome{err: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		refused := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
		return outcome{refused: refused, err: fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(text))}
	}
	r.opened(1)
	defer r.opened(-1)
	counted := &countingReader{reader: resp.Body}
	decoder := stream.NewDecoder(r.Form, counted)
	defer func() { o.bytes = counted.n }()
	var textBegan time.Time
	for first := true; ; first = false {
		part, err := decoder.Next()
		if err != nil {
			o.err = fmt.Errorf("after %d parts: %w", o.parts, err)
			return o
		}
		now := time.Now()
		if first {
			r.firstEvent.record(now.Sub(due))
		}
		switch part.Kind {
		case stream.Text:
			if o.parts == 0 {
				textBegan = now
				r.firstText.record(now.Sub(due))
			} else if r.Interval > 0 {
				r.late.record(now.Sub(textBegan.Add(time.Duration(o.parts) * r.Interval)))
			}
			o.parts++
		case stream.Error:
			o.err = errors.New(part.Text)
			return o
		case stream.Finish:
			if r.Parts > 0 && o.parts != r.Parts {
				o.err = fmt.Errorf("the answer has %d parts, %d were due", o.parts, r.Parts)
				return o
			}
			r.whole.record(now.Sub(due))
			return o
		}
	}
}

func (r *run) opened(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open += n
	r.mostOpen = max(r.mostOpen, r.open)
}

func (r *run) end(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Parts += int64(o.parts)
	r.result.Bytes += o.bytes
	switch {
	case o.refused:
		r.result.Refused++
	case o.err != nil:
		r.result.Lost++
	default:
		r.result.Completed++
	}
	if o.err != nil && len(r.result.Failures) < 5 {
		r.result.Failures = append(r.result.Failures, o.err.Error())
	}
}

// watch reports progress and returns the most that the server used.
func (r *run) watch(ctx context.Context) Usage {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	var most Usage
	for {
		select {
		case <-ctx.Done():
			return most
		case <-ticker.C:
		}
		if now, err := ServerUsage(ctx, r.URL); err == nil {
			most.Resident = max(most.Resident, now.Resident)
			most.OpenFiles = max(most.OpenFiles, now.OpenFiles)
		}
		if r.Progress != nil {
			r.mu.Lock()
			open, ended := r.open, r.result.Completed+r.result.Lost+r.result.Refused
			r.mu.Unlock()
			r.Progress(open, ended)
		}
	}
}

type countingReader struct {
	reader io.Reader
	n      int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.n += int64(n)
	return n, err
}
