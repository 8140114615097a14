package reqbody

import (
	"cmp"
	"strconv"
	"strings"

	"docent/api"
	"docent/internal/brief"
)

// A Run is what a client of AG-UI asks.
type Run struct {
	Question
	ThreadID, RunID string // as the client calls them
}

// DecodeRun reads the input of a run of AG-UI. Its thread is one of ours if it is named so; any other is the client's
// own, which sends the conversation with each run. What its program says beside that is context. State and tools are
// passed over.
func DecodeRun(raw []byte) (r Run, err error) {
	var ps Problems
	m, err := ps.body(raw)
	if err != nil {
		return r, err
	}
	id := length{min: 1, max: MaxID}
	r.ThreadID = ps.required("threadId", m.get("threadId"), id)
	r.RunID = ps.required("runId", m.get("runId"), id)
	more := ps.object("forwardedProps", m.get("forwardedProps"))
	r.Caller = ps.nullable("forwardedProps.fp", more.get("fp"), length{max: maxCaller})
	r.Caller = cmp.Or(r.Caller, "anonymous")
	r.ThreadKey = ps.nullable("forwardedProps.threadKey", more.get("threadKey"), length{max: MaxID})
	r.Query.Limit = ps.whole("forwardedProps.retrievalPageSize", more.get("retrievalPageSize"), 1, 50, 5)
	r.Query.Filter = ps.filter("forwardedProps.filter", more.get("filter"))
	r.Query.CurrentPath = ps.nullable("forwardedProps.currentPath", more.get("currentPath"), length{max: maxPath})
	ps.conversation("messages", m.get("messages"), &r.Question, "activity", "reasoning")
	r.Setting = brief.Bytes(strings.TrimSpace(r.Setting+"\n\n"+ps.described("context", m.get("context"))), maxSetting, "")
	if api.ValidID(api.ThreadPrefix, r.ThreadID) {
		r.Thread, r.Before = r.ThreadID, nil // the thread has its own
	}
	return r, ps.Err()
}

// described reads what a program says of where it is used: entries with a description and a value.
func (p *Problems) described(field string, v value) string {
	switch is(v) {
	case none, null:
		return ""
	case brackets:
	default:
		p.Add(field, "must be an array, not %s", kind(v))
		return ""
	}
	var said []string
	for i, entry := range elements(v) {
		if i == maxSnippets {
			p.Add(field, "must have at most %d entries", maxSnippets)
			break
		}
		at := field + "[" + strconv.Itoa(i) + "]"
		if is(entry) != braces {
			p.Add(at, "must be an object with description and value, not %s", kind(entry))
			continue
		}
		m := members(entry)
		text := length{max: maxSnippet, lines: true}
		said = append(said, p.nullable(at+".description", m.get("description"), text)+": "+p.nullable(at+".value", m.get("value"), text))
	}
	return strings.Join(said, "\n")
}
