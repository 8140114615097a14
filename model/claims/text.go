package claims

import (
	"cmp"
	"slices"
	"strings"
)

// A Text is a text that claims are held against, read once.
type Text struct {
	postings  []posting // by term and place
	sentences int
	sizes     []size       // of the sentences
	alone     map[int]bool // sentences that say nothing of those beside them: rows, items, lines of code
	language  string
}

// A size is how many words a sentence has that say something, and how many negations.
type size struct{ words, negations int }

// A posting says that a sentence has a term. Sentence 0 is what the text is called.
type posting struct {
	term     uint64
	sentence int32
}

const (
	negated = "\x01" // before a word: what a sentence denies
	amounts = "\x02" // before a number: with its unit
	bare    = "\x03" // before a number: without one
	denies  = "\x04" // a sentence of a script without spaces that has a negation
)

// termOf is a term's number: FNV-1a over both parts.
func termOf(prefix, s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(prefix) {
		h = (h ^ uint64(prefix[i])) * 1099511628211
	}
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// Read reads a text in Markdown. Label is what it is called: its page, its section.
func Read(label, text string) *Text {
	t := &Text{language: Language(text), alone: map[int]bool{}}
	t.add(label, false)
	s := Splitter{Emit: func(p Piece) error {
		if p.Kind == Fence || p.Kind == FenceEnd {
			return nil
		}
		t.sentences++
		if p.Kind != Sentence || strings.TrimSpace(p.Lead) != "" {
			t.alone[t.sentences] = true
		}
		t.add(p.Text, p.Kind == Code)
		return nil
	}}
	_ = s.Write(text) // Emit fails never
	_ = s.Flush()
	t.sentences++
	slices.SortFunc(t.postings, func(a, b posting) int {
		return cmp.Or(cmp.Compare(a.term, b.term), cmp.Compare(a.sentence, b.sentence))
	})
	t.postings = slices.Clip(slices.Compact(t.postings))
	return t
}

func (t *Text) add(sentence string, coded bool) {
	put := func(prefix, term string) {
		t.postings = append(t.postings, posting{termOf(prefix, term), int32(t.sentences)})
	}
	var d denial
	var z size
	scan(sentence, t.language, coded, func(w token) {
		switch w.kind {
		case pause:
		case number:
			put("", w.text)
			if w.unit.kind != 0 {
				put(amounts, w.amount())
			} else {
				put(bare, w.text)
			}
		case code, name:
			put("", w.text)
			put("", stem(w.text))
			parts(w.text, func(p string) { put("", p); put("", stem(p)) })
			if camel := w.text; strings.HasPrefix(camel, "--no-") {
				put("", "--"+camel[5:])
			}
		default:
			put("", w.text)
			put("", stem(w.text))
		}
		if head := d.next(w); head != "" {
			put(negated, head)
		}
		switch {
		case w.kind == pause:
		case negations[w.text]:
			z.negations++
		case w.kind != plain || !functional[w.text]:
			z.words++
		}
	})
	t.sizes = append(t.sizes, z)
	if hasWide(sentence) && wideDenies(sentence) {
		put(denies, "")
	}
}

// around are the sentences that a number's meaning may stand in.
func (t *Text) around(sentence int) (first, last int) {
	if t.alone[sentence] {
		return sentence, sentence
	}
	return max(1, sentence-1), sentence + 1
}

func hasWide(s string) bool { return strings.ContainsFunc(s, wide) }

func wideDenies(s string) bool {
	return slices.ContainsFunc(cjkNegations, func(n string) bool { return strings.Contains(s, n) })
}

// A denial finds the words that a sentence denies: the first one after each negation in its part of the sentence.
type denial struct{ open, condition bool }

func (d *denial) next(t token) string {
	switch {
	case t.kind == pause:
		*d = denial{}
	case t.text == "if" || t.text == "unless" || t.text == "wenn" || t.text == "si":
		d.condition = true
	case negations[t.text]:
		d.open = !d.condition
	case t.text == "only" && d.open: // "not only"
		d.open = false
	case d.open && t.kind != number && !auxiliary[t.text]:
		d.open = false
		return stem(t.text)
	}
	return ""
}

// maxPlaces bounds how many sentences are looked at for a term: one that is everywhere tells little.
const maxPlaces = 48

// find are the places of a term.
func (t *Text) find(term uint64) []posting {
	at, _ := slices.BinarySearchFunc(t.postings, term, func(p posting, term uint64) int { return cmp.Compare(p.term, term) })
	end := at
	for end < len(t.postings) && t.postings[end].term == term && end-at < maxPlaces {
		end++
	}
	return t.postings[at:end]
}

// has reports whether a term stands in one of the sentences from first to last.
func (t *Text) has(term uint64, first, last int) bool {
	at, _ := slices.BinarySearchFunc(t.postings, posting{term, int32(first)}, func(p, q posting) int {
		return cmp.Or(cmp.Compare(p.term, q.term), cmp.Compare(p.sentence, q.sentence))
	})
	return at < len(t.postings) && t.postings[at].term == term && int(t.postings[at].sentence) <= last
}
