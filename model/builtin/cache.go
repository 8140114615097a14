package builtin

import (
	"sync"

	"docent/model"
)

// shelf keeps passages that were read lately: the good sections of a documentation are found again and again. It has
// two generations, so that it stays bounded without a list of who was used when.
type passageCache struct {
	mu         sync.Mutex
	young, old map[passageKey]*passage
	bytes      int
}

// A leafKey tells passages apart at a glance; whether it is the same passage is seen by comparing them, which costs nothing
// where both have their text from the same place.
type passageKey struct {
	path, url, heading, end string
	bytes                   int
}

const cacheBytes = 20 << 20 // of leaves in a generation

var parsed passageCache

// of is what a passage says, read by now. Who asks for a passage that somebody is reading waits for him.
func (s *passageCache) of(p *model.Passage) *passage {
	k := passageKey{p.Path, p.URL, p.Heading, p.Text[max(0, len(p.Text)-32):], len(p.Text)}
	s.mu.Lock()
	l := s.young[k]
	if l == nil {
		if l = s.old[k]; l != nil {
			s.put(k, l)
		}
	}
	if l == nil || !l.same(p) {
		l = newPassage(p)
		s.put(k, l)
	}
	s.mu.Unlock()
	l.read()
	return l
}

func (s *passageCache) put(k passageKey, l *passage) {
	if s.young == nil || s.bytes > cacheBytes {
		s.old, s.young, s.bytes = s.young, map[passageKey]*passage{}, 0
	}
	if was := s.young[k]; was != nil {
		s.bytes -= was.size()
		delete(s.young, k) // the key's texts are the new one's
	}
	s.young[k] = l
	s.bytes += l.size()
}
