package markup

import (
	"bytes"
	"slices"
	"strings"
)

const maxBrackets = 32 // open at once

type bracket struct {
	at, text int
	image    bool
	nested   bool // holds a pair of brackets
	delims   int  // delimiters before it
}

type delimiter struct {
	at, n, run  int // run is how many there were; n of them have no partner yet
	ch          byte
	open, close bool
}

// A walker reads the running text of a leaf, between its atoms: links, emphasis, cells and bare URLs.
type walker struct {
	*scanner
	ls         *leafScan
	start, end int
	table      int // from here on the leaf is a table
	i          int // what is read next
	stop       int // where the next atom begins
	nextAtom   int
	stack      []bracket
	inactive   int // brackets of the stack that cannot become a link: one would be within another
	delims     []delimiter
}

// walk reads the running text of a leaf.
func (s *scanner) walk(ls *leafScan, start, end int) {
	w := &walker{scanner: s, ls: ls, start: start, end: end, table: s.tableFrom(ls, start, end), i: start}
	if w.table < end {
		s.p.Tables = append(s.p.Tables, Span{w.table, end})
	}
	if !ls.heading && start < w.table {
		s.p.Blocks = append(s.p.Blocks, Span{start, w.table})
	}
	for w.i < end {
		s.steps++
		if w.atom() {
			continue
		}
		switch c := s.src[w.i]; c {
		case '!':
			if w.i+1 < w.stop && s.src[w.i+1] == '[' {
				w.open(bracket{at: w.i, text: w.i + 2, image: true})
				w.i++
			}
			w.i++
		case '[':
			w.open(bracket{at: w.i, text: w.i + 1})
			w.i++
		case ']':
			w.close()
		case '*', '_', '~':
			w.delimiters(c)
		case '|':
			if w.i >= w.table {
				s.mark(w.i, w.i+1, markSpace)
			}
			w.i++
		case '\n':
			w.newline()
		case 'h', 'w', 'H':
			w.url()
		default:
			w.i++
		}
	}
	s.emphasis(w.delims)
}

// atom passes over an atom that begins here, and finds out where the next one does.
func (w *walker) atom() bool {
	atoms := w.ls.atoms
	for w.nextAtom < len(atoms) && atoms[w.nextAtom].End <= w.i {
		w.nextAtom++
	}
	w.stop = w.end
	if w.nextAtom == len(atoms) {
		return false
	}
	next := atoms[w.nextAtom]
	if next.Start <= w.i {
		w.i = next.End
		w.nextAtom++
		return true
	}
	w.stop = min(w.stop, next.Start)
	return false
}

func (w *walker) open(b bracket) {
	b.delims = len(w.delims)
	if w.stack = append(w.stack, b); len(w.stack) > maxBrackets { // the text of each is read with all that it holds
		w.stack = w.stack[1:]
		w.inactive = max(0, w.inactive-1)
	}
}

// close reads a closing bracket: the text of a link or an image, of a reference, or of nothing.
func (w *walker) close() {
	n := len(w.stack) - 1
	if n < 0 {
		w.i++
		return
	}
	b := w.stack[n]
	w.stack = w.stack[:n]
	if n > 0 {
		w.stack[n-1].nested = true
	}
	alive := b.image || n >= w.inactive
	if alive && w.inlineLink(b) || w.reference(b, alive) {
		return
	}
	w.i++
}

// inlineLink reads the destination of a link or an image.
func (w *walker) inlineLink(b bracket) bool {
	if w.i+1 >= w.end || w.src[w.i+1] != '(' {
		return false
	}
	at, e := w.destination(w.ls, w.i+1, w.end)
	if e == 0 {
		return false
	}
	kind := InlineLink
	if b.image {
		kind = ImageLink
	} else {
		w.inactive = len(w.stack)
	}
	w.p.Links = append(w.p.Links, Link{Kind: kind, Dest: string(w.src[at.Start:at.End]), Span: Span{b.at, e}, At: at,
		Inner: Span{b.text, w.i}})
	w.mark(b.at, b.text, markHidden)
	w.mark(w.i, e, markHidden)
	w.emphasis(w.delims[b.delims:]) // nothing within pairs with anything outside
	w.delims = w.delims[:b.delims]
	w.i = e
	w.inactive = min(w.inactive, len(w.stack))
	return true
}

// reference reads what stands in brackets without a destination: a reference in one of its forms, or the mark of a
// footnote, an alert or a task. It is false if the bracket is to be passed over.
func (w *walker) reference(b bracket, alive bool) bool {
	src, inner := w.src, Span{b.text, w.i}
	if inner.End-inner.Start >= 1000 || inner.Start >= inner.End {
		return false
	}
	in := src[inner.Start:inner.End]
	if w.sign(b, in) {
		if kind := inner; in[0] == '!' && notes[strings.ToLower(string(in[1:]))] && newlineAfter(src, w.i+1) {
			kind.Start++
			w.p.Notes = append(w.p.Notes, kind)
			w.mark(kind.Start, kind.End, markOther)
			w.mark(w.i, w.i+1, markBreak)
			inner.End = kind.Start - 1
		}
		w.mark(b.at, inner.End+1, markHidden)
		return false
	}
	label, e := w.label()
	switch {
	case e == 0:
		if !b.nested && alive {
			w.refs = append(w.refs, reference{Span{b.at, w.i + 1}, inner, string(in)})
		}
		return false
	case e < w.end && src[e] == '(': // the label is the text of a link
		return false
	case strings.TrimSpace(label) == "":
		label = string(in)
	}
	w.refs = append(w.refs, reference{Span{b.at, e}, inner, label})
	w.i = e
	return true
}

// sign reports whether brackets are the mark of a footnote, of an alert or of a task.
func (w *walker) sign(b bracket, in []byte) bool {
	if in[0] == '^' {
		return true
	}
	if b.image || len(bytes.TrimSpace(w.src[w.ls.lines[0]:b.at])) > 0 {
		return false
	}
	return in[0] == '!' && len(in) > 1 && isWord(in[1]) || len(in) == 1 && (in[0] == ' ' || in[0] == 'x' || in[0] == 'X')
}

// label is what is in brackets behind a closing one, and where these end; 0 if nothing is.
func (w *walker) label() (label string, end int) {
	from := w.i + 2
	if from > w.end || w.src[from-1] != '[' {
		return "", 0
	}
	e := from
	for e < w.end && e-w.i < 1000 && w.src[e] != ']' && w.src[e] != '[' {
		e++
	}
	if e >= w.end || w.src[e] != ']' {
		return "", 0
	}
	return string(w.src[from:e]), e + 1
}

// delimiters reads a run of the marks of emphasis.
func (w *walker) delimiters(c byte) {
	i, n := w.i, 0
	for i+n < w.stop && w.src[i+n] == c {
		n++
	}
	w.i += n
	before, after := byte(' '), byte(' ')
	if i > w.start {
		before = w.src[i-1]
	}
	if i+n < w.end {
		after = w.src[i+n]
	}
	left := !isSpace(after) && (!isPunct(after) || isSpace(before) || isPunct(before))
	right := !isSpace(before) && (!isPunct(before) || isSpace(after) || isPunct(after))
	d := delimiter{at: i, n: n, run: n, ch: c, open: left, close: right}
	if c == '_' {
		d.open = left && (!right || isPunct(before))
		d.close = right && (!left || isPunct(after))
	}
	if (d.open || d.close) && (c != '~' || n <= 2) {
		w.delims = append(w.delims, d)
	}
}

func (w *walker) newline() {
	i := w.i
	if i >= w.table {
		w.mark(i, i+1, markBreak)
		w.stack, w.inactive = w.stack[:0], 0
	} else if i > w.start+1 && w.src[i-1] == ' ' && w.src[i-2] == ' ' {
		w.mark(i-2, i, markBreak)
	}
	w.i++
}

// url reads an address that stands bare in the text.
func (w *walker) url() {
	i := w.i
	e := bareURL(w.src, i, w.start, w.end)
	if e == 0 {
		w.i++
		return
	}
	// An atom within the address (an escape, an entity) is part of it; a tag or code ends it.
	for k := w.nextAtom; k < len(w.ls.atoms) && w.ls.atoms[k].Start < e; k++ {
		if a := w.src[w.ls.atoms[k].Start]; a != '&' && a != '\\' {
			e = w.ls.atoms[k].Start
		}
	}
	dest := string(w.src[i:e])
	w.p.Links = append(w.p.Links, Link{Kind: AutoLink, Dest: dest, Span: Span{i, e}, At: Span{i, e}, Text: dest})
	w.mark(i, e, markOther)
	w.i = e
}

func bareURL(src []byte, i, start, end int) int {
	if i > start && (isWord(src[i-1]) || src[i-1] >= 0x80) {
		return 0
	}
	rest := src[i:min(end, i+8)]
	n := 0
	switch {
	case bytes.EqualFold(rest, []byte("https://")):
		n = 8
	case len(rest) >= 7 && bytes.EqualFold(rest[:7], []byte("http://")):
		n = 7
	case bytes.HasPrefix(rest, []byte("www.")):
		n = 4
	default:
		return 0
	}
	j := i + n
	depth := 0
loop:
	for j < end && src[j] > ' ' {
		switch src[j] {
		case '<', '>', '`', '"', '|', ']', '[', '{', '}':
			break loop
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				break loop
			}
		}
		j++
	}
	for j > i+n && strings.IndexByte("?!.,:;*_~'", src[j-1]) >= 0 {
		j--
	}
	if j == i+n {
		return 0
	}
	return j
}

// destination reads (dest "title") from the parenthesis at i.
func (s *scanner) destination(ls *leafScan, i, end int) (at Span, e int) {
	j := s.skipSpace(i+1, end)
	var ok bool
	if j < end && s.src[j] == '<' {
		at, ok = s.angledDestination(j, end)
		j = at.End + 1
	} else {
		at, ok = s.plainDestination(ls, j, end)
		j = at.End
	}
	if !ok {
		return at, 0
	}
	t := s.skipSpace(j, end)
	if t < end && t > j && (s.src[t] == '"' || s.src[t] == '\'' || s.src[t] == '(') {
		k := s.titleEnd(ls, t, end)
		if k == 0 {
			return at, 0
		}
		t = s.skipSpace(k, end)
	}
	if t < end && s.src[t] == ')' {
		return at, t + 1
	}
	return at, 0
}

func (s *scanner) skipSpace(j, end int) int {
	for j < end && isSpace(s.src[j]) {
		j++
	}
	return j
}

// angledDestination reads a destination between < and >.
func (s *scanner) angledDestination(j, end int) (at Span, ok bool) {
	k := j + 1
	for k < end && s.src[k] != '>' && s.src[k] != '<' && s.src[k] != '\n' {
		k++
	}
	s.steps += k - j
	return Span{j + 1, k}, k < end && s.src[k] == '>'
}

// plainDestination reads a destination up to white space, or to the parenthesis that is not its own.
func (s *scanner) plainDestination(ls *leafScan, j, end int) (at Span, ok bool) {
	k, depth := j, 0
scan:
	for k < end && s.src[k] > ' ' && s.src[k] != 0x7f {
		switch c := s.src[k]; {
		case c == '\\' && k+1 < end && isPunct(s.src[k+1]):
			k++
		case c == '{' && !s.mdx:
			if n, ok := slices.BinarySearchFunc(ls.atoms, k, func(a Span, k int) int { return a.Start - k }); ok { // a template
				k = ls.atoms[n].End
				continue
			}
		case c == '(':
			if depth++; depth > 32 {
				return at, false
			}
		case c == ')':
			if depth == 0 {
				break scan
			}
			depth--
		}
		k++
	}
	s.steps += k - j
	return Span{j, min(k, end)}, depth == 0
}

// titleEnd is the end of a link's title; 0 if it has none.
func (s *scanner) titleEnd(ls *leafScan, t, end int) int {
	q, which := s.src[t], 0
	if q == '\'' {
		which = 1
	} else if q == '(' {
		q = ')'
	}
	if q != ')' && ls.noTitle[which] {
		return 0
	}
	k := t + 1
	for k < end && s.src[k] != q && !(q == ')' && s.src[k] == '(') {
		if s.src[k] == '\\' {
			k++
		}
		k++
	}
	s.steps += k - t
	switch {
	case k < end && s.src[k] == q:
		return k + 1
	case k >= end && q != ')':
		ls.noTitle[which] = true
	}
	return 0
}

// tableFrom returns the position from which on the leaf is a table; the end if it has none.
func (s *scanner) tableFrom(ls *leafScan, start, end int) int {
	for k := 1; k < len(ls.lines); k++ {
		at := ls.lines[k]
		if at >= end || ls.lines[k-1] < start {
			continue
		}
		le, _ := s.lineEnd(at)
		le = min(le, end)
		dash, other := false, false
		ok := true
		for _, c := range s.src[at:le] {
			switch c {
			case '-':
				dash = true
			case '|', ':':
				other = true
			case ' ', '\t', '\r':
			default:
				ok = false
			}
			if !ok {
				break
			}
		}
		if !ok || !dash || !other {
			continue
		}
		head, _ := s.lineEnd(ls.lines[k-1])
		if bytes.IndexByte(s.src[ls.lines[k-1]:min(head, end)], '|') < 0 {
			continue
		}
		s.mark(at, le, markHidden)
		return ls.lines[k-1]
	}
	return end
}

// emphasis pairs the delimiters, as CommonMark says; what finds no partner is text, and so is what stands between a
// pair and was not paired before.
func (s *scanner) emphasis(delims []delimiter) {
	type asks struct { // what a closing delimiter wants of the one that opens
		ch   byte
		open bool
		run  int
	}
	nothing := map[asks]int{}          // up to here no delimiter opens for such a one
	before := make([]int, len(delims)) // the one that is open before each; -1 if none is
	last := -1                         // the last one that is open
	for c := range delims {
		d := &delims[c]
		want := asks{d.ch, d.open, d.run % 3}
		floor, ok := nothing[want]
		if !ok {
			floor = -1
		}
		for d.close && d.n > 0 {
			o := last
			for o > floor && !delims[o].pairs(d) {
				s.steps++
				o = before[o]
			}
			if o <= floor {
				nothing[want] = last
				break
			}
			with := &delims[o]
			use := min(with.n, d.n)
			s.mark(with.at+with.n-use, with.at+with.n, markHidden)
			s.mark(d.at, d.at+use, markHidden)
			with.n -= use
			d.at += use
			d.n -= use
			if last = o; with.n == 0 {
				last = before[o]
			}
		}
		if d.open && d.n > 0 {
			before[c], last = last, c
		}
	}
}

// pairs reports whether a delimiter opens what another one closes. Of runs that could do both, as in a**b*c, only some
// do.
func (o *delimiter) pairs(d *delimiter) bool {
	if o.ch != d.ch || d.ch == '~' {
		return o.ch == d.ch && o.n == d.n
	}
	return !o.close && !d.open || (o.run+d.run)%3 != 0 || o.run%3 == 0
}
