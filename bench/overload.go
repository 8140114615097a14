package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"docent/stream"
)

// Overload is more than a server can carry, and what becomes of it: a low rate of questions first, Factor times what the
// server carries after that, and the low rate again, each in a new thread, each at its time whatever became of the others.
type Overload struct {
	Target
	// Carried is how many questions a second the server carries. Where it is 0, that is found out: Callers ask anew as soon
	// as they have their answer, for as long as Find says; where some are refused, half as many and a quarter too. The same
	// number of callers ask again at the end, and what was completed is set beside the mean of both: a machine that others
	// use too is not as fast at one time as at another.
	Carried float64
	Callers int
	Find    time.Duration

	Factor    float64 // of the load to what is carried: 2 where it is 0
	Calm      time.Duration
	For       time.Duration // past saturation
	After     time.Duration // at the low rate again
	Form      stream.Form
	Questions []string
	Scripted  bool
	Parts     int
	Progress  Progress
}

// lowRate is how much of what a server carries is no load to speak of.
const lowRate = 0.1

// settled is when a server has found out that it is past saturation, and works as it will: figures from then on are told beside
// those of the whole.
const settled = time.Second

// Run puts the load on the server. Latencies of what was accepted: unloaded at the low rate, firstEvent, firstText and whole past
// saturation, steady the whole answers of those asked once the load has lasted a second, after when the load has dropped; sent is by how much the bench itself was late, which says whether it was
// the client that was past saturation.
func (s Overload) Run(ctx context.Context) (Result, error) {
	if s.For <= 0 || s.Calm <= 0 || s.After <= 0 || len(s.Questions) == 0 {
		return Result{}, errors.New("an overload needs a time for each of its phases, and questions")
	}
	if s.Factor == 0 {
		s.Factor = 2
	}
	load := Streams{Target: s.Target, Form: s.Form, Questions: s.Questions, Scripted: s.Scripted, Parts: s.Parts}
	find := load
	find.Closed, find.Number, find.Progress = true, s.Callers, s.Progress
	unknown := s.Carried <= 0
	if unknown {
		warm := find
		warm.Ramp, warm.For, warm.Progress = time.Second, time.Second, nil
		if _, err := warm.Run(ctx); err != nil { // what is opened and remembered on the first use is
			return Result{}, fmt.Errorf("warm up: %w", err)
		}
		find.For = s.Find
		var failures []string
		// With many callers the server may take it for an overload and refuse some: then fewer find more.
		for callers := s.Callers; callers > 0 && callers >= s.Callers/4; callers /= 2 {
			try := find
			try.Number = callers
			found, err := try.Run(ctx)
			if err != nil {
				return Result{}, fmt.Errorf("find out what the server carries: %w", err)
			}
			if carried := found.Throughput(); carried > s.Carried {
				s.Carried, find.Number = carried, callers
			}
			failures = found.Failures
			if found.Refused == 0 {
				break
			}
		}
		if s.Carried <= 0 {
			return Result{}, fmt.Errorf("find out what the server carries: no question was answered: %v", failures)
		}
		s.Progress, find.Progress = nil, nil // its end is that of the first one
	}
	c, err := newClient(s.URL)
	if err != nil {
		return Result{}, err
	}
	defer c.close()

	starts, phases := s.starts()
	m := newMeter(s.Target, len(starts), s.Progress, "firstEvent", "firstText", "whole", "refusal", "unloaded", "unloadedFirst", "steady", "after", "sent")
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
	steady := s.Calm + min(settled, s.For/2)
	var (
		mu       sync.Mutex
		outcomes = make([]outcome, 0, len(starts))
		began    time.Time
		client   float64
	)
	result, err := m.run(ctx, func(ctx context.Context) error {
		began = time.Now()
		from, to := began.Add(s.Calm), began.Add(s.Calm+s.For)
		watch := func(at time.Time, used *float64) func() bool {
			timer := time.AfterFunc(time.Until(at), func() {
				mu.Lock()
				defer mu.Unlock()
				*used = ownCPU()
			})
			return timer.Stop
		}
		var before, after float64
		defer watch(from, &before)()
		defer watch(to, &after)()
		err := onSchedule(ctx, starts, func(ctx context.Context, n int, due time.Time) error {
			m.recorders["sent"].record(n, time.Since(due))
			r := runs[phases[n]]
			a := r.ask(ctx, n, s.Questions[n%len(s.Questions)], "", "", due)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.end(a.refused, a.err)
			o := outcome{due: due.Sub(began), took: time.Since(due), refused: a.refused, good: a.err == nil}
			if o.good && o.due >= steady && phases[n] == 1 {
				m.recorders["steady"].record(n, o.took)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, o)
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		client = ratio(after-before, s.For.Seconds())
		return err
	})
	result.Scenario, result.Target, result.Size = "overload", s.Name, s.Factor
	result.Load = fmt.Sprintf("%g times what it carries", s.Factor)
	if err != nil {
		return result, err
	}
	carried := s.Carried
	if unknown {
		again, err := find.Run(ctx)
		if err != nil {
			return result, fmt.Errorf("find out what the server carries afterwards: %w", err)
		}
		if again.Throughput() == 0 { // the mean would be half of what it is, and the ratio twice
			return result, fmt.Errorf("find out what the server carries afterwards: no question was answered: %v", again.Failures)
		}
		carried = (carried + again.Throughput()) / 2
	}
	accepted, later := 0, 0
	for _, o := range outcomes {
		if end := o.due + o.took; o.good && end >= s.Calm && end < s.Calm+s.For {
			accepted++
			if end >= steady {
				later++
			}
		}
	}
	unloaded, past, last := result.Latencies["unloaded"], result.Latencies["whole"], result.Latencies["steady"]
	result.Figures = map[string]float64{
		"overload.carried": carried, "overload.offered": s.Factor * s.Carried, "overload.accepted": float64(accepted) / s.For.Seconds(),
		"overload.throughput": float64(accepted) / s.For.Seconds() / carried,
		"overload.p50":        ratio(past.P50, unloaded.P50), "overload.p99": ratio(past.P99, unloaded.P99),
		"overload.steady": float64(later) / (s.Calm + s.For - steady).Seconds() / carried, "overload.steady.p50": ratio(last.P50, unloaded.P50), "overload.steady.p99": ratio(last.P99, unloaded.P99),
		"overload.recovery": max(1, float64(recovery(outcomes, s.Calm+s.For, unloaded)/time.Millisecond)),
		"overload.client":   client,
	}
	return result, nil
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

// recovery is how long after the load has dropped things are as before: the end of the last quarter of a second in which
// something was refused, or the median of what was accepted was above twice that of the unloaded server.
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
		if windows[i].refused || median(windows[i].took) > 2*unloaded.P50 {
			return time.Duration(i+1) * window
		}
	}
	return 0
}
