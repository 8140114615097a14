package claims

import (
	"strings"
	"unicode"
)

// little are a language's small words that the others, in the same script, do not have.
var little = map[string]map[string]bool{
	"en": set("the is are of and to you it this that for with on be by can not what how does do your will an from which when if"),
	"de": set("der die das und ist nicht ein eine mit für wird auf den dem zu wie kann sie werden oder auch bei von ich was sind im"),
	"fr": set("le les des est une et pour dans pas que qui sur avec vous ce sont du au ou comment peut je quel quelle la l'on c'est n'est"),
	"es": set("el los las una es para con del que por se no en cómo puede como más y su está qué son lo al"),
	"pt": set("o os as uma não é para com do da que por em como pode mais seu está são um no na você ao"),
	"it": set("il gli una è di per con non che del della sono come può più nel alla questo si dei i un"),
	"nl": set("het een van niet en op voor met zijn wordt kan hoe wat ook naar deze dat bij of je"),
	"pl": set("nie jest się na do jak to że dla są przez może czy co z w oraz lub"),
	"sv": set("och är att det som för inte på med kan hur av till den ett du eller"),
	"tr": set("bir ve için bu ile olarak nasıl değil mi ne da de olan gibi var"),
}

// languages are in the order in which one of two that fit as well is taken.
var languages = strings.Fields("en de fr es pt it nl pl sv tr")

// Language guesses the language of a text from its script and its small words; it is empty if it cannot tell.
func Language(text string) string {
	const enough = 4096 // bytes that are looked at
	if len(text) > enough {
		text = text[:enough]
	}
	if l := byScript(text); l != "" {
		return l
	}
	hits := map[string]int{}
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		if len(w) > 12 {
			continue
		}
		w = strings.ToLower(w)
		for _, l := range languages {
			if little[l][w] {
				hits[l]++
			}
		}
	}
	best := ""
	for _, l := range languages {
		if hits[l] > hits[best] {
			best = l
		}
	}
	if hits[best] < 2 {
		return ""
	}
	return best
}

// byScript knows a language by the script that only it is written in, or that it is written in most.
func byScript(text string) string {
	var han, kana, hangul, cyrillic, latin int
	for _, r := range text {
		switch {
		case r < 0x80:
			if r|0x20 >= 'a' && r|0x20 <= 'z' {
				latin++
			}
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kana++
		case unicode.Is(unicode.Han, r):
			han++
		case unicode.Is(unicode.Hangul, r):
			hangul++
		case unicode.Is(unicode.Cyrillic, r):
			cyrillic++
		}
	}
	switch {
	case kana > 0 && (kana+han)*4 > latin:
		return "ja"
	case han*4 > latin:
		return "zh"
	case hangul*4 > latin:
		return "ko"
	case cyrillic*2 > latin:
		return "ru"
	}
	return ""
}
