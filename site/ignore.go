package site

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"docent/api"
)

// An ignore list holds patterns in the syntax of .gitignore. Of several that match a file the last one decides.
//
// It is made of doublestar's globs, since the matcher of go-git does not go back in a pattern such as "**/a/b" and passes
// over "a/**.md": it would publish what the list leaves out.
type ignoreList []ignorePattern

type ignorePattern struct {
	text   string // as it is written
	glob   string
	keep   bool // begins with "!"
	folder bool // matches folders only
}

// ignoreLines reads a list, one pattern a line. bad are the lines that are no patterns.
func ignoreLines(lines []string) (out ignoreList, bad []string) {
	for _, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if !strings.HasSuffix(line, `\ `) {
			line = strings.TrimRight(line, " \t")
		}
		p := ignorePattern{text: line}
		if strings.HasPrefix(line, "#") {
			continue
		}
		line, p.keep = strings.CutPrefix(line, "!")
		line, p.folder = strings.CutSuffix(line, "/")
		anchored := strings.Contains(line, "/")
		if line = strings.TrimPrefix(line, "/"); line == "" {
			continue
		}
		parts := strings.Split(line, "/")
		for i, part := range parts {
			if part != "**" {
				for strings.Contains(part, "**") {
					part = strings.ReplaceAll(part, "**", "*")
				}
				parts[i] = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(part)
			}
		}
		p.glob = strings.Join(parts, "/")
		if !anchored {
			p.glob = "**/" + p.glob
		}
		if doublestar.ValidatePattern(p.glob) {
			out = append(out, p)
		} else {
			bad = append(bad, p.text)
		}
	}
	return out, bad
}

// fixedList is a list of patterns that are known to be right.
func fixedList(lines ...string) ignoreList {
	list, _ := ignoreLines(lines)
	return list
}

// ignores reads the patterns of a configuration, and warns of those that are none.
func (s *Site) ignores(file string, lines []string) ignoreList {
	list, bad := ignoreLines(lines)
	for _, b := range bad {
		s.warn(file, "the pattern %q is not understood; set --exclude", b)
	}
	return list
}

// CheckPatterns says which of a project's patterns are none: an *api.InvalidError, or nil.
func CheckPatterns(p api.Project) error {
	var out []api.Problem
	for field, list := range map[string][]string{"include": p.Include, "exclude": p.Exclude} {
		for i, text := range list {
			if _, bad := ignoreLines([]string{text}); len(bad) > 0 {
				out = append(out, api.Problem{Field: fmt.Sprintf("%s[%d]", field, i), Message: "is no pattern as .gitignore has them: a bracket or a backslash is not closed"})
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &api.InvalidError{Problems: out}
}

func (p *ignorePattern) matches(name string, folder bool) bool {
	return (folder || !p.folder) && doublestar.MatchUnvalidated(p.glob, name)
}

// last is the last pattern that matches a file or, in the way of pathspec, a folder above it; nil where none does.
func (l ignoreList) last(file string) *ignorePattern {
	for i := len(l) - 1; i >= 0; i-- {
		for name, folder := file, false; name != "." && name != "/"; name, folder = path.Dir(name), true {
			if l[i].matches(name, folder) {
				return &l[i]
			}
		}
	}
	return nil
}

// lastAsGit is the pattern that decides in the way of git: what lies in a folder that is left out cannot be kept.
func (l ignoreList) lastAsGit(file string) *ignorePattern {
	parts := strings.Split(file, "/")
	var deciding *ignorePattern
	for n := 1; n <= len(parts); n++ {
		name := strings.Join(parts[:n], "/")
		for i := len(l) - 1; i >= 0; i-- {
			if l[i].matches(name, n < len(parts)) {
				deciding = &l[i]
				break
			}
		}
		if n < len(parts) && deciding != nil && !deciding.keep {
			return deciding
		}
	}
	return deciding
}
