package index

import (
	"fmt"
	"hash/fnv"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/search/page"
	"docent/site"
	"docent/site/sidebar"
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
	made := u.placed(shown)
	restricted := u.restricted(shown, made)
	var listed [][3]int // places, those within a folder, and names of pages
	for i, r := range u.records {
		if r.Kind == page.KindPage {
			at := u.placeOf(r, shown[r], titles)
			below := made[r]
			if at.Seq == 0 && below.Seq > 0 {
				at.Seq, at.Names = below.Seq, below.Names
				if below.Crumbs != nil {
					at.Crumbs = below.Crumbs
				}
			}
			if len(restricted) > 0 {
				at.Crumbs = slices.DeleteFunc(slices.Clone(at.Crumbs), func(title string) bool {
					return slices.ContainsFunc(restricted[title], func(above *page.Record) bool { return !r.TakesFrom(above) })
				})
			}
			if at.Seq > 0 {
				listed = append(listed, [3]int{at.Seq, below.at, int(r.UID)})
			}
			todo = u.contribute(todo, i, at, editions[r], shown[r], incoming[r])
		}
	}
	slices.SortFunc(listed, func(a, b [3]int) int { return slices.Compare(a[:], b[:]) })
	u.listed = nil
	for _, l := range listed {
		u.listed = append(u.listed, uint32(l[2]))
	}
	return todo
}

// restricted are the pages that are not for everybody, by their titles: no page that is for others has them above it.
func (u *Update) restricted(shown map[*page.Record]string, made map[*page.Record]madePlace) map[string][]*page.Record {
	out := make(map[string][]*page.Record)
	for r, address := range shown {
		if len(r.Groups) > 0 {
			at, _ := u.place(r, address)
			for _, title := range slices.Concat(at.Names, made[r].Names, []string{r.Title, r.Front.Sidebar.Label}) {
				out[title] = append(out[title], r)
			}
		}
	}
	return out
}

// A madePlace is the place of a page in a sidebar that is made of folders: within the place of its folder.
type madePlace struct {
	site.Place
	at int
}

// placed is the places of the pages that no navigation names, where the generator shows them by their folders and front matter.
func (u *Update) placed(shown map[*page.Record]string) map[*page.Record]madePlace {
	records := make(map[string][]*page.Record) // by folder
	pages := make(map[string][]sidebar.Page)
	for _, r := range u.records {
		if r.Kind != page.KindPage || r.File != "" {
			continue
		}
		if _, named := u.place(r, shown[r]); named {
			continue
		}
		for dir := path.Dir(r.Path); ; dir = path.Dir(dir) {
			key := strings.TrimPrefix(dir, ".")
			if _, ok := u.folders[key]; ok {
				records[key] = append(records[key], r)
				pages[key] = append(pages[key], sidebar.Page{Path: r.Path, Title: r.Title, Date: r.Front.Date, Front: r.Front.Sidebar})
				break
			}
			if key == "" || dir == "/" {
				break
			}
		}
	}
	out := make(map[*page.Record]madePlace)
	for dir, list := range records {
		above := u.folders[dir]
		for i, at := range u.order.Order(dir, pages[dir]) {
			if at.At > 0 {
				m := madePlace{above, at.At}
				if at.Label != "" {
					m.Names = []string{at.Label}
				}
				if at.Groups != nil || len(above.Crumbs) > 0 {
					m.Crumbs = slices.Concat(above.Crumbs, at.Groups)
				}
				out[list[i]] = m
			}
		}
	}
	return out
}

// byFolders finds the folders whose pages make up the sidebar if no file of the site lists what is in it.
func (u *Update) byFolders(read func(string) ([]byte, error)) {
	u.standing.orders = u.orders(u.where.Kind)
	u.order = sidebar.Read(u.where.Kind, u.standing.orders, read)
	if len(u.places)+len(u.folders) > 0 {
		return
	}
	if u.where.Kind == api.SiteNext {
		for _, dir := range u.order.Roots() {
			u.folders[dir] = site.Place{Seq: 1}
		}
		return
	}
	u.folders[u.folder("")] = site.Place{Seq: 1}
	for _, r := range u.records {
		if m := versionFolder.FindString(r.Path); m != "" && u.where.Kind == api.SiteDocusaurus {
			u.folders[m] = site.Place{Seq: 1}
		}
	}
}

// versionFolder is a folder that holds the pages of a version of Docusaurus.
var versionFolder = regexp.MustCompile(`^versioned_docs/version-[^/]+`)

// folder is a folder below that of the site's pages, from the documentation folder.
func (u *Update) folder(name string) string {
	rel, ok := site.Relative(u.project.DocsDir, path.Join(u.where.Pages(), name, "x"))
	if rel = path.Dir(rel); !ok || rel == "." {
		return ""
	}
	return rel
}

// orders lists the files of the documentation folder that say the order of a folder.
func (u *Update) orders(kind api.SiteKind) (out []string) {
	for name := range u.files {
		rel, below := strings.CutPrefix(name, u.project.DocsDir+"/")
		if u.project.DocsDir == "" {
			rel, below = name, true
		}
		if below && sidebar.Speaks(kind, rel) {
			out = append(out, rel)
		}
	}
	slices.Sort(out)
	return out
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
			if to == nil || to == from || l.Text == "" || !to.TakesFrom(from) || targets != nil && !targets[to] {
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
	u.folders = make(map[string]site.Place)
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
			if p.Folder {
				if seen++; u.where.Kind == site.Configures(r.Path) {
					p.Seq = seen
					u.folders[u.folder(page)] = p
				}
				return
			}
			dir := path.Join("/", u.project.DocsDir, path.Dir(r.Path))
			if strings.HasPrefix(page, "/") {
				switch site.Configures(r.Path) {
				case api.SiteVitePress:
					dir = strings.TrimSuffix(strings.TrimSuffix(dir, "/config"), "/.vitepress")
				case api.SiteStarlight: // an address
					dir = path.Join("/", u.project.DocsDir)
				}
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
