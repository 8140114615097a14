package search

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"docent/api"
)

// An edition is the version and the language that a page is written for.
type edition struct {
	set      string   // the docs that it belongs to, where a site has several with versions of their own
	versions []string // names of its version, the one that is shown first; of all versions that share the page. None where it belongs to none
	current  bool     // readers who name no version see it
	told     bool     // the site says which version is the current one
	language string   // as the site names it; empty for the site's default
	same     string   // the page's path without version and language: it names the same page in all of them
}

// A layout is how a site keeps versions and languages apart: by its generator's rules, from its own configuration.
type layout struct {
	kind     api.SiteKind
	docsDir  string            // the project's
	root     string            // folder, from the repository's root, that the rules are about
	language string            // the site's default; empty where nothing says it
	locales  map[string]string // languages that the configuration names, by their folder or suffix in lower case
	folders  map[string]string // languages by the folder that holds their pages: Hugo's contentDir
	prefixed bool              // the default language's addresses begin with its name too
	versions map[string]string // versions by their folder
	latest   string            // name of the version that has no folder
	docs     []*docsInstance   // of Docusaurus
	pages    map[string]bool   // keys of all pages
}

// A docsInstance is one documentation of a Docusaurus site, with versions of its own.
type docsInstance struct {
	id, folder string
	route      string            // what its addresses begin with
	labels     map[string]string // by name of the version
	paths      map[string]string
	names      []string // of the versions, the newest first; without the current one
	listed     bool     // versions.json lists them
	last       string   // name of the version that readers see first
}

// full is a page's path from the layout's root.
func (l *layout) full(p string) string {
	full := path.Join(l.docsDir, p)
	if l.root != "" {
		full = strings.TrimPrefix(full, l.root+"/")
	}
	return full
}

// versionNames are the names of a version, the one that is shown first.
func (of *docsInstance) versionNames(name string) []string {
	label := of.labels[name]
	switch {
	case name != "current":
		label = cmp.Or(label, name)
	case label == "" && len(of.names) == 0:
		return nil // without versions
	default:
		label = cmp.Or(label, "Next")
	}
	if label == name {
		return []string{name}
	}
	return []string{label, name}
}

// versionPath is what stands for a version in the addresses of its pages.
func (of *docsInstance) versionPath(name string) string {
	if p, ok := of.paths[name]; ok {
		return p
	}
	switch name {
	case of.last:
		return ""
	case "current":
		return "next"
	}
	return name
}

// of tells the edition of a page by its path alone. Named are versions that the navigation gives the page.
func (l *layout) of(p string, named []string) edition {
	full := l.full(p)
	inDocs := func(of *docsInstance, name, rest string) edition {
		return edition{set: of.id, versions: of.versionNames(name), current: name == of.last, told: true, same: pageKey(path.Join(of.folder, rest))}
	}
	if len(l.docs) > 0 {
		if m := versionedDocs.FindStringSubmatch(full); m != nil {
			return inDocs(l.instance(m[1]), m[2], m[3])
		}
		if m := localizedDocs.FindStringSubmatch(full); m != nil {
			v := inDocs(l.instance(m[2]), strings.TrimPrefix(m[3], "version-"), m[4])
			v.language = m[1]
			return v
		}
		for _, of := range l.docs {
			if rest, ok := strings.CutPrefix(full, of.folder+"/"); ok && of.folder != "" {
				return inDocs(of, "current", rest)
			}
		}
	}
	if l.kind == api.SiteDocusaurus {
		if m := localizedRest.FindStringSubmatch(full); m != nil {
			return edition{language: m[1], same: pageKey(path.Join(map[string]string{"blog": "blog", "pages": "src/pages"}[m[2]], m[3]))}
		}
		if len(l.locales) > 0 {
			return edition{same: pageKey(full)}
		}
	}
	v := edition{}
	v.language, full = l.languageOfPath(p)
	// A version's folder comes before or after the language's, which is gone.
	dirs := strings.Split(full, "/")
	for i, dir := range dirs[:len(dirs)-1] {
		low := strings.ToLower(dir)
		label, known := l.versions[low]
		switch {
		case known:
			v.versions, v.told = []string{label}, true
			if label != low {
				v.versions = append(v.versions, dir)
			}
		case versionFolder.MatchString(dir):
			v.versions = []string{versionFolder.FindStringSubmatch(dir)[1]}
		case !slices.ContainsFunc(named, func(name string) bool { return strings.EqualFold(name, dir) }):
			continue
		}
		full = path.Join(path.Join(dirs[:i]...), path.Join(dirs[i+1:]...))
		break
	}
	if len(l.versions) > 0 && v.versions == nil {
		v.current, v.told = true, true
		if l.latest != "" {
			v.versions = []string{l.latest}
		}
	}
	v.same = pageKey(full)
	return v
}

var versionFolder = regexp.MustCompile(`^version-([^/]+)$`)

// translations are the folders that hold one language's pages where no configuration names them; doubtful ones are words of
// English too, and hold a language's pages where these stand elsewhere in English.
var translations = strings.Fields(`ar bg bn ca cs da de el en es et fa fi fr he hi hr hu ja ko lt lv ms nb nl pl pt ro ru sk sl sr sv ta th tr uk ur vi zh
	pt-br zh-cn zh-tw zh-hans zh-hant en-us en-gb es-419 fr-ca`)

var doubtful = []string{"az", "be", "hy", "id", "is", "it", "ka", "km", "mk", "my", "no", "si", "sq", "te"}

// languageOfPath is the language that a page's folder or the end of its name stand for, and its path without it.
func (l *layout) languageOfPath(p string) (tag, rest string) {
	whole := path.Join(l.docsDir, p)
	for _, folder := range slices.Sorted(maps.Keys(l.folders)) {
		if rest, ok := strings.CutPrefix(whole, folder+"/"); ok {
			return l.folders[folder], rest
		}
	}
	lookup := func(name string) string {
		name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		if len(l.locales) > 0 {
			return l.locales[name]
		}
		return ""
	}
	rest = l.full(p)
	if len(l.locales) == 0 {
		rest = p
	}
	dir, base := path.Split(rest)
	stem := strings.TrimSuffix(base, path.Ext(base))
	plain, suffix := strings.TrimSuffix(stem, path.Ext(stem)), strings.TrimPrefix(path.Ext(stem), ".")
	if suffix != "" && plain != "" {
		without := dir + plain + path.Ext(base)
		tag := lookup(suffix)
		if tag == "" && len(l.locales) == 0 && slices.Contains(translations, strings.ToLower(suffix)) && (l.kind == api.SiteHugo || l.pages[pageKey(path.Join(path.Dir(p), plain+path.Ext(base)))]) {
			tag = suffix
		}
		if tag != "" {
			return tag, without
		}
	}
	dirs := strings.Split(rest, "/")
	if len(dirs) < 2 {
		return "", rest
	}
	if len(l.locales) > 0 {
		at := 0
		for l.root == l.docsDir && at < len(dirs)-2 && slices.Contains([]string{"src", "app", "pages", "content", "docs"}, dirs[at]) && lookup(dirs[at]) == "" {
			at++ // of a generator whose folder for pages is not known
		}
		if tag := lookup(dirs[at]); tag != "" {
			return tag, path.Join(path.Join(dirs[:at]...), path.Join(dirs[at+1:]...))
		}
		return "", rest
	}
	at := 0
	if len(dirs) > 2 && slices.Contains([]string{"i18n", "locales", "translations", "content", "docs"}, dirs[0]) {
		at = 1
	}
	above, below := path.Join(dirs[:at]...), path.Join(dirs[at+1:]...)
	code := foldTag(dirs[at])
	if slices.Contains(translations, code) || slices.Contains(doubtful, code) && (l.pages[pageKey(path.Join(above, below))] || l.pages[pageKey(path.Join(above, "en", below))]) {
		return dirs[at], path.Join(above, below)
	}
	return "", rest
}

// isLanguage reports whether a word is the tag of a language, rather than of a programming language or of anything else.
func isLanguage(tag string) bool {
	_, known := otherTags[strings.ToLower(tag)]
	t, err := language.Parse(tag)
	if err != nil {
		return known
	}
	base, _ := t.Base()
	return len(base.String()) == 2 || slices.Contains(translations, strings.ToLower(tag))
}

// otherTags are codes of countries by which sites name languages.
var otherTags = map[string]string{"cn": "zh-Hans", "jp": "ja", "tw": "zh-Hant", "kr": "ko", "ua": "uk", "gr": "el", "cz": "cs", "dk": "da"}

// settle decides which pages readers see who name no version, where the site does not say it: of a page that is there for
// several versions, the one without a version, else the newest. What a site says holds, unless the version that it names
// has no pages here: then it is the newest one that has.
func settle(pages []*edition) {
	type family struct{ set, same, language string }
	groups := map[family][]*edition{}
	sets := map[string][]*edition{}
	for _, v := range pages {
		switch {
		case len(v.versions) == 0:
			v.current = true
			groups[family{v.set, v.same, v.language}] = append(groups[family{v.set, v.same, v.language}], v)
		case v.told:
			sets[v.set] = append(sets[v.set], v)
		default:
			groups[family{v.set, v.same, v.language}] = append(groups[family{v.set, v.same, v.language}], v)
		}
	}
	newest := func(list []*edition) {
		var top []string
		for _, v := range list {
			if top == nil || compareVersions(v.versions[0], top[0]) > 0 {
				top = v.versions
			}
		}
		for _, v := range list {
			v.current = compareVersions(v.versions[0], top[0]) == 0
		}
	}
	for _, list := range groups {
		if !slices.ContainsFunc(list, func(v *edition) bool { return len(v.versions) == 0 }) {
			newest(list)
		}
	}
	for _, list := range sets {
		if !slices.ContainsFunc(list, func(v *edition) bool { return v.current }) {
			newest(list)
		}
	}
}

// unreleased are the names of versions that come after the newest release, and are not what readers use.
var unreleased = []string{"next", "current", "unreleased", "dev", "nightly", "canary", "main", "master", "edge", "preview"}

// compareVersions orders versions by their numbers: 1.10 is after 1.9, 2.0-rc.1 before 2.0, latest after all, next before all.
func compareVersions(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	rank := func(v string) int {
		switch {
		case v == "latest" || v == "stable":
			return 1
		case slices.Contains(unreleased, v):
			return -1
		}
		return 0
	}
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	x, y := versionParts.FindAllString(strings.TrimPrefix(a, "v"), -1), versionParts.FindAllString(strings.TrimPrefix(b, "v"), -1)
	for i := 0; i < len(x) || i < len(y); i++ {
		var p, q string
		if i < len(x) {
			p = x[i]
		}
		if i < len(y) {
			q = y[i]
		}
		if c := comparePart(p, q); c != 0 {
			return c
		}
	}
	return 0
}

var versionParts = regexp.MustCompile(`\d+|[a-z]+`)

// comparePart orders numbers after the end and after words: 1.0-rc comes before 1.0, and that before 1.0.1.
func comparePart(a, b string) int {
	rank := func(s string) int {
		switch {
		case s == "" || s == "x":
			return 1
		case s[0] >= '0' && s[0] <= '9':
			return 2
		}
		return 0
	}
	if c := cmp.Compare(rank(a), rank(b)); c != 0 || rank(a) == 1 {
		return c
	}
	if rank(a) == 2 {
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		if c := cmp.Compare(len(a), len(b)); c != 0 {
			return c
		}
	}
	return strings.Compare(a, b)
}

// editions tells the editions of pages, by their paths, their places in the navigation and their front matter, in this order.
func (l *layout) editions(places map[*record]place) map[*record]edition {
	out := make(map[*record]edition, len(places))
	known := make(map[*record]*edition, len(places))
	all := make([]*edition, 0, len(places))
	for r, at := range places {
		own := at.versions
		if len(own) == 0 && r.Version != "" {
			own = []string{r.Version}
		}
		v := l.of(r.Path, own)
		switch {
		case v.told || len(own) == 0:
		case len(at.versions) > 0:
			v.versions, v.current, v.told, v.set = at.versions, at.current, true, at.docs
		default:
			v.versions = own
		}
		if v.language == "" || len(l.locales) == 0 { // a folder's name is no more than a guess
			v.language = cmp.Or(at.language, r.Language, v.language, l.language)
		}
		known[r] = &v
		all = append(all, &v)
	}
	settle(all)
	for r, v := range known {
		out[r] = *v
	}
	return out
}

// docsAddress is what the addresses of a page of Docusaurus begin with, for its language, its documentation and its version,
// and the page's path below that. The path is from the folder that holds the site, or from the documentation folder where that is within it.
func (l *layout) docsAddress(p string) (prefix, rest string) {
	in := func(locale string, of *docsInstance, name, rest string) (string, string) {
		if strings.EqualFold(locale, l.language) {
			locale = ""
		}
		return path.Join(locale, strings.Trim(of.route, "/"), of.versionPath(name)), rest
	}
	if m := versionedDocs.FindStringSubmatch(p); m != nil {
		return in("", l.instance(m[1]), m[2], m[3])
	}
	if m := localizedDocs.FindStringSubmatch(p); m != nil {
		return in(m[1], l.instance(m[2]), strings.TrimPrefix(m[3], "version-"), m[4])
	}
	if m := localizedRest.FindStringSubmatch(p); m != nil {
		return path.Join(m[1], map[string]string{"blog": "blog", "pages": ""}[m[2]]), m[3]
	}
	if rest, ok := strings.CutPrefix(p, "src/pages/"); ok {
		return "", rest
	}
	for _, of := range l.docs {
		if rest, ok := strings.CutPrefix(p, of.folder+"/"); ok && of.folder != "" {
			return in("", of, "current", rest)
		}
	}
	return "", p
}

// addressOf is what stands for a page's language at the beginning of its address, and the page's path without it.
func (l *layout) addressOf(p string) (prefix, rest string) {
	tag, rest := l.languageOfPath(p)
	for folder := range l.folders {
		if l.docsDir == folder || strings.HasPrefix(l.docsDir, folder+"/") {
			return "", rest // the documentation folder is that of one language
		}
	}
	if tag == "" && l.prefixed {
		tag = l.language
	}
	if strings.EqualFold(tag, l.language) && !l.prefixed {
		tag = ""
	}
	return tag, rest
}
