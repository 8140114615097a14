package site

import (
	"fmt"

	"docent/api"
	"docent/site/pattern"
)

// ignores reads the patterns of a configuration, and warns of those that are none.
func (s *Site) ignores(file string, lines []string) pattern.List {
	list, bad := pattern.ReadList(lines)
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
			if _, bad := pattern.ReadList([]string{text}); len(bad) > 0 {
				out = append(out, api.Problem{Field: fmt.Sprintf("%s[%d]", field, i), Message: "is no pattern as .gitignore has them: a bracket or a backslash is not closed"})
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &api.InvalidError{Problems: out}
}
