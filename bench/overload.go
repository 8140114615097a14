package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Overload is more than a server can carry, and what becomes of it: a low rate of questions first, Factor times what
// the server carries after that, and the low rate again, each in a new thread, each at its time whatever became of the
// others.
type Overload struct {
	Target
	// Carried is how many questions a second the server carries. Where it is 0, that is found out: Callers ask again as
	// soon as they have their answer, for as long as Find says; where some are refused, half as many and a quarter too.
	// The same number of callers ask again at the end, and what was completed is set beside the mean of both: a machine
	// that others use too is not as fast at one time as at another.
	Carried float64
	Callers int
	Find    time.Duration

	Factor    float64 // of the load to what is carried: 2 where it is 0
	Calm      time.Duration
	For       time.Duration // past saturation
	After     time.Duration // at the low rate again
	Questions []string
	Scripted  bool
	Parts     int
	Progress  Progress
}

// lowRate is how much of what a server carries is no load to speak of.
const lowRate = 0.1

// settled is when a server has found out that it is past saturation, and works as it will: figures from then on are
// told beside those of the whole.
const settled = time.Second

// Run puts the load on the server. Latencies of what was accepted: unloaded at the low rate; firstEvent, firstText and
// whole past saturation; steady the whole answers of those asked once the load has lasted a second; after when the load
// has dropped. sent is by how much the bench itself was late: it tells whether the client was past saturation.
func (s Overload) Run(ctx context.Context) (Result, error) {
	if s.For <= 0 || s.Calm <= 0 || s.After <= 0 || len(s.Questions) == 0 {
		return Result{}, errors.New("an overload needs a time for each of its phases, and questions")
	}
	s.Factor = cmp.Or(s.Factor, 2)
	load := Streams{Target: s.Target, Questions: s.Questions, Scripted: s.Scripted, Parts: s.Parts}
	find := load
	find.Closed, find.For, find.Progress = true, s.Find, s.Progress
	unknown := s.Carried <= 0
	if unknown {
		var err error
		if s.Carried, find.Number, err = s.findCarried(ctx, find); err != nil {
			return Result{}, fmt.Errorf("find out what the server carries: %w", err)
		}
		s.Progress, find.Progress = nil, nil // its end is that of the first one
	}
	result, outcomes, err := s.put(ctx, load)
	result.Scenario, result.Target, result.Size = "overload", s.Name, s.Factor
	result.Load = fmt.Sprintf("%g times what it carries", s.Factor)
	if err != nil {
		return result, err
	}
	carried := s.Carried
	if unknown {
		again, err := find.Run(ctx)
		if err == nil && again.Throughput() == 0 { // the mean would be half of what it is, and the ratio twice
			err = fmt.Errorf("no question was answered: %v", again.Failures)
		}
		if err != nil {
			return result, fmt.Errorf("find out what the server carries afterwards: %w", err)
		}
		carried = (carried + again.Throughput()) / 2
	}
	s.judge(&result, outcomes, carried)
	return result, nil
}

// findCarried finds out how many questions a second the server answers, and by how many callers.
func (s Overload) findCarried(ctx context.Context, find Streams) (carried float64, callers int, err error) {
	warm := find
	warm.Number, warm.Ramp, warm.For, warm.Progress = s.Callers, time.Second, time.Second, nil
	if _, err := warm.Run(ctx); err != nil { // what is opened and remembered on the first use is
		return 0, 0, fmt.Errorf("warm up: %w", err)
	}
	var failures []string
	// With many callers the server may take it for an overload and refuse some: then fewer find more.
	for find.Number = s.Callers; find.Number > 0 && find.Number >= s.Callers/4; find.Number /= 2 {
		found, err := find.Run(ctx)
		if err != nil {
			return 0, 0, err
		}
		if t := found.Throughput(); t > carried {
			carried, callers = t, find.Number
		}
		failures = found.Failures
		if found.Refused == 0 {
			break
		}
	}
	if carried <= 0 {
		return 0, 0, fmt.Errorf("no question was answered: %v", failures)
	}
	return carried, callers, nil
}

// put puts the three phases of the load on the server.
func (s Overload) put(ctx context.Context, load Streams) (Result, []outcome, error) {
	c, err := newClient(s.URL)
	if err != nil {
		return Result{}, nil, err
	}
	defer c.close()
	starts, phases := s.starts()
	m := newMeter(s.Target, len(starts), s.Progress,
		"firstEvent", "firstText", "whole", "refusal", "unloaded", "unloadedFirst", "steady", "after", "sent")
	runs := make([]*streamRun, 3)
	for phase, into := range []map[string]string{
		{"firstText": "unloadedFirst", "whole": "unloaded"},
		{"firstEvent": "firstEvent", "firstText": "firstText", "whole": "whole"},
		{"whole": "after"},
	} {
		r := load.prepare(m, c)
		r.into = map[string]*recorder{"refusal": m.recorders["refusal"]}
		for from, to := range into {
			r.into[from] = m.recorders[to]
		}
		runs[phase] = r
	}
	var (
		mu       sync.Mutex
		outcomes = make([]outcome, 0, len(starts))
		client   float64 // processors that the bench used past saturation
	)
	result, err := m.run(ctx, func(ctx context.Context) error {
		began := time.Now()
		used := watchOwnCPU(began.Add(s.Calm), began.Add(s.Calm+s.For))
		err := onSchedule(ctx, starts, func(ctx context.Context, n int, due time.Time) error {
			m.recorders["sent"].record(n, time.Since(due))
			r := runs[phases[n]]
			a := r.ask(ctx, n, s.Questions[n%len(s.Questions)], "", "", due)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.end(a.refused, a.err)
			o := outcome{due: due.Sub(began), took: time.Since(due), refused: a.refused, good: a.err == nil}
			if o.good && o.due >= s.steadyFrom() && phases[n] == 1 {
				m.recorders["steady"].record(n, o.took)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, o)
			return nil
		})
		client = Ratio(used(), s.For.Seconds())
		return err
	})
	if err == nil {
		result.Figures = map[string]float64{"overload.client": client}
	}
	return result, outcomes, err
}

// watchOwnCPU measures the processor time that this process uses between two moments.
func watchOwnCPU(from, to time.Time) (used func() float64) {
	var mu sync.Mutex
	var at [2]float64
	var timers [2]*time.Timer
	for i, moment := range []time.Time{from, to} {
		timers[i] = time.AfterFunc(time.Until(moment), func() {
			mu.Lock()
			defer mu.Unlock()
			at[i] = ownCPU()
		})
	}
	return func() float64 {
		timers[0].Stop()
		timers[1].Stop()
		mu.Lock()
		defer mu.Unlock()
		return at[1] - at[0]
	}
}

// steadyFrom is when the server has settled, from the start of the low rate on.
func (s Overload) steadyFrom() time.Duration { return s.Calm + min(settled, s.For/2) }

// judge sets what became of the questions beside what the server carries.
func (s Overload) judge(result *Result, outcomes []outcome, carried float64) {
	accepted, later := 0, 0
	for _, o := range outcomes {
		if end := o.due + o.took; o.good && end >= s.Calm && end < s.Calm+s.For {
			accepted++
			if end >= s.steadyFrom() {
				later++
			}
		}
	}
	unloaded, past, last := result.Latencies["unloaded"], result.Latencies["whole"], result.Latencies["steady"]
	f := result.Figures
	f["overload.carried"], f["overload.offered"] = carried, s.Factor*s.Carried
	f["overload.accepted"] = float64(accepted) / s.For.Seconds()
	f["overload.throughput"] = f["overload.accepted"] / carried
	f["overload.p50"], f["overload.p99"] = Ratio(past.P50, unloaded.P50), Ratio(past.P99, unloaded.P99)
	f["overload.steady"] = float64(later) / (s.Calm + s.For - s.steadyFrom()).Seconds() / carried
	f["overload.steady.p50"], f["overload.steady.p99"] = Ratio(last.P50, unloaded.P50), Ratio(last.P99, unloaded.P99)
	f["overload.recovery"] = max(1, float64(recovery(outcomes, s.Calm+s.For, unloaded)/time.Millisecond))
}

// starts are when each question is asked, and in which phase.
func (s Overload) starts() (starts []time.Duration, phases []uint8) {
	at := time.Duration(0)
	for phase, p := range []struct {
		rate  float64
		lasts time.Duration
	}{{lowRate * s.Carried, s.Calm}, {s.Factor * s.Carried, s.For}, {lowRate * s.Carried, s.After}} {
		for n := 0; ; n++ {
			due := time.Duration(float64(n) / p.rate * float64(time.Second))
			if due >= p.lasts {
				break
			}
			starts, phases = append(starts, at+due), append(phases, uint8(phase))
		}
		at += p.lasts
	}
	return starts, phases
}

// An outcome is what became of one question.
type outcome struct {
	due, took     time.Duration
	refused, good bool
}

// recovery is how long after the load has dropped things are as before: the end of the last quarter of a second in
// which something was refused, or the median of what was accepted was above twice that of the unloaded server.
func recovery(outcomes []outcome, dropped time.Duration, unloaded Latency) time.Duration {
	const window = 250 * time.Millisecond
	type seen struct {
		refused bool
		took    []float64
	}
	var windows []seen
	for _, o := range outcomes {
		if o.due < dropped {
			continue
		}
		i := int((o.due - dropped) / window)
		for len(windows) <= i {
			windows = append(windows, seen{})
		}
		if o.good {
			windows[i].took = append(windows[i].took, float64(o.took)/float64(time.Millisecond))
		} else {
			windows[i].refused = true
		}
	}
	for i := len(windows) - 1; i >= 0; i-- {
		if windows[i].refused || Median(windows[i].took) > 2*unloaded.P50 {
			return time.Duration(i+1) * window
		}
	}
	return 0
}
