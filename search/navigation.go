package search

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/formats"
)

// A place is what a site's navigation says of a page.
type place struct {
	names    []string // the page's titles there
	crumbs   []string // titles of the groups above it
	versions []string // that list it, the one that readers see first before the others
	current  bool     // one of them is what readers see first
	docs     string   // the product, where each has versions of its own
	language string
}

// readNavigation reads docs.json, mint.json, mkdocs.yml, and the sidebars of VitePress and Docusaurus as far as they are written out. What it does not understand it passes over.
func readNavigation(file string, content []byte, found func(page string, p place)) {
	switch siteFile(file) {
	case api.SiteVitePress:
		readVitePress(string(content), found)
		return
	case api.SiteDocusaurus:
		if strings.HasPrefix(path.Base(file), "sidebars.") {
			readSidebars(string(content), found)
		}
		return
	case api.SiteHugo:
		return // sections name themselves
	}
	if strings.HasSuffix(file, ".json") {
		var doc map[string]any
		if formats.JSON(content, &doc) == nil {
			readVersions(doc, found)
		}
		return
	}
	// Keys of mkdocs.yml may hold tags of Python; only these two are looked at.
	var doc struct {
		DocsDir string `yaml:"docs_dir"`
		Nav     any    `yaml:"nav"`
	}
	if formats.YAML(content, &doc) != nil {
		return
	}
	dir := doc.DocsDir
	if dir == "" {
		dir = "docs"
	}
	walkNav(doc.Nav, place{}, func(page string, p place) {
		found(page, p)
		found(path.Join(dir, page), p)
	})
}

// readVersions reads the navigation of docs.json, and of mint.json, which lists its versions beside it.
func readVersions(doc map[string]any, found func(string, place)) {
	first := ""
	if list, ok := doc["versions"].([]any); ok {
		for _, i := range defaultFirst(list) {
			name, ok := list[i].(string)
			if !ok {
				name, ok = entry(list[i], "name")
			}
			if ok && first == "" {
				first = name
			}
		}
	}
	walkNavigation(doc["navigation"], place{}, func(page string, p place) {
		p.current = p.current || first != "" && slices.Contains(p.versions, first)
		found(page, p)
	})
}

// join adds what a second listing of a page says.
func (p *place) join(other place) {
	for _, name := range other.names { // under the first place, by both names
		if !slices.Contains(p.names, name) {
			p.names = append(slices.Clone(p.names), name)
		}
	}
	for _, name := range other.versions {
		if !slices.Contains(p.versions, name) {
			p.versions = append(slices.Clone(p.versions), name)
		}
	}
	if other.current && !p.current {
		p.versions, p.current = append(slices.Clone(other.versions), slices.DeleteFunc(slices.Clone(p.versions), func(name string) bool { return slices.Contains(other.versions, name) })...), true
	}
}

// walkNavigation follows the tree of docs.json: groups, tabs, anchors, dropdowns, versions and languages in any order.
func walkNavigation(node any, above place, found func(string, place)) {
	switch n := node.(type) {
	case string:
		found(n, above)
	case []any:
		for _, x := range n {
			walkNavigation(x, above, found)
		}
	case map[string]any:
		here := above
		for _, key := range []string{"group", "tab", "anchor", "dropdown", "product"} {
			if name, ok := n[key].(string); ok {
				here.crumbs = append(slices.Clone(here.crumbs), name)
			}
		}
		if name, ok := n["product"].(string); ok {
			here.docs = name
		}
		if v, ok := n["version"].(string); ok {
			here.versions = []string{v}
		}
		if l, ok := n["language"].(string); ok {
			here.language = l
		}
		if root, ok := n["root"].(string); ok {
			found(root, here)
		}
		if list, ok := n["versions"].([]any); ok {
			for at, i := range defaultFirst(list) {
				in := here
				in.current = at == 0
				walkNavigation(list[i], in, found)
			}
		}
		for _, key := range []string{"pages", "groups", "tabs", "anchors", "dropdowns", "products", "languages", "menu"} {
			walkNavigation(n[key], here, found)
		}
	}
}

// walkNav follows the tree of mkdocs.yml.
func walkNav(node any, above place, found func(string, place)) {
	switch n := node.(type) {
	case string:
		found(n, above)
	case []any:
		for _, x := range n {
			walkNav(x, above, found)
		}
	case map[string]any:
		for name, x := range n {
			here := above
			if page, ok := x.(string); ok {
				here.names = []string{name}
				found(page, here)
				continue
			}
			here.crumbs = append(slices.Clone(here.crumbs), name)
			walkNav(x, here, found)
		}
	}
}

var (
	sidebarKey    = regexp.MustCompile(`\bsidebar\s*:\s*`)
	sidebarObject = regexp.MustCompile(`(?:module\.exports\s*=|export\s+default|=)\s*\{`)
)

// readVitePress reads the sidebars that a configuration writes out.
func readVitePress(src string, found func(string, place)) {
	for _, at := range sidebarKey.FindAllStringIndex(src, -1) {
		v, _ := literal(src[at[1]:])
		walkSidebar(v, "", place{}, found)
	}
}

// walkSidebar follows groups of {text, link, items}, by path or in one list.
func walkSidebar(node any, base string, above place, found func(string, place)) {
	switch n := node.(type) {
	case []any:
		for _, x := range n {
			walkSidebar(x, base, above, found)
		}
	case map[string]any:
		if b, ok := n["base"].(string); ok {
			base = b
		}
		text, named := n["text"].(string)
		if link, ok := n["link"].(string); ok && !strings.Contains(link, ":") {
			here := above
			if named {
				here.names = []string{text}
			}
			link, _, _ = strings.Cut(link, "#")
			found("/"+strings.TrimPrefix(base+link, "/"), here)
		}
		here := above
		if named {
			here.crumbs = append(slices.Clone(here.crumbs), text)
		}
		if items, ok := n["items"]; ok {
			walkSidebar(items, base, here, found)
			return
		}
		if !named {
			for _, p := range slices.Sorted(maps.Keys(n)) {
				if strings.HasPrefix(p, "/") {
					walkSidebar(n[p], "", above, found)
				}
			}
		}
	}
}

// readSidebars reads Docusaurus's sidebars where they are written out.
func readSidebars(src string, found func(string, place)) {
	for _, at := range sidebarObject.FindAllStringIndex(src, -1) {
		if v, _ := literal(src[at[1]-1:]); v != nil {
			if m, ok := v.(map[string]any); ok {
				for _, name := range slices.Sorted(maps.Keys(m)) {
					walkCategories(m[name], place{}, found)
				}
			}
		}
	}
}

// walkCategories follows documents by their id, {type: 'category', label, items, link} and the short form {label: [...]}.
func walkCategories(node any, above place, found func(string, place)) {
	page := func(id string, p place) {
		found(id, p)
		found("docs/"+id, p)
	}
	switch n := node.(type) {
	case string:
		page(n, above)
	case []any:
		for _, x := range n {
			walkCategories(x, above, found)
		}
	case map[string]any:
		label, _ := n["label"].(string)
		here := above
		kind, _ := n["type"].(string)
		switch kind {
		case "doc", "ref":
			if id, ok := n["id"].(string); ok {
				if label != "" {
					here.names = []string{label}
				}
				page(id, here)
			}
		case "category":
			if link, ok := n["link"].(map[string]any); ok {
				if id, ok := link["id"].(string); ok {
					own := above
					own.names = []string{label}
					page(id, own)
				}
			}
			here.crumbs = append(slices.Clone(here.crumbs), label)
			walkCategories(n["items"], here, found)
		case "":
			for _, name := range slices.Sorted(maps.Keys(n)) {
				here.crumbs = append(slices.Clone(above.crumbs), name)
				walkCategories(n[name], here, found)
			}
		}
	}
}
