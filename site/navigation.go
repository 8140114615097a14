package site

import (
	"cmp"
	"errors"
	"math"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"docent/api"
	"docent/internal/formats"
	"docent/site/sidebar"
)

// A Place is what a site's navigation says of a page.
type Place struct {
	Names    []string // the page's titles there
	Crumbs   []string // titles of the groups above it
	Versions []string // that list it, the one that readers see first before the others
	Current  bool     // one of them is what readers see first
	Docs     string   // the product, if each has versions of its own
	Language string
	Order    uint8 // from 1, of the first pages; 0 for those after them
	Seq      int   // the place among all, from 1; 0 if it is not known
	Hidden   bool  // it is in the navigation, and readers do not see it there
	Folder   bool  // what stands there is made of the pages of a folder
}

// ReadNavigation reads docs.json, mint.json, mkdocs.yml, and the sidebars of VitePress, Docusaurus, and Starlight as far
// as they are written out. What it does not understand it passes over.
//
// read reads another file that a docs.json takes parts from; its path is relative as that of file is.
func ReadNavigation(file string, content []byte, read func(string) ([]byte, error), found func(page string, p Place)) {
	written := func(page, label string, groups []string, folder bool) {
		p := Place{Crumbs: groups, Folder: folder}
		if label != "" {
			p.Names = []string{label}
		}
		found(page, p)
	}
	switch Configures(file) {
	case api.SiteVitePress:
		sidebar.VitePress(string(content), written)
		return
	case api.SiteStarlight:
		sidebar.Starlight(string(content), written)
		return
	case api.SiteDocusaurus:
		if strings.HasPrefix(path.Base(file), "sidebars.") {
			sidebar.Docusaurus(string(content), written)
		}
		return
	case api.SiteGitBook:
		if isSummary(file) {
			eachSummary(content, func(page, title string, above []string) { written(page, title, above, false) })
		}
		return
	case api.SiteHugo, api.SiteMdBook, api.SiteJekyll, api.SiteSphinx, api.SiteAntora, api.SiteFern, api.SiteQuarto:
		return // sections name themselves; sidebars are made of folders as a rule
	}
	if path.Base(file) == ".mintignore" {
		return
	}
	if strings.HasSuffix(file, ".json") {
		if doc, _, err := readDocs(file, content, read); err == nil {
			readVersions(doc, found)
		}
		return
	}
	content, err := settingsOf(file, content, nil)
	if err != nil {
		return
	}
	// Keys of mkdocs.yml may hold tags of Python; only these two are looked at.
	var doc struct {
		DocsDir yaml.Node `yaml:"docs_dir"`
		Nav     any       `yaml:"nav"`
	}
	if formats.YAML(content, &doc) != nil {
		return
	}
	dir, _ := plainValue(doc.DocsDir).(string)
	dir = cmp.Or(dir, "docs")
	n := 0
	walkNav(doc.Nav, Place{}, func(page string, p Place) {
		n++
		p.Order = uint8(min(n, math.MaxUint8)) // by both of its paths
		found(page, p)
		found(path.Join(dir, page), p)
	})
}

// readVersions reads the navigation of docs.json, and of mint.json, which lists its versions beside it.
func readVersions(doc map[string]any, found func(string, Place)) {
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
	walkNavigation(doc["navigation"], Place{}, func(page string, p Place) {
		p.Current = p.Current || first != "" && slices.Contains(p.Versions, first)
		found(page, p)
	})
}

// Join adds what a second listing of a page says.
func (p *Place) Join(other Place) {
	p.Hidden = p.Hidden && other.Hidden
	for _, name := range other.Names { // under the first place, by both names
		if !slices.Contains(p.Names, name) {
			p.Names = append(slices.Clone(p.Names), name)
		}
	}
	for _, name := range other.Versions {
		if !slices.Contains(p.Versions, name) {
			p.Versions = append(slices.Clone(p.Versions), name)
		}
	}
	if other.Current && !p.Current {
		rest := slices.DeleteFunc(slices.Clone(p.Versions),
			func(name string) bool { return slices.Contains(other.Versions, name) })
		p.Versions, p.Current = append(slices.Clone(other.Versions), rest...), true
	}
}

// readDocs reads docs.json with the files that it takes parts from. missing is one of these that cannot be read.
func readDocs(file string, content []byte,
	read func(string) ([]byte, error)) (doc map[string]any, missing string, err error) {
	parse := func(content []byte) (v any, err error) {
		err = formats.JSON(content, &v)
		return v, err
	}
	v, err := parse(content)
	if err != nil {
		return nil, "", err
	}
	const maxFiles, maxBytes = 200, 8 << 20 // a file may take in itself
	files, size := 0, 0
	var expand func(v any, dir string) any
	expand = func(v any, dir string) any {
		switch v := v.(type) {
		case []any:
			out := make([]any, len(v))
			for i, x := range v {
				out[i] = expand(x, dir)
			}
			return out
		case map[string]any:
			out := make(map[string]any, len(v))
			for k, x := range v {
				if k != "$ref" {
					out[k] = expand(x, dir)
				}
			}
			ref, ok := v["$ref"].(string)
			if !ok {
				return out
			}
			name := path.Join(dir, ref)
			if files++; files > maxFiles {
				missing = name
				return out
			}
			raw, err := read(name)
			if size += len(raw); size > maxBytes {
				missing = name
				return out
			}
			var other any
			if err == nil {
				other, err = parse(raw)
			}
			if err != nil {
				missing = name
				return out
			}
			other = expand(other, path.Dir(name))
			m, ok := other.(map[string]any)
			if !ok {
				return other
			}
			for k, x := range m {
				if _, own := out[k]; !own {
					out[k] = x
				}
			}
			return out
		}
		return v
	}
	doc, ok := expand(v, path.Dir(file)).(map[string]any)
	if !ok {
		return nil, missing, errors.New("is no object")
	}
	return doc, missing, nil
}

// walkNavigation follows the tree of docs.json: groups, tabs, anchors, dropdowns, versions and languages in any order.
func walkNavigation(node any, above Place, found func(string, Place)) {
	switch n := node.(type) {
	case string:
		found(n, above)
	case []any:
		for _, x := range n {
			walkNavigation(x, above, found)
		}
	case map[string]any:
		here := above
		for _, key := range []string{"group", "tab", "anchor", "dropdown", "product", "item"} {
			if name, ok := n[key].(string); ok {
				here.Crumbs = append(slices.Clone(here.Crumbs), name)
			}
		}
		if name, ok := n["product"].(string); ok {
			here.Docs = name
		}
		if v, ok := n["version"].(string); ok {
			here.Versions = []string{v}
		}
		if l, ok := n["language"].(string); ok {
			here.Language = l
		}
		if n["searchable"] == true {
			here.Hidden = false
		} else if n["hidden"] == true {
			here.Hidden = true
		}
		for _, key := range []string{"root", "page"} {
			if page, ok := n[key].(string); ok {
				found(page, here)
			}
		}
		if list, ok := n["versions"].([]any); ok {
			for at, i := range defaultFirst(list) {
				in := here
				in.Current = at == 0
				walkNavigation(list[i], in, found)
			}
		}
		for _, key := range []string{"pages", "groups", "tabs", "anchors", "dropdowns", "products", "languages", "menu"} {
			walkNavigation(n[key], here, found)
		}
	}
}

// walkNav follows the tree of mkdocs.yml.
func walkNav(node any, above Place, found func(string, Place)) {
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
				here.Names = []string{name}
				found(page, here)
				continue
			}
			here.Crumbs = append(slices.Clone(here.Crumbs), name)
			walkNav(x, here, found)
		}
	}
}
