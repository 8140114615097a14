package pages

import (
	"bytes"
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
	"docent/formats"
	"docent/markup"
)

// A Navigation is a file that lists the pages, edited by byte ranges so that its layout and comments stay.
type Navigation struct {
	site   *Site
	File   string
	Src    []byte
	MkDocs bool
}

func (s *Site) WhyNoNavigation() string {
	switch {
	case s.NavigationFile() != "" && !s.Files.InDocs(s.NavigationFile()):
		return s.NavigationFile() + " lies outside the documentation folder"
	case s.Generator.Kind == api.SiteDocusaurus || s.Generator.Kind == api.SiteVitePress || s.Generator.Kind == api.SiteStarlight:
		return "that of " + s.Generator.Generator() + " is a program"
	case s.Generator.Kind == api.SiteHugo:
		return "that of Hugo follows from its pages"
	}
	return "there is no docs.json, mint.json or mkdocs.yml"
}

// NavigationFile is the file that holds the navigation and is edited as data; empty where there is none.
func (s *Site) NavigationFile() string {
	if s.Generator.Kind == api.SiteMintlify || s.Generator.Kind == api.SiteMkDocs {
		return s.Generator.Config()
	}
	return ""
}

// Navigation opens the site's navigation as it is now; nil where there is none that can be edited.
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
				if s, ok := str(e); ok {
					_ = s
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

// Add lists a page: under a group, beside another page, or, where neither is named, in the one group that holds the
// pages of its folder. It returns the group's name.
func (n *Navigation) Add(file, title, group, after, before string, top bool) (string, error) {
	have, err := n.Pages()
	if err != nil {
		return "", err
	}
	if slices.Contains(have, file) {
		return "", say.Idle("%s is in the navigation already", n.site.Show(file))
	}
	if n.MkDocs {
		return n.yamlAdd(file, title, group, after, before, top)
	}
	var groups []groupAt
	var pages []listed
	if err := n.walk(func(l listed) { pages = append(pages, l) }, func(g groupAt) { groups = append(groups, g) }); err != nil {
		return "", err
	}
	text := jsonString(n.Route(file))
	for _, near := range []struct {
		name  string
		after bool
	}{{after, true}, {before, false}} {
		if near.name == "" {
			continue
		}
		sib, err := n.site.Find(near.name)
		if err != nil {
			return "", err
		}
		var at []listed
		for _, l := range pages {
			if l.array != nil && n.is(l.value, sib) && (group == "" || SameFold(l.group, group)) {
				at = append(at, l)
			}
		}
		if len(at) == 0 {
			return "", say.Refuse("%s is not in the navigation", n.site.Show(sib))
		}
		i := at[0].index
		if near.after {
			i++
		}
		return at[0].group, n.apply([]markup.Edit{n.insertElement(groupAt{array: at[0].array, value: n.arrayOf(groups, at[0].array)}, i, text)})
	}
	var found []groupAt
	if group != "" {
		for _, same := range []func(g groupAt) bool{
			func(g groupAt) bool { return g.name == group },
			func(g groupAt) bool { return SameFold(g.name, group) },
		} {
			for _, g := range groups {
				if same(g) {
					found = append(found, g)
				}
			}
			if len(found) > 0 {
				break
			}
		}
		if len(found) == 0 {
			var names []string
			for _, g := range groups {
				if g.name != "" && !slices.Contains(names, g.name) {
					names = append(names, g.name)
				}
			}
			return "", say.Refuse("the navigation has no group %s; it has %s", say.Quote(group), say.List(names))
		}
	}
	if len(found) != 1 {
		// The one whose pages lie in the same folder.
		candidates := found
		if group == "" {
			candidates = groups
		}
		dir := path.Dir(n.Route(file))
		var near []groupAt
		for _, g := range candidates {
			for i := range g.array.Elements {
				if s, ok := str(&g.array.Elements[i]); ok && path.Dir(strings.Trim(s, "/")) == dir {
					near = append(near, g)
					break
				}
			}
		}
		if len(near) != 1 {
			if group != "" {
				return "", say.Refuse("the navigation has %d groups %s, so none is certain", len(found), say.Quote(group))
			}
			return "", say.Refuse("no one group of the navigation holds the pages of its folder")
		}
		found = near
	}
	g := found[0]
	i := len(g.array.Elements)
	if top {
		i = 0
	}
	return g.name, n.apply([]markup.Edit{n.insertElement(g, i, text)})
}

func (n *Navigation) arrayOf(groups []groupAt, a *hujson.Array) *hujson.Value {
	for _, g := range groups {
		if g.array == a {
			return g.value
		}
	}
	return nil
}

// insertElement writes an element of an array at an index, laid out like its neighbours.
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
			edits = append(edits, markup.Edit{Span: markup.Span{Start: l.value.StartOffset, End: l.value.EndOffset}, New: []byte(jsonString(n.Route(to)))})
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
					p, rest, ok := LocalPath(s)
					if ok && leadsTo(strings.Trim(path.Join(n.site.Root, p), "/"), from) {
						edits = append(edits, markup.Edit{Span: markup.Span{Start: val.StartOffset, End: val.EndOffset}, New: []byte(jsonString("/" + n.Route(to) + rest))})
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

// leadsTo tells whether an address without prefix is that of a file, which need not be there any more.
func leadsTo(at, file string) bool {
	return at == file || at == workspace.Stem(file) || workspace.IsIndex(file) && at == path.Dir(file)
}
