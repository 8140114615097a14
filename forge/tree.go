package forge

import (
	"context"
	"fmt"
	"io/fs"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
)

// A Tree is a repository at one commit. Links and submodules are no files: they are not listed and cannot be read.
type Tree struct {
	repo   *repo
	store  *store
	commit plumbing.Hash
	root   plumbing.Hash
	max    int64

	mu    sync.Mutex
	files []api.File
	byDir map[plumbing.Hash][]entry // trees that were read
}

// Commit names the commit that the tree belongs to.
func (t *Tree) Commit() string { return t.commit.String() }

// Files lists all files in git's order.
func (t *Tree) Files(ctx context.Context) ([]api.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.files != nil {
		return append([]api.File(nil), t.files...), nil
	}
	files := []api.File{}
	err := t.store.walkTree(t.root, "", func(path string, e entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !e.isFile() {
			return nil
		}
		size, err := t.store.size(e.hash)
		if err != nil {
			return err
		}
		files = append(files, api.File{Path: path, Hash: e.hash.String(), Size: size})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", t.commit, t.repo.damaged(err))
	}
	t.files = files
	return append([]api.File(nil), files...), nil
}

// Read returns a file's content, and fs.ErrNotExist where there is no such file.
func (t *Tree) Read(ctx context.Context, path string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if checkPath(path) != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	e, err := t.find(path)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: t.repo.damaged(err)}
	}
	size, err := t.store.size(e.hash)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: t.repo.damaged(err)}
	}
	if size > t.max {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%d bytes are more than the limit of %d", size, t.max)}
	}
	data, err := t.store.read(plumbing.BlobObject, e.hash)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: t.repo.damaged(err)}
	}
	return data, nil
}

// find goes down the trees, keeping those that it met: whoever reads one page reads its neighbours too.
func (t *Tree) find(path string) (entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, rest := t.root, path
	for {
		entries, ok := t.byDir[at]
		if !ok {
			var err error
			if entries, err = t.store.tree(at); err != nil {
				return entry{}, err
			}
			t.byDir[at] = entries
		}
		name, below, more := cutPath(rest)
		found := false
		for _, e := range entries {
			if e.name != name {
				continue
			}
			switch {
			case !more && e.isFile():
				return e, nil
			case more && e.isDir():
				at, rest, found = e.hash, below, true
			}
			break
		}
		if !found {
			return entry{}, fs.ErrNotExist
		}
	}
}

func cutPath(p string) (name, below string, more bool) {
	for i := range len(p) {
		if p[i] == '/' {
			return p[:i], p[i+1:], true
		}
	}
	return p, "", false
}
