package projects

import (
	"docent/search"
	"docent/site"
)

// A checkView is what a check has found, as far as a page shows it.
type checkView struct {
	search.Check
	Known     bool
	Public    int // pages that are found by searching
	Direct    int // pages that are public and not found by searching
	Sections  int
	DeadLinks []search.DeadLink
	DeadCount int
	MoreDead  int
	Left      []search.LeftOut
	MoreLeft  int
	Included  int // files whose text is shown in other pages
}

// viewCheck shows at most so many rows of each list.
func viewCheck(c search.Check, most int) checkView {
	view := checkView{Check: c, Known: true, DeadCount: len(c.DeadLinks)}
	for _, p := range c.Pages {
		view.Sections += p.Sections
		if p.State == site.Unlisted {
			view.Direct++
		} else {
			view.Public++
		}
	}
	for _, l := range c.LeftOut {
		if l.State == site.Included {
			view.Included++
		}
	}
	view.DeadLinks = c.DeadLinks[:min(most, len(c.DeadLinks))]
	view.MoreDead = len(c.DeadLinks) - len(view.DeadLinks)
	view.Left = c.LeftOut[:min(most, len(c.LeftOut))]
	view.MoreLeft = len(c.LeftOut) - len(view.Left)
	return view
}
