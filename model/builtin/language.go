package builtin

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/model"
	"docent/search/analysis"
)

// If a question is in another language than the documentation's, the answer says so in that language, with what comes
// closest. Pages in the reader's language answer as usual.

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

// foreign is the language of what is quoted if it is another one than the question's.
func foreign(asked string, sections []*section, quotes []quote) (other string) {
	if asked == "" {
		return ""
	}
	for _, q := range quotes {
		switch sections[q.passage].language {
		case "":
		case asked:
			return ""
		default:
			other = cmp.Or(other, sections[q.passage].language)
		}
	}
	return other
}

// Language is the language that a request is put in; empty if it does not tell.
func Language(req *model.Request) string { return askedIn(asked(req)) }

// askedIn is the language of the newest question that tells one.
func askedIn(questions []string) string {
	for _, q := range questions {
		if language := analysis.LanguageOf(q); language != "" {
			return language
		}
	}
	return ""
}
