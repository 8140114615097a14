// Package codebase provides a repository's code as jobs and checks may read it: that of its source's folder, without what
// .gitignore files name and the source leaves out, files that secrets are kept in, and what looks like a secret.
package codebase

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"docent/agent/affected"
	"docent/agent/check"
	"docent/agent/workspace"
	"docent/api"
	"docent/internal/glob"
)

// Bounds on what is read.
const (
	MaxFile    = 1 << 20  // bytes of a file
	MaxRead    = 64 << 20 // bytes of all files that one question is answered from
	maxIgnore  = 64 << 10 // bytes of a .gitignore file
	maxIgnores = 500
)

// A Tree is a repository at one commit.
type Tree interface {
	workspace.Tree
	History
}

// History is what a repository tells of its commits, as far as they were fetched.
type History interface {
	// Log lists the commits that changed a file or a folder, newest first, or all if path is empty.
	Log(ctx context.Context, path string, most int) ([]api.Commit, error)
	// Between is what a commit changes since another one, as git writes it.
	Between(ctx context.Context, from, to string) (string, error)
}

// A Code is the code of one source at one commit.
type Code struct {
	Tree
	Files []api.File // in order
	Dir   string     // all of it lies below; empty for the root

	ignored          glob.GitIgnore
	include, exclude glob.List
}

// Open lists the code of a source.
func Open(ctx context.Context, tree Tree, source api.Project) (*Code, error) {
	files, err := tree.Files(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", tree.Commit(), err)
	}
	c := &Code{Tree: tree, Dir: strings.Trim(path.Clean("/"+source.DocsDir), "/"),
		include: glob.NewList(source.Include...), exclude: glob.NewList(source.Exclude...)}
	var lists []string
	for _, f := range files {
		if path.Base(f.Path) == ".gitignore" && f.Size <= maxIgnore && len(lists) < maxIgnores {
			lists = append(lists, f.Path)
		}
	}
	slices.SortStableFunc(lists, func(a, b string) int { return cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")) })
	for _, p := range lists {
		text, err := tree.Read(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", p, err)
		}
		c.ignored.Add(strings.TrimSuffix(strings.TrimSuffix(p, ".gitignore"), "/"), string(text))
	}
	c.Files = slices.DeleteFunc(files, func(f api.File) bool { return !c.Shows(f.Path) })
	return c, nil
}

// Shows reports whether a file may be read, whether it is there or not.
func (c *Code) Shows(file string) bool {
	rel := file
	if c.Dir != "" {
		rel = strings.TrimPrefix(file, c.Dir+"/")
	}
	if c.Dir != "" && rel == file || workspace.CleanPath(file) != nil || workspace.Private(rel) || affected.Secret(file) {
		return false
	}
	for i := range len(file) {
		if file[i] == '/' && c.ignored.Ignores(file[:i], true) {
			return false
		}
	}
	if by := c.include.LastAsGit(rel); len(c.include) > 0 && (by == nil || by.Keep) {
		return false
	}
	by := c.exclude.LastAsGit(rel)
	return (by == nil || by.Keep) && !c.ignored.Ignores(file, false)
}

// Find is where a file stands among the files, or would.
func (c *Code) Find(file string) (int, bool) {
	return slices.BinarySearchFunc(c.Files, file, func(f api.File, p string) int { return strings.Compare(f.Path, p) })
}

// Text is a file's text without what looks like a secret. It is nil if the file is not shown, is too large or is no text.
func (c *Code) Text(ctx context.Context, file string) ([]byte, error) {
	i, ok := c.Find(file)
	if !ok || c.Files[i].Size > MaxFile {
		return nil, nil
	}
	data, err := c.Read(ctx, file)
	if err != nil || !workspace.IsText(data) {
		return nil, err
	}
	return []byte(check.WithoutSecrets(string(data))), nil
}

// Diff is a diff without files that are not shown, and without what looks like a secret.
func (c *Code) Diff(text string) string { return check.WithoutSecrets(affected.Only(text, c.Shows)) }

// Alive reports whether a name stands in the code once a change is made to it, in files that are neither pages nor tests. Docs
// is the folder of the documentation, if it lies here too.
func (c *Code) Alive(ctx context.Context, change affected.Diff, docs string) func(name string) bool {
	texts := sync.OnceValue(func() (out [][]byte) {
		touched := map[string]*affected.File{} // by the names before the change
		for i := range change.Files {
			f := &change.Files[i]
			touched[cmp.Or(f.Old, f.New)] = f
		}
		total := int64(0)
		take := func(file string, text []byte) {
			if c.Shows(file) && affected.IsCode(file) && (docs == "" || !strings.HasPrefix(file, docs+"/")) {
				total += int64(len(text))
				out = append(out, text)
			}
		}
		for _, f := range c.Files {
			made := touched[f.Path]
			delete(touched, f.Path)
			if made != nil && made.New == "" || f.Size > MaxFile || total+f.Size > MaxRead {
				continue
			}
			text, err := c.Read(ctx, f.Path)
			switch {
			case err != nil:
			case made == nil:
				take(f.Path, text)
			default:
				take(made.New, made.After(text))
			}
		}
		for _, f := range touched {
			take(f.Path(), f.After(nil))
		}
		return out
	})
	return func(name string) bool {
		return slices.ContainsFunc(texts(), func(text []byte) bool { return holdsWord(text, name) })
	}
}

// holdsWord reports whether a name stands in a text, and not within a longer one.
func holdsWord(text []byte, name string) bool {
	within := func(b byte) bool {
		return b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
	}
	for at := 0; name != ""; {
		i := bytes.Index(text[at:], []byte(name))
		if i < 0 {
			return false
		}
		i += at
		at = i + len(name)
		if (i == 0 || !within(text[i-1])) && (at == len(text) || !within(text[at])) {
			return true
		}
	}
	return false
}
