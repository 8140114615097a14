package edit

import (
	"path"
	"slices"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/markup"
)

// Create a page.
type Create struct {
	Page, Title, Description, Group, Content string
	unlocated
}

func (o *Create) Todo() string { return "Create page " + o.Page }

func (o *Create) Run(r *Run) error {
	f, err := r.Site.Fresh(o.Page)
	if err != nil {
		return err
	}
	if r.Files.Exists(f) {
		return say.Refuse("%s exists already", r.Site.Show(f))
	}
	for _, ext := range []string{".md", ".mdx", ".markdown"} {
		if other := r.Files.Twin(workspace.Stem(f) + ext); other != "" {
			return say.Refuse("%s exists already and has the same address", r.Site.Show(other))
		}
	}
	title := say.OneLine(o.Title, 200)
	if title == "" {
		title = pages.Humanise(workspace.Stem(path.Base(f)))
	}
	out, err := r.Site.Compose(f, title, say.OneLine(o.Description, 500), o.Content)
	if err != nil {
		return err
	}
	if err := r.Files.Write(f, out); err != nil {
		return err
	}
	r.Tally(f, "page created", 1)
	r.Did("Created %s, %s", r.Site.Show(f), say.Quote(title))
	r.headline("add the page %s", r.Site.Show(f))
	return r.ListPage(f, title, o.Group)
}

// Delete a page.
type DeletePage struct {
	Page   string
	Unlink bool
	unlocated
}

func (o *DeletePage) Todo() string {
	if o.Unlink {
		return "Delete page " + o.Page + " and the links to it"
	}
	return "Delete page " + o.Page
}

func (o *DeletePage) Run(r *Run) error {
	f, err := r.Site.Find(o.Page)
	_, dir := r.Site.Below(strings.Trim(strings.TrimPrefix(o.Page, "./"), "/"))
	if dir && (strings.HasSuffix(o.Page, "/") || err == nil && workspace.IsIndex(f) && !strings.EqualFold(path.Base(o.Page), path.Base(f))) {
		return say.Refuse("%s is a folder; name the page", say.Quote(o.Page))
	}
	if err != nil {
		return err
	}
	if !workspace.IsPage(f) {
		return say.Refuse("%s is no Markdown page", r.Site.Show(f))
	}
	if err := r.Files.Writable(f); err != nil {
		return err
	}
	in, err := r.Site.Inbound(f)
	if err != nil {
		return err
	}
	in = slices.DeleteFunc(in, func(l pages.Inbound) bool { return l.Page.Path == f })
	edits := map[*markup.Page][]markup.Edit{}
	listed := 0
	in = slices.DeleteFunc(in, func(l pages.Inbound) bool { // an entry of a page that is the navigation goes as a whole
		at, ok := summaryEntry(l)
		if ok {
			edits[l.Page] = append(edits[l.Page], markup.Edit{Span: at})
			listed++
		}
		return ok
	})
	summaries := inOrder(edits)
	if len(in) > 0 && !o.Unlink {
		var from []string
		for _, l := range in {
			if n := r.Site.Show(l.Page.Path); !slices.Contains(from, n) {
				from = append(from, n)
			}
		}
		return say.Refuse("%s is linked to %s, from %s; end the instruction with “and unlink it” to turn these links into text", r.Site.Show(f), say.Times(len(in)), say.List(from))
	}
	n := 0
	for _, l := range in {
		switch l.Link.Kind {
		case markup.InlineLink:
			if l.Link.Inner.Start >= l.Link.Inner.End {
				return say.Refuse("a link to it in %s has no text to leave", r.Site.Show(l.Page.Path))
			}
			edits[l.Page] = append(edits[l.Page],
				markup.Edit{Span: markup.Span{Start: l.Link.Span.Start, End: l.Link.Inner.Start}},
				markup.Edit{Span: markup.Span{Start: l.Link.Inner.End, End: l.Link.Span.End}})
		case markup.ReferenceDefinition:
			for _, use := range l.Page.Links {
				if use.Kind == markup.ReferenceLink && use.Dest == strings.ReplaceAll(l.Link.Dest, `\`, "") && use.Inner.Start < use.Inner.End {
					edits[l.Page] = append(edits[l.Page],
						markup.Edit{Span: markup.Span{Start: use.Span.Start, End: use.Inner.Start}},
						markup.Edit{Span: markup.Span{Start: use.Inner.End, End: use.Span.End}})
				}
			}
			edits[l.Page] = append(edits[l.Page], markup.Edit{Span: markup.Span{Start: pages.LineStart(l.Page.Src, l.Link.Span.Start), End: pages.LineAfter(l.Page.Src, l.Link.Span.End)}})
		default:
			return say.Refuse("%s is used by a component or an import in %s, which cannot be unlinked", r.Site.Show(f), r.Site.Show(l.Page.Path))
		}
		n++
	}
	for _, p := range inOrder(edits) {
		k := 0
		for _, l := range in {
			if l.Page == p {
				k++
			}
		}
		what, n := "links turned into text", k
		if k == 0 {
			what, n = "navigation entries removed", len(edits[p])
		}
		if err := r.edit(p, edits[p], what, n); err != nil {
			return err
		}
	}
	nav, err := r.Site.Navigation()
	if err != nil {
		return err
	}
	id, _ := r.Site.ID(f)
	before := len(r.Done)
	if err := r.dropFromPrograms(f); err != nil {
		return err
	}
	dropped := slices.Clone(r.Done[before:])
	r.Done = r.Done[:before]
	if err := r.Files.Remove(f); err != nil {
		return err
	}
	r.means(f)
	r.Tally(f, "page deleted", 1)
	if n > 0 {
		r.Did("Deleted %s; %s to it turned into text", r.Site.Show(f), say.Count(n, "link"))
	} else {
		r.Did("Deleted %s", r.Site.Show(f))
	}
	r.headline("delete the page %s", r.Site.Show(f))
	if r.Done = append(r.Done, dropped...); listed > 0 {
		r.Did("Removed it from the navigation in %s", say.List(pathsOf(summaries)))
	}
	defer r.stillNamed(f, id)
	if nav == nil {
		return nil
	}
	k, err := nav.Drop(f)
	if err != nil {
		return err
	}
	if k > 0 {
		if err := r.Files.Write(nav.File, nav.Src); err != nil {
			return err
		}
		r.Tally(nav.File, "navigation entries removed", k)
		r.Did("Removed it from the navigation")
	}
	return nil
}

// summaryEntry is the line of a list that names a page in a page that is the navigation: mdBook's SUMMARY.md, or docsify's bars.
// One that has entries below it stays.
func summaryEntry(l pages.Inbound) (markup.Span, bool) {
	switch path.Base(l.Page.Path) {
	case "SUMMARY.md", "_sidebar.md", "_navbar.md":
	default:
		return markup.Span{}, false
	}
	src := l.Page.Src
	start, end := pages.LineStart(src, l.Link.Span.Start), pages.LineAfter(src, l.Link.Span.End)
	lead, rest := string(src[start:l.Link.Span.Start]), string(src[l.Link.Span.End:end])
	marker := strings.TrimSpace(lead)
	if l.Link.Kind != markup.InlineLink || len(marker) != 1 || !strings.Contains("-*+", marker) || strings.TrimSpace(rest) != "" {
		return markup.Span{}, false
	}
	indent := func(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }
	if next := string(src[end:pages.LineAfter(src, end)]); strings.TrimSpace(next) != "" && indent(next) > indent(lead) {
		return markup.Span{}, false
	}
	return markup.Span{Start: start, End: end}, true
}

func pathsOf(pages []*markup.Page) (out []string) {
	for _, p := range pages {
		out = append(out, p.Path)
	}
	return out
}
