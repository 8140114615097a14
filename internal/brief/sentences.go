package brief

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentences cuts running text into sentences; code spans, links and brackets are never cut.
func Sentences(s string) []string {
	var out []string
	start, depth := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '`':
			if end := strings.IndexByte(s[i+1:], '`'); end >= 0 {
				i += end + 1
			}
		case '[', '(':
			depth++
		case ']', ')':
			depth = max(depth-1, 0)
		case 0xE3, 0xEF: // the marks that sentences end with in Chinese and Japanese, with no space after them
			switch mark := s[i:min(i+3, len(s))]; mark {
			case "（", "「":
				depth++
			case "）", "」":
				depth = max(depth-1, 0)
			case "。", "！", "？":
				if depth == 0 {
					out, start = append(out, strings.TrimSpace(s[start:i+3])), i+3
				}
				i += 2
			}
		case '.', '!', '?':
			end := i + 1
			for end < len(s) && strings.IndexByte(`"'*_)`, s[end]) >= 0 {
				end++
			}
			if depth > 0 && end == i+1 || end < len(s) && s[end] != ' ' || s[i] == '.' && abbreviation(s[start:i]) {
				continue
			}
			next := strings.TrimLeft(s[end:], " *_\"'`([")
			name := strings.HasPrefix(strings.TrimLeft(s[end:], " "), "`")
			if r, _ := utf8.DecodeRuneInString(next); next != "" && unicode.IsLower(r) && !name {
				continue
			}
			if t := strings.TrimSpace(s[start:end]); t != "" {
				out = append(out, t)
			}
			start, i, depth = end, end-1, 0
		}
	}
	if t := strings.TrimSpace(s[start:]); t != "" {
		out = append(out, t)
	}
	return out
}

func abbreviation(before string) bool {
	at := strings.LastIndexAny(before, " (")
	switch strings.ToLower(before[at+1:]) {
	case "e.g", "i.e", "etc", "vs", "cf", "approx", "dr", "mr", "no", "fig", "resp":
		return true
	}
	return false
}
