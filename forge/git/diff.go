package git

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Bounds of a diff that is shown to people.
const (
	maxDiffFiles = 2000    // with their text; the rest is counted by file only
	maxDiffFile  = 1 << 20 // bytes of one side
	maxUnified   = 4 << 20 // bytes of all hunks together
	contextLines = 3
)

// A Delta is one path that differs between two trees. A side that has no file there is the zero entry.
type Delta struct {
	Path     string
	Old, New Entry
}

// compare lists the paths that differ, in order. Links and submodules count, folders do not.
func (s *Store) compare(before, after plumbing.Hash) ([]Delta, error) {
	return s.compareBelow(&[2]walk{{store: s}, {store: s}}, before, after, "", nil)
}

func (s *Store) compareBelow(n *[2]walk, before, after plumbing.Hash, prefix string, out []Delta) ([]Delta, error) {
	if before == after {
		return out, nil
	}
	var old, new []Entry
	var err error
	if !before.IsZero() {
		if old, err = s.Tree(before); err != nil {
			return nil, err
		}
	}
	if !after.IsZero() {
		if new, err = s.Tree(after); err != nil {
			return nil, err
		}
	}
	names := map[string][2]Entry{}
	for _, e := range old {
		names[e.Name] = [2]Entry{e, {}}
	}
	for _, e := range new {
		names[e.Name] = [2]Entry{names[e.Name][0], e}
	}
	order := make([]string, 0, len(names))
	for name := range names {
		order = append(order, name)
	}
	slices.Sort(order)
	for _, name := range order {
		a, b := names[name][0], names[name][1]
		if a == b {
			continue
		}
		p := prefix + name
		for i, e := range []Entry{a, b} {
			if e.Hash.IsZero() {
				continue
			}
			if err := n[i].add(p, e); err != nil {
				return nil, err
			}
		}
		var ah, bh plumbing.Hash
		if a.IsDir() {
			ah, a = a.Hash, Entry{}
		}
		if b.IsDir() {
			bh, b = b.Hash, Entry{}
		}
		if a != b {
			out = append(out, Delta{Path: p, Old: a, New: b})
		}
		if out, err = s.compareBelow(n, ah, bh, p+"/", out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Diff renders what differs between two trees.
func (s *Store) Diff(before, after plumbing.Hash) (Diff, error) {
	deltas, err := s.compare(before, after)
	if err != nil {
		return Diff{}, err
	}
	moves, err := s.moves(deltas)
	if err != nil {
		return Diff{}, err
	}
	var d Diff
	shown := 0
	for i, c := range deltas {
		f := FileDiff{Path: c.Path, Status: "modified"}
		switch from, moved := moves.from[i]; {
		case moves.gone[i]:
			continue // shown where it went
		case moved:
			f.Status, f.From, c.Old = "moved", deltas[from].Path, deltas[from].Old
		case c.Old.Hash.IsZero():
			f.Status = "added"
		case c.New.Hash.IsZero():
			f.Status = "deleted"
		}
		if len(d.Files) >= maxDiffFiles {
			f.Note = "not shown: the diff has too many files"
			d.Note = fmt.Sprintf("only the first %d files are shown and counted", maxDiffFiles)
			d.Files = append(d.Files, f)
			continue
		}
		if err := s.diffFile(&f, c, shown >= maxUnified); err != nil {
			return Diff{}, err
		}
		shown += len(f.Unified)
		if f.Note != "" && d.Note == "" && strings.HasPrefix(f.Note, "not shown") {
			d.Note = "some files are too large to be shown"
		}
		d.Added += f.Added
		d.Deleted += f.Deleted
		d.Files = append(d.Files, f)
	}
	return d, nil
}

func (s *Store) diffFile(f *FileDiff, c Delta, full bool) error {
	if c.Old.Hash == c.New.Hash {
		if c.Old.Mode != c.New.Mode {
			f.Note = fmt.Sprintf("mode changed from %o to %o", uint32(c.Old.Mode), uint32(c.New.Mode))
		}
		return nil
	}
	if !c.Old.Textual() || !c.New.Textual() {
		f.Note = "a link or a submodule"
		return nil
	}
	for _, e := range []Entry{c.Old, c.New} {
		if e.Hash.IsZero() {
			continue
		}
		n, err := s.Size(e.Hash)
		if err != nil {
			return err
		}
		if n > maxDiffFile {
			f.Note = fmt.Sprintf("not shown: the file has %d bytes", n)
			return nil
		}
	}
	var old, new []byte
	var err error
	if !c.Old.Hash.IsZero() {
		if old, err = s.read(plumbing.BlobObject, c.Old.Hash); err != nil {
			return err
		}
	}
	if !c.New.Hash.IsZero() {
		if new, err = s.read(plumbing.BlobObject, c.New.Hash); err != nil {
			return err
		}
	}
	if isBinary(old) || isBinary(new) {
		f.Binary = true
		return nil
	}
	a, b := splitLines(old), splitLines(new)
	hunks := diffLines(a, b)
	for _, h := range hunks {
		f.Deleted += h.a1 - h.a0
		f.Added += h.b1 - h.b0
	}
	if full {
		f.Note = "not shown: the diff is too long"
		return nil
	}
	f.Unified = unified(a, b, hunks)
	return nil
}

// Textual says whether the entry's content can be shown: a file, or nothing.
func (e Entry) Textual() bool { return e.Hash.IsZero() || e.IsFile() }

// moved files: by index into the deltas.
type moved struct {
	from map[int]int  // an added file to the deleted one that it was
	gone map[int]bool // deleted files that went elsewhere
}

// moves pairs deleted files with added ones: of the same content first, then of similar content, the most similar first.
func (s *Store) moves(deltas []Delta) (moved, error) {
	m := moved{from: map[int]int{}, gone: map[int]bool{}}
	var added, deleted []int
	for i, c := range deltas {
		if c.Old.Hash.IsZero() && c.New.IsFile() {
			added = append(added, i)
		}
		if c.New.Hash.IsZero() && c.Old.IsFile() {
			deleted = append(deleted, i)
		}
	}
	pair := func(a, d int) { m.from[a], m.gone[d] = d, true }
	byName := func(a, d int) bool { return path.Base(deltas[a].Path) == path.Base(deltas[d].Path) }
	for _, sameName := range []bool{true, false} {
		for _, a := range added {
			for _, d := range deleted {
				if _, done := m.from[a]; !done && !m.gone[d] && deltas[a].New.Hash == deltas[d].Old.Hash && byName(a, d) == sameName {
					pair(a, d)
				}
			}
		}
	}
	added = slices.DeleteFunc(added, func(a int) bool { _, done := m.from[a]; return done })
	deleted = slices.DeleteFunc(deleted, func(d int) bool { return m.gone[d] })
	if len(added)*len(deleted) == 0 || len(added)*len(deleted) > 10_000 {
		return m, nil
	}
	texts := map[plumbing.Hash]map[string]int{}
	sizes := map[plumbing.Hash]int{}
	lines := func(h plumbing.Hash) (map[string]int, int, error) {
		if t, ok := texts[h]; ok {
			return t, sizes[h], nil
		}
		n, err := s.Size(h)
		if err != nil {
			return nil, 0, err
		}
		count := map[string]int{}
		if n <= maxDiffFile {
			data, err := s.read(plumbing.BlobObject, h)
			if err != nil {
				return nil, 0, err
			}
			if !isBinary(data) {
				for _, l := range splitLines(data) {
					count[l] += len(l)
				}
			}
		}
		texts[h], sizes[h] = count, int(n)
		return count, int(n), nil
	}
	type candidate struct {
		a, d  int
		score int // per cent of the larger text that both have
	}
	var candidates []candidate
	for _, a := range added {
		for _, d := range deleted {
			la, na, err := lines(deltas[a].New.Hash)
			if err != nil {
				return m, err
			}
			ld, nd, err := lines(deltas[d].Old.Hash)
			if err != nil {
				return m, err
			}
			if min(na, nd)*2 < max(na, nd) {
				continue
			}
			common := 0
			for l, n := range la {
				common += min(n, ld[l])
			}
			if score := common * 100 / max(na, nd, 1); score >= 50 {
				candidates = append(candidates, candidate{a, d, score})
			}
		}
	}
	slices.SortStableFunc(candidates, func(x, y candidate) int {
		if x.score != y.score {
			return y.score - x.score
		}
		if bx, by := byName(x.a, x.d), byName(y.a, y.d); bx != by {
			if bx {
				return -1
			}
			return 1
		}
		return 0
	})
	for _, c := range candidates {
		if _, done := m.from[c.a]; !done && !m.gone[c.d] {
			pair(c.a, c.d)
		}
	}
	return m, nil
}

// A Diff is what a pull request changes.
type Diff struct {
	Files   []FileDiff
	Added   int // lines
	Deleted int
	Note    string // what is left out, where something is
}

// A FileDiff is what a pull request changes in one file.
type FileDiff struct {
	Path    string
	From    string // former path where the file was moved
	Status  string // "added", "modified", "deleted", "moved"
	Added   int
	Deleted int
	Binary  bool
	Unified string // unified diff with three lines of context, without file headers
	Note    string // why there is no text, where there is none
}

// Between lists the files that differ between two commits.
func (s *Store) Between(from, to plumbing.Hash) ([]Delta, error) {
	a, err := s.Commit(from)
	if err != nil {
		return nil, err
	}
	b, err := s.Commit(to)
	if err != nil {
		return nil, err
	}
	return s.compare(a.Tree, b.Tree)
}
