package forge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
)

// salvage puts a damaged repository aside and makes a new one. What the source still has is taken from there, the rest
// from the damaged one as far as it is sound; a branch is kept where all that it reaches is found. The damaged files stay
// for a person to look at.
func (h *Hub) salvage(ctx context.Context, r *repo, p api.Project) error {
	r.packing.Lock() // it works by names of files, which will be others
	defer r.packing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	dir := h.path(r.project)
	aside := fmt.Sprintf("%s.damaged-%d", strings.TrimSuffix(dir, ".git"), h.o.Now().UnixNano())
	if err := os.Rename(dir, aside); err != nil {
		return fmt.Errorf("put the damaged repository aside: %w", err)
	}
	r.store, r.known = nil, nil
	head := "main"
	old, err := openStore(aside)
	if err == nil {
		if name, err := old.defaultBranch(); err == nil {
			head = name
		}
	}
	if err := createStore(dir, head); err != nil {
		return fmt.Errorf("create the repository anew: %w", err)
	}
	if old == nil {
		return nil // nothing in it can be read
	}
	fresh, err := openStore(dir)
	if err != nil {
		return err
	}
	if err := h.refill(ctx, fresh, p); err != nil {
		if ctx.Err() != nil {
			return err
		}
		h.o.Log.Warn("the source did not help to mend the repository", "project", r.project, "error", err)
	}
	return h.carryOver(old, fresh, r.project)
}

// refill stores what the source holds now, without a reference to it: contents have the same names wherever they come from.
func (h *Hub) refill(ctx context.Context, st *store, p api.Project) error {
	src, err := resolve(p)
	if err != nil {
		return err
	}
	if src.kind == gitRemote {
		remote, err := h.dial(ctx, src, p)
		if err != nil {
			return err
		}
		_, _, _, err = remote.fetch(ctx, st, p.Branch, nil)
		return err
	}
	root, err := os.OpenRoot(src.path)
	if err != nil {
		return err
	}
	defer root.Close()
	im := &importer{store: st, root: root, max: h.o.MaxFile, limit: h.o.MaxFiles, now: h.o.Now()}
	if err := im.track(plumbing.ZeroHash, src); err != nil {
		return err
	}
	if err := im.list(ctx, "", false); err != nil {
		return err
	}
	if err := im.read(ctx, func(string) {}); err != nil {
		return err
	}
	_, err = im.tree()
	return err
}

// carryOver copies the references that are sound, and the write-back that may be under way.
func (h *Hub) carryOver(old, fresh *store, project api.ProjectID) error {
	cut, err := fresh.shallow()
	if err != nil {
		return err
	}
	if cut == nil {
		cut = map[plumbing.Hash]bool{}
	}
	if before, err := old.shallow(); err == nil {
		maps.Copy(cut, before)
	}
	refs, err := old.refs()
	if err != nil {
		h.o.Log.Error("references unreadable", "project", project, "error", err)
	}
	sound := map[string]plumbing.Hash{}
	for name, hash := range refs {
		if err := fresh.copyFrom(old, hash, cut); err != nil {
			h.o.Log.Error("reference lost to damage", "project", project, "reference", name, "error", err)
			continue
		}
		sound[name] = hash
	}
	for hash := range cut { // the history ends where the parents are not there, and nowhere else
		c, err := fresh.commit(hash)
		if err != nil {
			delete(cut, hash)
			continue
		}
		whole := true
		for _, p := range c.parents {
			whole = whole && fresh.has(p)
		}
		if whole {
			delete(cut, hash)
		}
	}
	if len(cut) > 0 {
		if err := fresh.setShallow(cut); err != nil {
			return err
		}
	} else if err := os.Remove(filepath.Join(fresh.dir, "shallow")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if b, err := os.ReadFile(filepath.Join(old.dir, intentFile)); err == nil {
		if err := replaceFile(filepath.Join(fresh.dir, intentFile), b); err != nil {
			return err
		}
	}
	for name, hash := range sound {
		if err := fresh.setRef(name, plumbing.ZeroHash, hash); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) refs() (map[string]plumbing.Hash, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	iter, err := s.sto.IterReferences()
	if err != nil {
		return nil, err
	}
	out := map[string]plumbing.Hash{}
	err = iter.ForEach(func(r *plumbing.Reference) error {
		if r.Type() == plumbing.HashReference && strings.HasPrefix(r.Name().String(), "refs/") {
			out[r.Name().String()] = r.Hash()
		}
		return nil
	})
	return out, err
}

// copyFrom copies what a commit reaches and is not there yet; each object is checked on the way. Parents of the commits
// in cut may be missing.
func (s *store) copyFrom(old *store, head plumbing.Hash, cut map[plumbing.Hash]bool) error {
	var (
		objects []object
		size    int
		done    = map[plumbing.Hash]bool{}
	)
	take := func(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
		if s.has(hash) {
			done[hash] = true
			return s.read(kind, hash)
		}
		data, err := old.read(kind, hash)
		if err != nil {
			return nil, err
		}
		done[hash] = true
		objects = append(objects, object{kind: kind, hash: hash, data: data})
		if size += len(data); size > importBatch {
			if err := s.write(objects); err != nil {
				return nil, err
			}
			objects, size = nil, 0
		}
		return data, nil
	}
	var takeTree func(hash plumbing.Hash) error
	takeTree = func(hash plumbing.Hash) error {
		if done[hash] {
			return nil
		}
		data, err := take(plumbing.TreeObject, hash)
		if err != nil {
			return err
		}
		entries, err := decodeTree(data)
		if err != nil {
			return err
		}
		for _, e := range entries {
			switch {
			case done[e.hash]:
			case e.isDir():
				err = takeTree(e.hash)
			case e.mode.IsFile():
				_, err = take(plumbing.BlobObject, e.hash)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	queue := []plumbing.Hash{head}
	for len(queue) > 0 {
		hash := queue[0]
		queue = queue[1:]
		if done[hash] {
			continue
		}
		data, err := take(plumbing.CommitObject, hash)
		if err != nil {
			return err
		}
		c, err := decodeCommit(hash, data)
		if err != nil {
			return err
		}
		if err := takeTree(c.tree); err != nil {
			return err
		}
		for _, p := range c.parents {
			if _, _, missing := old.load(p); cut[hash] && missing != nil && !s.has(p) {
				continue
			}
			queue = append(queue, p)
		}
	}
	return s.write(objects)
}
