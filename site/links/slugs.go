package links

import (
	"slices"
	"strings"

	"docent/site/markup"
)

var mintSlug = strings.NewReplacer("'", "’", ".", "-", "(", "", ")", "", " ", "-", "`", "", ",", "", "?", "", "!", "",
	":", "", "\"", "")

// slugRules are the usual rules for a heading's anchor.
var slugRules = []func(text string) string{
	markup.Slug,
	func(text string) string { // Mintlify
		return mintSlug.Replace(strings.ToLower(strings.TrimSpace(text)))
	},
	func(text string) string { // VitePress, MkDocs: every run of other characters is one hyphen
		var b strings.Builder
		dash := false
		for _, r := range strings.ToLower(text) {
			if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 0x80 {
				if dash && b.Len() > 0 {
					b.WriteByte('-')
				}
				dash = false
				b.WriteRune(r)
			} else {
				dash = true
			}
		}
		return b.String()
	},
	func(text string) string {
		s := markup.Slug(text)
		for strings.Contains(s, "--") {
			s = strings.ReplaceAll(s, "--", "-")
		}
		return strings.Trim(s, "-")
	},
}

// Slugs are the forms that a heading's text takes as an anchor.
func Slugs(text string) []string {
	var out []string
	for _, rule := range slugRules {
		out = append(out, rule(text))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// SameRule makes the anchor of a new text by the rule that gave the old one.
func SameRule(oldText, newText, old string) string {
	for _, rule := range slugRules {
		if rule(oldText) == old {
			return rule(newText)
		}
	}
	return ""
}
