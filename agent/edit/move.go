package edit

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/markup"
)

// Move a page; links, navigation and redirects follow.
type Move struct {
	From, To string
	Folder   bool // it was said to be one
	unlocated
}

func (o *Move) Todo() string { return fmt.Sprintf("Move %s to %s", o.From, o.To) }

func (o *Move) Run(r *Run) error {
	below, dir := r.Site.Below(strings.Trim(strings.TrimPrefix(o.From, "./"), "/"))
	if dir && (o.Folder || strings.HasSuffix(o.From, "/")) {
		return o.moveFolder(r, below)
	}
	if o.Folder {
		return say.Refuse("there is no folder %s", say.Quote(o.From))
	}
	from, err := r.Site.Find(o.From)
	if err != nil {
		return err
	}
	if dir && workspace.IsIndex(from) && !strings.EqualFold(path.Base(o.From), path.Base(from)) {
		return say.Refuse("%s is a folder; say “move the folder …”, or name one of its pages, as %s", say.Quote(o.From), r.Site.Show(from))
	}
	if !workspace.IsPage(from) {
		return say.Refuse("%s is no Markdown page", r.Site.Show(from))
	}
	if err := r.Files.Writable(from); err != nil {
		return err
	}
	name := o.To
	dirName := strings.Trim(strings.TrimPrefix(name, "./"), "/")
	if strings.HasSuffix(name, "/") || !workspace.IsPage(name) && dirName != "" && workspace.CleanPath(dirName) == nil && (r.Files.IsDir(path.Join(r.Files.DocsDir, dirName)) || r.Files.IsDir(path.Join(r.Site.Root, dirName))) {
		name = strings.TrimSuffix(name, "/") + "/" + path.Base(from)
	}
	if !strings.Contains(strings.TrimPrefix(name, "/"), "/") && !workspace.IsPage(name) && !strings.HasPrefix(name, "/") {
		name = path.Join(path.Dir(r.Site.Show(from)), name)
	}
	if !workspace.IsPage(name) {
		name += path.Ext(from)
	}
	to, err := r.Site.Fresh(name)
	if err != nil {
		return err
	}
	if to == from {
		return say.Idle("%s is there already", r.Site.Show(to))
	}
	if r.Files.Exists(to) {
		return say.Refuse("%s exists already", r.Site.Show(to))
	}
	for _, ext := range []string{".md", ".mdx", ".markdown"} {
		if other := r.Files.Twin(workspace.Stem(to) + ext); other != "" && other != from {
			return say.Refuse("%s exists already and has the same address", r.Site.Show(other))
		}
	}
	nav, err := r.Site.Navigation()
	if err != nil {
		return err
	}

	all, err := r.Site.All()
	if err != nil {
		return err
	}
	type passage struct { // a link that has to follow
		page *markup.Page
		link markup.Link
		to   pages.Target
		file string
	}
	var follow []passage
	var self *markup.Page
	for _, p := range all {
		if p.Path == from {
			self = p
		}
		for _, l := range p.Links {
			if l.Kind == markup.ReferenceLink || l.Kind == markup.AutoLink {
				continue
			}
			t := r.Site.Resolve(p.Path, l)
			if !t.Local || t.Form == pages.SameForm {
				continue
			}
			file := t.File
			switch {
			case file == from:
				file = to
			case p.Path != from || t.Form == pages.RootForm || t.Form == pages.SiteForm:
				continue
			}
			follow = append(follow, passage{p, l, t, file})
		}
	}
	if self == nil {
		return say.Refuse("%s cannot be read as text", r.Site.Show(from))
	}
	namings := r.Site.Named(from)
	id, sidebar := r.Site.ID(from)
	if err := r.Files.Move(from, to); err != nil { // its new address is known from here on
		return err
	}
	edits := map[*markup.Page][]markup.Edit{}
	links, others := 0, 0
	for _, f := range follow {
		p, l, t, at := f.page, f.link, f.to, f.page.Path
		if at == from {
			at = to
		}
		var next string
		if f.file == "" { // leads nowhere that is known; it shall lead there still
			d, rest, ok := pages.LocalPath(l.Dest)
			if !ok || strings.Contains(l.Dest, "%") {
				continue
			}
			next = pages.Relative(path.Dir(to), path.Join(path.Dir(from), d))
			if strings.HasPrefix(d, "./") && !strings.HasPrefix(next, ".") {
				next = "./" + next
			}
			if strings.HasSuffix(d, "/") {
				next += "/"
			}
			next += rest
		} else if l.Kind == markup.ImportLink {
			next = r.importPath(at, t, f.file, l.Dest)
		} else {
			next = r.Site.Address(at, t, f.file, l.Dest)
		}
		if next == l.Dest {
			continue
		}
		edits[p] = append(edits[p], markup.Edit{Span: l.At, New: []byte(next)})
		if p.Path == from {
			others++
		} else {
			links++
		}
	}
	for _, p := range inOrder(edits) {
		if p.Path == from {
			continue
		}
		if err := r.edit(p, edits[p], "links rewritten", len(edits[p])); err != nil {
			return err
		}
	}
	out, err := markup.Apply(self.Src, edits[self])
	if err != nil {
		return fmt.Errorf("rewrite the links of %s: %w", from, err)
	}
	if err := r.Files.Write(to, out); err != nil {
		return err
	}
	r.moved(from, to)
	r.Tally(to, "page moved", 1)
	if others > 0 {
		r.Tally(to, "links rewritten", others)
	}
	r.Did("Moved %s to %s; %s rewritten", r.Site.Show(from), r.Site.Show(to), say.Count(links+others, "link"))
	r.headline("move %s to %s", r.Site.Show(from), r.Site.Show(to))
	if nav != nil {
		if err := r.moveInNavigation(nav, from, to); err != nil {
			return err
		}
	}
	return r.moveInPrograms(namings, id, sidebar, from, to)
}

// moveFolder moves the pages of a folder; its other files stay where they are.
func (o *Move) moveFolder(r *Run, pages []string) error {
	from, to := strings.Trim(strings.TrimPrefix(o.From, "./"), "/"), strings.Trim(strings.TrimPrefix(o.To, "./"), "/")
	if len(pages) == 0 {
		return say.Refuse("the folder %s has no pages", say.Quote(o.From))
	}
	if err := workspace.CleanPath(to); err != nil {
		return err
	}
	if workspace.IsPage(to) {
		return say.Refuse("%s is a folder, and %s names a page", say.Quote(o.From), say.Quote(o.To))
	}
	root := ""
	for _, d := range []string{path.Join(r.Files.DocsDir, from), path.Join(r.Site.Root, from), from} {
		if strings.HasPrefix(pages[0], d+"/") {
			root = d
			break
		}
	}
	target := path.Join(strings.TrimSuffix(root, from), to)
	if target == root || strings.HasPrefix(target, root+"/") {
		return say.Refuse("%s lies within %s", say.Quote(o.To), say.Quote(o.From))
	}
	if _, there := r.Site.Below(to); there || r.Files.IsDir(target) {
		return say.Refuse("there is a folder %s already; move the pages into it one by one", say.Quote(o.To))
	}
	titles := len(r.Titles)
	for _, f := range pages {
		one := &Move{From: r.Site.Show(f), To: r.Site.Show(path.Join(target, strings.TrimPrefix(f, root+"/")))}
		if err := one.Run(r); err != nil {
			return err
		}
	}
	r.Titles = r.Titles[:titles]
	r.headline("move %s/ to %s/", from, to)
	if n := len(slices.DeleteFunc(slices.Clone(r.Files.List()), func(f string) bool { return !strings.HasPrefix(f, root+"/") })); n > 0 {
		r.Kept("Left %s in %s/, which are no pages", say.Count(n, "file"), from)
	}
	return nil
}

// importPath writes the module of an import from a page to a file.
func (r *Run) importPath(from string, t pages.Target, file, orig string) string {
	name := file
	if path.Ext(orig) == "" || !strings.HasSuffix(file, path.Ext(orig)) {
		name = workspace.Stem(file)
	}
	if t.Form == pages.RootForm {
		if r.Site.Root != "" {
			name = strings.TrimPrefix(name, r.Site.Root+"/")
		}
		return "/" + name
	}
	out := pages.Relative(path.Dir(from), name)
	if !strings.HasPrefix(out, ".") {
		out = "./" + out
	}
	return out
}
