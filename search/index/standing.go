package index

import (
	"math"
	"reflect"
	"slices"
	"time"

	"docent/api"
	"docent/search/page"
	"docent/site"
)

// A standing is what the files of a site said of all pages when a generation was made. It stands as long as nothing but
// the texts of pages changes, and so a change of one page looks at no rule of the site for the others.
type standing struct {
	project api.Project
	where   site.Site
	read    map[string]string // hashes of the files that the site's rules are read from; unread of those that are not there
	orders  []string          // files that say the order of folders
	until   time.Time         // when a page is next published or withdrawn by its date
	report  Report            // what it says of the site
}

const (
	missing = "-"
	unsure  = "?" // it is there, and the tree does not tell its hash
)

// hashOf names the state of a file of the tree.
func (u *Update) hashOf(full string) string {
	f, there := u.files[full]
	switch {
	case !there:
		return missing
	case f.Hash == "":
		return unsure
	}
	return f.Hash
}

// differing shows the records of which the old generation has others, where both have the same paths; ok is false
// if they have not, or if do says so.
func (u *Update) differing(do func(old, now *page.Record) bool) (ok bool) {
	if u.old == nil || len(u.old.Records) != len(u.records) {
		return false
	}
	for i, now := range u.records {
		if old := u.old.Records[i]; old != now && (old.Path != now.Path || !do(old, now)) {
			return false
		}
	}
	return true
}

// stands is what the old generation knew of the site, if all that was read for it is the same. Only pages that have a
// file for themselves have changed then.
func (u *Update) stands(now time.Time) *standing {
	if u.old == nil || u.old.standing == nil || u.passed != nil {
		return nil
	}
	s := u.old.standing
	if !now.Before(s.until) || !reflect.DeepEqual(s.project, u.project) || !slices.Equal(s.orders, u.orders(s.where.Kind)) {
		return nil
	}
	for full, hash := range s.read {
		if hash == unsure || u.hashOf(full) != hash {
			return nil
		}
	}
	if !u.differing(func(old, now *page.Record) bool {
		return old.File == "" && now.File == "" && old.Kind == page.KindPage && now.Kind == page.KindPage
	}) {
		return nil
	}
	return s
}

// onlyTexts reports whether the pages that have changed say the same of all that the site's rules look at. They take
// over what was decided of them.
func (u *Update) onlyTexts() bool {
	return u.differing(func(old, now *page.Record) bool {
		now.Name(site.Place{Names: old.Titles})
		if now.Version != old.Version || now.Language != old.Language || now.Renders != old.Renders || !reflect.DeepEqual(now.Page(), old.Page()) ||
			!reflect.DeepEqual(now.Front, old.Front) || !slices.Equal(now.Aliases, old.Aliases) || !slices.Equal(now.Imports, old.Imports) ||
			!slices.Equal(now.Groups, old.Groups) || len(now.Groups) > 0 && now.Title != old.Title {
			return false
		}
		now.Kind, now.Hidden, now.Titles, now.Shown, now.Crumbs, now.Order = old.Kind, old.Hidden, old.Titles, old.Shown, old.Crumbs, old.Order
		now.Versions, now.Current, now.Locale, now.Docs, now.Same = old.Versions, old.Current, old.Locale, old.Docs, old.Same
		return true
	})
}

// nextDate is when the date of a page next says something else of it.
func nextDate(entries []site.Entry, now time.Time) time.Time {
	next := int64(math.MaxInt64)
	for _, e := range entries {
		for _, at := range []int64{e.Front.PublishAt, e.Front.ExpireAt} {
			if at > now.Unix() {
				next = min(next, at)
			}
		}
	}
	return time.Unix(next, 0)
}

// deriveTexts is derive where only texts have changed: pages whose links are others say something else of those that they
// lead to, and the rest stays as it is.
func (u *Update) deriveTexts() (todo []*page.Record) {
	shown := make(map[*page.Record]string, len(u.records))
	for _, r := range u.records {
		if r.Kind == page.KindPage {
			shown[r] = r.Shown
		}
	}
	byKey := u.byKey(shown)
	targets := make(map[*page.Record]bool)
	for _, r := range u.records {
		if r.Kind == page.KindPage && (u.sources[r] != nil || r.Derived == 0) {
			targets[r] = true
		}
	}
	u.differing(func(old, now *page.Record) bool {
		for _, links := range [][2][]page.Link{{old.Links, now.Links}, {now.Links, old.Links}} {
			for _, l := range links[0] {
				if to := byKey[l.To]; to != nil && !slices.Contains(links[1], l) {
					targets[to] = true
				}
			}
		}
		return true
	})
	incoming := u.incoming(shown, byKey, targets)
	for i, r := range u.records {
		if targets[r] {
			at := site.Place{Names: r.Titles, Crumbs: r.Crumbs, Order: r.Order}
			v := site.Edition{Versions: r.Versions, Current: r.Current, Language: r.Locale, Docs: r.Docs, Same: r.Same}
			todo = u.contribute(todo, i, at, v, r.Shown, incoming[r])
		}
	}
	return todo
}
