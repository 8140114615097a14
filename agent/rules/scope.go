package rules

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"docent/agent/edit"
)

// readScope takes a scope out of what a form has captured.
func readScope(c captures, m *Memory) edit.Scope {
	s := edit.Scope{
		All: c.has("all"), Only: c.has("only"),
		Manner: edit.Manner{Code: c.has("code"), Links: c.has("links"), Words: c.has("words"), InWords: c.has("within"),
			IgnoreCase: c.has("nocase"), ExactCase: c.has("case")},
	}
	named := func(x capture) []edit.Place {
		list := slices.Clone(x.places)
		for i := range list {
			list[i].Name = cmp.Or(list[i].Name, m.page)
		}
		return list
	}
	one, also := false, false
	for _, x := range c {
		switch x.name {
		case "in":
			s.In = append(s.In, named(x))
		case "page":
			x.text = cmp.Or(x.text, m.page)
			s.In = append(s.In, []edit.Place{{Name: x.text, Kind: edit.PagePlace}})
		case "except":
			s.Except = append(s.Except, named(x)...)
		case "parts":
			s.Parts, also = append(s.Parts, nil), false
		case "also": // besides the parts that were named; without any, all of them are meant anyway
			also = true
		case "one":
			one = true
		case "places":
			if s.Places, _ = strconv.Atoi(x.text); s.Places < 1 {
				s.Places = -1 // no number: it is not met
			}
		case "section", "below":
			s.Parts, also = append(s.Parts, []edit.Part{{Kind: x.name, Heading: x.text}}), false
		default:
			if also && len(s.Parts) == 0 {
				continue
			}
			if kind, ok := strings.CutPrefix(x.name, "part-"); ok && len(s.Parts) > 0 {
				i := len(s.Parts) - 1
				s.Parts[i] = append(s.Parts[i], edit.Part{Kind: strings.ReplaceAll(kind, "-", " "), One: one})
				one = false
			}
		}
	}
	return s
}
