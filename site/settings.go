package site

import (
	"fmt"
	"regexp"
	"strings"

	"docent/api"
	"docent/site/pattern"
)

// strs are the texts of a list in JavaScript; whole says that nothing in it has to be run.
func strs(v any) (out []string, whole bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		return []string{v}, true
	case []any:
		whole = true
		for _, x := range v {
			if text, ok := x.(string); ok {
				out = append(out, text)
			} else {
				whole = false
			}
		}
		return out, whole
	}
	return nil, false
}

// globList reads a list of globs and says what of it cannot be read.
func (s *Site) globList(file, key string, v any) []pattern.Glob {
	list, whole := strs(v)
	if !whole {
		s.warn(file, "%s is computed; set --exclude", key)
	}
	var out []pattern.Glob
	for _, text := range list {
		text = strings.TrimPrefix(text, "./")
		g, err := pattern.Compile(text, true)
		if err != nil || extended.MatchString(text) || strings.HasPrefix(text, "!") {
			s.warn(file, "the pattern %q of %s is not understood; set --exclude", text, key)
			continue
		}
		out = append(out, g)
	}
	return out
}

var extended = regexp.MustCompile(`[!+@?*]\(`)

// spreads says that an object takes in another one, which may set what it does not.
func (s *Site) spreads(file string, m map[string]any) {
	if _, ok := m["..."]; ok {
		s.warn(file, "takes in settings that are computed; set --exclude and --site-url where they leave pages out or name the address")
	}
}

// object is a value as an object, and text as a text; nothing of another kind.
func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func text(v any) string           { s, _ := v.(string); return s }

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
				out = append(out, api.Problem{Field: fmt.Sprintf("%s[%d]", field, i),
					Message: "is no pattern as .gitignore has them: a bracket or a backslash is not closed"})
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &api.InvalidError{Problems: out}
}
