// Package brief makes texts short: on one line, or no longer than so much; and counts things in words.
package brief

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns a text on one line: each run of white space becomes one blank.
func Line(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		c := s[i]
		plain = c > ' ' && c < 0x80 || c == ' ' && i > 0 && i < len(s)-1 && s[i-1] != ' '
	}
	if plain {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

// Bytes returns a text of at most that many bytes as it is, and of a longer one its beginning, cut between characters,
// with mark behind it.
func Bytes(s string, most int, mark string) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:max(most, 0)], "") + mark
}

// Runes is Bytes for a number of characters.
func Runes(s string, most int, mark string) string {
	n := 0
	for at := range s {
		if n >= most {
			return s[:at] + mark
		}
		n++
	}
	return s
}

// Count returns a number with its noun, as in "1 page" and "2 pages".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Capital is a text whose first character is a capital letter.
func Capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 || first == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}
