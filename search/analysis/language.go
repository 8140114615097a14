package analysis

import (
	"slices"
	"strings"

	"docent/internal/brief"
)

// latin are the languages in Latin letters that are told by their words of grammar, English first.
var latin = []string{"en", "de", "es", "fr", "it", "pt", "nl", "pl"}

const (
	wordsOfLanguage = 200 // words of a text that are looked at
	bytesOfLanguage = 2000
)

// LanguageOf is the language that a question is written in; empty if it does not tell.
func LanguageOf(text string) string {
	language, words := LanguageBy(text, 2)
	if language != "" || words > 8 {
		return language
	}
	first, rest, _ := strings.Cut(strings.ToLower(strings.TrimLeft(text, " ¿¡\"«")), " ")
	if second, _, _ := strings.Cut(rest, " "); firstWord[first+" "+second] != "" {
		return firstWord[first+" "+second]
	}
	if words == 0 {
		return ""
	}
	return firstWord[first]
}

// LanguageBy is the language of a text that has so many words of its grammar at least, and how many words tell nothing
// of it.
func LanguageBy(text string, least int) (language string, words int) {
	text = brief.Bytes(text, bytesOfLanguage, "")
	switch Scripts(text)[0] {
	case "Jpan":
		return "ja", 0
	case "Kore":
		return "ko", 0
	case "Hans", "Hant":
		return "zh", 0
	case "Cyrl":
		return "ru", 0
	case "Arab":
		return "ar", 0
	case "Latn":
	default:
		return "", 0
	}
	var buf [64]string
	all := buf[:0]
	for field := range strings.FieldsSeq(Fold(text)) {
		if isAddress(field) {
			continue // the "com" of a host is no Portuguese
		}
		all = slices.AppendSeq(all, strings.FieldsFuncSeq(field, func(r rune) bool { return !IsWord(r) }))
		if len(all) >= wordsOfLanguage {
			break
		}
	}
	all = all[:min(len(all), wordsOfLanguage)]
	most, second := 0, 0
	for _, code := range latin {
		n := 0
		known := Grammar(code)
		for _, w := range all {
			if known[w] {
				n++
			}
		}
		if n > most {
			language, most, second = code, n, most
		} else {
			second = max(second, n)
		}
	}
	switch {
	case most >= least && 2*most >= 3*second:
		return language, 0
	case second > 2:
		return "", 0
	}
	return "", len(all)
}

// isAddress reports whether a word is no prose: an address, a path, the name of a file, a host or a package.
func isAddress(field string) bool {
	field = strings.TrimRight(field, ".,;:!?)]}\"'*_`")
	if i := strings.IndexByte(field, '.'); i > 0 && i+1 < len(field) {
		return true
	}
	return strings.ContainsAny(field, "/@_\\")
}

// firstWord tells the language of a short question by the word that it begins with, or the two.
var firstWord = map[string]string{
	"wie": "de", "warum": "de", "wo": "de", "wann": "de", "welche": "de", "welcher": "de", "kann": "de", "gibt": "de",
	"cómo": "es", "dónde": "es", "qué": "es", "cuál": "es", "cuándo": "es", "puedo": "es", "¿cómo": "es",
	"comment": "fr", "pourquoi": "fr", "où": "fr", "combien": "fr", "quand": "fr", "puis-je": "fr", "peut-on": "fr",
	"dove": "it", "perché": "it", "posso": "it", "cos'è": "it", "como": "pt", "onde": "pt", "qual": "pt", "o que": "pt",
	"hoe": "nl", "waarom": "nl", "waar": "nl", "jak": "pl", "dlaczego": "pl", "gdzie": "pl",
}
