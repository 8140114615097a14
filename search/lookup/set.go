package lookup

// A Set maps hashes to small numbers, in open addressing.
type Set struct {
	keys   []uint32
	values []uint32 // number + 1; 0 is empty
	mask   uint32
}

// NewSet makes a set for so many hashes.
func NewSet(n int) *Set {
	size := 16
	for size < 2*n+2 {
		size *= 2
	}
	return &Set{keys: make([]uint32, size), values: make([]uint32, size), mask: uint32(size - 1)}
}

// Put reports whether the key is new; one that is there keeps its number.
func (h *Set) Put(key, value uint32) bool {
	i := (key * 2654435769) >> 7 & h.mask
	for h.values[i] != 0 {
		if h.keys[i] == key {
			return false
		}
		i = (i + 1) & h.mask
	}
	h.keys[i], h.values[i] = key, value+1
	return true
}

// Get is the number of a hash.
func (h *Set) Get(key uint32) (uint32, bool) {
	i := (key * 2654435769) >> 7 & h.mask
	for h.values[i] != 0 {
		if h.keys[i] == key {
			return h.values[i] - 1, true
		}
		i = (i + 1) & h.mask
	}
	return 0, false
}
