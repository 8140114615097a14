package analysis

import (
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

// grammar names Bleve's lists of the words that say nothing about the subject.
var grammar = map[string]string{
	"ar": ar.StopName, "bg": bg.StopName, "ca": ca.StopName, "cs": cs.StopName, "da": da.StopName,
	"de": de.StopName, "el": el.StopName, "en": en.StopName, "es": es.StopName, "fa": fa.StopName,
	"fi": fi.StopName, "fr": fr.StopName, "hi": hi.StopName, "hu": hu.StopName, "id": id.StopName,
	"it": it.StopName, "nl": nl.StopName, "nb": no.StopName, "no": no.StopName, "pt": pt.StopName,
	"ro": ro.StopName, "ru": ru.StopName, "sv": sv.StopName, "tr": tr.StopName,
}

// questionWords are the words of questions that those lists lack.
var questionWords = map[string]string{
	"de": "wie wo wann warum wer welche welcher welches wozu geht gibt bitte",
	"es": "cómo dónde cuándo cuál cuáles puedo hay qué hago hacer",
	"fr": "comment pourquoi quand où combien quels quelle quelles quel peut puis peux faut",
	"it": "dove quando posso cosa quale quali perché",
	"nl": "hoe waar wanneer waarom welke",
	"pl": "jak gdzie kiedy dlaczego co czy i w na do z się nie jest to o od za dla przez po jaki jaka jakie można",
	"pt": "onde quando posso qual quais porque faço fazer consigo",
	"uk": "як де коли чому що чи і в на до з не є це та для від як можна",
	"vi": "làm thế nào là gì ở đâu tại sao và của cho có không được trong để với các một",
}

// Grammar gives the words of grammar of a language, written as terms are. Lists are read once.
var Grammar = func() func(language string) map[string]bool {
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
					words[Fold(strings.Trim(w, "'’"))] = true
				}
			}
		}
		for w := range strings.FieldsSeq(questionWords[language]) {
			words[Fold(w)] = true
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

// Scripts are the codes of the script of a text: another one than Latin if it has at least as many letters of that
// as Latin words.
func Scripts(text string) []string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return latinScript
	}
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
	return latinScript
}

var latinScript = []string{"Latn"}
