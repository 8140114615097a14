package git

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"docent/forge/failure"
)

// Edit makes the tree that the changes lead to, and the objects that it needs beyond those of the old one. Only the
// trees on the changed paths are rewritten; what is not changed keeps its content and its mode. All changes are
// possible and harmless, or none is made.
func (s *Store) Edit(
	root plumbing.Hash, docs string, changes []Change, maxFile int64,
) (plumbing.Hash, []Object, error) {
	top := &folder{store: s, hash: root}
	seen := map[string]bool{}
	for _, c := range changes {
		if err := CheckPath(c.Path); err != nil {
			return plumbing.ZeroHash, nil, err
		}
		if docs != "" && !strings.HasPrefix(c.Path, docs+"/") {
			return plumbing.ZeroHash, nil, fmt.Errorf("%w: %q lies outside the documentation folder %q", failure.ErrRefused,
				c.Path, docs)
		}
		if seen[c.Path] {
			return plumbing.ZeroHash, nil, fmt.Errorf("%w: %q is changed twice", failure.ErrRefused, c.Path)
		}
		seen[c.Path] = true
		if int64(len(c.Content)) > maxFile {
			return plumbing.ZeroHash, nil, fmt.Errorf("%w: %q would have %d bytes, more than the limit of %d",
				failure.ErrRefused, c.Path, len(c.Content), maxFile)
		}
	}
	// Deletions come first: a file may make way for a folder, or for another spelling of its name.
	var objects []Object
	for _, deleting := range []bool{true, false} {
		for _, c := range changes {
			if c.Delete != deleting {
				continue
			}
			var err error
			if c.Delete {
				err = top.remove(strings.Split(c.Path, "/"))
			} else {
				blob := NewBlob(c.Content)
				objects = append(objects, blob)
				err = top.put(strings.Split(c.Path, "/"), blob.Hash)
			}
			if errors.Is(err, ErrDamaged) {
				return plumbing.ZeroHash, nil, err
			}
			if err != nil {
				return plumbing.ZeroHash, nil, fmt.Errorf("%w: %q %w", failure.ErrRefused, c.Path, err)
			}
		}
	}
	hash, objects, err := top.build(objects)
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	if hash.IsZero() { // git has no empty folders, but an empty root
		empty := NewTree(nil)
		return empty.Hash, append(objects, empty), nil
	}
	return hash, objects, nil
}

// A folder is a tree that is read when it is needed and written when it was changed.
type folder struct {
	store   *Store
	hash    plumbing.Hash
	entries []Entry
	below   map[string]*folder // those of the entries that were opened
	open    bool
	changed bool
}

func (f *folder) load() error {
	if f.open {
		return nil
	}
	if !f.hash.IsZero() {
		entries, err := f.store.Tree(f.hash)
		if err != nil {
			return err
		}
		f.entries = entries
	}
	f.below, f.open = map[string]*folder{}, true
	return nil
}

func (f *folder) index(name string) int {
	return slices.IndexFunc(f.entries, func(e Entry) bool { return e.Name == name })
}

// clash finds an entry that only differs in the case of its letters.
func (f *folder) clash(name string) error {
	folded := Fold(name)
	for _, e := range f.entries {
		if e.Name != name && Fold(e.Name) == folded {
			return fmt.Errorf("differs from the existing %q only in the case of letters", e.Name)
		}
	}
	return nil
}

func (f *folder) put(path []string, blob plumbing.Hash) error {
	if err := f.load(); err != nil {
		return err
	}
	i := f.index(path[0])
	if i < 0 {
		if err := f.clash(path[0]); err != nil {
			return err
		}
		e := Entry{Name: path[0], Mode: filemode.Regular, Hash: blob}
		if len(path) > 1 {
			e.Mode, e.Hash = filemode.Dir, plumbing.ZeroHash
		}
		f.entries = append(f.entries, e)
		i = len(f.entries) - 1
	}
	f.changed = true
	e := &f.entries[i]
	if len(path) == 1 {
		if !e.IsFile() {
			return errors.New("is no file")
		}
		e.Hash = blob
		return nil
	}
	if !e.IsDir() {
		return fmt.Errorf("goes through %q, which is no folder", e.Name)
	}
	return f.child(*e).put(path[1:], blob)
}

func (f *folder) remove(path []string) error {
	if err := f.load(); err != nil {
		return err
	}
	i := f.index(path[0])
	if i < 0 {
		return fs.ErrNotExist
	}
	f.changed = true
	e := f.entries[i]
	if len(path) > 1 {
		if !e.IsDir() {
			return fmt.Errorf("goes through %q, which is no folder", e.Name)
		}
		sub := f.child(e)
		if err := sub.remove(path[1:]); err != nil {
			return err
		}
		if len(sub.entries) > 0 {
			return nil
		}
	} else if !e.IsFile() {
		return errors.New("is no file")
	}
	f.entries = slices.Delete(f.entries, i, i+1)
	delete(f.below, e.Name)
	return nil
}

func (f *folder) child(e Entry) *folder {
	sub := f.below[e.Name]
	if sub == nil {
		sub = &folder{store: f.store, hash: e.Hash}
		f.below[e.Name] = sub
	}
	return sub
}

// build computes the folder's new hash; zero if nothing is left in it.
func (f *folder) build(objects []Object) (plumbing.Hash, []Object, error) {
	if !f.changed {
		return f.hash, objects, nil
	}
	kept := f.entries[:0]
	for _, e := range f.entries {
		if sub := f.below[e.Name]; sub != nil {
			var err error
			if e.Hash, objects, err = sub.build(objects); err != nil {
				return plumbing.ZeroHash, nil, err
			}
			if e.Hash.IsZero() {
				continue
			}
		}
		kept = append(kept, e)
	}
	f.entries = kept
	if len(kept) == 0 {
		return plumbing.ZeroHash, objects, nil
	}
	o := NewTree(kept)
	return o.Hash, append(objects, o), nil
}

// A Change is one file as it is to be.
type Change struct {
	Path    string // relative to the repository's root, slash-separated
	Content []byte
	Delete  bool
}
