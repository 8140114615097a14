package edit

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/agent/say"
	"docent/internal/brief"
	"docent/site/markup"
)

// Keys of front matter that hold text for readers.
var frontText = []string{"title", "description", "sidebarTitle", "sidebar_label", "summary", "subtitle"}

// A hit is one match that a text operation changes.
type hit struct {
	markup.Span
	text string // what is to stand there
}

// A finder gives the hits in a stretch of the source, which it sees whole so that it can look at the neighbors.
type finder func(src []byte, at markup.Span) []hit

// A reach says which parts of a page a text operation may touch.
type reach struct {
	code, links bool
	raw         bool // the source as written, fenced code apart unless code is set
	front       bool
	bounds      *bounds // nil for no others than these
}

// reach is what a text operation with a manner touches within its scope: code, if that is what the scope is made of.
func (r *Run) reach(m Manner) reach {
	s := &r.bounds.scope
	return reach{
		code:   m.Code || s.has("code", "code blocks", "inline code"),
		links:  m.Links || s.has("links", "link targets"),
		front:  true,
		bounds: r.bounds,
	}
}

// oneMeaning refuses to take “the links” for their texts and for their targets if either could be meant.
func (r *Run) oneMeaning(s Scope, pages []string, find finder, what string) error {
	if !s.has("links") {
		return nil
	}
	texts, targets := 0, 0
	for _, f := range pages {
		p, err := r.Site.Page(f)
		if err != nil {
			continue
		}
		regions, _ := r.bounds.within(p)
		count := func(spans []markup.Span) (n int) {
			for _, sp := range clip(joined(spans), regions) {
				n += len(find(p.Src, sp))
			}
			return n
		}
		texts += count(linkTexts(p))
		targets += count(linkTargets(p))
	}
	if texts > 0 && targets > 0 {
		return say.Refuse("%s stands in the texts of links %s and in their targets; say “in link texts” or “in link targets”",
			say.Quote(what), say.Times(texts))
	}
	return nil
}

// rewrite changes the text of a page and gives the new source with the number of matches.
func rewrite(p *markup.Page, re reach, find finder) ([]byte, int, error) {
	spans := re.spans(p)
	slices.SortFunc(spans, func(a, b markup.Span) int { return a.Start - b.Start })
	regions, everywhere := re.bounds.within(p)
	if !everywhere {
		spans = clip(spans, regions)
	}
	var edits []markup.Edit
	n, last := 0, 0
	for _, sp := range spans {
		for _, h := range find(p.Src, sp) {
			if h.Start < last { // two stretches may overlap: a link within an attribute
				continue
			}
			last = h.End
			n++
			edits = append(edits, markup.Edit{Span: h.Span, New: []byte(h.text)})
		}
	}
	if re.front && p.Front.Values != nil {
		front, k, err := rewriteFront(p, regions, everywhere, find)
		if err != nil {
			return nil, 0, err
		}
		edits = append(edits, front...)
		n += k
	}
	if n == 0 {
		return p.Src, 0, nil
	}
	out, err := markup.Apply(p.Src, edits)
	return out, n, err
}

// spans are the stretches of a page that may be touched.
func (re reach) spans(p *markup.Page) (spans []markup.Span) {
	if re.raw {
		at := p.Body.Start
		for _, c := range p.Code {
			if !c.Inline && !re.code && c.Span.Start >= at {
				spans = append(spans, markup.Span{Start: at, End: c.Span.Start})
				at = c.Span.End
			}
		}
		return append(spans, markup.Span{Start: at, End: p.Body.End})
	}
	spans = append(spans, p.Prose...)
	for _, t := range p.Tags {
		for _, a := range t.Attrs {
			if v, ok := p.AttrText(t, a); ok {
				spans = append(spans, v)
			}
		}
	}
	if re.code {
		for _, c := range p.Code {
			spans = append(spans, c.Inner)
		}
	}
	if re.links {
		for _, l := range p.Links {
			if l.At.Start < l.At.End {
				spans = append(spans, l.At)
			}
		}
	}
	return spans
}

// rewriteFront changes the texts of the front matter.
func rewriteFront(p *markup.Page, regions []markup.Span, everywhere bool, find finder) (edits []markup.Edit, n int,
	err error) {
	for _, key := range frontText {
		v, ok := p.Front.Values[key].(string)
		if !ok {
			continue
		}
		if at, found := p.FrontValue(key); !everywhere && (!found || !inside(at, regions)) {
			continue
		}
		now, k := inString(v, find)
		if k == 0 {
			continue
		}
		e, err := frontEdit(p, key, now, find, k)
		if err != nil {
			return nil, 0, say.Refuse("%v", err)
		}
		edits = append(edits, e...)
		n += k
	}
	return edits, n, nil
}

func inString(s string, find finder) (string, int) {
	src := []byte(s)
	hits := find(src, markup.Span{Start: 0, End: len(src)})
	var b strings.Builder
	at := 0
	for _, h := range hits {
		b.Write(src[at:h.Start])
		b.WriteString(h.text)
		at = h.End
	}
	b.Write(src[at:])
	return b.String(), len(hits)
}

// frontEdit changes words within a front matter value if that gives the value wanted; otherwise it sets the whole value.
func frontEdit(p *markup.Page, key, want string, find finder, n int) ([]markup.Edit, error) {
	if at, ok := p.FrontValue(key); ok {
		inner := at
		if q := p.Src[at.Start]; (q == '"' || q == '\'') && at.End-at.Start >= 2 && p.Src[at.End-1] == q {
			inner.Start++
			inner.End--
		}
		raw, k := inString(string(p.Src[inner.Start:inner.End]), find)
		if k == n {
			edits := []markup.Edit{{Span: inner, New: []byte(raw)}}
			if out, err := markup.Apply(p.Src, edits); err == nil {
				q := markup.Parse(p.Path, out)
				if got, ok := q.Front.Values[key].(string); ok && got == want && len(q.Front.Values) == len(p.Front.Values) {
					return edits, nil
				}
			}
		}
	}
	return p.SetFront(key, want)
}

// literalFinder finds text as given; runs of blanks match any, as text wraps.
func literalFinder(from, to string, sc Manner) finder {
	expr := wrapping(from)
	if sc.IgnoreCase {
		expr = "(?i)" + expr
	}
	re := regexp.MustCompile(expr)
	return func(src []byte, at markup.Span) []hit {
		var out []hit
		for _, m := range re.FindAllIndex(src[at.Start:at.End], -1) {
			sp := markup.Span{Start: at.Start + m[0], End: at.Start + m[1]}
			if sc.Words && inWord(src, sp, at) {
				continue
			}
			out = append(out, hit{sp, to})
		}
		return out
	}
}

// removing takes a blank away with each text that goes, where two would be left or one before a mark.
func removing(find finder) finder {
	return func(src []byte, at markup.Span) []hit {
		hits := find(src, at)
		for i, h := range hits {
			if h.text != "" || isSpace(src[h.Start]) || isSpace(src[h.End-1]) {
				continue
			}
			ends := h.End >= len(src) || isSpace(src[h.End]) || strings.IndexByte(".,;:!?)", src[h.End]) >= 0
			switch {
			case h.Start > at.Start && src[h.Start-1] == ' ' && ends && (h.Start-1 == at.Start || !isSpace(src[h.Start-2])):
				hits[i].Start--
			case (h.Start == at.Start || src[h.Start-1] == '\n') && h.End < at.End && src[h.End] == ' ' &&
				(h.Start == 0 || src[h.Start-1] == '\n' || src[h.Start-1] == ' '):
				hits[i].End++
			}
		}
		return hits
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// hollow tells what a page has more of than before that has nothing in it: what is left where all of a text was
// removed.
func hollow(before, now *markup.Page) string {
	count := func(p *markup.Page) (headings, texts, targets, front int) {
		for _, h := range p.Headings {
			if h.Text == "" {
				headings++
			}
		}
		for _, l := range p.Links {
			if l.Dest == "" {
				targets++
			}
			if (l.Kind == markup.InlineLink || l.Kind == markup.ReferenceLink) && l.Text == "" &&
				len(bytes.TrimSpace(p.Src[l.Inner.Start:l.Inner.End])) == 0 {
				texts++
			}
		}
		for _, k := range frontText {
			if v, ok := p.Front.Values[k]; ok && (v == nil || v == "") {
				front++
			}
		}
		return headings, texts, targets, front
	}
	h0, x0, t0, f0 := count(before)
	h1, x1, t1, f1 := count(now)
	switch {
	case h1 > h0 || len(now.Headings) < len(before.Headings):
		return "the words of a heading, which would be left without any; say “delete the section …” or “delete the heading …”"
	case x1 > x0 || t1 > t0 || len(now.Links) < len(before.Links):
		return "the text or the target of a link, which would be left without one; say “replace …” with what is to stand there"
	case f1 > f0:
		return "a value of the front matter; say “remove … from the front matter”"
	case len(now.Blocks) < len(before.Blocks):
		return "a paragraph or list item; say “delete the paragraph containing …” or “delete the list item containing …”"
	}
	return ""
}

func wrapping(text string) string {
	var b strings.Builder
	for i, w := range strings.Split(text, " ") {
		if i > 0 {
			if w == "" || strings.HasPrefix(text, " ") && i == 1 {
				b.WriteString(" ")
			} else {
				b.WriteString(`(?: |[ \t]*\r?\n[ \t]*)`)
			}
		}
		b.WriteString(regexp.QuoteMeta(w))
	}
	return b.String()
}

// inNumber reports whether a match is a part of a number, or of the number of a version: the 3 of 1.2.3, the 1 of 1,000.
func inNumber(src []byte, sp markup.Span) bool {
	joined := func(i int) bool {
		return i > 0 && i+1 < len(src) && (src[i] == '.' || src[i] == ',') && isDigit(src[i-1]) && isDigit(src[i+1])
	}
	return joined(sp.Start-1) || joined(sp.End)
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// inWord reports whether a match is part of a longer word, as a reader sees it: marks of emphasis do not divide words.
func inWord(src []byte, sp, at markup.Span) bool {
	first, _ := utf8.DecodeRune(src[sp.Start:sp.End])
	last, _ := utf8.DecodeLastRune(src[sp.Start:sp.End])
	if r, n := utf8.DecodeLastRune(src[:sp.Start]); n > 0 && r == first && strings.ContainsRune("&|=<>+", r) {
		return true // half of an operator
	}
	if r, n := utf8.DecodeRune(src[sp.End:]); n > 0 && r == last && strings.ContainsRune("&|=<>+", r) {
		return true
	}
	if inNumber(src, sp) {
		return true
	}
	if isWordRune(first) && !unspaced(first) {
		i := sp.Start
		if i == at.Start {
			for i > 0 && strings.IndexByte("*_~", src[i-1]) >= 0 {
				i--
			}
		}
		if r, n := utf8.DecodeLastRune(src[:i]); n > 0 && isWordRune(r) {
			return true
		}
	}
	if isWordRune(last) && !unspaced(last) {
		i := sp.End
		if i == at.End {
			for i < len(src) && strings.IndexByte("*_~", src[i]) >= 0 {
				i++
			}
		}
		if r, n := utf8.DecodeRune(src[i:]); n > 0 && isWordRune(r) {
			return true
		}
	}
	return false
}

func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// unspaced reports whether a letter is of a script that puts no blanks between words.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// termFinder finds a term as a word of its own, with its regular plural. A term in small letters is found in any case
// form and the new one gets the same form; one with a capital is a name, and "go" is not "Go". What looks like code
// without being marked so (a path, a flag, a host name) is left.
func termFinder(from, to string, sc Manner) finder {
	re := regexp.MustCompile("(?i)" + wrapping(from))
	if sc.ExactCase || !sc.IgnoreCase && from != strings.ToLower(from) {
		re = regexp.MustCompile(wrapping(from))
	}
	plural := unicode.IsLetter(lastRune(from)) && unicode.IsLetter(lastRune(to)) && unicode.ToLower(lastRune(from)) != 's'
	return func(src []byte, at markup.Span) []hit {
		var out []hit
		for _, m := range re.FindAllIndex(src[at.Start:at.End], -1) {
			sp := markup.Span{Start: at.Start + m[0], End: at.Start + m[1]}
			seen := string(src[sp.Start:sp.End])
			whole := sp
			suffix := ""
			if plural && sp.End < at.End && (src[sp.End] == 's' || src[sp.End] == 'S') {
				whole.End++
				if !inWord(src, whole, at) {
					suffix = string(src[sp.End])
				} else {
					whole = sp
				}
			}
			exact := seen == from && from != strings.ToLower(from)
			if inWord(src, whole, at) || codeLike(src, whole, at, exact, exact) {
				continue
			}
			out = append(out, hit{whole, caseLike(seen, from, to) + suffix})
		}
		return out
	}
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// caseLike writes the new term in the form in which the old one was seen.
func caseLike(seen, from, to string) string {
	flat := brief.Line(seen)
	switch {
	case flat == from:
		return to
	case flat == strings.ToLower(flat):
		return strings.ToLower(to)
	case flat == strings.ToUpper(flat) && utf8.RuneCountInString(flat) > 1:
		return strings.ToUpper(to)
	}
	first, n := utf8.DecodeRuneInString(flat)
	if unicode.IsUpper(first) && flat[n:] == strings.ToLower(flat[n:]) && from == strings.ToLower(from) {
		return brief.Capital(to)
	}
	return to
}

// codeLike reports whether the word around a match is a path, an address, a flag or an identifier.
func codeLike(src []byte, sp, at markup.Span, slashed, hyphened bool) bool {
	before, after := wordAround(src, sp, at)
	if bytes.HasPrefix(before, []byte("-")) || bytes.HasPrefix(before, []byte("/")) ||
		bytes.HasPrefix(before, []byte("./")) {
		return true
	}
	for _, part := range [][]byte{before, after} {
		if codeMarks.Match(part) || bytes.IndexByte(part, '/') >= 0 && !slashed {
			return true
		}
	}
	joined := func(by byte) bool { // to the word before
		n := len(before)
		return n > 1 && before[n-1] == by && isWordRune(rune(before[n-2]))
	}
	// v1.name; my-name: names of programs and hosts, unless written as the term is
	if joined('.') || !hyphened && joined('-') {
		return true
	}
	if len(after) < 2 {
		return false
	}
	digit, small := after[1] >= '0' && after[1] <= '9', after[1] >= 'a' && after[1] <= 'z'
	switch after[0] {
	case '.': // name.yml, name.example.org
		return digit || small
	case ':': // name:9093
		return digit
	case '-': // name-tool
		return !hyphened && isWordRune(rune(after[1]))
	}
	return false
}

// wordAround returns what stands before and behind a match without a blank between, but for quotes and marks of
// sentences.
func wordAround(src []byte, sp, at markup.Span) (before, after []byte) {
	a, b := sp.Start, sp.End
	for a > at.Start && !unicode.IsSpace(rune(src[a-1])) {
		a--
	}
	for b < at.End && !unicode.IsSpace(rune(src[b])) {
		b++
	}
	before = bytes.TrimLeft(src[a:sp.Start], `("'[*`+"“‘")
	after = bytes.TrimRight(src[sp.End:b], `.,;:!?)"'”’]*`)
	if i := bytes.LastIndexAny(before, "—–()\"“"); i >= 0 {
		_, n := utf8.DecodeRune(before[i:])
		before = before[i+n:]
	}
	if i := bytes.IndexAny(after, "—–()\"”"); i >= 0 {
		after = after[:i]
	}
	return before, after
}

var codeMarks = regexp.MustCompile(`[_@=\\$#%]|::|://|--`)
