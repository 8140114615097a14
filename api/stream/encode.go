package stream

import (
	"cmp"
	"strconv"
	"unicode/utf8"
)

// A Form is one of the ways in which an answer goes over the wire.
type Form uint8

const (
	DataStream  Form = iota + 1 // the data stream protocol of chat SDK 4: one part a line, "code:json"
	UIMessages                  // the UI message stream of chat SDK 5 and later: server-sent events
	Completions                 // the chunks of OpenAI's chat completions: server-sent events
	AGUI                        // the events of a run of AG-UI: server-sent events
	Responses                   // the events of OpenAI's Responses: server-sent events
)

func (f Form) String() string {
	switch f {
	case DataStream:
		return "data stream"
	case UIMessages:
		return "UI message stream"
	case Completions:
		return "chat completion"
	case AGUI:
		return "AG-UI run"
	case Responses:
		return "response"
	}
	return "form " + strconv.Itoa(int(f))
}

// A Field is one line of a response head.
type Field struct{ Name, Value string }

// Headers are the lines of the response head that a form asks for. The thread's id is the caller's to add.
func Headers(form Form) []Field {
	if form == DataStream {
		return []Field{
			{"Content-Type", "text/plain; charset=utf-8"},
			{"X-Vercel-AI-Data-Stream", "v1"},
			{"Cache-Control", "no-cache"},
			{"X-Accel-Buffering", "no"},
		}
	}
	fields := []Field{
		{"Content-Type", "text/event-stream"},
		{"Cache-Control", "no-cache"},
		{"X-Accel-Buffering", "no"},
	}
	if form == UIMessages {
		fields = append(fields, Field{"X-Vercel-AI-UI-Message-Stream", "v1"})
	}
	return fields
}

// An Encoder writes the parts of one answer in a form, for one reader from the first part on. What it writes is
// accepted by the strictest client of each line: no key that a client does not know, nothing null, and no finish
// reason in the UI message stream, which early clients refuse.
type Encoder struct {
	form    Form
	message string // id of the answer's message
	thread  string
	key     string
	step    bool // a step is open
	text    bool // the open step has text, or in the UI message stream a text part is open
	ended   bool
	texts   int    // text parts so far
	sources int    // sources so far
	calls   int    // tool calls so far
	delta   []byte // what stands before the text of a delta
	instead string // the model that has answered in place of another

	degraded []string
	explains bool

	completion *completion // nil in the other forms
}

// NewEncoder returns an encoder for one answer.
func NewEncoder(form Form) *Encoder {
	e := &Encoder{form: form}
	if form >= Completions {
		e.completion = &completion{}
	}
	return e
}

// WithKey makes the encoder send its one reader the thread's secret. The parts are every reader's.
func (e *Encoder) WithKey(key string) *Encoder {
	e.key = key
	return e
}

// WithExplanation makes the encoder send its one reader how the answer came about, if that was asked for. Others do not
// learn it.
func (e *Encoder) WithExplanation() *Encoder {
	e.explains = true
	return e
}

// Ended reports whether the end of the stream was written: after Finish or Error. Parts that come later are left out.
func (e *Encoder) Ended() bool { return e.ended }

// KeepAlive appends what a form allows between two parts to keep a quiet connection open: a blank line is all that the
// data stream knows, a comment in server-sent events.
func (e *Encoder) KeepAlive(dst []byte) []byte {
	if e.form == DataStream {
		return append(dst, '\n')
	}
	return append(dst, ": ping\n\n"...)
}

// Append appends a part in whole lines or events, with whatever the form wants opened or closed around it. Text costs
// no allocation beyond what dst may need to grow.
func (e *Encoder) Append(dst []byte, p Part) []byte {
	if e.ended {
		return dst
	}
	switch e.form {
	case DataStream:
		return e.line(dst, &p)
	case Completions:
		return e.chunk(dst, &p)
	case AGUI:
		return e.run(dst, &p)
	case Responses:
		return e.respond(dst, &p)
	}
	return e.event(dst, &p)
}

// line writes the data stream.
func (e *Encoder) line(dst []byte, p *Part) []byte {
	switch p.Kind {
	case Start:
		e.remember(p)
		e.message = p.Message
		dst = e.openLine(dst)
	case Source:
		dst = e.openLine(dst)
		dst = append(dst, `h:{"sourceType":"url","id":`...)
		dst = appendString(dst, e.sourceID(p))
		dst = append(dst, `,"url":`...)
		dst = appendString(dst, p.URL)
		if p.Title != "" {
			dst = append(dst, `,"title":`...)
			dst = appendString(dst, p.Title)
		}
		dst = appendMore(dst, p)
		dst = append(dst, "}\n"...)
	case Text:
		if p.Text == "" {
			return dst
		}
		dst = e.openLine(dst)
		e.text = true
		dst = append(dst, '0', ':')
		dst = appendString(dst, p.Text)
		dst = append(dst, '\n')
	case Search:
		// A step of its own: a client that allows several steps sends the conversation again when the last step ends in
		// completed tool calls.
		if e.text {
			dst = e.closeLine(dst, "stop", Usage{})
		}
		dst = e.openLine(dst)
		id := e.callID(p)
		dst = append(dst, `9:{"toolCallId":`...)
		dst = appendString(dst, id)
		dst = append(dst, `,"toolName":"search","args":{"query":`...)
		dst = appendString(dst, p.Query)
		dst = append(dst, "}}\n"...)
		dst = append(dst, `a:{"toolCallId":`...)
		dst = appendString(dst, id)
		dst = append(dst, `,"result":`...)
		dst = appendResults(dst, p.Results)
		dst = append(dst, "}\n"...)
		dst = e.closeLine(dst, "tool-calls", Usage{})
	case Explained:
		if !e.explains || p.Text == "" {
			return dst
		}
		dst = append(dst, `2:[{"type":"explanation","explanation":`...)
		dst = append(dst, p.Text...)
		dst = append(dst, "}]\n"...)
	case Finish:
		e.remember(p)
		reason := cmp.Or(p.Reason, "stop")
		dst = e.openLine(dst)
		dst = e.closeLine(dst, reason, p.Usage)
		// The hook of the page reads data (2) and annotations (8); the finish line itself keeps only what its client
		// knows.
		for _, code := range [...]byte{'8', '2'} {
			dst = append(dst, code, ':', '[')
			dst = append(dst, `{"type":"finish"`...)
			dst = e.ids(dst, true)
			dst = e.marks(dst, true)
			dst = append(dst, "}]\n"...)
		}
		dst = e.endLine(dst, reason, p.Usage)
	case Error:
		e.remember(p)
		dst = append(dst, '3', ':')
		dst = appendString(dst, p.Text)
		dst = append(dst, '\n')
		if e.step {
			dst = e.closeLine(dst, "error", Usage{})
		}
		dst = e.endLine(dst, "error", Usage{})
	}
	return dst
}

// openLine opens a step unless one is open. All steps carry the answer's one message id: a client takes over the id of
// each step that it sees.
func (e *Encoder) openLine(dst []byte) []byte {
	if e.step {
		return dst
	}
	e.step = true
	if e.message == "" {
		return dst
	}
	dst = append(dst, `f:{"messageId":`...)
	dst = appendString(dst, e.message)
	return append(dst, "}\n"...)
}

func (e *Encoder) closeLine(dst []byte, reason string, u Usage) []byte {
	e.step, e.text = false, false
	dst = append(dst, `e:{"finishReason":`...)
	dst = appendString(dst, reason)
	dst = appendUsage(dst, u)
	return append(dst, ",\"isContinued\":false}\n"...)
}

func (e *Encoder) endLine(dst []byte, reason string, u Usage) []byte {
	e.ended = true
	dst = append(dst, `d:{"finishReason":`...)
	dst = appendString(dst, reason)
	dst = appendUsage(dst, u)
	dst = e.ids(dst, true)
	return append(dst, "}\n"...)
}

// event writes the UI message stream.
func (e *Encoder) event(dst []byte, p *Part) []byte {
	switch p.Kind {
	case Start:
		e.remember(p)
		e.message = p.Message
		dst = append(dst, `data: {"type":"start"`...)
		if p.Message != "" {
			dst = append(dst, `,"messageId":`...)
			dst = appendString(dst, p.Message)
		}
		dst = e.metadata(dst)
		dst = append(dst, "}\n\n"...)
		dst = e.openEvent(dst)
	case Source:
		dst = e.openEvent(dst)
		dst = append(dst, `data: {"type":"source-url","sourceId":`...)
		dst = appendString(dst, e.sourceID(p))
		dst = append(dst, `,"url":`...)
		dst = appendString(dst, p.URL)
		if p.Title != "" {
			dst = append(dst, `,"title":`...)
			dst = appendString(dst, p.Title)
		}
		dst = appendMore(dst, p)
		dst = append(dst, "}\n\n"...)
	case Text:
		if p.Text == "" {
			return dst
		}
		if !e.text {
			dst = e.openEvent(dst)
			dst = e.openText(dst)
		}
		dst = append(dst, e.delta...)
		dst = appendString(dst, p.Text)
		dst = append(dst, "}\n\n"...)
	case Search:
		if e.text {
			dst = e.closeText(dst)
			dst = e.closeEvent(dst)
		}
		dst = e.openEvent(dst)
		id := e.callID(p)
		// Run by the server: the page's own tool handler is not asked, and no client sends the conversation again for it.
		dst = append(dst, `data: {"type":"tool-input-available","toolCallId":`...)
		dst = appendString(dst, id)
		dst = append(dst, `,"toolName":"search","input":{"query":`...)
		dst = appendString(dst, p.Query)
		dst = append(dst, "},\"providerExecuted\":true}\n\n"...)
		dst = append(dst, `data: {"type":"tool-output-available","toolCallId":`...)
		dst = appendString(dst, id)
		dst = append(dst, `,"output":`...)
		dst = appendResults(dst, p.Results)
		dst = append(dst, ",\"providerExecuted\":true}\n\n"...)
		dst = e.closeEvent(dst)
	case Explained:
		if !e.explains || p.Text == "" {
			return dst
		}
		dst = append(dst, `data: {"type":"data-explanation","data":`...)
		dst = append(dst, p.Text...)
		dst = append(dst, "}\n\n"...)
	case Finish:
		e.remember(p)
		dst = e.openEvent(dst)
		dst = e.closeText(dst)
		dst = e.closeEvent(dst)
		dst = append(dst, `data: {"type":"finish"`...)
		dst = e.metadata(dst)
		dst = append(dst, "}\n\n"...)
		dst = e.endEvents(dst)
	case Error:
		dst = e.closeText(dst)
		dst = append(dst, `data: {"type":"error","errorText":`...)
		dst = appendString(dst, p.Text)
		dst = append(dst, "}\n\n"...)
		dst = e.endEvents(dst)
	}
	return dst
}

func (e *Encoder) openEvent(dst []byte) []byte {
	if e.step {
		return dst
	}
	e.step = true
	return append(dst, "data: {\"type\":\"start-step\"}\n\n"...)
}

func (e *Encoder) closeEvent(dst []byte) []byte {
	e.step = false
	return append(dst, "data: {\"type\":\"finish-step\"}\n\n"...)
}

func (e *Encoder) openText(dst []byte) []byte {
	e.text = true
	e.texts++
	e.delta = append(e.delta[:0], `data: {"type":"text-delta","id":"t`...)
	e.delta = strconv.AppendInt(e.delta, int64(e.texts), 10)
	e.delta = append(e.delta, `","delta":`...)
	dst = append(dst, `data: {"type":"text-start","id":"t`...)
	dst = strconv.AppendInt(dst, int64(e.texts), 10)
	return append(dst, "\"}\n\n"...)
}

func (e *Encoder) closeText(dst []byte) []byte {
	if !e.text {
		return dst
	}
	e.text = false
	dst = append(dst, `data: {"type":"text-end","id":"t`...)
	dst = strconv.AppendInt(dst, int64(e.texts), 10)
	return append(dst, "\"}\n\n"...)
}

func (e *Encoder) endEvents(dst []byte) []byte {
	e.ended = true
	return append(dst, "data: [DONE]\n\n"...)
}

// remember keeps the thread's id and key: the end repeats what the start has said.
func (e *Encoder) remember(p *Part) {
	if p.Thread != "" {
		e.thread = p.Thread
	}
	if p.Key != "" {
		e.key = p.Key
	}
	if p.Fallback {
		e.instead = p.Model
	}
	if len(p.Degraded) > 0 {
		e.degraded = p.Degraded
	}
}

// metadata is where every version of the client looks for the thread's id; at the top level of an event early ones
// refuse it.
func (e *Encoder) metadata(dst []byte) []byte {
	if e.thread == "" && e.key == "" && e.instead == "" && len(e.degraded) == 0 {
		return dst
	}
	dst = append(dst, `,"messageMetadata":{`...)
	dst = e.ids(dst, false)
	dst = e.marks(dst, e.thread != "" || e.key != "")
	return append(dst, '}')
}

// marks say which model has answered in place of another, if one did, and what did not take part.
func (e *Encoder) marks(dst []byte, comma bool) []byte {
	if e.instead != "" {
		if comma {
			dst = append(dst, ',')
		}
		dst = append(dst, `"model":`...)
		dst = appendString(dst, e.instead)
		dst = append(dst, `,"fallback":true`...)
		comma = true
	}
	if len(e.degraded) > 0 {
		if comma {
			dst = append(dst, ',')
		}
		dst = append(dst, `"degraded":[`...)
		for i, d := range e.degraded {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, d)
		}
		dst = append(dst, ']')
	}
	return dst
}

// ids appends the thread's id and key as members of an object, after a comma if there are members before them.
func (e *Encoder) ids(dst []byte, comma bool) []byte {
	if e.thread != "" {
		if comma {
			dst = append(dst, ',')
		}
		dst = append(dst, `"threadId":`...)
		dst = appendString(dst, e.thread)
		comma = true
	}
	if e.key != "" {
		if comma {
			dst = append(dst, ',')
		}
		dst = append(dst, `"threadKey":`...)
		dst = appendString(dst, e.key)
	}
	return dst
}

// appendLabel writes of which source a cited page is, if the protocols have room for what they do not know.
func appendMore(dst []byte, p *Part) []byte {
	if p.Label == "" && p.Excerpt == "" {
		return dst
	}
	dst = append(dst, `,"providerMetadata":{"docent":{`...)
	if p.Label != "" {
		dst = append(dst, `"source":`...)
		dst = appendString(dst, p.Label)
	}
	if p.Excerpt != "" {
		if p.Label != "" {
			dst = append(dst, ',')
		}
		dst = append(dst, `"excerpt":`...)
		dst = appendString(dst, p.Excerpt)
	}
	return append(dst, "}}"...)
}

func (e *Encoder) sourceID(p *Part) string {
	e.sources++
	if p.ID != "" {
		return p.ID
	}
	return "s" + strconv.Itoa(e.sources)
}

func (e *Encoder) callID(p *Part) string {
	e.calls++
	if p.ID != "" {
		return p.ID
	}
	return "search-" + strconv.Itoa(e.calls)
}

func appendUsage(dst []byte, u Usage) []byte {
	dst = append(dst, `,"usage":{"promptTokens":`...)
	dst = strconv.AppendInt(dst, int64(u.Prompt), 10)
	dst = append(dst, `,"completionTokens":`...)
	dst = strconv.AppendInt(dst, int64(u.Completion), 10)
	return append(dst, '}')
}

// appendResults writes the results as widgets of the hosted platform read them: path or url, and the title under
// metadata.
func appendResults(dst []byte, results []Result) []byte {
	dst = append(dst, '[')
	for i := range results {
		r := &results[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"path":`...)
		dst = appendString(dst, r.Path)
		if r.URL != "" {
			dst = append(dst, `,"url":`...)
			dst = appendString(dst, r.URL)
		}
		dst = append(dst, `,"content":`...)
		dst = appendString(dst, r.Content)
		dst = append(dst, `,"metadata":{`...)
		if r.Title != "" {
			dst = append(dst, `"title":`...)
			dst = appendString(dst, r.Title)
		}
		dst = append(dst, "}}"...)
	}
	return append(dst, ']')
}

// plain says which ASCII bytes stand for themselves in a JSON string.
var plain = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

const hex = "0123456789abcdef"

// appendString appends s as a JSON string. Bytes that are no UTF-8 become the replacement character, and the two line
// separators that JavaScript once took for line ends are escaped, so that no reader cuts a line in two.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if plain[c] {
				i++
				continue
			}
			dst = append(dst, s[from:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, s[from:i]...)
			dst = append(dst, `\ufffd`...)
			from = i + n
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, s[from:i]...)
			dst = append(dst, `\u202`...)
			dst = append(dst, hex[r&15])
			from = i + n
		}
		i += n
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}
