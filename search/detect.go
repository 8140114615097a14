package search

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis/lang/ar"
	"github.com/blevesearch/bleve/v2/analysis/lang/bg"
	"github.com/blevesearch/bleve/v2/analysis/lang/ca"
	"github.com/blevesearch/bleve/v2/analysis/lang/cs"
	"github.com/blevesearch/bleve/v2/analysis/lang/da"
	"github.com/blevesearch/bleve/v2/analysis/lang/de"
	"github.com/blevesearch/bleve/v2/analysis/lang/el"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/lang/es"
	"github.com/blevesearch/bleve/v2/analysis/lang/fa"
	"github.com/blevesearch/bleve/v2/analysis/lang/fi"
	"github.com/blevesearch/bleve/v2/analysis/lang/fr"
	"github.com/blevesearch/bleve/v2/analysis/lang/hi"
	"github.com/blevesearch/bleve/v2/analysis/lang/hu"
	"github.com/blevesearch/bleve/v2/analysis/lang/id"
	"github.com/blevesearch/bleve/v2/analysis/lang/it"
	"github.com/blevesearch/bleve/v2/analysis/lang/nl"
	"github.com/blevesearch/bleve/v2/analysis/lang/no"
	"github.com/blevesearch/bleve/v2/analysis/lang/pt"
	"github.com/blevesearch/bleve/v2/analysis/lang/ro"
	"github.com/blevesearch/bleve/v2/analysis/lang/ru"
	"github.com/blevesearch/bleve/v2/analysis/lang/sv"
	"github.com/blevesearch/bleve/v2/analysis/lang/tr"
	"github.com/blevesearch/bleve/v2/registry"
)

// The language of a question is looked for among the languages of the site's pages only: by its script, by the words of
// grammar that Bleve knows of each language, and by words that only the pages of one language have. So a site of one
// language looks for nothing, and a language without a list is told by the site's own pages.

// grammar names Bleve's lists of the words that say nothing about the subject.
var grammar = map[string]string{
	"ar": ar.StopName, "bg": bg.StopName, "ca": ca.StopName, "cs": cs.StopName, "da": da.StopName, "de": de.StopName, "el": el.StopName, "en": en.StopName,
	"es": es.StopName, "fa": fa.StopName, "fi": fi.StopName, "fr": fr.StopName, "hi": hi.StopName, "hu": hu.StopName, "id": id.StopName, "it": it.StopName,
	"nl": nl.StopName, "nb": no.StopName, "no": no.StopName, "pt": pt.StopName, "ro": ro.StopName, "ru": ru.StopName, "sv": sv.StopName, "tr": tr.StopName,
}

// questionWords are the words of questions that those lists lack.
var questionWords = map[string]string{
	"de": "wie wo wann warum wer welche welcher welches wozu geht gibt bitte",
	"es": "cómo dónde cuándo cuál cuáles puedo hay qué",
	"fr": "comment pourquoi quand où combien quels quelle quelles quel peut puis peux faut",
	"it": "dove quando posso cosa quale quali perché",
	"nl": "hoe waar wanneer waarom welke",
	"pl": "jak gdzie kiedy dlaczego co czy i w na do z się nie jest to o od za dla przez po jaki jaka jakie można",
	"pt": "onde quando posso qual quais porque",
	"uk": "як де коли чому що чи і в на до з не є це та для від як можна",
	"vi": "làm thế nào là gì ở đâu tại sao và của cho có không được trong để với các một",
}

// grammarOf gives the words of grammar of a language, written as terms are. Lists are read once.
var grammarOf = func() func(language string) map[string]bool {
	var mu sync.Mutex
	read := map[string]map[string]bool{}
	cache := registry.NewCache()
	return func(language string) map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		if words, ok := read[language]; ok {
			return words
		}
		words := map[string]bool{}
		if name, ok := grammar[language]; ok {
			if list, err := cache.TokenMapNamed(name); err == nil {
				for w := range list {
					words[fold(strings.Trim(w, "'’"))] = true
				}
			}
		}
		for w := range strings.FieldsSeq(questionWords[language]) {
			words[fold(w)] = true
		}
		if language == "en" {
			for w := range dropped {
				words[w] = true
			}
		}
		read[language] = words
		return words
	}
}()

// scripts are the scripts of languages other than Latin, with the codes that tags have for them.
var scripts = []struct {
	letters []*unicode.RangeTable
	codes   []string
}{
	{[]*unicode.RangeTable{unicode.Hiragana, unicode.Katakana}, []string{"Jpan"}}, // before Han, which Japanese uses too
	{[]*unicode.RangeTable{unicode.Hangul}, []string{"Kore"}},
	{[]*unicode.RangeTable{unicode.Han}, []string{"Hans", "Hant", "Jpan"}},
	{[]*unicode.RangeTable{unicode.Cyrillic}, []string{"Cyrl"}},
	{[]*unicode.RangeTable{unicode.Greek}, []string{"Grek"}},
	{[]*unicode.RangeTable{unicode.Arabic}, []string{"Arab"}},
	{[]*unicode.RangeTable{unicode.Hebrew}, []string{"Hebr"}},
	{[]*unicode.RangeTable{unicode.Devanagari}, []string{"Deva"}},
	{[]*unicode.RangeTable{unicode.Bengali}, []string{"Beng"}},
	{[]*unicode.RangeTable{unicode.Thai}, []string{"Thai"}},
}

// scriptOf is the script of a text: another one than Latin where it has at least as many letters of that as Latin words.
func scriptOf(text string) []string {
	latin := 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.Is(unicode.Latin, r) }) {
		if len(word) > 0 {
			latin++
		}
	}
	for _, script := range scripts {
		n := 0
		for _, r := range text {
			if unicode.In(r, script.letters...) {
				n++
			}
		}
		if n > 0 && n >= latin {
			return script.codes
		}
	}
	return []string{"Latn"}
}

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
	codes := scriptOf(text)
	if last, _ := utf8.DecodeLastRuneInString(text); unfinished && wordRune(last) && codes[0] == "Latn" {
		text = strings.TrimRightFunc(text, wordRune)
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
	words := strings.FieldsFunc(fold(text), func(r rune) bool { return !wordRune(r) })
	grammatical := make([]int, len(s.locales))
	if len(words) > 1 { // a word alone may be a word of grammar here and a subject there
		for _, i := range possible {
			known := grammarOf(languageOf(s.locales[i].name))
			for _, w := range words {
				if known[w] {
					grammatical[i]++
				}
			}
		}
	}
	var tokens []token
	a := analysers.Get().(*analyser)
	a.tokens(text, languageOf(s.locales[own].name), func(t token) {
		if t.covers == 0 {
			tokens = append(tokens, t)
		}
	})
	analysers.Put(a)
	where := make([][]bool, 0, len(tokens)) // a word is on pages of these languages
	for _, t := range tokens {
		on := make([]bool, len(s.locales))
		stem, err := s.decode(ctx, t.term) // "widgets" is a word of pages that say "widget"
		if err != nil {
			return 0, false, err
		}
		on[own] = slices.ContainsFunc(stem.pages, func(p weighed) bool { return int(s.localeOf[p.doc]) == own })
		err = s.walk(ctx, []byte(t.surface), pageFieldNames[fieldSurface], func(section uint32, _ float32) { on[s.localeOf[s.pageOf[section]]] = true })
		if err != nil {
			return 0, false, err
		}
		where = append(where, on)
	}
	best, bestLead, bestKnown, told := own, 0, 0, own > 0 // its script is not that of the site's own language
	for _, i := range possible[1:] {
		lead, known, strange := grammatical[i]-grammatical[own], 0, 0
		grammar := grammarOf(languageOf(s.locales[i].name))
		for k, on := range where {
			switch {
			case on[i]:
				known++
			case !slices.Contains(on, true) && !grammar[tokens[k].surface]:
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
