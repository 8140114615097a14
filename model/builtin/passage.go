package builtin

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"docent/model"
	"docent/model/builtin/blocks"
	"docent/search/analysis"
)

// A passage is a passage of the documentation, parsed. It is shared between answers and never changes. If its terms
// are is laid out by term, so the cost of matching a question grows with how often its terms occur and not with the
// passage.
type passage struct {
	of    model.Passage // that it is made of
	parse func()        // does the parsing, once for all who need it
	units []unit
	words int
	tabs  []tab // in their order

	terms   []uint64 // hashes of the terms that it has, sorted
	where   []where  // for each, where it is beside the text
	inUnits postings // for each, the units that have it
	inLines postings // for each, the lines that have it
	head    []uint64 // the terms of the heading, or of the title if there is none, in alphabetical order
	title   []uint64

	lineCount int
	language  string // that it is written in; empty if it does not tell
}

// A unit is one block with what is needed to weigh it.
type unit struct {
	kind        blocks.Kind
	text        string
	label       string // of code: the title that its first line has, or a tab's
	tab         bool   // of a heading: it is the title of a tab
	words       int
	fingerprint uint64   // the same for blocks with the same words
	firstLine   int      // where its sentences or lines begin in those of the passage
	lines       int      // how many it has; none if there is one only
	advises     bool     // it tells a reader what to do
	announces   bool     // it speaks of what comes after it
	refers      bool     // it points back at what comes before it
	stepped     bool     // it is a paragraph that is one of several steps: "Step 2: …"
	of          int      // the list or table that it is a part of, from 1; 0 if it stands for itself
	head        string   // of a table's row: what stands above all rows
	named       []uint64 // of a table's row: the terms of its first cell, by which it is looked up
	columns     []uint64 // the terms of that
}

type where uint8

const (
	inContext where = 1 << iota // title, heading and the headings above
	inHead
	inTitle
)

// A posting is a unit or line that has a term, and how often.
type posting struct {
	at    int32
	times uint8
}

// postings are those of all terms of a passage, term by term.
type postings struct {
	from []int32 // where those of a term begin; one more at the end
	all  []posting
}

func (m *postings) of(term int) []posting { return m.all[m.from[term]:m.from[term+1]] }

// find is the number of a term of the passage, or -1.
func (p *passage) find(hash uint64) int {
	n, ok := slices.BinarySearch(p.terms, hash)
	if !ok {
		return -1
	}
	return n
}

// An occurrence is one term at one place, before occurrences are put together by term.
type occurrence struct {
	hash uint64
	at   int32
}

// wordsOf is how many words of its grammar a text has to have before its language is told: half of a short sentence's.
func wordsOf(text string) int {
	if len(text) > 100 {
		return 5
	}
	return min(5, max(3, countWords(text)/2))
}

func newPassage(from *model.Passage) *passage {
	p := &passage{of: *from}
	p.of.Score = 0
	p.parse = sync.OnceFunc(p.fill)
	return p
}

func (p *passage) fill() {
	d := scratches.Get().(*scratch)
	defer scratches.Put(d)
	d.found, d.inLines = d.found[:0], d.inLines[:0]
	all := blocks.Parse(&p.of)
	text := running(all)
	p.language, _ = analysis.LanguageBy(text, wordsOf(text))
	for n, b := range all {
		parts, above := []string{b.Text}, ""
		words := countWords(b.Text)
		switch {
		case b.Kind == list && words > longList:
			parts = items(b.Text)
		case b.Kind == table && words > longTable:
			parts, above = blocks.Rows(b.Text)
		}
		switch {
		case b.Kind == code && slices.ContainsFunc(strings.Split(b.Text, "\n"), func(l string) bool { return len(l) > longLineOfCode }):
			words = longCode + 1
		case b.Kind == prose && words < 4 && n+1 < len(all) && all[n+1].Kind == prose && announcing(b.Text):
			continue // "Supported on:" before icons, which are no text
		}
		columns := hashesOf(above)
		for _, text := range parts {
			u := unit{kind: b.Kind, text: text, label: b.Label, tab: b.Tab, words: words, head: above, columns: columns, firstLine: p.lineCount}
			u.advises = b.Kind != code && advises(text)
			if b.Kind == prose {
				u.announces, u.refers, u.stepped = announces(text), pointsBack(text), isNumberedStep(text)
			}
			if len(parts) > 1 {
				u.of, u.words = n+1, countWords(text)
				if b.Kind == table {
					u.named = hashesOf(blocks.FirstCell(text))
				}
				for _, hash := range columns { // a row says what it says under its columns
					d.found = append(d.found, occurrence{hash, int32(len(p.units))})
				}
			}
			p.see(d, &u)
			p.words += u.words
			p.units = append(p.units, u)
		}
	}
	p.findTabs()
	d.context = d.context[:0]
	for _, t := range terms(p.of.Title + " \n" + p.of.Heading + " \n" + strings.Join(p.of.Trail, " \n")) {
		d.context = append(d.context, t.hash)
	}
	hashes := append(d.hashes[:0], d.context...)
	for _, s := range d.found {
		hashes = append(hashes, s.hash)
	}
	d.hashes = hashes
	slices.Sort(hashes)
	p.terms = slices.Clone(slices.Compact(hashes))
	p.inUnits, p.inLines = d.gather(d.found, p), d.gather(d.inLines, p)
	p.where = make([]where, len(p.terms))
	for _, hash := range d.context {
		p.where[p.find(hash)] |= inContext
	}
	p.title = p.mark(p.of.Title, inTitle)
	p.head = p.mark(cmp.Or(p.of.Heading, p.of.Title), inHead)
}

// A scratch is the working memory of parsing a passage.
type scratch struct {
	words          []word
	found, inLines []occurrence // terms, by unit and by line
	context        []uint64
	hashes         []uint64
	next           []int32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// see notes the terms of a unit and of its lines. No line ends within a word, so its words are the unit's that stand in
// it.
func (p *passage) see(d *scratch, u *unit) {
	d.words = appendWords(d.words[:0], u.text)
	lines, at, end := lines(u), 0, 0 // end is where the line that is read ends
	some := false                    // whether it has a term
	if len(lines) < 2 {
		lines = nil // the unit's own terms are those of its only line
	}
	h := uint64(len(d.words))
	for _, w := range d.words {
		for len(lines) > 0 && w.start >= end {
			if some {
				p.lineCount++
				u.lines++
				some = false
			}
			at += strings.Index(u.text[at:], lines[0])
			end = at + len(lines[0])
			at, lines = end, lines[1:]
		}
		r := analyze(w.text)
		h = h*1099511628211 ^ r.fingerprint
		for _, t := range r.terms {
			d.found = append(d.found, occurrence{t.hash, int32(len(p.units))})
			if w.start < end {
				d.inLines = append(d.inLines, occurrence{t.hash, int32(p.lineCount)})
				some = true
			}
		}
	}
	if some {
		p.lineCount++
		u.lines++
	}
	u.fingerprint = h
}

// gather puts occurrences together by term. They come in the order of their places.
func (d *scratch) gather(seen []occurrence, p *passage) postings {
	// Which term each is, and how often it occurs.
	from := make([]int32, len(p.terms)+1)
	for i := range seen {
		n, _ := slices.BinarySearch(p.terms, seen[i].hash)
		seen[i].hash = uint64(n)
		from[n+1]++
	}
	for n := range p.terms {
		from[n+1] += from[n]
	}
	m := postings{from: from, all: make([]posting, len(seen))}
	next := append(d.next[:0], from...)
	d.next = next
	for _, s := range seen {
		n := next[s.hash]
		if n > from[s.hash] && m.all[n-1].at == s.at {
			if m.all[n-1].times < 255 { // which stands for more
				m.all[n-1].times++
			}
			continue
		}
		m.all[n] = posting{s.at, 1}
		next[s.hash]++
	}
	// Close the gaps that repetitions have left.
	kept := int32(0)
	for n := range p.terms {
		first := kept
		kept += int32(copy(m.all[kept:], m.all[from[n]:next[n]]))
		from[n] = first
	}
	from[len(p.terms)] = kept
	m.all = slices.Clone(m.all[:kept])
	return m
}

// mark notes that the terms of a text stand in it, and lists them in alphabetical order.
func (p *passage) mark(text string, as where) []uint64 {
	all := terms(text)
	slices.SortFunc(all, func(a, b term) int { return strings.Compare(a.text, b.text) })
	all = slices.Compact(all)
	out := make([]uint64, len(all))
	for i, t := range all {
		out[i] = t.hash
		p.where[p.find(t.hash)] |= as
	}
	return out
}

// size is about how many bytes a passage takes once it is parsed: measured on documentation, with some to spare.
func (p *passage) size() int64 { return 1000 + 4*int64(len(p.of.Text)) }

func (p *passage) same(as *model.Passage) bool {
	o := &p.of
	return o.Text == as.Text && o.Path == as.Path && o.URL == as.URL && o.Title == as.Title && o.Heading == as.Heading &&
		slices.Equal(o.Trail, as.Trail)
}

// hashesOf are those of a text's terms, each once.
func hashesOf(text string) []uint64 {
	var out []uint64
	for _, t := range terms(text) {
		if !slices.Contains(out, t.hash) {
			out = append(out, t.hash)
		}
	}
	return out
}

// running is the running text that blocks begin with, as much as tells its language.
func running(all []blocks.Block) string {
	var out strings.Builder
	for _, b := range all {
		if b.Kind != code && out.Len() < 1000 {
			out.WriteString(b.Text)
			out.WriteByte(' ')
		}
	}
	return out.String()
}
