package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v4"

	"docent/api"
	"docent/formats"
	"docent/markup"
)

// A navigation is a file that lists the pages, edited by byte ranges so that its layout and comments stay.
type navigation struct {
	site *documentation
	file string
	src  []byte
	yaml bool
}

func (s *documentation) navWhy() string {
	switch {
	case s.navFile() != "" && !s.ws.inDocs(s.navFile()):
		return s.navFile() + " lies outside the documentation folder"
	case s.generator.Kind == api.SiteDocusaurus || s.generator.Kind == api.SiteVitePress || s.generator.Kind == api.SiteStarlight:
		return "that of " + s.generator.Generator() + " is a program"
	case s.generator.Kind == api.SiteHugo:
		return "that of Hugo follows from its pages"
	}
	return "there is no docs.json, mint.json or mkdocs.yml"
}

// navFile is the file that holds the navigation and is edited as data; empty where there is none.
func (s *documentation) navFile() string {
	if s.generator.Kind == api.SiteMintlify || s.generator.Kind == api.SiteMkDocs {
		return s.generator.Config()
	}
	return ""
}

// navigation opens the site's navigation as it is now; nil where there is none that can be edited.
func (s *documentation) navigation() (*navigation, error) {
	file := s.navFile()
	if file == "" || s.ws.writable(file) != nil || !s.ws.exists(file) {
		return nil, nil
	}
	src, err := s.ws.read(file)
	if err != nil {
		return nil, err
	}
	n := &navigation{site: s, file: file, src: src, yaml: s.generator.Kind == api.SiteMkDocs}
	if n.yaml {
		if _, err := n.yamlNav(); err != nil {
			return nil, refuse("%s does not parse: %v", file, err)
		}
		return n, nil
	}
	if _, err := formats.JSONTree(src); err != nil {
		return nil, refuse("%s does not parse: %v", file, err)
	}
	return n, nil
}

// route is how the navigation names a page.
func (n *navigation) route(file string) string {
	if n.yaml {
		return strings.TrimPrefix(strings.TrimPrefix(file, n.yamlDir()), "/")
	}
	dir := path.Dir(n.file)
	r := stem(file)
	if dir != "." {
		r = strings.TrimPrefix(r, dir+"/")
	}
	return r
}

func (n *navigation) apply(edits []markup.Edit) error {
	out, err := markup.Apply(n.src, edits)
	if err != nil {
		return fmt.Errorf("edit %s: %w", n.file, err)
	}
	if n.yaml {
		var v yaml.Node
		if err := formats.YAML(out, &v); err != nil {
			return refuse("%s cannot be edited by itself: %v", n.file, err)
		}
	} else if _, err := formats.JSONTree(out); err != nil {
		return refuse("%s cannot be edited by itself: %v", n.file, err)
	}
	n.src = out
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
func (n *navigation) walk(page func(listed), group func(groupAt)) error {
	root, err := formats.JSONTree(n.src)
	if err != nil {
		return refuse("%s does not parse: %v", n.file, err)
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

// pages lists the pages that the navigation names, as files.
func (n *navigation) pages() ([]string, error) {
	var out []string
	if n.yaml {
		entries, err := n.yamlNav()
		if err != nil {
			return nil, refuse("%s does not parse: %v", n.file, err)
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
		p := path.Join(path.Dir(n.file), strings.Trim(s, "/"))
		if f := n.site.lookup(p); f != "" {
			p = f
		}
		out = append(out, p)
	}, nil)
	return out, err
}

func (n *navigation) is(v *hujson.Value, file string) bool {
	s, ok := str(v)
	return ok && strings.Trim(strings.TrimSuffix(strings.TrimSuffix(s, ".mdx"), ".md"), "/") == n.route(file)
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

// add lists a page: under a group, beside another page, or, where neither is named, in the one group that holds the
// pages of its folder. It returns the group's name.
func (n *navigation) add(file, title, group, after, before string, top bool) (string, error) {
	have, err := n.pages()
	if err != nil {
		return "", err
	}
	if slices.Contains(have, file) {
		return "", idle("%s is in the navigation already", n.site.show(file))
	}
	if n.yaml {
		return n.yamlAdd(file, title, group, after, before, top)
	}
	var groups []groupAt
	var pages []listed
	if err := n.walk(func(l listed) { pages = append(pages, l) }, func(g groupAt) { groups = append(groups, g) }); err != nil {
		return "", err
	}
	text := jsonString(n.route(file))
	for _, near := range []struct {
		name  string
		after bool
	}{{after, true}, {before, false}} {
		if near.name == "" {
			continue
		}
		sib, err := n.site.find(near.name)
		if err != nil {
			return "", err
		}
		var at []listed
		for _, l := range pages {
			if l.array != nil && n.is(l.value, sib) && (group == "" || sameFold(l.group, group)) {
				at = append(at, l)
			}
		}
		if len(at) == 0 {
			return "", refuse("%s is not in the navigation", n.site.show(sib))
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
			func(g groupAt) bool { return sameFold(g.name, group) },
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
			return "", refuse("the navigation has no group %s; it has %s", quote(group), listing(names))
		}
	}
	if len(found) != 1 {
		// The one whose pages lie in the same folder.
		candidates := found
		if group == "" {
			candidates = groups
		}
		dir := path.Dir(n.route(file))
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
				return "", refuse("the navigation has %d groups %s, so none is certain", len(found), quote(group))
			}
			return "", refuse("no one group of the navigation holds the pages of its folder")
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

func (n *navigation) arrayOf(groups []groupAt, a *hujson.Array) *hujson.Value {
	for _, g := range groups {
		if g.array == a {
			return g.value
		}
	}
	return nil
}

// insertElement writes an element of an array at an index, laid out like its neighbours.
func (n *navigation) insertElement(g groupAt, i int, text string) markup.Edit {
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
		ls := lineStart(n.src, start)
		if len(bytes.TrimSpace(n.src[ls:start])) == 0 {
			return eolOf(n.src) + string(n.src[ls:start])
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
func (n *navigation) removeElement(a *hujson.Array, i int) markup.Edit {
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

// drop removes a page from the navigation and tells how many entries it had.
func (n *navigation) drop(file string) (int, error) {
	if n.yaml {
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

// rename makes every entry of a page follow it, and every other address in the file too.
func (n *navigation) rename(from, to string) (entries, addresses int, err error) {
	if n.yaml {
		entries, err = n.yamlRename(from, to)
		return entries, 0, err
	}
	var edits []markup.Edit
	if err := n.walk(func(l listed) {
		if n.is(l.value, from) {
			edits = append(edits, markup.Edit{Span: markup.Span{Start: l.value.StartOffset, End: l.value.EndOffset}, New: []byte(jsonString(n.route(to)))})
		}
	}, nil); err != nil {
		return 0, 0, err
	}
	entries = len(edits)
	root, err := formats.JSONTree(n.src)
	if err != nil {
		return 0, 0, refuse("%s does not parse: %v", n.file, err)
	}
	var visit func(v *hujson.Value)
	visit = func(v *hujson.Value) {
		switch x := v.Value.(type) {
		case *hujson.Object:
			for i := range x.Members {
				k, _ := str(&x.Members[i].Name)
				val := &x.Members[i].Value
				if s, ok := str(val); ok && (k == "href" || k == "url" || k == "to" || k == "link") && strings.HasPrefix(s, "/") {
					p, rest, ok := localPath(s)
					if ok && leadsTo(strings.Trim(path.Join(n.site.root, p), "/"), from) {
						edits = append(edits, markup.Edit{Span: markup.Span{Start: val.StartOffset, End: val.EndOffset}, New: []byte(jsonString("/" + n.route(to) + rest))})
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
	return at == file || at == stem(file) || isIndex(file) && at == path.Dir(file)
}

// redirectFile finds the array of redirects: in the configuration, or in the file that it refers to.
func (n *navigation) redirectFile() (*navigation, *hujson.Value, error) {
	root, err := formats.JSONTree(n.src)
	if err != nil {
		return nil, nil, refuse("%s does not parse: %v", n.file, err)
	}
	top, ok := root.Value.(*hujson.Object)
	if !ok {
		return n, nil, nil
	}
	m := member(top, "redirects")
	if m == nil {
		return n, nil, nil
	}
	if o, ok := m.Value.(*hujson.Object); ok {
		ref := member(o, "$ref")
		if ref == nil {
			return n, nil, nil
		}
		name, _ := str(ref)
		f := path.Join(path.Dir(n.file), name)
		if !n.site.ws.exists(f) || n.site.ws.writable(f) != nil {
			return nil, nil, nil
		}
		src, err := n.site.ws.read(f)
		if err != nil {
			return nil, nil, err
		}
		other := &navigation{site: n.site, file: f, src: src}
		v, err := formats.JSONTree(src)
		if err != nil {
			return nil, nil, refuse("%s does not parse: %v", f, err)
		}
		if _, ok := v.Value.(*hujson.Array); !ok {
			return nil, nil, nil
		}
		return other, &v, nil
	}
	if _, ok := m.Value.(*hujson.Array); !ok {
		return nil, nil, nil
	}
	return n, m, nil
}

type redirect struct {
	source, dest string
	at           *hujson.Value // of the destination
	index        int
}

func readRedirects(v *hujson.Value) []redirect {
	var out []redirect
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil
	}
	for i := range a.Elements {
		o, ok := a.Elements[i].Value.(*hujson.Object)
		if !ok {
			continue
		}
		src, dst := member(o, "source"), member(o, "destination")
		if src == nil || dst == nil {
			continue
		}
		x, ok1 := str(src)
		y, ok2 := str(dst)
		if ok1 && ok2 {
			out = append(out, redirect{x, y, dst, i})
		}
	}
	return out
}

// redirect adds a redirect from one page's address to another's: redirects that led to the old address lead on, and one
// that would hide the new page goes.
func (n *navigation) redirect(from, to string) (*navigation, int, error) {
	where, v, err := n.redirectFile()
	if err != nil || where == nil {
		return nil, 0, err
	}
	src, dst := "/"+n.route(from), "/"+n.route(to)
	done := 0
	if v != nil {
		for _, r := range readRedirects(v) {
			if strings.TrimSuffix(r.source, "/") == dst {
				if err := where.apply([]markup.Edit{where.removeElement(v.Value.(*hujson.Array), r.index)}); err != nil {
					return nil, 0, err
				}
				done++
				if where, v, err = where.again(n); err != nil {
					return nil, 0, err
				}
				break
			}
		}
		var edits []markup.Edit
		for _, r := range readRedirects(v) {
			d, rest, _ := localPath(r.dest)
			if strings.TrimSuffix(d, "/") == src {
				edits = append(edits, markup.Edit{Span: markup.Span{Start: r.at.StartOffset, End: r.at.EndOffset}, New: []byte(jsonString(dst + rest))})
			}
		}
		if len(edits) > 0 {
			if err := where.apply(edits); err != nil {
				return nil, 0, err
			}
			done += len(edits)
			if where, v, err = where.again(n); err != nil {
				return nil, 0, err
			}
		}
	}
	eol := eolOf(where.src)
	if v == nil { // no redirects yet
		root, err := formats.JSONTree(where.src)
		if err != nil {
			return nil, 0, err
		}
		top, ok := root.Value.(*hujson.Object)
		if !ok || len(top.Members) == 0 {
			return nil, 0, nil
		}
		last := &top.Members[len(top.Members)-1]
		ls := lineStart(where.src, last.Name.StartOffset)
		in := string(where.src[ls:last.Name.StartOffset])
		if strings.TrimSpace(in) != "" {
			in = "  "
		}
		text := "," + eol + in + `"redirects": [` + eol + in + in + "{" + eol + in + in + in + `"source": ` + jsonString(src) + "," + eol + in + in + in + `"destination": ` + jsonString(dst) + eol + in + in + "}" + eol + in + "]"
		at := last.Value.EndOffset
		return where, done + 1, where.apply([]markup.Edit{{Span: markup.Span{Start: at, End: at}, New: []byte(text)}})
	}
	a := v.Value.(*hujson.Array)
	g := groupAt{array: a, value: v}
	text := `{ "source": ` + jsonString(src) + `, "destination": ` + jsonString(dst) + ` }`
	if k := len(a.Elements); k > 0 { // laid out like the last one
		if o, ok := a.Elements[k-1].Value.(*hujson.Object); ok && len(o.Members) > 0 {
			e := &a.Elements[k-1]
			ls := lineStart(where.src, o.Members[0].Name.StartOffset)
			es := lineStart(where.src, e.StartOffset)
			if ls > e.StartOffset && strings.TrimSpace(string(where.src[es:e.StartOffset])) == "" {
				in, out := string(where.src[ls:o.Members[0].Name.StartOffset]), string(where.src[es:e.StartOffset])
				text = "{" + eol + in + `"source": ` + jsonString(src) + "," + eol + in + `"destination": ` + jsonString(dst) + eol + out + "}"
			}
		}
	}
	return where, done + 1, where.apply([]markup.Edit{where.insertElement(g, len(a.Elements), text)})
}

// again finds the redirects anew after an edit.
func (n *navigation) again(config *navigation) (*navigation, *hujson.Value, error) {
	if n.file != config.file {
		v, err := formats.JSONTree(n.src)
		return n, &v, err
	}
	return n.redirectFile()
}

// moveInNavigation makes navigation and redirects follow a page.
func (r *run) moveInNavigation(nav *navigation, from, to string) error {
	entries, addresses, err := nav.rename(from, to)
	if err != nil {
		return err
	}
	if entries+addresses > 0 {
		if err := r.ws.write(nav.file, nav.src); err != nil {
			return err
		}
		r.tally(nav.file, "navigation entries changed", entries+addresses)
		r.did("Changed %s", count(entries+addresses, "navigation entry"))
	}
	if nav.yaml {
		r.kept("No redirect was added: MkDocs has none of its own")
		return nil
	}
	where, n, err := nav.redirect(from, to)
	if err != nil {
		return err
	}
	if where == nil || n == 0 {
		r.kept("No redirect was added: the site's redirects are not in a form that can be edited")
		return nil
	}
	if err := r.ws.write(where.file, where.src); err != nil {
		return err
	}
	r.tally(where.file, "redirects changed", n)
	r.did("Added a redirect from /%s to /%s", nav.route(from), nav.route(to))
	return nil
}

// List a page in the navigation, or take it out.
type navOp struct {
	page, group, after, before string
	top, remove                bool
	unlocated
}

func (o *navOp) todo() string {
	if o.remove {
		return "Remove " + o.page + " from the navigation"
	}
	return "Add " + o.page + " to the navigation"
}

func (o *navOp) run(r *run) error {
	f, err := r.site.find(o.page)
	if err != nil {
		return err
	}
	nav, err := r.site.navigation()
	if err != nil {
		return err
	}
	if nav == nil {
		return refuse("the navigation of this site cannot be edited: %s", r.site.navWhy())
	}
	if o.remove {
		k, err := nav.drop(f)
		if err != nil {
			return err
		}
		if k == 0 {
			return idle("%s is not in the navigation", r.site.show(f))
		}
		r.dropped[f] = true
		r.tally(nav.file, "navigation entries removed", k)
		r.did("Removed %s from the navigation", r.site.show(f))
		r.headline("remove %s from the navigation", r.site.show(f))
		return r.ws.write(nav.file, nav.src)
	}
	p, err := r.site.page(f)
	if err != nil {
		return err
	}
	where, err := nav.add(f, p.Title(), o.group, o.after, o.before, o.top)
	if err != nil {
		return err
	}
	r.tally(nav.file, "navigation entries added", 1)
	if where == "" {
		where = "the top"
	}
	r.did("Added %s to the navigation under %s", r.site.show(f), quote(where))
	r.headline("add %s to the navigation", r.site.show(f))
	return r.ws.write(nav.file, nav.src)
}

// MkDocs: the "nav" of mkdocs.yml, read as nodes and edited by lines.

type yamlEntry struct {
	path   string
	node   *yaml.Node // the path's scalar
	item   int        // the line of its dash
	indent int        // the column of its dash, from 0
	group  string
}

func (n *navigation) yamlDoc() (*yaml.Node, error) {
	var doc yaml.Node
	if err := formats.YAML(n.src, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("it is no mapping")
	}
	return doc.Content[0], nil
}

// yamlDir is the folder that mkdocs.yml names the pages from.
func (n *navigation) yamlDir() string { return n.site.generator.Content() }

func (n *navigation) yamlNav() ([]yamlEntry, error) {
	doc, err := n.yamlDoc()
	if err != nil {
		return nil, err
	}
	var out []yamlEntry
	var visit func(seq *yaml.Node, group string)
	visit = func(seq *yaml.Node, group string) {
		if seq.Kind != yaml.SequenceNode || seq.Style&yaml.FlowStyle != 0 {
			return
		}
		for _, it := range seq.Content {
			switch it.Kind {
			case yaml.ScalarNode:
				out = append(out, yamlEntry{it.Value, it, it.Line, seq.Column - 1, group})
			case yaml.MappingNode:
				for i := 0; i+1 < len(it.Content); i += 2 {
					k, v := it.Content[i], it.Content[i+1]
					if v.Kind == yaml.ScalarNode {
						out = append(out, yamlEntry{v.Value, v, k.Line, seq.Column - 1, group})
					} else {
						visit(v, k.Value)
					}
				}
			}
		}
	}
	for i := 0; i+1 < len(doc.Content); i += 2 {
		if doc.Content[i].Value == "nav" {
			visit(doc.Content[i+1], "")
		}
	}
	return out, nil
}

func (n *navigation) lineOffset(line int) int {
	at := 0
	for ; line > 1 && at < len(n.src); line-- {
		at = lineAfter(n.src, at)
	}
	return at
}

func (n *navigation) yamlAdd(file, title, group, after, before string, top bool) (string, error) {
	entries, err := n.yamlNav()
	if err != nil {
		return "", refuse("%s does not parse: %v", n.file, err)
	}
	if len(entries) == 0 {
		return "", refuse("%s has no nav", n.file)
	}
	if !strings.HasPrefix(file, n.yamlDir()+"/") && n.yamlDir() != "." && n.yamlDir() != "" {
		return "", refuse("%s lies outside %s", file, n.yamlDir())
	}
	pick := -1
	below := true
	find := func(name string) error {
		sib, err := n.site.find(name)
		if err != nil {
			return err
		}
		for i, e := range entries {
			if path.Join(n.yamlDir(), e.path) == sib && (group == "" || sameFold(e.group, group)) {
				pick = i
				return nil
			}
		}
		return refuse("%s is not in the navigation", n.site.show(sib))
	}
	switch {
	case after != "":
		err = find(after)
	case before != "":
		below = false
		err = find(before)
	case group != "":
		for i, e := range entries {
			if sameFold(e.group, group) && (pick < 0 || !top && e.indent == entries[pick].indent) {
				pick = i
			}
		}
		below = !top
		if pick < 0 {
			var names []string
			for _, e := range entries {
				if e.group != "" && !slices.Contains(names, e.group) {
					names = append(names, e.group)
				}
			}
			err = refuse("the navigation has no group %s; it has %s", quote(group), listing(names))
		}
	default:
		groups := map[string]bool{}
		for i, e := range entries {
			if path.Dir(e.path) == path.Dir(n.route(file)) {
				pick = i
				groups[e.group] = true
			}
		}
		if len(groups) != 1 {
			err = refuse("no one group of the navigation holds the pages of its folder")
		}
	}
	if err != nil {
		return "", err
	}
	e := entries[pick]
	titled := strings.Contains(string(n.src[n.lineOffset(e.item):lineAfter(n.src, n.lineOffset(e.item))]), ": ")
	text := n.route(file)
	if strings.ContainsAny(text, ":#{}[]&*!|>'\"%@` ") {
		text = jsonString(text)
	}
	if titled {
		key := title
		if strings.ContainsAny(key, ":#{}[]&*!|>'\"%@`,") || key == "" {
			key = jsonString(key)
		}
		text = key + ": " + text
	}
	eol := eolOf(n.src)
	at := n.lineOffset(e.item)
	if below {
		at = lineAfter(n.src, n.lineOffset(e.node.Line))
	}
	line := strings.Repeat(" ", max(e.indent, 0)) + "- " + text + eol
	if below && at == len(n.src) && !bytes.HasSuffix(n.src, []byte("\n")) {
		line = eol + strings.TrimSuffix(line, eol)
	}
	return e.group, n.apply([]markup.Edit{{Span: markup.Span{Start: at, End: at}, New: []byte(line)}})
}

func (n *navigation) yamlDrop(file string) (int, error) {
	entries, err := n.yamlNav()
	if err != nil {
		return 0, refuse("%s does not parse: %v", n.file, err)
	}
	var edits []markup.Edit
	for _, e := range entries {
		if path.Join(n.yamlDir(), e.path) == file {
			edits = append(edits, markup.Edit{Span: markup.Span{Start: n.lineOffset(e.item), End: lineAfter(n.src, n.lineOffset(e.node.Line))}})
		}
	}
	if len(edits) == 0 {
		return 0, nil
	}
	return len(edits), n.apply(edits)
}

func (n *navigation) yamlRename(from, to string) (int, error) {
	entries, err := n.yamlNav()
	if err != nil {
		return 0, refuse("%s does not parse: %v", n.file, err)
	}
	var edits []markup.Edit
	for _, e := range entries {
		if path.Join(n.yamlDir(), e.path) != from {
			continue
		}
		at := n.lineOffset(e.node.Line)
		k := bytes.Index(n.src[at:lineAfter(n.src, at)], []byte(e.path))
		if k < 0 {
			return 0, refuse("%s cannot be edited by itself", n.file)
		}
		edits = append(edits, markup.Edit{Span: markup.Span{Start: at + k, End: at + k + len(e.path)}, New: []byte(n.route(to))})
	}
	if len(edits) == 0 {
		return 0, nil
	}
	return len(edits), n.apply(edits)
}
