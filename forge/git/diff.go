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

// A Difference is one path that differs between two trees. A side that has no file there is the zero entry.
type Difference struct {
	Path     string
	Old, New Entry
}

// compare lists the paths that differ, in order. Links and submodules count, folders do not.
func (s *Store) compare(before, after plumbing.Hash) ([]Difference, error) {
	return s.compareBelow(&[2]walk{{store: s}, {store: s}}, before, after, "", nil)
}

func (s *Store) compareBelow(
	n *[2]walk, before, after plumbing.Hash, prefix string, out []Difference,
) ([]Difference, error) {
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
			out = append(out, Difference{Path: p, Old: a, New: b})
		}
		if out, err = s.compareBelow(n, ah, bh, p+"/", out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Diff renders what differs between two trees.
func (s *Store) Diff(before, after plumbing.Hash) (Diff, error) {
	differences, err := s.compare(before, after)
	if err != nil {
		return Diff{}, err
	}
	moves, err := s.moves(differences)
	if err != nil {
		return Diff{}, err
	}
	var d Diff
	shown := 0
	for i, c := range differences {
		f := FileDiff{Path: c.Path, Status: "modified"}
		switch from, moved := moves.from[i]; {
		case moves.gone[i]:
			continue // shown where it went
		case moved:
			f.Status, f.From, c.Old = "moved", differences[from].Path, differences[from].Old
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

func (s *Store) diffFile(f *FileDiff, c Difference, full bool) error {
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

// Textual reports whether the entry's content can be shown: a file, or nothing.
func (e Entry) Textual() bool { return e.Hash.IsZero() || e.IsFile() }

// moved files: by index into the differences.
type moved struct {
	from map[int]int  // an added file to the deleted one that it was
	gone map[int]bool // deleted files that went elsewhere
}

// pair says that a deleted file is an added one now, unless one of them is paired already.
func (m moved) pair(added, deleted int) {
	if _, done := m.from[added]; !done && !m.gone[deleted] {
		m.from[added], m.gone[deleted] = deleted, true
	}
}

// moves pairs deleted files with added ones: of the same content first, then of similar content, the most similar
// first. go-git's own detection is not used: it drops an added file whose former copies have another mode, and has no
// bounds.
func (s *Store) moves(differences []Difference) (moved, error) {
	m := moved{from: map[int]int{}, gone: map[int]bool{}}
	var added, deleted []int
	for i, c := range differences {
		if c.Old.Hash.IsZero() && c.New.IsFile() {
			added = append(added, i)
		}
		if c.New.Hash.IsZero() && c.Old.IsFile() {
			deleted = append(deleted, i)
		}
	}
	for _, sameName := range []bool{true, false} {
		for _, a := range added {
			for _, d := range deleted {
				if differences[a].New.Hash == differences[d].Old.Hash && sameBase(differences[a], differences[d]) == sameName {
					m.pair(a, d)
				}
			}
		}
	}
	added = slices.DeleteFunc(added, func(a int) bool { _, done := m.from[a]; return done })
	deleted = slices.DeleteFunc(deleted, func(d int) bool { return m.gone[d] })
	if len(added)*len(deleted) == 0 || len(added)*len(deleted) > 10_000 {
		return m, nil
	}
	candidates, err := s.similar(differences, added, deleted)
	for _, c := range candidates {
		m.pair(c.added, c.deleted)
	}
	return m, err
}

func sameBase(a, b Difference) bool { return path.Base(a.Path) == path.Base(b.Path) }

// A candidate for a move is an added file that shares lines with a deleted one.
type candidate struct {
	added, deleted int
	score          int // per cent of the larger text that both have
	sameBase       bool
}

// similar lists the pairs of files that have half of the larger one in common, the most similar first.
func (s *Store) similar(differences []Difference, added, deleted []int) ([]candidate, error) {
	texts := map[plumbing.Hash]lineCount{}
	var out []candidate
	for _, a := range added {
		for _, d := range deleted {
			new, err := s.countLines(texts, differences[a].New.Hash)
			if err != nil {
				return nil, err
			}
			old, err := s.countLines(texts, differences[d].Old.Hash)
			if err != nil {
				return nil, err
			}
			smaller, larger := min(new.size, old.size), max(new.size, old.size)
			if smaller*2 < larger {
				continue
			}
			common := 0
			for l, n := range new.bytes {
				common += min(n, old.bytes[l])
			}
			if score := common * 100 / max(larger, 1); score >= 50 {
				out = append(out, candidate{a, d, score, sameBase(differences[a], differences[d])})
			}
		}
	}
	slices.SortStableFunc(out, func(x, y candidate) int {
		if x.score == y.score && x.sameBase != y.sameBase {
			if x.sameBase {
				return -1
			}
			return 1
		}
		return y.score - x.score
	})
	return out, nil
}

// A lineCount is how many bytes of a text each of its lines makes up; nothing of what is no text, or a large one.
type lineCount struct {
	size  int
	bytes map[string]int
}

func (s *Store) countLines(known map[plumbing.Hash]lineCount, hash plumbing.Hash) (lineCount, error) {
	if c, ok := known[hash]; ok {
		return c, nil
	}
	n, err := s.Size(hash)
	if err != nil {
		return lineCount{}, err
	}
	c := lineCount{int(n), map[string]int{}}
	if n <= maxDiffFile {
		data, err := s.Blob(hash)
		if err != nil {
			return lineCount{}, err
		}
		if !isBinary(data) {
			for _, l := range splitLines(data) {
				c.bytes[l] += len(l)
			}
		}
	}
	known[hash] = c
	return c, nil
}

// A Diff is what a pull request changes.
type Diff struct {
	Files   []FileDiff
	Added   int // lines
	Deleted int
	Note    string // what is left out, if anything is
}

// A FileDiff is what a pull request changes in one file.
type FileDiff struct {
	Path    string
	From    string // former path if the file was moved
	Status  string // "added", "modified", "deleted", "moved"
	Added   int
	Deleted int
	Binary  bool
	Unified string // unified diff with three lines of context, without file headers
	Note    string // why there is no text, if there is none
}

// Between lists the files that differ between two commits.
func (s *Store) Between(from, to plumbing.Hash) ([]Difference, error) {
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
