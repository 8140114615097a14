package search

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"docent/internal/brief"
	"docent/search/analysis"
	"docent/search/page"
)

// The language of a question is looked for among the languages of the site's pages only: by its script, by the words of
// grammar that Bleve knows of each language, and by words that only the pages of one language have. So a site of one
// language looks for nothing, and a language without a list is told by the site's own pages.

// scriptRank is the rank of a language's script among those that a text may be in: Han alone is Chinese before it is
// Japanese.
func (s *snapshot) scriptRank(at int, codes []string) int {
	script, _ := s.locales[at].tag.Script()
	if script.String() == "Hant" && slices.Contains(codes, "Hans") {
		return 0
	}
	return max(0, slices.Index(codes, script.String()))
}

// languageOfText is the number of the site's language that a text is written in; not ok if the text does not tell. A
// last word that is not finished tells nothing.
func (s *snapshot) languageOfText(ctx context.Context, text string, unfinished bool) (at int, ok bool, err error) {
	text = brief.Bytes(text, longestQuery, "")
	codes := analysis.Scripts(text)
	if last, _ := utf8.DecodeLastRuneInString(text); unfinished && analysis.IsWord(last) && codes[0] == "Latn" {
		text = strings.TrimRightFunc(text, analysis.IsWord)
	}
	possible := s.localesIn(codes)
	switch len(possible) {
	case 0:
		return 0, false, nil
	case 1:
		return possible[0], true, nil
	}
	own := possible[0] // the site's own language, if it has the same script
	grammatical := s.wordsOfGrammar(text, possible)
	words, err := s.wordsOfPages(ctx, text, own)
	if err != nil {
		return 0, false, err
	}
	best, bestLead, bestKnown, told := own, 0, 0, own > 0 // its script is not that of the site's own language
	for _, i := range possible[1:] {
		lead, known, strange := s.leadOf(i, own, words)
		if lead += grammatical[i] - grammatical[own]; lead > 0 && lead < strange {
			continue // words of a language that the site does not have
		}
		told = told || lead != 0
		if lead > bestLead || lead == bestLead && lead > 0 && known > bestKnown {
			best, bestLead, bestKnown = i, lead, known
		}
	}
	return best, told, nil
}

// localesIn are the site's languages that are written in a script, the likeliest first. Names are Latin everywhere.
func (s *snapshot) localesIn(codes []string) (possible []int) {
	for i, l := range s.locales {
		if script, _ := l.tag.Script(); slices.Contains(codes, script.String()) || i == 0 && codes[0] == "Latn" {
			possible = append(possible, i)
		}
	}
	slices.SortStableFunc(possible, func(a, b int) int {
		return cmp.Compare(s.scriptRank(a, codes), s.scriptRank(b, codes))
	})
	return possible
}

// wordsOfGrammar counts the words of a text that say nothing about the subject, for each of these languages. A word
// alone may be a word of grammar here and a subject there: it counts for none.
func (s *snapshot) wordsOfGrammar(text string, locales []int) []int {
	count := make([]int, len(s.locales))
	words := strings.FieldsFunc(analysis.Fold(text), func(r rune) bool { return !analysis.IsWord(r) })
	if len(words) < 2 {
		return count
	}
	for _, i := range locales {
		known := analysis.Grammar(analysis.Language(s.locales[i].name))
		for _, w := range words {
			if known[w] {
				count[i]++
			}
		}
	}
	return count
}

// A wordOfPages is a word of a text, and by the numbers of languages whether a page in that language has it.
type wordOfPages struct {
	surface string
	in      []bool
}

// wordsOfPages looks for the words of a text in the pages, if stems are those of one language: "widgets" is a word
// of pages that say "widget".
func (s *snapshot) wordsOfPages(ctx context.Context, text string, own int) ([]wordOfPages, error) {
	var tokens []analysis.Token
	a := analysis.Get()
	a.Tokens(text, analysis.Language(s.locales[own].name), func(t analysis.Token) {
		if t.Covers == 0 {
			tokens = append(tokens, t)
		}
	})
	a.Put()
	words := make([]wordOfPages, 0, len(tokens))
	for _, t := range tokens {
		w := wordOfPages{t.Surface, make([]bool, len(s.locales))}
		stem, err := s.decode(ctx, t.Term)
		if err != nil {
			return nil, err
		}
		w.in[own] = slices.ContainsFunc(stem.pages, func(p weighed) bool { return int(s.localeOf[p.doc]) == own })
		err = s.walk(ctx, []byte(t.Surface), page.FieldNames[page.FieldSurface],
			func(section uint32, _ float32) { w.in[s.localeOf[s.pageOf[section]]] = true })
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
	return words, nil
}

// leadOf is how many more words a language has than the site's own one, how many it has, and how many none has.
func (s *snapshot) leadOf(locale, own int, words []wordOfPages) (lead, known, strange int) {
	grammar := analysis.Grammar(analysis.Language(s.locales[locale].name))
	for _, w := range words {
		switch {
		case w.in[locale]:
			known++
		case !slices.Contains(w.in, true) && !grammar[w.surface]:
			strange++
		}
		if w.in[locale] && !w.in[own] {
			lead++
		} else if w.in[own] && !w.in[locale] {
			lead--
		}
	}
	return lead, known, strange
}
