package forge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/git"
	"docent/internal/brief"
)

// A Tree is a repository at one commit. Links and submodules are no files: they are not listed and cannot be read.
type Tree struct {
	repo   *repo
	store  *git.Store
	commit plumbing.Hash
	root   plumbing.Hash
	max    int64

	mu    sync.Mutex
	files []api.File
	links []string
	byDir map[plumbing.Hash][]git.Entry // trees that were read
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
	files, links := []api.File{}, []string{}
	sizes := map[plumbing.Hash]int64{} // one file may have many names
	err := t.store.Walk(t.root, "", func(path string, e git.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !e.IsFile() {
			if !e.IsDir() {
				links = append(links, path)
			}
			return nil
		}
		size, ok := sizes[e.Hash]
		if !ok {
			var err error
			if size, err = t.store.Size(e.Hash); err != nil {
				return err
			}
			sizes[e.Hash] = size
		}
		files = append(files, api.File{Path: path, Hash: e.Hash.String(), Size: size})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", t.commit, t.repo.damaged(err))
	}
	t.files, t.links = files, links
	return append([]api.File(nil), files...), nil
}

// Links lists what is no file and no folder: symbolic links and submodules.
func (t *Tree) Links(ctx context.Context) ([]string, error) {
	if _, err := t.Files(ctx); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.links), nil
}

// Read returns a file's content, and fs.ErrNotExist if there is no such file.
func (t *Tree) Read(ctx context.Context, path string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	data, err := t.read(path)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: t.repo.damaged(err)}
	}
	return data, nil
}

func (t *Tree) read(path string) ([]byte, error) {
	if git.CheckPath(path) != nil {
		return nil, fs.ErrNotExist
	}
	e, err := t.find(path)
	if err != nil {
		return nil, err
	}
	size, err := t.store.Size(e.Hash)
	if err != nil {
		return nil, err
	}
	if size > t.max {
		return nil, fmt.Errorf("%d bytes are more than the limit of %d", size, t.max)
	}
	return t.store.Blob(e.Hash)
}

// Message is what the tree's commit says about itself.
func (t *Tree) Message(ctx context.Context) (string, error) {
	c, err := t.other(ctx, t.Commit())
	return strings.TrimSpace(c.Message), err
}

// Made is what the tree's commit says of how it was made.
func (t *Tree) Made(ctx context.Context) (Commit, error) {
	c, err := t.other(ctx, t.Commit())
	return Commit{Hash: t.Commit(), Subject: c.Subject(), Author: c.Author, Time: c.When}, err
}

// Parent is the commit that a commit was made on: the first of its parents. It fails with api.ErrNotFound if the
// commit is not stored or has none.
func (t *Tree) Parent(ctx context.Context, commit string) (string, error) {
	c, err := t.other(ctx, commit)
	if err != nil {
		return "", err
	}
	if len(c.Parents) == 0 {
		return "", fmt.Errorf("commit %s has no parent: %w", commit, api.ErrNotFound)
	}
	return c.Parents[0].String(), nil
}

// Since is what the tree's commit changes since another commit of the repository, and the commits that do, newest first and
// at most so many. If from is empty or not stored, it is what the commit changes by itself.
func (t *Tree) Since(ctx context.Context, from string, most int) (Diff, []Commit, error) {
	was, err := t.other(ctx, from)
	if errors.Is(err, api.ErrNotFound) {
		parent, none := t.Parent(ctx, t.Commit())
		if was, err = t.other(ctx, parent); none != nil {
			was, err = git.Commit{}, nil
		}
	}
	if errors.Is(err, api.ErrNotFound) { // the history begins here
		return Diff{}, nil, nil
	}
	if err != nil {
		return Diff{}, nil, err
	}
	diff, err := t.store.Diff(was.Tree, t.root)
	if err != nil {
		return Diff{}, nil, fmt.Errorf("compare %s: %w", t.commit, t.repo.damaged(err))
	}
	history, err := t.store.History(t.commit, most)
	if err != nil {
		return Diff{}, nil, fmt.Errorf("read the history of %s: %w", t.commit, t.repo.damaged(err))
	}
	var out []Commit
	for _, h := range history {
		if h == was.Hash {
			break
		}
		c, err := t.other(ctx, h.String())
		if errors.Is(err, api.ErrNotFound) {
			break
		}
		if err != nil {
			return Diff{}, nil, err
		}
		out = append(out, Commit{Hash: h.String(), Subject: c.Subject(), Author: c.Author, Time: c.When})
	}
	return diff, out, nil
}

// FilesAt lists the files of another commit of the repository.
func (t *Tree) FilesAt(ctx context.Context, commit string) ([]api.File, error) {
	c, err := t.other(ctx, commit)
	if err != nil {
		return nil, err
	}
	return t.at(c).Files(ctx)
}

// ReadAt reads a file at another commit of the repository.
func (t *Tree) ReadAt(ctx context.Context, commit, path string) ([]byte, error) {
	c, err := t.other(ctx, commit)
	if err != nil {
		return nil, err
	}
	return t.at(c).Read(ctx, path)
}

func (t *Tree) other(ctx context.Context, hash string) (git.Commit, error) {
	if err := ctx.Err(); err != nil {
		return git.Commit{}, err
	}
	id := plumbing.NewHash(hash)
	there, err := t.store.Has(id)
	if err != nil {
		return git.Commit{}, t.repo.damaged(err)
	}
	if !plumbing.IsHash(hash) || !there {
		return git.Commit{}, fmt.Errorf("no commit %q: %w", brief.Bytes(hash, 60, "…"), api.ErrNotFound)
	}
	c, err := t.store.Commit(id)
	if err != nil {
		return git.Commit{}, fmt.Errorf("read commit %s: %w", hash, t.repo.damaged(err))
	}
	return c, nil
}

func (t *Tree) at(c git.Commit) *Tree {
	return &Tree{repo: t.repo, store: t.store, commit: c.Hash, root: c.Tree, max: t.max,
		byDir: map[plumbing.Hash][]git.Entry{}}
}

// find goes down the trees, keeping those that it met: a reader of one page reads its neighbors too.
func (t *Tree) find(path string) (git.Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, rest := t.root, path
	for {
		entries, ok := t.byDir[at]
		if !ok {
			var err error
			if entries, err = t.store.Tree(at); err != nil {
				return git.Entry{}, err
			}
			t.byDir[at] = entries
		}
		name, below, more := cutPath(rest)
		found := false
		for _, e := range entries {
			if e.Name != name {
				continue
			}
			switch {
			case !more && e.IsFile():
				return e, nil
			case more && e.IsDir():
				at, rest, found = e.Hash, below, true
			}
			break
		}
		if !found {
			return git.Entry{}, fs.ErrNotExist
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

// Tree is the repository at a commit.
func (h *Hub) Tree(ctx context.Context, p api.Project, hash string) (*Tree, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := h.repo(p.ID)
	if err != nil {
		return nil, err
	}
	if r.suspect.Load() {
		if _, _, err := h.Sync(ctx, p, nil); err != nil {
			return nil, err
		}
	}
	st, err := h.holding(ctx, r, p, hash)
	if err != nil {
		return nil, err
	}
	if !plumbing.IsHash(hash) {
		return nil, fmt.Errorf("read %s: %q is no commit: %w", p.ID, brief.Bytes(hash, 60, "…"), api.ErrNotFound)
	}
	id := plumbing.NewHash(hash)
	there, err := st.Has(id)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.ID, r.damaged(err))
	}
	if !there {
		return nil, fmt.Errorf("read %s: no commit %s: %w", p.ID, hash, api.ErrNotFound)
	}
	c, err := st.Commit(id)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.ID, r.damaged(err))
	}
	return &Tree{repo: r, store: st, commit: id, root: c.Tree, max: h.o.MaxFile,
		byDir: map[plumbing.Hash][]git.Entry{}}, nil
}
