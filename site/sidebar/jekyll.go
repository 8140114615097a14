package sidebar

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// byParents places pages as Just the Docs does: by the titles that they name as those of the pages above them.
func (r *Rules) byParents(dir string, pages []Page, places []Place) {
	if !slices.ContainsFunc(pages, func(p Page) bool { return p.Front.At != "" || len(p.Front.Parents) > 0 }) {
		return // it is another theme's site
	}
	parts := map[string][]int{} // pages by the folder of their collection; empty for all others
	for i, p := range pages {
		of := ""
		rel := strings.TrimPrefix(strings.TrimPrefix(p.Path, dir), "/")
		if first, _, below := strings.Cut(rel, "/"); below && strings.HasPrefix(first, "_") {
			of = path.Join(dir, first)
		}
		parts[of] = append(parts[of], i)
	}
	last := 0
	for _, of := range append([]string{""}, slices.Sorted(maps.Keys(r.collections))...) {
		var above []string
		if name := r.collections[of]; name != "" && (len(r.collections) > 1 || len(parts[""]) > 0) {
			above = []string{name}
		}
		n := navigation{pages: pages, places: places, below: map[string][]int{}, top: map[string]bool{}, last: last, groups: above}
		for _, i := range parts[of] {
			parent := ""
			if len(pages[i].Front.Parents) > 0 {
				parent = pages[i].Front.Parents[0]
			}
			n.below[parent] = append(n.below[parent], i)
			n.top[pages[i].Title] = n.top[pages[i].Title] || parent == ""
		}
		for _, list := range n.below {
			slices.SortStableFunc(list, func(a, b int) int { return compareLinks(pages[a], pages[b]) })
		}
		n.links(n.below[""], nil)
		last = n.last
	}
}

// A navigation of Just the Docs is a list of pages with lists below them.
type navigation struct {
	pages  []Page
	places []Place
	below  map[string][]int // by the title of the page above
	top    map[string]bool  // titles of those that have none
	groups []string
	last   int
	looked int
}

// What bounds the work: titles may name each other, and be those of many.
const (
	maxDepth = 20
	maxLooks = 2_000_000
)

// links places pages, which are in their order, and those below each.
func (n *navigation) links(list []int, ancestors []string) {
	for _, i := range list {
		p := n.pages[i]
		if p.Front.Left || n.places[i].At > 0 || slices.Contains(ancestors, p.Title) {
			continue
		}
		n.last++
		n.places[i] = Place{At: n.last, Groups: slices.Concat(n.groups, ancestors)}
		if len(ancestors) >= maxDepth || n.looked > maxLooks {
			continue
		}
		below := n.children(p, ancestors)
		if p.Front.Reversed {
			slices.Reverse(below)
		}
		n.links(below, append(slices.Clip(ancestors), p.Title))
	}
}

// children are the pages below one: its title may be that of several, which grandparents tell apart.
func (n *navigation) children(of Page, ancestors []string) (out []int) {
	n.looked += len(n.below[of.Title])
	for _, i := range n.below[of.Title] {
		above := n.pages[i].Front.Parents[1:]
		switch {
		case n.places[i].At > 0:
			continue
		case len(above) > 0 && above[0] != of.Title && !slices.Contains(ancestors, above[0]):
			continue
		case len(above) == 0 && len(ancestors) > 0 && n.top[of.Title]:
			continue // it is below the page at the top
		}
		out = append(out, i)
	}
	return out
}

// compareLinks orders pages: numbers, then words, then by title those that say no order.
func compareLinks(a, b Page) int {
	rank := func(p Page) (int, float64, string) {
		at, isNumber := number(p.Front.At)
		_, numeric := number(p.Title)
		switch {
		case isNumber:
			return 0, at, ""
		case p.Front.At != "":
			return 1, 0, p.Front.At
		case numeric:
			n, _ := number(p.Title)
			return 2, n, ""
		}
		return 3, 0, p.Title
	}
	x, m, v := rank(a)
	y, o, w := rank(b)
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(m, o), strings.Compare(v, w))
}
