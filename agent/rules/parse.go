// Package rules reads instructions of fixed forms without a language model: a prompt becomes a list of operations, or a
// Misunderstanding that says which part was not understood, and the nearest form. It guesses nothing.
//
// Parse cuts the prompt into tokens (lex.go), matches the forms (forms.go, in the notation of pattern.go) and passes
// over what cannot be an instruction (prompt.go).
package rules

import (
	"fmt"
	"slices"
	"strings"

	"docent/agent/edit"
	"docent/agent/say"
)

// A Memory is what earlier instructions were about, for "it" and "the same".
type Memory struct {
	page string           // the page that was named last
	term [2]string        // the term that was renamed last, and to what
	ops  []edit.Operation // of the last instruction that was understood

	Guide   Guide       // to the pages; nil if there is none
	Context []string    // what the prompt says that is no instruction
	lead    *edit.Scope // what was said before the instruction that is read
}

// A parser reads the instructions of one prompt.
type parser struct {
	src   string
	toks  []token
	steps int // spent on matching an operation; bounds what hostile input may cost
	spent int // on the operations before

	formed bool // the last operation that was not understood had the words of a form
}

// A Misunderstanding says which part of a prompt was not understood, and why if that is known.
type Misunderstanding struct {
	Part, Why string
	Nearest   string // the form that comes nearest, with the prompt's own words
	Detail    bool   // all but a detail was understood
	Others    bool   // other parts were understood
}

func (e *Misunderstanding) Error() string {
	s := "I did not understand " + say.Quote(e.Part)
	if e.Detail {
		s = "More detail is needed for " + say.Quote(e.Part)
	}
	if e.Why != "" {
		s += ": " + e.Why
	}
	return s + "."
}

const narrows = "it narrows what comes before it: say so in one instruction"

const (
	maxPrompt     = 100_000
	maxOperations = 100
)

// Parse reads a prompt as a list of operations, or says what it did not understand. It changes nothing but the memory.
func Parse(prompt string, m *Memory) ([]edit.Operation, error) {
	if len(prompt) > maxPrompt {
		return nil, &Misunderstanding{Part: prompt, Why: "it is too long"}
	}
	p := &parser{src: prompt, toks: lex(prompt)}
	var ops []edit.Operation
	var led leading
	var sentence []edit.Operation // that work in a scope, of the sentence that is read
	end := 0                      // of the instruction before
	m.lead = nil
	defer func() { m.lead = nil }()
	m.Context = nil
	pos := p.skip(0)
	for pos < len(p.toks) {
		if len(ops) == maxOperations {
			return nil, &Misunderstanding{Part: p.sentence(pos), Why: fmt.Sprintf("more than %d operations in one instruction",
				maxOperations)}
		}
		begin := pos
		if to, until, ok := p.lead(pos, m); ok {
			pos, led.until, led.first = to, until, true
		} else if begin >= led.until && m.lead != nil {
			led.past, m.lead = m.lead, nil
		}
		op, to, why := p.operation(pos, m)
		if op == nil {
			if end, said := p.aside(pos); end > pos && pos == begin {
				if said != "" {
					m.Context = append(m.Context, said)
				}
				pos = p.skip(end)
				continue
			}
			if hole(p.toks[begin:p.sentenceEnd(pos)]) {
				return nil, unfilled(p.sentence(begin), len(ops) > 0)
			}
			var mis *Misunderstanding
			if op, to, mis = p.byTitle(pos, m); op == nil {
				if mis == nil {
					mis = &Misunderstanding{Part: p.sentence(begin), Why: why, Nearest: p.nearest(begin, p.sentenceEnd(pos), "PAGE"),
						Detail: p.formed}
				}
				mis.Others = len(ops) > 0
				return nil, mis
			}
		}
		if hole(p.toks[begin:to]) {
			return nil, unfilled(p.sentence(begin), len(ops) > 0)
		}
		if why := led.settle(op, m.lead); why != "" {
			return nil, &Misunderstanding{Part: p.sentence(begin), Why: why, Detail: true, Others: len(ops) > 0}
		}
		if p.ended(end, begin) {
			sentence = nil
		}
		for _, one := range edit.Members(op) {
			if _, ok := one.(edit.Scoped); !ok {
				continue
			}
			if why := oneOfAll(sentence, one); why != "" {
				return nil, &Misunderstanding{Part: p.sentence(begin), Why: why, Detail: true, Others: len(ops) > 0}
			}
			sentence = append(sentence, one)
		}
		end = to
		ops = append(ops, op)
		m.ops = []edit.Operation{op}
		pos = p.skip(to)
	}
	if len(ops) == 0 {
		return nil, &Misunderstanding{Part: prompt, Why: "it asks for nothing"}
	}
	m.ops = ops
	return ops, nil
}

// unfilled says that a form was sent as a hint shows it.
func unfilled(part string, others bool) error {
	return &Misunderstanding{Part: part, Why: "“…” and PAGE stand for words of yours: fill them in", Detail: true, Others: others}
}

// operation reads the longest form that matches at pos.
func (p *parser) operation(pos int, m *Memory) (edit.Operation, int, string) {
	type found struct {
		form int
		to   int
		c    captures
	}
	var best found
	p.formed = false
	p.spent += p.steps
	p.steps = 0
	for i, f := range patterns {
		f.root.match(p, pos, nil, func(to int, c captures) bool {
			if to > pos && to > best.to && p.ends(to) {
				best = found{i, to, c}
			}
			return false // go on: the longest counts
		})
	}
	if !p.within() {
		return nil, 0, "it is too tangled"
	}
	if best.to == 0 {
		return nil, 0, ""
	}
	if patterns[best.form].again && pos > 0 && p.toks[pos-1].low == "but" {
		return nil, 0, narrows
	}
	for _, x := range best.c {
		if at, found := p.instructionIn(x.rest); found {
			return nil, 0, "where its content ends is not certain, as " + say.Quote(p.sentence(at)) +
				" in it reads as an instruction: put the content in quotes or in a fenced block"
		}
	}
	saved := *m
	op, err := patterns[best.form].build(best.c, m)
	if err != nil {
		*m = saved
		p.formed = true
		return nil, 0, err.Error()
	}
	return op, best.to, ""
}

// instructionIn looks for an instruction in content that runs to the end of the prompt, behind its first sentence.
func (p *parser) instructionIn(rest int) (pos int, found bool) {
	if rest == 0 {
		return 0, false
	}
	for pos = rest + 1; pos < len(p.toks) && p.within(); pos++ {
		if before := p.toks[pos-1]; before.low != "then" && !p.ended(pos-1, pos) ||
			before.kind == word && before.low != "then" {
			continue
		}
		at := p.skip(pos)
		if at >= len(p.toks) || p.toks[at].kind != word || !verbs[p.toks[at].low] {
			continue
		}
		for _, f := range patterns {
			if f.again {
				continue
			}
			if f.root.match(p, at, nil, func(to int, _ captures) bool { return to > at && p.ends(to) }) {
				return at, true
			}
		}
	}
	return 0, !p.within()
}

// ends reports whether an operation may end before the token at pos.
func (p *parser) ends(pos int) bool {
	if pos >= len(p.toks) {
		return true
	}
	t := p.toks[pos]
	switch t.kind {
	case mark:
		return strings.Contains(".;!,?•)", t.text)
	case newline:
		return true
	case word:
		return slices.Contains([]string{"and", "then", "also", "please", "thanks", "thank", "finally", "next", "but", "&",
			"because", "since", "—", "–"}, t.low)
	}
	return false
}

var fillers = [][]string{
	{"please"}, {"kindly"}, {"could", "you"}, {"can", "you"}, {"would", "you"}, {"will", "you"},
	{"i", "want", "you", "to"}, {"i", "would", "like", "you", "to"},
	{"i'd", "like", "you", "to"}, {"i", "need", "you", "to"}, {"you", "should"}, {"we", "should"}, {"let's"},
	{"let", "us"}, {"then"}, {"and"}, {"also"}, {"next"}, {"finally"},
	{"first"}, {"second"}, {"third"}, {"after", "that"}, {"afterwards"}, {"now"}, {"just"}, {"docent"},
	{"do", "the", "following"},
	{"make", "the", "following", "changes"}, {"make", "these", "changes"}, {"apply", "the", "following", "changes"},
	{"do", "this"}, {"for", "me"}, {"ok"}, {"okay"}, {"but"}, {"&"}, {"afterward"}, {"lastly"},
	{"do", "these", "things"}, {"in", "addition"}, {"search", "and"}, {"find", "and"}, {"in", "the", "docs"},
	{"in", "our", "docs"}, {"throughout", "the", "docs"}, {"in", "the", "documentation"}, {"additionally"}, {"—"},
	{"–"}, {"could", "someone"}, {"can", "someone"},
}

// skip passes over what stands between operations: marks, line ends and words of courtesy.
func (p *parser) skip(pos int) int {
next:
	for pos < len(p.toks) {
		t := p.toks[pos]
		if t.kind == newline || t.kind == mark {
			pos++
			continue
		}
		if t.kind == word {
			for _, f := range fillers {
				if pos+len(f) <= len(p.toks) && func() bool {
					for i, w := range f {
						if p.toks[pos+i].low != w {
							return false
						}
					}
					return true
				}() {
					pos += len(f)
					continue next
				}
			}
		}
		return pos
	}
	return pos
}

// lead reads “In guides/a.md, …” and “In the headings: …”, which is where the instructions of its sentence
// work. With a colon at the end of its line it is for the lines below. What it says is in m.lead; until is the token
// where that ends.
func (p *parser) lead(pos int, m *Memory) (to, until int, ok bool) {
	var best captures
	last := 0
	leadNode.match(p, pos, nil, func(at int, c captures) bool {
		if at == pos || at <= last {
			return false
		}
		next := p.skip(at)
		if next < len(p.toks) && p.toks[next].kind == word && verbs[p.toks[next].low] && (p.colon(at) || !p.ended(at, next)) {
			last, best = at, c
		}
		return false // go on: the longest counts
	})
	if last == 0 {
		return 0, 0, false
	}
	s := readScope(best, m)
	s.Only = false
	m.lead = &s
	m.page = ""
	if len(s.In) == 1 && len(s.In[0]) == 1 && s.In[0][0].Kind != edit.FolderPlace &&
		!strings.HasSuffix(s.In[0][0].Name, "/") && !strings.ContainsAny(s.In[0][0].Name, "*?[{") {
		m.page = s.In[0][0].Name
	}
	to = p.skip(last)
	list := p.colon(last) && slices.ContainsFunc(p.toks[last:to], func(t token) bool { return t.kind == newline })
	for until = to; until < len(p.toks); until++ {
		t := p.toks[until]
		below := list && t.kind == newline && until+1 < len(p.toks) && p.toks[until+1].kind == newline
		if below || !list && p.ended(until, until+1) && !(t.text == ";" && p.colon(last)) {
			break
		}
	}
	return to, until, true
}

// colon reports whether a colon stands right before or behind the border of two tokens.
func (p *parser) colon(at int) bool {
	return p.toks[at-1].is(":") || at < len(p.toks) && p.toks[at].is(":")
}

// ended reports whether a sentence, a line or an item of a list ends between two tokens.
func (p *parser) ended(from, to int) bool {
	return slices.ContainsFunc(p.toks[from:to], token.ends)
}

// What was said before instructions, while a prompt is read.
type leading struct {
	until int         // the token where it ends
	first bool        // the next instruction is the first one after it
	past  *edit.Scope // what has ended
}

// settle narrows an operation by what was said before it, or tells why it cannot.
func (l *leading) settle(op edit.Operation, lead *edit.Scope) string {
	first := l.first
	l.first = false
	if list := edit.Members(op); len(list) != 1 || list[0] != op {
		for _, one := range list {
			l.first = first
			if why := l.settle(one, lead); why != "" {
				return why
			}
		}
		l.first = false
		return ""
	}
	s := op.Where()
	switch {
	case s == nil && first:
		return fmt.Sprintf("“%s” is not limited to places: write the page with its folder in the instruction itself",
			say.LowerFirst(op.Todo()))
	case s == nil:
		return ""
	case lead != nil:
		s.Narrow(*lead)
	case l.past != nil && !s.Placed():
		return fmt.Sprintf("it does not say whether it is %s too, or everywhere", *l.past)
	}
	for _, list := range s.In {
		for _, in := range list {
			if in.Name == "" {
				return "nothing before it says which page is meant"
			}
		}
	}
	return ""
}

// oneOfAll refuses a sentence in which one instruction says where it works and another does not: it may be meant for
// both.
func oneOfAll(sentence []edit.Operation, op edit.Operation) string {
	s := op.Where()
	for _, other := range sentence {
		if o := other.Where(); o.Placed() != s.Placed() {
			placed := s
			if o.Placed() {
				placed = o
			}
			return fmt.Sprintf("one part of it says where, and another does not: say %s or “everywhere” in each",
				say.Quote(placed.String()))
		}
	}
	return ""
}

// Words that instructions begin with.
var verbs = wordSet(
	`replace substitute swap exchange change convert update turn use remove delete drop rename insert add put place write append prepend create make move fix correct set give undo edit label mark list normalise normalize find retitle relocate repair resolve unset clear hide strip prefer tag spell link unlink point revert apply repeat do include`)

// sentence is the part of the prompt that begins at a token, up to the end of its sentence or line.
func (p *parser) sentence(pos int) string {
	if pos >= len(p.toks) {
		return p.src
	}
	end := len(p.src)
	for _, t := range p.toks[pos:] {
		if t.kind == newline || t.kind == mark && strings.Contains(".;!•", t.text) {
			end = t.start
			break
		}
	}
	return strings.TrimSpace(p.src[p.toks[pos].start:end])
}
