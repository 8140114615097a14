package search

import (
	"sync"
	"sync/atomic"
)

// A cache keeps what was asked for lately, in two generations. When the younger one has taken half of the room it becomes
// the older one, and what was not asked for meanwhile is forgotten.
type cache[K comparable, V any] struct {
	most  int64            // bytes
	size  func(K, V) int64 // that an entry takes
	held  *atomic.Int64    // what all caches of a library hold; nil where nobody counts
	tally *tally

	mu           sync.RWMutex
	young, old   map[K]V
	bytes, spare int64 // of the younger and the older one
}

func (c *cache[K, V]) holds() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.bytes + c.spare
}

func (c *cache[K, V]) get(key K) (V, bool) {
	v, ok := c.peek(key)
	c.tally.add(ok)
	return v, ok
}

// peek is get, uncounted.
func (c *cache[K, V]) peek(key K) (V, bool) {
	c.mu.RLock()
	v, young := c.young[key]
	old := false
	if !young {
		v, old = c.old[key]
	}
	c.mu.RUnlock()
	if old {
		c.mu.Lock()
		if moved, ok := c.old[key]; ok { // still there: it moves
			n := c.size(key, moved)
			delete(c.old, key)
			c.young[key] = moved
			c.bytes += n
			c.spare -= n
		}
		c.mu.Unlock()
	}
	return v, young || old
}

// put keeps an entry; one that is there already stays. What is larger than a generation is not kept.
func (c *cache[K, V]) put(key K, v V) {
	n := c.size(key, v)
	if n > c.most/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || c.bytes+n > c.most/2 {
		if c.held != nil {
			c.held.Add(-c.spare)
		}
		c.old, c.spare = c.young, c.bytes
		c.young, c.bytes = make(map[K]V), 0
	}
	if _, ok := c.young[key]; ok {
		return
	}
	if was, ok := c.old[key]; ok { // made again while it was moving
		delete(c.old, key)
		c.spare -= c.size(key, was)
		if c.held != nil {
			c.held.Add(-c.size(key, was))
		}
	}
	c.young[key] = v
	c.bytes += n
	if c.held != nil {
		c.held.Add(n)
	}
}

// drop forgets an entry.
func (c *cache[K, V]) drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range []struct {
		entries map[K]V
		bytes   *int64
	}{{c.young, &c.bytes}, {c.old, &c.spare}} {
		if v, ok := g.entries[key]; ok {
			n := c.size(key, v)
			delete(g.entries, key)
			*g.bytes -= n
			if c.held != nil {
				c.held.Add(-n)
			}
		}
	}
}
