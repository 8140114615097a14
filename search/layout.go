package search

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v4"
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

// A siteConfig is a file that configures a site.
type siteConfig struct {
	path string // from the repository's root
	text []byte
}

// layoutFile reports whether a file of this name says how a site keeps versions and languages apart, and nothing else that
// is read here.
func layoutFile(p string) bool {
	base, dir := path.Base(p), path.Base(path.Dir(p))
	stem := strings.TrimSuffix(base, path.Ext(base))
	switch {
	case base == "versions.json" || strings.HasSuffix(base, "_versions.json"):
		return true // Docusaurus
	case stem == "languages" && dir == "_default":
		return true // Hugo
	case stem == "config" && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(base)):
		return true // Hugo, before its files had its name
	case stem == "astro.config" || stem == "next.config":
		return true // Starlight, Nextra
	}
	return false
}

// newLayout reads the layout of a site of this kind from its files. Content is the folder of its pages, pages are their
// paths relative to the documentation folder.
func newLayout(kind api.SiteKind, content, docsDir string, files []siteConfig, pages []string) *layout {
	l := &layout{kind: kind, docsDir: docsDir, root: content, locales: map[string]string{}, folders: map[string]string{}, versions: map[string]string{}, pages: map[string]bool{}}
	for _, p := range pages {
		l.pages[pageKey(p)] = true
	}
	slices.SortStableFunc(files, func(a, b siteConfig) int { // the file that is nearest to the root speaks first
		return cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/"))
	})
	for _, f := range files {
		stem := strings.TrimSuffix(path.Base(f.path), path.Ext(f.path))
		switch {
		case stem == "next.config":
			l.readObject(f.text, "i18n", "defaultLocale")
		case stem == "astro.config" && (kind == api.SiteStarlight || kind == api.SitePlain || kind == ""):
			l.readStarlight(f.text)
		case kind == api.SiteMintlify && (stem == "docs" || stem == "mint"):
			l.readMintlify(f.text)
		case kind == api.SiteMkDocs && stem == "mkdocs":
			l.readMkDocs(f.text)
		case kind == api.SiteVitePress && strings.Contains(f.path, ".vitepress/"):
			l.readVitePress(f.text)
		case kind == api.SiteHugo && slices.Contains([]string{"hugo", "config", "languages"}, stem):
			l.readHugo(f)
		case kind == api.SiteDocusaurus && stem == "docusaurus.config":
			l.readObject(f.text, "i18n", "defaultLocale")
			l.docs = append(l.docs, readInstances(string(f.text))...)
		}
	}
	if kind == api.SiteDocusaurus || kind == api.SitePlain || kind == "" {
		l.findInstances(files, pages)
	}
	return l
}

// name gives a language its tag, under the folder or suffix that its pages have.
func (l *layout) name(folder, tag string) {
	if folder = strings.ToLower(strings.ReplaceAll(folder, "_", "-")); folder != "" && l.locales[folder] == "" {
		l.locales[folder] = tag
	}
}

func (l *layout) setDefault(tag string) { l.language = cmp.Or(l.language, tag) }

// objectAt reads the objects that a configuration written in JavaScript gives to a key.
func objectsAt(src []byte, key string) (out []map[string]any) {
	for _, at := range regexp.MustCompile(`\b`+regexp.QuoteMeta(key)+`['"]?\s*:\s*[{]`).FindAllIndex(src, -1) {
		if v, _ := literal(string(src[at[1]-1:])); v != nil {
			if m, ok := v.(map[string]any); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// readObject reads {defaultLocale, locales: ['en', 'fr']} of Docusaurus, Next.js and Astro.
func (l *layout) readObject(src []byte, key, byDefault string) {
	for _, m := range objectsAt(src, key) {
		if tag, ok := m[byDefault].(string); ok {
			l.setDefault(tag)
			l.name(tag, tag)
		}
		list, _ := m["locales"].([]any)
		for _, x := range list {
			switch x := x.(type) {
			case string:
				l.name(x, x)
			case map[string]any: // Astro: {path, codes}
				if p, ok := x["path"].(string); ok {
					l.name(p, p)
				}
			}
		}
	}
}

// readLocales reads {root: {lang: 'en'}, fr: {lang: 'fr-FR'}}.
func (l *layout) readLocales(m map[string]any) {
	for _, folder := range slices.Sorted(maps.Keys(m)) {
		tag := folder
		if of, ok := m[folder].(map[string]any); ok {
			if lang, ok := of["lang"].(string); ok && (folder == "root" || !isLanguage(folder)) {
				tag = lang
			}
		}
		switch {
		case folder != "root":
			l.name(folder, tag)
		case tag != "root":
			l.setDefault(tag)
			l.name(tag, tag)
		}
	}
}

var (
	topLanguage     = regexp.MustCompile(`(?m)^\s{0,4}lang\s*:\s*['"]([\w-]+)['"]`)
	defaultLocale   = regexp.MustCompile(`\bdefaultLocale\s*:\s*['"]([\w-]+)['"]`)
	starlightLabels = regexp.MustCompile(`\bstarlightVersions\s*\(\s*`)
)

func (l *layout) readVitePress(src []byte) {
	if m := topLanguage.FindSubmatch(src); m != nil {
		l.setDefault(string(m[1]))
	}
	for _, m := range objectsAt(src, "locales") {
		l.readLocales(m)
	}
}

func (l *layout) readStarlight(src []byte) {
	for _, m := range objectsAt(src, "locales") {
		l.readLocales(m)
	}
	if m := defaultLocale.FindSubmatch(src); m != nil && string(m[1]) != "root" {
		l.setDefault(cmp.Or(l.locales[strings.ToLower(string(m[1]))], string(m[1])))
	}
	l.readObject(src, "i18n", "defaultLocale")
	for _, at := range starlightLabels.FindAllIndex(src, -1) { // the plugin starlight-versions
		v, _ := literal(string(src[at[1]:]))
		m, _ := v.(map[string]any)
		list, _ := m["versions"].([]any)
		for _, x := range list {
			if of, ok := x.(map[string]any); ok {
				if slug, ok := of["slug"].(string); ok {
					label, _ := of["label"].(string)
					l.versions[strings.ToLower(slug)] = cmp.Or(label, slug)
				}
			}
		}
		if of, ok := m["current"].(map[string]any); ok {
			l.latest, _ = of["label"].(string)
		}
	}
}

// readMintlify reads which languages a navigation has, and which is the default one: the one that says so, or the first.
func (l *layout) readMintlify(src []byte) {
	plain, err := hujson.Standardize(src)
	if err != nil {
		return
	}
	var doc map[string]any
	if json.Unmarshal(plain, &doc) != nil {
		return
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			if list, ok := v["languages"].([]any); ok {
				for _, i := range defaultFirst(list) {
					if tag, ok := entry(list[i], "language"); ok {
						l.setDefault(tag)
						l.name(tag, tag)
					}
				}
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(doc["navigation"])
	list, _ := doc["versions"].([]any) // mint.json: {name, locale, default}
	for _, i := range defaultFirst(list) {
		if tag, ok := entry(list[i], "locale"); ok {
			l.setDefault(tag)
			l.name(tag, tag)
		}
	}
}

func entry(v any, key string) (string, bool) {
	m, _ := v.(map[string]any)
	s, ok := m[key].(string)
	return s, ok && s != ""
}

// defaultFirst lists the places of a list's entries, the one that says that it is the default first.
func defaultFirst(list []any) []int {
	order := make([]int, len(list))
	for i := range list {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		isDefault := func(i int) int {
			if m, ok := list[i].(map[string]any); ok && m["default"] == true {
				return 0
			}
			return 1
		}
		return cmp.Compare(isDefault(a), isDefault(b))
	})
	return order
}

// readMkDocs reads the settings of mkdocs-static-i18n, and the theme's language.
func (l *layout) readMkDocs(src []byte) {
	var doc struct {
		Theme   yaml.Node `yaml:"theme"` // nodes, since keys beside those that are looked at may hold tags of Python
		Plugins yaml.Node `yaml:"plugins"`
	}
	if yaml.Unmarshal(src, &doc) != nil {
		return
	}
	var settings func(n *yaml.Node, use func(*yaml.Node))
	settings = func(n *yaml.Node, use func(*yaml.Node)) {
		for i, x := range n.Content {
			switch {
			case x.Kind == yaml.MappingNode:
				settings(x, use)
			case n.Kind == yaml.MappingNode && i%2 == 0 && x.Value == "i18n" && i+1 < len(n.Content):
				use(n.Content[i+1])
			}
		}
	}
	settings(&doc.Plugins, func(n *yaml.Node) {
		var plugin struct {
			Default   string    `yaml:"default_language"`
			Languages yaml.Node `yaml:"languages"`
		}
		if n.Decode(&plugin) != nil {
			return
		}
		if plugin.Default != "" {
			l.setDefault(plugin.Default)
			l.name(plugin.Default, plugin.Default)
		}
		if plugin.Languages.Kind == yaml.MappingNode { // before version 1
			for i := 0; i < len(plugin.Languages.Content); i += 2 {
				if tag := plugin.Languages.Content[i].Value; tag != "default" {
					l.name(tag, tag)
				}
			}
			return
		}
		var list []struct {
			Locale  string `yaml:"locale"`
			Default bool   `yaml:"default"`
		}
		if plugin.Languages.Decode(&list) != nil {
			return
		}
		for _, x := range list {
			l.name(x.Locale, x.Locale)
			if x.Default {
				l.setDefault(x.Locale)
			}
		}
	})
	var theme struct {
		Language string `yaml:"language"`
	}
	if doc.Theme.Kind == yaml.MappingNode && doc.Theme.Decode(&theme) == nil {
		l.setDefault(theme.Language)
	}
}

// readHugo reads the languages of a Hugo site. The names of its settings are in any case.
func (l *layout) readHugo(f siteConfig) {
	var doc map[string]any
	switch path.Ext(f.path) {
	case ".toml":
		_ = toml.Unmarshal(f.text, &doc)
	case ".yaml", ".yml":
		_ = yaml.Unmarshal(f.text, &doc)
	case ".json":
		_ = json.Unmarshal(f.text, &doc)
	}
	doc = lowerKeys(doc)
	site := strings.TrimSuffix(strings.TrimSuffix(path.Dir(f.path), "config/_default"), "/")
	if tag, ok := doc["defaultcontentlanguage"].(string); ok {
		l.setDefault(tag)
	}
	if in, ok := doc["defaultcontentlanguageinsubdir"].(bool); ok {
		l.prefixed = l.prefixed || in
	}
	languages, _ := doc["languages"].(map[string]any)
	if strings.HasPrefix(path.Base(f.path), "languages.") {
		languages = doc
	}
	for tag, v := range languages {
		of, ok := v.(map[string]any)
		if !ok {
			continue
		}
		l.name(tag, tag)
		if dir, ok := lowerKeys(of)["contentdir"].(string); ok && dir != "" {
			l.folders[path.Join(site, dir)] = tag
		}
	}
}

func lowerKeys(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[strings.ToLower(k)] = v
	}
	return out
}

var docsPlugin = regexp.MustCompile(`plugin-content-docs['"]\s*,\s*\{`)

// readInstances reads the documentations of a Docusaurus configuration: that of the preset, and those of the plugin.
func readInstances(src string) (out []*docsInstance) {
	read := func(m map[string]any) {
		of := &docsInstance{id: "default", folder: "docs", route: "docs", labels: map[string]string{}, paths: map[string]string{}}
		set := func(to *string, key string) {
			if s, ok := m[key].(string); ok {
				*to = s
			}
		}
		set(&of.id, "id")
		set(&of.folder, "path")
		set(&of.route, "routeBasePath")
		set(&of.last, "lastVersion")
		of.folder = strings.TrimPrefix(path.Clean("/"+of.folder), "/")
		versions, _ := m["versions"].(map[string]any)
		for name, v := range versions {
			if label, ok := entry(v, "label"); ok {
				of.labels[name] = label
			}
			if v, ok := v.(map[string]any); ok {
				if p, ok := v["path"].(string); ok {
					of.paths[name] = strings.Trim(p, "/")
				}
			}
		}
		only, _ := m["onlyIncludeVersions"].([]any)
		for _, x := range only {
			if name, ok := x.(string); ok && name != "current" {
				of.names = append(of.names, name)
			}
		}
		out = append(out, of)
	}
	for _, m := range objectsAt([]byte(src), "docs") { // of the preset; a theme's settings have the same name
		_, folder := m["path"]
		_, versions := m["versions"]
		_, last := m["lastVersion"]
		_, route := m["routeBasePath"]
		if folder || versions || last || route {
			read(m)
		}
	}
	for _, at := range docsPlugin.FindAllStringIndex(src, -1) {
		v, _ := literal(src[at[1]-1:])
		if m, ok := v.(map[string]any); ok {
			read(m)
		}
	}
	return out
}

var (
	versionedDocs = regexp.MustCompile(`^(?:([^/]+)_)?versioned_docs/version-([^/]+)/(.+)$`)
	localizedDocs = regexp.MustCompile(`^i18n/([^/]+)/docusaurus-plugin-content-docs(?:-([^/]+))?/(current|version-[^/]+)/(.+)$`)
	localizedRest = regexp.MustCompile(`^i18n/([^/]+)/docusaurus-plugin-content-(blog|pages)(?:-[^/]+)?/(.+)$`)
)

// instance is the documentation of this id.
func (l *layout) instance(id string) *docsInstance {
	id = cmp.Or(id, "default")
	for _, of := range l.docs {
		if of.id == id {
			return of
		}
	}
	of := &docsInstance{id: id, folder: "docs", route: "docs", labels: map[string]string{}, paths: map[string]string{}}
	if id != "default" {
		of.folder, of.route = id, id
	}
	l.docs = append(l.docs, of)
	return of
}

// findInstances completes the documentations of a Docusaurus site by the files that Docusaurus makes for each version, and
// settles which version readers see first.
func (l *layout) findInstances(files []siteConfig, pages []string) {
	found := map[*docsInstance][]string{}
	for _, p := range pages {
		full := l.full(p)
		var of *docsInstance
		name := ""
		if m := versionedDocs.FindStringSubmatch(full); m != nil {
			of, name = l.instance(m[1]), m[2]
		} else if m := localizedDocs.FindStringSubmatch(full); m != nil {
			of, name = l.instance(m[2]), strings.TrimPrefix(m[3], "version-")
		}
		if of != nil && name != "current" && !slices.Contains(found[of], name) {
			found[of] = append(found[of], name)
		}
	}
	if l.kind == api.SiteDocusaurus {
		l.instance("default")
	}
	for _, of := range l.docs {
		only := of.names
		of.names = found[of]
		slices.SortFunc(of.names, func(a, b string) int { return compareVersions(b, a) })
		file := "versions.json"
		if of.id != "default" {
			file = of.id + "_versions.json"
		}
		for _, f := range files {
			var names []string
			if f.path == path.Join(l.root, file) && json.Unmarshal(f.text, &names) == nil && len(names) > 0 {
				of.names, of.listed = names, true
			}
		}
		included := of.names
		if len(only) > 0 {
			included = slices.DeleteFunc(slices.Clone(of.names), func(name string) bool { return !slices.Contains(only, name) })
		}
		if of.last != "current" && !slices.Contains(of.names, of.last) {
			of.last = "current"
			if of.listed && len(included) > 0 {
				of.last = included[0]
			}
		}
	}
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

// translations are the folders that hold one language's pages where no configuration names them. Codes that are common
// English folder names are left out.
var translations = strings.Fields(`ar bg bn ca cs da de el en es et fa fi fr he hi hr hu ja ko lt lv ms nb nl pl pt ro ru sk sl sr sv ta th tr uk ur vi zh
	pt-br zh-cn zh-tw zh-hans zh-hant en-us en-gb es-419 fr-ca`)

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
		if tag := lookup(dirs[0]); tag != "" {
			return tag, path.Join(dirs[1:]...)
		}
		return "", rest
	}
	at := 0
	if len(dirs) > 2 && slices.Contains([]string{"i18n", "locales", "translations", "content", "docs"}, dirs[0]) {
		at = 1
	}
	if code := strings.ToLower(strings.ReplaceAll(dirs[at], "_", "-")); slices.Contains(translations, code) {
		return dirs[at], path.Join(path.Join(dirs[:at]...), path.Join(dirs[at+1:]...))
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
