package git

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// errMissing is damage: something that is named is not here.
var errMissing = fmt.Errorf("%w: it is missing", ErrDamaged)

const (
	knownCommits = 4096 // that are remembered to be connected
	knownAtOnce  = 1024 // of one look
	nearCommits  = 16   // that are looked at before all references are read
	farCommits   = 2000 // before the references' commits that are looked at
)

// Connected reports whether a commit is here with all that it reaches: its files, and the commits before it down to
// where the history ends. That the commit itself is here says nothing of that, since a fetch or a copy may have been
// cut off. What references name is connected, once Verify has passed.
func (s *Store) Connected(head plumbing.Hash) (bool, error) {
	return isHere(s.CheckConnected(head))
}

// HasFiles reports whether a commit is here with its files, whatever is before it.
func (s *Store) HasFiles(commit plumbing.Hash) (bool, error) {
	if s.known.Contains(commit) {
		return true, nil
	}
	return isHere(s.checkFiles(&connection{store: s, seen: map[plumbing.Hash]bool{}}, commit, nil))
}

func isHere(err error) (bool, error) {
	if errors.Is(err, errMissing) {
		return false, nil
	}
	return err == nil, err
}

// connect fails if something that a commit reaches is missing. It stops at commits that are known to be connected,
// and if trust is set, at those that references name.
func (s *Store) connect(head plumbing.Hash, shallow map[plumbing.Hash]bool, trust bool) error {
	there, err := s.Has(head)
	if err != nil || !there {
		return cmp.Or(err, fmt.Errorf("commit %s: %w", head, errMissing))
	}
	trust = trust && s.verified.Load()
	stops := map[plumbing.Hash]bool{}
	stopped := func(h plumbing.Hash) bool { return stops[h] || trust && s.known.Contains(h) }
	list, met, err := s.unconnected(head, shallow, stopped, nearCommits)
	if trust && !met && (err == nil || errors.Is(err, errMissing)) {
		if stops, err = s.referenced(shallow); err != nil {
			return err
		}
		list, _, err = s.unconnected(head, shallow, stopped, -1)
	} else if !met && err == nil {
		list, _, err = s.unconnected(head, shallow, stopped, -1)
	}
	if err != nil {
		return err
	}
	c := &connection{store: s, seen: map[plumbing.Hash]bool{}}
	for _, hash := range list {
		if err := s.checkFiles(c, hash, shallow); err != nil {
			return err
		}
	}
	if trust {
		for _, hash := range slices.Backward(list[:min(len(list), knownAtOnce)]) {
			s.known.Add(hash, struct{}{})
		}
		s.known.Add(head, struct{}{})
	}
	return nil
}

// CheckConnected is like Connected, but anything unconnected is an error that says what is missing.
func (s *Store) CheckConnected(head plumbing.Hash) error {
	shallow, err := s.Shallow()
	if err != nil {
		return err
	}
	return s.connect(head, shallow, true)
}

// unconnected lists the commits from a head to those at which it may stop. It has not met them all if there are more
// than a number; none is negative.
func (s *Store) unconnected(
	head plumbing.Hash, shallow map[plumbing.Hash]bool, stopped func(plumbing.Hash) bool, most int,
) (list []plumbing.Hash, met bool, err error) {
	seen := map[plumbing.Hash]bool{head: true}
	queue := []plumbing.Hash{head}
	for i := 0; i < len(queue); i++ {
		hash := queue[i]
		if stopped(hash) {
			continue
		}
		if len(list) == most {
			return list, false, nil
		}
		list = append(list, hash)
		c, err := s.Commit(hash)
		if err != nil {
			return nil, false, err
		}
		if shallow[hash] {
			continue
		}
		for _, p := range c.Parents {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return list, true, nil
}

// referenced lists the commits that references name, and some of those before them.
func (s *Store) referenced(shallow map[plumbing.Hash]bool) (map[plumbing.Hash]bool, error) {
	refs, _, err := s.refs() // one that is damaged vouches for nothing
	if err != nil {
		return nil, err
	}
	stops := map[plumbing.Hash]bool{}
	var queue []plumbing.Hash
	for _, hash := range refs {
		if !stops[hash] {
			stops[hash] = true
			queue = append(queue, hash)
		}
	}
	for i := 0; i < len(queue) && i < farCommits; i++ {
		if shallow[queue[i]] {
			continue
		}
		c, err := s.Commit(queue[i])
		if errors.Is(err, ErrDamaged) {
			continue // its reader meets that
		}
		if err != nil {
			return nil, err
		}
		for _, p := range c.Parents {
			if !stops[p] {
				stops[p] = true
				queue = append(queue, p)
			}
		}
	}
	return stops, nil
}

// A connection looks whether the files of commits are here.
type connection struct {
	store *Store
	seen  map[plumbing.Hash]bool // trees
}

// checkFiles fails if a file of a commit is missing. What the commit before it has at the same place is not looked
// for: that commit is checked itself.
func (s *Store) checkFiles(c *connection, hash plumbing.Hash, shallow map[plumbing.Hash]bool) error {
	commit, err := s.Commit(hash)
	if err != nil {
		return err
	}
	var before plumbing.Hash
	if shallow != nil && !shallow[hash] && len(commit.Parents) > 0 {
		parent, err := s.Commit(commit.Parents[0])
		if err != nil {
			return err
		}
		before = parent.Tree
	}
	if err := c.tree("", before, commit.Tree, 0); err != nil {
		return fmt.Errorf("commit %s: %w", hash, err)
	}
	return nil
}

func (c *connection) tree(path string, before, after plumbing.Hash, depth int) error {
	if before == after || c.seen[after] {
		return nil
	}
	switch {
	case len(path) > maxPath:
		return c.store.tooLong()
	case depth > maxDepth:
		return c.store.tooDeep()
	}
	had := map[string]Entry{}
	if !before.IsZero() {
		entries, err := c.store.Tree(before)
		if err != nil {
			return err
		}
		for _, e := range entries {
			had[e.Name] = e
		}
	}
	entries, err := c.store.Tree(after)
	if err != nil {
		return fmt.Errorf("folder %q: %w", path, err)
	}
	for _, e := range entries {
		old := had[e.Name]
		switch {
		case e.Hash == old.Hash:
		case e.IsDir():
			if !old.IsDir() {
				old.Hash = plumbing.ZeroHash
			}
			if err := c.tree(path+e.Name+"/", old.Hash, e.Hash, depth+1); err != nil {
				return err
			}
		case e.Mode.IsFile():
			there, err := c.store.Has(e.Hash)
			if err == nil && !there {
				err = fmt.Errorf("file %q: object %s: %w", path+e.Name, e.Hash, errMissing)
			}
			if err != nil {
				return err
			}
		}
	}
	c.seen[after] = true
	return nil
}

// verifiedFile says that what references name was checked once, and that since then none was moved to a commit that is
// not connected.
const verifiedFile = "docent-verified"

// Verified reports whether Verify has passed.
func (s *Store) Verified() bool { return s.verified.Load() }

// Verify checks that what references name is here with all that it reaches, and remembers it. Versions of Docent before
// it moved references to commits of which a kill had left no more than the commit.
func (s *Store) Verify() error {
	refs, damaged, err := s.refs()
	if err != nil {
		return err
	}
	for name, why := range damaged {
		return fmt.Errorf("reference %s: %w", name, why)
	}
	shallow, err := s.Shallow()
	if err != nil {
		return err
	}
	checked := map[plumbing.Hash]bool{}
	c := &connection{store: s, seen: map[plumbing.Hash]bool{}}
	for name, hash := range refs {
		list, _, err := s.unconnected(hash, shallow, func(h plumbing.Hash) bool { return checked[h] }, -1)
		if err != nil {
			return fmt.Errorf("reference %s: %w", name, err)
		}
		for _, commit := range list {
			if err := s.checkFiles(c, commit, shallow); err != nil {
				return fmt.Errorf("reference %s: %w", name, err)
			}
			checked[commit] = true
		}
	}
	return nil
}

// Ends is at how many commits the history ends. A first fetch leaves one.
func (s *Store) Ends() (int, error) {
	ends, err := s.Shallow()
	return len(ends), err
}

// Check reads all that references name, and all that this reaches. It fails if something is damaged.
func (s *Store) Check() error {
	if _, err := s.Default(); err != nil {
		return err
	}
	refs, err := s.Refs()
	if err != nil {
		return err
	}
	s.cache.Clear() // what is on disk counts
	s.mu.Lock()
	s.forget()
	s.mu.Unlock()
	cut, err := s.Shallow()
	if err != nil {
		return err
	}
	c := copier{from: s, to: s, done: map[plumbing.Hash]bool{}}
	for name, hash := range refs {
		if err := c.reach(hash, cut); err != nil {
			return fmt.Errorf("reference %s: %w", name, err)
		}
	}
	_, _, err = s.Intent()
	return err
}

// SetVerified remembers that Verify has passed.
func (s *Store) SetVerified() error {
	if err := s.disk.replaceFile(s.file(verifiedFile), []byte("1\n")); err != nil {
		return err
	}
	s.verified.Store(true)
	return nil
}

// CutOff corrects where the history ends: at those of the commits that were noted whose parents are not here with all
// that they reach. It never ends where more of it is here.
func (s *Store) CutOff() error {
	cut, err := s.Shallow()
	if err != nil || len(cut) == 0 {
		return err
	}
	return s.cutOff(cut, false)
}

// cutOff notes where the history ends, among the commits where it may. Those that are not here are for later if coming
// is set.
func (s *Store) cutOff(cut map[plumbing.Hash]bool, coming bool) error {
	ends := maps.Clone(cut)
	for hash := range cut {
		c, err := s.Commit(hash)
		if errors.Is(err, ErrDamaged) {
			if !coming {
				delete(ends, hash)
			}
			continue
		}
		if err != nil {
			return err
		}
		whole := true
		for _, p := range c.Parents {
			there, err := isHere(s.connect(p, cut, false))
			if err != nil && !errors.Is(err, ErrDamaged) {
				return err
			}
			whole = whole && there
		}
		if whole {
			delete(ends, hash)
		}
	}
	have, err := s.Shallow()
	switch {
	case err != nil || maps.Equal(have, ends):
		return err
	case len(ends) > 0:
		return s.SetShallow(ends)
	}
	return s.disk.remove(s.file(shallowFile))
}
