package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/forge/failure"
)

// Ref is what a reference names; zero if there is none.
func (s *Store) Ref(name string) (plumbing.Hash, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hash, err := s.readRef(name)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("reference %s: %w", name, err)
	}
	return hash, nil
}

func (s *Store) readRef(name string) (plumbing.Hash, error) {
	text, err := s.note(name)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if text == nil {
		packed, err := s.packedRefs()
		return packed[name], err
	}
	return parseRef(text)
}

func parseRef(text []byte) (plumbing.Hash, error) {
	switch id := strings.TrimSpace(string(text)); {
	case id == "":
		return plumbing.ZeroHash, fmt.Errorf("%w: it is empty", ErrDamaged)
	case !plumbing.IsHash(id):
		return plumbing.ZeroHash, fmt.Errorf("%w: it names no object", ErrDamaged)
	default:
		return plumbing.NewHash(id), nil
	}
}

// packedRefs are the references that git has put into one file; only git does so.
func (s *Store) packedRefs() (map[string]plumbing.Hash, error) {
	text, err := s.note("packed-refs")
	if err != nil {
		return nil, err
	}
	out := map[string]plumbing.Hash{}
	for line := range strings.Lines(string(text)) {
		id, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && plumbing.IsHash(id) {
			out[name] = plumbing.NewHash(id)
		}
	}
	return out, nil
}

// refs are all references, and what is wrong with those that are damaged.
func (s *Store) refs() (refs map[string]plumbing.Hash, damaged map[string]error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refs, err = s.packedRefs(); err != nil {
		return nil, nil, err
	}
	damaged = map[string]error{}
	err = filepath.WalkDir(filepath.Join(s.dir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if missing(err) {
			return nil
		}
		if err != nil {
			return Passing(err)
		}
		if d.IsDir() || strings.HasSuffix(path, ".lock") {
			return nil
		}
		rel, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		switch hash, err := s.readRef(name); {
		case errors.Is(err, ErrDamaged):
			delete(refs, name)
			damaged[name] = err
		case err != nil:
			return err
		default:
			refs[name] = hash
		}
		return nil
	})
	return refs, damaged, err
}

// Branches are the names of the branches in a folder of branches, in order.
func (s *Store) Branches(folder string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	packed, err := s.packedRefs()
	if err != nil {
		return nil, err
	}
	var out []string
	for name := range packed {
		if name, ok := strings.CutPrefix(name, "refs/heads/"+folder+"/"); ok {
			out = append(out, folder+"/"+name)
		}
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, "refs", "heads", filepath.FromSlash(folder)))
	if err != nil && !missing(err) {
		return nil, Passing(err)
	}
	for _, e := range entries {
		if !e.IsDir() && !strings.HasSuffix(e.Name(), ".lock") {
			out = append(out, folder+"/"+e.Name())
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Head is the commit that a branch points at; zero if there is no such branch.
func (s *Store) Head(branch string) (plumbing.Hash, error) {
	return s.Ref("refs/heads/" + branch)
}

// SetRef moves a reference from old to new, under git's own lock file, and syncs it.
func (s *Store) SetRef(name string, old, new plumbing.Hash) error {
	if err := s.moveRef(name, old, new); err != nil {
		return unwritten(fmt.Errorf("set %s: %w", name, err))
	}
	return nil
}

func (s *Store) moveRef(name string, old, new plumbing.Hash) error {
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	made, err := s.disk.mkdirAll(filepath.Dir(path))
	if err != nil {
		return err
	}
	if err := s.disk.at("create", path+".lock"); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	now, err := s.Ref(name)
	if err == nil && now != old {
		err = failure.ErrMoved
	}
	if err == nil {
		_, err = (diskWriter{s.disk, lock}).Write([]byte(new.String() + "\n"))
	}
	if err == nil {
		err = s.disk.at("sync", lock.Name())
	}
	if err == nil {
		err = lock.Sync()
	}
	err = errors.Join(err, lock.Close())
	if err == nil {
		err = s.disk.Rename(lock.Name(), path)
	}
	if err != nil {
		return errors.Join(err, s.disk.remove(lock.Name()))
	}
	for _, dir := range append(made, filepath.Dir(path)) {
		if err := s.disk.SyncFolder(dir); err != nil {
			return err
		}
	}
	return nil
}

// SetDefault makes branch the one that HEAD names.
func (s *Store) SetDefault(branch string) error {
	want := []byte("ref: refs/heads/" + branch + "\n")
	if have, err := os.ReadFile(filepath.Join(s.dir, "HEAD")); err == nil && bytes.Equal(have, want) {
		return nil
	}
	return s.disk.replaceFile(filepath.Join(s.dir, "HEAD"), want)
}

// Default is the one that HEAD names.
func (s *Store) Default() (string, error) {
	b, err := s.disk.readFile(filepath.Join(s.dir, "HEAD"))
	if err != nil {
		return "", sorted(err)
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "ref: refs/heads/")
	if !ok || CheckBranch(branch) != nil {
		return "", fmt.Errorf("%w: HEAD names no branch", ErrDamaged)
	}
	return branch, nil
}

// Shallow lists the commits whose parents are left out on purpose.
func (s *Store) Shallow() (map[plumbing.Hash]bool, error) {
	b, err := s.note(shallowFile)
	if err != nil {
		return nil, err
	}
	out := map[plumbing.Hash]bool{}
	for _, line := range strings.Fields(string(b)) {
		out[plumbing.NewHash(line)] = true
	}
	return out, nil
}

// SetShallow replaces what Shallow lists.
func (s *Store) SetShallow(hashes map[plumbing.Hash]bool) error {
	lines := make([]string, 0, len(hashes))
	for h := range hashes {
		lines = append(lines, h.String()+"\n")
	}
	slices.Sort(lines) // the same list is the same file
	return s.disk.replaceFile(filepath.Join(s.dir, shallowFile), []byte(strings.Join(lines, "")))
}

// Refs are all references.
func (s *Store) Refs() (map[string]plumbing.Hash, error) {
	refs, damaged, err := s.refs()
	for name, why := range damaged {
		err = errors.Join(err, fmt.Errorf("reference %s: %w", name, why))
	}
	return refs, err
}
