package builtin

import (
	"docent/internal/cache"
	"docent/model"
)

// A passageCache keeps parsed passages, since the good sections of a documentation are found again and again.
type passageCache struct {
	cache.Cache[passageKey, *passage]
}

// A passageKey tells passages apart at a glance. Whether it is the same passage is seen by comparing them, which costs
// nothing if both have their text from the same place in memory.
type passageKey struct {
	path, url, heading, end string
	bytes                   int
}

var parsed = newPassageCache()

func newPassageCache() *passageCache {
	return &passageCache{cache.Cache[passageKey, *passage]{Most: 40 << 20, Size: func(_ passageKey, p *passage) int64 { return p.size() }}}
}

// of is a passage, parsed. It waits when another goroutine is parsing it.
func (c *passageCache) of(from *model.Passage) *passage {
	k := passageKey{from.Path, from.URL, from.Heading, from.Text[max(0, len(from.Text)-32):], len(from.Text)}
	p, ok := c.Get(k)
	if !ok || !p.same(from) {
		c.Drop(k) // the key's texts are the new one's
		p = newPassage(from)
		c.Put(k, p)
	}
	p.parse()
	return p
}
