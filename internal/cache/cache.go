// Package cache keeps what was asked for lately, and has several callers share one piece of work.
package cache

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// A Cache keeps what was asked for lately, within a number of bytes. What was not used for longest goes first.
type Cache[K comparable, V any] struct {
	Most   int64            // bytes
	Size   func(K, V) int64 // that an entry takes
	Held   *atomic.Int64    // what several caches hold together; nil if nobody counts
	Looked func(hit bool)   // is told what became of Get; nil if nobody counts

	mu    sync.Mutex
	lru   *simplelru.LRU[K, V] // nil until something is kept
	bytes int64
}

// Holds is how many bytes the entries take.
func (c *Cache[K, V]) Holds() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// Get returns an entry.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	v, ok := c.Peek(key)
	if c.Looked != nil {
		c.Looked(ok)
	}
	return v, ok
}

// Peek is Get, uncounted.
func (c *Cache[K, V]) Peek(key K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lru != nil {
		v, ok = c.lru.Get(key)
	}
	return v, ok
}

// Put keeps an entry; one that is there already stays. What would take half of the cache is not kept.
func (c *Cache[K, V]) Put(key K, v V) {
	n := c.Size(key, v)
	if n > c.Most/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lru == nil {
		// its error is for a size below 1
		c.lru, _ = simplelru.NewLRU(math.MaxInt, func(key K, v V) { c.count(-c.Size(key, v)) })
	}
	if c.lru.Contains(key) {
		return
	}
	c.lru.Add(key, v)
	c.count(n)
	for c.bytes > c.Most {
		c.lru.RemoveOldest()
	}
}

func (c *Cache[K, V]) count(n int64) {
	c.bytes += n
	if c.Held != nil {
		c.Held.Add(n)
	}
}

// Drop forgets an entry.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lru != nil {
		c.lru.Remove(key)
	}
}
