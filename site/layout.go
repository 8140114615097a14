package site

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

// An Edition is the version and the language that a page is written for.
type Edition struct {
	Docs string // the docs that it belongs to, if a site has several with versions of their own
	// names of its version, the one that is shown first; of all versions that share the page. None if it belongs to
	// none
	Versions []string
	Current  bool   // readers who name no version see it
	told     bool   // the site says which version is the current one
	Language string // as the site names it; empty for the site's default
	Same     string // the page's path without version and language: it names the same page in all of them
}

// A layout is how a site keeps versions and languages apart: by its generator's rules, from its own configuration.
type layout struct {
	kind      api.SiteKind
	docsDir   string            // the project's
	root      string            // folder, from the repository's root, that the rules are about
	byDefault string            // the site's default; empty if nothing says it
	locales   map[string]string // languages that the configuration names, by their folder or suffix in lower case
	folders   map[string]string // languages by the folder that holds their pages: Hugo's contentDir
	versions  map[string]string // versions by their folder
	latest    string            // name of the version that has no folder
	docs      []*docsInstance   // of Docusaurus
	pages     map[string]bool   // keys of all pages
}

// A docsInstance is one documentation of a Docusaurus site, with versions of its own.
type docsInstance struct {
	id, folder string
	labels     map[string]string // by name of the version
	names      []string          // of the versions, the newest first; without the current one
	listed     bool              // versions.json lists them
	last       string            // name of the version that readers see first
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

// of tells the Edition of a page by its path alone. Named are versions that the navigation gives the page.
func (l *layout) of(p string, named []string) Edition {
	full := l.full(p)
	inDocs := func(of *docsInstance, name, rest string) Edition {
		return Edition{Docs: of.id, Versions: of.versionNames(name), Current: name == of.last, told: true,
			Same: PageKey(path.Join(of.folder, rest))}
	}
	if len(l.docs) > 0 {
		if m := versionedDocs.FindStringSubmatch(full); m != nil {
			return inDocs(l.instance(m[1]), m[2], m[3])
		}
		if m := localizedDocs.FindStringSubmatch(full); m != nil {
			v := inDocs(l.instance(m[2]), strings.TrimPrefix(m[3], "version-"), m[4])
			v.Language = m[1]
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
			folder := map[string]string{"blog": "blog", "pages": "src/pages"}[m[2]]
			return Edition{Language: m[1], Same: PageKey(path.Join(folder, m[3]))}
		}
		if len(l.locales) > 0 {
			return Edition{Same: PageKey(full)}
		}
	}
	v := Edition{}
	v.Language, full = l.languageOfPath(p)
	// A version's folder comes before or after the language's, which is gone.
	dirs := strings.Split(full, "/")
	for i, dir := range dirs[:len(dirs)-1] {
		low := strings.ToLower(dir)
		label, known := l.versions[low]
		switch {
		case known:
			v.Versions, v.told = []string{label}, true
			if label != low {
				v.Versions = append(v.Versions, dir)
			}
		case versionFolder.MatchString(dir):
			v.Versions = []string{versionFolder.FindStringSubmatch(dir)[1]}
		case !slices.ContainsFunc(named, func(name string) bool { return strings.EqualFold(name, dir) }):
			continue
		}
		full = path.Join(path.Join(dirs[:i]...), path.Join(dirs[i+1:]...))
		break
	}
	if len(l.versions) > 0 && v.Versions == nil {
		v.Current, v.told = true, true
		if l.latest != "" {
			v.Versions = []string{l.latest}
		}
	}
	v.Same = PageKey(full)
	return v
}

var versionFolder = regexp.MustCompile(`^version-([^/]+)$`)

// doubtful are languages whose codes are words of English too: a folder of that name holds a language's pages if
// these stand elsewhere in English.
var doubtful = []string{"az", "be", "hy", "id", "is", "it", "ka", "km", "mk", "my", "no", "si", "sq", "te"}

// languageOfPath is the language that a page's folder or the end of its name stand for, and its path without it.
func (l *layout) languageOfPath(p string) (tag, rest string) {
	whole := path.Join(l.docsDir, p)
	for _, folder := range slices.Sorted(maps.Keys(l.folders)) {
		if rest, ok := strings.CutPrefix(whole, folder+"/"); ok {
			return l.folders[folder], rest
		}
	}
	rest = l.full(p)
	if len(l.locales) == 0 {
		rest = p
	}
	if tag, without := l.languageOfName(p, rest); tag != "" {
		return tag, without
	}
	dirs := strings.Split(rest, "/")
	switch {
	case len(dirs) < 2:
		return "", rest
	case len(l.locales) > 0:
		return l.namedFolder(dirs)
	}
	return l.likelyFolder(dirs)
}

// languageOfName is the language at the end of a page's name, as in guide.fr.md.
func (l *layout) languageOfName(p, rest string) (tag, without string) {
	dir, base := path.Split(rest)
	stem := strings.TrimSuffix(base, path.Ext(base))
	plain, suffix := strings.TrimSuffix(stem, path.Ext(stem)), strings.TrimPrefix(path.Ext(stem), ".")
	if suffix == "" || plain == "" {
		return "", ""
	}
	without = dir + plain + path.Ext(base)
	if len(l.locales) > 0 {
		return l.locales[FoldTag(suffix)], without
	}
	if slices.Contains(Translations, strings.ToLower(suffix)) && (l.kind == api.SiteHugo ||
		l.pages[PageKey(path.Join(path.Dir(p), plain+path.Ext(base)))]) {
		return suffix, without
	}
	return "", ""
}

// namedFolder finds the folder of a language that the configuration names.
func (l *layout) namedFolder(dirs []string) (tag, rest string) {
	at := 0
	above := []string{"src", "app", "pages", "content", "docs"}
	for l.root == l.docsDir && at < len(dirs)-2 && slices.Contains(above, dirs[at]) && l.locales[FoldTag(dirs[at])] == "" {
		at++ // of a generator whose folder for pages is not known
	}
	if tag := l.locales[FoldTag(dirs[at])]; tag != "" {
		return tag, path.Join(path.Join(dirs[:at]...), path.Join(dirs[at+1:]...))
	}
	return "", path.Join(dirs...)
}

// likelyFolder finds a folder that has the name of a language.
func (l *layout) likelyFolder(dirs []string) (tag, rest string) {
	at := 0
	if len(dirs) > 2 && slices.Contains([]string{"i18n", "locales", "translations", "content", "docs"}, dirs[0]) {
		at = 1
	}
	above, below := path.Join(dirs[:at]...), path.Join(dirs[at+1:]...)
	code := FoldTag(dirs[at])
	if slices.Contains(Translations, code) || slices.Contains(doubtful, code) &&
		(l.pages[PageKey(path.Join(above, below))] || l.pages[PageKey(path.Join(above, "en", below))]) {
		return dirs[at], path.Join(above, below)
	}
	return "", path.Join(dirs...)
}

// IsLanguage reports whether a word is the tag of a language, rather than of a programming language or of anything
// else.
func IsLanguage(tag string) bool {
	_, known := OtherTags[strings.ToLower(tag)]
	t, err := language.Parse(tag)
	if err != nil {
		return known
	}
	base, _ := t.Base()
	return len(base.String()) == 2 || slices.Contains(Translations, strings.ToLower(tag))
}

// OtherTags are codes of countries by which sites name languages.
var OtherTags = map[string]string{"cn": "zh-Hans", "jp": "ja", "tw": "zh-Hant", "kr": "ko", "ua": "uk", "gr": "el",
	"cz": "cs", "dk": "da"}

// settle decides which pages readers see who name no version, if the site does not say it: of a page that is there
// for several versions, the one without a version, otherwise the newest. What a site says holds, unless the version
// that it names has no pages here: then it is the newest one that has.
func settle(pages []Edition) {
	if !slices.ContainsFunc(pages, func(v Edition) bool { return len(v.Versions) > 0 }) {
		for i := range pages {
			pages[i].Current = true
		}
		return
	}
	type family struct{ set, same, language string }
	groups := map[family][]*Edition{}
	sets := map[string][]*Edition{}
	for i := range pages {
		v := &pages[i]
		switch {
		case len(v.Versions) == 0:
			v.Current = true
			groups[family{v.Docs, v.Same, v.Language}] = append(groups[family{v.Docs, v.Same, v.Language}], v)
		case v.told:
			sets[v.Docs] = append(sets[v.Docs], v)
		default:
			groups[family{v.Docs, v.Same, v.Language}] = append(groups[family{v.Docs, v.Same, v.Language}], v)
		}
	}
	newest := func(list []*Edition) {
		var top []string
		for _, v := range list {
			if top == nil || compareVersions(v.Versions[0], top[0]) > 0 {
				top = v.Versions
			}
		}
		for _, v := range list {
			v.Current = compareVersions(v.Versions[0], top[0]) == 0
		}
	}
	for _, list := range groups {
		if !slices.ContainsFunc(list, func(v *Edition) bool { return len(v.Versions) == 0 }) {
			newest(list)
		}
	}
	for _, list := range sets {
		if !slices.ContainsFunc(list, func(v *Edition) bool { return v.Current }) {
			newest(list)
		}
	}
}

// unreleased are the names of versions that come after the newest release, and are not what readers use.
var unreleased = []string{"next", "current", "unreleased", "dev", "nightly", "canary", "main", "master", "edge",
	"preview"}

// compareVersions orders versions by their numbers: 1.10 is after 1.9, 2.0-rc.1 before 2.0, latest after all, next
// before all.
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
	x := versionParts.FindAllString(strings.TrimPrefix(a, "v"), -1)
	y := versionParts.FindAllString(strings.TrimPrefix(b, "v"), -1)
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

// An EditionPage is what is known of a page before its edition is.
type EditionPage struct {
	Path     string
	Version  string // of the front matter
	Language string // of the front matter
	Place    Place  // in the navigation
}

// Editions tells the editions of pages, in their order: by their paths, their places in the navigation and their front
// matter, in this order.
func (s *Site) Editions(pages []EditionPage) []Edition {
	l := s.layout
	out := make([]Edition, len(pages))
	for i, p := range pages {
		at, own := p.Place, p.Place.Versions
		if len(own) == 0 && p.Version != "" {
			own = []string{p.Version}
		}
		v := l.of(p.Path, own)
		switch {
		case v.told || len(own) == 0:
		case len(at.Versions) > 0:
			v.Versions, v.Current, v.told, v.Docs = at.Versions, at.Current, true, at.Docs
		default:
			v.Versions = own
		}
		if v.Language == "" || len(l.locales) == 0 { // a folder's name is no more than a guess
			v.Language = cmp.Or(at.Language, p.Language, v.Language, l.byDefault)
		}
		out[i] = v
	}
	settle(out)
	return out
}

// Language is the site's default language, if something says it.
func (s *Site) Language() string { return s.layout.byDefault }

// FoldTag writes a language's name as it is compared.
func FoldTag(tag string) string { return strings.ToLower(strings.ReplaceAll(tag, "_", "-")) }
