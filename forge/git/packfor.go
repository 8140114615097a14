package git

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/forge/failure"
)

// PackFor packs what a remote lacks of a commit, given commits that it has.
func (s *Store) PackFor(head plumbing.Hash, there map[plumbing.Hash]bool) ([]byte, error) {
	var b bytes.Buffer
	if n, _, err := s.PackTo(&b, []plumbing.Hash{head}, there, maxPush); err != nil || n > 0 {
		return b.Bytes(), err
	}
	_, _, err := encodePack(&b, 0, nil)
	return b.Bytes(), err
}

// PackTo writes a pack of what commits reach, without what is there with others, and says how many objects it has,
// and how many bytes these. If it has none, nothing is written. Files are read when it is their turn; all may have so
// many bytes together.
func (s *Store) PackTo(
	w io.Writer, heads []plumbing.Hash, there map[plumbing.Hash]bool, most int64,
) (n int, total int64, err error) {
	objects, err := s.lacking(heads, there)
	if err != nil || len(objects) == 0 {
		return 0, 0, err
	}
	_, _, err = encodePack(w, len(objects), func(i int) (Object, error) {
		o := objects[i]
		data, err := s.read(o.kind, o.hash)
		if total += int64(len(data)); err == nil && total > most {
			err = fmt.Errorf("%w: the push has more than %d bytes", failure.ErrRefused, most)
		}
		return Object{kind: o.kind, Hash: o.hash, data: data}, err
	})
	return len(objects), total, err
}

// A named object is one that is read later.
type named struct {
	kind plumbing.ObjectType
	hash plumbing.Hash
}

// lacking lists what commits reach, without what is there with others.
func (s *Store) lacking(heads []plumbing.Hash, there map[plumbing.Hash]bool) ([]named, error) {
	shallow, err := s.Shallow()
	if err != nil {
		return nil, err
	}
	var objects []named
	seen := map[plumbing.Hash]bool{}
	add := func(kind plumbing.ObjectType, hash plumbing.Hash) (fresh bool, err error) {
		if seen[hash] {
			return false, nil
		}
		seen[hash] = true
		objects = append(objects, named{kind, hash})
		return true, nil
	}
	commits, err := s.newCommits(heads, there, shallow)
	if err != nil {
		return nil, err
	}
	for _, hash := range commits {
		c, err := s.Commit(hash)
		if err != nil {
			return nil, err
		}
		if _, err := add(plumbing.CommitObject, hash); err != nil {
			return nil, err
		}
		var before plumbing.Hash
		if !shallow[hash] && len(c.Parents) > 0 {
			parent, err := s.Commit(c.Parents[0])
			if err != nil {
				return nil, err
			}
			before = parent.Tree
		}
		if err := s.added(before, c.Tree, 0, add); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// nearby is how many commits are looked through for those that are there with others, before all that these reach is.
const nearby = 100

// newCommits lists the commits that heads reach, and that what is there with others does not reach. Mostly what is there
// stands right behind the heads. If it does not, since branches there have moved on, all of its history is gone through.
func (s *Store) newCommits(heads []plumbing.Hash, there, shallow map[plumbing.Hash]bool) ([]plumbing.Hash, error) {
	if len(there) > 0 {
		if list, met, err := s.walk(heads, there, shallow, nearby); err != nil || met {
			return list, err
		}
		var tips []plumbing.Hash
		for hash := range there { // others may have what is not here, and tags
			if ok, err := s.Has(hash); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
			if _, kind, err := s.load(hash); err != nil {
				return nil, err
			} else if kind != plumbing.CommitObject {
				continue
			}
			if ok, err := s.Connected(hash); err != nil {
				return nil, err
			} else if ok { // else a fetch of it was cut off
				tips = append(tips, hash)
			}
		}
		reached, _, err := s.walk(tips, nil, shallow, math.MaxInt)
		if err != nil {
			return nil, err
		}
		there = maps.Clone(there)
		for _, hash := range reached {
			there[hash] = true
		}
	}
	list, _, err := s.walk(heads, there, shallow, math.MaxInt)
	return list, err
}

// walk lists the commits that heads reach, up to those that are there and to a number. It has met those where every way
// back has come to one.
func (s *Store) walk(
	heads []plumbing.Hash, there, shallow map[plumbing.Hash]bool, most int,
) (list []plumbing.Hash, met bool, err error) {
	met = true
	seen := map[plumbing.Hash]bool{}
	queue := slices.Clone(heads)
	for i := 0; i < len(queue); i++ {
		hash := queue[i]
		if there[hash] || seen[hash] {
			continue
		}
		if len(list) == most {
			return list, false, nil
		}
		seen[hash] = true
		list = append(list, hash)
		c, err := s.Commit(hash)
		if err != nil {
			return nil, false, err
		}
		if shallow[hash] || len(c.Parents) == 0 {
			met = false
			continue
		}
		queue = append(queue, c.Parents...)
	}
	return list, met, nil
}

const maxPush = 256 << 20

// added calls add for the trees and files of one tree that another does not hold at the same place. A tree that add
// knows is not gone through again: one may stand in many places.
func (s *Store) added(
	before, after plumbing.Hash, depth int, add func(plumbing.ObjectType, plumbing.Hash) (fresh bool, err error),
) error {
	if before == after {
		return nil
	}
	if depth > maxDepth {
		return s.tooDeep()
	}
	if fresh, err := add(plumbing.TreeObject, after); err != nil || !fresh {
		return err
	}
	had := map[string]Entry{}
	if !before.IsZero() {
		entries, err := s.Tree(before)
		if err != nil {
			return err
		}
		for _, e := range entries {
			had[e.Name] = e
		}
	}
	entries, err := s.Tree(after)
	if err != nil {
		return err
	}
	for _, e := range entries {
		old := had[e.Name]
		switch {
		case e.Hash == old.Hash:
		case e.IsDir():
			if !old.IsDir() {
				old.Hash = plumbing.ZeroHash
			}
			if err := s.added(old.Hash, e.Hash, depth+1, add); err != nil {
				return err
			}
		case e.IsFile() || e.Mode.IsFile():
			if _, err := add(plumbing.BlobObject, e.Hash); err != nil {
				return err
			}
		}
	}
	return nil
}
