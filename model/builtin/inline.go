package builtin

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strings"

	"docent/model"
)

// inline takes tags and images out of running text and makes its links lead somewhere or be plain text. Code spans stay
// as they are.
func (c *scanner) inline(s string) string { return c.within(s, 0) }

// deepestLink is how far the texts of links and images are read for further ones: an image in a link is as deep as a
// page goes.
const deepestLink = 4

// within is inline for the text of so many links within each other.
func (c *scanner) within(s string, depth int) string {
	n := inliner{scanner: c, s: s, depth: depth,
		tagEnd: lookahead{s: s, end: ">"}, braceEnd: lookahead{s: s, end: "}"},
		shortcodeEnd: lookahead{s: s, end: ">}}"}, otherEnd: lookahead{s: s, end: "%}}"}}
	if depth < deepestLink {
		n.links = pairs(s)
	}
	n.out.Grow(len(s))
	for i := 0; i < len(s); {
		end := i // of what begins here; if nothing does, the sign is text
		switch s[i] {
		case '\\':
			end = n.keep(i, min(i+2, len(s)))
		case '`':
			end = n.codeSpan(i)
		case '!':
			end = n.image(i)
		case '[':
			end = n.link(i)
		case '<':
			end = n.tag(i)
		case '&':
			end = n.space(i, "&nbsp;")
		case '{':
			end = n.braces(i)
		}
		if end == i {
			end = n.keep(i, i+1)
		}
		i = end
	}
	return n.out.String()
}

// An inliner reads running text. Each of its methods reads what begins at a place and says where that ends: at the same
// place if it is something else.
type inliner struct {
	scanner *scanner
	s       string
	depth   int // links that it is the text of
	out     strings.Builder
	links   brackets

	tagEnd, braceEnd, shortcodeEnd, otherEnd lookahead
}

// keep writes a part as it stands.
func (n *inliner) keep(i, end int) int {
	n.out.WriteString(n.s[i:end])
	return end
}

// space writes a space for a sign that stands for one.
func (n *inliner) space(i int, sign string) int {
	if !strings.HasPrefix(n.s[i:], sign) {
		return i
	}
	n.out.WriteByte(' ')
	return i + len(sign)
}

func (n *inliner) codeSpan(i int) int {
	run := 1
	for i+run < len(n.s) && n.s[i+run] == '`' {
		run++
	}
	if end := strings.Index(n.s[i+run:], n.s[i:i+run]); end >= 0 {
		return n.keep(i, i+run+end+run)
	}
	return n.keep(i, i+run)
}

func (n *inliner) image(i int) int {
	if i+1 < len(n.s) && n.s[i+1] == '[' {
		if _, _, end, ok := n.links.link(n.s, i+1); ok {
			return end
		}
	}
	return i
}

func (n *inliner) link(i int) int {
	text, dest, end, ok := n.links.link(n.s, i)
	if !ok {
		return i
	}
	text = n.scanner.within(text, n.depth+1)
	if dest = resolve(n.scanner.page, dest); dest != "" && strings.TrimSpace(text) != "" {
		text = "[" + text + "](" + dest + ")"
	}
	n.out.WriteString(text)
	return end
}

func (n *inliner) tag(i int) int {
	end := n.tagEnd.from(i)
	if end < 0 {
		return i
	}
	length := len(leadingTag.FindString(n.s[i : end+1]))
	if length == 0 {
		return i
	}
	switch name := strings.ToLower(n.s[i:min(i+3, len(n.s))]); {
	case name == "<br", name == "</p", strings.HasPrefix(name, "<p"):
		n.out.WriteByte(' ')
	}
	return i + length
}

// braces reads shortcodes, spaces written as expressions, and attribute lists of an extended Markdown: {.class},
// {:target="_blank"}, {.external-link target="_blank"}.
func (n *inliner) braces(i int) int {
	rest := n.s[i:]
	if strings.HasPrefix(rest, "{{<") || strings.HasPrefix(rest, "{{%") {
		end, other := n.shortcodeEnd.from(i+3), n.otherEnd.from(i+3)
		if end < 0 || other >= 0 && other < end {
			end = other
		}
		if end >= 0 {
			return end + len(">}}")
		}
	}
	if end := max(n.space(i, "{' '}"), n.space(i, `{" "}`)); end > i {
		return end
	}
	if len(rest) > 1 && strings.IndexByte(".:#", rest[1]) >= 0 {
		if end := n.braceEnd.from(i); end >= 0 {
			return end + 1
		}
	}
	return i
}

// A lookahead finds the next place of a mark in a text that is read from its start. All questions together cost one
// reading.
type lookahead struct {
	s, end string
	at     int // where it was found last; the text's length if it does not occur again
	begun  bool
}

// from is the mark's position at i or after it, or -1. It is asked of places in their order.
func (a *lookahead) from(i int) int {
	if !a.begun || a.at < i {
		a.begun = true
		if i > len(a.s) {
			i = len(a.s)
		}
		if n := strings.Index(a.s[i:], a.end); n >= 0 {
			a.at = i + n
		} else {
			a.at = len(a.s)
		}
	}
	if a.at == len(a.s) {
		return -1
	}
	return a.at
}

// brackets tell where each bracket and parenthesis that is opened in a text is closed.
type brackets struct{ square, round []pair }

// A pair is what is opened and closed at two places; closed is -1 if it is not. Lists are in the order of opening.
type pair struct{ opened, closed int }

func pairs(s string) (b brackets) {
	if strings.IndexByte(s, ']') < 0 {
		return b
	}
	var square, round []int // those that are open, by their place in the list
	escaped := false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(':
			round, b.round = append(round, len(b.round)), append(b.round, pair{i, -1})
		case c == ')' && len(round) > 0:
			b.round[round[len(round)-1]].closed = i
			round = round[:len(round)-1]
		case escaped:
		case c == '[':
			square, b.square = append(square, len(b.square)), append(b.square, pair{i, -1})
		case c == ']' && len(square) > 0:
			b.square[square[len(square)-1]].closed = i
			square = square[:len(square)-1]
		}
		escaped = s[i] == '\\' && !escaped
	}
	return b
}

// closing is where what is opened at a place is closed; -1 if it is not.
func closing(list []pair, opened int) int {
	i, ok := slices.BinarySearchFunc(list, opened, func(p pair, at int) int { return cmp.Compare(p.opened, at) })
	if !ok {
		return -1
	}
	return list[i].closed
}

// link reads [text](dest "title"), [text][label] and [text][] where s has an opening bracket; end is behind it. A
// reference has no destination: its definition stands elsewhere.
func (b brackets) link(s string, at int) (text, dest string, end int, ok bool) {
	closed := closing(b.square, at)
	if closed < 0 || closed+1 >= len(s) {
		return "", "", 0, false
	}
	text = s[at+1 : closed]
	switch s[closed+1] {
	case '(':
		if end := closing(b.round, closed+1); end >= 0 {
			dest = strings.TrimSpace(s[closed+2 : end])
			if at := strings.IndexAny(dest, " \t"); at >= 0 && !strings.HasPrefix(dest, "<") {
				dest = dest[:at]
			}
			return text, strings.Trim(dest, "<>"), end + 1, true
		}
	case '[':
		if n := strings.IndexByte(s[closed+2:], ']'); n >= 0 {
			return text, "", closed + 2 + n + 1, true
		}
	}
	return "", "", 0, false
}

// resolve makes the destination of a link on a page absolute; empty if nothing sensible can be said.
func resolve(p *model.Passage, dest string) string {
	u, err := url.Parse(dest)
	if err != nil || dest == "" {
		return ""
	}
	switch u.Scheme {
	case "http", "https", "mailto":
		return dest
	case "":
	default:
		return ""
	}
	base, err := url.Parse(p.URL)
	if err != nil || p.URL == "" {
		return ""
	}
	base.Fragment = ""
	if u.Host == "" && u.Path == "" {
		if u.Fragment == "" {
			return ""
		}
		base.Fragment = u.Fragment
		return base.String()
	}
	target := u.Path
	ext := path.Ext(target)
	switch ext {
	case ".md", ".mdx", ".markdown", ".html":
	case "":
		if !strings.HasPrefix(target, "/") && !strings.HasPrefix(target, ".") {
			return ""
		}
	default:
		return ""
	}
	target = strings.TrimSuffix(target, ext)
	if !strings.HasPrefix(target, "/") {
		// Relative links are relative to the file. They can be followed if the page's address ends in its path.
		own := strings.TrimSuffix(p.Path, path.Ext(p.Path))
		own = strings.TrimSuffix(strings.TrimSuffix(own, "/index"), "/README")
		at := strings.TrimSuffix(base.Path, "/")
		prefix, ok := strings.CutSuffix(at, own)
		if !ok {
			return ""
		}
		joined := path.Join(path.Dir(p.Path), target)
		if strings.HasPrefix(joined, "..") {
			return ""
		}
		target = strings.TrimSuffix(prefix, "/") + "/" + joined
	}
	target = strings.TrimSuffix(strings.TrimSuffix(target, "/index"), "/README")
	base.Path, base.RawPath, base.RawQuery, base.Fragment = target, "", u.RawQuery, u.Fragment
	return base.String()
}
