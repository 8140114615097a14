package glob

import (
	"fmt"
	"path"
	"strings"
)

// A List holds patterns in the syntax of .gitignore. Of several that match a file the last one decides.
//
// The matcher of go-git does not go back in a pattern such as "**/a/b" and passes over "a/**.md": it would publish what
// the list leaves out.
type List []Pattern

// A Pattern is one line of a list.
type Pattern struct {
	Text   string // as it is written
	glob   Glob
	Keep   bool // begins with "!"
	folder bool // matches folders only
}

// ReadList reads a list, one pattern a line. bad are the lines that are no patterns.
func ReadList(lines []string) (out List, bad []string) {
	for _, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if !strings.HasSuffix(line, `\ `) {
			line = strings.TrimRight(line, " \t")
		}
		p := Pattern{Text: line}
		if strings.HasPrefix(line, "#") {
			continue
		}
		line, p.Keep = strings.CutPrefix(line, "!")
		line, p.folder = strings.CutSuffix(line, "/")
		anchored := strings.Contains(line, "/")
		if line = strings.TrimPrefix(line, "/"); line == "" {
			continue
		}
		if !anchored {
			line = "**/" + line
		}
		var err error
		if p.glob, err = Compile(line, false); err != nil {
			bad = append(bad, p.Text)
			continue
		}
		out = append(out, p)
	}
	const most = 1000 // each is held against each file
	if len(out) > most {
		return NewList("**"), append(bad, fmt.Sprintf("more than %d patterns: everything is left out", most))
	}
	return out, bad
}

// NewList is a list of patterns that are known to be right.
func NewList(lines ...string) List {
	list, _ := ReadList(lines)
	return list
}

func (p *Pattern) matches(name string, folder bool) bool {
	return (folder || !p.folder) && p.glob.Match(name)
}

// Last is the last pattern that matches a file or, in the way of pathspec, a folder above it; nil if none does.
func (l List) Last(file string) *Pattern {
	for i := len(l) - 1; i >= 0; i-- {
		for name, folder := file, false; name != "." && name != "/"; name, folder = path.Dir(name), true {
			if l[i].matches(name, folder) {
				return &l[i]
			}
		}
	}
	return nil
}

// LastAsGit is the pattern that decides in the way of git: what lies in a folder that is left out cannot be kept.
func (l List) LastAsGit(file string) *Pattern {
	parts := strings.Split(file, "/")
	var deciding *Pattern
	for n := 1; n <= len(parts); n++ {
		name := strings.Join(parts[:n], "/")
		for i := len(l) - 1; i >= 0; i-- {
			if l[i].matches(name, n < len(parts)) {
				deciding = &l[i]
				break
			}
		}
		if n < len(parts) && deciding != nil && !deciding.Keep {
			return deciding
		}
	}
	return deciding
}

// A GitIgnore holds the .gitignore files of a folder and of those below it.
type GitIgnore struct{ lists []folderIgnores }

type folderIgnores struct {
	folder string // with a slash at its end; empty for the root
	list   List
}

// Add takes in the text of the file that counts for a folder. What counts for the folders above it comes first. Lines
// that are no patterns leave nothing out, as with git.
func (g *GitIgnore) Add(folder, text string) {
	if folder != "" {
		folder += "/"
	}
	if list, _ := ReadList(strings.Split(text, "\n")); len(list) > 0 {
		g.lists = append(g.lists, folderIgnores{folder, list})
	}
}

// Ignores reports whether a file or a folder is left out, if none of the folders above it is.
func (g *GitIgnore) Ignores(name string, folder bool) bool {
	for i := len(g.lists) - 1; i >= 0; i-- {
		rel, below := strings.CutPrefix(name, g.lists[i].folder)
		if !below {
			continue
		}
		list := g.lists[i].list
		for k := len(list) - 1; k >= 0; k-- {
			if list[k].matches(rel, folder) {
				return !list[k].Keep
			}
		}
	}
	return false
}
