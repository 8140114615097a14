package git

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/forge/failure"
)

// copyFrom copies what a commit reaches and is not there yet; each object is checked on the way. From itself, a
// repository copies nothing and checks all. Parents of the commits in cut may be missing: the history goes on where they
// can be had with all that they reach, and ends there otherwise.
func (s *Store) copyFrom(old *Store, head plumbing.Hash, cut map[plumbing.Hash]bool) error {
	err := s.copyHistory(old, head, cut, true)
	if len(cut) > 0 && errors.Is(err, errMissing) {
		return s.copyHistory(old, head, cut, false)
	}
	return err
}

// copyHistory goes beyond the commits in cut if it may, and to them otherwise.
func (s *Store) copyHistory(old *Store, head plumbing.Hash, cut map[plumbing.Hash]bool, beyond bool) error {
	c := copier{from: old, to: s, done: map[plumbing.Hash]bool{}}
	if err := c.copy(head, cut, beyond); err != nil {
		return err
	}
	return s.Write(c.objects)
}

// reach reads what a commit reaches, down to where the history ends.
func (c *copier) reach(head plumbing.Hash, cut map[plumbing.Hash]bool) error {
	return c.copy(head, cut, false)
}

func (c *copier) copy(head plumbing.Hash, cut map[plumbing.Hash]bool, beyond bool) error {
	commits, err := c.history(head, cut, beyond)
	if err != nil {
		return err
	}
	for _, hash := range commits { // after all that it names: what is cut off leaves none with a part missing
		data, err := c.load(plumbing.CommitObject, hash)
		if err != nil {
			return err
		}
		commit, err := decodeCommit(hash, data)
		if err != nil {
			return fmt.Errorf("%w: commit %s: %w", ErrDamaged, hash, err)
		}
		if err := c.takeTree(commit.Tree, 0); err != nil {
			return err
		}
		if err := c.add(plumbing.CommitObject, hash, data); err != nil {
			return err
		}
	}
	return nil
}

// A copier copies objects from one repository to another, or to itself.
type copier struct {
	from, to *Store
	done     map[plumbing.Hash]bool
	objects  []Object // not yet written
	size     int      // of them
}

// history lists the commits that a head reaches, each after those before it.
func (c *copier) history(head plumbing.Hash, cut map[plumbing.Hash]bool, beyond bool) ([]plumbing.Hash, error) {
	type step struct {
		hash    plumbing.Hash
		parents []plumbing.Hash // that are still to be gone to
	}
	var list []plumbing.Hash
	var stack []step
	seen := map[plumbing.Hash]bool{}
	if c.done[head] {
		return nil, nil
	}
	enter := func(hash plumbing.Hash) error {
		seen[hash] = true
		data, err := c.load(plumbing.CommitObject, hash)
		if err != nil {
			return err
		}
		commit, err := decodeCommit(hash, data)
		if err != nil {
			return fmt.Errorf("%w: commit %s: %w", ErrDamaged, hash, err)
		}
		next := step{hash: hash}
		for _, p := range commit.Parents {
			if cut[hash] {
				there, err := c.canLoad(p)
				if err != nil {
					return err
				}
				if !beyond || !there {
					continue
				}
			}
			next.parents = append(next.parents, p)
		}
		stack = append(stack, next)
		return nil
	}
	if err := enter(head); err != nil {
		return nil, err
	}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.parents) == 0 {
			list = append(list, top.hash)
			stack = stack[:len(stack)-1]
			continue
		}
		p := top.parents[0]
		top.parents = top.parents[1:]
		if !seen[p] && !c.done[p] {
			if err := enter(p); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// canLoad reports whether an object is in either repository, and sound.
func (c *copier) canLoad(hash plumbing.Hash) (bool, error) {
	if there, err := c.to.Has(hash); err != nil || there {
		return there, err
	}
	_, _, err := c.from.load(hash)
	if errors.Is(err, ErrDamaged) {
		return false, nil
	}
	return err == nil, err
}

// load reads an object where it is.
func (c *copier) load(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	if c.to != c.from {
		if there, err := c.to.Has(hash); err != nil {
			return nil, err
		} else if there {
			return c.to.read(kind, hash)
		}
	}
	return c.from.read(kind, hash)
}

// add copies an object that was loaded.
func (c *copier) add(kind plumbing.ObjectType, hash plumbing.Hash, data []byte) error {
	c.done[hash] = true
	if c.to == c.from {
		return nil
	}
	c.objects = append(c.objects, Object{kind: kind, Hash: hash, data: data})
	if c.size += len(data); c.size <= writeBatch {
		return nil
	}
	err := c.to.Write(c.objects)
	c.objects, c.size = nil, 0
	return err
}

func (c *copier) takeBlob(hash plumbing.Hash) error {
	if c.to != c.from {
		if there, err := c.to.Has(hash); err != nil || there { // its content is not needed
			c.done[hash] = there
			return err
		}
	}
	data, err := c.from.read(plumbing.BlobObject, hash)
	if err != nil {
		return err
	}
	return c.add(plumbing.BlobObject, hash, data)
}

func (c *copier) takeTree(hash plumbing.Hash, depth int) error {
	if c.done[hash] {
		return nil
	}
	if depth > maxDepth {
		return c.to.tooDeep()
	}
	data, err := c.load(plumbing.TreeObject, hash)
	if err != nil {
		return err
	}
	entries, err := decodeTree(data)
	if err != nil {
		return fmt.Errorf("%w: tree %s: %w", ErrDamaged, hash, err)
	}
	for _, e := range entries {
		switch {
		case c.done[e.Hash]:
		case e.IsDir():
			err = c.takeTree(e.Hash, depth+1)
		case e.Mode.IsFile():
			err = c.takeBlob(e.Hash)
		}
		if err != nil {
			return err
		}
	}
	return c.add(plumbing.TreeObject, hash, data)
}

// Whole checks that a commit is there with all that it reaches.
func (s *Store) Whole(commit plumbing.Hash) error {
	cut, err := s.Shallow()
	if err != nil {
		return err
	}
	return s.copyFrom(s, commit, cut)
}

// TakeFrom copies a commit with all that it reaches from another repository.
func (s *Store) TakeFrom(old *Store, commit plumbing.Hash) error {
	cut, err := s.Shallow()
	if err != nil {
		return err
	}
	older, err := old.Shallow()
	if err != nil {
		return err
	}
	maps.Copy(cut, older)
	if len(older) > 0 { // before the commits: they must never be here without that
		if err := s.cutOff(cut, true); err != nil {
			return err
		}
	}
	err = s.copyFrom(old, commit, cut)
	if len(older) > 0 {
		err = errors.Join(err, s.CutOff())
	}
	return err
}

// TakeEnd copies from another repository the oldest of the commits at which its history ends, with its files, and ends
// there. It is zero if the other has none that is sound.
func (s *Store) TakeEnd(old *Store) (plumbing.Hash, error) {
	ends, err := old.Shallow()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	var oldest Commit
	for hash := range ends {
		c, err := old.Commit(hash)
		if errors.Is(err, ErrDamaged) {
			continue
		}
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if oldest.Hash.IsZero() || c.When.Before(oldest.When) {
			oldest = c
		}
	}
	if oldest.Hash.IsZero() {
		return oldest.Hash, nil
	}
	cut := map[plumbing.Hash]bool{oldest.Hash: true}
	err = s.copyHistory(old, oldest.Hash, cut, false)
	if errors.Is(err, ErrDamaged) {
		return plumbing.ZeroHash, nil
	}
	if err == nil {
		err = s.SetShallow(cut)
	}
	return oldest.Hash, err
}

// OpenDamaged is a damaged repository to read from; nothing of it is changed.
func OpenDamaged(dir, name string, d *Disk) *Store {
	s := newStore(dir, name, d)
	s.damaged = true
	return s
}

// CarryOver copies the references of a damaged repository that are sound, and the write-back that may be under way. It
// says which references are lost, as note puts it. It fails if what can be read now does not tell that.
func (s *Store) CarryOver(old *Store, note func(name string, why error) string) (map[string]string, error) {
	cut, err := s.Shallow()
	if err != nil {
		return nil, err
	}
	before, err := old.Shallow()
	if err != nil {
		return nil, err
	}
	maps.Copy(cut, before)
	refs, damaged, err := old.refs()
	if err != nil {
		return nil, err
	}
	lost, err := old.Lost()
	if err != nil {
		return nil, err
	}
	sound := map[string]plumbing.Hash{}
	for name, hash := range refs {
		if err := s.copyFrom(old, hash, cut); errors.Is(err, ErrDamaged) || errors.Is(err, failure.ErrMisconfigured) {
			damaged[name] = err
			continue
		} else if err != nil {
			return nil, err
		}
		sound[name] = hash
		delete(lost, name)
	}
	for name, err := range damaged {
		lost[name] = note(name, err)
	}
	if err := s.cutOff(cut, false); err != nil {
		return nil, err
	}
	intent, err := old.note(intentFile)
	if err == nil && intent != nil {
		err = s.disk.replaceFile(filepath.Join(s.dir, intentFile), intent)
	}
	if err != nil {
		return nil, err
	}
	for name, hash := range sound {
		if err := s.SetRef(name, plumbing.ZeroHash, hash); err != nil {
			return nil, err
		}
	}
	return lost, s.setLost(lost)
}
