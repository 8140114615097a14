package page

import "slices"

// maxAround is how many sections stand together at most.
const maxAround = 16

// Around lists the sections that stand together with one of a page, in their order: itself and those right below it, or
// if there are fewer than two, those beside it and first the one that they are all below. It is nil if none does.
func Around(all []Section, at int) []int {
	if len(all) == 0 {
		return nil
	}
	below := children(all, at)
	if len(below) == 1 { // the title of the page, most likely
		if further := children(all, below[0]); len(further) > 1 {
			at, below = below[0], further
		}
	}
	if len(below) < 2 {
		parent := at - 1
		for parent >= 0 && all[parent].Level >= all[at].Level {
			parent--
		}
		if parent < 0 {
			return nil
		}
		at, below = parent, children(all, parent)
	}
	if len(below) < 2 || len(below) >= maxAround {
		return nil
	}
	return slices.Insert(below, 0, at)
}

// children are the sections below one that are on the level right below it.
func children(all []Section, at int) (out []int) {
	level := 0
	for n := at + 1; n < len(all) && all[n].Level > all[at].Level; n++ {
		if level == 0 || all[n].Level <= level {
			level = all[n].Level
			out = append(out, n)
		}
	}
	return out
}
