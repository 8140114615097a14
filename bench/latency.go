package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Latency is a distribution, in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
	// Curve are the milliseconds at each of Quantiles.
	Curve []float64 `json:"curve,omitempty"`
}

// Quantiles are the percentiles of a Latency's curve.
var Quantiles = []float64{0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 100}

const recorderShards = 16

// A recorder gathers latencies of many streams, in microseconds, without making them wait for each other.
type recorder struct {
	shards [recorderShards]struct {
		mu   sync.Mutex
		hist *hdrhistogram.Histogram
		_    [40]byte // shards on lines of their own
	}
}

// Latencies from a microsecond to an hour are kept with three digits.
const longest = int64(time.Hour / time.Microsecond)

// record notes a latency; n spreads the callers.
func (r *recorder) record(n int, d time.Duration) {
	s := &r.shards[uint(n)%recorderShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hist == nil {
		s.hist = hdrhistogram.New(1, longest, 3)
	}
	_ = s.hist.RecordValue(min(max(1, d.Microseconds()), longest)) // so that it fits
}

func (r *recorder) latency() Latency {
	all := hdrhistogram.New(1, longest, 3)
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		if s.hist != nil {
			all.Merge(s.hist)
		}
		s.mu.Unlock()
	}
	if all.TotalCount() == 0 {
		return Latency{}
	}
	ms := func(micros int64) float64 { return float64(micros) / 1000 }
	at := func(q float64) float64 { return ms(all.ValueAtQuantile(q)) }
	l := Latency{Count: all.TotalCount(), Mean: all.Mean() / 1000, P50: at(50), P90: at(90), P99: at(99), P999: at(99.9),
		Max: ms(all.Max())}
	for _, q := range Quantiles {
		l.Curve = append(l.Curve, at(q))
	}
	return l
}
