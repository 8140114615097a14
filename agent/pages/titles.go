package pages

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"docent/agent/workspace"
	"docent/site/markup"
)

// Titles is a guide to a site that is opened when it is first needed.
type Titles struct {
	Open func() (*Site, error)
	all  []*markup.Page
	site *Site
	Err  error // the documentation cannot be read
}

func (g *Titles) load() bool {
	if g.site == nil && g.Err == nil {
		s, err := g.Open()
		if err == nil {
			g.all, err = s.All()
		}
		if g.Err = err; err == nil {
			g.site = s
		}
	}
	return g.Err == nil
}

// Exactly returns the pages that have this title or name.
func (g *Titles) Exactly(words string) (out []string) {
	if !g.load() {
		return nil
	}
	for _, p := range g.all {
		if g.site.Titled(words, p.Path) {
			out = append(out, g.site.Show(p.Path))
		}
	}
	return out
}

// Files returns the files of the pages that have this title or name.
func (g *Titles) Files(words string) (out []string) {
	if !g.load() {
		return nil
	}
	for _, p := range g.all {
		if g.site.Titled(words, p.Path) {
			out = append(out, p.Path)
		}
	}
	return out
}

// Like returns the pages whose titles share the most words.
func (g *Titles) Like(words string) (out []string) {
	if !g.load() {
		return nil
	}
	want := strings.Fields(strings.ToLower(words))
	type scored struct {
		path string
		n    int
	}
	var list []scored
	for _, p := range g.all {
		has := map[string]bool{}
		for _, w := range strings.FieldsFunc(strings.ToLower(p.Title()+" "+workspace.Stem(g.site.Show(p.Path))),
			func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			has[w] = true
		}
		n := 0
		for _, w := range want {
			if len(w) > 2 && has[w] {
				n++
			}
		}
		if n > 0 {
			list = append(list, scored{g.site.Show(p.Path), n})
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return b.n - a.n })
	for _, s := range list {
		if len(out) < 5 && s.n == list[0].n {
			out = append(out, s.path)
		}
	}
	return out
}

// Mentioned returns a page whose title or name stands in a sentence: then the sentence may say where an instruction is
// meant.
func (g *Titles) Mentioned(sentence string) string {
	if !g.load() {
		return ""
	}
	for _, p := range g.all {
		if NamedIn(p, sentence) {
			return g.site.Show(p.Path)
		}
	}
	return ""
}

// NamedIn reports whether the title or the name of a page stands in a sentence.
func NamedIn(p *markup.Page, sentence string) bool {
	plain := func(s string) string {
		return " " + strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}), " ") + " "
	}
	text := plain(sentence)
	return slices.ContainsFunc([]string{p.Title(), Humanise(workspace.Stem(path.Base(p.Path)))}, func(name string) bool {
		n := plain(name)
		return len(n) > 5 && !workspace.IsIndex(name+".md") && strings.Contains(text, n)
	})
}
