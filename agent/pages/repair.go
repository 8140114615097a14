package pages

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"docent/agent/workspace"
	"docent/site/markup"
)

// Repair returns the destination that a broken link must have meant, if exactly one is certain.
func (s *Site) Repair(p *markup.Page, l markup.Link) (string, bool) {
	if l.Kind == markup.ImportLink || l.From != markup.LinkBase || l.Takes {
		return "", false
	}
	t := s.Resolve(p.Path, l)
	if t.File != "" { // the anchor
		if !workspace.IsPage(t.File) {
			return "", false
		}
		q, err := s.Page(t.File)
		if err != nil {
			return "", false
		}
		want := squash(t.Fragment)
		var found []string
		anchors := s.Generator.Anchors(q.Headings)
		for i, h := range q.Headings {
			if want != "" && (squash(anchors[i]) == want || squash(h.Text) == want) && !slices.Contains(found, anchors[i]) {
				found = append(found, anchors[i])
			}
		}
		if len(found) != 1 {
			return "", false
		}
		return l.Dest[:strings.IndexByte(l.Dest, '#')+1] + found[0], true
	}
	file, ok := s.meant(t.Path, func(f string) string { return f })
	if !ok && t.Asked != "" && s.Generated() {
		if file, ok = s.meant(t.Asked, s.AddressOf); ok {
			t.ByAddress = !markup.IsPage(t.Asked)
		}
	}
	if !ok {
		return "", false
	}
	t.File = file
	next := s.Address(p.Path, t, file, l.Dest)
	if t.Fragment != "" {
		if q, err := s.Page(file); err != nil || !s.Anchors(q)[t.Fragment] {
			return "", false
		}
	}
	return next, true
}

func squash(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// meant returns the one page that a path must have meant: the same but for case or separators, or moved to another folder
// with its name, which no other page has, and the rest of its path kept but for one folder. called says what a page's
// path is: that of its file, or its address.
func (s *Site) meant(want string, called func(file string) string) (string, bool) {
	clean := func(p string) string {
		p = strings.ToLower(strings.Trim(p, "/"))
		for _, e := range []string{".md", ".mdx", ".markdown", ".html", ".htm"} {
			p = strings.TrimSuffix(p, e)
		}
		return strings.TrimSuffix(p, "/index")
	}
	target := clean(want)
	if target == "" || target == "." {
		return "", false
	}
	var same, moved []string
	names := 0
	for _, f := range s.List() {
		c := clean(called(f))
		if c == target || strings.NewReplacer("_", "-").Replace(c) == strings.NewReplacer("_", "-").Replace(target) {
			same = append(same, f)
		}
		if path.Base(c) == path.Base(target) {
			names++
			if oneFolder(c, target) {
				moved = append(moved, f)
			}
		}
	}
	if len(same) == 1 {
		return same[0], true
	}
	if len(same) == 0 && names == 1 && len(moved) == 1 && len(path.Base(target)) > 3 {
		return moved[0], true
	}
	return "", false
}

// oneFolder reports whether two paths differ in one folder only: another one, one more or one less.
func oneFolder(a, b string) bool {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	if len(x) < len(y) {
		x, y = y, x
	}
	if len(x)-len(y) > 1 {
		return false
	}
	i := 0
	for i < len(y) && x[i] == y[i] {
		i++
	}
	if i < len(x) && isLocale(x[i]) || i < len(y) && isLocale(y[i]) {
		return false // the same page in another language is another page
	}
	if len(x) == len(y) {
		return i < len(y) && slices.Equal(x[i+1:], y[i+1:])
	}
	return slices.Equal(x[i+1:], y[i:])
}

var locale = regexp.MustCompile(
	`^(?:ar|bg|bn|ca|cs|da|de|el|en|es|et|fa|fi|fr|he|hi|hr|hu|id|it|ja|ko|lt|lv|ms|nl|no|pl|pt|ro|ru|sk|sl|sr|sv|th|tr|uk|vi|zh|jp|cn)(?:[-_](?:[a-z]{2}|[a-z]{4}|[0-9]{3}))?$`)

// isLocale tells the name of a folder that holds the pages of one language.
func isLocale(folder string) bool { return locale.MatchString(strings.ToLower(folder)) }

// English reports whether a page may be read as English.
func English(p *markup.Page) bool {
	for _, f := range strings.Split(path.Dir(p.Path), "/") {
		if isLocale(f) && !strings.HasPrefix(strings.ToLower(f), "en") {
			return false
		}
	}
	for _, k := range []string{"lang", "language", "locale"} {
		if v, ok := p.Front.Values[k].(string); ok && !strings.HasPrefix(strings.ToLower(v), "en") {
			return false
		}
	}
	return true
}
