package builtin

import (
	"sync"

	"docent/model"
)

// shelf keeps passages that were read lately: the good sections of a documentation are found again and again. It has
// two generations, so that it stays bounded without a list of who was used when.
type shelf struct {
	mu         sync.Mutex
	young, old map[leafKey]*leaf
	bytes      int
}

// A leafKey tells passages apart at a glance; whether it is the same passage is seen by comparing them, which costs nothing
// where both have their text from the same place.
type leafKey struct {
	path, url, heading, end string
	bytes                   int
}

const shelfBytes = 20 << 20 // of leaves in a generation

var leaves shelf

// of is what a passage says, read by now. Who asks for a passage that somebody is reading waits for him.
func (s *shelf) of(p *model.Passage) *leaf {
	k := leafKey{p.Path, p.URL, p.Heading, p.Text[max(0, len(p.Text)-32):], len(p.Text)}
	s.mu.Lock()
	l := s.young[k]
	if l == nil {
		if l = s.old[k]; l != nil {
			s.put(k, l)
		}
	}
	if l == nil || !l.same(p) {
		l = newLeaf(p)
		s.put(k, l)
	}
	s.mu.Unlock()
	l.read()
	return l
}

func (s *shelf) put(k leafKey, l *leaf) {
	if s.young == nil || s.bytes > shelfBytes {
		s.old, s.young, s.bytes = s.young, map[leafKey]*leaf{}, 0
	}
	if was := s.young[k]; was != nil {
		s.bytes -= was.size()
		delete(s.young, k) // the key's texts are the new one's
	}
	s.young[k] = l
	s.bytes += l.size()
}
