package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"docent/internal/background"
)

// Searches is a load of searches: Rate a second for as long as For says, whatever becomes of them.
type Searches struct {
	Target
	Rate     float64
	For      time.Duration
	Queries  []string
	Progress Progress
}

// Run puts the load on the server. A search that finds nothing, or fails, is lost.
func (s Searches) Run(ctx context.Context) (Result, error) {
	if s.Rate <= 0 || s.For <= 0 || len(s.Queries) == 0 {
		return Result{}, errors.New("searches need a rate, a time to go on for, and something to search")
	}
	c, err := newClient(s.URL)
	if err != nil {
		return Result{}, err
	}
	defer c.close()
	starts := Streams{Rate: s.Rate, For: s.For}.starts()
	m := newMeter(s.Target, len(starts), s.Progress, "search", "refusal")
	path := "/discovery/v1/search/" + url.PathEscape(s.Domain)
	result, err := m.run(ctx, func(ctx context.Context) error {
		return onSchedule(ctx, starts, func(ctx context.Context, n int, due time.Time) error {
			body, err := json.Marshal(map[string]any{"query": s.Queries[n%len(s.Queries)]})
			if err != nil {
				return err
			}
			m.opened()
			status, answer, err := c.whole(ctx, c.request(http.MethodPost, path, s.Key, body))
			m.open.Add(-1)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			m.judge(n, status, due, err, "search", func() error {
				var found []json.RawMessage
				if err := json.Unmarshal(answer, &found); err != nil {
					return fmt.Errorf("the result of a search: %w", err)
				}
				if len(found) == 0 {
					return fmt.Errorf("nothing was found for %q", s.Queries[n%len(s.Queries)])
				}
				return nil
			}, answer)
			return nil
		})
	})
	result.Scenario, result.Target, result.Load, result.Size = "search", s.Name, fmt.Sprintf("%g a second", s.Rate), s.Rate
	return result, err
}

// onSchedule does something at each start, in a goroutine of its own.
func onSchedule(ctx context.Context, starts []time.Duration,
	do func(ctx context.Context, n int, due time.Time) error) error {
	begin := time.Now()
	var group background.Group
	for n, start := range starts {
		due := begin.Add(start)
		if err := wait(ctx, due); err != nil {
			return errors.Join(err, group.Wait())
		}
		group.Go(func() error { return do(ctx, n, due) })
	}
	return group.Wait()
}

// judge counts the answer to a request: completed if it is 2xx and good, refused if it is 429 or 503, else lost. The
// latency of a good one is recorded under a name, where there is one.
func (m *meter) judge(n, status int, due time.Time, err error, latency string, good func() error, answer []byte) {
	took := time.Since(due)
	refused := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	switch {
	case err != nil:
	case refused:
		m.recorders["refusal"].record(n, took)
		err = fmt.Errorf("status %d: %.200s", status, bytes.TrimSpace(answer))
	case status/100 != 2:
		err = fmt.Errorf("status %d: %.200s", status, bytes.TrimSpace(answer))
	default:
		if err = good(); err == nil && latency != "" {
			m.recorders[latency].record(n, took)
		}
	}
	m.end(refused, err)
}
