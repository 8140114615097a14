package glob

import (
	"regexp"
	"strings"
)

// Expression is a glob as a regular expression that matches the whole of a path. If across is set, "*" and "?" match
// slashes as well, as in Python's fnmatch; else "**" alone does, wherever it stands, and braces hold alternatives.
func Expression(glob string, across bool) string {
	one := "[^/]"
	if across {
		one = "."
	}
	var b strings.Builder
	b.WriteString("(?s)^")
	braces := 0
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '*' && !across && strings.HasPrefix(glob[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString(one + "*")
		case c == '?':
			b.WriteString(one)
		case c == '[' && strings.IndexByte(glob[min(i+2, len(glob)):], ']') >= 0:
			end := i + 2 + strings.IndexByte(glob[i+2:], ']')
			class := strings.ReplaceAll(glob[i+1:end], `\`, `\\`)
			if class[0] == '!' {
				class = "^" + class[1:]
			}
			b.WriteString("[" + strings.ReplaceAll(class, "[", `\[`) + "]")
			i = end
		case c == '{' && !across:
			braces++
			b.WriteString("(?:")
		case c == '}' && braces > 0:
			braces--
			b.WriteString(")")
		case c == ',' && braces > 0:
			b.WriteString("|")
		case c == '\\' && !across && i+1 < len(glob):
			i++
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
	}
	b.WriteString("$")
	return b.String()
}
