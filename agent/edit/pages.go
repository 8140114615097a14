package edit

import (
	"maps"
	"path"
	"slices"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/site/markup"
)

// Create makes a page.
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
	if err := r.vacant(f, ""); err != nil {
		return err
	}
	title := say.OneLine(o.Title, 200)
	if title == "" {
		title = pages.Humanize(workspace.Stem(path.Base(f)))
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

// DeletePage deletes a page; the links to it become text if it says so.
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
	f, err := o.file(r)
	if err != nil {
		return err
	}
	links, err := r.Site.Inbound(f)
	if err != nil {
		return err
	}
	links = slices.DeleteFunc(links, func(l pages.Inbound) bool { return l.Page.Path == f })
	entries := map[*markup.Page][]markup.Edit{}
	// an entry of a page that is the navigation goes as a whole
	links = slices.DeleteFunc(links, func(l pages.Inbound) bool {
		e, ok := r.Site.Entry(l.Page, l.Link)
		if ok = ok && !e.Holds(); ok {
			entries[l.Page] = append(entries[l.Page], markup.Edit{Span: e.Line})
		}
		return ok
	})
	if err := r.linkedFrom(f, links, o.Unlink); err != nil {
		return err
	}
	if err := r.unlink(f, links, entries); err != nil {
		return err
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
	if len(links) > 0 {
		r.Did("Deleted %s; %s to it turned into text", r.Site.Show(f), say.Count(len(links), "link"))
	} else {
		r.Did("Deleted %s", r.Site.Show(f))
	}
	r.headline("delete the page %s", r.Site.Show(f))
	if r.Done = append(r.Done, dropped...); len(entries) > 0 {
		r.Did("Removed it from the navigation in %s", say.List(pathsOf(inOrder(entries))))
	}
	defer r.stillNamed(f, id)
	if nav == nil {
		return nil
	}
	n, err := nav.Drop(f)
	if err != nil || n == 0 {
		return err
	}
	r.Tally(nav.File, "navigation entries removed", n)
	r.Did("Removed it from the navigation")
	return r.Files.Write(nav.File, nav.Src)
}

// file settles which page is deleted.
func (o *DeletePage) file(r *Run) (string, error) {
	f, err := r.Site.Find(o.Page)
	_, dir := r.Site.Below(folderName(o.Page))
	switch {
	case dir && (strings.HasSuffix(o.Page, "/") || err == nil && workspace.IsIndex(f) &&
		!strings.EqualFold(path.Base(o.Page), path.Base(f))):
		return "", say.Refuse("%s is a folder; name the page", say.Quote(o.Page))
	case err != nil:
		return "", err
	case !workspace.IsPage(f):
		return "", say.Refuse("%s is no Markdown page", r.Site.Show(f))
	}
	return f, r.Files.Writable(f)
}

// linkedFrom refuses to delete a page that others refer to, and whose text some may take in.
func (r *Run) linkedFrom(f string, links []pages.Inbound, unlink bool) error {
	var from, taking []string
	for _, l := range links {
		n := r.Site.Show(l.Page.Path)
		if !slices.Contains(from, n) {
			from = append(from, n)
		}
		if l.Link.Takes && !slices.Contains(taking, n) {
			taking = append(taking, n)
		}
	}
	switch {
	case len(taking) > 0:
		return say.Refuse("%s is included in %s, which would lose its text: take that out first", r.Site.Show(f), say.List(taking))
	case unlink || len(links) == 0:
		return nil
	}
	return say.Refuse("%s is linked to %s, from %s; end the instruction with “and unlink it” to turn these links into text", r.Site.Show(f), say.Times(len(links)), say.List(from))
}

// unlink turns the links to a page into text, and makes the edits of the pages that list it.
func (r *Run) unlink(f string, links []pages.Inbound, entries map[*markup.Page][]markup.Edit) error {
	edits := maps.Clone(entries)
	turned := map[*markup.Page]int{}
	for _, l := range links {
		cuts, err := r.unlinked(f, l)
		if err != nil {
			return err
		}
		edits[l.Page] = append(edits[l.Page], cuts...)
		turned[l.Page]++
	}
	for _, p := range inOrder(edits) {
		what, n := "links turned into text", turned[p]
		if n == 0 {
			what, n = "navigation entries removed", len(edits[p])
		}
		if err := r.edit(p, edits[p], what, n); err != nil {
			return err
		}
	}
	return nil
}

// unlinked returns the edits that leave the text of a link.
func (r *Run) unlinked(f string, l pages.Inbound) ([]markup.Edit, error) {
	text := func(l markup.Link) []markup.Edit {
		return []markup.Edit{{Span: markup.Span{Start: l.Span.Start, End: l.Inner.Start}},
			{Span: markup.Span{Start: l.Inner.End, End: l.Span.End}}}
	}
	switch l.Link.Kind {
	case markup.InlineLink:
		if l.Link.Inner.Start >= l.Link.Inner.End {
			return nil, say.Refuse("a link to it in %s has no text to leave", r.Site.Show(l.Page.Path))
		}
		return text(l.Link), nil
	case markup.ReferenceDefinition:
		var edits []markup.Edit
		for _, use := range l.Page.Links {
			if use.Kind == markup.ReferenceLink && use.Dest == strings.ReplaceAll(l.Link.Dest, `\`, "") &&
				use.Inner.Start < use.Inner.End {
				edits = append(edits, text(use)...)
			}
		}
		return append(edits, markup.Edit{Span: linesOf(l.Page.Src, l.Link.Span)}), nil
	}
	if l.Link.From == markup.WikiBase {
		parts := strings.Split(l.Link.Dest, "|")
		name := strings.TrimSpace(parts[(l.To.Part+1)%len(parts)])
		return []markup.Edit{{Span: l.Link.Span, New: []byte(name)}}, nil
	}
	return nil, say.Refuse("%s is used by a component, an import or a template in %s, which cannot be unlinked", r.Site.Show(f),
		r.Site.Show(l.Page.Path))
}

// linesOf takes in the whole lines that a span stands in.
func linesOf(src []byte, s markup.Span) markup.Span {
	return markup.Span{Start: pages.LineStart(src, s.Start), End: pages.LineAfter(src, s.End)}
}

func pathsOf(pages []*markup.Page) (out []string) {
	for _, p := range pages {
		out = append(out, p.Path)
	}
	return out
}
