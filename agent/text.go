package agent

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/markup"
)

// Keys of front matter that hold text for readers.
var frontText = []string{"title", "description", "sidebarTitle", "sidebar_label", "summary", "subtitle"}

// A hit is one place that a text operation changes.
type hit struct {
	markup.Span
	text string // what is to stand there
}

// A finder gives the hits in a stretch of the source, which it sees whole so that it can look at the neighbours.
type finder func(src []byte, at markup.Span) []hit

// A reach says which parts of a page a text operation may touch.
type reach struct {
	code, links bool
	raw         bool // the source as written, fenced code apart unless code is set
	attrs       bool
	front       bool
}

// rewrite changes the text of a page and gives the new source with the number of places.
func rewrite(p *markup.Page, re reach, find finder) ([]byte, int, error) {
	var spans []markup.Span
	if re.raw {
		at := p.Body.Start
		for _, c := range p.Code {
			if !c.Inline && !re.code && c.Span.Start >= at {
				spans = append(spans, markup.Span{Start: at, End: c.Span.Start})
				at = c.Span.End
			}
		}
		spans = append(spans, markup.Span{Start: at, End: p.Body.End})
	} else {
		spans = append(spans, p.Prose...)
		if re.attrs {
			for _, t := range p.Tags {
				for _, a := range t.Attrs {
					if v, ok := p.AttrText(t, a); ok {
						spans = append(spans, v)
					}
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
	}
	slices.SortFunc(spans, func(a, b markup.Span) int { return a.Start - b.Start })
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
		for _, key := range frontText {
			v, ok := p.Front.Values[key].(string)
			if !ok {
				continue
			}
			now, k := inString(v, find)
			if k == 0 {
				continue
			}
			e, err := frontEdit(p, key, now, find, k)
			if err != nil {
				return nil, 0, refuse("%v", err)
			}
			edits = append(edits, e...)
			n += k
		}
	}
	if n == 0 {
		return p.Src, 0, nil
	}
	out, err := markup.Apply(p.Src, edits)
	return out, n, err
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

// frontEdit changes words within a value of the front matter where that gives the value wanted, or sets it anew.
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
func literalFinder(from, to string, sc scope) finder {
	expr := wrapping(from)
	if sc.nocase {
		expr = "(?i)" + expr
	}
	re := regexp.MustCompile(expr)
	return func(src []byte, at markup.Span) []hit {
		var out []hit
		for _, m := range re.FindAllIndex(src[at.Start:at.End], -1) {
			sp := markup.Span{Start: at.Start + m[0], End: at.Start + m[1]}
			if sc.words && inWord(src, sp, at) {
				continue
			}
			out = append(out, hit{sp, to})
		}
		return out
	}
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

// inWord tells whether a place is part of a longer word, as a reader sees it: marks of emphasis do not divide words.
func inWord(src []byte, sp, at markup.Span) bool {
	first, _ := utf8.DecodeRune(src[sp.Start:sp.End])
	last, _ := utf8.DecodeLastRune(src[sp.Start:sp.End])
	if isWordRune(first) {
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
	if isWordRune(last) {
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

// termFinder finds a term as a word of its own, in any case form, with its regular plural, and gives the new term the
// same form. What looks like code without being marked so (a path, a flag, a host name) is left.
func termFinder(from, to string, sc scope) finder {
	re := regexp.MustCompile("(?i)" + wrapping(from))
	if sc.exactCase {
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
	flat := strings.Join(strings.Fields(seen), " ")
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
		r, k := utf8.DecodeRuneInString(to)
		return string(unicode.ToUpper(r)) + to[k:]
	}
	return to
}

// codeLike tells whether the word around a place is a path, an address, a flag or an identifier.
func codeLike(src []byte, sp, at markup.Span, slashed, hyphened bool) bool {
	a, b := sp.Start, sp.End
	for a > at.Start && !unicode.IsSpace(rune(src[a-1])) {
		a--
	}
	for b < at.End && !unicode.IsSpace(rune(src[b])) {
		b++
	}
	before := bytes.TrimLeft(src[a:sp.Start], `("'[*`+"“‘")
	after := bytes.TrimRight(src[sp.End:b], `.,;:!?)"'”’]*`)
	if i := bytes.LastIndexAny(before, "—–()\"“"); i >= 0 {
		_, n := utf8.DecodeRune(before[i:])
		before = before[i+n:]
	}
	if i := bytes.IndexAny(after, "—–()\"”"); i >= 0 {
		after = after[:i]
	}
	if bytes.HasPrefix(before, []byte("-")) || bytes.HasPrefix(before, []byte("/")) || bytes.HasPrefix(before, []byte("./")) {
		return true
	}
	for _, part := range [][]byte{before, after} {
		if bytes.ContainsAny(part, "_@=\\$#%") || bytes.Contains(part, []byte("::")) || bytes.Contains(part, []byte("://")) || bytes.Contains(part, []byte("--")) {
			return true
		}
		if bytes.IndexByte(part, '/') >= 0 && !slashed {
			return true
		}
	}
	// name-tool, my-name: names of programs and hosts, unless written as the term is
	if !hyphened {
		if n := len(before); n > 1 && before[n-1] == '-' && isWordRune(rune(before[n-2])) {
			return true
		}
		if len(after) > 1 && after[0] == '-' && isWordRune(rune(after[1])) {
			return true
		}
	}
	// name.yml, name.example.org, v1.name, name:9093
	if len(after) > 1 && after[0] == '.' && (after[1] >= 'a' && after[1] <= 'z' || after[1] >= '0' && after[1] <= '9') {
		return true
	}
	if len(after) > 1 && after[0] == ':' && after[1] >= '0' && after[1] <= '9' {
		return true
	}
	if n := len(before); n > 1 && before[n-1] == '.' && isWordRune(rune(before[n-2])) {
		return true
	}
	return false
}

// pages settles which pages a scope means.
func (r *run) pages(sc scope) ([]string, error) {
	var out []string
	if len(sc.in) == 0 {
		out = r.site.list()
	}
	for _, in := range sc.in {
		if in == "" {
			return nil, refuse("nothing before it says which page is meant")
		}
		got, err := r.expand(in)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	for _, ex := range sc.except {
		drop, err := r.expand(ex)
		if err != nil {
			return nil, err
		}
		out = slices.DeleteFunc(out, func(p string) bool { return slices.Contains(drop, p) })
	}
	return out, nil
}

// expand gives the pages that a path, a folder or a glob names.
func (r *run) expand(in string) ([]string, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(in, "./"), "/")
	if strings.ContainsAny(name, "*?[{") {
		for _, seg := range strings.Split(name, "/") {
			if seg == ".." || strings.EqualFold(seg, ".git") {
				return nil, refuse("the path %s leaves the documentation", quote(in))
			}
		}
		var out []string
		for _, f := range r.site.list() {
			if globbed(name, f) || globbed(name, r.site.show(f)) || r.site.root != "" && globbed(name, strings.TrimPrefix(f, r.site.root+"/")) {
				out = append(out, f)
			}
		}
		if len(out) == 0 {
			return nil, refuse("no page matches %s", quote(in))
		}
		return out, nil
	}
	f, err := r.site.find(in)
	folder := strings.TrimSuffix(name, "/")
	if err == nil && (strings.TrimSuffix(name, "/") == name || !isIndex(f)) {
		if !isPage(f) {
			if err := r.ws.writable(f); err != nil {
				return nil, err
			}
			if !textExts[strings.ToLower(path.Ext(f))] {
				return nil, refuse("%s is no text that is edited", f)
			}
		}
		if !isIndex(f) || strings.HasSuffix(strings.ToLower(name), strings.ToLower(path.Base(f))) {
			return []string{f}, r.ws.writable(f)
		}
	}
	if cleanPath(folder) == nil {
		for _, dir := range []string{path.Join(r.ws.docsDir, folder), path.Join(r.site.root, folder), folder} {
			if !r.ws.isDir(dir) || dir != r.ws.docsDir && !r.ws.inDocs(dir+"/x") {
				continue
			}
			var out []string
			for _, p := range r.site.list() {
				if strings.HasPrefix(p, dir+"/") {
					out = append(out, p)
				}
			}
			if len(out) > 0 {
				return out, nil
			}
		}
	}
	if err == nil {
		return []string{f}, r.ws.writable(f)
	}
	return nil, err
}

// A count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "y") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
