package database

import (
	"strings"

	"docent/internal/brief"
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
	return brief.Bytes(s, widest, "")
}

// Fold makes queries that differ in case and space alone the same.
func Fold(q string) string {
	return brief.Runes(Column(strings.ToLower(brief.Line(q))), searchLength, "")
}
