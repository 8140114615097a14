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
	"net/http"
	"strconv"
	"strings"
	"time"

	"docent/api"
)

// An Event is one entry of a job's log.
type Event struct {
	Raw     []byte        `json:"-"` // as it came
	ID      uint64        `json:"id"`
	Type    string        `json:"type"`
	At      time.Time     `json:"at"`
	Status  api.JobStatus `json:"status"`
	Title   string        `json:"title,omitempty"`
	Text    string        `json:"text,omitempty"`
	Todos   []api.Todo    `json:"todos,omitempty"`
	Tool    *ToolUse      `json:"tool,omitempty"`
	Files   []FileChange  `json:"files,omitempty"`
	Diff    string        `json:"diff,omitempty"`
	Branch  string        `json:"branch,omitempty"`
	Commit  string        `json:"commit,omitempty"`
	PRLink  *string       `json:"prLink,omitempty"`
	Outcome api.Outcome   `json:"outcome,omitempty"`
	// Job is the job as it ended, in the last event of all, whose type is EventEnd.
	Job *Job `json:"-"`
}

// EventEnd is the type of the last event: the job is no longer active.
const EventEnd = "end"

// A ToolUse is one that a language model made.
type ToolUse struct {
	Name   string `json:"name"`
	Input  string `json:"input"`
	Output string `json:"output"`
	Failed bool   `json:"failed"`
}

// A FileChange is one that a job has changed.
type FileChange struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"`
	Status  string `json:"status"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// reconnects is how often in a row a broken stream is taken up again.
const reconnects = 10

// broke waits before a stream that broke is taken up again. It returns the error if that would not help.
func (c *Client) broke(ctx context.Context, failures int, err error) error {
	if ctx.Err() != nil || final(err) {
		return err
	}
	if failures > reconnects {
		return fmt.Errorf("the connection breaks off again and again: %w", err)
	}
	if c.Reconnecting != nil {
		c.Reconnecting(err)
	}
	return pause(ctx, failures, err)
}

// JobEvents follows a job: it yields what its log has beyond the event with the id after, then what comes, and at last
// an event of the type [EventEnd] with the job. A stream that breaks resumes where it broke.
func (c *Client) JobEvents(ctx context.Context, project, id string, after uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		failures, opened := 0, false
		for {
			left, err := c.readEvents(ctx, project, id, after, func(e Event) bool {
				failures, opened = 0, true
				after = max(after, e.ID)
				return yield(e, nil)
			})
			if left {
				return
			}
			if failures++; opened { // a server that was not reached at all is reported at once
				err = c.broke(ctx, failures, err)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// readEvents reads one stream of a job's log. It has left when the log came to its end, or the reader wants no more.
func (c *Client) readEvents(
	ctx context.Context,
	project, id string,
	after uint64,
	yield func(Event) bool,
) (left bool, err error) {
	resp, err := c.Do(ctx, http.MethodGet, path(agent, project, "/job/", id, "/events"), nil,
		Header("Accept", "text/event-stream"), Header("Last-Event-ID", strconv.FormatUint(after, 10)))
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent { // all was seen but the end
		j, err := c.ReadJob(ctx, project, id)
		if err != nil {
			return false, err
		}
		yield(Event{Type: EventEnd, At: j.UpdatedAt, Status: j.Status, Job: &j})
		return true, nil
	}
	lines := bufio.NewReader(resp.Body)
	var name, data string
	for {
		text, err := lines.ReadString('\n')
		if err != nil {
			return false, fmt.Errorf("read the job's log: %w", cmp.Or(unexpected(err), err))
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
			left, err := handOver(name, data, yield)
			if left || err != nil {
				return left, err
			}
			name, data = "", ""
		}
	}
}

func handOver(name, data string, yield func(Event) bool) (left bool, err error) {
	e := Event{Raw: []byte(data)}
	switch name {
	case "omitted": // early events that are no longer kept
		return false, nil
	case EventEnd:
		e.Type, e.Job = EventEnd, new(Job)
		if err := json.Unmarshal(e.Raw, e.Job); err != nil {
			return false, fmt.Errorf("read the job's log: %w", err)
		}
		e.At, e.Status = e.Job.UpdatedAt, e.Job.Status
		yield(e)
		return true, nil
	}
	if err := json.Unmarshal(e.Raw, &e); err != nil {
		return false, fmt.Errorf("read the job's log: %w", err)
	}
	return !yield(e), nil
}

// unexpected reports the end of bytes when more should come; nil for other errors.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// WaitForJob returns a job when it has ended, whichever way: its Status and Outcome say how.
func (c *Client) WaitForJob(ctx context.Context, project, id string) (Job, error) {
	for failures := 0; ; {
		j, err := c.ReadJob(ctx, project, id, Wait(30*time.Second))
		if err == nil {
			if failures = 0; j.Status != api.JobActive {
				return j, nil
			}
			continue
		}
		failures++
		if err := c.broke(ctx, failures, err); err != nil {
			return j, err
		}
	}
}

// WaitForUpdate returns an update when it has ended: its Status says how.
func (c *Client) WaitForUpdate(ctx context.Context, id string) (Update, error) {
	for tries := 1; ; tries++ {
		u, err := c.UpdateStatus(ctx, id)
		if err != nil || u.Status == api.UpdateSuccess || u.Status == api.UpdateFailure {
			return u, err
		}
		if err := pause(ctx, min(tries, 3), nil); err != nil {
			return u, err
		}
	}
}
