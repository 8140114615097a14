package edit

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/site/markup"
)

// PointLinks changes where links lead: those to one target, or the one with a text.
type PointLinks struct {
	Dest, Text string // either
	To         string
	Located
}

func (o *PointLinks) Todo() string {
	what := "the links to " + say.Quote(o.Dest)
	if o.Dest == "" {
		what = "the link " + say.Quote(o.Text)
	}
	return fmt.Sprintf("Point %s to %s %s", what, say.Quote(o.To), o.Scope)
}

func (o *PointLinks) Within(s Scope) Operation { return again(o, s) }

// A named target is an address, or a page with an anchor.
type named struct {
	address string // as it was written
	file    string // empty for an address elsewhere
	anchor  string // with its mark
}

func (r *Run) named(s string) (named, error) {
	if strings.Contains(s, ":") || strings.HasPrefix(s, "#") || strings.HasPrefix(s, "//") {
		return named{address: s}, nil
	}
	n := named{address: s}
	s, anchor, ok := strings.Cut(s, "#")
	if ok {
		n.anchor = "#" + anchor
	}
	f, err := r.Site.Find(s)
	n.file = f
	return n, err
}

func (o *PointLinks) Run(r *Run) error {
	to, err := r.named(o.To)
	if err != nil {
		return err
	}
	list, err := r.readable(r.bounds)
	if err != nil {
		return err
	}
	from, _ := r.named(o.Dest) // one that leads nowhere is found as it is written
	n, anchored := 0, 0
	edits := map[*markup.Page][]markup.Edit{}
	for _, p := range list {
		found, others := o.edits(r, p, from, to)
		anchored += others
		if found = r.keep(p, found); len(found) > 0 {
			edits[p] = found
			n += len(found)
		}
	}
	what := "no link leads to " + say.Quote(o.Dest)
	if o.Text != "" {
		what = "no link has the text " + say.Quote(o.Text)
	}
	switch {
	case n == 0 && anchored > 0:
		return say.Refuse("%s itself %s; its anchors have %s: name the one that is meant", what, o.Scope,
			say.Count(anchored, "link"))
	case n == 0:
		return say.Refuse("%s %s", what, o.Scope)
	case n > 1 && o.Text != "":
		return say.Refuse("%d links have the text %s %s, so none is certain", n, say.Quote(o.Text), o.Scope)
	}
	for _, p := range inOrder(edits) {
		if err := r.edit(p, edits[p], "links changed", len(edits[p])); err != nil {
			return err
		}
	}
	if anchored > 0 {
		r.Kept("Left %s to anchors of %s", say.Count(anchored, "link"), say.Quote(o.Dest))
	}
	r.Did("Pointed %s in %s to %s", say.Count(n, "link"), say.Count(len(edits), "file"), say.Quote(o.To))
	r.headline("point links to %s", say.Quote(o.To))
	return nil
}

// edits point the links of a page that are meant to their new target. It also counts those to other anchors of the old
// one.
func (o *PointLinks) edits(r *Run, p *markup.Page, from, to named) (edits []markup.Edit, anchored int) {
	for _, l := range p.References() {
		if l.At.Start >= l.At.End || l.Kind == markup.ImportLink {
			continue
		}
		t := r.Site.Resolve(p.Path, l)
		switch {
		case o.Text != "":
			if l.Kind != markup.InlineLink || strings.TrimSpace(l.Text) != strings.TrimSpace(o.Text) {
				continue
			}
		case l.Dest == o.Dest:
		case from.file == "" || !t.Local || t.File != from.file:
			continue
		case "#"+t.Fragment != from.anchor && (t.Fragment != "" || from.anchor != ""):
			anchored++
			continue
		}
		next := to.address
		switch {
		case to.file == "":
		case t.Local:
			t.ByAlias = false // the link leads to another page now
			next = r.Site.Address(p.Path, t, to.file, strings.TrimSuffix(l.Dest, "#"+t.Fragment)) + to.anchor
		default:
			next = pages.Relative(path.Dir(p.Path), to.file) + to.anchor
		}
		edits = append(edits, markup.Edit{Span: l.At, New: []byte(next)})
	}
	return edits, anchored
}

// FixLinks mends broken links, if one target alone is certain.
type FixLinks struct{ Located }

func (o *FixLinks) Todo() string { return "Fix broken internal links " + o.Scope.String() }

func (o *FixLinks) Within(s Scope) Operation { return again(o, s) }

func (o *FixLinks) Run(r *Run) error {
	var left []string
	repairs := map[*markup.Page][]repair{}
	list, err := r.readable(r.bounds)
	if err != nil {
		return err
	}
	for _, p := range list {
		regions, whole := r.bounds.within(p)
		for _, l := range r.Site.Broken(p) {
			if !whole && !inside(l.At, regions) {
				continue
			}
			next, ok := r.Site.Repair(p, l)
			if !ok || next == l.Dest {
				left = append(left, r.Site.Show(p.Path)+": "+say.OneLine(l.Dest, 120))
				continue
			}
			repairs[p] = append(repairs[p], repair{markup.Edit{Span: l.At, New: []byte(next)}, wayOf(l.Dest, next)})
		}
	}
	doubts := premises(list, repairs)
	if o.Scope.IgnoreCase { // it was asked, and this is the answer
		delete(doubts, way{kind: anchorCase})
	}
	fixed, files := 0, 0
	for _, p := range inOrder(repairs) {
		var edits []markup.Edit
		for _, one := range repairs[p] {
			if doubts[one.way] == "" {
				edits = append(edits, one.Edit)
			}
		}
		if edits = r.keep(p, edits); len(edits) == 0 {
			continue
		}
		if err := r.edit(p, edits, "links fixed", len(edits)); err != nil {
			return err
		}
		fixed += len(edits)
		files++
	}
	for _, l := range left {
		r.Kept("No certain target for the link in %s", l)
	}
	why := slices.Sorted(maps.Values(doubts))
	for _, s := range why {
		r.Kept("Left as they are: %s", s)
	}
	if fixed == 0 {
		if len(why) > 0 {
			return say.Refuse("%s", strings.Join(why, "; "))
		}
		if len(left) > 0 {
			return say.Refuse("%s, but for none is one target certain: %s", brokenText(len(left)), say.List(left))
		}
		return say.Idle("there is no broken internal link%s", o.Scope.there())
	}
	more := ""
	if len(left) > 0 {
		more = fmt.Sprintf("; %d more have no certain target", len(left))
	}
	r.Did("Fixed %s in %s%s", say.Count(fixed, "broken link"), say.Count(files, "file"), more)
	r.headline("fix broken links")
	return nil
}

// A repair is what would mend a link, with the way in which the link fails.
type repair struct {
	markup.Edit
	way way
}

// A way is how links fail that may all fail for one reason, which then lies in what is known of the site and not in the
// links: the case of their anchors, or a folder that their paths begin with.
type way struct{ kind, prefix string }

const (
	anchorCase = "the case of anchors"
	mounted    = "where the documentation is mounted"
)

func wayOf(dest, next string) way {
	path, anchor, _ := strings.Cut(dest, "#")
	to, now, _ := strings.Cut(next, "#")
	switch {
	case anchor != now && path == to && strings.EqualFold(anchor, now):
		return way{kind: anchorCase}
	case strings.HasPrefix(path, "/") && strings.HasPrefix(to, "/") && path != to:
		if strings.HasSuffix(path, to) {
			return way{mounted, strings.TrimSuffix(path, to)}
		}
	}
	return way{}
}

// has reports whether a link is of the sort that fails in a way: it could.
func (w way) has(dest string) bool {
	path, anchor, _ := strings.Cut(dest, "#")
	if w.kind == anchorCase {
		return anchor != strings.ToLower(anchor)
	}
	return strings.HasPrefix(path, w.prefix+"/")
}

// premises looks at all links of the sorts that fail. Where most of a sort fail in the same way, that says nothing
// against the links: the reason is in the answer.
func premises(list []*markup.Page, repairs map[*markup.Page][]repair) map[way]string {
	const few = 3
	failing := map[way]int{}
	for _, all := range repairs {
		for _, one := range all {
			if one.way != (way{}) {
				failing[one.way]++
			}
		}
	}
	out := map[way]string{}
	for w, n := range failing {
		all := 0
		for _, p := range list {
			for _, l := range p.Links {
				if !strings.Contains(l.Dest, "://") && w.has(l.Dest) {
					all++
				}
			}
		}
		switch {
		case n < few || 2*n <= all:
		case w.kind == anchorCase:
			out[w] = fmt.Sprintf("%d of %d links whose anchor has capitals would lead nowhere for their case alone. If the site keeps the case of anchors they are right; if it does not, say “fix broken links, ignoring case”", n, all)
		default:
			out[w] = fmt.Sprintf("%d of %d links that begin with %s would lead nowhere. If the documentation is mounted there they are right: give the project the site's address with it", n, all, say.Quote(w.prefix+"/"))
		}
	}
	return out
}

func brokenText(n int) string {
	if n == 1 {
		return "1 link leads nowhere"
	}
	return fmt.Sprintf("%d links lead nowhere", n)
}
