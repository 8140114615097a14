package git

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"

	"docent/forge/failure"
)

// cutOff notes where the history ends, of the commits where it may.
func (s *Store) cutOff(cut map[plumbing.Hash]bool) error {
	for hash := range cut { // the history ends where the parents are not there, and nowhere else
		c, err := s.Commit(hash)
		if errors.Is(err, ErrDamaged) {
			delete(cut, hash)
			continue
		}
		if err != nil {
			return err
		}
		whole := true
		for _, p := range c.Parents {
			there, err := s.Has(p)
			if err != nil {
				return err
			}
			whole = whole && there
		}
		if whole {
			delete(cut, hash)
		}
	}
	if len(cut) > 0 {
		return s.SetShallow(cut)
	}
	if err := os.Remove(filepath.Join(s.dir, shallowFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// copyFrom copies what a commit reaches and is not there yet; each object is checked on the way. From itself, a
// repository copies nothing and checks all. Parents of the commits in cut may be missing.
func (s *Store) copyFrom(old *Store, head plumbing.Hash, cut map[plumbing.Hash]bool) error {
	c := copier{from: old, to: s, done: map[plumbing.Hash]bool{}}
	queue := []plumbing.Hash{head}
	for len(queue) > 0 {
		hash := queue[0]
		queue = queue[1:]
		if c.done[hash] {
			continue
		}
		data, err := c.take(plumbing.CommitObject, hash)
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
		for _, p := range commit.Parents {
			if cut[hash] {
				there, err := s.Has(p)
				if err != nil {
					return err
				}
				if _, _, err := old.load(p); !there && errors.Is(err, ErrDamaged) {
					continue
				}
			}
			queue = append(queue, p)
		}
	}
	return s.Write(c.objects)
}

// A copier copies objects from one repository to another, or to itself.
type copier struct {
	from, to *Store
	done     map[plumbing.Hash]bool
	objects  []Object // not yet written
	size     int      // of them
}

// take copies an object; the content of a blob that is there already is not needed.
func (c *copier) take(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	if c.to != c.from {
		if there, err := c.to.Has(hash); err != nil {
			return nil, err
		} else if there {
			if c.done[hash] = true; kind == plumbing.BlobObject {
				return nil, nil
			}
			return c.to.read(kind, hash)
		}
	}
	data, err := c.from.read(kind, hash)
	if err != nil {
		return nil, err
	}
	c.done[hash] = true
	c.objects = append(c.objects, Object{kind: kind, Hash: hash, data: data})
	if c.size += len(data); c.size > writeBatch {
		if err := c.to.Write(c.objects); err != nil {
			return nil, err
		}
		c.objects, c.size = nil, 0
	}
	return data, nil
}

func (c *copier) takeTree(hash plumbing.Hash, depth int) error {
	if c.done[hash] {
		return nil
	}
	if depth > maxDepth {
		return c.to.tooDeep()
	}
	data, err := c.take(plumbing.TreeObject, hash)
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
			_, err = c.take(plumbing.BlobObject, e.Hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
	if err := s.copyFrom(old, commit, cut); err != nil || len(older) == 0 {
		return err
	}
	return s.cutOff(cut)
}

// OpenDamaged is a damaged repository to read from; nothing of it is changed.
func OpenDamaged(dir, name string, d *Disk) *Store {
	return &Store{dir: dir, name: name, disk: d, cache: cache.NewObjectLRU(objectCache), damaged: true}
}

// CarryOver copies the references of a damaged repository that are sound, and the write-back that may be under way. It
// says which references are lost, as note puts it. It fails where what can be read now does not tell that.
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
	if err := s.cutOff(cut); err != nil {
		return nil, err
	}
	intent, err := old.note(intentFile)
	if err == nil && intent != nil {
		err = replaceFile(filepath.Join(s.dir, intentFile), intent)
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
