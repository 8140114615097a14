package edit

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/site/links"
	"docent/site/markup"
)

// put writes a page. With pin set, anchors that links use are kept although the headings' words have changed.
func (r *Run) put(f string, before *markup.Page, out []byte, pin bool) error {
	if before.Format.Plain() {
		var err error
		if out, err = r.referable(before, markup.Readorned(before, out)); err != nil {
			return err
		}
		return r.Files.Write(f, out)
	}
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
	return r.Files.Write(f, out)
}

// What an anchor may hold when it is kept as {#anchor}, and when as an attribute.
var (
	safeAnchor      = regexp.MustCompile(`^[\p{L}\p{N}_.:’&/-]+$`)
	attributeAnchor = regexp.MustCompile(`^[\p{L}\p{N}_.:’/$+@,;()!*%=?~-]+$`)
)

// pins returns the edits that keep anchors alive which links lead to and which the new words of a heading would end.
func (r *Run) pins(before, now *markup.Page) ([]markup.Edit, error) {
	if !workspace.IsPage(before.Path) || len(before.Headings) != len(now.Headings) {
		return nil, nil
	}
	changed := false
	for i := range now.Headings {
		changed = changed || now.Headings[i].Text != before.Headings[i].Text
	}
	if !changed {
		return nil, nil
	}
	in, err := r.Site.Inbound(before.Path)
	if err != nil {
		return nil, err
	}
	was, is := r.Site.Anchors(before), r.Site.Anchors(now)
	want := map[int][]string{}
	for _, l := range in {
		f := l.To.Fragment
		if f == "" || is[f] || !was[f] || !safeAnchor.MatchString(f) && !attributeAnchor.MatchString(f) {
			continue
		}
		for i, h := range before.Headings {
			if h.Custom || now.Headings[i].Text == h.Text {
				continue
			}
			if h.Anchor == f || slices.Contains(links.Slugs(h.Text), f) {
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
			if k == 0 && !h.Custom && r.Site.TakesIDs() && safeAnchor.MatchString(name) {
				edits = append(edits, markup.Edit{Span: markup.Span{Start: h.Inner.End, End: h.Inner.End},
					New: []byte(" {#" + name + "}")})
				r.Kept("Kept the anchor #%s of heading %s in %s, which links lead to", name, say.Quote(h.Text),
					r.Site.Show(now.Path))
				continue
			}
			edits = append(edits, markup.Edit{Span: markup.Span{Start: h.Inner.Start, End: h.Inner.Start},
				New: []byte(`<a id="` + name + `"></a>`)})
			r.Kept("Kept the anchor #%s of heading %s in %s, which links lead to", name, say.Quote(h.Text),
				r.Site.Show(now.Path))
		}
	}
	sort.Slice(edits, func(i, j int) bool { return edits[i].Span.Start < edits[j].Span.Start })
	return edits, nil
}

// readable parses the pages of bounds. One that cannot be read is left out, unless it is the only one.
func (r *Run) readable(b *bounds) ([]*markup.Page, error) {
	var out []*markup.Page
	for _, f := range b.pages {
		if err := r.Context.Err(); err != nil {
			return nil, err
		}
		p, err := r.Site.Page(f)
		if err != nil {
			if _, ok := err.(*say.Refusal); ok && len(b.pages) > 1 {
				continue
			}
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// heading finds the one heading with a text where the operation works.
func (r *Run) heading(text string) (*markup.Page, int, error) { return r.headingIn(r.bounds, text) }

func (r *Run) headingIn(b *bounds, text string) (*markup.Page, int, error) {
	if strings.TrimSpace(text) == "" {
		return nil, 0, say.Refuse("a heading is empty")
	}
	list, err := r.readable(b)
	if err != nil {
		return nil, 0, err
	}
	page := ""
	if len(list) == 1 && !b.free {
		page = r.Site.Show(list[0].Path)
	}
	type at struct {
		p *markup.Page
		i int
	}
	text = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(text), "#"))
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return strings.TrimSpace(a) == b },
		pages.SameFold} {
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
					if name := r.Site.Show(f.p.Path); !slices.Contains(in, name) {
						in = append(in, name)
					}
				}
				return nil, 0, say.Refuse("there are %d headings %s; say in which page: %s", len(found), say.Quote(text),
					say.List(in))
			}
			return nil, 0, say.Refuse("%s has %d headings %s, so none is certain", page, len(found), say.Quote(text))
		}
	}
	if page != "" {
		return nil, 0, say.Refuse("%s has no heading %s", page, say.Quote(text))
	}
	return nil, 0, say.Refuse("no page has a heading %s", say.Quote(text))
}

// sectionEnd is the position at which the section of a heading ends: at the next heading of its level or above.
func sectionEnd(p *markup.Page, i int) int {
	for _, h := range p.Headings[i+1:] {
		if h.Level <= p.Headings[i].Level {
			return pages.LineStart(p.Src, h.Span.Start)
		}
	}
	return p.Body.End
}

// editEach edits the pages of the scope, in the scope's regions. It returns the number of edits and files.
func (r *Run) editEach(what string, find func(p *markup.Page) ([]markup.Edit, error)) (n, files int, err error) {
	for _, f := range r.pages() {
		if err := r.Context.Err(); err != nil {
			return 0, 0, err
		}
		p, err := r.Site.Page(f)
		if err != nil {
			continue
		}
		edits, err := find(p)
		if err != nil {
			return 0, 0, err
		}
		if edits = r.keep(p, edits); len(edits) == 0 {
			continue
		}
		if err := r.edit(p, edits, what, len(edits)); err != nil {
			return 0, 0, err
		}
		n += len(edits)
		files++
	}
	return n, files, nil
}

// edit applies edits to a page and keeps account of it.
func (r *Run) edit(p *markup.Page, edits []markup.Edit, what string, n int) error {
	out, err := markup.Apply(p.Src, edits)
	if err != nil {
		return fmt.Errorf("edit %s: %w", p.Path, err)
	}
	if err := r.put(p.Path, p, out, false); err != nil {
		return err
	}
	r.Tally(p.Path, what, n)
	return nil
}

// ChangeHeading changes a heading; links to its anchor follow.
type ChangeHeading struct {
	From, To string
	Located
}

func (o *ChangeHeading) Todo() string {
	return fmt.Sprintf("Change heading %s to %s", say.Quote(o.From), say.Quote(o.To)) + o.Scope.describe()
}

func (o *ChangeHeading) Run(r *Run) error {
	to := strings.TrimSpace(o.To)
	if to == "" || strings.ContainsAny(to, "\r\n") {
		return say.Refuse("a heading is one line of text")
	}
	p, i, err := r.heading(o.From)
	if err != nil {
		return err
	}
	h := p.Headings[i]
	if string(p.Src[h.Inner.Start:h.Inner.End]) == to {
		return say.Idle("the heading is %s already", say.Quote(to))
	}
	in, err := r.Site.Inbound(p.Path)
	if err != nil {
		return err
	}
	own := []markup.Edit{{Span: h.Inner, New: []byte(to)}}
	out, err := markup.Apply(p.Src, own)
	if err != nil {
		return err
	}
	now := markup.Parse(p.Path, markup.Readorned(p, out))
	if len(now.Headings) != len(p.Headings) {
		return say.Refuse("%s would not be one heading", say.Quote(to))
	}
	others := map[*markup.Page][]markup.Edit{}
	follow := 0
	made, makes := r.Site.Generator.Anchors(p.Headings), r.Site.Generator.Anchors(now.Headings)
	if !h.Custom {
		old := links.Slugs(h.Text)
		is := r.Site.Anchors(now)
		for _, l := range in {
			f := l.To.Fragment
			if f == "" || is[f] {
				continue
			}
			next := ""
			if f == made[i] {
				next = makes[i]
			} else if f == h.Anchor {
				next = now.Headings[i].Anchor
			} else if slices.Contains(old, f) && !slices.ContainsFunc(p.Headings[:i],
				func(x markup.Heading) bool { return slices.Contains(links.Slugs(x.Text), f) }) {
				next = links.SameRule(h.Text, now.Headings[i].Text, f)
			}
			if next == "" {
				continue
			}
			k := strings.IndexByte(l.Link.Dest, '#')
			at := markup.Span{Start: l.Link.At.Start + k + 1, End: l.Link.At.End}
			e := markup.Edit{Span: at, New: []byte(next)}
			if l.Page.Path == p.Path {
				own = append(own, e)
			} else {
				others[l.Page] = append(others[l.Page], e)
			}
			follow++
		}
	}
	if err := r.edit(p, own, "headings changed", 1); err != nil {
		return err
	}
	if n := len(own) - 1; n > 0 {
		r.bounds.followed[p.Path] = true
		r.Tally(p.Path, "links rewritten", n)
	}
	for _, q := range inOrder(others) {
		if err := r.follow(q, others[q]); err != nil {
			return err
		}
	}
	r.Did("Changed heading %s to %s in %s%s", say.Quote(h.Text), say.Quote(to), r.Site.Show(p.Path), func() string {
		if follow > 0 {
			return "; " + say.Count(follow, "link") + " to it rewritten"
		}
		return ""
	}())
	r.headline("change heading %s to %s", say.Quote(h.Text), say.Quote(to))
	return nil
}

func inOrder[T any](m map[*markup.Page][]T) []*markup.Page {
	var out []*markup.Page
	for p := range m {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *markup.Page) int { return strings.Compare(a.Path, b.Path) })
	return out
}
