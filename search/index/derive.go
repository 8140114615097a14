package index

import (
	"fmt"
	"hash/fnv"
	"math"
	"path"
	"slices"
	"strings"

	"docent/api"
	"docent/search/page"
	"docent/site"
)

// derive works out what files contribute to each other's documents: navigation gives pages their other names, a link's
// text describes the page that it points to. It returns the
// records whose documents have to be made.
func (u *Update) derive() []*page.Record {
	if u.textsOnly {
		u.listed = u.old.Manifest.Listed
		return u.deriveTexts()
	}
	titles := make(map[string]string) // of folders, by their index pages
	shown := make(map[*page.Record]string, len(u.records))
	for _, r := range u.records {
		switch r.Kind {
		case page.KindPage:
			shown[r] = u.where.Shown(r.Page())
			if key := site.PageKey(r.Path); r.File == "" && key == strings.Trim(path.Dir(r.Path), "./") {
				titles[path.Dir(r.Path)] = r.Title
			}
		}
	}
	u.operations(shown)
	incoming := u.incoming(shown, u.byKey(shown), nil)
	editions := u.editions(shown)
	var todo []*page.Record
	var listed [][2]int // places and names of pages
	for i, r := range u.records {
		if r.Kind == page.KindPage {
			at := u.placeOf(r, shown[r], titles)
			if at.Seq > 0 {
				listed = append(listed, [2]int{at.Seq, int(r.UID)})
			}
			todo = u.contribute(todo, i, at, editions[r], shown[r], incoming[r])
		}
	}
	slices.SortFunc(listed, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	u.listed = nil
	for _, l := range listed {
		u.listed = append(u.listed, uint32(l[1]))
	}
	return todo
}

// contribute gives a page what other files say of it, and adds it to those whose documents have to be made, if that is
// something else than it was.
func (u *Update) contribute(todo []*page.Record, i int, at site.Place, v site.Edition, address string, links []string) []*page.Record {
	r := u.records[i]
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %q %d %t %q %t %q %q %q", u.where.AnchorRule(), at.Names, at.Crumbs, address, at.Order, r.Hidden,
		v.Versions, v.Current, v.Language, v.Docs, v.Same)
	for _, s := range links {
		fmt.Fprintf(h, "l%d:%s", len(s), s)
	}
	derived := h.Sum64()
	src := u.sources[r]
	if src == nil {
		if derived == r.Derived {
			return todo
		}
		// Known content, new neighbors. The old generation keeps its own record.
		clone := *r
		clone.Sections = nil
		r, src = &clone, &page.Source{}
		u.records[i], u.sources[r] = r, src
	}
	src.Place, src.Links = at, links
	r.Derived, r.Shown, r.Crumbs, r.Order = derived, address, at.Crumbs, at.Order
	r.Versions, r.Current, r.Locale, r.Docs, r.Same = v.Versions, v.Current, v.Language, v.Docs, v.Same
	return append(todo, r)
}

// placeOf is a page's place in the navigation: an operation of an API below the API, under its first tag.
func (u *Update) placeOf(r *page.Record, address string, titles map[string]string) site.Place {
	if r.File != "" {
		at := site.Place{Crumbs: u.where.Crumbs(r.Page(), titles)}
		if file := u.record(r.File); file != nil {
			at.Crumbs = append(slices.Clip(u.placeOf(file, u.where.Shown(file.Page()), titles).Crumbs), file.Title)
		}
		at.Crumbs = append(at.Crumbs, r.Tags[:min(1, len(r.Tags))]...)
		return at
	}
	at, _ := u.place(r, address)
	if len(at.Crumbs) == 0 {
		at.Crumbs = u.where.Crumbs(r.Page(), titles)
	}
	return at
}

// operations gives the operations of APIs their addresses: that of the page of the site which renders it, else of the
// one that the generator makes of it, else of the file.
func (u *Update) operations(shown map[*page.Record]string) {
	renderedBy := make(map[string]string)
	made := make(map[*page.Record]string)
	count := make(map[string]int)
	for _, r := range u.records {
		address, public := shown[r]
		switch {
		case !public || r.Renders == "":
		case r.File == "":
			if _, taken := renderedBy[r.Renders]; !taken {
				renderedBy[r.Renders] = address
			}
		default:
			if folder, ok := u.where.APIs()[r.File]; ok {
				method, at, _ := strings.Cut(r.Renders, " ")
				_, summary, _ := strings.Cut(r.Title, ": ")
				made[r] = site.OperationAddress(folder, strings.Join(r.Tags[:min(1, len(r.Tags))], ""), method, at, summary)
				count[r.File+" "+made[r]]++
			}
		}
	}
	for r := range shown {
		if r.File == "" {
			continue
		}
		if at, ok := renderedBy[r.Renders]; ok {
			shown[r] = at
		} else if at := made[r]; at != "" && count[r.File+" "+at] == 1 { // else they have numbers, by their order in the file
			shown[r] = at
		}
	}
}

// byKey are the pages by what links name them.
func (u *Update) byKey(shown map[*page.Record]string) map[string]*page.Record {
	byKey := make(map[string]*page.Record, 2*len(shown))
	var parts []*page.Record // a page of the site goes before an operation that it renders
	for _, r := range u.records {
		if r.Kind == page.KindPage {
			byKey[site.PageKey(r.Path)] = r
		}
	}
	claim := func(r *page.Record, address string) {
		if key := site.AddressKey(address); byKey[key] == nil {
			byKey[key] = r
		}
	}
	claimAll := func(r *page.Record) {
		claim(r, shown[r])
		for _, address := range r.Aliases {
			claim(r, address)
		}
	}
	for _, r := range u.records {
		switch {
		case r.Kind != page.KindPage:
		case r.File != "":
			parts = append(parts, r)
		default:
			claimAll(r)
		}
	}
	for _, r := range parts {
		claimAll(r)
	}
	return byKey
}

// incoming are the texts of the links that lead to each page, each once and in order; to these pages alone if there are
// targets.
func (u *Update) incoming(shown map[*page.Record]string, byKey map[string]*page.Record, targets map[*page.Record]bool) map[*page.Record][]string {
	incoming := make(map[*page.Record][]string)
	for from := range shown {
		for _, l := range from.Links {
			to := byKey[l.To]
			if to == nil || to == from || l.Text == "" || targets != nil && !targets[to] {
				continue
			}
			incoming[to] = append(incoming[to], l.Text)
		}
	}
	for to, texts := range incoming {
		slices.Sort(texts)
		incoming[to] = slices.Compact(texts)
	}
	return incoming
}

// place is what the navigation says of a page.
func (u *Update) place(r *page.Record, address string) (site.Place, bool) {
	at, listed := u.places[site.PageKey(r.Path)]
	if !listed && u.where.Kind == api.SiteDocusaurus {
		at, listed = u.places[site.WithoutNumbers(site.PageKey(r.Path))]
	}
	if !listed {
		at, listed = u.places[site.AddressKey(address)]
	}
	if !listed {
		at, listed = u.where.Listed(r.Path)
	}
	return at, listed
}

// editions tells the version and the language of each page.
func (u *Update) editions(shown map[*page.Record]string) map[*page.Record]site.Edition {
	var pages []site.EditionPage
	var records []*page.Record
	for _, r := range u.records {
		if address, ok := shown[r]; ok {
			at, _ := u.place(r, address)
			pages = append(pages, site.EditionPage{Path: r.Path, Version: r.Version, Language: r.Language, Place: at})
			records = append(records, r)
		}
	}
	out := make(map[*page.Record]site.Edition, len(pages))
	for i, v := range u.where.Editions(pages) {
		out[records[i]] = v
	}
	return out
}

// orderedPages is how many pages of a navigation are known by their place.
const orderedPages = 5

// navigation reads the files that name pages. Their contents are at hand even when they have not changed.
func (u *Update) navigation(read func(string) ([]byte, error)) map[string]site.Place {
	places := make(map[string]site.Place)
	seen := 0
	for _, r := range u.records {
		if r.Kind != page.KindNavigation {
			continue
		}
		content, err := u.content(r)
		if err != nil {
			u.Log.Warn("navigation cannot be read", "project", u.project.ID, "path", r.Path, "error", err)
			continue
		}
		site.ReadNavigation(r.Path, content, read, func(page string, p site.Place) {
			dir := path.Join("/", u.project.DocsDir, path.Dir(r.Path))
			if strings.HasPrefix(page, "/") && site.Configures(r.Path) == api.SiteVitePress {
				dir = strings.TrimSuffix(strings.TrimSuffix(dir, "/config"), "/.vitepress")
			}
			full := path.Join(dir, page)
			if rest, ok := strings.CutPrefix(full+"/", path.Join("/", u.project.DocsDir)+"/"); ok && u.project.DocsDir != "" {
				full = "/" + rest
			}
			key := site.PageKey(full)
			known, ok := places[key]
			if !ok {
				seen++
				if p.Seq = seen; p.Order == 0 {
					p.Order = uint8(min(seen, math.MaxUint8))
				}
				if p.Order > orderedPages { // so that these may move without being indexed again
					p.Order = 0
				}
				places[key] = p
				return
			}
			known.Join(p)
			places[key] = known
		})
	}
	return places
}
