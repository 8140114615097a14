package pages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v4"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
	"docent/internal/formats"
	"docent/site/links"
	"docent/site/markup"
)

// A Navigation is a file that lists the pages, edited by byte ranges so that its layout and comments stay.
type Navigation struct {
	site   *Site
	File   string
	Src    []byte
	MkDocs bool
}

// WhyNoNavigation says why the navigation is not edited.
func (s *Site) WhyNoNavigation() string {
	switch {
	case s.NavigationFile() != "" && !s.Files.InDocs(s.NavigationFile()):
		return s.NavigationFile() + " lies outside the documentation folder"
	case s.Generator.Kind == api.SiteDocusaurus || s.Generator.Kind == api.SiteVitePress ||
		s.Generator.Kind == api.SiteStarlight:
		return "that of " + s.Generator.Generator() + " is a program"
	case s.Generator.Kind == api.SiteHugo:
		return "that of Hugo follows from its pages"
	case s.Generator.Kind == api.SiteJekyll || s.Generator.Kind == api.SiteWiki:
		return "that of " + s.Generator.Generator() + " is made by its theme"
	}
	return "there is no docs.json, mint.json or mkdocs.yml"
}

// NavigationFile is the file that holds the navigation and is edited as data; empty if there is none.
func (s *Site) NavigationFile() string {
	if s.Generator.Kind == api.SiteMintlify || s.Generator.Kind == api.SiteMkDocs {
		return s.Generator.Config()
	}
	return ""
}

// Navigation opens the site's navigation as it is now; nil if there is none that can be edited.
func (s *Site) Navigation() (*Navigation, error) {
	file := s.NavigationFile()
	if file == "" || s.Files.Writable(file) != nil || !s.Files.Exists(file) {
		return nil, nil
	}
	src, err := s.Files.Read(file)
	if err != nil {
		return nil, err
	}
	n := &Navigation{site: s, File: file, Src: src, MkDocs: s.Generator.Kind == api.SiteMkDocs}
	if n.MkDocs {
		if _, err := n.yamlNav(); err != nil {
			return nil, say.Refuse("%s does not parse: %v", file, err)
		}
		return n, nil
	}
	if _, err := formats.JSONTree(src); err != nil {
		return nil, say.Refuse("%s does not parse: %v", file, err)
	}
	return n, nil
}

// Route is how the navigation names a page.
func (n *Navigation) Route(file string) string {
	if n.MkDocs {
		return strings.TrimPrefix(strings.TrimPrefix(file, n.yamlDir()), "/")
	}
	dir := path.Dir(n.File)
	r := workspace.Stem(file)
	if dir != "." {
		r = strings.TrimPrefix(r, dir+"/")
	}
	return r
}

func (n *Navigation) apply(edits []markup.Edit) error {
	out, err := markup.Apply(n.Src, edits)
	if err != nil {
		return fmt.Errorf("edit %s: %w", n.File, err)
	}
	if n.MkDocs {
		var v yaml.Node
		if err := formats.YAML(out, &v); err != nil {
			return say.Refuse("%s cannot be edited by itself: %v", n.File, err)
		}
	} else if _, err := formats.JSONTree(out); err != nil {
		return say.Refuse("%s cannot be edited by itself: %v", n.File, err)
	}
	n.Src = out
	return nil
}

// A listed page stands in an array of the navigation.
type listed struct {
	value *hujson.Value
	array *hujson.Array
	index int
	group string
	trail []string
}

// A groupAt is an array of pages with the names of what it stands in.
type groupAt struct {
	name  string
	trail []string
	array *hujson.Array
	value *hujson.Value // of the array
}

func str(v *hujson.Value) (string, bool) {
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		return "", false
	}
	return l.String(), true
}

func member(o *hujson.Object, name string) *hujson.Value {
	for i := range o.Members {
		if k, ok := str(&o.Members[i].Name); ok && k == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// walk visits every page and every array of pages of the navigation.
func (n *Navigation) walk(page func(listed), group func(groupAt)) error {
	root, err := formats.JSONTree(n.Src)
	if err != nil {
		return say.Refuse("%s does not parse: %v", n.File, err)
	}
	top, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	nav := member(top, "navigation")
	if nav == nil {
		return nil
	}
	var visit func(v *hujson.Value, name string, trail []string, pages bool)
	visit = func(v *hujson.Value, name string, trail []string, pages bool) {
		switch x := v.Value.(type) {
		case *hujson.Array:
			if pages && group != nil {
				group(groupAt{name, trail, x, v})
			}
			for i := range x.Elements {
				e := &x.Elements[i]
				if _, ok := str(e); ok {
					if pages && page != nil {
						page(listed{e, x, i, name, trail})
					}
					continue
				}
				visit(e, name, trail, false)
			}
		case *hujson.Object:
			own := name
			for _, k := range []string{"group", "tab", "anchor", "dropdown", "version", "language", "product"} {
				if m := member(x, k); m != nil {
					if s, ok := str(m); ok {
						own = s
						trail = append(slices.Clip(trail), s)
						break
					}
				}
			}
			for i := range x.Members {
				k, _ := str(&x.Members[i].Name)
				val := &x.Members[i].Value
				if k == "root" && page != nil {
					if _, ok := str(val); ok {
						page(listed{value: val, group: own, trail: trail})
					}
					continue
				}
				visit(val, own, trail, k == "pages" || k == "navigation")
			}
		}
	}
	// The oldest form has the groups right in an array under "navigation".
	visit(nav, "", nil, false)
	return nil
}

// Pages lists the pages that the navigation names, as files.
func (n *Navigation) Pages() ([]string, error) {
	var out []string
	if n.MkDocs {
		entries, err := n.yamlNav()
		if err != nil {
			return nil, say.Refuse("%s does not parse: %v", n.File, err)
		}
		for _, e := range entries {
			out = append(out, path.Join(n.yamlDir(), e.path))
		}
		return out, nil
	}
	err := n.walk(func(l listed) {
		s, _ := str(l.value)
		if strings.Contains(s, "://") || strings.Contains(s, " ") { // an address, or an operation of an OpenAPI file
			return
		}
		p := path.Join(path.Dir(n.File), strings.Trim(s, "/"))
		if f := n.site.lookup(p); f != "" {
			p = f
		}
		out = append(out, p)
	}, nil)
	return out, err
}

func (n *Navigation) is(v *hujson.Value, file string) bool {
	s, ok := str(v)
	return ok && strings.Trim(strings.TrimSuffix(strings.TrimSuffix(s, ".mdx"), ".md"), "/") == n.Route(file)
}

func jsonString(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a string always encodes
		panic(err)
	}
	return strings.TrimRight(b.String(), "\n")
}

// A NewEntry is a page that is to be listed: under a group, beside another page, or, if neither is named, in the one
// group that holds the pages of its folder.
type NewEntry struct {
	File, Title   string
	Group         string
	After, Before string
	Top           bool // of the group
}

// Add lists a page. It returns the group's name.
func (n *Navigation) Add(e NewEntry) (string, error) {
	have, err := n.Pages()
	if err != nil {
		return "", err
	}
	if slices.Contains(have, e.File) {
		return "", say.Idle("%s is in the navigation already", n.site.Show(e.File))
	}
	if n.MkDocs {
		return n.yamlAdd(e)
	}
	var groups []groupAt
	var pages []listed
	if err := n.walk(func(l listed) { pages = append(pages, l) },
		func(g groupAt) { groups = append(groups, g) }); err != nil {
		return "", err
	}
	var g groupAt
	i := 0
	if e.After != "" || e.Before != "" {
		g, i, err = n.beside(e, pages, groups)
	} else if g, err = n.groupFor(e, groups); !e.Top && err == nil {
		i = len(g.array.Elements)
	}
	if err != nil {
		return "", err
	}
	return g.name, n.apply([]markup.Edit{n.insertElement(g, i, jsonString(n.Route(e.File)))})
}

// beside finds where the page is listed that the new one is to stand after, or before.
func (n *Navigation) beside(e NewEntry, pages []listed, groups []groupAt) (groupAt, int, error) {
	sib, err := n.site.Find(cmp.Or(e.After, e.Before))
	if err != nil {
		return groupAt{}, 0, err
	}
	k := slices.IndexFunc(pages, func(l listed) bool {
		return l.array != nil && n.is(l.value, sib) && (e.Group == "" || SameFold(l.group, e.Group))
	})
	if k < 0 {
		return groupAt{}, 0, say.Refuse("%s is not in the navigation", n.site.Show(sib))
	}
	at := groupAt{name: pages[k].group, array: pages[k].array}
	for _, g := range groups {
		if g.array == at.array {
			at.value = g.value
		}
	}
	if e.After != "" {
		return at, pages[k].index + 1, nil
	}
	return at, pages[k].index, nil
}

// groupFor finds the group that lists a new page.
func (n *Navigation) groupFor(e NewEntry, groups []groupAt) (groupAt, error) {
	var found []groupAt
	candidates := groups
	if e.Group != "" {
		for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, SameFold} {
			for _, g := range groups {
				if same(g.name, e.Group) {
					found = append(found, g)
				}
			}
			if len(found) > 0 {
				break
			}
		}
		if len(found) == 0 {
			return groupAt{}, noGroup(e.Group, groups, func(g groupAt) string { return g.name })
		}
		candidates = found
	}
	if len(found) == 1 {
		return found[0], nil
	}
	// The one whose pages lie in the same folder.
	dir := path.Dir(n.Route(e.File))
	near := slices.DeleteFunc(slices.Clone(candidates), func(g groupAt) bool {
		return !slices.ContainsFunc(g.array.Elements, func(v hujson.Value) bool {
			s, ok := str(&v)
			return ok && path.Dir(strings.Trim(s, "/")) == dir
		})
	})
	switch {
	case len(near) == 1:
		return near[0], nil
	case e.Group != "":
		return groupAt{}, say.Refuse("the navigation has %d groups %s, so none is certain", len(found), say.Quote(e.Group))
	}
	return groupAt{}, errNoGroup
}

// errNoGroup says that no group is the one for a new page.
var errNoGroup = say.Refuse("no one group of the navigation holds the pages of its folder")

// noGroup says which groups there are.
func noGroup[E any](group string, list []E, name func(e E) string) error {
	var names []string
	for _, e := range list {
		if g := name(e); g != "" && !slices.Contains(names, g) {
			names = append(names, g)
		}
	}
	return say.Refuse("the navigation has no group %s; it has %s", say.Quote(group), say.List(names))
}

// insertElement writes an element of an array at an index, laid out like its neighbors.
func (n *Navigation) insertElement(g groupAt, i int, text string) markup.Edit {
	els := g.array.Elements
	point := func(at int, s string) markup.Edit {
		return markup.Edit{Span: markup.Span{Start: at, End: at}, New: []byte(s)}
	}
	if len(els) == 0 {
		open := g.value.StartOffset + 1
		return point(open, text)
	}
	// What stands between two elements: the line break and indentation before the first or, on one line, a blank.
	lead := func(k int) string {
		start := els[k].StartOffset
		ls := LineStart(n.Src, start)
		if len(bytes.TrimSpace(n.Src[ls:start])) == 0 {
			return EOL(n.Src) + string(n.Src[ls:start])
		}
		return " "
	}
	if i == 0 {
		return point(els[0].StartOffset, text+","+lead(0))
	}
	prev := &els[i-1]
	return point(prev.EndOffset, ","+lead(i-1)+text)
}

// removeElement cuts an element with its comma and its line.
func (n *Navigation) removeElement(a *hujson.Array, i int) markup.Edit {
	els := a.Elements
	from, to := els[i].StartOffset, els[i].EndOffset
	if i+1 < len(els) {
		return markup.Edit{Span: markup.Span{Start: from, End: els[i+1].StartOffset}}
	}
	if i > 0 {
		return markup.Edit{Span: markup.Span{Start: els[i-1].EndOffset, End: to}}
	}
	return markup.Edit{Span: markup.Span{Start: from, End: to}}
}

// Drop removes a page from the navigation and tells how many entries it had.
func (n *Navigation) Drop(file string) (int, error) {
	if n.MkDocs {
		return n.yamlDrop(file)
	}
	k := 0
	for {
		var hit *listed
		if err := n.walk(func(l listed) {
			if hit == nil && l.array != nil && n.is(l.value, file) {
				hit = &l
			}
		}, nil); err != nil {
			return k, err
		}
		if hit == nil {
			return k, nil
		}
		if err := n.apply([]markup.Edit{n.removeElement(hit.array, hit.index)}); err != nil {
			return k, err
		}
		k++
	}
}

// Rename makes every entry of a page follow it, and every other address in the file too.
func (n *Navigation) Rename(from, to string) (entries, addresses int, err error) {
	if n.MkDocs {
		entries, err = n.yamlRename(from, to)
		return entries, 0, err
	}
	var edits []markup.Edit
	if err := n.walk(func(l listed) {
		if n.is(l.value, from) {
			edits = append(edits, markup.Edit{Span: markup.Span{Start: l.value.StartOffset, End: l.value.EndOffset},
				New: []byte(jsonString(n.Route(to)))})
		}
	}, nil); err != nil {
		return 0, 0, err
	}
	entries = len(edits)
	root, err := formats.JSONTree(n.Src)
	if err != nil {
		return 0, 0, say.Refuse("%s does not parse: %v", n.File, err)
	}
	var visit func(v *hujson.Value)
	visit = func(v *hujson.Value) {
		switch x := v.Value.(type) {
		case *hujson.Object:
			for i := range x.Members {
				k, _ := str(&x.Members[i].Name)
				val := &x.Members[i].Value
				if s, ok := str(val); ok && (k == "href" || k == "url" || k == "to" || k == "link") && strings.HasPrefix(s, "/") {
					p, rest, ok := links.LocalPath(s)
					if ok && leadsTo(strings.Trim(path.Join(n.site.Root(), p), "/"), from) {
						edits = append(edits, markup.Edit{Span: markup.Span{Start: val.StartOffset, End: val.EndOffset},
							New: []byte(jsonString("/" + n.Route(to) + rest))})
						addresses++
					}
				}
				if k != "redirects" {
					visit(val)
				}
			}
		case *hujson.Array:
			for i := range x.Elements {
				visit(&x.Elements[i])
			}
		}
	}
	visit(&root)
	if len(edits) == 0 {
		return 0, 0, nil
	}
	return entries, addresses, n.apply(edits)
}

// leadsTo reports whether an address without prefix is that of a file, which need not be there any more.
func leadsTo(at, file string) bool {
	return at == file || at == workspace.Stem(file) || workspace.IsIndex(file) && at == path.Dir(file)
}
