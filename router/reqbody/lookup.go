package reqbody

import (
	"docent/api"
	"docent/search"
)

const maxComment = 2000 // characters of what a reader says about an answer

// DecodeSearch reads what a search box asks.
func DecodeSearch(raw []byte) (q search.Query, err error) {
	var ps Problems
	m, err := ps.body(raw)
	if err != nil {
		return q, err
	}
	return search.Query{
		Text:        ps.required("query", m.get("query"), length{min: 1, max: 1000, trim: true, lines: true}),
		Limit:       ps.whole("pageSize", m.get("pageSize"), 1, 50, 10),
		Threshold:   ps.fraction("scoreThreshold", m.get("scoreThreshold"), 0, 1),
		Filter:      ps.filter("filter", m.get("filter")),
		CurrentPath: ps.nullable("currentPath", m.get("currentPath"), length{max: maxPath}),
		Box:         true,
	}, ps.Err()
}

// A Page is which page is wanted, and the groups that the reader is in.
type Page struct {
	Path   string
	Groups []string
}

// DecodePage reads it.
func DecodePage(raw []byte) (p Page, err error) {
	var ps Problems
	m, err := ps.body(raw)
	if err != nil {
		return p, err
	}
	p.Path = ps.required("path", m.get("path"), length{min: 1, max: 1000, trim: true})
	p.Groups = ps.strings("groups", m.get("groups"), 100, length{min: 1, max: maxName})
	return p, ps.Err()
}

// A Verdict is what a reader thinks of an answer.
type Verdict struct {
	Thread    string
	Message   string
	Rating    api.Rating
	Comment   string
	Caller    string
	ThreadKey string
}

// DecodeVerdict reads it.
func DecodeVerdict(raw []byte) (v Verdict, err error) {
	var ps Problems
	m, err := ps.body(raw)
	if err != nil {
		return v, err
	}
	v.Thread = ps.required("threadId", m.get("threadId"), length{min: 1, max: MaxID})
	v.Message = ps.required("messageId", m.get("messageId"), length{min: 1, max: MaxID})
	v.Rating = api.Rating(ps.enum("rating", m.get("rating"), string(api.RatedUp), string(api.RatedDown)))
	v.Comment = ps.nullable("comment", m.get("comment"), length{max: maxComment, trim: true, lines: true})
	v.Caller = ps.nullable("fp", m.get("fp"), length{max: maxCaller})
	v.ThreadKey = ps.nullable("threadKey", m.get("threadKey"), length{max: MaxID})
	return v, ps.Err()
}
