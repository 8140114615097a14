package anchor

import (
	"fmt"
	"strconv"
	"testing"

	"docent/api"
	"docent/internal/testing/need"
	"docent/site/markup"
)

// The anchors of a page cost a number of steps that grows with its headings alone, by every rule, whatever the headings
// are; and each is the one that trying all numbers in their order would find.
func TestAnchorsOfManyEqualHeadingsTakeStepsInTheirNumber(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	const many = 3000
	pages := map[string]func(i int) markup.Heading{
		"equal":            func(int) markup.Heading { return markup.Heading{Text: "a"} },
		"unnamed":          func(int) markup.Heading { return markup.Heading{Text: "!"} },
		"two of each":      func(i int) markup.Heading { return markup.Heading{Text: "a " + strconv.Itoa(i/2)} },
		"numbers":          func(i int) markup.Heading { return markup.Heading{Text: "a_" + strconv.Itoa(i/2)} },
		"numbers downward": func(i int) markup.Heading { return markup.Heading{Text: "a_" + strconv.Itoa((many-i)/2)} },
		"hyphens":          func(i int) markup.Heading { return markup.Heading{Text: "a-" + strconv.Itoa(i%100)} },
		"explicit, then equal": func(i int) markup.Heading {
			if i < many/2 {
				return markup.Heading{Custom: true, Anchor: "a-" + strconv.Itoa(i)}
			}
			return markup.Heading{Text: "a"}
		},
		"explicit among equal": func(i int) markup.Heading {
			if i%2 == 0 {
				return markup.Heading{Custom: true, Anchor: "a_" + strconv.Itoa(i)}
			}
			return markup.Heading{Text: "a_1"}
		},
	}
	for _, kind := range []api.SiteKind{"", api.SiteDocusaurus, api.SiteVitePress, api.SiteStarlight, api.SiteMintlify,
		api.SiteHugo, api.SiteMkDocs} {
		rule := Of(kind, Settings{})
		for name, heading := range pages {
			headings := make([]markup.Heading, many)
			for i := range headings {
				headings[i] = heading(i)
			}
			out, a := rule.anchors(headings)
			if a.steps > 12*many {
				t.Errorf("%s: %s headings take %d steps for %d", rule.Name, name, a.steps, many)
			}
			small := headings[:300]
			if name == "explicit, then equal" {
				small = headings[many/2-100 : many/2+200]
			}
			got, _ := rule.anchors(small)
			if want := oneByOne(rule, small); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %s headings are %v, want %v", rule.Name, name, got, want)
			}
			if len(out) != many {
				t.Errorf("%d anchors", len(out))
			}
		}
	}
}

// oneByOne makes anchors by trying numbers in their order.
func oneByOne(r Rule, headings []markup.Heading) (out []string) {
	used, counts := map[string]bool{}, map[string]int{}
	for _, h := range headings {
		if h.Custom && r.first {
			used[h.Anchor] = true
		}
	}
	for _, h := range headings {
		anchor := h.Anchor
		if !h.Custom {
			slug := r.slug(h.Text)
			if anchor = slug; used[anchor] || anchor == "" && r.unnamed {
				anchor = r.again(slug, counts[slug], &anchors{used: used})
			}
			counts[slug]++
		}
		used[anchor] = true
		if r.shown != nil && !h.Custom {
			anchor = r.shown(anchor)
		}
		out = append(out, anchor)
	}
	return out
}
