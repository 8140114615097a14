package bench

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Jobs is a load of agent jobs: Rate a second for as long as For says. Each is created, and followed by polls that wait
// until it has ended.
type Jobs struct {
	Target
	Rate     float64
	For      time.Duration
	Prompts  []string // given in turn; {id} in one is a word of each job's own, for equal changes share a pull request
	Progress Progress
}

// Run puts the load on the server. A job is lost that fails, that ends without a pull request, or whose pull request is
// another job's too.
func (s Jobs) Run(ctx context.Context) (Result, error) {
	if s.Rate <= 0 || s.For <= 0 || len(s.Prompts) == 0 {
		return Result{}, errors.New("jobs need a rate, a time to go on for, and prompts")
	}
	c, err := newClient(s.URL)
	if err != nil {
		return Result{}, err
	}
	defer c.close()
	starts := Streams{Rate: s.Rate, For: s.For}.starts()
	m := newMeter(s.Target, len(starts), s.Progress, "accepted", "ended", "refusal")
	var links sync.Map
	base, run := "/v2/agent/"+url.PathEscape(s.Project)+"/job", strings.ToLower(rand.Text()[:8])
	result, err := m.run(ctx, func(ctx context.Context) error {
		return onSchedule(ctx, starts, func(ctx context.Context, n int, due time.Time) error {
			prompt := strings.ReplaceAll(s.Prompts[n%len(s.Prompts)], "{id}", fmt.Sprint(run, "-", n))
			body, err := json.Marshal(map[string]any{"prompt": prompt})
			if err != nil {
				return err
			}
			m.opened()
			defer m.open.Add(-1)
			status, answer, err := c.whole(ctx, c.request(http.MethodPost, base, s.Admin, body))
			if ctx.Err() != nil {
				return ctx.Err()
			}
			m.judge(n, status, due, err, "", func() error {
				var j benchJob
				if err := json.Unmarshal(answer, &j); err != nil {
					return err
				}
				m.recorders["accepted"].record(n, time.Since(due))
				if j, err = c.follow(ctx, s.Target, base, j); err != nil {
					return err
				}
				m.recorders["ended"].record(n, time.Since(due))
				return j.check(&links)
			}, answer)
			return ctx.Err()
		})
	})
	result.Scenario, result.Target, result.Load, result.Size = "jobs", s.Name, fmt.Sprintf("%g a second", s.Rate), s.Rate
	return result, err
}

type benchJob struct {
	ID      string  `json:"id"`
	Status  string  `json:"status"`
	PRLink  *string `json:"prLink"`
	Message string  `json:"message"`
}

// follow polls a job until it has ended.
func (c *client) follow(ctx context.Context, t Target, base string, j benchJob) (benchJob, error) {
	for j.Status == "active" {
		status, answer, err := c.whole(ctx, c.request(http.MethodGet, base+"/"+url.PathEscape(j.ID)+"?wait=20", t.Admin, nil))
		switch {
		case err != nil:
			return j, err
		case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
			if err := wait(ctx, time.Now().Add(time.Second)); err != nil {
				return j, err
			}
			continue
		case status != http.StatusOK:
			return j, fmt.Errorf("job %s: status %d: %.200s", j.ID, status, answer)
		}
		if err := json.Unmarshal(answer, &j); err != nil {
			return j, fmt.Errorf("job %s: %w", j.ID, err)
		}
	}
	return j, nil
}

func (j benchJob) check(links *sync.Map) error {
	if j.Status != "completed" || j.PRLink == nil {
		return fmt.Errorf("job %s is %s without a pull request: %s", j.ID, j.Status, j.Message)
	}
	if other, taken := links.LoadOrStore(*j.PRLink, j.ID); taken {
		return fmt.Errorf("jobs %s and %s have the pull request %s", other, j.ID, *j.PRLink)
	}
	return nil
}
