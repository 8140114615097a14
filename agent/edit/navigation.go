package edit

import (
	"cmp"
	"path"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/site/markup"
)

// moveInNavigation makes navigation and redirects follow a page.
func (r *Run) moveInNavigation(nav *pages.Navigation, from, to string) error {
	entries, addresses, err := nav.Rename(from, to)
	if err != nil {
		return err
	}
	if entries+addresses > 0 {
		if err := r.Files.Write(nav.File, nav.Src); err != nil {
			return err
		}
		r.Tally(nav.File, "navigation entries changed", entries+addresses)
		r.Did("Changed %s", say.Count(entries+addresses, "navigation entry"))
	}
	if nav.MkDocs {
		return nil // as those of other generators
	}
	where, n, err := nav.Redirect(from, to)
	if err != nil {
		return err
	}
	if where == nil || n == 0 {
		r.Kept("No redirect was added: the site's redirects are not in a form that can be edited")
		return nil
	}
	if err := r.Files.Write(where.File, where.Src); err != nil {
		return err
	}
	r.Tally(where.File, "redirects changed", n)
	r.Did("Added a redirect from /%s to /%s", nav.Route(from), nav.Route(to))
	return nil
}

// forward makes a redirect from the address that a page had, in its generator's own way.
func (r *Run) forward(from, to, was string) error {
	f, err := r.Site.Forward(from, to, was)
	switch {
	case err != nil:
		return err
	case f.File == "":
		if f.Why != "-" {
			r.Kept("No redirect was added: %s", f.Why)
		}
		return nil
	}
	if f.File == to {
		err = r.Files.Write(f.File, f.Content)
	} else {
		err = r.Files.Rewrite(f.File, f.Content)
	}
	if _, refused := say.AsRefusal(err); refused {
		r.Kept("No redirect was added: %s: %v", f.File, err)
		return nil
	} else if err != nil {
		return err
	}
	r.Tally(f.File, "redirects changed", 1)
	r.Did("Added a redirect from %s to %s in %s", f.From, f.To, r.Site.Show(f.File))
	return nil
}

// NavEntry lists a page in the navigation, or takes it out.
type NavEntry struct {
	Page, Group, After, Before string
	Top, Remove                bool
	unlocated
}

func (o *NavEntry) Todo() string {
	if o.Remove {
		return "Remove " + o.Page + " from the navigation"
	}
	return "Add " + o.Page + " to the navigation"
}

func (o *NavEntry) Run(r *Run) error {
	f, err := r.Site.Find(o.Page)
	if err != nil {
		return err
	}
	nav, err := r.Site.Navigation()
	if err != nil {
		return err
	}
	if o.Remove {
		return o.remove(r, nav, f)
	}
	p, err := r.Site.Page(f)
	if err != nil {
		return err
	}
	where, err := r.list(nav, pages.NewEntry{File: f, Title: p.Title(), Group: o.Group, After: o.After, Before: o.Before, Top: o.Top})
	if err != nil {
		return err
	}
	where = cmp.Or(where, "the top")
	r.Did("Added %s to the navigation under %s", r.Site.Show(f), say.Quote(where))
	r.headline("add %s to the navigation", r.Site.Show(f))
	return nil
}

// remove takes a page out of the navigation.
func (o *NavEntry) remove(r *Run, nav *pages.Navigation, f string) error {
	k := 0
	if nav == nil {
		in, err := r.Site.Inbound(f)
		if err != nil {
			return err
		}
		entries, any := map[*markup.Page][]markup.Edit{}, false
		for _, l := range in {
			if e, ok := r.Site.Entry(l.Page, l.Link); ok && !e.Holds() {
				entries[l.Page] = append(entries[l.Page], markup.Edit{Span: e.Line})
				k++
			}
			any = any || pages.Navigates(l.Page.Path)
		}
		if k == 0 && !any {
			return say.Refuse("the navigation of this site cannot be edited: %s", r.Site.WhyNoNavigation())
		}
		for _, p := range inOrder(entries) {
			if err := r.edit(p, entries[p], "navigation entries removed", len(entries[p])); err != nil {
				return err
			}
		}
	} else {
		var err error
		if k, err = nav.Drop(f); err != nil {
			return err
		}
		if k > 0 {
			r.Tally(nav.File, "navigation entries removed", k)
			if err := r.Files.Write(nav.File, nav.Src); err != nil {
				return err
			}
		}
	}
	if k == 0 {
		return say.Idle("%s is not in the navigation", r.Site.Show(f))
	}
	r.Dropped[f] = true
	r.Did("Removed %s from the navigation", r.Site.Show(f))
	r.headline("remove %s from the navigation", r.Site.Show(f))
	return nil
}

// list adds a page to the navigation, whatever holds it, and gives the group's name.
func (r *Run) list(nav *pages.Navigation, e pages.NewEntry) (where string, err error) {
	if nav != nil {
		if where, err = nav.Add(e); err != nil {
			return "", err
		}
		r.Tally(nav.File, "navigation entries added", 1)
		return where, r.Files.Write(nav.File, nav.Src)
	}
	file, out, where, err := r.Site.AddToList(e)
	if err != nil {
		return "", err
	}
	if file != "" {
		r.Tally(file, "navigation entries added", 1)
		return where, r.Files.Write(file, out)
	}
	if e.Group == "" && e.After == "" && e.Before == "" && !e.Top {
		if file, out = r.Site.AddToProgram(e); file != "" {
			r.Tally(file, "navigation entries added", 1)
			return path.Base(file), r.Files.Rewrite(file, out)
		}
	}
	return "", say.Refuse("the navigation of this site cannot be edited: %s", r.Site.WhyNoNavigation())
}

// ListPage gives a new page its place in the navigation.
func (r *Run) ListPage(f, title, group string) error {
	nav, err := r.Site.Navigation()
	if err != nil {
		return err
	}
	where, err := r.list(nav, pages.NewEntry{File: f, Title: title, Group: group})
	switch why, refused := say.AsRefusal(err); {
	case refused && why.Idle && group == "":
	case err == nil:
		r.Did("Added it to the navigation under %s", say.Quote(cmp.Or(where, "the top")))
	case group != "" || !refused:
		return err
	case nav != nil:
		r.Kept("The page is in no navigation yet: %v. Say: add %s to navigation under \"…\"", err, r.Site.Show(f))
	case r.Site.Generated() || r.Site.NeedsListing():
		r.Kept("The navigation was not edited: %s", r.Site.WhyNoNavigation())
	}
	return nil
}
