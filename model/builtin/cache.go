package builtin

import (
	"sync"

	"docent/model"
)

// A passageCache keeps parsed passages, since the good sections of a documentation are found again and again. It has
// two generations: when the young one is full it becomes the old one, and what was not asked for meanwhile is
// forgotten.
type passageCache struct {
	mu         sync.Mutex
	young, old map[passageKey]*passage
	bytes      int
}

// A passageKey tells passages apart at a glance. Whether it is the same passage is seen by comparing them, which costs
// nothing if both have their text from the same place in memory.
type passageKey struct {
	path, url, heading, end string
	bytes                   int
}

const cacheBytes = 20 << 20 // of passages in a generation

var parsed passageCache

// of is a passage, parsed. It waits when another goroutine is parsing it.
func (c *passageCache) of(from *model.Passage) *passage {
	k := passageKey{from.Path, from.URL, from.Heading, from.Text[max(0, len(from.Text)-32):], len(from.Text)}
	c.mu.Lock()
	p := c.young[k]
	if p == nil {
		if p = c.old[k]; p != nil {
			c.put(k, p)
		}
	}
	if p == nil || !p.same(from) {
		p = newPassage(from)
		c.put(k, p)
	}
	c.mu.Unlock()
	p.parse()
	return p
}

func (c *passageCache) put(k passageKey, p *passage) {
	if c.young == nil || c.bytes > cacheBytes {
		c.old, c.young, c.bytes = c.young, map[passageKey]*passage{}, 0
	}
	if was := c.young[k]; was != nil {
		c.bytes -= was.size()
		delete(c.young, k) // the key's texts are the new one's
	}
	c.young[k] = p
	c.bytes += p.size()
}
