package git

import (
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// History lists a commit and those before it, newest first, up to a number and to where the history ends.
func (s *Store) History(head plumbing.Hash, limit int) ([]plumbing.Hash, error) {
	shallow, err := s.Shallow()
	if err != nil {
		return nil, err
	}
	out := []plumbing.Hash{head}
	seen := map[plumbing.Hash]bool{head: true}
	for i := 0; i < len(out); i++ {
		if shallow[out[i]] {
			continue
		}
		c, err := s.Commit(out[i])
		if err != nil {
			return nil, err
		}
		for _, p := range c.Parents {
			if len(out) == limit {
				return out, nil
			}
			if !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// Contains reports whether a commit is the head or one of the commits before it.
func (s *Store) Contains(head, want plumbing.Hash) (bool, error) {
	const far = 10_000
	list, err := s.History(head, far)
	if err != nil {
		return false, err
	}
	return slices.Contains(list, want), nil
}

// MergeBase is the newest commit that two commits have in common. If the history is cut off before one, it is
// ErrUnrelated.
func (s *Store) MergeBase(a, b plumbing.Hash) (plumbing.Hash, error) {
	shallow, err := s.Shallow()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	const fromA, fromB = 1, 2
	marks := map[plumbing.Hash]int{a: fromA}
	marks[b] |= fromB
	type item struct{ c Commit }
	var queue []item
	load := func(h plumbing.Hash) error {
		c, err := s.Commit(h)
		if err == nil {
			queue = append(queue, item{c})
		}
		return err
	}
	if err := load(a); err != nil {
		return plumbing.ZeroHash, err
	}
	if a != b {
		if err := load(b); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	for steps := 0; len(queue) > 0 && steps < 100_000; steps++ {
		newest := 0
		for i := range queue {
			if queue[i].c.When.After(queue[newest].c.When) {
				newest = i
			}
		}
		c := queue[newest].c
		queue = slices.Delete(queue, newest, newest+1)
		if marks[c.Hash] == fromA|fromB {
			return c.Hash, nil
		}
		if shallow[c.Hash] {
			continue
		}
		for _, p := range c.Parents {
			if marks[p]&marks[c.Hash] == marks[c.Hash] {
				continue
			}
			marks[p] |= marks[c.Hash]
			if err := load(p); err != nil {
				return plumbing.ZeroHash, err
			}
		}
	}
	return plumbing.ZeroHash, ErrUnrelated
}

// ErrUnrelated says that two commits have no history in common, or that it is cut off before.
var ErrUnrelated = errors.New("the branches have no commit in common")

// Fork is the newest commit that a branch has in common with its base; empty if none is known.
func (s *Store) Fork(base plumbing.Hash, commit string) (string, error) {
	at, err := s.MergeBase(base, plumbing.NewHash(commit))
	if errors.Is(err, ErrUnrelated) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return at.String(), nil
}
