package search

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"docent/search/analysis"
	"docent/search/page"
)

// The language of a question is looked for among the languages of the site's pages only: by its script, by the words of
// grammar that Bleve knows of each language, and by words that only the pages of one language have. So a site of one
// language looks for nothing, and a language without a list is told by the site's own pages.

// scriptRank is where a language's script stands among those that a text may be in: Han alone is Chinese before it is
// Japanese.
func (s *snapshot) scriptRank(at int, codes []string) int {
	script, _ := s.locales[at].tag.Script()
	if script.String() == "Hant" && slices.Contains(codes, "Hans") {
		return 0
	}
	return max(0, slices.Index(codes, script.String()))
}

// languageOfText is the number of the site's language that a text is written in; not ok where the text does not tell. A
// last word that is not finished tells nothing.
func (s *snapshot) languageOfText(ctx context.Context, text string, unfinished bool) (at int, ok bool, err error) {
	if len(text) > longestQuery {
		text = strings.ToValidUTF8(text[:longestQuery], "")
	}
	codes := analysis.Scripts(text)
	if last, _ := utf8.DecodeLastRuneInString(text); unfinished && analysis.IsWord(last) && codes[0] == "Latn" {
		text = strings.TrimRightFunc(text, analysis.IsWord)
	}
	var possible []int
	for i, l := range s.locales {
		if script, _ := l.tag.Script(); slices.Contains(codes, script.String()) || i == 0 && codes[0] == "Latn" { // names are Latin everywhere
			possible = append(possible, i)
		}
	}
	switch {
	case len(possible) == 0:
		return 0, false, nil
	case len(possible) == 1:
		return possible[0], true, nil
	}
	slices.SortStableFunc(possible, func(a, b int) int { return cmp.Compare(s.scriptRank(a, codes), s.scriptRank(b, codes)) })
	own := possible[0] // the site's own language, where it has the same script
	words := strings.FieldsFunc(analysis.Fold(text), func(r rune) bool { return !analysis.IsWord(r) })
	grammatical := make([]int, len(s.locales))
	if len(words) > 1 { // a word alone may be a word of grammar here and a subject there
		for _, i := range possible {
			known := analysis.Grammar(analysis.Language(s.locales[i].name))
			for _, w := range words {
				if known[w] {
					grammatical[i]++
				}
			}
		}
	}
	var tokens []analysis.Token
	a := analysis.Get()
	a.Tokens(text, analysis.Language(s.locales[own].name), func(t analysis.Token) {
		if t.Covers == 0 {
			tokens = append(tokens, t)
		}
	})
	a.Put()
	where := make([][]bool, 0, len(tokens)) // a word is on pages of these languages
	for _, t := range tokens {
		on := make([]bool, len(s.locales))
		stem, err := s.decode(ctx, t.Term) // "widgets" is a word of pages that say "widget"
		if err != nil {
			return 0, false, err
		}
		on[own] = slices.ContainsFunc(stem.pages, func(p weighed) bool { return int(s.localeOf[p.doc]) == own })
		err = s.walk(ctx, []byte(t.Surface), page.FieldNames[page.FieldSurface], func(section uint32, _ float32) { on[s.localeOf[s.pageOf[section]]] = true })
		if err != nil {
			return 0, false, err
		}
		where = append(where, on)
	}
	best, bestLead, bestKnown, told := own, 0, 0, own > 0 // its script is not that of the site's own language
	for _, i := range possible[1:] {
		lead, known, strange := grammatical[i]-grammatical[own], 0, 0
		grammar := analysis.Grammar(analysis.Language(s.locales[i].name))
		for k, on := range where {
			switch {
			case on[i]:
				known++
			case !slices.Contains(on, true) && !grammar[tokens[k].Surface]:
				strange++
			}
			if on[i] && !on[own] {
				lead++
			} else if on[own] && !on[i] {
				lead--
			}
		}
		if lead > 0 && lead < strange {
			continue // words of a language that the site does not have
		}
		told = told || lead != 0
		if lead > bestLead || lead == bestLead && lead > 0 && known > bestKnown {
			best, bestLead, bestKnown = i, lead, known
		}
	}
	return best, told, nil
}
