package reqbody

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"docent/api/stream"
	"docent/model"
	"docent/search"
)

// MaxID is how many characters the id of a chat or a message may have, which clients make.
const MaxID = 256

const (
	maxCaller   = 256     // characters of fp
	maxQuestion = 32_000  // characters of the newest message
	maxSnippets = 100     // entries of context
	maxSnippet  = 50_000  // characters of one
	maxContext  = 100_000 // bytes of all together: they are journaled with the question
	maxPath     = 200     // characters of currentPath
	maxName     = 200     // characters of a filter's value
)

// A Question is what an assistant message asks.
type Question struct {
	Caller     string
	Thread     string
	ThreadKey  string
	Chat       string
	Message    string
	Text       string
	Regenerate bool
	Instead    string
	Context    []model.Snippet
	Query      search.Query
	Explain    bool
	Before     []model.Message // the conversation so far, of a client that keeps it
	Setting    string          // what the client's program says of itself
}

// DecodeQuestion reads an assistant message of one of the two wire forms.
func DecodeQuestion(raw []byte, form stream.Form) (q Question, err error) {
	var ps Problems
	m, err := ps.body(raw)
	if err != nil {
		return q, err
	}
	id := length{max: MaxID}
	q.Caller = ps.required("fp", m.get("fp"), length{min: 1, max: maxCaller})
	q.Thread = ps.nullable("threadId", m.get("threadId"), id)
	q.ThreadKey = ps.nullable("threadKey", m.get("threadKey"), id)
	q.Chat = ps.nullable("id", m.get("id"), id)
	q.Regenerate = strings.HasPrefix(ps.nullable("trigger", m.get("trigger"), id), "regenerate-")
	q.Instead = ps.nullable("messageId", m.get("messageId"), id)
	q.Query.Limit = ps.whole("retrievalPageSize", m.get("retrievalPageSize"), 1, 50, 5)
	q.Query.Filter = ps.filter("filter", m.get("filter"))
	q.Query.CurrentPath = ps.nullable("currentPath", m.get("currentPath"), length{max: maxPath})
	q.Explain = ps.boolean("explain", m.get("explain"))
	q.Context = ps.snippets("context", m.get("context"))
	q.Message, q.Text = ps.messages("messages", m.get("messages"), form)
	return q, ps.Err()
}

// filter reads a filter that may be left out or null.
func (p *Problems) filter(field string, v value) (f search.Filter) {
	switch is(v) {
	case none, null:
		return f
	case braces:
	default:
		p.Add(field, "must be an object or null, not %s", kind(v))
		return f
	}
	m := members(v)
	f.Version = p.nullable(field+".version", m.get("version"), length{max: maxName})
	f.Language = p.nullable(field+".language", m.get("language"), length{max: maxName})
	f.Tag = p.nullable(field+".tag", m.get("tag"), length{max: maxName})
	f.Groups = p.strings(field+".groups", m.get("groups"), 100, length{min: 1, max: maxName})
	f.Sources = p.strings(field+".sources", m.get("sources"), 100, length{min: 1, max: maxName})
	return f
}

// snippets reads what the reader has selected or looks at.
func (p *Problems) snippets(field string, v value) (list []model.Snippet) {
	switch is(v) {
	case none, null:
		return nil
	case brackets:
	default:
		p.Add(field, "must be an array, not %s", kind(v))
		return nil
	}
	size := 0
	for i, entry := range elements(v) {
		if i == maxSnippets {
			p.Add(field, "must have at most %d entries", maxSnippets)
			break
		}
		at := field + "[" + strconv.Itoa(i) + "]"
		if is(entry) != braces {
			p.Add(at, "must be an object with type and value, not %s", kind(entry))
			continue
		}
		m := members(entry)
		s := model.Snippet{
			Kind: p.enum(at+".type", m.get("type"), "code", "textSelection"),
			Text: p.required(at+".value", m.get("value"), length{min: 1, max: maxSnippet, lines: true}),
			Path: p.nullable(at+".path", m.get("path"), length{max: 1000}),
		}
		p.nullable(at+".elementId", m.get("elementId"), length{max: 1000})
		list = append(list, s)
		size += len(s.Text)
	}
	if size > maxContext {
		p.Add(field, "must have at most %d bytes of text altogether, and has %d: send what the question is about",
			maxContext, size)
	}
	return list
}

// messages reads the conversation as the client has it, of which only the newest message is used: the thread has its
// own history. It gives that message's id and text.
func (p *Problems) messages(field string, v value, form stream.Form) (id, question string) {
	switch is(v) {
	case none:
		p.Add(field, "is required: send an array of at least one message, the last from the user")
		return "", ""
	case brackets:
	default:
		p.Add(field, "must be an array of messages, not %s", kind(v))
		return "", ""
	}
	roles := []string{"system", "assistant", "user"}
	if form == stream.DataStream {
		roles = []string{"system", "assistant", "data", "user"}
	}
	list := elements(v)
	if len(list) == 0 {
		p.Add(field, "must not be empty: send at least one message, the last from the user")
	}
	for i, message := range list {
		at := field + "[" + strconv.Itoa(i) + "]"
		if is(message) != braces {
			p.Add(at, "must be an object with role and text, not %s", kind(message))
			continue
		}
		m, last := members(message), i == len(list)-1
		who := p.enum(at+".role", m.get("role"), roles...)
		if last && who != "" && who != "user" {
			p.Add(at+".role", "must be user: the last message is the question")
		}
		said := p.text(at, m.get("parts"), m.get("content"), last)
		if last {
			id, question = p.nullable(at+".id", m.get("id"), length{max: MaxID}), said
		}
	}
	return id, question
}

// text is the text of the newest message: that of its text parts, or its content if there are none. Of the other
// messages only the form is checked. Parts of an unknown kind are passed over: clients send back all that they ever
// showed.
func (p *Problems) text(at string, parts, content value, last bool) string {
	before := len(p.list)
	var texts []string
	field := at + ".content"
	switch is(parts) {
	case none, null:
	case brackets:
		field = at + ".parts"
		texts = p.parts(field, parts)
	default:
		p.Add(at+".parts", "must be an array, not %s", kind(parts))
	}
	switch is(content) {
	case none, null:
	case text:
		if last && len(texts) == 0 {
			texts = []string{word(content)}
		}
	case brackets:
		if !last || len(texts) == 0 {
			texts = p.parts(at+".content", content)
		}
	default:
		p.Add(at+".content", "must be a string, not %s", kind(content))
	}
	if !last || len(p.list) > before {
		return ""
	}
	return p.asked(field, strings.TrimSpace(strings.Join(texts, "\n")))
}

// asked is the text of a question.
func (p *Problems) asked(field, said string) string {
	switch n := utf8.RuneCountInString(said); {
	case n == 0:
		p.Add(field, "must hold the question: send a text part or content that is not empty")
	case n > maxQuestion:
		p.Add(field, "must have at most %d characters, and has %d: shorten it", maxQuestion, n)
	case control(said, true):
		p.Add(field, "must not hold control characters: take them out")
	}
	return said
}

// parts are the texts of a message's parts that are text and not empty.
func (p *Problems) parts(field string, list value) (texts []string) {
	for i, part := range elements(list) {
		at := field + "[" + strconv.Itoa(i) + "]"
		if is(part) != braces {
			p.Add(at, "must be an object, not %s", kind(part))
			continue
		}
		said := find(part, "type")
		if is(said) != text {
			p.Add(at+".type", "must be a string that says what the part is, not %s", kind(said))
			continue
		}
		if kind := word(said); kind != "text" && kind != "input_text" && kind != "output_text" {
			continue
		}
		if said = find(part, "text"); is(said) != text {
			p.Add(at+".text", "must be a string, not %s", kind(said))
			continue
		}
		if s := word(said); s != "" {
			texts = append(texts, s)
		}
	}
	return texts
}
