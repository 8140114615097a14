package search

import (
	"slices"

	"docent/search/page"
)

// asked finds the group of a word that a query asks for, by the word's hash. The closer look puts every word of a
// section to it, and hardly any of them was asked for: a look at one of 4,096 slots tells so.
type asked struct {
	first [askedSlots]uint16 // number of the last word put there, from 1; 0 if there is none
	words []askedWord
}

type askedWord struct {
	hash  uint32
	group uint16
	next  uint16 // the word that was put in the same slot before it
}

const askedSlots = 1 << 12

func askedSlot(hash uint32) uint32 { return hash * 2654435769 >> 20 }

// clear empties the table. It costs what was in it.
func (a *asked) clear() {
	for _, w := range a.words {
		a.first[askedSlot(w.hash)] = 0
	}
	a.words = a.words[:0]
}

// put gives a hash to a group, unless an earlier one has it.
func (a *asked) put(hash uint32, group int) {
	if _, ok := a.get(hash); ok || len(a.words) == 1<<16-1 {
		return
	}
	slot := &a.first[askedSlot(hash)]
	a.words = append(a.words, askedWord{hash, uint16(group), *slot})
	*slot = uint16(len(a.words))
}

func (a *asked) get(hash uint32) (group int, ok bool) {
	n := a.first[askedSlot(hash)]
	if n == 0 {
		return 0, false
	}
	return a.find(hash, n)
}

func (a *asked) find(hash uint32, n uint16) (int, bool) {
	for n != 0 {
		w := &a.words[n-1]
		if w.hash == hash {
			return int(w.group), true
		}
		n = w.next
	}
	return 0, false
}

func (a *asked) has(hash uint32) bool {
	_, ok := a.get(hash)
	return ok
}

// anyOf reports whether a word or a name of a title was asked for.
func (a *asked) anyOf(title page.WordList) bool {
	for k := range title.Len() {
		if a.has(title.At(k)) {
			return true
		}
	}
	return slices.ContainsFunc(title.Names, func(n page.Name) bool { return a.has(n.Hash) })
}
