package forge

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

// A delta is one path that differs between two trees. A side that has no file there is the zero entry.
type delta struct {
	path     string
	old, new entry
}

// compare lists the paths that differ, in order. Links and submodules count, folders do not.
func (s *store) compare(before, after plumbing.Hash) ([]delta, error) {
	return s.compareBelow(&[2]walk{{store: s}, {store: s}}, before, after, "", nil)
}

func (s *store) compareBelow(n *[2]walk, before, after plumbing.Hash, prefix string, out []delta) ([]delta, error) {
	if before == after {
		return out, nil
	}
	var old, new []entry
	var err error
	if !before.IsZero() {
		if old, err = s.tree(before); err != nil {
			return nil, err
		}
	}
	if !after.IsZero() {
		if new, err = s.tree(after); err != nil {
			return nil, err
		}
	}
	names := map[string][2]entry{}
	for _, e := range old {
		names[e.name] = [2]entry{e, {}}
	}
	for _, e := range new {
		names[e.name] = [2]entry{names[e.name][0], e}
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
		for i, e := range []entry{a, b} {
			if e.hash.IsZero() {
				continue
			}
			if err := n[i].add(p, e); err != nil {
				return nil, err
			}
		}
		var ah, bh plumbing.Hash
		if a.isDir() {
			ah, a = a.hash, entry{}
		}
		if b.isDir() {
			bh, b = b.hash, entry{}
		}
		if a != b {
			out = append(out, delta{path: p, old: a, new: b})
		}
		if out, err = s.compareBelow(n, ah, bh, p+"/", out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// diff renders what differs between two trees.
func (s *store) diff(before, after plumbing.Hash) (Diff, error) {
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
		f := FileDiff{Path: c.path, Status: "modified"}
		switch from, moved := moves.from[i]; {
		case moves.gone[i]:
			continue // shown where it went
		case moved:
			f.Status, f.From, c.old = "moved", deltas[from].path, deltas[from].old
		case c.old.hash.IsZero():
			f.Status = "added"
		case c.new.hash.IsZero():
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

func (s *store) diffFile(f *FileDiff, c delta, full bool) error {
	if c.old.hash == c.new.hash {
		if c.old.mode != c.new.mode {
			f.Note = fmt.Sprintf("mode changed from %o to %o", uint32(c.old.mode), uint32(c.new.mode))
		}
		return nil
	}
	if !textual(c.old) || !textual(c.new) {
		f.Note = "a link or a submodule"
		return nil
	}
	for _, e := range []entry{c.old, c.new} {
		if e.hash.IsZero() {
			continue
		}
		n, err := s.size(e.hash)
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
	if !c.old.hash.IsZero() {
		if old, err = s.read(plumbing.BlobObject, c.old.hash); err != nil {
			return err
		}
	}
	if !c.new.hash.IsZero() {
		if new, err = s.read(plumbing.BlobObject, c.new.hash); err != nil {
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

// textual says whether the entry's content can be shown: a file, or nothing.
func textual(e entry) bool { return e.hash.IsZero() || e.isFile() }

// unified renders hunks as diff -u does, without file headers.
func unified(a, b []string, hunks []hunk) string {
	var out strings.Builder
	line := func(sign byte, text string) {
		out.WriteByte(sign)
		out.WriteString(text)
		if !strings.HasSuffix(text, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
	span := func(start, n int) string {
		switch n {
		case 0:
			return fmt.Sprintf("%d,0", start) // the line before
		case 1:
			return fmt.Sprint(start + 1)
		}
		return fmt.Sprintf("%d,%d", start+1, n)
	}
	for i := 0; i < len(hunks); {
		j := i + 1
		for j < len(hunks) && hunks[j].a0-hunks[j-1].a1 <= 2*contextLines {
			j++
		}
		first, last := hunks[i], hunks[j-1]
		lead := min(contextLines, first.a0)
		trail := min(contextLines, len(a)-last.a1)
		a0, b0 := first.a0-lead, first.b0-lead
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(a0, last.a1+trail-a0), span(b0, last.b1+trail-b0))
		at := a0
		for _, h := range hunks[i:j] {
			for ; at < h.a0; at++ {
				line(' ', a[at])
			}
			for ; at < h.a1; at++ {
				line('-', a[at])
			}
			for k := h.b0; k < h.b1; k++ {
				line('+', b[k])
			}
		}
		for range trail {
			line(' ', a[at])
			at++
		}
		i = j
	}
	return out.String()
}

// moved files: by index into the deltas.
type moved struct {
	from map[int]int  // an added file to the deleted one that it was
	gone map[int]bool // deleted files that went elsewhere
}

// moves pairs deleted files with added ones: of the same content first, then of similar content, the most similar first.
func (s *store) moves(deltas []delta) (moved, error) {
	m := moved{from: map[int]int{}, gone: map[int]bool{}}
	var added, deleted []int
	for i, c := range deltas {
		if c.old.hash.IsZero() && c.new.isFile() {
			added = append(added, i)
		}
		if c.new.hash.IsZero() && c.old.isFile() {
			deleted = append(deleted, i)
		}
	}
	pair := func(a, d int) { m.from[a], m.gone[d] = d, true }
	byName := func(a, d int) bool { return path.Base(deltas[a].path) == path.Base(deltas[d].path) }
	for _, sameName := range []bool{true, false} {
		for _, a := range added {
			for _, d := range deleted {
				if _, done := m.from[a]; !done && !m.gone[d] && deltas[a].new.hash == deltas[d].old.hash && byName(a, d) == sameName {
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
		n, err := s.size(h)
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
			la, na, err := lines(deltas[a].new.hash)
			if err != nil {
				return m, err
			}
			ld, nd, err := lines(deltas[d].old.hash)
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
