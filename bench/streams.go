package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"docent/api/stream"
	"docent/internal/background"
)

// Streams is a load of assistant streams.
//
// Their starts lie on a schedule that no answer changes (an open loop): Number of them spread evenly over Ramp, or Rate
// a second for as long as For says. With Closed, Number callers, who come one after another over Ramp, ask again as soon
// as they have their answer, for as long as For says.
type Streams struct {
	Target
	Number  int
	Ramp    time.Duration
	Rate    float64
	For     time.Duration
	Closed  bool
	Poisson bool // starts at Rate come at random moments in place of even ones
	// Turns is how many questions each caller asks, one after another in one thread: 1 where it is 0.
	Turns     int
	Questions []string // asked in turn
	// Scripted says that the answers come from a scripted model of Parts pieces, Delay before the first and Interval
	// between two: then each piece is checked, and how late it came is measured.
	Scripted bool
	Parts    int
	Delay    time.Duration
	Interval time.Duration
	Progress Progress
}

// Load is the load in words.
func (s Streams) Load() string {
	switch {
	case s.Turns > 1 && !s.Closed && s.Rate <= 0:
		return fmt.Sprintf("%d threads of %d turns", s.Number, s.Turns)
	case s.Closed:
		return fmt.Sprintf("%d callers", s.Number)
	case s.Rate > 0:
		return fmt.Sprintf("%g a second", s.Rate)
	}
	return fmt.Sprintf("%d streams", s.Number)
}

// starts are when, from the beginning, each caller first asks.
func (s Streams) starts() []time.Duration {
	if s.Rate <= 0 || s.Closed {
		starts := make([]time.Duration, s.Number)
		for i := range starts {
			starts[i] = time.Duration(int64(s.Ramp) * int64(i) / int64(s.Number))
		}
		return starts
	}
	var starts []time.Duration
	random := rand.New(rand.NewPCG(1, 2)) // the same moments in each round and for each server
	gap := float64(time.Second) / s.Rate
	for at := 0.0; at < float64(s.For); {
		starts = append(starts, time.Duration(at))
		if s.Poisson {
			at += gap * random.ExpFloat64()
		} else {
			at += gap
		}
	}
	return starts
}

// planned is how long the schedule takes; 0 if there is none.
func (s Streams) planned(starts []time.Duration) time.Duration {
	if !s.Scripted || s.Closed || len(starts) == 0 {
		return 0
	}
	answer := s.Delay + time.Duration(max(s.Parts-1, 0))*s.Interval
	return starts[len(starts)-1] + time.Duration(max(s.Turns, 1))*answer
}

// Run puts the load on the server. It fails only where it could not run at all; what the server did badly is in the
// Result.
func (s Streams) Run(ctx context.Context) (Result, error) {
	switch {
	case s.Number < 1 && s.Rate <= 0:
		return Result{}, errors.New("a load needs at least one stream, or a rate")
	case (s.Closed || s.Rate > 0) && s.For <= 0:
		return Result{}, errors.New("a closed loop, and a rate, need a time to go on for")
	case len(s.Questions) == 0:
		return Result{}, errors.New("there is no question to ask")
	}
	c, err := newClient(s.URL)
	if err != nil {
		return Result{}, err
	}
	defer c.close()
	starts := s.starts()
	due := len(starts) * max(s.Turns, 1)
	if s.Closed {
		due = 0
	}
	m := newMeter(s.Target, due, s.Progress, "firstEvent", "firstText", "whole", "late", "refusal")
	r := s.prepare(m, c)
	r.turns = make([]recorder, max(s.Turns, 1))
	result, err := m.run(ctx, func(ctx context.Context) error {
		begin := time.Now()
		var group background.Group
		for i, start := range starts {
			group.Go(func() error { return r.caller(ctx, i, begin.Add(start), begin.Add(s.For)) })
		}
		return group.Wait()
	})
	result.Scenario, result.Target, result.Load = "streams", s.Name, s.Load()
	result.Size = float64(s.Number)
	if s.Rate > 0 && !s.Closed {
		result.Size = s.Rate
	}
	result.Planned = s.planned(starts).Seconds()
	if s.Closed {
		result.Asked = result.Completed + result.Refused + result.Lost
	}
	if s.Turns > 1 {
		for i := range r.turns {
			result.Turns = append(result.Turns, r.turns[i].latency().P50)
		}
	}
	return result, err
}

type streamRun struct {
	Streams
	*meter
	client *client
	path   string
	into   map[string]*recorder // where latencies go
	turns  []recorder
}

// prepare makes ready to ask, one by one, the load's questions.
func (s Streams) prepare(m *meter, c *client) *streamRun {
	return &streamRun{Streams: s, meter: m, client: c, into: m.recorders,
		path: "/discovery/v2/assistant/" + url.PathEscape(s.Domain) + "/message"}
}

// caller asks what one caller asks.
func (r *streamRun) caller(ctx context.Context, n int, due, end time.Time) error {
	var thread, secret string
	for turn := 0; ; turn++ {
		if err := wait(ctx, due); err != nil {
			return err
		}
		a := r.ask(ctx, n, r.Questions[(n+turn)%len(r.Questions)], thread, secret, due)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.end(a.refused, a.err)
		if a.err == nil {
			r.turns[turn%len(r.turns)].record(n, time.Since(due))
		}
		last := turn+1 == max(r.Turns, 1)
		if r.Closed {
			if !time.Now().Before(end) {
				return nil
			}
			last = false
			if (turn+1)%max(r.Turns, 1) == 0 {
				a.thread, a.secret = "", "" // a new thread
			}
			if a.refused {
				// A caller that is refused comes back when it was told to, as a good client does, or a second later. Where that
				// is after the end it goes: a run that lasts for its wait would seem to have answered less in its time.
				again := time.Now().Add(max(a.retry, time.Second))
				if !again.Before(end) {
					return nil
				}
				if err := wait(ctx, again); err != nil {
					return err
				}
			}
		}
		if last || a.err != nil && !r.Closed {
			return nil
		}
		thread, secret, due = a.thread, a.secret, time.Now()
	}
}

// wait returns at the time given.
func wait(ctx context.Context, due time.Time) error {
	left := time.Until(due)
	if left <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// An asked is how one question ended.
type asked struct {
	thread, secret string
	refused        bool
	retry          time.Duration
	err            error
}

// question is the body of an assistant message.
func question(text, thread, secret string) ([]byte, error) {
	body := map[string]any{"fp": "bench", "messages": []map[string]any{{"role": "user", "content": text,
		"parts": []map[string]any{{"type": "text", "text": text}}}}}
	if thread != "" {
		body["threadId"] = thread
	}
	if secret != "" {
		body["threadKey"] = secret
	}
	return json.Marshal(body)
}

// ask asks one question and reads its answer to the end.
func (r *streamRun) ask(ctx context.Context, n int, text, thread, secret string, due time.Time) asked {
	body, err := question(text, thread, secret)
	if err != nil {
		return asked{err: err}
	}
	conn, resp, stop, err := r.client.do(ctx, r.client.request(http.MethodPost, r.path, r.Key, body))
	if err != nil {
		return asked{err: err}
	}
	defer stop()
	if resp.StatusCode != http.StatusOK {
		a := r.refusal(n, resp, due)
		// A client that is refused keeps its connection, as browsers do.
		if _, err := io.Copy(io.Discard, resp.Body); err == nil && stop() && !resp.Close {
			r.client.keep(conn)
		} else {
			conn.Close()
		}
		return a
	}
	r.opened()
	a, err := r.read(n, resp.Body, due)
	r.open.Add(-1)
	if err != nil {
		conn.Close()
		a.err = err
		return a
	}
	if stop() && !resp.Close {
		r.client.keep(conn)
	} else {
		conn.Close()
	}
	return a
}

// refusal reads an answer that is not a stream.
func (r *streamRun) refusal(n int, resp *http.Response, due time.Time) asked {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024)) // what can be had of it, for the report
	a := asked{err: fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(text))}
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		a.refused = true
		if seconds, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil {
			a.retry = seconds
		}
		r.into["refusal"].record(n, time.Since(due))
	}
	return a
}

// readWhole reads a stream whose times do not count.
func (r *streamRun) readWhole(n int, body io.Reader) (asked, error) {
	return r.read(n, body, time.Time{})
}

// An answerError is the server's own word that an answer failed.
type answerError struct{ text string }

func (e *answerError) Error() string { return "the server reports: " + e.text }

// A timedBody notes what is read of an answer, and when it came.
type timedBody struct {
	io.Reader
	run *streamRun
	at  time.Time
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.at = time.Now(); n > 0 {
		b.run.reads.Add(1)
		b.run.bytes.Add(int64(n))
	}
	return n, err
}

// read reads a stream to its end, as strictly as a client does. Times count from due, where it is not zero.
func (r *streamRun) read(n int, body io.Reader, due time.Time) (a asked, err error) {
	timed := &timedBody{Reader: body, run: r}
	note := func(latency string, since time.Time) {
		if recorder := r.into[latency]; recorder != nil && !due.IsZero() {
			recorder.record(n, timed.at.Sub(since))
		}
	}
	pieces := 0
	defer func() { r.parts.Add(int64(pieces)) }()
	decoder := stream.NewDecoder(stream.UIMessages, timed)
	var textBegan time.Time
	for first := true; ; first = false {
		part, err := decoder.Next()
		switch {
		case err == io.EOF:
			rest, err := io.Copy(io.Discard, decoder.Rest())
			switch {
			case err != nil:
				return a, fmt.Errorf("after %d parts: %w", pieces, err)
			case rest > 0:
				return a, fmt.Errorf("%d bytes come after the finish", rest)
			case r.Scripted && pieces != r.Parts:
				return a, fmt.Errorf("the answer has %d parts, %d were due", pieces, r.Parts)
			}
			return a, nil
		case err != nil:
			return a, fmt.Errorf("after %d parts: %w", pieces, err)
		case first:
			note("firstEvent", due)
		}
		switch part.Kind {
		case stream.Start:
			a.thread, a.secret = part.Thread, part.Key
		case stream.Text:
			if r.Scripted && part.Text != "part-"+strconv.Itoa(pieces)+" " {
				return a, fmt.Errorf("piece %d is %.80q: one was lost, repeated or changed", pieces, part.Text)
			}
			if pieces++; pieces == 1 {
				textBegan = timed.at
				note("firstText", due)
			} else if r.Scripted && r.Interval > 0 {
				note("late", textBegan.Add(time.Duration(pieces-1)*r.Interval))
			}
		case stream.Finish:
			note("whole", due)
		case stream.Error:
			return a, &answerError{part.Text}
		}
	}
}
