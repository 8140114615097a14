package page

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/site/markup"
)

const (
	excerptBytes  = 240 // of an excerpt, about
	excerptBefore = 60  // of what stands before the first word that was found
)

// Excerpt returns what a reader sees of a section of a page around the first word of a query, as plain text: code and
// identifiers are as the page has them.
func Excerpt(path, section, query string) string {
	name := "section.md"
	if strings.HasSuffix(path, ".mdx") {
		name = "section.mdx"
	}
	src := []byte("\n" + section) // so that a line of hyphens does not begin front matter
	page := markup.Parse(name, src)
	span := markup.Span{Start: 1, End: len(src)}
	if len(page.Headings) > 0 && strings.TrimSpace(string(src[:page.Headings[0].Span.Start])) == "" {
		span.Start = page.Headings[0].Span.End // the section's own
	}
	return aroundWord(page.Plain(span), query)
}

// aroundWord is the part of a text about the first word of a query that it has.
func aroundWord(text, query string) string {
	folded := strings.ToLower(text)
	at := len(text)
	for _, w := range strings.FieldsFunc(strings.ToLower(query), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	}) {
		if n := strings.Index(folded, w); n >= 0 && len(w) > 1 {
			at = min(at, n)
		}
	}
	from := 0
	if at > excerptBefore+20 && at < len(text) && len(folded) == len(text) {
		from = at - excerptBefore
		if n := strings.IndexFunc(text[from:at], unicode.IsSpace); n >= 0 {
			from += n + 1
		}
		for !utf8.RuneStart(text[from]) {
			from--
		}
	}
	end := from + excerptBytes
	if end >= len(text) {
		end = len(text)
	} else {
		for !utf8.RuneStart(text[end]) {
			end--
		}
		if n := strings.LastIndexFunc(text[from:end], unicode.IsSpace); n > 0 {
			end = from + n
		}
	}
	out := strings.TrimSpace(text[from:end])
	if from > 0 {
		out = "…" + out
	}
	if end < len(text) {
		out += "…"
	}
	return out
}
