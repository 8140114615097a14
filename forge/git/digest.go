package git

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// A digest of a change is that of the lines that it removes and adds, file by file: without those around them and their
// numbers, so that it stays the same when other lines change. Of files that are no text, or large, it is that of the
// content.

// Digest is the digest of what differs between two trees.
func (s *Store) Digest(before, after plumbing.Hash) (string, error) {
	differences, err := s.compare(before, after)
	if err != nil {
		return "", err
	}
	slices.SortFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Path, b.Path) })
	sum := sha256.New()
	for _, d := range differences {
		var sides [2][]byte
		for i, e := range []Entry{d.Old, d.New} {
			if sides[i], err = s.digested(e); err != nil {
				return "", err
			}
		}
		addDigest(sum, d.Path, d.Old.Hash, d.New.Hash, sides[0], sides[1])
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// DigestOf is the digest of what changes make of a tree, whose result need not be stored.
func (s *Store) DigestOf(root plumbing.Hash, changes []Change) (string, error) {
	changes = slices.Clone(changes)
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	sum := sha256.New()
	for _, c := range changes {
		e, err := s.entry(root, c.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		old, err := s.digested(e)
		if err != nil {
			return "", err
		}
		var hash plumbing.Hash
		if !c.Delete {
			hash = NewBlob(c.Content).Hash
		}
		new := c.Content
		if len(new) > maxDiffFile {
			new = nil
		}
		if hash != e.Hash {
			addDigest(sum, c.Path, e.Hash, hash, old, new)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// digested is a file's content as far as its lines count.
func (s *Store) digested(e Entry) ([]byte, error) {
	if e.Hash.IsZero() || !e.IsFile() {
		return nil, nil
	}
	n, err := s.Size(e.Hash)
	if err != nil || n > maxDiffFile {
		return nil, err
	}
	return s.Blob(e.Hash)
}

func addDigest(sum hash.Hash, path string, oldHash, newHash plumbing.Hash, old, new []byte) {
	fmt.Fprintf(sum, "%q %v %v\n", path, oldHash.IsZero(), newHash.IsZero())
	if isBinary(old) || isBinary(new) || len(old)+len(new) == 0 {
		fmt.Fprintf(sum, "= %s\n", newHash)
		return
	}
	a, b := splitLines(old), splitLines(new)
	for _, h := range diffLines(a, b) {
		for _, line := range a[h.a0:h.a1] {
			fmt.Fprintf(sum, "-%s\n", line)
		}
		for _, line := range b[h.b0:h.b1] {
			fmt.Fprintf(sum, "+%s\n", line)
		}
	}
}

// entry is a file below a tree; fs.ErrNotExist if there is none.
func (s *Store) entry(root plumbing.Hash, path string) (Entry, error) {
	for {
		name, below, more := strings.Cut(path, "/")
		entries, err := s.Tree(root)
		if err != nil {
			return Entry{}, err
		}
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name && e.IsDir() == more })
		switch {
		case i < 0:
			return Entry{}, fs.ErrNotExist
		case !more:
			return entries[i], nil
		}
		root, path = entries[i].Hash, below
	}
}
