// Package evaluation judges answers. People write questions down, with the pages that an answer has to cite and the
// facts that its text has to hold; what is asked is judged without a model, and two runs are compared question by
// question.
package evaluation

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"docent/internal/formats"
)

// Kinds of questions that name none.
const (
	KindQuestion     = "question"
	KindFollowUp     = "follow-up"
	KindUnanswerable = "unanswerable"
)

// MostTurns is how many questions a conversation may have.
const MostTurns = 10

// A Set is the questions of a file. Those of one conversation are asked in one thread, in their order.
type Set struct{ Conversations [][]Question }

// Questions lists the questions of all conversations.
func (s Set) Questions() []Question { return slices.Concat(s.Conversations...) }

// A Question is what is asked and what its answer is judged by.
type Question struct {
	ID           string
	Ask          string
	Kind         string // a row of the table
	Tags         []string
	Sources      []string // path, path#anchor or URL; citing one of them is enough
	Facts        []Fact   // the text has to hold all of them
	Unanswerable bool     // the documentation does not say it
	Open         bool     // nobody has said what answers it: it is asked, shown and not judged

	Version, Language, CurrentPath string
	Line                           int // in the file
}

// A Fact is held by a text that has one of the strings, or that the expression matches.
type Fact struct {
	Any     []string
	Matches *regexp.Regexp
}

// String is the fact as its file has it.
func (f Fact) String() string {
	if f.Matches != nil {
		return "matches " + strings.TrimPrefix(f.Matches.String(), anyCase)
	}
	return strings.Join(f.Any, " | ")
}

// anyCase begins each expression.
const anyCase = "(?i)"

// A Problem is a line of a file that cannot be used, with what to write instead.
type Problem struct {
	File    string
	Line    int
	Field   string
	Message string
}

func (p *Problem) Error() string {
	at := p.File
	if p.Line > 0 {
		at += fmt.Sprintf(":%d", p.Line)
	}
	if p.Field != "" {
		at += ": " + p.Field
	}
	return at + ": " + p.Message
}

// reader reads one file and gathers what is wrong with it.
type reader struct {
	file     string
	problems []error
	ids      map[string]int // the line of each
}

func (r *reader) add(n *yaml.Node, field, format string, args ...any) {
	p := &Problem{File: r.file, Field: field, Message: fmt.Sprintf(format, args...)}
	if n != nil {
		p.Line = n.Line
	}
	r.problems = append(r.problems, p)
}

// mostProblems are told at once.
const mostProblems = 20

// Read reads a file of questions. The error joins a *Problem for each thing that is wrong with it.
func Read(file string, src []byte) (Set, error) {
	r := &reader{file: file, ids: map[string]int{}}
	var doc yaml.Node
	if err := formats.YAML(src, &doc); err != nil {
		return Set{}, &Problem{File: file, Message: "is no YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	set := r.document(&doc)
	if n := len(r.problems); n > mostProblems {
		r.problems = append(r.problems[:mostProblems], fmt.Errorf("and %d more", n-mostProblems))
	}
	return set, errors.Join(r.problems...)
}

func (r *reader) document(doc *yaml.Node) (set Set) {
	const want = "begin the file with `questions:`, and below it a list whose entries have `ask:`"
	if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		r.add(nil, "", "has no questions: %s", want)
		return set
	}
	root := r.fields(doc.Content[0], "", "questions")
	list := root["questions"]
	if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		r.add(doc.Content[0], "questions", "must be a list of questions: %s", want)
		return set
	}
	for i, n := range list.Content {
		at := fmt.Sprintf("questions[%d]", i)
		if n = target(n); n.Kind != yaml.MappingNode {
			r.add(n, at, "must be an entry with `ask:` or `conversation:`, not %s", shape(n))
			continue
		}
		if !has(n, "conversation") {
			set.Conversations = append(set.Conversations, []Question{r.question(n, at, false)})
			continue
		}
		turns := r.fields(n, at, "conversation")["conversation"]
		if turns == nil || turns.Kind != yaml.SequenceNode || len(turns.Content) == 0 || len(turns.Content) > MostTurns {
			r.add(n, at+".conversation", "must be a list of 1 to %d questions, each with `ask:`", MostTurns)
			continue
		}
		var conversation []Question
		for k, turn := range turns.Content {
			at := fmt.Sprintf("%s.conversation[%d]", at, k)
			if turn = target(turn); turn.Kind != yaml.MappingNode {
				r.add(turn, at, "must be an entry with `ask:`, not %s", shape(turn))
				continue
			}
			conversation = append(conversation, r.question(turn, at, k > 0))
		}
		set.Conversations = append(set.Conversations, conversation)
	}
	return set
}

var questionFields = []string{"id", "ask", "kind", "tags", "sources", "facts", "unanswerable", "open", "version",
	"language", "currentPath"}

func (r *reader) question(n *yaml.Node, at string, follows bool) Question {
	f := r.fields(n, at, questionFields...)
	q := Question{Line: n.Line, Ask: strings.TrimSpace(r.text(f["ask"], at+".ask")), ID: r.text(f["id"], at+".id"),
		Kind: r.text(f["kind"], at+".kind"), Tags: r.texts(f["tags"], at+".tags"),
		Sources: r.texts(f["sources"], at+".sources"), Unanswerable: r.flag(f["unanswerable"], at+".unanswerable"),
		Open: r.flag(f["open"], at+".open"), Version: r.text(f["version"], at+".version"),
		Language: r.text(f["language"], at+".language"), CurrentPath: r.text(f["currentPath"], at+".currentPath")}
	if q.Ask == "" {
		r.add(n, at+".ask", "is missing: write the question that a reader asks")
	}
	q.Facts = r.facts(f["facts"], at+".facts")
	switch judged := len(q.Sources)+len(q.Facts) > 0; {
	case q.Unanswerable && judged:
		r.add(n, at+".unanswerable", "a question that the documentation does not answer has no sources and no facts: take them out")
	case q.Unanswerable && q.Open:
		r.add(n, at+".open", "a question is open or unanswerable, not both: take one out")
	case !q.Unanswerable && !q.Open && !judged && len(r.problems) == 0:
		r.add(n, at, "says nothing to judge the answer by: add `sources:`, `facts:` or `unanswerable: true`; `open: true` has it asked without being judged")
	}
	if q.Kind == "" {
		switch {
		case q.Unanswerable:
			q.Kind = KindUnanswerable
		case follows:
			q.Kind = KindFollowUp
		default:
			q.Kind = KindQuestion
		}
	}
	r.name(&q, n, at)
	return q
}

// name gives a question without an id one made of its text. Runs are compared by ids.
func (r *reader) name(q *Question, n *yaml.Node, at string) {
	made := q.ID == ""
	if made {
		q.ID = slug(q.Ask)
	}
	first, taken := r.ids[q.ID]
	if taken && !made {
		r.add(n, at+".id", "is that of line %d too: runs are compared by ids, so give each question one of its own", first)
	}
	if taken && made { // two conversations may have the same follow-up
		base := q.ID
		for k := 2; taken; k++ {
			q.ID = fmt.Sprintf("%s-%d", base, k)
			_, taken = r.ids[q.ID]
		}
	}
	r.ids[q.ID] = n.Line
}

// slugMost is how many bytes of a question its id has.
const slugMost = 60

// slug is the words of a text in small letters with hyphens between.
func slug(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	out := ""
	for _, w := range words {
		if len(out)+1+len(w) > slugMost && out != "" {
			break
		}
		if out != "" {
			out += "-"
		}
		out += w
	}
	return out
}

func (r *reader) facts(n *yaml.Node, at string) (facts []Fact) {
	if n == nil {
		return nil
	}
	list := n.Content
	if n.Kind != yaml.SequenceNode { // one fact is a list of one
		list = []*yaml.Node{n}
	}
	for i, e := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		switch e = target(e); e.Kind {
		case yaml.ScalarNode:
			facts = append(facts, Fact{Any: []string{r.text(e, at)}})
		case yaml.MappingNode:
			f := r.fields(e, at, "any", "matches")
			switch anyOf, pattern := f["any"], f["matches"]; {
			case anyOf != nil && pattern == nil:
				fact := Fact{Any: r.texts(anyOf, at+".any")}
				if len(fact.Any) == 0 {
					r.add(e, at+".any", "must have at least one string")
				}
				facts = append(facts, fact)
			case pattern != nil && anyOf == nil:
				re, err := regexp.Compile(anyCase + r.text(pattern, at+".matches"))
				if err != nil {
					r.add(pattern, at+".matches", "is no regular expression (RE2): %v; put it into single quotes, and a \\ before signs that stand for themselves", err)
					continue
				}
				facts = append(facts, Fact{Matches: re})
			default:
				r.add(e, at, "must be a string, or have either `any:` (strings of which one is enough) or `matches:` (a regular expression)")
			}
		default:
			r.add(e, at, "must be a string, `any:` or `matches:`, not %s", shape(e))
		}
	}
	return facts
}

// fields are the values of a mapping by their names. Unknown names are problems.
func (r *reader) fields(n *yaml.Node, at string, known ...string) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], target(n.Content[i+1])
		field := strings.TrimPrefix(at+"."+key.Value, ".")
		switch {
		case !slices.Contains(known, key.Value):
			r.add(key, field, "is unknown; there are %s", strings.Join(known, ", "))
		case out[key.Value] != nil:
			r.add(key, field, "stands twice: take one out")
		case value.Tag != "!!null":
			out[key.Value] = value
		}
	}
	return out
}

func (r *reader) text(n *yaml.Node, at string) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		r.add(n, at, "must be a string, not %s: put it into quotes where it begins with { or [", shape(n))
		return ""
	}
	if strings.TrimSpace(n.Value) == "" {
		r.add(n, at, "must not be empty")
	}
	return n.Value
}

// texts reads a list of strings; one string is a list of one.
func (r *reader) texts(n *yaml.Node, at string) (out []string) {
	switch {
	case n == nil:
	case n.Kind == yaml.ScalarNode:
		out = append(out, r.text(n, at))
	case n.Kind == yaml.SequenceNode:
		for i, e := range n.Content {
			out = append(out, r.text(target(e), fmt.Sprintf("%s[%d]", at, i)))
		}
	default:
		r.add(n, at, "must be a list of strings, not %s", shape(n))
	}
	return out
}

func (r *reader) flag(n *yaml.Node, at string) bool {
	if n == nil {
		return false
	}
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
		r.add(n, at, "must be true or false")
	}
	return n.Value == "true"
}

// target is what an alias stands for.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func has(n *yaml.Node, name string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}

func shape(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an entry with fields"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return "the text " + fmt.Sprintf("%.40q", n.Value)
	}
	return "nothing"
}
