// Package glob matches paths with the globs and the lists in the syntax of .gitignore that stand in configurations.
package glob

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// A Glob is a pattern of paths. It is matched as a regular expression of Go, in time that grows with the path alone:
// the patterns are those of strangers, and a matcher that goes back and forth needs ages for some of them.
type Glob struct {
	Text string
	re   *regexp.Regexp
}

var errGlob = errors.New("is no pattern")

// Match reports whether a path matches. The zero Glob matches none.
func (g Glob) Match(name string) bool { return g.re != nil && g.re.MatchString(name) }

// Compile reads a pattern with *, ?, ** between slashes, classes and, if braces says so, {a,b}.
func Compile(text string, braces bool) (Glob, error) {
	const longest = 500
	if len(text) > longest {
		return Glob{}, errGlob
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	depth := 0
	for i := 0; i < len(text); i++ {
		atStart := i == 0 || text[i-1] == '/'
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], "**/") && atStart:
			b.WriteString(`(?:.*/)?`)
			i += 2
		case text[i:] == "**" && atStart:
			b.WriteString(`.*`)
			i++
		case c == '*':
			for i+1 < len(text) && text[i+1] == '*' {
				i++
			}
			b.WriteString(`[^/]*`)
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '[':
			end := classEnd(text[i:])
			if end < 0 {
				return Glob{}, errGlob
			}
			b.WriteString(classOf(text[i+1 : i+end]))
			i += end
		case c == '\\':
			if i++; i == len(text) {
				return Glob{}, errGlob
			}
			b.WriteString(regexp.QuoteMeta(text[i : i+1]))
		case c == '{' && braces:
			depth++
			b.WriteString("(?:")
		case c == '}' && braces && depth > 0:
			depth--
			b.WriteString(")")
		case c == ',' && depth > 0:
			b.WriteString("|")
		default:
			b.WriteString(regexp.QuoteMeta(text[i : i+1]))
		}
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	if err != nil || depth > 0 {
		return Glob{}, errGlob
	}
	return Glob{text, re}, nil
}

// classOf is a class of characters, which stands between brackets, as an expression.
func classOf(class string) string {
	not := ""
	if class[0] == '!' || class[0] == '^' {
		not, class = "^/", class[1:]
	}
	class = strings.NewReplacer(`[:`, `[:`, `:]`, `:]`, `[`, `\[`, `^`, `\^`, `&&`, `&\&`).Replace(class)
	if strings.HasPrefix(class, "]") {
		class = `\` + class
	}
	return "[" + not + class + "]"
}

// classEnd is where a class of characters that text begins with ends; negative if it does not.
func classEnd(text string) int {
	i := 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		i++
	}
	if i < len(text) && text[i] == ']' {
		i++
	}
	for ; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], "[:"):
			if end := strings.Index(text[i:], ":]"); end > 0 {
				i += end + 1
			}
		case text[i] == ']':
			return i
		}
	}
	return -1
}

// Globs compiles patterns that are known to be right.
func Globs(texts ...string) []Glob {
	var out []Glob
	for _, text := range texts {
		if g, err := Compile(text, true); err == nil {
			out = append(out, g)
		}
	}
	return out
}

// Any reports whether one of the patterns matches.
func Any(patterns []Glob, name string) bool {
	return slices.ContainsFunc(patterns, func(g Glob) bool { return g.Match(name) })
}
