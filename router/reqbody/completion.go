package reqbody

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"docent/api/stream"
	"docent/internal/brief"
	"docent/model"
)

const (
	maxBefore  = 20       // messages of the conversation so far that are kept, the newest ones
	beforeSize = 16 << 10 // bytes of them
	maxSetting = 8 << 10  // bytes of system messages that are kept
)

// A Completion is what a request in one of OpenAI's forms asks.
type Completion struct {
	Question
	Model    string
	Stream   bool
	Usage    bool   // is told at the end of the stream
	Previous string // response that it goes on from
}

// DecodeCompletion reads a request in the form of OpenAI's chat completions, or of its Responses. Settings of a model are
// passed over, as other clients' fields are.
func DecodeCompletion(raw []byte, form stream.Form) (c Completion, err error) {
	var ps Problems
	m, err := ps.body(raw)
	if err != nil {
		return c, err
	}
	c.Model = ps.required("model", m.get("model"), length{min: 1, max: 255})
	c.Caller = cmp.Or(ps.nullable("user", m.get("user"), length{max: maxCaller}),
		ps.nullable("safety_identifier", m.get("safety_identifier"), length{max: maxCaller}), "anonymous")
	c.Stream = ps.nullableBoolean("stream", m.get("stream"))
	options := ps.object("stream_options", m.get("stream_options"))
	c.Usage = ps.nullableBoolean("stream_options.include_usage", options.get("include_usage"))
	if n := m.get("n"); is(n) != null {
		ps.whole("n", n, 1, 1, 1)
	}
	meta := ps.object("metadata", m.get("metadata"))
	id := length{max: MaxID}
	c.Thread = ps.nullable("metadata.thread_id", meta.get("thread_id"), id)
	c.ThreadKey = ps.nullable("metadata.thread_key", meta.get("thread_key"), id)
	c.Query.Limit = ps.whole("retrievalPageSize", m.get("retrievalPageSize"), 1, 50, 5)
	c.Query.Filter = ps.filter("filter", m.get("filter"))
	if form == stream.Responses {
		ps.input(m, &c)
	} else {
		ps.conversation("messages", m.get("messages"), &c.Question)
	}
	if c.Thread != "" {
		c.Before = nil // the thread has its own
	}
	return c, ps.Err()
}

// input reads what is said to the Responses: a question, or items of which those are the conversation that are messages.
func (p *Problems) input(m object, c *Completion) {
	c.Previous = p.nullable("previous_response_id", m.get("previous_response_id"), length{max: MaxID})
	c.Thread = cmp.Or(stream.ThreadOf(c.Previous), c.Thread)
	if said := m.get("input"); is(said) == text {
		c.Text = p.asked("input", strings.TrimSpace(word(said)))
	} else {
		p.conversation("input", said, &c.Question)
	}
	rules := p.nullable("instructions", m.get("instructions"), length{max: maxContext, lines: true})
	c.Setting = brief.Bytes(strings.TrimSpace(rules+"\n\n"+c.Setting), maxSetting, "")
}

// OnlyJSON reports whether a client reads JSON and nothing else, so that an answer is sent in one piece.
func OnlyJSON(req *http.Request) bool {
	accepted := req.Header.Values("Accept")
	for _, header := range accepted {
		for part := range strings.SplitSeq(header, ",") {
			kind, _, _ := strings.Cut(part, ";")
			if !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
				return false
			}
		}
	}
	return len(accepted) > 0
}

// object reads an object that may be left out or null.
func (p *Problems) object(field string, v value) object {
	switch is(v) {
	case none, null, braces:
	default:
		p.Add(field, "must be an object or null, not %s", kind(v))
	}
	return members(v)
}

func (p *Problems) nullableBoolean(field string, v value) bool {
	return is(v) != null && p.boolean(field, v)
}

// conversation reads the messages of a client that keeps the conversation itself: the last one is the question, those
// before it are what was said, and those of the system are what the client's program says of itself. Roles
// beside OpenAI's are passed over.
func (p *Problems) conversation(field string, v value, q *Question, further ...string) {
	if is(v) != brackets {
		p.Add(field, "is required: send an array of at least one message, the last from the user")
		return
	}
	list := elements(v)
	if len(list) == 0 {
		p.Add(field, "must not be empty: send at least one message, the last from the user")
	}
	var setting []string
	for i, message := range list {
		at := field + "[" + strconv.Itoa(i) + "]"
		if is(message) != braces {
			p.Add(at, "must be an object with role and content, not %s", kind(message))
			continue
		}
		m := members(message)
		if is(m.get("role")) == none && is(m.get("type")) == text && i < len(list)-1 {
			continue // of the Responses: a call, or what a model thought
		}
		who := p.enum(at+".role", m.get("role"), append(further, "system", "developer", "user", "assistant", "tool", "function")...)
		if slices.Contains(further, who) && i < len(list)-1 {
			continue // it is nothing that was said, and its content may be of any kind
		}
		said := p.content(at+".content", m.get("content"))
		switch last := i == len(list)-1; {
		case last && who != "" && who != "user":
			p.Add(at+".role", "must be user: the last message is the question")
		case last:
			q.Text = p.asked(at+".content", said)
		case said == "":
		case who == "system" || who == "developer":
			setting = append(setting, said)
		case who == "user":
			q.Before = append(q.Before, model.Message{Role: who, Text: said})
		case who == "assistant":
			q.Before = append(q.Before, model.Message{Role: who, Text: stream.Unlisted(said)})
		}
	}
	q.Setting = brief.Bytes(strings.Join(setting, "\n\n"), maxSetting, "")
	q.Before = newest(q.Before)
}

// content is the text of a message: a string, or parts of which those are passed over that are no text.
func (p *Problems) content(field string, v value) string {
	switch is(v) {
	case none, null:
	case text:
		return strings.TrimSpace(word(v))
	case brackets:
		return strings.TrimSpace(strings.Join(p.parts(field, v), "\n"))
	default:
		p.Add(field, "must be a string or an array of parts, not %s", kind(v))
	}
	return ""
}

// newest are the last messages that fit.
func newest(list []model.Message) []model.Message {
	from, size := len(list), 0
	for from > 0 && len(list)-from < maxBefore {
		if size += len(list[from-1].Text); size > beforeSize {
			break
		}
		from--
	}
	return list[from:]
}
