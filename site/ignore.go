package site

import (
	"fmt"
	"path"
	"strings"

	"docent/api"
)

// An ignore list holds patterns in the syntax of .gitignore. Of several that match a file the last one decides.
//
// The matcher of go-git does not go back in a pattern such as "**/a/b" and passes over "a/**.md": it would publish what the
// list leaves out.
type ignoreList []ignorePattern

type ignorePattern struct {
	text   string // as it is written
	glob   glob
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
		if !anchored {
			line = "**/" + line
		}
		var err error
		if p.glob, err = compileGlob(line, false); err != nil {
			bad = append(bad, p.text)
			continue
		}
		out = append(out, p)
	}
	const most = 1000 // each is held against each file
	if len(out) > most {
		return fixedList("**"), append(bad, fmt.Sprintf("more than %d patterns: everything is left out", most))
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
	return (folder || !p.folder) && p.glob.re.MatchString(name)
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

// A GitIgnore holds the .gitignore files of a folder and of those below it.
type GitIgnore struct{ lists []folderIgnores }

type folderIgnores struct {
	folder string // with a slash at its end; empty for the root
	list   ignoreList
}

// Add takes in the text of the file that counts for a folder. What counts for the folders above it comes first. Lines that
// are no patterns leave nothing out, as with git.
func (g *GitIgnore) Add(folder, text string) {
	if folder != "" {
		folder += "/"
	}
	if list, _ := ignoreLines(strings.Split(text, "\n")); len(list) > 0 {
		g.lists = append(g.lists, folderIgnores{folder, list})
	}
}

// Ignores tells whether a file or a folder is left out, where none of the folders above it is.
func (g *GitIgnore) Ignores(name string, folder bool) bool {
	for i := len(g.lists) - 1; i >= 0; i-- {
		rel, below := strings.CutPrefix(name, g.lists[i].folder)
		if !below {
			continue
		}
		list := g.lists[i].list
		for k := len(list) - 1; k >= 0; k-- {
			if list[k].matches(rel, folder) {
				return !list[k].keep
			}
		}
	}
	return false
}
