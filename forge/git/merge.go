package git

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"docent/forge/failure"
)

// A hunk says that lines a0 to a1 of the old text are lines b0 to b1 of the new one.
type hunk struct{ a0, a1, b0, b1 int }

// splitLines keeps line ends: a text without one at its end differs from the same text with one.
func splitLines(data []byte) []string {
	return slices.Collect(strings.Lines(string(data)))
}

// diffLines finds the changed lines. Lines that are unique in both texts and in the same order are anchors; what lies
// Between them is compared line by line. So a text with many small changes does not end as one large one: the longest
// common subsequence that udiff computes gives up after a hundred differences.
func diffLines(a, b []string) []hunk {
	var out []hunk
	emit := func(h hunk) {
		if n := len(out); n > 0 && out[n-1].a1 == h.a0 && out[n-1].b1 == h.b0 {
			out[n-1].a1, out[n-1].b1 = h.a1, h.b1
			return
		}
		out = append(out, h)
	}
	var compare func(a0, a1, b0, b1, depth int)
	compare = func(a0, a1, b0, b1, depth int) {
		for a0 < a1 && b0 < b1 && a[a0] == b[b0] {
			a0, b0 = a0+1, b0+1
		}
		for a0 < a1 && b0 < b1 && a[a1-1] == b[b1-1] {
			a1, b1 = a1-1, b1-1
		}
		if a0 == a1 && b0 == b1 {
			return
		}
		if a0 == a1 || b0 == b1 {
			emit(hunk{a0, a1, b0, b1})
			return
		}
		if anchors := uniqueInBoth(a, b, a0, a1, b0, b1); len(anchors) > 0 && depth < 32 {
			for _, at := range anchors {
				compare(a0, at[0], b0, at[1], depth+1)
				a0, b0 = at[0], at[1]
			}
			for a0 < a1 && b0 < b1 && a[a0] == b[b0] {
				a0, b0 = a0+1, b0+1
			}
			compare(a0, a1, b0, b1, depth+1)
			return
		}
		if int64(a1-a0)*int64(b1-b0) > 1<<26 {
			emit(hunk{a0, a1, b0, b1})
			return
		}
		for _, d := range lcs.DiffLines(a[a0:a1], b[b0:b1]) {
			emit(hunk{a0 + d.Start, a0 + d.End, b0 + d.ReplStart, b0 + d.ReplEnd})
		}
	}
	compare(0, len(a), 0, len(b), 0)
	return out
}

// uniqueInBoth is the longest run of lines, ascending in both texts, that occur once in each.
func uniqueInBoth(a, b []string, a0, a1, b0, b1 int) [][2]int {
	type places struct{ a, b, inA, inB int }
	lines := make(map[string]*places, a1-a0)
	for i := a0; i < a1; i++ {
		p := lines[a[i]]
		if p == nil {
			p = &places{}
			lines[a[i]] = p
		}
		p.a, p.inA = i, p.inA+1
	}
	for j := b0; j < b1; j++ {
		if p := lines[b[j]]; p != nil {
			p.b, p.inB = j, p.inB+1
		}
	}
	var pairs [][2]int
	for i := a0; i < a1; i++ {
		if p := lines[a[i]]; p.inA == 1 && p.inB == 1 {
			pairs = append(pairs, [2]int{i, p.b})
		}
	}
	// The longest ascending run by the second number: patience sorting.
	var tops []int
	before := make([]int, len(pairs))
	for i, p := range pairs {
		at, _ := slices.BinarySearchFunc(tops, p[1], func(top, b int) int { return pairs[top][1] - b })
		before[i] = -1
		if at > 0 {
			before[i] = tops[at-1]
		}
		if at == len(tops) {
			tops = append(tops, i)
		} else {
			tops[at] = i
		}
	}
	if len(tops) == 0 {
		return nil
	}
	var run [][2]int
	for i := tops[len(tops)-1]; i >= 0; i = before[i] {
		run = append(run, pairs[i])
	}
	slices.Reverse(run)
	return run
}

// Merge merges two descendants of one text. It is false if both changed the same or neighboring lines differently.
func Merge(base, ours, theirs []byte) ([]byte, bool) {
	switch {
	case bytes.Equal(ours, theirs), bytes.Equal(base, theirs):
		return ours, true
	case bytes.Equal(base, ours):
		return theirs, true
	case isBinary(base) || isBinary(ours) || isBinary(theirs):
		return nil, false
	}
	o, a, b := splitLines(base), splitLines(ours), splitLines(theirs)
	left, right := diffLines(o, a), diffLines(o, b)
	var out bytes.Buffer
	write := func(lines []string) {
		for _, l := range lines {
			out.WriteString(l)
		}
	}
	at := 0        // in base
	da, db := 0, 0 // how far the two texts are ahead of base
	for i, j := 0, 0; i < len(left) || j < len(right); {
		// A region begins with the first change that comes, and grows while changes of either side touch it.
		var start, end int
		if j == len(right) || i < len(left) && left[i].a0 <= right[j].a0 {
			start, end = left[i].a0, left[i].a1
		} else {
			start, end = right[j].a0, right[j].a1
		}
		i0, j0 := i, j
		for grown := true; grown; {
			grown = false
			for i < len(left) && left[i].a0 <= end {
				end, grown = max(end, left[i].a1), true
				i++
			}
			for j < len(right) && right[j].a0 <= end {
				end, grown = max(end, right[j].a1), true
				j++
			}
		}
		write(o[at:start])
		at = end
		as, bs := start+da, start+db
		for _, h := range left[i0:i] {
			da += (h.b1 - h.b0) - (h.a1 - h.a0)
		}
		for _, h := range right[j0:j] {
			db += (h.b1 - h.b0) - (h.a1 - h.a0)
		}
		mine, other := a[as:end+da], b[bs:end+db]
		switch {
		case j0 == j, slices.Equal(mine, other):
			write(mine)
		case i0 == i:
			write(other)
		default:
			return nil, false
		}
	}
	write(o[at:])
	return out.Bytes(), true
}

// isBinary is git's rule of thumb, and one of ours: what is not UTF-8 is not shown or merged by lines.
func isBinary(data []byte) bool {
	head := data[:min(len(data), 8000)]
	return bytes.IndexByte(head, 0) >= 0 || !utf8.Valid(data)
}

// MergeTrees brings what changed from base to theirs into ours. Files that both sides changed are merged by lines.
func (s *Store) MergeTrees(base, ours, theirs plumbing.Hash) (plumbing.Hash, []Object, error) {
	m := &treeMerge{store: s, met: walk{store: s}}
	hash, err := m.merge("", base, ours, theirs)
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	if len(m.conflicts) > 0 {
		return plumbing.ZeroHash, nil, &failure.ConflictError{Files: m.conflicts}
	}
	if hash.IsZero() {
		o := NewTree(nil)
		hash, m.objects = o.Hash, append(m.objects, o)
	}
	return hash, m.objects, nil
}

type treeMerge struct {
	store     *Store
	met       walk // met on the way
	objects   []Object
	conflicts []string
}

func (m *treeMerge) merge(prefix string, base, ours, theirs plumbing.Hash) (plumbing.Hash, error) {
	switch {
	case ours == theirs, base == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	sides := map[string]*[3]Entry{}
	var order []string
	for i, hash := range []plumbing.Hash{base, ours, theirs} {
		if hash.IsZero() {
			continue
		}
		entries, err := m.store.Tree(hash)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		for _, e := range entries {
			if sides[e.Name] == nil {
				sides[e.Name] = new([3]Entry)
				order = append(order, e.Name)
				if err := m.met.add(prefix+e.Name, e); err != nil {
					return plumbing.ZeroHash, err
				}
			}
			sides[e.Name][i] = e
		}
	}
	slices.Sort(order)
	var out []Entry
	for _, name := range order {
		e, err := m.entry(prefix+name, *sides[name])
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if !e.Hash.IsZero() {
			e.Name = name
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return plumbing.ZeroHash, nil
	}
	o := NewTree(out)
	m.objects = append(m.objects, o)
	return o.Hash, nil
}

// entry merges one name; the zero entry if nothing stays there.
func (m *treeMerge) entry(path string, e [3]Entry) (Entry, error) {
	base, ours, theirs := e[0], e[1], e[2]
	switch {
	case ours == theirs, base == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	folders, files := true, true
	for _, x := range e {
		folders = folders && (x.Hash.IsZero() || x.IsDir())
		files = files && x.IsFile()
	}
	if folders { // one that is not there is empty
		hash, err := m.merge(path+"/", base.Hash, ours.Hash, theirs.Hash)
		return Entry{Mode: filemode.Dir, Hash: hash}, err
	}
	if !files {
		m.conflicts = append(m.conflicts, path)
		return Entry{}, nil
	}
	var text [3][]byte
	for i, x := range e {
		var err error
		if text[i], err = m.store.read(plumbing.BlobObject, x.Hash); err != nil {
			return Entry{}, err
		}
	}
	both, ok := Merge(text[0], text[1], text[2])
	if !ok {
		m.conflicts = append(m.conflicts, path)
		return Entry{}, nil
	}
	o := NewBlob(both)
	m.objects = append(m.objects, o)
	mode := ours.Mode
	if mode == base.Mode {
		mode = theirs.Mode
	}
	return Entry{Mode: mode, Hash: o.Hash}, nil
}
