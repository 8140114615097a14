package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"docent/api/stream"
)

// A checker reads one answer, event by event, as strictly as a client does and cheaply enough to read tens of
// thousands.
type checker struct {
	form     stream.Form
	scripted bool // the text's pieces are "part-0 ", "part-1 ", …
	parts    int  // pieces of text so far
	began    bool
	text     bool // a text part is open
	finished bool // the last event was read
	thread   string
	secret   string // of the thread
	scratch  [24]byte
}

// What an event was, as far as the clock is concerned.
type eventKind uint8

const (
	otherEvent eventKind = iota
	textEvent
	lastEvent
)

// errAnswer is the server's own word that an answer failed.
type answerError struct{ text string }

func (e *answerError) Error() string { return "the server reports: " + e.text }

// next takes one event off data. It returns what is left, and whether there was a whole event.
func (c *checker) next(data []byte) (rest []byte, kind eventKind, ok bool, err error) {
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			return data, 0, false, nil
		}
		line := data[:i]
		data = data[i+1:]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		if len(line) == 0 || c.form == stream.UIMessages && line[0] == ':' {
			continue // the end of an event, or a sign of life
		}
		if c.form == stream.DataStream {
			kind, err = c.line(line)
		} else {
			kind, err = c.event(line)
		}
		return data, kind, true, err
	}
}

var textDelta = []byte(`data: {"type":"text-delta","id":"`)

// event reads a line of the UI message stream.
func (c *checker) event(line []byte) (eventKind, error) {
	if rest, ok := bytes.CutPrefix(line, textDelta); ok {
		if _, delta, ok := bytes.Cut(rest, []byte(`","delta":`)); ok && len(delta) > 2 {
			return c.piece(delta[:len(delta)-1])
		}
	}
	data, ok := bytes.CutPrefix(line, []byte("data: "))
	if !ok {
		return 0, fmt.Errorf("%.80q is no event", line)
	}
	if string(data) == "[DONE]" {
		if !c.finished {
			return 0, errors.New("the stream is done without a finish")
		}
		return otherEvent, nil
	}
	if c.finished {
		return 0, fmt.Errorf("%.80q comes after the finish", line)
	}
	var e struct {
		Type      string          `json:"type"`
		Delta     json.RawMessage `json:"delta"`
		ErrorText string          `json:"errorText"`
		Metadata  struct {
			ThreadID  string `json:"threadId"`
			ThreadKey string `json:"threadKey"`
		} `json:"messageMetadata"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return 0, fmt.Errorf("%.80q: %w", line, err)
	}
	if e.Metadata.ThreadID != "" {
		c.thread = e.Metadata.ThreadID
	}
	if e.Metadata.ThreadKey != "" {
		c.secret = e.Metadata.ThreadKey
	}
	switch e.Type {
	case "start":
		if c.began {
			return 0, errors.New("the answer begins twice")
		}
		c.began = true
	case "text-start":
		if c.text {
			return 0, errors.New("a text begins in a text")
		}
		c.text = true
	case "text-delta":
		return c.piece(e.Delta)
	case "text-end":
		if !c.text {
			return 0, errors.New("a text ends that did not begin")
		}
		c.text = false
	case "error":
		return 0, &answerError{e.ErrorText}
	case "finish":
		if c.text {
			return 0, errors.New("the answer finishes in the middle of a text")
		}
		c.finished = true
		return lastEvent, nil
	}
	if !c.began {
		return 0, fmt.Errorf("the answer begins with %q", e.Type)
	}
	return otherEvent, nil
}

// line reads a line of the data stream.
func (c *checker) line(line []byte) (eventKind, error) {
	if len(line) < 2 || line[1] != ':' {
		return 0, fmt.Errorf("%.80q is no part", line)
	}
	if c.finished {
		return 0, fmt.Errorf("%.80q comes after the finish", line)
	}
	code, value := line[0], line[2:]
	switch code {
	case 'f':
		c.began, c.text = true, true
	case '0':
		return c.piece(value)
	case '3':
		var text string
		_ = json.Unmarshal(value, &text) // what is no string is reported as nothing
		return 0, &answerError{text}
	case 'e':
		c.text = false
	case '2', '8':
		var list []struct {
			Type      string `json:"type"`
			ThreadID  string `json:"threadId"`
			ThreadKey string `json:"threadKey"`
		}
		if json.Unmarshal(value, &list) == nil {
			for _, item := range list {
				if item.Type == "finish" {
					c.thread, c.secret = item.ThreadID, item.ThreadKey
				}
			}
		}
	case 'd':
		if c.text {
			return 0, errors.New("the answer finishes in the middle of a step")
		}
		c.finished = true
		return lastEvent, nil
	}
	if !json.Valid(value) {
		return 0, fmt.Errorf("%.80q is no JSON", line)
	}
	return otherEvent, nil
}

// piece checks a piece of the text, given as a JSON string.
func (c *checker) piece(value []byte) (eventKind, error) {
	if c.finished || !c.text {
		return 0, fmt.Errorf("the piece %.80q stands outside a text", value)
	}
	if c.scripted {
		want := append(c.scratch[:0], `"part-`...)
		want = strconv.AppendInt(want, int64(c.parts), 10)
		want = append(want, ' ', '"')
		if !bytes.Equal(value, want) {
			return 0, fmt.Errorf("piece %d is %.80q: one was lost, repeated or changed", c.parts, value)
		}
	}
	c.parts++
	return textEvent, nil
}
