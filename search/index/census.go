package index

import (
	"slices"

	"docent/search/page"
)

// A Census knows in how many sections each word of titles and headings occurs. It counts from the word lists, so it is
// exact whatever the history of the index.
type Census struct {
	numbers *hashSet
	Words   []uint32 // hashes, by number
	In      []uint32 // sections, by number
}

func newCensus() *Census { return &Census{numbers: newHashSet(16)} }

// NewCensus counts in pages.
func NewCensus(pages []*page.Record) *Census {
	c := newCensus()
	c.noteAll(pages, nil)
	c.count(pages, true)
	return c
}

// Number is that of a word of a title or heading.
func (c *Census) Number(hash uint32) uint32 {
	at, _ := c.numbers.get(hash)
	return at
}

// Bytes are those that it holds.
func (c *Census) Bytes() int64 { return 8 * int64(len(c.numbers.keys)+len(c.Words)) }

// note makes words known, but those that another census knows.
func (c *Census) note(w page.WordList, but *Census) {
	for i := range w.Len() {
		hash := w.At(i)
		if but != nil {
			if _, known := but.numbers.get(hash); known {
				continue
			}
		}
		if c.numbers.put(hash, uint32(len(c.Words))) {
			c.Words, c.In = append(c.Words, hash), append(c.In, 0)
		}
	}
}

func (c *Census) noteAll(pages []*page.Record, but *Census) {
	for _, r := range pages {
		c.note(r.TitleWords, but)
		for i := range r.Sections {
			c.note(r.Sections[i].Head, but)
		}
	}
}

// count adds the sections of pages to those that their words occur in, or takes them away.
func (c *Census) count(pages []*page.Record, add bool) {
	if len(c.Words) == 0 {
		return
	}
	last := make([]uint32, len(c.Words)) // the section in which a word was seen last, from 1
	section := uint32(0)
	see := func(w page.WordList) {
		for i := range w.Len() {
			if at, ok := c.numbers.get(w.At(i)); ok && last[at] != section {
				if last[at] = section; add {
					c.In[at]++
				} else {
					c.In[at]--
				}
			}
		}
	}
	for _, r := range pages {
		for i := range r.Sections {
			if section++; i == 0 {
				see(r.TitleWords)
			}
			see(r.Sections[i].Body)
		}
	}
}

// After is the census of pages of which most are the same as before, both in the order of their paths.
func (c *Census) After(before, pages []*page.Record) *Census {
	var gone, come []*page.Record
	rest := before
	for _, r := range pages {
		for len(rest) > 0 && rest[0].Path < r.Path {
			gone, rest = append(gone, rest[0]), rest[1:]
		}
		if len(rest) > 0 && rest[0] == r {
			rest = rest[1:]
			continue
		}
		come = append(come, r)
	}
	gone = append(gone, rest...)
	out := &Census{c.numbers.clone(), slices.Clone(c.Words), slices.Clone(c.In)}
	out.count(gone, false)
	out.count(come, true)
	more := newCensus() // words that are new in titles and headings may stand in any text
	more.noteAll(come, out)
	more.count(pages, true)
	for i, hash := range more.Words {
		out.numbers.put(hash, uint32(len(out.Words)))
		out.Words, out.In = append(out.Words, hash), append(out.In, more.In[i])
	}
	return out
}

// A hashSet maps hashes to small numbers, in open addressing.
type hashSet struct {
	keys   []uint32
	values []uint32 // number + 1; 0 is empty
	mask   uint32
	held   int
}

func newHashSet(n int) *hashSet {
	size := 16
	for size < 2*n+2 {
		size *= 2
	}
	return &hashSet{keys: make([]uint32, size), values: make([]uint32, size), mask: uint32(size - 1)}
}

func (h *hashSet) clone() *hashSet {
	return &hashSet{slices.Clone(h.keys), slices.Clone(h.values), h.mask, h.held}
}

// put reports whether the key is new; one that is there keeps its number.
func (h *hashSet) put(key, value uint32) bool {
	if 2*h.held >= len(h.keys) {
		larger := newHashSet(2 * h.held)
		for i, v := range h.values {
			if v != 0 {
				larger.put(h.keys[i], v-1)
			}
		}
		*h = *larger
	}
	i := (key * 2654435769) >> 7 & h.mask
	for h.values[i] != 0 {
		if h.keys[i] == key {
			return false
		}
		i = (i + 1) & h.mask
	}
	h.keys[i], h.values[i] = key, value+1
	h.held++
	return true
}

func (h *hashSet) get(key uint32) (uint32, bool) {
	i := (key * 2654435769) >> 7 & h.mask
	for h.values[i] != 0 {
		if h.keys[i] == key {
			return h.values[i] - 1, true
		}
		i = (i + 1) & h.mask
	}
	return 0, false
}
