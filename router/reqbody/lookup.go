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

// An Answer is the one that a reader says something about.
type Answer struct {
	Thread    string
	Message   string
	Caller    string
	ThreadKey string
}

func (p *Problems) answer(m object) Answer {
	return Answer{Thread: p.required("threadId", m.get("threadId"), length{min: 1, max: MaxID}),
		Message:   p.required("messageId", m.get("messageId"), length{min: 1, max: MaxID}),
		Caller:    p.nullable("fp", m.get("fp"), length{max: maxCaller}),
		ThreadKey: p.nullable("threadKey", m.get("threadKey"), length{max: MaxID})}
}

// A Contact is what a reader writes to people, at the answer with which they leave.
type Contact struct {
	Answer
	Name   string
	Email  string
	Text   string
	Public bool // the reader was told that it may become public
}

// What people who read it take in at a glance, and what addresses may have (RFC 5321).
const (
	maxContact = 4000
	maxPerson  = 100
	maxEmail   = 254
)

// DecodeContact reads it.
func DecodeContact(raw []byte) (c Contact, err error) {
	var ps Problems
	m, err := ps.body(raw)
	if err != nil {
		return c, err
	}
	c.Answer = ps.answer(m)
	c.Text = ps.required("message", m.get("message"), length{min: 1, max: maxContact, trim: true, lines: true})
	c.Name = ps.nullable("name", m.get("name"), length{max: maxPerson, trim: true})
	c.Email = ps.nullable("email", m.get("email"), length{max: maxEmail, trim: true})
	c.Public = ps.nullableBoolean("public", m.get("public"))
	if c.Email != "" && !api.ValidMail(c.Email) {
		ps.Add("email", "must be an email address such as ada@example.com")
	}
	return c, ps.Err()
}

// A Verdict is what a reader thinks of an answer.
type Verdict struct {
	Answer
	Rating  api.Rating
	Comment string
}

// DecodeVerdict reads it.
func DecodeVerdict(raw []byte) (v Verdict, err error) {
	var ps Problems
	m, err := ps.body(raw)
	if err != nil {
		return v, err
	}
	v.Answer = ps.answer(m)
	v.Rating = api.Rating(ps.enum("rating", m.get("rating"), string(api.RatedUp), string(api.RatedDown)))
	v.Comment = ps.nullable("comment", m.get("comment"), length{max: maxComment, trim: true, lines: true})
	return v, ps.Err()
}
