// Package grant remembers what a piece of work was given before it may begin, so that every way out gives all of it back.
package grant

import "slices"

// A Grant is what one piece of work was given. The zero value holds nothing. It is used by one goroutine at a time.
type Grant struct {
	held  []Place
	first [3]Place // most grants hold no more
}

// A Place is held while the work is done, whatever comes of it.
type Place interface{ Done() }

// A cost is spent by work that is accepted.
type cost func()

// Done gives it back.
func (c cost) Done() { c() }

// Add remembers how to undo a cost, such as a use of a quota: Close undoes it, unless Keep was called.
func (g *Grant) Add(undo func()) { g.Hold(cost(undo)) }

// Hold remembers a place, such as one in a queue: Close calls its Done, also after Keep.
func (g *Grant) Hold(p Place) {
	if g.held == nil {
		g.held = g.first[:0]
	}
	g.held = append(g.held, p)
}

// Keep means that the work was accepted, or may have been: what it has cost is not given back.
func (g *Grant) Keep() {
	g.held = slices.DeleteFunc(g.held, func(p Place) bool {
		_, is := p.(cost)
		return is
	})
}

// Close gives back what the grant holds, the last first. A second call does nothing.
func (g *Grant) Close() {
	for _, p := range slices.Backward(g.held) {
		p.Done()
	}
	clear(g.held)
	g.held = nil
}
