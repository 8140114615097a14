package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"docent/agent/pages"
	"docent/agent/rules"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/site/markup"
)

// fewDeletions is how many pages one change may delete without a pull request, if a project has changes committed to
// its branch directly. Each has to be named by the instruction.
const fewDeletions = 3

// A deletion is a file of the base that a change takes away, or a page that it leaves without content.
type deletion struct {
	path    string
	emptied bool
}

// deletions lists what changes delete. A move deletes nothing, however it was made: if the same bytes stand in a new
// file, the file was moved.
func (c *Checker) deletions(changes []workspace.Change) ([]deletion, error) {
	moved := workspace.Moved(changes)
	var fresh [][]byte
	for _, ch := range changes {
		if ch.From == "" && !ch.Delete && !c.run.Files.Had(ch.Path) {
			fresh = append(fresh, ch.Content)
		}
	}
	var out []deletion
	for _, ch := range changes {
		from := ch.Path
		if ch.From != "" {
			from = ch.From
		}
		if !c.run.Files.Had(from) || ch.Delete && moved[ch.Path] || !ch.Delete && !workspace.IsPage(ch.Path) {
			continue
		}
		if ch.Delete && len(fresh) == 0 {
			out = append(out, deletion{path: ch.Path})
			continue
		}
		old, err := c.run.Files.Original(from)
		if err != nil {
			return nil, err
		}
		switch {
		case ch.Delete:
			if i := slices.IndexFunc(fresh, func(b []byte) bool { return bytes.Equal(b, old) }); i >= 0 {
				fresh = slices.Delete(fresh, i, i+1)
				continue
			}
			out = append(out, deletion{path: ch.Path})
		case bare(ch.Path, ch.Content) && !bare(from, old):
			out = append(out, deletion{path: ch.Path, emptied: true})
		}
	}
	return out, nil
}

// bare reports whether a page says nothing: headings, comments and front matter are no content.
func bare(name string, src []byte) bool {
	p := markup.Parse(name, src)
	if len(p.Code) > 0 || len(p.Links) > 0 || len(p.Tags) > 0 {
		return false
	}
	at := p.Body.Start
	for _, h := range p.Headings {
		if h.Span.Start > at && strings.TrimSpace(p.Plain(markup.Span{Start: at, End: h.Span.Start})) != "" {
			return false
		}
		at = max(at, h.Span.End)
	}
	return at >= p.Body.End || strings.TrimSpace(p.Plain(markup.Span{Start: at, End: p.Body.End})) == ""
}

// unasked says what is wrong with the deletions among the changes, or nothing: a page is deleted or emptied only if
// the instruction says so. Both ways of editing go through here before there is a result. It also settles whether a
// person looks at the change before it is on the documentation's branch.
func (c *Checker) unasked(changes []workspace.Change, base *pages.Site) (fault string, checked string, err error) {
	list, err := c.deletions(changes)
	if err != nil || len(list) == 0 {
		return "", "", err
	}
	c.Review = len(list) > fewDeletions
	defer func() {
		if c.Review && fault == "" && c.direct {
			c.run.Kept("%s are deleted, so the change waits for a review, although the project has changes committed directly",
				say.Count(len(list), "file"))
		}
	}()
	if c.run.Undone {
		return "", "", nil
	}
	says := c.wanted()
	var left []deletion
	for _, d := range list {
		if !c.run.Meant[d.path] && !names(says, base, d) {
			left = append(left, d)
		}
	}
	if len(left) == 0 {
		return "", fmt.Sprintf("the instruction names what is deleted (%s)", say.Count(len(list), "file")), nil
	}
	if inWords(says, base, left) {
		c.Review = true
		return "", fmt.Sprintf("the instruction asks in words for pages to be deleted: look whether these are meant (%s)",
			say.Count(len(list), "file")), nil
	}
	return c.unnamed(left), "", nil
}

// unnamed says that files would be deleted which the instruction does not name.
func (c *Checker) unnamed(left []deletion) string {
	var gone, empty []string
	for _, d := range left {
		if d.emptied {
			empty = append(empty, c.run.Site.Show(d.path))
		} else {
			gone = append(gone, c.run.Site.Show(d.path))
		}
	}
	var parts []string
	if len(gone) > 0 {
		parts = append(parts, fmt.Sprintf("%s would be deleted (%s)", say.Count(len(gone), "file"), say.List(gone)))
	}
	if len(empty) > 0 {
		parts = append(parts, fmt.Sprintf("%s would be left without content (%s)", say.Count(len(empty), "page"),
			say.List(empty)))
	}
	first := gone
	if len(gone) == 0 {
		first = empty
	}
	return strings.Join(parts, " and ") +
		", and the instruction does not ask for that; to delete a page, name it, for instance “delete page " + first[0] + "”"
}

// wanted is what the instruction says about deleting.
func (c *Checker) wanted() rules.Deletions {
	if c.want == nil {
		var before []string
		for _, e := range c.run.Earlier {
			before = append(before, e.Prompt)
		}
		w := rules.ReadDeletions(c.prompt, before)
		c.want = &w
	}
	return *c.want
}

// Asks reports whether the instruction asks for a file of the base to be deleted.
func (c *Checker) Asks(file string) (bool, error) {
	base, err := c.base()
	if err != nil {
		return false, err
	}
	w, d := c.wanted(), deletion{path: file}
	return names(w, base, d) || inWords(w, base, []deletion{d}), nil
}

// names reports whether the instruction names a file as one to delete.
func names(w rules.Deletions, base *pages.Site, d deletion) bool {
	is := func(name string) bool { return base.Called(name, d.path) }
	if slices.ContainsFunc(w.Kept, is) {
		return false
	}
	if d.emptied && slices.ContainsFunc(w.Touched, is) {
		return true
	}
	return slices.ContainsFunc(w.Objects, func(o rules.Object) bool {
		return slices.ContainsFunc(o.Paths, is) ||
			slices.ContainsFunc(o.Titles, func(title string) bool {
				return base.Titled(title, d.path) ||
					o.Folder && is(title+"/")
			})
	})
}

// inWords reports whether the instruction asks for pages to be deleted that it describes and does not name.
func inWords(w rules.Deletions, base *pages.Site, list []deletion) bool {
	if slices.ContainsFunc(list, func(d deletion) bool {
		return !workspace.IsPage(d.path) || slices.ContainsFunc(w.Kept,
			func(name string) bool { return base.Called(name, d.path) })
	}) {
		return false
	}
	all := base.List()
	return slices.ContainsFunc(w.Objects, func(o rules.Object) bool {
		if !o.Pages || o.Part || len(o.Paths) > 0 || !o.Many && len(list) > 1 {
			return false
		}
		if len(o.Among) > 0 {
			return !slices.ContainsFunc(list, func(d deletion) bool {
				return !slices.ContainsFunc(o.Among, func(name string) bool {
					return !strings.HasSuffix(name, "/") &&
						base.Called(name, d.path)
				})
			})
		}
		return !slices.ContainsFunc(o.Titles, func(title string) bool { // a title of some page is no description
			return slices.ContainsFunc(all, func(f string) bool {
				return base.Titled(title, f) ||
					o.Folder && base.Called(title+"/", f)
			})
		})
	})
}
