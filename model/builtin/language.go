package builtin

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/internal/brief"
	"docent/search/analysis"
)

// If a question is in another language than the documentation's, the answer says so in that language, with what comes
// closest. Pages in the reader's language answer as usual.

// latin are the languages in Latin letters that are told by their words of grammar, English first.
var latin = []string{"en", "de", "es", "fr", "it", "pt", "nl", "pl"}

const (
	wordsOfLanguage = 200 // words of a text that are looked at
	bytesOfLanguage = 2000
)

// languageOf is the language that a question is written in; empty if it does not tell.
func languageOf(text string) string {
	language, words := languageBy(text, 2)
	if language == "" && words > 0 && words <= 8 {
		first, _, _ := strings.Cut(strings.ToLower(strings.TrimLeft(text, " ¿¡\"«")), " ")
		return firstWord[first]
	}
	return language
}

// languageBy is the language of a text that has so many words of its grammar at least, and how many words tell nothing
// of it.
func languageBy(text string, least int) (language string, words int) {
	text = brief.Bytes(text, bytesOfLanguage, "")
	switch analysis.Scripts(text)[0] {
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
	for field := range strings.FieldsSeq(analysis.Fold(text)) {
		if isAddress(field) {
			continue // the "com" of a host is no Portuguese
		}
		all = slices.AppendSeq(all, strings.FieldsFuncSeq(field, func(r rune) bool { return !analysis.IsWord(r) }))
		if len(all) >= wordsOfLanguage {
			break
		}
	}
	all = all[:min(len(all), wordsOfLanguage)]
	most, second := 0, 0
	for _, code := range latin {
		n := 0
		known := analysis.Grammar(code)
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

// firstWord tells the language of a short question by the word that it begins with.
var firstWord = map[string]string{
	"wie": "de", "warum": "de", "wo": "de", "wann": "de", "welche": "de", "welcher": "de", "kann": "de", "gibt": "de",
	"cómo": "es", "dónde": "es", "qué": "es", "cuál": "es", "cuándo": "es", "puedo": "es", "¿cómo": "es",
	"comment": "fr", "pourquoi": "fr", "où": "fr", "combien": "fr", "quand": "fr", "puis-je": "fr", "peut-on": "fr",
	"dove": "it", "perché": "it", "posso": "it", "cos'è": "it", "como": "pt", "onde": "pt", "qual": "pt",
	"hoe": "nl", "waarom": "nl", "waar": "nl", "jak": "pl", "dlaczego": "pl", "gdzie": "pl",
}

// plain is a question without what only says that it is one, in languages other than English.
func plain(question, language string) string {
	switch language {
	case "", "en":
		return question
	case "ja", "zh", "ko":
		return scaffolds.Replace(question)
	}
	known := analysis.Grammar(language)
	var out []string
	for _, w := range strings.Fields(question) {
		if !known[analysis.Fold(strings.Trim(w, "?!.,;:¿¡«»\"'"))] {
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}

// scaffolds are the phrases that Chinese, Japanese and Korean questions are put with, the longer first.
var scaffolds = strings.NewReplacer(func() []string {
	phrases := strings.Fields(`どうすればいいですか どうすればよいですか どうすれば とは何ですか とはなんですか は何ですか 何ですか どうやって
		どのように どこで どこに なぜ 教えてください ください できますか ありますか しますか ですか ますか でしょうか 方法は について とは
		什么是 是什么 为什么 怎么样 怎么 怎样 如何 请问 能不能 能否 可以 是否 有没有 哪里 哪些 哪个 多少 什么 吗 呢 甚麼 什麼 為什麼 怎麼
		어떻게 무엇인가요 무엇입니까 무엇 왜 어디에서 어디 할 수 있나요 있나요 하나요 인가요 합니까 입니까 방법은`)
	out := make([]string, 0, 2*len(phrases))
	for _, p := range phrases {
		out = append(out, p, " ")
	}
	return out
}()...)

// ideograph reports whether a character belongs to a script without spaces between its words. Such text is compared by
// pairs of characters.
func ideograph(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r == 'ー'
}

// appendPairs appends the pairs of a run of such characters; end is where it ends. A character alone is a word.
func appendPairs(out []word, text string, start int) (words []word, end int) {
	end = start
	for end < len(text) {
		r, n := utf8.DecodeRuneInString(text[end:])
		if !ideograph(r) {
			break
		}
		end += n
	}
	for i := start; i < end; {
		_, first := utf8.DecodeRuneInString(text[i:])
		if i+first >= end {
			if i == start {
				out = append(out, word{text[i:end], i, end})
			}
			break
		}
		_, second := utf8.DecodeRuneInString(text[i+first:])
		out = append(out, word{text[i : i+first+second], i, i + first + second})
		i += first
	}
	return out, end
}

// grammatical reports whether a pair of characters is Japanese grammar: hiragana alone.
func grammatical(pair string) bool {
	for _, r := range pair {
		if !unicode.Is(unicode.Hiragana, r) {
			return false
		}
	}
	return true
}

// perWord is how many characters of a script without spaces are about as long as a word.
const perWord = 2

// countWords is the length of a text in words.
func countWords(s string) int {
	n, signs, in := 0, 0, false
	for _, r := range s {
		switch {
		case r >= 0x2E80 && ideograph(r):
			signs++
			in = false
		case r == ' ' || r == '\n' || r == '\t' || r >= 0x80 && unicode.IsSpace(r):
			in = false
		case !in:
			in = true
			n++
		}
	}
	return n + signs/perWord
}

// foreign reports whether what is quoted is in another language than the question.
func foreign(asked string, sections []*section, quotes []quote) bool {
	if asked == "" {
		return false
	}
	others := false
	for _, q := range quotes {
		switch sections[q.passage].language {
		case "":
		case asked:
			return false
		default:
			others = true
		}
	}
	return others
}

// askedIn is the language of the newest question that tells one.
func askedIn(questions []string) string {
	for _, q := range questions {
		if language := languageOf(q); language != "" {
			return language
		}
	}
	return ""
}
