package pages

import (
	"fmt"
	"slices"
	"strings"

	"docent/agent/workspace"
	"docent/api"
	"docent/site/markup"
)

// Anchors returns everything that a fragment may name on a page. The site generators' rules for slugs differ, so every
// common one is accepted.
func (s *Site) Anchors(p *markup.Page, depth int) map[string]bool {
	if a, ok := s.marked[p]; ok {
		return a
	}
	out := map[string]bool{}
	counts := map[string]int{}
	imports := false
	add := func(a string) {
		if a != "" {
			out[a] = true
			out[strings.ToLower(a)] = true
		}
	}
	for _, h := range p.Headings {
		add(h.Anchor)
		if !h.Custom {
			for _, v := range Slugs(h.Text) {
				n := counts[v]
				counts[v]++
				if n == 0 {
					add(v)
				} else {
					add(fmt.Sprintf("%s-%d", v, n+1))
					add(fmt.Sprintf("%s-%d", v, n))
				}
			}
		}
	}
	for _, t := range p.Tags {
		for _, a := range t.Attrs {
			if a.Kind != "string" {
				continue
			}
			v := string(p.Src[a.Value.Start:a.Value.End])
			switch a.Name {
			case "id", "name", "anchor":
				add(v)
				for _, pre := range []string{"param-", "parameter-", "field-"} {
					for _, sl := range Slugs(v) {
						add(pre + sl)
					}
				}
				fallthrough
			case "title", "label", "path", "query", "body", "header":
				for _, sl := range Slugs(v) {
					add(sl)
					add("param-" + sl)
				}
			}
		}
	}
	for _, l := range p.Links {
		if l.Kind == markup.ImportLink {
			imports = true
			if depth == 0 {
				break
			}
			if t := s.Resolve(p.Path, l); t.File != "" && workspace.IsPage(t.File) {
				if q, err := s.Page(t.File); err == nil {
					for a := range s.Anchors(q, depth-1) {
						out[a] = true
					}
				}
			}
		}
	}
	if !imports {
		s.marked[p] = out
	}
	return out
}

var mintSlug = strings.NewReplacer("'", "’", ".", "-", "(", "", ")", "", " ", "-", "`", "", ",", "", "?", "", "!", "",
	":", "", "\"", "")

// slugRules are the usual rules for a heading's anchor.
var slugRules = []func(text string) string{
	markup.Slug,
	func(text string) string { // Mintlify
		return mintSlug.Replace(strings.ToLower(strings.TrimSpace(text)))
	},
	func(text string) string { // VitePress, MkDocs: every run of other characters is one hyphen
		var b strings.Builder
		dash := false
		for _, r := range strings.ToLower(text) {
			if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 0x80 {
				if dash && b.Len() > 0 {
					b.WriteByte('-')
				}
				dash = false
				b.WriteRune(r)
			} else {
				dash = true
			}
		}
		return b.String()
	},
	func(text string) string {
		s := markup.Slug(text)
		for strings.Contains(s, "--") {
			s = strings.ReplaceAll(s, "--", "-")
		}
		return strings.Trim(s, "-")
	},
}

// Slugs are the forms that a heading's text takes as an anchor.
func Slugs(text string) []string {
	var out []string
	for _, rule := range slugRules {
		out = append(out, rule(text))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TakesIDs reports whether the site's generator reads {#id} behind a heading.
func (s *Site) TakesIDs() bool {
	return s.Generator.Kind == api.SiteMintlify || s.Generator.Kind == api.SiteDocusaurus ||
		s.Generator.Kind == api.SiteVitePress || s.Generator.Kind == api.SiteHugo
}

// SameRule makes the anchor of a new text by the rule that gave the old one.
func SameRule(oldText, newText, old string) string {
	for _, rule := range slugRules {
		if rule(oldText) == old {
			return rule(newText)
		}
	}
	return ""
}
