package site

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/internal/glob"
	"docent/site/script"
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

// atMost is a list with all that it may hold: what is left out in one case is left out in each.
func atMost(v any) any {
	out := []any{}
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case nil, bool: // off
		case script.Either:
			for _, x := range v {
				if list, ok := x.([]any); ok {
					for _, x := range list {
						add(x)
					}
				} else {
					add(x)
				}
			}
		default:
			out = append(out, v)
		}
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			add(x)
		}
	case script.Either:
		add(v)
	default:
		return v
	}
	return out
}

// globList reads a list of globs that decides what the site leaves out.
func (s *Site) globList(file, key string, v any) []glob.Glob {
	list, whole := strs(v)
	if !whole {
		s.unknown(file, "%s is computed", key)
	}
	var out []glob.Glob
	for _, text := range list {
		text = strings.TrimPrefix(text, "./")
		g, err := glob.Compile(text, true)
		if err != nil || extended.MatchString(text) || strings.HasPrefix(text, "!") {
			s.unknown(file, "the pattern %q of %s is not understood", text, key)
			continue
		}
		out = append(out, g)
	}
	return out
}

var extended = regexp.MustCompile(`[!+@?*]\(`)

// spreads says that an object takes in another one, which may set what it does not. deciding are the keys that say what
// the site leaves out.
func (s *Site) spreads(file string, m map[string]any, deciding ...string) {
	if _, ok := m["..."]; !ok {
		return
	}
	if slices.ContainsFunc(deciding, func(key string) bool { return !script.Known(m, key) }) {
		s.unknown(file, "takes in settings that are computed")
		return
	}
	s.warn(file, "takes in settings that are computed; set --site-url if they name the address")
}

// object is a value as an object, and text as a text; nothing of another kind.
func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func text(v any) string           { s, _ := v.(string); return s }

// ignores reads the patterns of a configuration, and warns of those that are none.
func (s *Site) ignores(file string, lines []string) glob.List {
	list, bad := glob.ReadList(lines)
	for _, b := range bad {
		s.unknown(file, "the pattern %q is not understood", b)
	}
	return list
}

// CheckPatterns says which of a project's patterns are none: an *api.InvalidError, or nil.
func CheckPatterns(p api.Project) error {
	var out []api.Problem
	for field, list := range map[string][]string{"include": p.Include, "exclude": p.Exclude} {
		for i, text := range list {
			if _, bad := glob.ReadList([]string{text}); len(bad) > 0 {
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
