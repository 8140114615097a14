// Package outage counts failures that come once for each request, so that the log tells of the first of them and of their
// end, and not of each.
package outage

import (
	"sync"
	"time"
)

// maxTracked bounds what is remembered: an outage beyond it is logged again.
const maxTracked = 1000

// An Outages tracks what fails now, each by a key such as the name of a node. The zero value is valid.
type Outages struct {
	mu     sync.Mutex
	failed map[string]*outage
}

type outage struct {
	count int
	since time.Time
}

// Failed counts a failure of the key, and reports whether the key did not fail before: the caller logs it then.
func (o *Outages) Failed(key string) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.failed[key]; f != nil {
		f.count++
		return false
	}
	if o.failed == nil || len(o.failed) >= maxTracked {
		o.failed = map[string]*outage{}
	}
	o.failed[key] = &outage{1, time.Now()}
	return true
}

// Worked ends the outage of the key, if there is one: it returns how many failures it had, 0 without one, and how long
// ago the first was. The caller logs the end.
func (o *Outages) Worked(key string) (failures int, lasted time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.failed[key]
	if f == nil {
		return 0, 0
	}
	delete(o.failed, key)
	return f.count, time.Since(f.since)
}
