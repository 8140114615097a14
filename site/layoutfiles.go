package site

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"docent/api"
	"docent/formats"
	"docent/site/script"
)

// A siteConfig is a file that configures a site.
type siteConfig struct {
	path string // from the repository's root
	text []byte
}

// layoutFile reports whether a file of this name says how a site keeps versions and languages apart, and nothing else that
// is read here.
func Lays(p string) bool {
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

// readLayout reads how the site keeps versions and languages apart.
func (s *Site) readLayout(names []string, read func(string) ([]byte, error)) {
	kind, root := s.Kind, s.content
	if kind == api.SiteDocusaurus && s.config != "" {
		root = s.folder()
	}
	if kind == api.SiteNext {
		kind = "" // what its configuration says is read for any site
	}
	if root == "." {
		root = ""
	}
	l := &layout{kind: kind, docsDir: s.docsDir, root: root, locales: map[string]string{}, folders: map[string]string{}, versions: map[string]string{}, pages: map[string]bool{}}
	s.layout = l
	var files []siteConfig
	var pages []string
	for _, name := range names {
		switch {
		case Configures(name) != "" || Lays(name):
			if text, err := read(name); err == nil {
				files = append(files, siteConfig{strings.TrimPrefix(path.Join("/", s.docsDir, name), "/"), text})
			}
		case IsPage(name):
			pages = append(pages, name)
			l.pages[PageKey(name)] = true
		}
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
			l.readMintlify(f, s.docsDir, read)
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
	if kind == api.SiteMkDocs {
		for _, t := range s.trees {
			l.folders[t.folder] = t.language
		}
		if tag := path.Base(s.folder()); len(s.trees) > 0 && IsLanguage(tag) {
			l.setDefault(tag)
			l.folders[s.content] = tag
		}
	}
	if kind == api.SiteDocusaurus || kind == api.SitePlain || kind == "" {
		l.findInstances(files, pages)
	}
}

// name gives a language its tag, under the folder or suffix that its pages have.
func (l *layout) name(folder, tag string) {
	if folder = strings.ToLower(strings.ReplaceAll(folder, "_", "-")); folder != "" && l.locales[folder] == "" {
		l.locales[folder] = tag
	}
}

func (l *layout) setDefault(tag string) { l.byDefault = cmp.Or(l.byDefault, tag) }

// mostObjects bounds how often a key is looked for: each time what follows is read, and keys may stand within each other.
const mostObjects = 50

// objectsAt reads the objects that a configuration written in JavaScript gives to a key.
func objectsAt(src []byte, key string) (out []map[string]any) {
	for _, at := range regexp.MustCompile(`\b`+regexp.QuoteMeta(key)+`['"]?\s*:\s*[{]`).FindAllIndex(src, mostObjects) {
		if v, _ := script.Literal(string(src[at[1]-1:])); v != nil {
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
			if lang, ok := of["lang"].(string); ok && (folder == "root" || !IsLanguage(folder)) {
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
	for _, at := range starlightLabels.FindAllIndex(src, mostObjects) { // the plugin starlight-versions
		v, _ := script.Literal(string(src[at[1]:]))
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
func (l *layout) readMintlify(f siteConfig, docsDir string, read func(string) ([]byte, error)) {
	name := f.path
	if docsDir != "" {
		name = strings.TrimPrefix(name, docsDir+"/")
	}
	doc, _, err := readDocs(name, f.text, read)
	if err != nil {
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
	if formats.YAML(src, &doc) != nil {
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
		_ = formats.TOML(f.text, &doc)
	case ".yaml", ".yml":
		_ = formats.YAML(f.text, &doc)
	case ".json":
		_ = formats.JSON(f.text, &doc)
	}
	doc = lowerKeys(doc)
	site := strings.TrimSuffix(strings.TrimSuffix(path.Dir(f.path), "config/_default"), "/")
	if tag, ok := doc["defaultcontentlanguage"].(string); ok {
		l.setDefault(tag)
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

var docsOptions = regexp.MustCompile(`plugin-content-docs['"]\s*,\s*\{`)

// readInstances reads the documentations of a Docusaurus configuration: that of the preset, and those of the plugin.
func readInstances(src string) (out []*docsInstance) {
	read := func(m map[string]any) {
		of := &docsInstance{id: "default", folder: "docs", labels: map[string]string{}}
		set := func(to *string, key string) {
			if s, ok := m[key].(string); ok {
				*to = s
			}
		}
		set(&of.id, "id")
		set(&of.folder, "path")
		set(&of.last, "lastVersion")
		of.folder = strings.TrimPrefix(path.Clean("/"+of.folder), "/")
		versions, _ := m["versions"].(map[string]any)
		for name, v := range versions {
			if label, ok := entry(v, "label"); ok {
				of.labels[name] = label
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
	for _, at := range docsOptions.FindAllStringIndex(src, mostObjects) {
		v, _ := script.Literal(src[at[1]-1:])
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
	of := &docsInstance{id: id, folder: "docs", labels: map[string]string{}}
	if id != "default" {
		of.folder = id
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
			if f.path == path.Join(l.root, file) && formats.JSON(f.text, &names) == nil && len(names) > 0 {
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
