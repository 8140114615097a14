// Package sidebar orders the pages of a documentation site as the sidebar shows them that its generator makes of folders, of files
// in them and of front matter: Docusaurus, Starlight, Hugo, Nextra, Fumadocs, MkDocs with and without awesome-pages, and Just the
// Docs for Jekyll. What a site writes out as a list is read by package site.
package sidebar

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"docent/api"
)

// A Front is what a page's front matter says of its place.
type Front struct {
	_        struct{} `cbor:",toarray"`
	At       string   // a number, or a word, by which it is ordered; empty if it does not say
	Label    string   // what the page is called there; empty for its title
	Parents  []string // titles of the pages above it, the nearest first: Just the Docs
	Reversed bool     // the pages below it are shown in reverse: Just the Docs
	Left     bool     // it is not shown
}

// maxText bounds what is kept of a page's front matter.
const maxText = 200

// ReadFront takes from front matter what it says of a page's place. Names differ between the generators.
func ReadFront(values map[string]any) Front {
	var f Front
	of, _ := values["sidebar"].(map[string]any)
	for _, v := range []any{values["sidebar_position"], values["nav_order"], of["order"], values["weight"]} {
		if f.At = word(v); f.At != "" {
			break
		}
	}
	for _, v := range []any{values["sidebar_label"], of["label"], values["sidebarTitle"], values["linkTitle"]} {
		f.Label = cmp.Or(f.Label, word(v))
	}
	for _, key := range []string{"parent", "grand_parent", "ancestor"} {
		if name := word(values[key]); name != "" {
			f.Parents = append(f.Parents, name)
		} else if key == "parent" {
			break
		}
	}
	order := word(values["child_nav_order"])
	f.Reversed = order == "desc" || order == "reversed"
	f.Left = values["nav_exclude"] == true || of["hidden"] == true
	return f
}

// word is a text or a number; empty for anything else.
func word(v any) string {
	switch v := v.(type) {
	case string:
		if len(v) <= maxText {
			return strings.TrimSpace(v)
		}
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return ""
}

// number is the number that a text is.
func number(text string) (n float64, ok bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// A Page is what the place of a page is told by.
type Page struct {
	Path  string // relative to the documentation folder
	Title string
	Date  int64 // in seconds since 1970; 0 if it does not say
	Front Front
}

// A Place is where the sidebar shows a page.
type Place struct {
	At     int      // from 1; 0 if it does not show it
	Label  string   // that a folder's own file gives the page
	Groups []string // titles of the groups above it; nil if the generator's rule for them is not known
}

// Order is the places of pages below a folder, in their order. Its files are those of the folder alone.
func (r *Rules) Order(dir string, pages []Page) []Place {
	places := make([]Place, len(pages))
	if r.kind == api.SiteJekyll {
		r.byParents(dir, pages, places)
		return places
	}
	if !slices.Contains([]api.SiteKind{api.SiteDocusaurus, api.SiteStarlight, api.SiteHugo, api.SiteNext, api.SiteMkDocs}, r.kind) {
		return places
	}
	t := &tree{rules: r, pages: pages, places: places}
	root := &node{path: dir, own: none}
	for i, p := range pages {
		if rel, ok := strings.CutPrefix(p.Path, dir+"/"); ok || dir == "" {
			root.add(strings.Split(cmp.Or(rel, p.Path), "/"), i)
		}
	}
	t.settle(root)
	t.walk(root, nil)
	return places
}

// A node is a file or a folder.
type node struct {
	path, name string // name has the extension of a file
	page       int    // of a file
	own        int    // of a folder, the page that stands for it; none if there is none
	folder     bool
	kids       []*node
	byName     map[string]*node
	front      Front // of the file, or of the page that stands for the folder
	title      string
	date       int64
	first      float64 // Starlight: the lowest order of what a folder holds
	at         float64 // Docusaurus: its position
}

const none = -1

func (n *node) add(parts []string, page int) {
	if n.byName == nil {
		n.byName = map[string]*node{}
	}
	n.folder = true
	kid := n.byName[parts[0]]
	if kid == nil {
		kid = &node{path: path.Join(n.path, parts[0]), name: parts[0], page: page, own: none}
		n.byName[parts[0]], n.kids = kid, append(n.kids, kid)
	}
	if len(parts) > 1 {
		kid.add(parts[1:], page)
	}
}

func (n *node) stem() string {
	if n.folder {
		return n.name
	}
	return strings.TrimSuffix(n.name, path.Ext(n.name))
}

// A tree is the pages below a folder while their places are told.
type tree struct {
	rules  *Rules
	pages  []Page
	places []Place
	last   int
}

// settle finds the page that stands for each folder, and puts what a folder holds in its order.
func (t *tree) settle(n *node) {
	kind := t.rules.kind
	n.first = unordered
	if kind == api.SiteStarlight || kind == api.SiteNext { // guides.md is the index of guides/
		n.kids = slices.DeleteFunc(n.kids, func(k *node) bool {
			of := n.byName[k.stem()]
			if k.folder || of == nil || !of.folder || of.byName["index"] != nil {
				return false
			}
			index := *k
			index.name = "index" + path.Ext(k.name)
			of.byName["index"], of.kids = &index, append(of.kids, &index)
			return true
		})
	}
	for _, k := range n.kids {
		if k.folder && kind == api.SiteNext {
			k.routed()
		}
		if k.folder {
			t.settle(k)
			n.first = min(n.first, k.first)
			continue
		}
		p := t.pages[k.page]
		k.front, k.title, k.date = p.Front, p.Title, p.Date
		if at, ok := number(k.front.At); ok && !k.front.Left {
			n.first = min(n.first, at)
		}
		if t.standsFor(k, n) {
			n.own, n.front, n.title, n.date = k.page, k.front, k.title, k.date
		}
	}
	if n.own != none {
		n.kids = slices.DeleteFunc(n.kids, func(k *node) bool { return !k.folder && k.page == n.own })
	}
	for _, k := range n.kids {
		k.at = t.position(k)
	}
	slices.SortStableFunc(n.kids, t.compare(n))
}

// routed makes of a folder of Next.js's with a file that is called page what that file is: the page of the folder's name, or
// if there are others, its index.
func (n *node) routed() {
	for _, k := range n.kids {
		switch {
		case k.folder || k.stem() != "page":
		case len(n.kids) == 1:
			*n = node{path: n.path, name: n.name + path.Ext(k.name), page: k.page, own: none}
			return
		default:
			k.name = "index" + path.Ext(k.name)
		}
	}
}

// standsFor reports whether a page is what its folder's name leads to, so that it is not shown below it.
func (t *tree) standsFor(k, n *node) bool {
	stem := k.stem()
	switch t.rules.kind {
	case api.SiteDocusaurus:
		if n.name == "" { // where the sidebar begins
			return false
		}
		f := t.rules.folders[n.path]
		switch f.link {
		case "":
			plain := WithoutNumber(stem)
			return strings.EqualFold(plain, "index") || strings.EqualFold(plain, "readme") || strings.EqualFold(plain, WithoutNumber(n.name))
		case noPage:
			return false
		}
		return path.Base(f.link) == WithoutNumber(stem)
	case api.SiteHugo:
		return stem == "_index" || strings.HasPrefix(stem, "_index.") || stem == "index" || strings.HasPrefix(stem, "index.")
	}
	return false
}

// unordered is the order of what says none.
const unordered = 1e308

var (
	numbered  = regexp.MustCompile(`^(\d+)\s*[-_.]+\s*([^-_.\s].*)$`)
	notNumber = regexp.MustCompile(`^\d+[-_.]\d+`) // dates and versions
)

// Numbered is the number by which Docusaurus orders a file or a folder, and its name without it. number is empty if it has none.
func Numbered(name string) (number, rest string) {
	if m := numbered.FindStringSubmatch(name); m != nil && !notNumber.MatchString(name) {
		return m[1], m[2]
	}
	return "", name
}

// WithoutNumber is a name without the number by which Docusaurus orders it.
func WithoutNumber(name string) string {
	_, rest := Numbered(name)
	return rest
}

// position is where Docusaurus puts a file or a folder.
func (t *tree) position(n *node) float64 {
	if t.rules.kind != api.SiteDocusaurus {
		return 0
	}
	said := n.front.At
	if n.folder {
		said = cmp.Or(t.rules.folders[n.path].at, said)
	}
	of, _ := Numbered(n.stem())
	for _, text := range []string{said, of} {
		if at, ok := number(text); ok {
			return at
		}
	}
	return unordered
}

// compare orders what a folder holds by the generator's rule.
func (t *tree) compare(of *node) func(a, b *node) int {
	switch t.rules.kind {
	case api.SiteDocusaurus:
		return func(a, b *node) int {
			return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.name, b.name))
		}
	case api.SiteStarlight:
		order := func(n *node) float64 {
			if at, ok := number(n.front.At); ok && !n.folder {
				return at
			} else if n.folder {
				return n.first
			}
			return unordered
		}
		name := func(n *node) string { // its address
			if n.stem() == "index" && !n.folder {
				return of.name
			}
			return strings.ToLower(path.Join(of.name, n.stem()))
		}
		return func(a, b *node) int {
			return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(name(a), name(b)))
		}
	case api.SiteHugo:
		weight := func(n *node) float64 {
			if w, ok := number(n.front.At); ok && w != 0 {
				return w
			}
			return unordered
		}
		title := func(n *node) string { return strings.ToLower(cmp.Or(n.title, n.name)) }
		return func(a, b *node) int {
			return cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(b.date, a.date), strings.Compare(title(a), title(b)))
		}
	case api.SiteNext:
		places := map[string]int{}
		list := t.rules.folders[of.path].list
		for i, e := range list {
			places[e.name] = i + 1
		}
		place := func(n *node) int {
			at := places[n.stem()]
			if at == 0 && n.stem() != "index" {
				return len(list) + 1
			}
			return at
		}
		return func(a, b *node) int {
			return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a.stem(), b.stem()))
		}
	}
	return t.compareMkDocs(of)
}

// walk gives the pages of a folder their places.
func (t *tree) walk(n *node, groups []string) {
	if n.own != none {
		above := groups
		if len(groups) > 0 {
			above = groups[:len(groups)-1]
		}
		t.place(n.own, "", above)
	}
	for _, k := range n.kids {
		switch {
		case k.folder:
			if f := t.rules.folders[k.path]; !f.hidden {
				t.walk(k, append(slices.Clip(groups), t.label(n, k)))
			}
		case k.front.Left && t.rules.kind == api.SiteStarlight, t.listed(n, k).hidden:
		default:
			t.place(k.page, t.listed(n, k).title, groups)
		}
	}
}

func (t *tree) place(page int, label string, groups []string) {
	t.last++
	t.places[page] = Place{At: t.last, Label: label, Groups: groups}
	if t.rules.kind == api.SiteHugo { // themes call them by what their index pages say
		t.places[page].Groups = nil
	}
}

// listed is what a folder's own file says of what it holds.
func (t *tree) listed(of, n *node) entry {
	f := t.rules.folders[of.path]
	if e, ok := f.named[n.name]; ok {
		return e
	}
	return f.named[n.stem()]
}

// label is what the sidebar calls a folder.
func (t *tree) label(of, n *node) string {
	name := n.name
	switch t.rules.kind {
	case api.SiteDocusaurus:
		return cmp.Or(t.rules.folders[n.path].label, n.front.Label, n.title, WithoutNumber(name))
	case api.SiteStarlight:
		return name
	case api.SiteNext:
		words := strings.FieldsFunc(name, func(c rune) bool { return c == '-' || c == '_' || c == ' ' })
		for i, w := range words {
			words[i] = capital(w)
		}
		return cmp.Or(t.listed(of, n).title, t.rules.folders[n.path].label, strings.Join(words, " "))
	}
	name = strings.NewReplacer("-", " ", "_", " ").Replace(name)
	if strings.ToLower(name) == name {
		name = capital(name)
	}
	return cmp.Or(t.rules.folders[n.path].label, t.listed(of, n).title, name)
}

func capital(word string) string {
	for i, c := range word {
		return word[:i] + string(unicode.ToUpper(c)) + word[i+len(string(c)):]
	}
	return word
}
