package proof

// Bound changes how many solutions a generation holds.
func (c *Challenges) Bound(n int) { c.bound = n }

// Remembered is how many solutions are kept.
func (c *Challenges) Remembered() int { return len(c.now.used) + len(c.old.used) }
