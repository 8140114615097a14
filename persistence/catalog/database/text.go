package database

import (
	"strings"
	"unicode/utf8"
)

const (
	// widest is how many bytes of a text go into a column that is indexed; PostgreSQL refuses longer index entries.
	widest = 800
	// searchLength is how many characters of a query are kept.
	searchLength = 200
)

// Column is a text as an indexed column can hold it.
func Column(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if len(s) > widest {
		n := widest
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return s
}

// Fold makes queries that differ in case and space alone the same.
func Fold(q string) string {
	q = Column(strings.ToLower(strings.Join(strings.Fields(q), " ")))
	if utf8.RuneCountInString(q) > searchLength {
		q = string([]rune(q)[:searchLength])
	}
	return q
}
