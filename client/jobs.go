package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/backoff"
)

// An Event is one entry of a job's log.
type Event struct {
	Raw    []byte        `json:"-"` // as it came
	ID     uint64        `json:"id"`
	Type   string        `json:"type"`
	At     time.Time     `json:"at"`
	Status api.JobStatus `json:"status"`
	Title  string        `json:"title"`
	Text   string        `json:"text"`
	Todos  []api.Todo    `json:"todos"`
	Tool   *struct {
		Name   string `json:"name"`
		Input  string `json:"input"`
		Output string `json:"output"`
		Failed bool   `json:"failed"`
	} `json:"tool"`
	Files  []File  `json:"files"`
	Diff   string  `json:"diff"`
	Branch string  `json:"branch"`
	Commit string  `json:"commit"`
	PRLink *string `json:"prLink"`
}

// A File is one that a job has changed.
type File struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"`
	Status  string `json:"status"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// reconnects is how often in a row a broken stream is taken up again before the command gives up.
const reconnects = 10

// Follow reads a job's log from the start and calls event with each entry, until the job has ended. It returns the job
// then. A stream that breaks off is taken up after the last entry that was seen; broken is called each time.
func (c *Client) Follow(ctx context.Context, path string, event func(Event) error, broken func()) (api.Job, error) {
	var after uint64
	pause := backoff.Exponential(500*time.Millisecond, 10*time.Second)
	for failures := 0; ; {
		end, err := c.readEvents(ctx, path, after, func(e Event) error {
			after, failures = e.ID, 0
			return event(e)
		})
		var own *eventError
		switch {
		case err == nil && end != nil:
			return *end, nil
		case errors.As(err, &own):
			return api.Job{}, own.err
		case ctx.Err() != nil, after == 0 && err != nil, final(err):
			return api.Job{}, err
		}
		if failures++; failures > reconnects {
			return api.Job{}, fmt.Errorf("the job's log breaks off again and again: %w", cmp.Or(err, io.ErrUnexpectedEOF))
		}
		broken()
		if err := backoff.Sleep(ctx, pause(failures)); err != nil {
			return api.Job{}, err
		}
	}
}

// final reports whether the same request would be refused again.
func final(err error) bool {
	var address *AddressError
	var answer *Error
	if !errors.As(err, &answer) {
		return errors.As(err, &address)
	}
	switch answer.Status {
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return false
	}
	return true
}

// An eventError is the caller's own trouble with an event, not the connection's.
type eventError struct{ err error }

func (e *eventError) Error() string { return e.err.Error() }

// readEvents reads one stream of a job's log. The job is nil where the stream broke off.
func (c *Client) readEvents(ctx context.Context, path string, after uint64, event func(Event) error) (*api.Job, error) {
	resp, err := c.Do(ctx, http.MethodGet, path+"/events", nil, "Accept", "text/event-stream", "Last-Event-ID",
		strconv.FormatUint(after, 10))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent { // all was seen but the end
		var j api.Job
		err := c.Get(ctx, path, &j)
		return &j, err
	}
	lines := bufio.NewReader(resp.Body)
	var name, data string
	for {
		text, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the job's log: %w", err)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(text, "\n"), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if text != "\n" || data == "" {
				name = ""
				continue // a comment
			}
			switch name {
			case "end":
				var j api.Job
				if err := json.Unmarshal([]byte(data), &j); err != nil {
					return nil, fmt.Errorf("read the job's log: %w", err)
				}
				return &j, nil
			case "omitted":
			default:
				e := Event{Raw: []byte(data)}
				if err := json.Unmarshal(e.Raw, &e); err != nil {
					return nil, fmt.Errorf("read the job's log: %w", err)
				}
				if err := event(e); err != nil {
					return nil, &eventError{err}
				}
			}
			name, data = "", ""
		}
	}
}

// Jobs yields a project's jobs, newest first: at most limit, all where that is 0. The filter is the query of the API's
// list.
func (c *Client) Jobs(ctx context.Context, path string, filter url.Values, limit int) iter.Seq2[api.Job, error] {
	return func(yield func(api.Job, error) bool) {
		query := maps.Clone(filter)
		for seen := 0; ; {
			page := 100
			if limit > 0 {
				page = min(page, limit-seen)
			}
			query.Set("limit", strconv.Itoa(page))
			var body struct {
				Jobs       []api.Job `json:"jobs"`
				NextCursor *string   `json:"nextCursor"`
			}
			if err := c.Get(ctx, path+"?"+query.Encode(), &body); err != nil {
				yield(api.Job{}, err)
				return
			}
			for _, j := range body.Jobs {
				if !yield(j, nil) {
					return
				}
				seen++
			}
			if body.NextCursor == nil || *body.NextCursor == "" || limit > 0 && seen >= limit {
				return
			}
			query.Set("cursor", *body.NextCursor)
		}
	}
}
