// Package written holds the questions that were written for sections as a field of an index: which sections answer a
// question that has a word, and how much that counts.
package written

import (
	"cmp"
	"slices"

	"docent/search/analysis"
)

// A Field is the words of questions. It never changes.
type Field struct {
	hashes []uint32 // of words, sorted
	from   []uint32 // where the postings of a word begin; one more at the end
	posts  []posting
	Has    int // sections that have questions
}

type posting struct {
	section uint32
	weight  float32 // how often, over the norm of the length
}

// flatness is how little the length of a section's questions counts: they are all about as long.
const flatness = 0.3

// longest is how many words of a section's questions are kept.
const longest = 200

// New makes the field of so many sections. Questions gives those of one, and the language that its words are stemmed in.
// It is nil if no section has any.
func New(sections int, questions func(section uint32) (list []string, language string)) *Field {
	type entry struct{ hash, section uint32 }
	var all []entry
	lengths := make([]uint16, sections)
	total, has := 0, 0
	a := analysis.Get()
	defer a.Put()
	for s := range uint32(sections) {
		list, language := questions(s)
		begin := len(all)
		for _, q := range list {
			a.Tokens(q, language, func(t analysis.Token) {
				if len(all)-begin < longest && (t.Covers > 0 || !analysis.Dropped(t.Surface)) {
					all = append(all, entry{analysis.Hash(t.Term), s})
				}
			})
		}
		if n := len(all) - begin; n > 0 {
			lengths[s] = uint16(n)
			total += n
			has++
		}
	}
	if has == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.section, b.section)) })
	mean := float64(total) / float64(has)
	f := &Field{Has: has}
	for i, e := range all {
		if i == 0 || all[i-1].hash != e.hash {
			f.hashes, f.from = append(f.hashes, e.hash), append(f.from, uint32(len(f.posts)))
		}
		weight := float32(1 / (1 - flatness + flatness*float64(lengths[e.section])/mean))
		if i > 0 && all[i-1] == e {
			f.posts[len(f.posts)-1].weight += weight
			continue
		}
		f.posts = append(f.posts, posting{e.section, weight})
	}
	f.from = append(f.from, uint32(len(f.posts)))
	f.hashes, f.from, f.posts = slices.Clip(f.hashes), slices.Clip(f.from), slices.Clip(f.posts)
	return f
}

// Each visits the sections whose questions have a term. A nil Field has none.
func (f *Field) Each(term string, visit func(section uint32, weight float32)) {
	if f == nil {
		return
	}
	at, ok := slices.BinarySearch(f.hashes, analysis.Hash(term))
	if !ok {
		return
	}
	for _, p := range f.posts[f.from[at]:f.from[at+1]] {
		visit(p.section, p.weight)
	}
}

// Bytes is what the field holds in memory.
func (f *Field) Bytes() int64 {
	if f == nil {
		return 0
	}
	return int64(4*(cap(f.hashes)+cap(f.from)) + 8*cap(f.posts))
}
