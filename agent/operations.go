package agent

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/golangci/misspell"

	"docent/api"
	"docent/markup"
)

func globbed(pattern, name string) bool {
	ok, err := doublestar.Match(pattern, name)
	return err == nil && ok
}
func stem(p string) string      { return strings.TrimSuffix(p, path.Ext(p)) }
func sameFold(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }
func hasMarkup(s string) bool {
	return strings.ContainsAny(s, "\n`<>{}[]") || strings.Contains(s, "**") || strings.HasPrefix(s, "#")
}
func addressLike(s string) bool {
	return strings.Contains(s, "://") || strings.HasPrefix(s, "/") && len(s) > 1 || strings.HasPrefix(s, "www.") || strings.HasPrefix(s, "#") && !strings.Contains(s, " ")
}

// Replace text.
type replaceOp struct {
	from, to string
	located
}

func (o *replaceOp) todo() string {
	if o.to == "" {
		return fmt.Sprintf("Remove %s %s", quote(o.from), o.scope)
	}
	return fmt.Sprintf("Replace %s with %s %s", quote(o.from), quote(o.to), o.scope)
}

func (o *replaceOp) within(s scope) operation {
	c := *o
	c.scope = o.scope.elsewhere(s)
	return &c
}

func (o *replaceOp) run(r *run) error {
	if strings.TrimSpace(o.from) == "" {
		return refuse("the text to replace is empty")
	}
	if o.from == o.to {
		return idle("the text to replace and the new one are the same")
	}
	pages := r.pages()
	re := r.reach(o.scope.manner)
	re.links = re.links || addressLike(o.from)
	if hasMarkup(o.from) && !addressLike(o.from) {
		re.raw, re.front = true, false
	}
	find := literalFinder(o.from, o.to, o.scope.manner)
	if o.to == "" {
		find = removing(find)
	}
	if err := r.oneMeaning(o.scope, pages, find, o.from); err != nil {
		return err
	}
	what := "replaced"
	if o.to == "" {
		what = "removed"
	}
	n, files, err := r.rewritePages(pages, re, find, what)
	if err != nil {
		return err
	}
	if n == 0 {
		m, _, err := r.countPages(pages, r.reach(manner{code: true, links: true}), find)
		if err != nil {
			return err
		}
		if m > 0 && !o.scope.code {
			return refuse("%s does not occur in text%s; it does %s in code or links, which are left alone unless the instruction ends with “also in code” or “also in links”", quote(o.from), o.scope.there(), times(m))
		}
		return idle("%s does not occur %s", quote(o.from), o.scope.nowhere())
	}
	if !o.scope.words && o.to != "" {
		in := literalFinder(o.from, o.to, manner{words: true, nocase: o.scope.nocase})
		r.partOf(n, re, in, find)
	}
	verb := "Replaced"
	if o.to == "" {
		r.did("Removed %s: %s in %s", quote(o.from), count(n, "occurrence"), count(files, "file"))
		r.headline("remove %s", quote(o.from))
		return nil
	}
	r.did("%s %s with %s: %s in %s", verb, quote(o.from), quote(o.to), count(n, "occurrence"), count(files, "file"))
	r.headline("replace %s with %s", quote(o.from), quote(o.to))
	return nil
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// Rename a term.
type renameOp struct {
	from, to string
	located
}

func (o *renameOp) todo() string {
	return fmt.Sprintf("Rename %s to %s %s", quote(o.from), quote(o.to), o.scope)
}

func (o *renameOp) within(s scope) operation {
	c := *o
	c.scope = o.scope.elsewhere(s)
	return &c
}

func (o *renameOp) run(r *run) error {
	_, dir := r.site.below(strings.TrimSuffix(o.from, "/"))
	if f, err := r.site.find(o.from); (pathLike(o.from) || pathLike(o.to)) && (err == nil && isPage(f) || dir && strings.HasSuffix(o.from, "/")) {
		return (&moveOp{from: o.from, to: o.to}).run(r)
	}
	from, to := strings.TrimSpace(o.from), strings.TrimSpace(o.to)
	if from == "" || to == "" {
		return refuse("a term is empty")
	}
	if from == to {
		return idle("both terms are the same")
	}
	if strings.ContainsAny(from+to, "\n\r") {
		return refuse("a term is one line of text")
	}
	pages := r.pages()
	find := termFinder(from, to, o.scope.manner)
	if err := r.oneMeaning(o.scope, pages, find, from); err != nil {
		return err
	}
	any := o.scope.manner
	any.nocase = true
	every, _, err := r.countPages(pages, r.reach(any), termFinder(from, to, any))
	if err != nil {
		return err
	}
	n, files, err := r.rewritePages(pages, r.reach(o.scope.manner), find, "renamed")
	if err != nil {
		return err
	}
	all, everything := literalFinder(from, "", manner{nocase: true, words: true}), r.reach(manner{code: true, links: true})
	if n == 0 && every > 0 {
		return refuse("the term %s does not occur %s written so; it does %s in another case: end the instruction with “ignoring case” to rename these", quote(from), o.scope, times(every))
	}
	if n == 0 {
		m, _, err := r.countPages(pages, everything, all)
		if err != nil {
			return err
		}
		if m > 0 {
			return refuse("the term %s does not occur as text%s; it does %s in code, links or names of files, which are left alone", quote(from), o.scope.there(), times(m))
		}
		return idle("the term %s does not occur %s", quote(from), o.scope.nowhere())
	}
	left, in, err := r.countPages(pages, everything, all)
	if err != nil {
		return err
	}
	if strings.Contains(strings.ToLower(to), strings.ToLower(from)) {
		left = 0 // the new term holds the old one
	}
	r.did("Renamed %s to %s: %s in %s", quote(from), quote(to), count(n, "occurrence"), count(files, "file"))
	if other := every - n; other > 0 && !o.scope.exactCase {
		r.kept("Left %s of %s in another case; say “ignoring case” to rename such", count(other, "occurrence"), quote(from))
		left -= other
	}
	if left > 0 {
		r.kept("Left %s in %s in code, links, URLs and names, where %s is not text", count(left, "occurrence"), count(in, "file"), quote(from))
	}
	r.headline("rename %s to %s", quote(from), quote(to))
	return nil
}

// rewritePages makes a text operation on pages; it returns the number of places and files.
func (r *run) rewritePages(pages []string, re reach, find finder, what string) (n, files int, err error) {
	for _, f := range pages {
		if err := r.ctx.Err(); err != nil {
			return 0, 0, err
		}
		p, err := r.site.page(f)
		if err != nil {
			if len(pages) > 1 {
				if _, ok := err.(*refusal); ok {
					r.kept("Left %s: %v", r.site.show(f), err)
					continue
				}
			}
			return 0, 0, err
		}
		out, k, err := rewrite(p, re, find)
		if err != nil {
			return 0, 0, err
		}
		if k == 0 || bytes.Equal(out, p.Src) {
			continue
		}
		if what == "removed" {
			if all := hollow(p, markup.Parse(f, out)); all != "" {
				return 0, 0, refuse("in %s, that is all of %s", r.site.show(f), all)
			}
		}
		if err := r.put(f, p, out, true); err != nil {
			return 0, 0, err
		}
		r.tally(f, what, k)
		n += k
		files++
	}
	return n, files, nil
}

func (r *run) countPages(pages []string, re reach, find finder) (n, files int, err error) {
	for _, f := range pages {
		p, err := r.site.page(f)
		if err != nil {
			continue
		}
		if _, k, err := rewrite(p, re, find); err == nil && k > 0 {
			n += k
			files++
		}
	}
	return n, files, nil
}

// partOf is told to the user when some places were within longer words.
func (r *run) partOf(n int, re reach, words, all finder) {
	whole := 0
	for _, c := range r.replaced {
		if p := c.before; p != nil {
			if _, k, err := rewrite(p, re, words); err == nil {
				whole += k
			}
		}
	}
	if part := n - whole; part > 0 && whole >= 0 {
		r.kept("%s of these stood within a longer word; say “only whole words” to leave such", count(part, "occurrence"))
	}
}

// put writes a page. With pin set, anchors that links use are kept although the headings' words have changed.
func (r *run) put(f string, before *markup.Page, out []byte, pin bool) error {
	if pin {
		now := markup.Parse(f, out)
		edits, err := r.pins(before, now)
		if err != nil {
			return err
		}
		if len(edits) > 0 {
			if out, err = markup.Apply(out, edits); err != nil {
				return fmt.Errorf("keep the anchors of %s: %w", f, err)
			}
		}
	}
	if err := r.ws.write(f, out); err != nil {
		return err
	}
	r.replaced = append(r.replaced, replaced{before})
	return nil
}

type replaced struct{ before *markup.Page }

// What an anchor may hold where it is kept as {#anchor}, and where as an attribute.
var (
	safeAnchor      = regexp.MustCompile(`^[\p{L}\p{N}_.:’&/-]+$`)
	attributeAnchor = regexp.MustCompile(`^[\p{L}\p{N}_.:’/$+@,;()!*%=?~-]+$`)
)

// pins gives the edits that keep anchors alive which links lead to and which the new words of a heading would end.
func (r *run) pins(before, now *markup.Page) ([]markup.Edit, error) {
	if !isPage(before.Path) || len(before.Headings) != len(now.Headings) {
		return nil, nil
	}
	changed := false
	for i := range now.Headings {
		changed = changed || now.Headings[i].Text != before.Headings[i].Text
	}
	if !changed {
		return nil, nil
	}
	in, err := r.site.inbound(before.Path)
	if err != nil {
		return nil, err
	}
	was, is := r.site.anchors(before, 3), r.site.anchors(now, 3)
	want := map[int][]string{}
	for _, l := range in {
		f := l.to.fragment
		if f == "" || is[f] || !was[f] || !safeAnchor.MatchString(f) && !attributeAnchor.MatchString(f) {
			continue
		}
		for i, h := range before.Headings {
			if h.Custom || now.Headings[i].Text == h.Text {
				continue
			}
			if h.Anchor == f || slices.Contains(slugs(h.Text), f) {
				if !slices.Contains(want[i], f) {
					want[i] = append(want[i], f)
				}
				break
			}
		}
	}
	var edits []markup.Edit
	for i := range now.Headings {
		names := want[i]
		sort.Strings(names)
		h := now.Headings[i]
		for k, name := range names {
			if k == 0 && !h.Custom && r.site.takesIDs() && safeAnchor.MatchString(name) {
				edits = append(edits, markup.Edit{Span: markup.Span{Start: h.Inner.End, End: h.Inner.End}, New: []byte(" {#" + name + "}")})
				r.kept("Kept the anchor #%s of heading %s in %s, which links lead to", name, quote(h.Text), r.site.show(now.Path))
				continue
			}
			edits = append(edits, markup.Edit{Span: markup.Span{Start: h.Inner.Start, End: h.Inner.Start}, New: []byte(`<a id="` + name + `"></a>`)})
			r.kept("Kept the anchor #%s of heading %s in %s, which links lead to", name, quote(h.Text), r.site.show(now.Path))
		}
	}
	sort.Slice(edits, func(i, j int) bool { return edits[i].Span.Start < edits[j].Span.Start })
	return edits, nil
}

// takesIDs tells whether the site's generator reads {#id} behind a heading.
func (s *documentation) takesIDs() bool {
	return s.generator.Kind == api.SiteMintlify || s.generator.Kind == api.SiteDocusaurus || s.generator.Kind == api.SiteVitePress || s.generator.Kind == api.SiteHugo
}

// readable parses the pages of bounds. One that cannot be read is left out, unless it is the only one.
func (r *run) readable(b *bounds) ([]*markup.Page, error) {
	var out []*markup.Page
	for _, f := range b.pages {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		p, err := r.site.page(f)
		if err != nil {
			if _, ok := err.(*refusal); ok && len(b.pages) > 1 {
				continue
			}
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// heading finds the one heading with a text where the operation works.
func (r *run) heading(text string) (*markup.Page, int, error) { return r.headingIn(r.bounds, text) }

func (r *run) headingIn(b *bounds, text string) (*markup.Page, int, error) {
	if strings.TrimSpace(text) == "" {
		return nil, 0, refuse("a heading is empty")
	}
	list, err := r.readable(b)
	if err != nil {
		return nil, 0, err
	}
	page := ""
	if len(list) == 1 && !b.free {
		page = r.site.show(list[0].Path)
	}
	type at struct {
		p *markup.Page
		i int
	}
	text = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(text), "#"))
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return strings.TrimSpace(a) == b }, sameFold} {
		var found []at
		for _, p := range list {
			for i, h := range p.Headings {
				if regions, whole := b.within(p); !whole && !inside(h.Span, regions) && !inside(h.Inner, regions) {
					continue
				}
				if same(h.Text, text) || same(string(p.Src[h.Inner.Start:h.Inner.End]), text) {
					found = append(found, at{p, i})
				}
			}
		}
		if len(found) == 1 {
			return found[0].p, found[0].i, nil
		}
		if len(found) > 1 {
			if page == "" {
				var in []string
				for _, f := range found {
					if name := r.site.show(f.p.Path); !slices.Contains(in, name) {
						in = append(in, name)
					}
				}
				return nil, 0, refuse("there are %d headings %s; say in which page: %s", len(found), quote(text), listing(in))
			}
			return nil, 0, refuse("%s has %d headings %s, so none is certain", page, len(found), quote(text))
		}
	}
	if page != "" {
		return nil, 0, refuse("%s has no heading %s", page, quote(text))
	}
	return nil, 0, refuse("no page has a heading %s", quote(text))
}

// sectionEnd is where the section of a heading ends: at the next heading of its level or above.
func sectionEnd(p *markup.Page, i int) int {
	for _, h := range p.Headings[i+1:] {
		if h.Level <= p.Headings[i].Level {
			return lineStart(p.Src, h.Span.Start)
		}
	}
	return p.Body.End
}

func lineStart(src []byte, i int) int {
	return bytes.LastIndexByte(src[:i], '\n') + 1
}

func lineAfter(src []byte, i int) int {
	if k := bytes.IndexByte(src[i:], '\n'); k >= 0 {
		return i + k + 1
	}
	return len(src)
}

func eolOf(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// blockText is a user's text as a block of a page, with its line ends.
func blockText(text, eol string) string {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t")
	}
	return strings.Join(lines, eol)
}

// insertBlock gives the edit that makes text a block of its own at a line's start.
func insertBlock(src []byte, at int, text string) markup.Edit {
	eol := eolOf(src)
	var b strings.Builder
	if at > 0 && at <= len(src) {
		head := src[:at]
		switch {
		case !bytes.HasSuffix(head, []byte("\n")):
			b.WriteString(eol + eol)
		case !endsBlank(head):
			b.WriteString(eol)
		}
	}
	b.WriteString(blockText(text, eol))
	b.WriteString(eol)
	if at < len(src) && !startsBlank(src[at:]) {
		b.WriteString(eol)
	}
	return markup.Edit{Span: markup.Span{Start: at, End: at}, New: []byte(b.String())}
}

func endsBlank(b []byte) bool {
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	i := bytes.LastIndexByte(b, '\n')
	return len(bytes.TrimSpace(b[i+1:])) == 0
}

func startsBlank(b []byte) bool {
	return len(bytes.TrimSpace(b[:lineAfter(b, 0)])) == 0
}

// backOver steps back over blank lines, so that a block stands right behind the text before it.
func backOver(src []byte, at, least int) int {
	for at > least {
		start := lineStart(src, at-1)
		if start < least || len(bytes.TrimSpace(src[start:at])) > 0 {
			break
		}
		at = start
	}
	return at
}

// edit applies edits to a page and keeps account of it.
func (r *run) edit(p *markup.Page, edits []markup.Edit, what string, n int) error {
	out, err := markup.Apply(p.Src, edits)
	if err != nil {
		return fmt.Errorf("edit %s: %w", p.Path, err)
	}
	if err := r.put(p.Path, p, out, false); err != nil {
		return err
	}
	r.tally(p.Path, what, n)
	return nil
}

// Insert a block beside a heading.
type insertOp struct {
	text, heading   string
	before, section bool
	located
}

func (o *insertOp) todo() string {
	side := "after"
	if o.before {
		side = "before"
	}
	return fmt.Sprintf("Insert %s %s heading %s", quote(o.text), side, quote(o.heading)) + o.scope.describe()
}

func (o *insertOp) run(r *run) error {
	if strings.TrimSpace(o.text) == "" {
		return refuse("the text to insert is empty")
	}
	p, i, err := r.heading(o.heading)
	if err != nil {
		return err
	}
	h := p.Headings[i]
	at := lineAfter(p.Src, h.Span.End)
	if o.before {
		at = lineStart(p.Src, h.Span.Start)
	} else if o.section {
		at = backOver(p.Src, sectionEnd(p, i), at)
	}
	if err := r.edit(p, []markup.Edit{insertBlock(p.Src, at, o.text)}, "blocks inserted", 1); err != nil {
		return err
	}
	side := "after"
	if o.before {
		side = "before"
	}
	r.did("Inserted a block %s heading %s in %s", side, quote(h.Text), r.site.show(p.Path))
	r.headline("add text %s %s in %s", side, quote(h.Text), r.site.show(p.Path))
	return nil
}

// Add a section.
type sectionOp struct {
	title, text, near string
	before            bool
	located
}

func (o *sectionOp) todo() string {
	return "Add a section " + quote(o.title) + o.scope.describe()
}

func (o *sectionOp) run(r *run) error {
	title := oneLine(o.title, 200)
	if title == "" {
		return refuse("the section has no title")
	}
	var p *markup.Page
	level, at := 2, 0
	if o.near != "" {
		q, i, err := r.heading(o.near)
		if err != nil {
			return err
		}
		p, level = q, q.Headings[i].Level
		at = lineStart(p.Src, p.Headings[i].Span.Start)
		if !o.before {
			at = backOver(p.Src, sectionEnd(p, i), lineAfter(p.Src, p.Headings[i].Span.End))
		}
	} else {
		q, err := r.page()
		if err != nil {
			return err
		}
		p = q
		at = backOver(p.Src, p.Body.End, p.Body.Start)
	}
	for _, h := range p.Headings {
		if sameFold(h.Text, title) {
			return idle("%s has a section %s already", r.site.show(p.Path), quote(title))
		}
	}
	text := strings.Repeat("#", level) + " " + title
	if strings.TrimSpace(o.text) != "" {
		text += "\n\n" + strings.Trim(o.text, "\n")
	}
	if err := r.edit(p, []markup.Edit{insertBlock(p.Src, at, text)}, "sections added", 1); err != nil {
		return err
	}
	r.did("Added the section %s to %s", quote(title), r.site.show(p.Path))
	r.headline("add the section %s to %s", quote(title), r.site.show(p.Path))
	return nil
}

// Append or prepend text to a page or a section.
type appendOp struct {
	text, section string
	top           bool
	located
}

func (o *appendOp) todo() string {
	verb := "Append"
	if o.top {
		verb = "Prepend"
	}
	s := fmt.Sprintf("%s %s", verb, quote(o.text)) + o.scope.describe()
	if o.section != "" {
		s += " in section " + quote(o.section)
	}
	return s
}

func (o *appendOp) run(r *run) error {
	if strings.TrimSpace(o.text) == "" {
		return refuse("the text to add is empty")
	}
	var p *markup.Page
	var at int
	if o.section != "" {
		q, i, err := r.heading(o.section)
		if err != nil {
			return err
		}
		p = q
		first := lineAfter(p.Src, p.Headings[i].Span.End)
		if at = first; !o.top {
			at = backOver(p.Src, sectionEnd(p, i), first)
		}
	} else {
		q, err := r.page()
		if err != nil {
			return err
		}
		p = q
		if o.top {
			at = afterTitle(p)
		} else {
			at = backOver(p.Src, p.Body.End, p.Body.Start)
		}
	}
	if err := r.edit(p, []markup.Edit{insertBlock(p.Src, at, o.text)}, "blocks added", 1); err != nil {
		return err
	}
	where := "at the end of"
	if o.top {
		where = "at the beginning of"
	}
	what := r.site.show(p.Path)
	if o.section != "" {
		what = "section " + quote(o.section) + " in " + what
	}
	r.did("Added a block %s %s", where, what)
	r.headline("add text to %s", r.site.show(p.Path))
	return nil
}

// afterTitle is where the text of a page begins: behind its front matter, its imports and a first heading of level 1.
func afterTitle(p *markup.Page) int {
	at := p.Body.Start
	for _, l := range p.Links {
		if l.Kind == markup.ImportLink && len(bytes.TrimSpace(p.Src[at:l.Span.Start])) == 0 {
			at = lineAfter(p.Src, l.Span.End)
		}
	}
	if len(p.Headings) > 0 && p.Headings[0].Level == 1 && len(bytes.TrimSpace(p.Src[at:p.Headings[0].Span.Start])) == 0 {
		return lineAfter(p.Src, p.Headings[0].Span.End)
	}
	for at < p.Body.End && len(bytes.TrimSpace(p.Src[at:lineAfter(p.Src, at)])) == 0 {
		at = lineAfter(p.Src, at)
	}
	return at
}

// Delete a section.
type deleteSectionOp struct {
	heading string
	line    bool // the heading alone; the text under it stays
	located
}

func (o *deleteSectionOp) todo() string {
	if o.line {
		return "Delete the heading " + quote(o.heading) + o.scope.describe()
	}
	return "Delete section " + quote(o.heading) + o.scope.describe()
}

func (o *deleteSectionOp) run(r *run) error {
	p, i, err := r.heading(o.heading)
	if err != nil {
		return err
	}
	h := p.Headings[i]
	cut := markup.Span{Start: lineStart(p.Src, h.Span.Start), End: sectionEnd(p, i)}
	if o.line {
		cut.End = lineAfter(p.Src, h.Span.End)
		if emptyLine(p.Src, cut.End) && (cut.Start == p.Body.Start || emptyLine(p.Src, lineStart(p.Src, cut.Start-1))) {
			cut.End = lineAfter(p.Src, cut.End)
		}
		if err := r.edit(p, []markup.Edit{{Span: cut}}, "headings deleted", 1); err != nil {
			return err
		}
		r.did("Deleted the heading %s from %s; the text under it stays", quote(h.Text), r.site.show(p.Path))
		r.headline("delete the heading %s from %s", quote(h.Text), r.site.show(p.Path))
		return nil
	}
	cut.End = closeTags(p, cut)
	if err := whole(p, cut); err != nil {
		return err
	}
	if cut.End == p.Body.End { // the last one: no blank lines are left at the end
		cut.Start = max(backOver(p.Src, cut.Start, p.Body.Start), p.Body.Start)
	}
	n := 0
	for _, h := range p.Headings {
		if h.Span.Start >= cut.Start && h.Span.End <= cut.End {
			n++
		}
	}
	edits, kept := keepDefinitions(p, cut)
	if err := r.edit(p, append([]markup.Edit{{Span: cut}}, edits...), "sections deleted", n); err != nil {
		return err
	}
	if kept > 0 {
		r.kept("Kept %s of the section, which other parts of %s use, at its end", count(kept, "definition"), r.site.show(p.Path))
	}
	r.means(p.Path)
	r.did("Deleted the section %s from %s%s", quote(p.Headings[i].Text), r.site.show(p.Path), func() string {
		if n > 1 {
			return fmt.Sprintf(", with %s below it", count(n-1, "section"))
		}
		return ""
	}())
	r.headline("delete the section %s from %s", quote(p.Headings[i].Text), r.site.show(p.Path))
	return nil
}

var footnote = regexp.MustCompile(`(?m)^ {0,3}\[(\^[^\]\s]+)\]:`)

// keepDefinitions gives the edits that carry definitions of links and footnotes which other parts of the page use over to
// its end.
func keepDefinitions(p *markup.Page, cut markup.Span) ([]markup.Edit, int) {
	in := func(s markup.Span) bool { return s.Start >= cut.Start && s.Start < cut.End }
	code := func(at int) bool {
		return slices.ContainsFunc(p.Code, func(c markup.Code) bool { return c.Span.Start <= at && at < c.Span.End })
	}
	used, stays := map[string]bool{}, map[string]bool{}
	for _, l := range p.Links {
		switch {
		case l.Kind == markup.ReferenceLink && !in(l.Span):
			used[l.Label] = true
		case l.Kind == markup.ReferenceDefinition && !in(l.Span):
			stays[l.Label] = true
		}
	}
	var texts []string
	for _, l := range p.Links {
		if l.Kind == markup.ReferenceDefinition && in(l.Span) && used[l.Label] && !stays[l.Label] {
			stays[l.Label] = true
			texts = append(texts, string(p.Src[l.Span.Start:l.Span.End]))
		}
	}
	links := len(texts)
	eol := eolOf(p.Src)
	for _, m := range footnote.FindAllSubmatchIndex(p.Src[cut.Start:cut.End], -1) {
		start := cut.Start + m[0]
		mark := []byte("[" + string(p.Src[cut.Start+m[2]:cut.Start+m[3]]) + "]")
		if code(start) || !bytes.Contains(p.Src[:cut.Start], mark) && !bytes.Contains(p.Src[cut.End:], mark) {
			continue
		}
		end := lineAfter(p.Src, start)
		for at := end; at < cut.End; at = lineAfter(p.Src, at) { // its further lines, and paragraphs that are indented
			if blank := emptyLine(p.Src, at); !blank && (emptyLine(p.Src, lineStart(p.Src, at-1)) && p.Src[at] != ' ' && p.Src[at] != '\t' || footnote.Match(p.Src[at:lineAfter(p.Src, at)])) {
				break
			} else if !blank {
				end = lineAfter(p.Src, at)
			}
		}
		texts = append(texts, strings.TrimRight(string(p.Src[start:end]), "\r\n"))
	}
	if len(texts) == 0 {
		return nil, 0
	}
	block := strings.Join(texts[:links], eol)
	for _, t := range texts[links:] {
		if block != "" {
			block += eol + eol
		}
		block += t
	}
	at, before := backOver(p.Src, p.Body.End, p.Body.Start), ""
	if cut.End >= at { // the section is the last one: its blank lines go with it
		at = cut.End
		before = eol
	} else if !endsBlank(p.Src[:at]) {
		before = eol
		if p.Src[at-1] != '\n' {
			before += eol
		}
	}
	return []markup.Edit{{Span: markup.Span{Start: at, End: at}, New: []byte(before + block + eol)}}, len(texts)
}

// closeTags shortens a section that runs past the end of the component that it stands in.
func closeTags(p *markup.Page, cut markup.Span) int {
	for _, t := range p.Tags {
		if t.Close && t.Partner >= 0 && t.Span.Start >= cut.Start && t.Span.Start < cut.End && p.Tags[t.Partner].Span.Start < cut.Start {
			return lineStart(p.Src, t.Span.Start)
		}
	}
	return cut.End
}

// whole refuses to cut a component in two.
func whole(p *markup.Page, cut markup.Span) error {
	in := func(s markup.Span) bool { return s.Start >= cut.Start && s.Start < cut.End }
	for _, t := range p.Tags {
		if t.Partner >= 0 && in(t.Span) != in(p.Tags[t.Partner].Span) {
			return refuse("that would cut <%s> in %s in two", t.Name, p.Path)
		}
	}
	return nil
}

// Delete a paragraph, a line, a row of a table or an item of a list.
type deleteTextOp struct {
	text, unit string
	located
}

func (o *deleteTextOp) unitName() string {
	switch o.unit {
	case "row":
		return "table row"
	case "item":
		return "list item"
	}
	return o.unit
}

func (o *deleteTextOp) todo() string {
	return fmt.Sprintf("Delete the %s containing %s", o.unitName(), quote(o.text)) + o.scope.describe()
}

// A cut is one place that could be meant, or the reason why it is not.
type cut struct {
	p    *markup.Page
	span markup.Span
	why  error
}

func (o *deleteTextOp) run(r *run) error {
	if strings.TrimSpace(o.text) == "" {
		return refuse("the text to look for is empty")
	}
	list, err := r.readable(r.bounds)
	if err != nil {
		return err
	}
	re := regexp.MustCompile(wrapping(strings.TrimSpace(o.text)))
	var cuts []cut
	for _, p := range list {
		regions, everywhere := r.bounds.within(p)
		for _, m := range re.FindAllIndex(p.Src[p.Body.Start:], -1) {
			at := markup.Span{Start: p.Body.Start + m[0], End: p.Body.Start + m[1]}
			if !everywhere && !inside(at, regions) {
				continue
			}
			c := o.cut(r, p, at)
			if !slices.ContainsFunc(cuts, func(x cut) bool { return x.p == p && x.span == c.span }) {
				cuts = append(cuts, c)
			}
		}
	}
	where := "no " + o.unitName()
	if len(list) == 1 && !r.bounds.free {
		where += " of " + r.site.show(list[0].Path)
	}
	if certain := slices.DeleteFunc(slices.Clone(cuts), func(c cut) bool { return c.why != nil }); len(certain) > 0 {
		cuts = certain
	} else if len(cuts) > 0 {
		return cuts[0].why
	}
	switch {
	case len(cuts) == 0:
		return refuse("%s contains %s", where, quote(o.text))
	case len(cuts) > 1:
		return refuse("%d %ss contain %s, so none is certain", len(cuts), o.unitName(), quote(o.text))
	}
	p, span := cuts[0].p, cuts[0].span
	if err := whole(p, span); err != nil {
		return err
	}
	items := 0
	for _, it := range p.Items {
		if it.Start >= span.Start && it.End <= span.End {
			items++
		}
	}
	if o.unit != "line" && o.unit != "row" { // and one of the blank lines around it
		if span.End < len(p.Src) && emptyLine(p.Src, span.End) && (o.unit == "paragraph" || span.Start == p.Body.Start || emptyLine(p.Src, lineStart(p.Src, span.Start-1))) {
			span.End = lineAfter(p.Src, span.End)
		} else if o.unit == "paragraph" && span.Start > p.Body.Start && emptyLine(p.Src, lineStart(p.Src, span.Start-1)) {
			span.Start = max(lineStart(p.Src, span.Start-1), p.Body.Start)
		}
	}
	edits := []markup.Edit{{Span: span}}
	if o.unit == "item" {
		edits = append(edits, renumbered(p, span)...)
	}
	if err := r.edit(p, edits, o.unitName()+"s deleted", 1); err != nil {
		return err
	}
	r.means(p.Path)
	more := ""
	if o.unit == "item" && items > 1 {
		more = fmt.Sprintf(", with %s below it", count(items-1, "item"))
	}
	r.did("Deleted the %s containing %s from %s%s", o.unitName(), quote(o.text), r.site.show(p.Path), more)
	r.headline("delete a %s from %s", o.unitName(), r.site.show(p.Path))
	return nil
}

// cut finds what would go with a place in the text.
func (o *deleteTextOp) cut(r *run, p *markup.Page, at markup.Span) cut {
	lines := func(s markup.Span) markup.Span {
		return markup.Span{Start: max(lineStart(p.Src, s.Start), p.Body.Start), End: lineAfter(p.Src, max(s.End-1, s.Start))}
	}
	holds := func(s markup.Span) bool { return s.Start <= at.Start && at.End <= s.End }
	not := func(format string, args ...any) cut {
		return cut{p, lines(at), refuse("%s stands in %s of %s", quote(o.text), fmt.Sprintf(format, args...), r.site.show(p.Path))}
	}
	table := slices.IndexFunc(p.Tables, holds)
	item := -1
	for i, it := range p.Items {
		if holds(it) {
			item = i // the innermost comes last
		}
	}
	code := slices.ContainsFunc(p.Code, func(c markup.Code) bool { return !c.Inline && holds(c.Span) })
	switch o.unit {
	case "line":
		if table >= 0 && at.Start < lineAfter(p.Src, lineAfter(p.Src, p.Tables[table].Start)) {
			return not("the head of a table")
		}
		return cut{p: p, span: lines(at)}
	case "row":
		switch {
		case code || table < 0:
			return not("no table")
		case at.Start < lineAfter(p.Src, lineAfter(p.Src, p.Tables[table].Start)):
			return not("the head of a table")
		}
		return cut{p: p, span: lines(at)}
	case "item":
		if item < 0 || code {
			return not("no list item")
		}
		it := p.Items[item]
		span := lines(markup.Span{Start: it.Start, End: it.End})
		span.End = max(backOver(p.Src, span.End, lineAfter(p.Src, it.Start)), lineAfter(p.Src, it.Start))
		if strings.TrimLeft(string(p.Src[span.Start:it.Start]), " \t>") != "" {
			return not("an item that begins within the line of another, which is not deleted by itself")
		}
		return cut{p: p, span: span}
	}
	switch block := slices.IndexFunc(p.Blocks, holds); {
	case code:
		return not("a block of code")
	case table >= 0:
		return not("a table: say “delete the table row containing …”, which leaves the others; it is in a table")
	case slices.ContainsFunc(p.Headings, func(h markup.Heading) bool { return holds(h.Span) }):
		return not("a heading")
	case block < 0:
		return not("no paragraph")
	case item >= 0 && lineStart(p.Src, p.Items[item].Start) == lineStart(p.Src, p.Blocks[block].Start):
		return not("a list: say “delete the list item containing …”, which leaves the others; it is in an item")
	default:
		return cut{p: p, span: lines(p.Blocks[block])}
	}
}

// renumbered gives the edits that keep a numbered list counting on when one of its items goes.
func renumbered(p *markup.Page, gone markup.Span) []markup.Edit {
	marker := func(s markup.Span) (number, column int, at markup.Span) {
		end := s.Start
		for end < s.End && p.Src[end] >= '0' && p.Src[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(string(p.Src[s.Start:end]))
		if err != nil {
			return -1, 0, at
		}
		return n, s.Start - lineStart(p.Src, s.Start), markup.Span{Start: s.Start, End: end}
	}
	var edits []markup.Edit
	last, column, end := -1, 0, 0
	for _, it := range p.Items {
		n, col, at := marker(it)
		switch {
		case lineStart(p.Src, it.Start) == gone.Start:
			last, column, end = n, col, it.End
		case last < 0 || it.Start < end:
		case lineStart(p.Src, it.Start) != end || col != column || n != last+1:
			return edits
		default:
			edits = append(edits, markup.Edit{Span: at, New: []byte(strconv.Itoa(last))})
			last, end = n, it.End
		}
	}
	return edits
}

// emptyLine tells a blank line, also within a quotation.
func emptyLine(src []byte, at int) bool {
	return at >= len(src) || len(bytes.Trim(src[at:lineAfter(src, at)], "> \t\r\n")) == 0
}

// Set or remove a key of the front matter.
type frontOp struct {
	key, value string
	was        string // what it must be now; empty for anything
	remove     bool
	located
}

func (o *frontOp) todo() string {
	if o.remove {
		return fmt.Sprintf("Remove %s from the front matter %s", o.key, o.scope)
	}
	return fmt.Sprintf("Set %s to %s %s", o.key, quote(o.value), o.scope)
}

// Keys whose value no page shares with another one.
var ownValue = map[string]bool{"title": true, "description": true, "sidebarTitle": true, "sidebar_label": true, "slug": true, "permalink": true, "id": true, "url": true}

func (o *frontOp) within(s scope) operation {
	c := *o
	c.scope = o.scope.elsewhere(s)
	return &c
}

func (o *frontOp) run(r *run) error {
	pages := r.pages()
	if named := slices.Concat(o.scope.in...); !o.remove && ownValue[o.key] && len(pages) > len(named) {
		return refuse("that would give %s the same %s %s; name the pages", count(len(pages), "page"), o.key, o.scope)
	}
	n := 0
	for _, f := range pages {
		p, err := r.site.page(f)
		if err != nil {
			return err
		}
		var edits []markup.Edit
		if o.remove {
			if _, ok := p.Front.Values[o.key]; !ok {
				if len(pages) > 1 {
					continue
				}
				if nested := p.FrontPaths(o.key); len(nested) > 0 {
					return refuse("the front matter of %s has no %s of its own; it has %s, which is not removed by itself", r.site.show(f), o.key, listing(nested))
				}
				return idle("the front matter of %s has no %s", r.site.show(f), o.key)
			}
			edits, err = p.RemoveFront(o.key)
		} else if nested := p.FrontPaths(o.key); len(nested) > 0 {
			if len(nested) > 1 {
				return refuse("the front matter of %s has %s; say which one is meant", r.site.show(f), listing(nested))
			}
			edits, err = p.SetNested(nested[0], o.value, o.was)
		} else {
			if _, holds := p.Front.Values[o.key].(map[string]any); holds {
				return refuse("%s of %s holds other keys; name one of them, as “%s.…”", o.key, r.site.show(f), o.key)
			}
			if now := fmt.Sprint(p.Front.Values[o.key]); o.was != "" && now != o.was {
				return refuse("%s of %s is %s, not %s", o.key, r.site.show(f), quote(now), quote(o.was))
			}
			edits, err = p.SetFront(o.key, o.value)
		}
		if err != nil {
			return refuse("%v", err)
		}
		out, err := markup.Apply(p.Src, edits)
		if err != nil {
			return fmt.Errorf("edit %s: %w", f, err)
		}
		if bytes.Equal(out, p.Src) {
			continue
		}
		what := "front matter keys set"
		if o.remove {
			what = "front matter keys removed"
		}
		if err := r.edit(p, edits, what, 1); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		if o.remove {
			return idle("no front matter%s has %s", o.scope.there(), o.key)
		}
		return idle("%s is %s already", o.key, quote(o.value))
	}
	where := count(n, "file")
	if n == 1 && len(pages) == 1 {
		where = r.site.show(pages[0])
	}
	if o.remove {
		r.did("Removed %s from the front matter of %s", o.key, where)
		r.headline("remove %s from %s", o.key, where)
		return nil
	}
	r.did("Set %s to %s in %s", o.key, quote(o.value), where)
	r.headline("set %s of %s", o.key, where)
	return nil
}

// Change a heading; links to its anchor follow.
type headingOp struct {
	from, to string
	located
}

func (o *headingOp) todo() string {
	return fmt.Sprintf("Change heading %s to %s", quote(o.from), quote(o.to)) + o.scope.describe()
}

func (o *headingOp) run(r *run) error {
	to := strings.TrimSpace(o.to)
	if to == "" || strings.ContainsAny(to, "\r\n") {
		return refuse("a heading is one line of text")
	}
	p, i, err := r.heading(o.from)
	if err != nil {
		return err
	}
	h := p.Headings[i]
	if string(p.Src[h.Inner.Start:h.Inner.End]) == to {
		return idle("the heading is %s already", quote(to))
	}
	in, err := r.site.inbound(p.Path)
	if err != nil {
		return err
	}
	own := []markup.Edit{{Span: h.Inner, New: []byte(to)}}
	out, err := markup.Apply(p.Src, own)
	if err != nil {
		return err
	}
	now := markup.Parse(p.Path, out)
	if len(now.Headings) != len(p.Headings) {
		return refuse("%s would not be one heading", quote(to))
	}
	others := map[*markup.Page][]markup.Edit{}
	links := 0
	if !h.Custom {
		old := slugs(h.Text)
		is := r.site.anchors(now, 3)
		for _, l := range in {
			f := l.to.fragment
			if f == "" || is[f] {
				continue
			}
			next := ""
			if f == h.Anchor {
				next = now.Headings[i].Anchor
			} else if slices.Contains(old, f) && !slices.ContainsFunc(p.Headings[:i], func(x markup.Heading) bool { return slices.Contains(slugs(x.Text), f) }) {
				next = sameRule(h.Text, now.Headings[i].Text, f)
			}
			if next == "" {
				continue
			}
			k := strings.IndexByte(l.link.Dest, '#')
			at := markup.Span{Start: l.link.At.Start + k + 1, End: l.link.At.End}
			e := markup.Edit{Span: at, New: []byte(next)}
			if l.page.Path == p.Path {
				own = append(own, e)
			} else {
				others[l.page] = append(others[l.page], e)
			}
			links++
		}
	}
	if err := r.edit(p, own, "headings changed", 1); err != nil {
		return err
	}
	if n := len(own) - 1; n > 0 {
		r.bounds.followed[p.Path] = true
		r.tally(p.Path, "links rewritten", n)
	}
	for _, q := range inOrder(others) {
		if err := r.follow(q, others[q]); err != nil {
			return err
		}
	}
	r.did("Changed heading %s to %s in %s%s", quote(h.Text), quote(to), r.site.show(p.Path), func() string {
		if links > 0 {
			return "; " + count(links, "link") + " to it rewritten"
		}
		return ""
	}())
	r.headline("change heading %s to %s", quote(h.Text), quote(to))
	return nil
}

// sameRule makes the anchor of a new text by the rule that gave the old one.
func sameRule(oldText, newText, old string) string {
	if markup.Slug(oldText) == old {
		return markup.Slug(newText)
	}
	for _, rule := range slugRules {
		if rule(oldText) == old {
			return rule(newText)
		}
	}
	return ""
}

func inOrder(m map[*markup.Page][]markup.Edit) []*markup.Page {
	var out []*markup.Page
	for p := range m {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *markup.Page) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// Fix typos.
type typosOp struct{ located }

func (o *typosOp) todo() string { return "Fix typos " + o.scope.String() }
func (o *typosOp) within(s scope) operation {
	return &typosOp{located{o.scope.elsewhere(s)}}
}

var typoWords = func() func(w string) (string, bool) {
	fixes := map[string]string{}
	for i := 0; i+1 < len(misspell.DictMain); i += 2 {
		fixes[misspell.DictMain[i]] = misspell.DictMain[i+1]
	}
	return func(w string) (string, bool) {
		fix, ok := fixes[strings.ToLower(w)]
		if !ok {
			return "", false
		}
		switch {
		case w == strings.ToLower(w):
			return fix, true
		case w == strings.ToUpper(w):
			return strings.ToUpper(fix), true
		case unicode.IsUpper(rune(w[0])) && w[1:] == strings.ToLower(w[1:]):
			return strings.ToUpper(fix[:1]) + fix[1:], true
		}
		return "", false // an odd form is a name
	}
}()

var asciiWord = regexp.MustCompile(`[A-Za-z][A-Za-z']*[A-Za-z]`)

func (o *typosOp) run(r *run) error {
	list := r.pages()
	find := func(src []byte, at markup.Span) []hit {
		var out []hit
		for _, m := range asciiWord.FindAllIndex(src[at.Start:at.End], -1) {
			sp := markup.Span{Start: at.Start + m[0], End: at.Start + m[1]}
			fix, ok := typoWords(string(src[sp.Start:sp.End]))
			if !ok || inWord(src, sp, at) || codeLike(src, sp, at, false, true) {
				continue
			}
			out = append(out, hit{sp, fix})
		}
		return out
	}
	foreign := 0
	list = slices.DeleteFunc(list, func(f string) bool {
		p, err := r.site.page(f)
		if err == nil && !english(p) {
			foreign++
			return true
		}
		return false
	})
	if foreign > 0 {
		r.kept("Left %s of another language than English", count(foreign, "page"))
	}
	n, files, err := r.rewritePages(list, r.reach(manner{}), find, "typos fixed")
	if err != nil {
		return err
	}
	if n == 0 {
		return idle("no word of the list of common misspellings occurs%s", o.scope.there())
	}
	r.did("Fixed %s in %s", count(n, "typo"), count(files, "file"))
	r.headline("fix typos")
	return nil
}

// Use one list marker.
type listsOp struct {
	marker byte
	located
}

func (o *listsOp) todo() string { return fmt.Sprintf("Use “%c” for lists %s", o.marker, o.scope) }
func (o *listsOp) within(s scope) operation {
	return &listsOp{o.marker, located{o.scope.elsewhere(s)}}
}

var bullet = regexp.MustCompile(`^([ \t>]*(?:[-*+][ \t]+|[0-9]{1,9}[.)][ \t]+)*?)([-*+])(?:[ \t]+\S|[ \t]*\r?$)`)

func (o *listsOp) run(r *run) error {
	n, files := 0, 0
	for _, f := range r.pages() {
		p, err := r.site.page(f)
		if err != nil || !isPage(f) {
			continue
		}
		var edits []markup.Edit
		for at := p.Body.Start; at < len(p.Src); at = lineAfter(p.Src, at) {
			line := p.Src[at:lineAfter(p.Src, at)]
			m := bullet.FindSubmatchIndex(bytes.TrimRight(line, "\n"))
			if m == nil {
				continue
			}
			k := at + m[4]
			if p.Src[k] == o.marker || !r.isBullet(p, k) {
				continue
			}
			edits = append(edits, markup.Edit{Span: markup.Span{Start: k, End: k + 1}, New: []byte{o.marker}})
		}
		if edits = r.keep(p, edits); len(edits) == 0 {
			continue
		}
		out, err := markup.Apply(p.Src, edits)
		if err != nil {
			return err
		}
		if q := markup.Parse(f, out); q.Plain(q.Body) != p.Plain(p.Body) || len(q.Headings) != len(p.Headings) || len(q.Code) != len(p.Code) {
			r.kept("Left the lists of %s: another marker would change what they say", r.site.show(f))
			continue
		}
		if err := r.edit(p, edits, "list markers changed", len(edits)); err != nil {
			return err
		}
		n += len(edits)
		files++
	}
	if n == 0 {
		return idle("no list%s has another marker", o.scope.there())
	}
	r.did("Changed %s in %s to “%c”", count(n, "list marker"), count(files, "file"), o.marker)
	r.headline("use “%c” for lists", o.marker)
	return nil
}

// isBullet tells a list marker from a character of text, code, a rule or an underline.
func (r *run) isBullet(p *markup.Page, at int) bool {
	for _, c := range p.Code {
		if at >= c.Span.Start && at < c.Span.End {
			return false
		}
	}
	for _, t := range p.Tags {
		if at >= t.Span.Start && at < t.Span.End {
			return false
		}
	}
	for _, h := range p.Headings {
		if at >= h.Span.Start && at < h.Span.End {
			return false
		}
	}
	for _, s := range p.Prose {
		if at >= s.Start && at < s.End {
			return false
		}
	}
	line := bytes.TrimSpace(p.Src[lineStart(p.Src, at):lineAfter(p.Src, at)])
	marks := bytes.Count(line, []byte{p.Src[at]})
	return !(marks >= 3 && len(bytes.Trim(line, string(p.Src[at])+" \t")) == 0)
}

// Give bare code fences a language.
type fencesOp struct {
	lang string
	located
}

func (o *fencesOp) todo() string {
	return fmt.Sprintf("Add language %s to bare code fences %s", o.lang, o.scope)
}
func (o *fencesOp) within(s scope) operation {
	return &fencesOp{o.lang, located{o.scope.elsewhere(s)}}
}

func (o *fencesOp) run(r *run) error {
	n, files := 0, 0
	for _, f := range r.pages() {
		p, err := r.site.page(f)
		if err != nil || !isPage(f) {
			continue
		}
		var edits []markup.Edit
		for _, c := range p.Code {
			if c.Inline || c.Lang != "" || c.Info != "" || c.Span.Start == c.Inner.Start {
				continue
			}
			ch := p.Src[c.Span.Start]
			if ch != '`' && ch != '~' {
				continue
			}
			k := c.Span.Start
			for k < c.Span.End && p.Src[k] == ch {
				k++
			}
			edits = append(edits, markup.Edit{Span: markup.Span{Start: k, End: k}, New: []byte(o.lang)})
		}
		if edits = r.keep(p, edits); len(edits) == 0 {
			continue
		}
		if err := r.edit(p, edits, "code fences labelled", len(edits)); err != nil {
			return err
		}
		n += len(edits)
		files++
	}
	if n == 0 {
		return idle("there is no bare code fence%s", o.scope.there())
	}
	r.did("Added language %s to %s in %s", o.lang, count(n, "code fence"), count(files, "file"))
	r.headline("add language %s to code fences", o.lang)
	return nil
}
