package anchor

import (
	"regexp"
	"strings"
	"unicode"
)

// Kebab is kebabCase of lodash: the words of a text, which end where letters, their cases and digits change.
func Kebab(s string) string {
	kind := func(r rune) int {
		switch {
		case unicode.IsUpper(r):
			return 1
		case unicode.IsLetter(r):
			return 2
		case unicode.IsDigit(r):
			return 3
		}
		return 0
	}
	var out []rune
	runes := []rune(strings.NewReplacer("'", "", "’", "").Replace(s))
	before := 0
	for i, r := range runes {
		is := kind(r)
		ends := before != is && !(before == 1 && is == 2) || before == 1 && is == 1 && i+1 < len(runes) && kind(runes[i+1]) == 2
		if is != 0 {
			if ends && len(out) > 0 {
				out = append(out, '-')
			}
			out = append(out, unicode.ToLower(r))
		}
		before = is
	}
	return string(out)
}

// HugoPath is a path as Hugo's addresses have it: in lower case if capitals are not kept, blanks as hyphens, without most punctuation.
func HugoPath(p string, cased, plain bool) string {
	if !cased {
		p = strings.ToLower(p)
	}
	if plain {
		p = WithoutAccents(p)
	}
	p = strings.ReplaceAll(p, " ", "-")
	var b strings.Builder
	for i, r := range p {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune(`./\_#+~-@`, r) ||
			r == '%' && percentEncoded.MatchString(p[i:]) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

var percentEncoded = regexp.MustCompile(`^%[0-9a-fA-F]{2}`)
