package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"docent/internal/background"
)

// Recover is what becomes of streams whose server is killed: Number of them begin over Ramp, the server is killed After
// their begin, but not before one of them was accepted, and started again, and each accepted answer is resumed until it
// is whole.
type Recover struct {
	Target
	Number    int
	Ramp      time.Duration
	After     time.Duration
	Questions []string
	Parts     int // of the scripted model
	// Restart kills the server and starts it again at the same address.
	Restart  func(ctx context.Context) error
	Progress Progress
}

// patience is how long an answer may take after the restart, beside the time that it takes anyway.
const patience = 2 * time.Minute

// Run kills the server. An accepted stream, one whose response had begun, is lost that is not whole afterwards; streams
// that were not accepted count as refused. The latencies are from the kill: ready, until the server says that it
// serves; resumed, until an answer is whole.
func (s Recover) Run(ctx context.Context) (Result, error) {
	if s.Number < 1 || s.Restart == nil || len(s.Questions) == 0 {
		return Result{}, errors.New("a recovery needs streams, questions, and a server that can be killed")
	}
	c, err := newClient(s.URL)
	if err != nil {
		return Result{}, err
	}
	m := newMeter(s.Target, s.Number, s.Progress, "ready", "resumed", "firstEvent")
	r := Streams{Target: s.Target, Scripted: true, Parts: s.Parts}.prepare(m, c)
	var killed time.Time
	result, err := m.run(ctx, func(ctx context.Context) error {
		var accepted []acceptance
		var mu sync.Mutex
		heads := make(chan struct{}, s.Number) // of each that was accepted; closed when there will be no more
		ctx, giveUp := context.WithCancel(ctx)
		defer giveUp()
		broken, breakOff := context.WithCancel(ctx)
		defer breakOff()
		begun := make(chan error, 1)
		background.Go("bench.Run", func() {
			begun <- onSchedule(broken, Streams{Number: s.Number, Ramp: s.Ramp}.starts(),
				func(_ context.Context, n int, due time.Time) error {
					// Who has begun reads until the server breaks it off.
					if a, ok := r.accept(ctx, n, s.Questions[n%len(s.Questions)], due, heads); ok {
						mu.Lock()
						accepted = append(accepted, a)
						mu.Unlock()
					}
					return nil
				})
			close(heads)
		})
		err := wait(ctx, time.Now().Add(s.After))
		if err == nil {
			if _, some := <-heads; !some {
				err = errors.New("no stream was accepted: there is nothing that a killed server could lose")
			}
		}
		if err == nil {
			killed = time.Now()
			err = s.Restart(ctx)
		}
		if err != nil {
			giveUp() // the server may still be there, and its streams may last
			return errors.Join(err, <-begun)
		}
		breakOff() // who was about to begin does not
		<-begun
		c.close()
		if err := r.ready(ctx, killed); err != nil {
			return err
		}
		for range s.Number - len(accepted) {
			m.end(true, nil)
		}
		var wg background.Work
		for n, a := range accepted {
			wg.Go("bench.Run", func() { m.end(false, r.resume(ctx, n, a, killed)) })
		}
		wg.Wait()
		return ctx.Err()
	})
	c.close()
	result.Scenario, result.Target, result.Load, result.Size = "recover", s.Name,
		fmt.Sprintf("%d streams, killed", s.Number), float64(s.Number)
	return result, err
}

// An acceptance is what the head of a response has promised.
type acceptance struct{ thread, secret string }

// accept asks, says when the response has begun, and reads until the server is gone.
func (r *streamRun) accept(ctx context.Context, n int, text string, due time.Time, heads chan<- struct{}) (a acceptance,
	ok bool) {
	body, err := question(text, "", "")
	if err != nil {
		return a, false
	}
	conn, resp, stop, err := r.client.do(ctx, r.client.request(http.MethodPost, r.path, r.Key, body))
	if err != nil {
		return a, false
	}
	defer conn.Close()
	defer stop()
	if resp.StatusCode != http.StatusOK {
		return a, false
	}
	r.opened()
	heads <- struct{}{}
	_, _ = r.read(n, resp.Body, due) // it is meant to break off; what counts is what comes afterwards
	r.open.Add(-1)
	return acceptance{resp.Header.Get("X-Thread-Id"), resp.Header.Get("X-Thread-Key")}, true
}

// ready waits until the server serves again.
func (r *streamRun) ready(ctx context.Context, killed time.Time) error {
	for {
		status, _, err := r.client.whole(ctx, r.client.request(http.MethodGet, "/readyz", "", nil))
		if err == nil && status == http.StatusOK {
			r.recorders["ready"].record(0, time.Since(killed))
			return nil
		}
		if time.Since(killed) > patience {
			return fmt.Errorf("the server is not ready %v after it was killed: status %d, %w", patience, status, err)
		}
		if err := wait(ctx, time.Now().Add(5*time.Millisecond)); err != nil {
			return err
		}
	}
}

// resume reads an answer until it is whole.
func (r *streamRun) resume(ctx context.Context, n int, a acceptance, killed time.Time) error {
	path := r.path + "/" + url.PathEscape(a.thread) + "/stream?fp=bench&threadKey=" + url.QueryEscape(a.secret)
	for {
		done, err := r.resumeOnce(ctx, n, path, killed)
		if done || ctx.Err() != nil {
			return err
		}
		if time.Since(killed) > patience {
			return fmt.Errorf("thread %s is not whole %v after the server was killed: %w", a.thread, patience, err)
		}
		if err := wait(ctx, time.Now().Add(200*time.Millisecond)); err != nil {
			return err
		}
	}
}

func (r *streamRun) resumeOnce(ctx context.Context, n int, path string, killed time.Time) (done bool, err error) {
	conn, resp, stop, err := r.client.do(ctx, r.client.request(http.MethodGet, path, r.Key, nil))
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer stop()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // for the report
		return false, fmt.Errorf("resume: status %d: %s", resp.StatusCode, text)
	}
	r.opened()
	defer r.open.Add(-1)
	if _, err := r.readWhole(n, resp.Body); err != nil {
		var broken *answerError
		return !errors.As(err, &broken), err // the server may say itself that it will go on
	}
	r.recorders["resumed"].record(n, time.Since(killed))
	return true, nil
}
