package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"docent/agent"
)

// What a job keeps of an edit's diff, for who follows it.
const (
	maxDiff       = 128 << 10
	maxDryDiff    = 1 << 20 // of a dry run, whose one purpose it is
	maxDiffedFile = 1 << 20
	maxFiles      = 1000
)

// A FileChange is what an edit does to one file. Its lines are counted if both sides are text.
type FileChange struct {
	Path    string `cbor:"1,keyasint" json:"path"`
	From    string `cbor:"2,keyasint,omitempty" json:"from,omitempty"` // former path if the file was moved
	Status  string `cbor:"3,keyasint" json:"status"`                   // "added", "modified", "deleted" or "moved"
	Added   int    `cbor:"4,keyasint,omitempty" json:"added"`          // lines
	Removed int    `cbor:"5,keyasint,omitempty" json:"removed"`
}

// describe compares an edit with the tree that it was made on.
func describe(ctx context.Context, tree agent.Tree, changes []agent.Change, limit int) ([]FileChange, string, error) {
	var files []FileChange
	var all strings.Builder
	left := 0
	moved := make(map[string]bool)
	for _, c := range changes {
		if c.From != "" && !c.Delete {
			moved[c.From] = true
		}
	}
	for i, c := range changes {
		if c.Delete && moved[c.Path] {
			continue // it shows where the file is now
		}
		if len(files) == maxFiles {
			left += len(changes) - i
			break
		}
		f := FileChange{Path: c.Path, Status: "modified"}
		before, there, err := former(ctx, tree, c)
		if err != nil {
			return nil, "", err
		}
		switch {
		case c.Delete:
			f.Status = "deleted"
		case c.From != "" && c.From != c.Path:
			f.Status, f.From = "moved", c.From
		case !there:
			f.Status = "added"
		}
		text, ok := f.diff(before, c.Content)
		files = append(files, f)
		if !ok || all.Len()+len(text) > limit {
			left++
			continue
		}
		all.WriteString(text)
	}
	if left > 0 {
		fmt.Fprintf(&all, "# %d more files are not shown\n", left)
	}
	return files, all.String(), nil
}

// former is the file as it was.
func former(ctx context.Context, tree agent.Tree, c agent.Change) (content []byte, there bool, err error) {
	path := c.Path
	if c.From != "" {
		path = c.From
	}
	content, err = tree.Read(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("compare %s: %w", path, err)
	}
	return content, true, nil
}

// diff counts the lines and makes the text; it has none for what is no text, or long.
func (f *FileChange) diff(before, after []byte) (string, bool) {
	if len(before)+len(after) > maxDiffedFile || bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(after, 0) >= 0 {
		return "", false
	}
	from, to := "a/"+f.Path, "b/"+f.Path
	switch f.Status {
	case "added":
		from = "/dev/null"
	case "deleted":
		to = "/dev/null"
	case "moved":
		from = "a/" + f.From
	}
	text := udiff.Unified(from, to, string(before), string(after))
	body := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "@@"):
			body = true
		case body && line[0] == '+':
			f.Added++
		case body && line[0] == '-':
			f.Removed++
		}
	}
	if f.Status == "moved" {
		text = fmt.Sprintf("rename from %s\nrename to %s\n", f.From, f.Path) + text
	}
	return text, true
}
