package forge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// salvage puts a damaged repository aside and makes a new one with every branch that is sound in all it reaches. What
// came from the source comes again with the next import or fetch; the damaged files stay for a person to look at.
func (h *Hub) salvage(r *repo) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	dir := h.path(r.project)
	aside := fmt.Sprintf("%s.damaged-%d", strings.TrimSuffix(dir, ".git"), h.o.Now().UnixNano())
	if err := os.Rename(dir, aside); err != nil {
		return fmt.Errorf("put the damaged repository aside: %w", err)
	}
	r.store, r.known = nil, nil
	old, err := openStore(aside)
	head := "main"
	if err == nil {
		if name, err := old.defaultBranch(); err == nil {
			head = name
		}
	}
	if createErr := createStore(dir, head); createErr != nil {
		return fmt.Errorf("create the repository anew: %w", createErr)
	}
	if err != nil {
		return nil // nothing in it can be read
	}
	fresh, err := openStore(dir)
	if err != nil {
		return err
	}
	if b, err := os.ReadFile(old.dir + "/shallow"); err == nil {
		if err := replaceFile(fresh.dir+"/shallow", b); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	refs, err := old.refs()
	if err != nil {
		h.o.Log.Error("references unreadable", "project", r.project, "error", err)
	}
	for name, hash := range refs {
		if err := fresh.copyFrom(old, hash); err != nil {
			h.o.Log.Error("reference lost to damage", "project", r.project, "reference", name, "error", err)
			continue
		}
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

// copyFrom copies a commit with all that it reaches; each object is checked on the way.
func (s *store) copyFrom(old *store, head plumbing.Hash) error {
	shallow, err := old.shallow()
	if err != nil {
		return err
	}
	var (
		objects []object
		size    int
		done    = map[plumbing.Hash]bool{}
	)
	take := func(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
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
		if !shallow[hash] {
			queue = append(queue, c.parents...)
		}
	}
	return s.write(objects)
}
