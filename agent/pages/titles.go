package pages

import (
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"docent/agent/workspace"
	"docent/internal/wordset"
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
	return slices.ContainsFunc([]string{p.Title(), Humanize(workspace.Stem(path.Base(p.Path)))}, func(name string) bool {
		n := plain(name)
		return len(n) > 5 && !workspace.IsIndex(name+".md") && strings.Contains(text, n)
	})
}

// NamedBy are the words of the name or the title of a page, if all of them are among some words, with the words of its folders that
// are; nil if not. A title of one word is no name: it is said for other reasons too.
func NamedBy(p *markup.Page, said map[string]bool) map[string]bool {
	for i, name := range []string{workspace.Stem(path.Base(p.Path)), p.Title()} {
		words := Words(name)
		if len(words) <= i || len(words) == 0 || slices.ContainsFunc(slices.Collect(maps.Keys(words)), func(w string) bool { return !said[w] }) {
			continue
		}
		for w := range Words(path.Dir(p.Path)) {
			if said[w] {
				words[w] = true
			}
		}
		return words
	}
	return nil
}

// Words are the words of a text that may tell one page from another, each in one form.
func Words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if one := strings.TrimSuffix(w, "s"); len(one) > 2 && !usual[w] && !usual[one] {
			out[one[:min(len(one), 7)]] = true // configure, configuration
		}
	}
	return out
}

// usual are words that say nothing of a page.
var usual = wordset.Of(`the and for with from that this into not are was has have but you your use using used when instead should doc page guide readme index example file name
	link url typo fix fixed update updated change changed replace replaced correct corrected spelling wrong incorrect text word line sentence section documentation docs markdown
	adoc rst mdx html com www http https one all some other there their which where what how can will it`)
