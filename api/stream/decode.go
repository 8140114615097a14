package stream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// DefaultMaxLine bounds one line, or one event, of a stream that is read.
const DefaultMaxLine = 4 << 20

// ErrLine says that a line, or an event, of the stream is longer than the decoder takes.
var ErrLine = errors.New("the stream has a line that is too long")

// A Decoder reads an answer back into parts. It takes what a good client takes: keep-alives, either line ending, bytes
// split anywhere, and the parts of the protocol that this service never sends. It refuses what a client refuses: a code
// or type that the protocol does not have, a value of the wrong type, text before its start.
//
// It yields what the form carries. In the data stream the thread's id comes with Finish alone; in the UI message stream
// Finish has no reason and no usage.
type Decoder struct {
	MaxLine int // bytes; DefaultMaxLine if zero

	form    Form
	in      *bufio.Reader
	line    []byte
	event   []byte // data of the event that is being read
	lines   int    // data lines of it
	queue   []Part
	started bool
	failed  bool // an Error was read: what follows is ignored
	ended   bool // the last part was read
	thread  string
	key     string
	model   string           // that has answered in place of another
	less    []string         // what did not take part
	calls   map[string]*Part // tool calls whose result has not come yet
	texts   map[string]bool  // text parts that are open
	err     error
}

// NewDecoder returns a decoder of the form's bytes.
func NewDecoder(form Form, r io.Reader) *Decoder {
	return &Decoder{form: form, in: bufio.NewReaderSize(r, 4096)}
}

// Next returns the next part. The error is io.EOF after a proper end (a Finish or an Error was read), and
// io.ErrUnexpectedEOF when the stream just stops.
func (d *Decoder) Next() (Part, error) {
	for {
		if len(d.queue) > 0 {
			p := d.queue[0]
			d.queue = d.queue[1:]
			return p, nil
		}
		if d.err != nil {
			return Part{}, d.err
		}
		if err := d.read(); err != nil {
			d.err = err
		}
	}
}

// Rest is what follows the stream's proper end.
func (d *Decoder) Rest() io.Reader { return d.in }

// read takes one line and handles it. It returns io.EOF at the proper end.
func (d *Decoder) read() error {
	line, err := d.readLine()
	if err == io.EOF && len(line) == 0 || err != nil && err != io.EOF {
		return d.stopped(err)
	}
	if d.form == DataStream {
		// A last line without its end is still read, as clients do.
		if handled := d.takeLine(line); handled != nil {
			return handled
		}
		if err != nil {
			return d.stopped(err)
		}
		return nil
	}
	if err != nil {
		return d.stopped(err) // an event without its blank line is lost
	}
	return d.takeEvent(line)
}

// stopped says what the end of the bytes means.
func (d *Decoder) stopped(err error) error {
	if err != io.EOF {
		return err
	}
	if d.ended {
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}

// readLine returns the next line without its end; it is valid until the next call.
func (d *Decoder) readLine() ([]byte, error) {
	limit := d.MaxLine
	if limit <= 0 {
		limit = DefaultMaxLine
	}
	d.line = d.line[:0]
	for {
		piece, err := d.in.ReadSlice('\n')
		if len(d.line)+len(piece) > limit+2 {
			return nil, ErrLine
		}
		if err == nil && len(d.line) == 0 {
			return trimEnd(piece), nil // the common case: no copy
		}
		d.line = append(d.line, piece...)
		if err == bufio.ErrBufferFull {
			continue
		}
		return trimEnd(d.line), err
	}
}

func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}

func (d *Decoder) push(p Part) { d.queue = append(d.queue, p) }

func bad(what string, line []byte) error {
	const most = 80
	if len(line) > most {
		line = line[:most]
	}
	return fmt.Errorf("%s: %q", what, line)
}

// Value types of the wire. A pointer tells absent from empty.
type (
	wireUsage struct {
		PromptTokens     float64 `json:"promptTokens"`
		CompletionTokens float64 `json:"completionTokens"`
	}
	wireFinish struct {
		Type         string    `json:"type"`
		FinishReason *string   `json:"finishReason"`
		Usage        wireUsage `json:"usage"`
		ThreadID     string    `json:"threadId"`
		ThreadKey    string    `json:"threadKey"`
		Model        string    `json:"model"`
		Fallback     bool      `json:"fallback"`
		Degraded     []string  `json:"degraded"`

		Explanation json.RawMessage `json:"explanation"`
	}
	wireStep struct {
		MessageID *string `json:"messageId"`
	}
	wireSource struct {
		SourceType string `json:"sourceType"`
		ID         string `json:"id"`
		URL        string `json:"url"`
		Title      string `json:"title"`

		ProviderMetadata wireProvider `json:"providerMetadata"`
	}
	wireProvider struct {
		Docent struct {
			Source  string `json:"source"`
			Excerpt string `json:"excerpt"`
		} `json:"docent"`
	}
	wireCall struct {
		ID     *string         `json:"toolCallId"`
		Name   string          `json:"toolName"`
		Args   json.RawMessage `json:"args"`
		Result json.RawMessage `json:"result"`
	}
	wireResult struct {
		Path     string `json:"path"`
		URL      string `json:"url"`
		Content  string `json:"content"`
		Metadata struct {
			Title string `json:"title"`
		} `json:"metadata"`
	}
	wireChunk struct {
		Type             string       `json:"type"`
		MessageID        string       `json:"messageId"`
		ID               *string      `json:"id"`
		Delta            *string      `json:"delta"`
		ErrorText        *string      `json:"errorText"`
		SourceID         *string      `json:"sourceId"`
		URL              *string      `json:"url"`
		Title            string       `json:"title"`
		ProviderMetadata wireProvider `json:"providerMetadata"`
		Metadata         *struct {
			ThreadID  string `json:"threadId"`
			ThreadKey string `json:"threadKey"`
			Model     string `json:"model"`
			Fallback  bool   `json:"fallback"`

			Degraded []string `json:"degraded"`
		} `json:"messageMetadata"`
		ToolCallID *string         `json:"toolCallId"`
		ToolName   string          `json:"toolName"`
		Input      json.RawMessage `json:"input"`
		Data       json.RawMessage `json:"data"`
		Output     json.RawMessage `json:"output"`
	}
)

// takeLine handles a line of the data stream.
func (d *Decoder) takeLine(line []byte) error {
	if len(line) == 0 {
		return nil // keep-alive
	}
	if d.failed {
		return nil // the client has thrown and reads no more
	}
	if len(line) < 2 || line[1] != ':' {
		return bad("a line without a code", line)
	}
	code, value := line[0], line[2:]
	switch code {
	case '0':
		s, err := unquote(value)
		if err != nil {
			return bad("the text of a line", line)
		}
		d.push(Part{Kind: Text, Text: s})
		return nil
	case '3':
		s, err := unquote(value)
		if err != nil {
			return bad("the text of an error", line)
		}
		d.fail(s)
		return nil
	}
	take, known := lineCodes[code]
	if !known {
		return bad("a line with an unknown code", line)
	}
	if wrong, err := take(d, value); err != nil {
		return fmt.Errorf("%w: %w", bad("the value of a line", line), err)
	} else if wrong != "" {
		return bad(wrong, line)
	}
	return nil
}

// lineCodes are the lines of the data stream that are no text, by their codes. What is wrong with one that is JSON is
// told in words.
var lineCodes = map[byte]func(d *Decoder, value []byte) (wrong string, err error){
	'2': taking((*Decoder).takeData),
	'8': taking((*Decoder).takeData),
	'f': taking(func(d *Decoder, f *wireStep) string {
		if f.MessageID == nil {
			return "a step without the id of its message"
		}
		d.start(Part{Kind: Start, Message: *f.MessageID})
		return ""
	}),
	'h': taking(func(d *Decoder, s *wireSource) string {
		if s.SourceType == "url" {
			d.push(Part{Kind: Source, ID: s.ID, URL: s.URL, Title: s.Title,
				Label: s.ProviderMetadata.Docent.Source, Excerpt: s.ProviderMetadata.Docent.Excerpt})
		}
		return ""
	}),
	'9': taking(func(d *Decoder, c *wireCall) string { return d.call(c.ID, c.Name, c.Args) }),
	'a': taking(func(d *Decoder, c *wireCall) string { return d.result(c.ID, c.Result) }),
	'e': taking(func(_ *Decoder, f *wireFinish) string { return f.wrong() }),
	'd': taking(func(d *Decoder, f *wireFinish) string {
		if wrong := f.wrong(); wrong != "" {
			return wrong
		}
		d.ids(f.ThreadID, f.ThreadKey)
		d.finish(*f.FinishReason, Usage{Prompt: int(f.Usage.PromptTokens), Completion: int(f.Usage.CompletionTokens)})
		return ""
	}),
	// Of the protocol, but never sent by this service.
	'b': ignoring, 'c': ignoring, 'g': ignoring, 'i': ignoring, 'j': ignoring, 'k': ignoring,
}

func ignoring(_ *Decoder, value []byte) (string, error) {
	return "", json.Unmarshal(value, new(json.RawMessage))
}

// taking takes a value that is JSON for a T.
func taking[T any](take func(*Decoder, *T) string) func(*Decoder, []byte) (string, error) {
	return func(d *Decoder, value []byte) (string, error) {
		var v T
		if err := json.Unmarshal(value, &v); err != nil {
			return "", err
		}
		return take(d, &v), nil
	}
}

// takeData takes data or annotations, among which the end is told once more, with what the protocol's own has no
// field for.
func (d *Decoder) takeData(items *[]json.RawMessage) string {
	for _, item := range *items {
		var f wireFinish
		switch err := json.Unmarshal(item, &f); {
		case err != nil:
		case f.Type == "finish":
			d.ids(f.ThreadID, f.ThreadKey)
			d.mark(f.Model, f.Fallback, f.Degraded)
		case f.Type == "explanation" && len(f.Explanation) > 0:
			d.push(Part{Kind: Explained, Text: string(f.Explanation)})
		}
	}
	return ""
}

func (f *wireFinish) wrong() string {
	if f.FinishReason == nil {
		return "an end without a reason"
	}
	return ""
}

// takeEvent handles a line of server-sent events.
func (d *Decoder) takeEvent(line []byte) error {
	if len(line) == 0 {
		if d.lines == 0 {
			return nil
		}
		d.lines = 0
		return d.dispatch(d.event)
	}
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return nil // a comment, or a field that this protocol does not use
	}
	data = bytes.TrimPrefix(data, []byte(" "))
	if d.lines == 0 {
		d.event = d.event[:0]
	} else {
		d.event = append(d.event, '\n')
	}
	limit := d.MaxLine
	if limit <= 0 {
		limit = DefaultMaxLine
	}
	if len(d.event)+len(data) > limit {
		return ErrLine
	}
	d.event = append(d.event, data...)
	d.lines++
	return nil
}

func (d *Decoder) dispatch(data []byte) error {
	if string(data) == "[DONE]" {
		return d.stopped(io.EOF)
	}
	if d.failed {
		return nil
	}
	if id, text, ok := plainDelta(data); ok {
		if !d.texts[string(id)] {
			return bad("text before its start", data)
		}
		d.push(Part{Kind: Text, Text: string(text)})
		return nil
	}
	var c wireChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("%w: %w", bad("the data of an event", data), err)
	}
	take, known := chunkTypes[c.Type]
	switch {
	case !known && !strings.HasPrefix(c.Type, "data-"):
		return bad("an event of unknown type", data)
	case take == nil:
		return nil
	}
	if wrong := take(d, &c); wrong != "" {
		return bad(wrong, data)
	}
	return nil
}

// chunkTypes are the types of events. What is wrong with one is reported in words. Those that are nil are of the
// protocol, and say nothing that is kept.
var chunkTypes = map[string]func(d *Decoder, c *wireChunk) (wrong string){
	"start": func(d *Decoder, c *wireChunk) string {
		d.metadata(c)
		d.start(Part{Kind: Start, Message: c.MessageID, Thread: d.thread, Key: d.key})
		return ""
	},
	"message-metadata": func(d *Decoder, c *wireChunk) string {
		d.metadata(c)
		return ""
	},
	"text-start": func(d *Decoder, c *wireChunk) string {
		if c.ID == nil {
			return "text without an id"
		}
		if d.texts == nil {
			d.texts = map[string]bool{}
		}
		d.texts[*c.ID] = true
		return ""
	},
	"text-delta": func(d *Decoder, c *wireChunk) string {
		if c.ID == nil || c.Delta == nil {
			return "text without an id or a delta"
		}
		if !d.texts[*c.ID] {
			return "text before its start"
		}
		d.push(Part{Kind: Text, Text: *c.Delta})
		return ""
	},
	"text-end": func(d *Decoder, c *wireChunk) string {
		if c.ID == nil || !d.texts[*c.ID] {
			return "the end of a text that was not started"
		}
		delete(d.texts, *c.ID)
		return ""
	},
	"finish-step": func(d *Decoder, _ *wireChunk) string {
		clear(d.texts) // after a step its texts have to be started again
		return ""
	},
	"source-url": func(d *Decoder, c *wireChunk) string {
		if c.SourceID == nil || c.URL == nil {
			return "a source without an id or an address"
		}
		d.push(Part{Kind: Source, ID: *c.SourceID, URL: *c.URL, Title: c.Title,
			Label: c.ProviderMetadata.Docent.Source, Excerpt: c.ProviderMetadata.Docent.Excerpt})
		return ""
	},
	"tool-input-available":  func(d *Decoder, c *wireChunk) string { return d.call(c.ToolCallID, c.ToolName, c.Input) },
	"tool-output-available": func(d *Decoder, c *wireChunk) string { return d.result(c.ToolCallID, c.Output) },
	"error": func(d *Decoder, c *wireChunk) string {
		if c.ErrorText == nil {
			return "an error without a text"
		}
		d.fail(*c.ErrorText)
		return ""
	},
	"finish": func(d *Decoder, c *wireChunk) string {
		d.metadata(c)
		if c.Metadata != nil {
			d.mark(c.Metadata.Model, c.Metadata.Fallback, c.Metadata.Degraded)
		}
		d.finish("", Usage{})
		return ""
	},
	"data-explanation": func(d *Decoder, c *wireChunk) string {
		if len(c.Data) > 0 {
			d.push(Part{Kind: Explained, Text: string(c.Data)})
		}
		return ""
	},
	"start-step": nil, "abort": nil, "reasoning-start": nil, "reasoning-delta": nil, "reasoning-end": nil,
	"source-document": nil,
	"file":            nil, "tool-input-start": nil, "tool-input-delta": nil, "tool-input-error": nil,
	"tool-output-error":  nil,
	"tool-output-denied": nil, "tool-approval-request": nil, "tool-approval-response": nil, "custom": nil,
	"reasoning-file":   nil,
	"steering-message": nil,
}

// start begins the answer, once: its steps share its message.
func (d *Decoder) start(p Part) {
	if !d.started {
		d.started = true
		d.push(p)
	}
}

func (d *Decoder) finish(reason string, usage Usage) {
	if !d.ended {
		d.ended = true
		d.push(Part{Kind: Finish, Thread: d.thread, Key: d.key, Reason: reason, Model: d.model, Fallback: d.model != "",
			Usage: usage, Degraded: d.less})
	}
}

func (d *Decoder) fail(text string) {
	d.failed, d.ended = true, true
	d.push(Part{Kind: Error, Text: text})
}

func (d *Decoder) metadata(c *wireChunk) {
	if c.Metadata != nil {
		d.ids(c.Metadata.ThreadID, c.Metadata.ThreadKey)
	}
}

func (d *Decoder) ids(thread, key string) {
	if thread != "" {
		d.thread = thread
	}
	if key != "" {
		d.key = key
	}
}

// mark notes which model has answered in place of another, and what did not take part.
func (d *Decoder) mark(model string, fallback bool, degraded []string) {
	d.less = degraded
	if fallback {
		d.model = model
	}
}

// call keeps a tool call until its result comes: the two are one part.
func (d *Decoder) call(id *string, name string, args json.RawMessage) (wrong string) {
	if id == nil {
		return "a tool call without an id"
	}
	p := &Part{ID: *id}
	if name == "search" {
		p.Kind = Search
		var a struct {
			Query string `json:"query"`
		}
		if json.Unmarshal(args, &a) == nil {
			p.Query = a.Query
		}
	}
	if d.calls == nil {
		d.calls = map[string]*Part{}
	}
	d.calls[*id] = p
	return ""
}

func (d *Decoder) result(id *string, value json.RawMessage) (wrong string) {
	if id == nil {
		return "a tool result without an id"
	}
	p, ok := d.calls[*id]
	if !ok {
		return "a tool result without its call"
	}
	delete(d.calls, *id)
	if p.Kind != Search {
		return ""
	}
	var results []wireResult
	if json.Unmarshal(value, &results) == nil {
		for _, r := range results {
			p.Results = append(p.Results, Result{Path: r.Path, URL: r.URL, Title: r.Metadata.Title, Content: r.Content})
		}
	}
	d.push(*p)
	return ""
}

// unquote reads a JSON string, without the general decoder if nothing is escaped.
func unquote(value []byte) (string, error) {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' && literal(value[1:n-1]) {
		return string(value[1 : n-1]), nil
	}
	var s *string
	if err := json.Unmarshal(value, &s); err != nil {
		return "", err
	}
	if s == nil {
		return "", errors.New("null")
	}
	return *s, nil
}

// literal reports whether the bytes stand for themselves within a JSON string.
func literal(b []byte) bool {
	ascii := true
	for _, c := range b {
		if c >= utf8.RuneSelf {
			ascii = false
		} else if !plain[c] {
			return false
		}
	}
	return ascii || utf8.Valid(b)
}

// plainDelta reads a text-delta as most servers write it, without the general decoder.
func plainDelta(data []byte) (id, text []byte, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"type":"text-delta","id":"`))
	if !ok {
		return nil, nil, false
	}
	id, rest, ok = bytes.Cut(rest, []byte(`","delta":"`))
	if !ok || !literal(id) {
		return nil, nil, false
	}
	text, ok = bytes.CutSuffix(rest, []byte(`"}`))
	return id, text, ok && literal(text)
}
