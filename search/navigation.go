package search

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v4"
)

// A place is what a site's navigation says of a page.
type place struct {
	names    []string // the page's titles there
	crumbs   []string // titles of the groups above it
	version  string
	language string
}

// readNavigation reads docs.json, mint.json or mkdocs.yml. What it does not understand it passes over.
func readNavigation(file string, content []byte, found func(page string, p place)) {
	if strings.HasSuffix(file, ".json") {
		plain, err := hujson.Standardize(content)
		if err != nil {
			return
		}
		var doc map[string]any
		if json.Unmarshal(plain, &doc) == nil {
			walkNavigation(doc["navigation"], place{}, found)
		}
		return
	}
	// Keys of mkdocs.yml may hold tags of Python; only these two are looked at.
	var doc struct {
		DocsDir string `yaml:"docs_dir"`
		Nav     any    `yaml:"nav"`
	}
	if yaml.Unmarshal(content, &doc) != nil {
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
		if v, ok := n["version"].(string); ok {
			here.version = v
		}
		if l, ok := n["language"].(string); ok {
			here.language = l
		}
		if root, ok := n["root"].(string); ok {
			found(root, here)
		}
		for _, key := range []string{"pages", "groups", "tabs", "anchors", "dropdowns", "products", "versions", "languages", "menu"} {
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
