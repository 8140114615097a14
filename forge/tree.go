package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
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
	return made(c), err
}

func made(c git.Commit) Commit {
	return Commit{Hash: c.Hash.String(), Subject: c.Subject(), Author: c.Author, Time: c.When}
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
		out = append(out, made(c))
	}
	return diff, out, nil
}

// maxLogged is how many commits are looked at.
const maxLogged = 3000

// Log lists the commits that changed a file or a folder, or all commits if path is empty, newest first and at most so many.
// As in git's own, a merge that leaves the path as one parent has it leads to that parent alone. It ends where the history was
// fetched to.
func (t *Tree) Log(ctx context.Context, path string, most int) ([]Commit, error) {
	at := func(c git.Commit) (plumbing.Hash, error) {
		e, err := entryAt(c.Tree, path, t.store.Tree)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return e.Hash, err
	}
	var out []Commit
	head, err := t.other(ctx, t.Commit())
	next, seen := []git.Commit{head}, map[plumbing.Hash]bool{head.Hash: true}
	for looked := 0; err == nil && len(next) > 0 && len(out) < most && looked < maxLogged; looked++ {
		newest := slices.MaxFunc(next, func(a, b git.Commit) int { return a.When.Compare(b.When) })
		next = slices.DeleteFunc(next, func(c git.Commit) bool { return c.Hash == newest.Hash })
		var parents []git.Commit
		for _, h := range newest.Parents {
			p, err := t.other(ctx, h.String())
			if errors.Is(err, api.ErrNotFound) { // not fetched
				continue
			}
			if err != nil {
				return nil, err
			}
			parents = append(parents, p)
		}
		changed := path == "" || len(newest.Parents) == 0
		if path != "" {
			now, err := at(newest)
			if err != nil {
				return nil, fmt.Errorf("read the history of %s: %w", path, t.repo.damaged(err))
			}
			changed = changed && !now.IsZero() || len(parents) > 0
			for _, p := range parents {
				was, err := at(p)
				if err != nil {
					return nil, fmt.Errorf("read the history of %s: %w", path, t.repo.damaged(err))
				}
				if was == now {
					changed, parents = false, []git.Commit{p}
					break
				}
			}
		}
		if changed {
			out = append(out, made(newest))
		}
		for _, p := range parents {
			if !seen[p.Hash] {
				seen[p.Hash], next = true, append(next, p)
			}
		}
	}
	return out, err
}

// Between is what a commit changes since another one, as git writes it: the tree's own if to is empty, since the one before it
// if from is. A commit is named by its hash, at least seven digits of it, or HEAD, and ~N leads to the N-th before it.
func (t *Tree) Between(ctx context.Context, from, to string) (string, error) {
	after, err := t.resolve(ctx, cmp.Or(to, "HEAD"))
	if err != nil {
		return "", err
	}
	if from != "" {
		before, err := t.resolve(ctx, from)
		if err != nil {
			return "", err
		}
		from = before.Hash.String()
	}
	diff, _, err := t.at(after).Since(ctx, from, 1)
	return diff.String(), err
}

func (t *Tree) resolve(ctx context.Context, name string) (git.Commit, error) {
	unknown := fmt.Errorf("no commit %q: %w", brief.Bytes(name, 60, "…"), api.ErrNotFound)
	hash, back, before := strings.Cut(strings.Replace(strings.ToLower(name), "^", "~1", 1), "~")
	steps := 0
	if before {
		var err error
		if steps, err = strconv.Atoi(cmp.Or(back, "1")); err != nil || steps > maxLogged {
			return git.Commit{}, unknown
		}
	}
	if hash == "head" {
		hash = t.Commit()
	}
	if len(hash) < 7 || strings.Trim(hash, "0123456789abcdef") != "" {
		return git.Commit{}, unknown
	}
	if !plumbing.IsHash(hash) {
		history, err := t.store.History(t.commit, maxLogged)
		if err != nil {
			return git.Commit{}, fmt.Errorf("read the history of %s: %w", t.commit, t.repo.damaged(err))
		}
		i := slices.IndexFunc(history, func(h plumbing.Hash) bool { return strings.HasPrefix(h.String(), hash) })
		if i < 0 {
			return git.Commit{}, unknown
		}
		hash = history[i].String()
	}
	c, err := t.other(ctx, hash)
	for ; err == nil && steps > 0; steps-- {
		if len(c.Parents) == 0 {
			return git.Commit{}, unknown
		}
		c, err = t.other(ctx, c.Parents[0].String())
	}
	return c, err
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
	e, err := entryAt(t.root, path, func(at plumbing.Hash) ([]git.Entry, error) {
		entries, ok := t.byDir[at]
		if !ok {
			var err error
			if entries, err = t.store.Tree(at); err != nil {
				return nil, err
			}
			t.byDir[at] = entries
		}
		return entries, nil
	})
	if err == nil && !e.IsFile() {
		return git.Entry{}, fs.ErrNotExist
	}
	return e, err
}

// entryAt is what has a path below a tree. List reads one.
func entryAt(tree plumbing.Hash, path string, list func(tree plumbing.Hash) ([]git.Entry, error)) (git.Entry, error) {
	for {
		entries, err := list(tree)
		if err != nil {
			return git.Entry{}, err
		}
		name, below, more := cutPath(path)
		i := slices.IndexFunc(entries, func(e git.Entry) bool { return e.Name == name && (!more || e.IsDir()) })
		switch {
		case i < 0:
			return git.Entry{}, fs.ErrNotExist
		case !more:
			return entries[i], nil
		}
		tree, path = entries[i].Hash, below
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
