package router

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/uptrace/bunrouter"

	"docent/actors/thread"
	"docent/api"
	"docent/model"
	"docent/search"
	"docent/stream"
)

const (
	maxCaller   = 256     // characters of fp
	maxQuestion = 32_000  // characters of the newest message
	maxSnippets = 100     // entries of context
	maxSnippet  = 50_000  // characters of one
	maxContext  = 100_000 // bytes of all together: they are journaled with the question
	maxPath     = 200     // characters of currentPath
	maxName     = 200     // characters of a filter's value
	maxID       = 256     // characters of a chat's or message's id, which clients make
)

// anonymous is the caller that sends no id of a user.
const anonymous = "anonymous"

// A question is what an assistant message asks, decoded.
type question struct {
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
}

// readQuestion decodes an assistant message.
func (s *Server) readQuestion(x *exchange, req *http.Request, form stream.Form) (question, error) {
	doc, err := s.body(x, req)
	if err != nil {
		return question{}, err
	}
	defer doc.release()
	return decodeQuestion(doc.root, form)
}

func decodeQuestion(body node, form stream.Form) (question, error) {
	var (
		q                                            question
		ps                                           problems
		fp, messages, threadID, threadKey            node
		pageSize, filter, snippets, path, chat, trig node
		instead                                      node
	)
	if !ps.object(body) {
		return q, ps.err()
	}
	for name, v := range body.members {
		switch name {
		case "fp":
			fp = v
		case "messages":
			messages = v
		case "threadId":
			threadID = v
		case "threadKey":
			threadKey = v
		case "retrievalPageSize":
			pageSize = v
		case "filter":
			filter = v
		case "context":
			snippets = v
		case "currentPath":
			path = v
		case "id":
			chat = v
		case "trigger":
			trig = v
		case "messageId":
			instead = v
		}
	}
	q.Caller = ps.required("fp", fp, length{min: 1, max: maxCaller})
	q.Thread = ps.nullable("threadId", threadID, length{max: maxID})
	q.ThreadKey = ps.nullable("threadKey", threadKey, length{max: maxID})
	q.Chat = ps.nullable("id", chat, length{max: maxID})
	trigger := ps.nullable("trigger", trig, length{max: maxID})
	q.Instead = ps.nullable("messageId", instead, length{max: maxID})
	q.Regenerate = strings.HasPrefix(trigger, "regenerate-")
	q.Query.Limit = ps.whole("retrievalPageSize", pageSize, 1, 50, 5)
	q.Query.Filter = ps.filter("filter", filter)
	q.Query.CurrentPath = ps.nullable("currentPath", path, length{max: maxPath})
	q.Context = ps.snippets("context", snippets)
	q.Message, q.Text = ps.messages("messages", messages, form)
	return q, ps.err()
}

// filter reads a filter that may be left out or null. Members that it does not know are ignored, like any other field.
func (p *problems) filter(field string, n node) search.Filter {
	var f search.Filter
	switch n.is() {
	case 0, 'n':
		return f
	case '{':
	default:
		p.add(field, "must be an object or null, not %s", n.kind())
		return f
	}
	for name, v := range n.members {
		switch name {
		case "version":
			f.Version = p.nullable(field+".version", v, length{max: maxName})
		case "language":
			f.Language = p.nullable(field+".language", v, length{max: maxName})
		case "tag":
			f.Tag = p.nullable(field+".tag", v, length{max: maxName})
		case "groups":
			f.Groups = p.strings(field+".groups", v, 100, length{min: 1, max: maxName})
		}
	}
	return f
}

// snippets reads what the reader has selected or looks at.
func (p *problems) snippets(field string, n node) []model.Snippet {
	switch n.is() {
	case 0, 'n':
		return nil
	case '[':
	default:
		p.add(field, "must be an array, not %s", n.kind())
		return nil
	}
	var list []model.Snippet
	size := 0
	for i, entry := range n.elements {
		if i == maxSnippets {
			p.add(field, "must have at most %d entries", maxSnippets)
			break
		}
		at := field + "[" + strconv.Itoa(i) + "]"
		if entry.is() != '{' {
			p.add(at, "must be an object with type and value, not %s", entry.kind())
			continue
		}
		var kind, value, element, path node
		for name, v := range entry.members {
			switch name {
			case "type":
				kind = v
			case "value":
				value = v
			case "elementId":
				element = v
			case "path":
				path = v
			}
		}
		s := model.Snippet{
			Kind: p.enum(at+".type", kind, "code", "textSelection"),
			Text: p.required(at+".value", value, length{min: 1, max: maxSnippet, lines: true}),
			Path: p.nullable(at+".path", path, length{max: 1000}),
		}
		p.nullable(at+".elementId", element, length{max: 1000})
		list = append(list, s)
		size += len(s.Text)
	}
	if size > maxContext {
		p.add(field, "must have at most %d bytes of text altogether, and has %d: send what the question is about", maxContext, size)
	}
	return list
}

// enum reads a string that must be one of those.
func (p *problems) enum(field string, n node, of ...string) string {
	switch n.is() {
	case 0:
		p.add(field, "is required: send one of %s", strings.Join(of, ", "))
		return ""
	case '"':
	default:
		p.add(field, "must be one of %s, not %s", strings.Join(of, ", "), n.kind())
		return ""
	}
	v := n.text()
	for _, o := range of {
		if v == o {
			return v
		}
	}
	p.add(field, "must be one of %s", strings.Join(of, ", "))
	return ""
}

// messages reads the conversation as the client has it, of which only the newest message is used: the thread has its own
// history. It gives that message's id and text.
func (p *problems) messages(field string, n node, form stream.Form) (id, text string) {
	switch n.is() {
	case 0:
		p.add(field, "is required: send an array of at least one message, the last from the user")
		return "", ""
	case '[':
	default:
		p.add(field, "must be an array of messages, not %s", n.kind())
		return "", ""
	}
	roles := []string{"system", "assistant", "user"}
	if form == stream.DataStream {
		roles = []string{"system", "assistant", "data", "user"}
	}
	count := 0
	for range n.elements {
		count++
	}
	if count == 0 {
		p.add(field, "must not be empty: send at least one message, the last from the user")
		return "", ""
	}
	for i, m := range n.elements {
		at := field + "[" + strconv.Itoa(i) + "]"
		if m.is() != '{' {
			p.add(at, "must be an object with role and text, not %s", m.kind())
			continue
		}
		var role, content, parts, own node
		for name, v := range m.members {
			switch name {
			case "role":
				role = v
			case "content":
				content = v
			case "parts":
				parts = v
			case "id":
				own = v
			}
		}
		last := i == count-1
		who := p.enum(at+".role", role, roles...)
		if last && who != "" && who != "user" {
			p.add(at+".role", "must be user: the last message is the question")
		}
		found := p.text(at, parts, content, last)
		if !last {
			continue
		}
		id = p.nullable(at+".id", own, length{max: maxID})
		text = found
	}
	return id, text
}

// text is a message's text: that of its text parts, or its content where there are none. Parts of a kind that is not
// known are passed over; clients send back all that they ever showed.
func (p *problems) text(at string, parts, content node, last bool) string {
	before := len(p.list)
	var b strings.Builder
	add := func(s string) {
		if b.Len() > 0 && s != "" {
			b.WriteByte('\n')
		}
		b.WriteString(s)
	}
	gather := func(field string, list node) {
		for i, part := range list.elements {
			where := field + "[" + strconv.Itoa(i) + "]"
			if part.is() != '{' {
				p.add(where, "must be an object, not %s", part.kind())
				continue
			}
			var kind, text node
			for name, v := range part.members {
				switch name {
				case "type":
					kind = v
				case "text":
					text = v
				}
			}
			if kind.is() != '"' {
				p.add(where+".type", "must be a string that says what the part is, not %s", kind.kind())
				continue
			}
			if kind.text() != "text" {
				continue
			}
			if text.is() != '"' {
				p.add(where+".text", "must be a string, not %s", text.kind())
				continue
			}
			if last {
				add(text.text())
			}
		}
	}
	switch parts.is() {
	case 0, 'n':
	case '[':
		gather(at+".parts", parts)
	default:
		p.add(at+".parts", "must be an array, not %s", parts.kind())
	}
	switch content.is() {
	case 0, 'n':
	case '"':
		if last && b.Len() == 0 {
			add(content.text())
		}
	case '[':
		if b.Len() == 0 {
			gather(at+".content", content)
		}
	default:
		p.add(at+".content", "must be a string, not %s", content.kind())
	}
	if !last || len(p.list) > before {
		return ""
	}
	text := strings.TrimSpace(b.String())
	field := at + ".parts"
	if parts.is() != '[' {
		field = at + ".content"
	}
	switch n := len([]rune(text)); {
	case n == 0:
		p.add(field, "must hold the question: send a text part or content that is not empty")
	case n > maxQuestion:
		p.add(field, "must have at most %d characters, and has %d: shorten it", maxQuestion, n)
	case control(text, true):
		p.add(field, "must not hold control characters: take them out")
	}
	return text
}

// ask serves an assistant message in one of the two wire forms.
func (s *Server) ask(form stream.Form) func(*exchange, bunrouter.Request) error {
	return func(x *exchange, req bunrouter.Request) error {
		turn, done, err := s.put(x, req.Request, form)
		if err != nil {
			return err
		}
		return s.follow(x, req.Request, turn, form, done)
	}
}

// put reads a question and puts it to its thread. It has returned when the answer is followed: a stream that waits for a
// model holds none of what asking took, be it on the stack.
//
//go:noinline
func (s *Server) put(x *exchange, req *http.Request, form stream.Form) (turn thread.Turn, done func(), err error) {
	x.leaves = !s.Models.Local(x.project.Model) && s.pumps.mayTake(req)
	q, err := s.readQuestion(x, req, form)
	if err != nil {
		return turn, nil, err
	}
	id, fresh := api.ThreadID(q.Thread), q.Thread == ""
	if fresh {
		id = api.ThreadID(s.IDs.New(api.ThreadPrefix, x.started))
	} else if !api.ValidID(api.ThreadPrefix, q.Thread) {
		return turn, nil, missing("thread")
	}
	x.thread = id
	end, err := s.open() // before the question is accepted: an answer that nobody may read is not begun
	if err != nil {
		return turn, nil, err
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	place, err := s.enqueue(req.Context())
	if err != nil {
		return turn, nil, err
	}
	uses := s.askUses(x)
	give, err := s.reserve(x, uses)
	if err != nil {
		place.Leave()
		return turn, nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), s.Bounds.CommandTimeout)
	turn, err = s.Threads.Ask(ctx, id, thread.Ask{
		Project: x.project, New: fresh, Turn: api.TurnID(s.IDs.New(api.TurnPrefix, x.started)),
		Message: q.Message, Chat: s.chat(x, req, q.Chat), Caller: q.Caller, Channel: channel(req), ThreadKey: or(q.ThreadKey, req.Header.Get(threadKeyHeader)), Text: q.Text,
		Context: q.Context, Query: q.Query, Regenerate: q.Regenerate, Instead: q.Instead, Key: x.key.ID, Uses: uses,
	})
	cancel()
	if err != nil {
		place.Leave()
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			give() // it was refused; otherwise it may have been accepted, and the use counts
		}
		return turn, nil, named(err, "thread")
	}
	if !turn.Fresh {
		give()
		place.Leave()
		return turn, end, nil
	}
	go func() { // a stream that lasts has no handler any more
		select {
		case <-turn.Prepared:
		case <-s.leaving.Done():
		}
		place.Leave()
	}()
	return turn, end, nil
}
