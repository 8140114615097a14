package search

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// A cache keeps what was asked for lately, within a number of bytes. What was not used for longest goes first.
type cache[K comparable, V any] struct {
	most    int64            // bytes
	size    func(K, V) int64 // that an entry takes
	held    *atomic.Int64    // what all caches of a library hold; nil if nobody counts
	lookups *lookupCount

	mu    sync.Mutex
	lru   *simplelru.LRU[K, V] // nil until something is kept
	bytes int64
}

func (c *cache[K, V]) holds() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

func (c *cache[K, V]) get(key K) (V, bool) {
	v, ok := c.peek(key)
	c.lookups.add(ok)
	return v, ok
}

// peek is get, uncounted.
func (c *cache[K, V]) peek(key K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lru != nil {
		v, ok = c.lru.Get(key)
	}
	return v, ok
}

// put keeps an entry; one that is there already stays. What would take half of the cache is not kept.
func (c *cache[K, V]) put(key K, v V) {
	n := c.size(key, v)
	if n > c.most/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lru == nil {
		// its error is for a size below 1
		c.lru, _ = simplelru.NewLRU(math.MaxInt, func(key K, v V) { c.count(-c.size(key, v)) })
	}
	if c.lru.Contains(key) {
		return
	}
	c.lru.Add(key, v)
	c.count(n)
	for c.bytes > c.most {
		c.lru.RemoveOldest()
	}
}

func (c *cache[K, V]) count(n int64) {
	c.bytes += n
	if c.held != nil {
		c.held.Add(n)
	}
}

// drop forgets an entry.
func (c *cache[K, V]) drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lru != nil {
		c.lru.Remove(key)
	}
}
