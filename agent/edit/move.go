package edit

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/site/links"
	"docent/site/markup"
)

// Move moves a page or a folder of pages; links, navigation and redirects follow.
type Move struct {
	From, To string
	Folder   bool // it was said to be one
	unlocated
}

func (o *Move) Todo() string { return fmt.Sprintf("Move %s to %s", o.From, o.To) }

func (o *Move) Run(r *Run) error {
	below, dir := r.Site.Below(folderName(o.From))
	if dir && (o.Folder || strings.HasSuffix(o.From, "/")) {
		return o.moveFolder(r, below)
	}
	if o.Folder {
		return say.Refuse("there is no folder %s", say.Quote(o.From))
	}
	from, err := o.source(r, dir)
	if err != nil {
		return err
	}
	to, err := o.target(r, from)
	if err != nil {
		return err
	}
	nav, err := r.Site.Navigation()
	if err != nil {
		return err
	}
	self, follow, err := r.linksThatFollow(from, to)
	if err != nil {
		return err
	}
	was := r.Site.AddressOf(from)
	namings := r.Site.Named(from)
	id, sidebar := r.Site.ID(from)
	if err := r.Files.Move(from, to); err != nil { // its new address is known from here on
		return err
	}
	n, err := r.rewriteLinks(self, follow, to)
	if err != nil {
		return err
	}
	r.Did("Moved %s to %s; %s rewritten", r.Site.Show(from), r.Site.Show(to), say.Count(n, "link"))
	r.headline("move %s to %s", r.Site.Show(from), r.Site.Show(to))
	if nav != nil {
		if err := r.moveInNavigation(nav, from, to); err != nil {
			return err
		}
	}
	if err := r.moveInPrograms(namings, id, sidebar, from, to); err != nil { // namings say where they stood before
		return err
	}
	if nav == nil || nav.MkDocs {
		return r.forward(from, to, was)
	}
	return nil
}

// folderName is a name as it would be that of a folder.
func folderName(name string) string { return strings.Trim(strings.TrimPrefix(name, "./"), "/") }

// source settles which page is moved.
func (o *Move) source(r *Run, dir bool) (string, error) {
	from, err := r.Site.Find(o.From)
	switch {
	case err != nil:
		return "", err
	case dir && workspace.IsIndex(from) && !strings.EqualFold(path.Base(o.From), path.Base(from)):
		return "", say.Refuse("%s is a folder; say “move the folder …”, or name one of its pages, as %s",
			say.Quote(o.From), r.Site.Show(from))
	case !workspace.IsPage(from):
		return "", say.Refuse("%s is no Markdown page", r.Site.Show(from))
	}
	return from, r.Files.Writable(from)
}

// target settles where the page goes: what is moved to a folder keeps its name, and a name alone keeps the page in its
// folder.
func (o *Move) target(r *Run, from string) (string, error) {
	name := o.To
	isFolder := func(dir string) bool {
		return dir != "" && workspace.CleanPath(dir) == nil &&
			(r.Files.IsDir(path.Join(r.Files.DocsDir, dir)) || r.Files.IsDir(path.Join(r.Site.Root(), dir)))
	}
	if strings.HasSuffix(name, "/") || !workspace.IsPage(name) && isFolder(folderName(name)) {
		name = strings.TrimSuffix(name, "/") + "/" + path.Base(from)
	}
	if !strings.Contains(name, "/") && !workspace.IsPage(name) {
		name = path.Join(path.Dir(r.Site.Show(from)), name)
	}
	if !workspace.IsPage(name) {
		name += path.Ext(from)
	}
	to, err := r.Site.Fresh(name)
	if err != nil {
		return "", err
	}
	if to == from {
		return "", say.Idle("%s is there already", r.Site.Show(to))
	}
	return to, r.vacant(to, from)
}

// vacant refuses a path where a file is, or whose address is that of another page than the one that moves there.
func (r *Run) vacant(f, from string) error {
	if r.Files.Exists(f) {
		return say.Refuse("%s exists already", r.Site.Show(f))
	}
	for _, ext := range []string{".md", ".mdx", ".markdown"} {
		if other := r.Files.Twin(workspace.Stem(f) + ext); other != "" && other != from {
			return say.Refuse("%s exists already and has the same address", r.Site.Show(other))
		}
	}
	return nil
}

// A followingLink has to be rewritten when a page moves: it leads to the page, or stands in it.
type followingLink struct {
	page *markup.Page
	link markup.Link
	to   links.Target
	file string // that it is to lead to; empty if it leads nowhere
}

// linksThatFollow returns the page that moves and the links that have to follow it.
func (r *Run) linksThatFollow(from, to string) (self *markup.Page, follow []followingLink, err error) {
	all, err := r.Site.All()
	if err != nil {
		return nil, nil, err
	}
	for _, p := range all {
		if p.Path == from {
			self = p
		}
		for _, l := range p.References() {
			if l.Kind == markup.ReferenceLink || l.Kind == markup.AutoLink {
				continue
			}
			t := r.Site.Resolve(p.Path, l)
			if !t.Local || t.Form == links.SameForm {
				continue
			}
			file := t.File
			switch {
			case file == from:
				file = to
			case p.Path != from || t.Form.Rooted():
				continue
			}
			follow = append(follow, followingLink{p, l, t, file})
		}
	}
	if self == nil {
		return nil, nil, say.Refuse("%s cannot be read as text", r.Site.Show(from))
	}
	return self, follow, nil
}

// rewriteLinks makes links follow a page that is at its new path already, writes it with its own, and gives their
// number.
func (r *Run) rewriteLinks(self *markup.Page, follow []followingLink, to string) (int, error) {
	from := self.Path
	edits := map[*markup.Page][]markup.Edit{}
	n := 0
	for _, f := range follow {
		if next := r.following(f, from, to); next != f.link.Dest {
			edits[f.page] = append(edits[f.page], markup.Edit{Span: f.link.At, New: []byte(next)})
			n++
		}
	}
	for _, p := range inOrder(edits) {
		if p.Path == from {
			continue
		}
		if err := r.edit(p, edits[p], "links rewritten", len(edits[p])); err != nil {
			return 0, err
		}
	}
	out, err := markup.Apply(self.Src, edits[self])
	if err != nil {
		return 0, fmt.Errorf("rewrite the links of %s: %w", from, err)
	}
	if err := r.Files.Write(to, out); err != nil {
		return 0, err
	}
	r.moved(from, to)
	r.Tally(to, "page moved", 1)
	if own := len(edits[self]); own > 0 {
		r.Tally(to, "links rewritten", own)
	}
	return n, nil
}

// following is the destination that a link has after the move.
func (r *Run) following(f followingLink, from, to string) string {
	at := f.page.Path
	if at == from {
		at = to
	}
	switch {
	case f.file != "" && f.link.Takes && (f.to.Form == links.RootForm || f.to.Form == links.FileForm) && f.link.Kind != markup.InlineLink:
		return r.importPath(at, f.to, f.file, f.link.Dest)
	case f.file != "":
		return r.Site.Address(at, f.to, f.file, f.link.Dest)
	}
	// It leads nowhere that is known; it shall lead there still.
	d, rest, ok := links.LocalPath(f.link.Dest)
	if !ok || strings.Contains(f.link.Dest, "%") {
		return f.link.Dest
	}
	next := pages.Relative(path.Dir(to), path.Join(path.Dir(from), d))
	if strings.HasPrefix(d, "./") && !strings.HasPrefix(next, ".") {
		next = "./" + next
	}
	if strings.HasSuffix(d, "/") {
		next += "/"
	}
	return next + rest
}

// moveFolder moves the pages of a folder; its other files stay where they are.
func (o *Move) moveFolder(r *Run, pages []string) error {
	from, to := folderName(o.From), folderName(o.To)
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
	for _, d := range []string{path.Join(r.Files.DocsDir, from), path.Join(r.Site.Root(), from), from} {
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
	if n := len(slices.DeleteFunc(slices.Clone(r.Files.List()),
		func(f string) bool { return !strings.HasPrefix(f, root+"/") })); n > 0 {
		r.Kept("Left %s in %s/, which are no pages", say.Count(n, "file"), from)
	}
	return nil
}

// importPath writes the module of an import from a page to a file.
func (r *Run) importPath(from string, t links.Target, file, orig string) string {
	name := file
	if path.Ext(orig) == "" || !strings.HasSuffix(file, path.Ext(orig)) {
		name = workspace.Stem(file)
	}
	if t.Form == links.RootForm {
		if r.Site.Root() != "" {
			name = strings.TrimPrefix(name, r.Site.Root()+"/")
		}
		return "/" + name
	}
	out := pages.Relative(path.Dir(from), name)
	if !strings.HasPrefix(out, ".") {
		out = "./" + out
	}
	return out
}
