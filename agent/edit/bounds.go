package edit

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/site/markup"
)

// Bounds are a scope as it is on the pages there are.
type bounds struct {
	scope    Scope
	free     bool     // nothing is said of where, so nothing is outside
	pages    []string // in order
	sections map[string][]markup.Span
	followed map[string]bool // pages outside whose links follow what was renamed
}

// within returns the regions of a page that may be changed; whole tells that there are no others.
func (b *bounds) within(p *markup.Page) (regions []markup.Span, whole bool) {
	if b == nil || len(b.scope.Parts) == 0 {
		return nil, true
	}
	for i, list := range b.scope.Parts {
		var spans []markup.Span
		for _, k := range list {
			if find := partKinds[k.Kind]; find != nil {
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

// clip returns what of the spans, which are in order, lies in regions, which are in order and apart.
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
func (r *Run) bound(s *Scope) (*bounds, error) {
	if s == nil {
		return nil, nil
	}
	b := &bounds{scope: *s, free: len(s.In)+len(s.Except)+len(s.Parts) == 0, followed: map[string]bool{},
		sections: map[string][]markup.Span{}}
	if len(s.In) == 0 {
		b.pages = r.Site.List()
	}
	for i, list := range s.In {
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
			return nil, say.Refuse("no page is %s", *s)
		}
		slices.Sort(pages)
		b.pages = slices.Compact(pages)
	}
	for _, ex := range s.Except {
		drop, err := r.expand(ex)
		if err != nil {
			return nil, err
		}
		b.pages = slices.DeleteFunc(b.pages, func(p string) bool { return slices.Contains(drop, p) })
	}
	for _, list := range s.Parts {
		for _, k := range list {
			if err := r.boundPart(b, k); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// boundPart finds the section that a part names, and makes sure that what is said to be one is one.
func (r *Run) boundPart(b *bounds, k Part) error {
	find := partKinds[k.Kind]
	if find == nil {
		if len(b.sections) > 0 {
			return say.Refuse("an instruction is for one section at a time")
		}
		p, i, err := r.headingIn(&bounds{free: b.free, pages: b.pages}, k.Heading)
		if err != nil {
			return err
		}
		s := markup.Span{Start: pages.LineStart(p.Src, p.Headings[i].Span.Start), End: sectionEnd(p, i)}
		if k.Kind == "below" {
			s.Start = pages.LineAfter(p.Src, p.Headings[i].Span.End)
		}
		b.pages, b.sections[p.Path] = []string{p.Path}, []markup.Span{s}
		return nil
	}
	if !k.One {
		return nil
	}
	n := 0
	for _, f := range b.pages {
		if p, err := r.Site.Page(f); err == nil {
			regions := joined(find(p))
			for i, s := range regions { // items that follow each other are one list
				if k.Kind != "lists" || i == 0 || regions[i-1].End != s.Start {
					n++
				}
			}
		}
	}
	if n != 1 {
		return say.Refuse("there is not one of %s %s, but %d, so none is certain", "“"+k.Kind+"”", b.scope, n)
	}
	return nil
}

// Do carries out an operation and refuses what it has changed outside of its scope. This is the one place that
// keeps scopes: an operation that took no notice of its own would not get past it.
func (r *Run) Do(op Operation) error {
	b, err := r.bound(op.Where())
	if err != nil {
		return err
	}
	r.bounds = b
	before := r.Files.Save()
	if err := op.Run(r); err != nil {
		return err
	}
	list, err := r.Files.Since(before)
	if err != nil {
		return err
	}
	for _, t := range list {
		if f := markup.FormatOf(t.Path); f.Plain() && !speaks(op) {
			return say.Refuse("%s is %s, in which text is replaced, renamed and corrected, and sections are added, changed and deleted; %s is not done there", r.Site.Show(t.Path), f, say.Quote(say.LowerFirst(op.Todo())))
		}
	}
	if b == nil || b.free {
		return nil
	}
	for _, t := range list {
		if err := r.outside(t); err != nil {
			return err
		}
	}
	return nil
}

// outside tells what an operation has changed of a file that it was not to change.
func (r *Run) outside(t workspace.Touched) error {
	f := t.Path
	beyond := say.Refuse("that would reach beyond what was said, which is %s: it changes %s", r.bounds.scope,
		r.Site.Show(f))
	member := slices.Contains(r.bounds.pages, f)
	if !member && !r.bounds.followed[f] || !t.Was || !t.Is {
		return beyond
	}
	p := markup.Parse(f, t.Old)
	regions, whole := r.bounds.within(p)
	if !member {
		regions, whole = nil, false
	}
	if r.bounds.followed[f] {
		regions = joined(append(regions, linkTargets(p)...))
	}
	if p.Format.Plain() { // what stands around a title follows it
		for _, h := range p.Headings {
			if len(clip([]markup.Span{h.Inner}, regions)) > 0 {
				regions = append(regions, h.Span)
			}
		}
		regions = joined(regions)
	}
	if !whole && !onlyWithin(t.Old, t.Now, regions) {
		return beyond
	}
	return nil
}

// onlyWithin reports whether a text can have come from another one by changes in some regions of it alone.
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
func (r *Run) pages() []string { return slices.Clone(r.bounds.pages) }

// page is the one that the operation works on.
func (r *Run) page() (*markup.Page, error) {
	if len(r.bounds.pages) != 1 || r.bounds.free {
		return nil, say.Refuse("it does not say which page is meant")
	}
	f := r.bounds.pages[0]
	if !workspace.IsPage(f) {
		return nil, say.Refuse("%s is no page", r.Site.Show(f))
	}
	p, err := r.Site.Page(f)
	if err != nil {
		return nil, err
	}
	return p, r.Files.Writable(f)
}

// keep drops the edits that lie outside of the operation's scope: for operations of many edits.
func (r *Run) keep(p *markup.Page, edits []markup.Edit) []markup.Edit {
	regions, whole := r.bounds.within(p)
	if whole {
		return edits
	}
	return slices.DeleteFunc(edits, func(e markup.Edit) bool { return !inside(e.Span, regions) })
}

// follow edits links of a page that lead to what an operation has renamed: these follow it wherever they stand.
func (r *Run) follow(p *markup.Page, edits []markup.Edit) error {
	r.bounds.followed[p.Path] = true
	return r.edit(p, edits, "links rewritten", len(edits))
}

// expand returns the pages that a path, a folder or a pattern names.
func (r *Run) expand(in Place) ([]string, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(in.Name, "./"), "/")
	if in.Name == "" {
		return nil, say.Refuse("nothing before it says which page is meant")
	}
	if strings.ContainsAny(name, "*?[{") {
		// a page of a route with a parameter is called [name].md
		if f, err := r.Site.Find(in.Name); err != nil || !workspace.IsPage(f) {
			return r.Site.Matching(in.Name, name)
		}
	}
	folder := strings.TrimSuffix(name, "/")
	below, dir := r.Site.Below(folder)
	if in.Kind == FolderPlace || in.Kind == AnyPlace && folder != name && dir {
		if len(below) == 0 {
			return nil, say.Refuse("there is no folder %s with pages", say.Quote(folder))
		}
		return below, nil
	}
	if in.Kind == PagePlace && folder != name && dir && !strings.HasPrefix(in.Name, "/") { // which may be an address
		return nil, say.Refuse("%s is a folder; name one of its pages", say.Quote(in.Name))
	}
	f, err := r.Site.Find(in.Name)
	named := err == nil && strings.EqualFold(path.Base(f), path.Base(folder)) // with its extension
	index := err == nil && workspace.IsIndex(f) && !named
	if len(below) > 0 && !named && in.Kind == AnyPlace {
		if err == nil && !index {
			return nil, say.Refuse("%s is a page, %s, and a folder; say %s or %s", say.Quote(in.Name), r.Site.Show(f),
				say.Quote(r.Site.Show(f)), say.Quote(folder+"/"))
		}
		return below, nil
	}
	if err != nil {
		return nil, err
	}
	if !workspace.IsPage(f) && !workspace.TextExts[strings.ToLower(path.Ext(f))] {
		return nil, say.Refuse("%s is no text that is edited", f)
	}
	return []string{f}, r.Files.Writable(f)
}
