package index

import (
	"context"
	"net/url"
	"path"
	"strings"

	"docent/search/page"
	"docent/site"
	"docent/site/links"
	"docent/site/markup"
)

// A linkTree is what links are followed in: the files of the tree, and the pages as the site shows them.
type linkTree struct {
	*Update
	ctx    context.Context
	pages  *links.Map
	byPath map[string]*page.Record
	names  map[string][]string // files by their names
	parsed map[string]*markup.Page
	marked map[*markup.Page]map[string]bool
}

// mostParsed is how many pages are kept parsed.
const mostParsed = 500

// deadLinks are the links of public pages that lead nowhere.
func (u *Update) deadLinks(ctx context.Context) (out []DeadLink) {
	t := &linkTree{Update: u, ctx: ctx, pages: links.NewMap(&u.where), byPath: make(map[string]*page.Record, len(u.records)),
		names: make(map[string][]string), parsed: make(map[string]*markup.Page), marked: make(map[*markup.Page]map[string]bool)}
	for _, r := range u.records {
		d, ok := u.decided[r.Path]
		if !ok {
			continue
		}
		t.byPath[r.Path] = r
		p := r.Page()
		p.Aliases = append(append([]string{}, r.Aliases...), "/"+site.PageKey(r.Path))
		t.pages.Add(p, d.State.IsPage())
		key := links.Key(r.Path)
		t.names[key] = append(t.names[key], path.Join(u.project.DocsDir, r.Path))
	}
	resolver := links.Resolver{Tree: t, Site: &u.where, DocsDir: u.project.DocsDir, Base: t.base(), Marked: t.marked}
	for _, r := range u.records {
		if src := u.sources[r]; r.Kind != page.KindPage || r.File != "" || src == nil || ctx.Err() != nil {
			continue
		}
		p, err := t.Page(path.Join(u.project.DocsDir, r.Path))
		if err != nil || p.Format == markup.Text {
			continue
		}
		seen := make(map[string]bool)
		for _, d := range resolver.Dead(p) {
			if d.Asset || d.Link.Kind == markup.ImportLink || d.Link.Kind == markup.ImageLink || seen[d.Link.Dest] {
				continue
			}
			seen[d.Link.Dest] = true
			why := d.Why()
			if d.Hidden {
				rel, _ := site.Relative(u.project.DocsDir, d.Target.File)
				why = rel + " is no public page: " + u.decided[rel].Rule
			}
			out = append(out, DeadLink{r.Path, d.Link.Dest, why})
		}
	}
	return out
}

// base is the path of the documentation's address.
func (t *linkTree) base() string {
	at, err := url.Parse(t.report.SiteURL)
	if err != nil {
		return ""
	}
	return strings.Trim(at.Path, "/")
}

// Exists reports whether the tree has a file.
func (t *linkTree) Exists(file string) bool {
	_, ok := t.files[file]
	return ok
}

// Page parses a file. Some are kept.
func (t *linkTree) Page(file string) (*markup.Page, error) {
	if p := t.parsed[file]; p != nil {
		return p, nil
	}
	var content []byte
	var err error
	name := file
	if rel, _ := site.Relative(t.project.DocsDir, file); t.byPath[rel] != nil {
		name = t.byPath[rel].SourceName()
		content, err = t.content(t.byPath[rel])
	} else {
		content, err = t.tree.Read(t.ctx, file)
	}
	if err != nil {
		return nil, err
	}
	p := markup.Parse(name, content)
	p.Path = file
	if len(t.parsed) >= mostParsed {
		clear(t.parsed)
		clear(t.marked)
	}
	t.parsed[file] = p
	return p, nil
}

// ShownAt is the file that is shown at an address, or that has it as its path.
func (t *linkTree) ShownAt(address string) string {
	if rel, ok := t.pages.Find(address); ok {
		return path.Join(t.project.DocsDir, rel)
	}
	return ""
}

// AddressOf is where a page is shown.
func (t *linkTree) AddressOf(file string) string {
	rel, _ := site.Relative(t.project.DocsDir, file)
	at, _ := t.pages.Address(rel)
	return at
}

// Shows reports whether a file is a page of the site.
func (t *linkTree) Shows(file string) bool {
	rel, _ := site.Relative(t.project.DocsDir, file)
	return t.pages.Shows(rel)
}

// Holds reports whether pages are shown below an address.
func (t *linkTree) Holds(address string) bool { return t.pages.Holds(address) }

// PagesNamed are the files of a name.
func (t *linkTree) PagesNamed(key string) []string { return t.names[key] }

// PagesLabeled are none: Sphinx's own build looks for its labels.
func (t *linkTree) PagesLabeled(string) []string { return nil }

// Root is the folder that the pages' paths begin at.
func (t *linkTree) Root() string {
	dir := t.where.Pages()
	if t.project.DocsDir == "" || dir == t.project.DocsDir || strings.HasPrefix(dir, t.project.DocsDir+"/") {
		return dir
	}
	return t.project.DocsDir
}

// Prefix is what links from the site's root begin with.
func (t *linkTree) Prefix() string { return t.base() }
