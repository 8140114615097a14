package bench

import (
	"context"
	"docent/internal/background"
	"errors"
	"fmt"
	"time"

	"docent/api/stream"
)

// History is long conversations: so many turns in each of a few threads, one after another.
type History struct {
	Target
	Threads, Turns int
	Form           stream.Form
	Questions      []string
	Scripted       bool
	Parts          int
	Progress       Progress
}

// segments are up to which turn each point of the curve goes.
func (s History) segments() []int {
	var to []int
	for _, n := range []int{50, 100, 200, 350, 500, 700, 850, 1000, 2000, 5000, 10_000} {
		if n < s.Turns {
			to = append(to, n)
		}
	}
	return append(to, s.Turns)
}

// Run asks. What a turn takes the server is measured between points at which all threads have come equally far; the
// listing that analytics read, which follows within a second, is given that time.
func (s History) Run(ctx context.Context) (Result, error) {
	if s.Threads < 1 || s.Turns < 2 || len(s.Questions) == 0 {
		return Result{}, errors.New("a history needs threads, at least two turns in each, and questions")
	}
	c, err := newClient(s.URL)
	if err != nil {
		return Result{}, err
	}
	defer c.close()
	// What is opened and remembered on the first use is no history: every question is asked once before.
	first := Streams{Target: s.Target, Number: s.Threads, Turns: (len(s.Questions) + s.Threads - 1) / s.Threads,
		Form: s.Form, Questions: s.Questions,
		Scripted: s.Scripted, Parts: s.Parts}
	if _, err := first.Run(ctx); err != nil {
		return Result{}, fmt.Errorf("warm up: %w", err)
	}
	m := newMeter(s.Target, s.Threads*s.Turns, s.Progress, "firstEvent", "firstText", "whole", "refusal")
	r := Streams{Target: s.Target, Form: s.Form, Scripted: s.Scripted, Parts: s.Parts}.prepare(m, c)
	type thread struct{ id, secret string }
	threads := make([]thread, s.Threads)
	var at, cpu, whole []float64
	result, err := m.run(ctx, func(ctx context.Context) error {
		from := 0
		for _, to := range s.segments() {
			before, unmetered := ServerUsage(ctx, s.URL)
			var took recorder
			var group background.Group
			for i := range threads {
				group.Go(func() error {
					for turn := from; turn < to; turn++ {
						due := time.Now()
						a := r.ask(ctx, i, s.Questions[(i+turn)%len(s.Questions)], threads[i].id, threads[i].secret, due)
						if ctx.Err() != nil {
							return ctx.Err()
						}
						r.end(a.refused, a.err)
						if a.err != nil {
							continue
						}
						took.record(i, time.Since(due))
						threads[i] = thread{a.thread, a.secret}
					}
					return nil
				})
			}
			if err := group.Wait(); err != nil {
				return err
			}
			if err := wait(ctx, time.Now().Add(1500*time.Millisecond)); err != nil {
				return err
			}
			if unmetered == nil {
				after, err := ServerUsage(ctx, s.URL)
				if err != nil {
					return err
				}
				cpu = append(cpu, (after.CPU-before.CPU)*1e6/float64((to-from)*s.Threads))
			}
			at, whole = append(at, float64(from+to+1)/2), append(whole, took.latency().P50)
			from = to
		}
		return nil
	})
	result.Scenario, result.Target, result.Load = "history", s.Name, fmt.Sprintf("%d turns in a thread", s.Turns)
	if err != nil {
		return result, err
	}
	result.Curves = []Curve{{Title: "Median of a turn by its number in the thread", XLabel: "turn", YLabel: "milliseconds",
		LogX: true, X: at, Y: whole}}
	if len(cpu) > 0 {
		result.Curves = append(result.Curves,
			Curve{Title: "Processor time of a turn by its number in the thread", XLabel: "turn", YLabel: "µs", LogX: true, X: at,
				Y: cpu})
		result.Figures = map[string]float64{"history.growth": Ratio(cpu[len(cpu)-1], cpu[0])}
	}
	return result, nil
}
