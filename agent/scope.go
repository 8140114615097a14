package agent

import (
	"bytes"
	"slices"
	"strings"

	"docent/markup"
)

// A scope is where an operation works: pages, and parts of them. Every operation has one or says that it has none, the
// words before an instruction narrow it, and run.confined refuses whatever an operation does outside of it.
type scope struct {
	in     [][]place // a page must be in one place of each list
	except []place
	parts  [][]part // what is changed must be in one part of each list
	all    bool     // "everywhere" was said
	only   bool     // "only" was said: it narrows what was said before and asks for nothing more
	manner
}

// A manner is how a text operation compares, and what it touches beyond running text.
type manner struct {
	code, links       bool
	words, inWords    bool
	nocase, exactCase bool
}

// A place names a page, a folder or pages by a pattern.
type place struct {
	name string // as it was written
	kind placeKind
}

type placeKind uint8

const (
	anyPlace placeKind = iota // what there is decides; a name that is a page and a folder is neither
	pagePlace
	folderPlace
)

func (p place) String() string {
	if p.kind == folderPlace && !strings.HasSuffix(p.name, "/") {
		return p.name + "/"
	}
	return p.name
}

// A part is a kind of region of a page.
type part struct {
	kind    string // a name of partKinds
	one     bool   // "the table": there must be one alone
	heading string // of a section
}

// partKinds finds the regions of each kind.
var partKinds = map[string]func(p *markup.Page) []markup.Span{
	"headings": func(p *markup.Page) (out []markup.Span) {
		for _, h := range p.Headings {
			out = append(out, h.Span)
		}
		return out
	},
	"link texts": linkTexts, "link targets": linkTargets,
	"links":       func(p *markup.Page) []markup.Span { return append(linkTexts(p), linkTargets(p)...) },
	"code blocks": func(p *markup.Page) []markup.Span { return codeOf(p, true, false) },
	"inline code": func(p *markup.Page) []markup.Span { return codeOf(p, false, true) },
	"code":        func(p *markup.Page) []markup.Span { return codeOf(p, true, true) },
	"tables":      func(p *markup.Page) []markup.Span { return slices.Clone(p.Tables) },
	"lists":       func(p *markup.Page) []markup.Span { return slices.Clone(p.Items) },
	"text":        func(p *markup.Page) []markup.Span { return slices.Clone(p.Prose) },
	"front matter": func(p *markup.Page) []markup.Span {
		if p.Front.Kind == "" {
			return nil
		}
		return []markup.Span{p.Front.Body}
	},
	"titles":       func(p *markup.Page) []markup.Span { return frontValues(p, "title", "sidebarTitle", "sidebar_label") },
	"descriptions": func(p *markup.Page) []markup.Span { return frontValues(p, "description", "summary") },
}

func linkTexts(p *markup.Page) (out []markup.Span) {
	for _, l := range p.Links {
		if l.Inner.Start < l.Inner.End && (l.Kind == markup.InlineLink || l.Kind == markup.ReferenceLink) {
			out = append(out, l.Inner)
		}
	}
	return out
}

func linkTargets(p *markup.Page) (out []markup.Span) {
	for _, l := range p.Links {
		if l.At.Start < l.At.End && l.Kind != markup.ImportLink {
			out = append(out, l.At)
		}
	}
	return out
}

func codeOf(p *markup.Page, blocks, inline bool) (out []markup.Span) {
	for _, c := range p.Code {
		if c.Inline && inline || !c.Inline && blocks {
			out = append(out, c.Span)
		}
	}
	return out
}

func frontValues(p *markup.Page, keys ...string) (out []markup.Span) {
	for _, k := range keys {
		if v, ok := p.FrontValue(k); ok {
			out = append(out, v)
		}
	}
	return out
}

// What is located works within a scope.
type located struct{ scope scope }

func (l *located) where() *scope { return &l.scope }

// What is unlocated is about things that it names itself: pages that it makes, moves or deletes.
type unlocated struct{}

func (unlocated) where() *scope { return nil }

// readScope takes a scope out of what a form has captured.
func readScope(c captures, m *memory) scope {
	s := scope{
		all: c.has("all"), only: c.has("only"),
		manner: manner{code: c.has("code"), links: c.has("links"), words: c.has("words"), inWords: c.has("within"), nocase: c.has("nocase"), exactCase: c.has("case")},
	}
	named := func(x capture) []place {
		list := slices.Clone(x.places)
		for i := range list {
			if list[i].name == "" {
				list[i].name = m.page
			}
		}
		return list
	}
	one, also := false, false
	for _, x := range c {
		switch x.name {
		case "in":
			s.in = append(s.in, named(x))
		case "page":
			if x.text == "" {
				x.text = m.page
			}
			s.in = append(s.in, []place{{x.text, pagePlace}})
		case "except":
			s.except = append(s.except, named(x)...)
		case "parts":
			s.parts, also = append(s.parts, nil), false
		case "also": // besides the parts that were named; without any, all of them are meant anyway
			also = true
		case "one":
			one = true
		case "section", "below":
			s.parts, also = append(s.parts, []part{{kind: x.name, heading: x.text}}), false
		default:
			if also && len(s.parts) == 0 {
				continue
			}
			if kind, ok := strings.CutPrefix(x.name, "part-"); ok && len(s.parts) > 0 {
				i := len(s.parts) - 1
				s.parts[i] = append(s.parts[i], part{kind: strings.ReplaceAll(kind, "-", " "), one: one})
				one = false
			}
		}
	}
	return s
}

// narrow adds what was said before an instruction.
func (s *scope) narrow(lead scope) {
	for _, list := range lead.in {
		if !slices.ContainsFunc(s.in, func(have []place) bool { return slices.Equal(have, list) }) {
			s.in = append(slices.Clip(s.in), list)
		}
	}
	s.except = append(slices.Clip(s.except), lead.except...)
	s.parts = append(slices.Clip(s.parts), lead.parts...)
	s.all = s.all || lead.all
	s.manner = s.manner.and(lead.manner)
}

func (m manner) and(n manner) manner {
	return manner{m.code || n.code, m.links || n.links, m.words || n.words, m.inWords || n.inWords, m.nocase || n.nocase, m.exactCase || n.exactCase}
}

// placed tells whether the scope says where: in which pages, or that it is everywhere.
func (s *scope) placed() bool { return len(s.in) > 0 || s.all }

// elsewhere is a scope for doing something again: in the places of the second, in the parts and the manner of both.
func (s scope) elsewhere(now scope) scope {
	now.parts = append(slices.Clip(s.parts), now.parts...)
	now.manner = s.manner.and(now.manner)
	return now
}

// has tells whether the scope is confined to a kind of part.
func (s *scope) has(kinds ...string) bool {
	for _, list := range s.parts {
		for _, p := range list {
			if slices.Contains(kinds, p.kind) {
				return true
			}
		}
	}
	return false
}

func (s scope) String() string {
	var parts, pages []string
	for _, list := range s.parts {
		var names []string
		for _, p := range list {
			switch p.kind {
			case "section":
				names = append(names, "section "+quote(p.heading))
			case "below":
				names = append(names, "section below "+quote(p.heading))
			default:
				names = append(names, "the "+p.kind)
			}
		}
		parts = append(parts, strings.Join(names, " and "))
	}
	for _, list := range s.in {
		var names []string
		for _, p := range list {
			names = append(names, p.String())
		}
		if text := strings.Join(names, ", "); !slices.Contains(pages, text) {
			pages = append(pages, text)
		}
	}
	switch {
	case len(parts) == 0 && len(pages) == 0:
		return "everywhere"
	case len(parts) == 0:
		return "in " + strings.Join(pages, " in ")
	case len(pages) == 0:
		return "in " + strings.Join(parts, " in ")
	}
	return "in " + strings.Join(parts, " in ") + " of " + strings.Join(pages, " in ")
}

// Bounds are a scope as it is on the pages there are.
type bounds struct {
	scope    scope
	free     bool     // nothing is said of where, so nothing is outside
	pages    []string // in order
	sections map[string][]markup.Span
	followed map[string]bool // pages outside whose links follow what was renamed
}

// within gives the regions of a page that may be changed; whole tells that there are no others.
func (b *bounds) within(p *markup.Page) (regions []markup.Span, whole bool) {
	if b == nil || len(b.scope.parts) == 0 {
		return nil, true
	}
	for i, list := range b.scope.parts {
		var spans []markup.Span
		for _, k := range list {
			if find := partKinds[k.kind]; find != nil {
				spans = append(spans, find(p)...)
			} else {
				spans = append(spans, b.sections[p.Path]...)
			}
		}
		spans = joined(spans)
		if i == 0 {
			regions = spans
		} else {
			regions = clip(regions, spans)
		}
	}
	return regions, false
}

// joined sorts spans and makes one of those that overlap.
func joined(spans []markup.Span) []markup.Span {
	slices.SortFunc(spans, func(a, b markup.Span) int { return a.Start - b.Start })
	var out []markup.Span
	for _, s := range spans {
		if n := len(out); n > 0 && s.Start < out[n-1].End {
			out[n-1].End = max(out[n-1].End, s.End)
			continue
		}
		out = append(out, s)
	}
	return out
}

// clip gives what of the spans, which are in order, lies in regions, which are in order and apart.
func clip(spans, regions []markup.Span) []markup.Span {
	var out []markup.Span
	first := 0
	for _, s := range spans {
		for first < len(regions) && regions[first].End <= s.Start {
			first++
		}
		for _, r := range regions[first:] {
			if r.Start >= s.End {
				break
			}
			out = append(out, markup.Span{Start: max(s.Start, r.Start), End: min(s.End, r.End)})
		}
	}
	return out
}

func inside(s markup.Span, regions []markup.Span) bool {
	return slices.ContainsFunc(regions, func(r markup.Span) bool { return r.Start <= s.Start && s.End <= r.End })
}

// bound settles what a scope means on the pages there are.
func (r *run) bound(s *scope) (*bounds, error) {
	if s == nil {
		return nil, nil
	}
	b := &bounds{scope: *s, free: len(s.in)+len(s.except)+len(s.parts) == 0, followed: map[string]bool{}, sections: map[string][]markup.Span{}}
	if len(s.in) == 0 {
		b.pages = r.site.list()
	}
	for i, list := range s.in {
		var pages []string
		for _, in := range list {
			got, err := r.expand(in)
			if err != nil {
				return nil, err
			}
			pages = append(pages, got...)
		}
		if i > 0 {
			pages = slices.DeleteFunc(pages, func(p string) bool { return !slices.Contains(b.pages, p) })
		}
		if len(pages) == 0 {
			return nil, refuse("no page is %s", *s)
		}
		slices.Sort(pages)
		b.pages = slices.Compact(pages)
	}
	for _, ex := range s.except {
		drop, err := r.expand(ex)
		if err != nil {
			return nil, err
		}
		b.pages = slices.DeleteFunc(b.pages, func(p string) bool { return slices.Contains(drop, p) })
	}
	for _, list := range s.parts {
		for _, k := range list {
			if err := r.boundPart(b, k); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// boundPart finds the section that a part names, and makes sure that what is said to be one is one.
func (r *run) boundPart(b *bounds, k part) error {
	find := partKinds[k.kind]
	if find == nil {
		if len(b.sections) > 0 {
			return refuse("an instruction is for one section at a time")
		}
		p, i, err := r.headingIn(&bounds{free: b.free, pages: b.pages}, k.heading)
		if err != nil {
			return err
		}
		s := markup.Span{Start: lineStart(p.Src, p.Headings[i].Span.Start), End: sectionEnd(p, i)}
		if k.kind == "below" {
			s.Start = lineAfter(p.Src, p.Headings[i].Span.End)
		}
		b.pages, b.sections[p.Path] = []string{p.Path}, []markup.Span{s}
		return nil
	}
	if !k.one {
		return nil
	}
	n := 0
	for _, f := range b.pages {
		if p, err := r.site.page(f); err == nil {
			regions := joined(find(p))
			for i, s := range regions { // items that follow each other are one list
				if k.kind != "lists" || i == 0 || regions[i-1].End != s.Start {
					n++
				}
			}
		}
	}
	if n != 1 {
		return refuse("there is not one of %s %s, but %d, so none is certain", "“"+k.kind+"”", b.scope, n)
	}
	return nil
}

// confined carries out an operation and refuses what it has changed outside of its scope. This is the one place that
// keeps scopes: an operation that took no notice of its own would not get past it.
func (r *run) confined(op operation) error {
	b, err := r.bound(op.where())
	if err != nil {
		return err
	}
	r.bounds = b
	before := r.ws.save()
	if err := op.run(r); err != nil || b == nil || b.free {
		return err
	}
	list, err := r.ws.since(before)
	if err != nil {
		return err
	}
	for _, t := range list {
		if err := r.outside(t); err != nil {
			return err
		}
	}
	return nil
}

// outside tells what an operation has changed of a file that it was not to change.
func (r *run) outside(t touched) error {
	f := t.path
	beyond := refuse("that would reach beyond what was said, which is %s: it changes %s", r.bounds.scope, r.site.show(f))
	member := slices.Contains(r.bounds.pages, f)
	if !member && !r.bounds.followed[f] || !t.was || !t.is {
		return beyond
	}
	p := markup.Parse(f, t.old)
	regions, whole := r.bounds.within(p)
	if !member {
		regions, whole = nil, false
	}
	if r.bounds.followed[f] {
		regions = joined(append(regions, linkTargets(p)...))
	}
	if !whole && !onlyWithin(t.old, t.now, regions) {
		return beyond
	}
	return nil
}

// onlyWithin tells whether a text can have come from another one by changes in some regions of it alone.
func onlyWithin(old, now []byte, regions []markup.Span) bool {
	at := 0
	for i, s := range regions {
		kept := old[at:s.Start]
		k := bytes.Index(now, kept)
		if k < 0 || i == 0 && k > 0 {
			return false
		}
		now = now[k+len(kept):]
		at = s.End
	}
	if at == 0 {
		return bytes.Equal(old, now)
	}
	return bytes.HasSuffix(now, old[at:])
}

// pages are those that the operation works on.
func (r *run) pages() []string { return slices.Clone(r.bounds.pages) }

// page is the one that the operation works on.
func (r *run) page() (*markup.Page, error) {
	if len(r.bounds.pages) != 1 || r.bounds.free {
		return nil, refuse("it does not say which page is meant")
	}
	f := r.bounds.pages[0]
	if !isPage(f) {
		return nil, refuse("%s is no Markdown page", r.site.show(f))
	}
	p, err := r.site.page(f)
	if err != nil {
		return nil, err
	}
	return p, r.ws.writable(f)
}

// keep drops the edits that lie outside of the operation's scope: for what is done in each of many places.
func (r *run) keep(p *markup.Page, edits []markup.Edit) []markup.Edit {
	regions, whole := r.bounds.within(p)
	if whole {
		return edits
	}
	return slices.DeleteFunc(edits, func(e markup.Edit) bool { return !inside(e.Span, regions) })
}

// follow edits links of a page that lead to what an operation has renamed: these follow it wherever they stand.
func (r *run) follow(p *markup.Page, edits []markup.Edit) error {
	r.bounds.followed[p.Path] = true
	return r.edit(p, edits, "links rewritten", len(edits))
}

// describe is a scope for a todo: nothing where nothing was said.
func (s scope) describe() string {
	if len(s.in)+len(s.parts) == 0 {
		return ""
	}
	return " " + s.String()
}
