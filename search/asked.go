package search

// asked finds the group of a word that a query asks for, by the word's hash. The closer look puts every word of a section
// to it, and hardly any of them was asked for: a look at one of 4,096 places tells so.
type asked struct {
	first [askedPlaces]uint16 // number of the last word put there, from 1; 0 where there is none
	words []askedWord
}

type askedWord struct {
	hash  uint32
	group uint16
	next  uint16 // the word that was put in the same place before it
}

const askedPlaces = 1 << 12

func askedPlace(hash uint32) uint32 { return hash * 2654435769 >> 20 }

// clear empties the table. It costs what was in it.
func (a *asked) clear() {
	for _, w := range a.words {
		a.first[askedPlace(w.hash)] = 0
	}
	a.words = a.words[:0]
}

// put gives a hash to a group, unless an earlier one has it.
func (a *asked) put(hash uint32, group int) {
	if _, ok := a.get(hash); ok || len(a.words) == 1<<16-1 {
		return
	}
	place := &a.first[askedPlace(hash)]
	a.words = append(a.words, askedWord{hash, uint16(group), *place})
	*place = uint16(len(a.words))
}

func (a *asked) get(hash uint32) (group int, ok bool) {
	n := a.first[askedPlace(hash)]
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
