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
func (c *cutter) inline(s string) string { return c.within(s, 0) }

// deepestLink is how far the texts of links and images are read for further ones: an image in a link is as deep as a page goes.
const deepestLink = 4

// within is inline for the text of so many links within each other.
func (c *cutter) within(s string, depth int) string {
	var out strings.Builder
	out.Grow(len(s))
	var links brackets
	if depth < deepestLink {
		links = pairs(s)
	}
	tagEnd, braceEnd := ahead{s: s, end: ">"}, ahead{s: s, end: "}"}
	shortcodeEnd, otherEnd := ahead{s: s, end: ">}}"}, ahead{s: s, end: "%}}"}
	for i := 0; i < len(s); {
		switch s[i] {
		case '\\':
			n := min(2, len(s)-i)
			out.WriteString(s[i : i+n])
			i += n
			continue
		case '`':
			run := 1
			for i+run < len(s) && s[i+run] == '`' {
				run++
			}
			if end := strings.Index(s[i+run:], s[i:i+run]); end >= 0 {
				n := run + end + run
				out.WriteString(s[i : i+n])
				i += n
				continue
			}
			out.WriteString(s[i : i+run])
			i += run
			continue
		case '!':
			if i+1 < len(s) && s[i+1] == '[' {
				if _, _, end, ok := links.link(s, i+1); ok {
					i = end
					continue
				}
			}
		case '[':
			if text, dest, end, ok := links.link(s, i); ok {
				text = c.within(text, depth+1)
				if dest = resolve(c.page, dest); dest != "" && strings.TrimSpace(text) != "" {
					out.WriteString("[" + text + "](" + dest + ")")
				} else {
					out.WriteString(text)
				}
				i = end
				continue
			}
		case '<':
			if end := tagEnd.from(i); end >= 0 {
				if n := len(leadingTag.FindString(s[i : end+1])); n > 0 {
					if name := strings.ToLower(s[i:min(i+3, len(s))]); name == "<br" || strings.HasPrefix(name, "<p") || name == "</p" {
						out.WriteByte(' ')
					}
					i += n
					continue
				}
			}
		case '&':
			if strings.HasPrefix(s[i:], "&nbsp;") {
				out.WriteByte(' ')
				i += len("&nbsp;")
				continue
			}
		case '{':
			if strings.HasPrefix(s[i:], "{{<") || strings.HasPrefix(s[i:], "{{%") {
				end, other := shortcodeEnd.from(i+3), otherEnd.from(i+3)
				if end < 0 || other >= 0 && other < end {
					end = other
				}
				if end >= 0 {
					i = end + len(">}}")
					continue
				}
			}
			if strings.HasPrefix(s[i:], "{' '}") || strings.HasPrefix(s[i:], `{" "}`) {
				out.WriteByte(' ')
				i += 5
				continue
			}
			// An attribute list of an extended Markdown: {.class}, {:target="_blank"}, {.external-link target="_blank"}.
			if i+1 < len(s) && (s[i+1] == '.' || s[i+1] == ':' || s[i+1] == '#') {
				if end := braceEnd.from(i); end >= 0 {
					i = end + 1
					continue
				}
			}
		}
		out.WriteByte(s[i])
		i++
	}
	return out.String()
}

// ahead finds the next place of a mark in a text that is read from its start. All questions together cost one reading.
type ahead struct {
	s, end string
	at     int // where it was found last; the text's length where it does not come any more
	begun  bool
}

// from is where the mark is at i or after it, or -1. It is asked of places in their order.
func (a *ahead) from(i int) int {
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

// A pair is what is opened and closed at two places; closed is -1 where it is not. Lists are in the order of opening.
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

// closing is where that is closed which is opened at a place; -1 where nothing is.
func closing(list []pair, opened int) int {
	i, ok := slices.BinarySearchFunc(list, opened, func(p pair, at int) int { return cmp.Compare(p.opened, at) })
	if !ok {
		return -1
	}
	return list[i].closed
}

// link reads [text](dest "title"), [text][label] and [text][] where s has an opening bracket; end is behind it. A reference has no
// destination: its definition stands elsewhere.
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

// resolve makes the destination of a link on a page absolute; empty where nothing sensible can be said.
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
	page := ext == "" && strings.HasPrefix(target, "/") || ext == "" && strings.HasPrefix(target, ".") || ext == ".md" || ext == ".mdx" || ext == ".markdown" || ext == ".html"
	if !page {
		return ""
	}
	target = strings.TrimSuffix(target, ext)
	if !strings.HasPrefix(target, "/") {
		// Relative links are relative to the file. They can be followed where the page's address ends in its path.
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
