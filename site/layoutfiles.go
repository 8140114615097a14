package site

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/site/script"
)

// A siteConfig is a file that configures a site.
type siteConfig struct {
	path string // from the repository's root
	text []byte
}

// Lays reports whether a file of this name says how a site keeps versions and languages apart, and nothing else
// that is read here.
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
	l := &layout{kind: kind, docsDir: s.docsDir, root: root, locales: map[string]string{}, folders: map[string]string{},
		versions: map[string]string{}, pages: map[string]bool{}}
	s.layout = l
	if IsLanguage(s.collected.Language) {
		l.setDefault(s.collected.Language)
	}
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
		l.readFile(f, read)
	}
	l.readFumadocs(s.languages)
	if kind == api.SiteMkDocs {
		for _, t := range s.trees {
			if t.language != "" {
				l.folders[t.folder] = t.language
			}
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

// readFile reads one file of the configuration.
func (l *layout) readFile(f siteConfig, read func(string) ([]byte, error)) {
	stem := strings.TrimSuffix(path.Base(f.path), path.Ext(f.path))
	if stem == "next.config" {
		l.readObject(f.text, "i18n", "defaultLocale")
		return
	}
	switch l.kind {
	case api.SitePlain, "", api.SiteStarlight:
		if stem == "astro.config" {
			l.readStarlight(f.text)
		}
	case api.SiteMintlify:
		if stem == "docs" || stem == "mint" {
			l.readMintlify(f, l.docsDir, read)
		}
	case api.SiteMkDocs:
		if stem == "mkdocs" || stem == "zensical" {
			l.readMkDocs(f.text)
		}
	case api.SiteVitePress:
		if strings.Contains(f.path, ".vitepress/") {
			l.readVitePress(f.text)
		}
	case api.SiteHugo:
		if slices.Contains([]string{"hugo", "config", "languages"}, stem) {
			l.readHugo(f)
		}
	case api.SiteDocusaurus:
		if stem == "docusaurus.config" {
			l.readObject(f.text, "i18n", "defaultLocale")
			l.docs = append(l.docs, readInstances(string(f.text))...)
		}
	}
}

// name gives a language its tag, under the folder or suffix that its pages have.
func (l *layout) name(folder, tag string) {
	if folder = strings.ToLower(strings.ReplaceAll(folder, "_", "-")); folder != "" && l.locales[folder] == "" {
		l.locales[folder] = tag
	}
}

func (l *layout) setDefault(tag string) { l.byDefault = cmp.Or(l.byDefault, tag) }

// maxObjects bounds how often a key is looked for: each time what follows is read, and keys may stand within each
// other.
const maxObjects = 50

// objectsAt reads the objects that a configuration written in JavaScript gives to a key.
func objectsAt(src []byte, key string) (out []map[string]any) {
	for _, at := range regexp.MustCompile(`\b`+regexp.QuoteMeta(key)+`['"]?\s*:\s*(?:/\*[^*]*\*/\s*)?\(?\s*[{]`).FindAllIndex(src, maxObjects) {
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
