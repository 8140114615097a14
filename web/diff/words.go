package diff

import (
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"
)

const (
	maxCompared = 400 // pairs of lines of one block that are compared with each other
	likeness    = 35  // per cent of their words that two lines have in common, at least, to be counterparts
)

// pair finds the counterparts among a hunk's lines, and the words that changed in them.
func (h *Hunk) pair() {
	for i := 0; i < len(h.Lines); {
		if k := h.Lines[i].Kind; k != Deleted && k != Added {
			i++
			continue
		}
		from, mid, to := h.block(i)
		h.pairBlock(from, mid, to)
		i = to
	}
}

// A side is one line of a block as it is compared.
type side struct {
	at    int // in the hunk
	words []string
	bag   map[string]int // bytes of each word
	size  int            // of all words
}

func (h *Hunk) sidesOf(from, to int, kind Kind) []side {
	var out []side
	for i := from; i < to; i++ {
		if h.Lines[i].Kind != kind {
			continue
		}
		s := side{at: i, words: split(h.Lines[i].Text), bag: map[string]int{}}
		for _, w := range s.words {
			if isWord(w) {
				s.bag[w] += len(w)
				s.size += len(w)
			}
		}
		out = append(out, s)
	}
	return out
}

func (h *Hunk) pairBlock(from, mid, to int) {
	old, new := h.sidesOf(from, mid, Deleted), h.sidesOf(mid, to, Added)
	if len(old) == 0 || len(new) == 0 {
		return
	}
	if len(old)*len(new) > maxCompared {
		// So many lines are a rewrite, or the same edit in each: the first with the first.
		for i := range min(len(old), len(new)) {
			if alike(old[i], new[i]) >= likeness {
				h.join(old[i], new[i])
			}
		}
		return
	}
	// The pairs, in order, whose likeness is the most altogether.
	best := make([][]int, len(old)+1)
	for i := range best {
		best[i] = make([]int, len(new)+1)
	}
	like := make([][]int, len(old))
	for i := len(old) - 1; i >= 0; i-- {
		like[i] = make([]int, len(new))
		for k := len(new) - 1; k >= 0; k-- {
			best[i][k] = max(best[i+1][k], best[i][k+1])
			if like[i][k] = alike(old[i], new[k]); like[i][k] >= likeness {
				best[i][k] = max(best[i][k], best[i+1][k+1]+like[i][k])
			}
		}
	}
	for i, k := 0, 0; i < len(old) && k < len(new); {
		switch {
		case like[i][k] >= likeness && best[i][k] == best[i+1][k+1]+like[i][k]:
			h.join(old[i], new[k])
			i, k = i+1, k+1
		case best[i][k] == best[i+1][k]:
			i++
		default:
			k++
		}
	}
}

// alike is how much of two lines is the same, in per cent of both.
func alike(a, b side) int {
	if a.size+b.size == 0 { // no words: a rule, a fence, an empty line
		return 0
	}
	if len(a.bag) > len(b.bag) {
		a, b = b, a
	}
	common := 0
	for w, n := range a.bag {
		common += min(n, b.bag[w])
	}
	return 200 * common / (a.size + b.size)
}

// join makes two lines counterparts.
func (h *Hunk) join(old, new side) {
	a, b := &h.Lines[old.at], &h.Lines[new.at]
	a.mate, b.mate = new.at-old.at, old.at-new.at
	var left, right pieces
	at, to := 0, 0
	for _, d := range lcs.DiffLines(old.words, new.words) { // which gives up after a hundred differences
		left.add(false, old.words[at:d.Start]...)
		right.add(false, new.words[to:d.ReplStart]...)
		left.add(true, old.words[d.Start:d.End]...)
		right.add(true, new.words[d.ReplStart:d.ReplEnd]...)
		at, to = d.End, d.ReplEnd
	}
	left.add(false, old.words[at:]...)
	right.add(false, new.words[to:]...)
	a.Pieces, b.Pieces = left.list(), right.list()
}

// pieces are a line in parts, while it is put together.
type pieces struct {
	parts []part
}

type part struct {
	words   []string
	size    int
	changed bool
	bare    bool // it has no word
}

func (p *pieces) add(changed bool, words ...string) {
	if len(words) == 0 {
		return
	}
	q := part{words: words, changed: changed, bare: true}
	for _, w := range words {
		q.size += len(w)
		q.bare = q.bare && !isWord(w)
	}
	p.parts = append(p.parts, q)
}

// list are the pieces as they are shown: a blank or a comma between two changes is part of one change.
func (p *pieces) list() []Piece {
	var out []Piece
	var text []byte
	changed := false
	flush := func() {
		if len(text) > 0 {
			out = append(out, Piece{string(text), changed})
		}
		text = text[:0]
	}
	for i, q := range p.parts {
		now := q.changed
		if !now && q.bare && q.size <= 3 && i > 0 && p.parts[i-1].changed && i+1 < len(p.parts) && p.parts[i+1].changed {
			now = true
		}
		if now != changed {
			flush()
			changed = now
		}
		for _, w := range q.words {
			text = append(text, w...)
		}
	}
	flush()
	return out
}

// split cuts a line into words, blanks, and single other characters.
func split(s string) []string {
	var out []string
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		class := classOf(r)
		for n < len(s) && class != other {
			next, size := utf8.DecodeRuneInString(s[n:])
			if classOf(next) != class {
				break
			}
			n += size
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

const (
	other = iota
	wordy
	blank
)

func classOf(r rune) int {
	switch {
	case unicode.IsLetter(r) && !ideograph(r), unicode.IsDigit(r), unicode.IsMark(r), r == '_':
		return wordy
	case unicode.IsSpace(r):
		return blank
	}
	return other
}

// ideograph tells the scripts that write no blanks between words: there each character is compared.
func ideograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer)
}

func isWord(w string) bool {
	r, _ := utf8.DecodeRuneInString(w)
	return classOf(r) == wordy || ideograph(r)
}
