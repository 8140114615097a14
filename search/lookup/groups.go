// Package lookup finds what belongs to the hash of a word, without allocating: a ranking looks for every word of a section.
package lookup

import (
	"slices"

	"docent/search/page"
)

// Groups finds the group of a word that a query asks for, by the word's hash. The closer look puts every word of a
// section to it, and hardly any of them was asked for: a look at one of 4,096 slots tells so.
type Groups struct {
	first [slots]uint16 // number of the last word put there, from 1; 0 if there is none
	words []groupWord
}

type groupWord struct {
	hash  uint32
	group uint16
	next  uint16 // the word that was put in the same slot before it
}

const slots = 1 << 12

func slotOf(hash uint32) uint32 { return hash * 2654435769 >> 20 }

// Clear empties the table. It costs what was in it.
func (a *Groups) Clear() {
	for _, w := range a.words {
		a.first[slotOf(w.hash)] = 0
	}
	a.words = a.words[:0]
}

// Put gives a hash to a group, unless an earlier one has it.
func (a *Groups) Put(hash uint32, group int) {
	if _, ok := a.Get(hash); ok || len(a.words) == 1<<16-1 {
		return
	}
	slot := &a.first[slotOf(hash)]
	a.words = append(a.words, groupWord{hash, uint16(group), *slot})
	*slot = uint16(len(a.words))
}

// Get is the group of a hash.
func (a *Groups) Get(hash uint32) (group int, ok bool) {
	n := a.first[slotOf(hash)]
	if n == 0 {
		return 0, false
	}
	return a.find(hash, n)
}

func (a *Groups) find(hash uint32, n uint16) (int, bool) {
	for n != 0 {
		w := &a.words[n-1]
		if w.hash == hash {
			return int(w.group), true
		}
		n = w.next
	}
	return 0, false
}

// NoneOf reports that none of four hashes was asked for. One of those for which it does not may have been.
func (a *Groups) NoneOf(h0, h1, h2, h3 uint32) bool {
	return a.first[slotOf(h0)]|a.first[slotOf(h1)]|a.first[slotOf(h2)]|a.first[slotOf(h3)] == 0
}

// Has reports whether a hash was asked for.
func (a *Groups) Has(hash uint32) bool {
	_, ok := a.Get(hash)
	return ok
}

// AnyOf reports whether a word or a name of a title was asked for.
func (a *Groups) AnyOf(title page.WordList) bool {
	for k := range title.Len() {
		if a.Has(title.At(k)) {
			return true
		}
	}
	return slices.ContainsFunc(title.Names, func(n page.Name) bool { return a.Has(n.Hash) })
}
