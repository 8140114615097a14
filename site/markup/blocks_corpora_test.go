package markup_test

import (
	"slices"
	"strings"
	"testing"

	"docent/site/markup"
)

// TestPlacesOfRealPagesAreSound looks at paragraphs, tables and list items of whole documentation sets: each lies in
// the page's body and begins as such a thing does, and none cuts another or a block of code in two.
func TestPlacesOfRealPagesAreSound(t *testing.T) {
	items, tables, blocks := 0, 0, 0
	for set, pages := range sets(t) {
		for name, src := range pages {
			p := markup.Parse(name, src)
			text := func(s markup.Span) string { return string(src[s.Start:s.End]) }
			apart := func(a, b markup.Span) bool { return a.End <= b.Start || b.End <= a.Start }
			within := func(a, b markup.Span) bool { return b.Start <= a.Start && a.End <= b.End }
			for _, list := range [][]markup.Span{p.Items, p.Tables, p.Blocks} {
				if !slices.IsSortedFunc(list, func(a, b markup.Span) int { return a.Start - b.Start }) {
					t.Errorf("%s/%s: not in order", set, name)
				}
				for _, s := range list {
					if s.Start >= s.End || !within(s, p.Body) {
						t.Errorf("%s/%s: %v lies outside", set, name, s)
					}
				}
			}
			for i, it := range p.Items {
				items++
				if first := text(it)[0]; !strings.ContainsRune("-*+0123456789", rune(first)) {
					t.Errorf("%s/%s: the item begins with %q", set, name, text(it)[:min(20, it.End-it.Start)])
				}
				for _, other := range p.Items[:i] {
					if !apart(it, other) && !within(it, other) {
						t.Errorf("%s/%s: items cut each other: %q", set, name, text(it))
					}
				}
				for _, c := range p.Code {
					if !c.Inline && !apart(it, c.Span) && !within(c.Span, it) {
						t.Errorf("%s/%s: an item cuts code: %q", set, name, text(c.Span))
					}
				}
			}
			for _, tab := range p.Tables {
				tables++
				if lines := strings.Split(text(tab), "\n"); len(lines) < 2 || !strings.Contains(lines[0], "|") ||
					!strings.Contains(lines[1], "-") {
					t.Errorf("%s/%s: no table: %q", set, name, text(tab))
				}
			}
			for _, b := range p.Blocks {
				blocks++
				for _, other := range p.Tables {
					if !apart(b, other) {
						t.Errorf("%s/%s: a paragraph and a table: %q", set, name, text(b))
					}
				}
				for _, h := range p.Headings {
					if !apart(b, h.Span) {
						t.Errorf("%s/%s: a paragraph and a heading: %q", set, name, text(b))
					}
				}
			}
		}
	}
	t.Logf("%d items, %d tables, %d paragraphs", items, tables, blocks)
	if items < 1000 || tables < 100 || blocks < 5000 {
		t.Error("too few")
	}
}
