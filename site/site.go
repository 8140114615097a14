package site

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/formats"
)

// A Site is how the generator of a documentation site names its pages. It is recognised by its files, and decides where
// a reader finds a page; the project's SiteURL is where the documentation folder itself is shown. Paths are relative to the
// documentation folder; those of files above it begin with "../".
type Site struct {
	Kind    api.SiteKind
	content string            // folder that holds the pages, relative to the repository's root
	docsDir string            // the project's
	route   map[string]string // folders of the site that are shown under another name
	html    bool              // pages end in .html
	labels  map[string]string // titles of folders, by their path relative to the documentation folder
}

// Configures tells what a file of this name configures; empty for any other.
func Configures(p string) api.SiteKind {
	base, dir := path.Base(p), path.Base(path.Dir(p))
	stem := strings.TrimSuffix(base, path.Ext(base))
	switch {
	case base == "docs.json" || base == "mint.json":
		return api.SiteMintlify
	case base == "mkdocs.yml" || base == "mkdocs.yaml":
		return api.SiteMkDocs
	case stem == "docusaurus.config" || stem == "sidebars" || stem == "_category_":
		return api.SiteDocusaurus
	case stem == "config" && dir == ".vitepress" || stem == "index" && strings.HasSuffix(path.Dir(p), ".vitepress/config"):
		return api.SiteVitePress
	case stem == "hugo" && slices.Contains([]string{".toml", ".yaml", ".yml", ".json"}, path.Ext(base)), base == "config.toml", stem == "config" && dir == "_default":
		return api.SiteHugo
	}
	return ""
}

var (
	cleanURLs = regexp.MustCompile(`\bcleanUrls\s*:\s*true\b`)
	srcDir    = regexp.MustCompile(`\bsrcDir\s*:\s*['"]([^'"]+)['"]`)
	routeBase = regexp.MustCompile(`\brouteBasePath\s*:\s*['"]([^'"]*)['"]`)
)

// A Page is what a page says of its own address.
type Page struct {
	Path    string
	Title   string
	Slug    string // last part of the page's address, or all of it, where the front matter sets it
	ID      string // the same by Docusaurus's older rule
	Address string // the whole address where the front matter sets that
}

// Open recognises the generator. What a project says of itself goes before what its files say.
func Open(p api.Project, files []string, read func(string) ([]byte, error)) Site {
	s := Site{Kind: p.Site, docsDir: p.DocsDir, content: p.DocsDir, route: map[string]string{}, labels: map[string]string{}}
	rank := map[api.SiteKind]int{api.SiteMintlify: 5, api.SiteMkDocs: 4, api.SiteDocusaurus: 3, api.SiteVitePress: 2, api.SiteHugo: 1}
	config := ""
	found := api.SiteKind("")
	for _, file := range files {
		kind := Configures(file)
		if kind == api.SiteHugo && path.Base(file) == "config.toml" && !slices.ContainsFunc(files, func(o string) bool {
			return strings.HasPrefix(path.Join(p.DocsDir, o), path.Join(p.DocsDir, path.Dir(file), "content")+"/")
		}) {
			continue // a config.toml of something else
		}
		if kind == "" && IsPage(file) && strings.HasPrefix(path.Base(file), "_index.") {
			kind = api.SiteHugo
		}
		if kind == "" || p.Site != "" && kind != p.Site {
			continue
		}
		if strings.HasPrefix(path.Base(file), "_category_.") {
			if raw, err := read(file); err == nil {
				var c struct {
					Label string `json:"label" yaml:"label"`
				}
				if path.Ext(file) == ".json" {
					err = formats.JSON(raw, &c)
				} else {
					err = formats.YAML(raw, &c)
				}
				if err == nil && c.Label != "" {
					s.labels[path.Dir(file)] = c.Label
				}
			}
		}
		// The file that is nearest to the root speaks for the site.
		better := config == "" || Configures(file) != "" && (Configures(config) == "" || strings.Count(file, "/") < strings.Count(config, "/"))
		if rank[kind] > rank[found] || kind == found && better && !strings.HasPrefix(path.Base(file), "sidebars.") {
			found, config = kind, file
		}
	}
	if s.Kind == "" {
		s.Kind = found
	}
	var raw []byte
	dir := p.DocsDir
	if Configures(config) != "" {
		dir = path.Join(p.DocsDir, path.Dir(config))
		raw, _ = read(config)
	}
	var settings struct {
		DocsDir       string `yaml:"docs_dir"`
		DirectoryURLs *bool  `yaml:"use_directory_urls"`
		ContentDir    string `yaml:"contentDir" toml:"contentDir" json:"contentDir"`
	}
	if config != "" {
		switch path.Ext(config) { // a file that cannot be read sets nothing
		case ".toml":
			_ = formats.TOML(raw, &settings)
		case ".yml", ".yaml":
			_ = formats.YAML(raw, &settings)
		case ".json":
			_ = formats.JSON(raw, &settings)
		}
	}
	or := func(a, b string) string {
		if a != "" {
			return a
		}
		return b
	}
	switch s.Kind {
	case api.SiteMintlify:
		s.content = dir
	case api.SiteMkDocs:
		if config != "" {
			s.content = path.Join(dir, or(settings.DocsDir, "docs"))
		}
		s.html = settings.DirectoryURLs != nil && !*settings.DirectoryURLs
	case api.SiteVitePress:
		if config != "" {
			dir = strings.TrimSuffix(strings.TrimSuffix(dir, "/config"), ".vitepress")
			s.content = path.Clean(dir)
			if m := srcDir.FindSubmatch(raw); m != nil {
				s.content = path.Join(dir, string(m[1]))
			}
		}
		s.html = !cleanURLs.Match(raw)
	case api.SiteHugo:
		if Configures(config) != "" {
			dir = strings.TrimSuffix(strings.TrimSuffix(dir, "config/_default"), "/")
			s.content = path.Join(dir, or(settings.ContentDir, "content"))
		} else if slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, "content/") }) {
			s.content = path.Join(p.DocsDir, "content")
		}
	case api.SiteDocusaurus:
		if config != "" && strings.HasPrefix(path.Base(config), "docusaurus.config.") {
			s.content = dir
		}
		s.route["docs"] = "docs"
		if m := routeBase.FindSubmatch(raw); m != nil {
			s.route["docs"] = strings.Trim(string(m[1]), "/")
		}
	case api.SiteStarlight:
		s.content = path.Join(p.DocsDir, "src/content/docs")
	}
	if s.content == "." {
		s.content = ""
	}
	return s
}

// relative is a page's path below the folder that holds the site's pages; where the documentation folder is that folder,
// or within it, below the documentation folder.
func (s *Site) relative(p string) string {
	if s.content == s.docsDir || s.content == "" || strings.HasPrefix(s.docsDir, s.content+"/") {
		return p
	}
	if rest, ok := strings.CutPrefix(path.Join(s.docsDir, p), s.content+"/"); ok {
		return rest
	}
	return p
}

var (
	numbered  = regexp.MustCompile(`^\d+\s*[-_.]+\s*([^-_.\s].*)$`)
	notNumber = regexp.MustCompile(`^(\d{2,4}[-_.]\d{2}|\d+[-_.]\d+)`) // dates and versions
	versioned = regexp.MustCompile(`^versioned_docs/version-([^/]+)/`)
	localized = regexp.MustCompile(`^i18n/([^/]+)/docusaurus-plugin-content-docs/(?:current|version-([^/]+))/`)
)

func withoutNumber(name string) string {
	if m := numbered.FindStringSubmatch(name); m != nil && !notNumber.MatchString(name) {
		return m[1]
	}
	return name
}

// WithoutNumbers takes the numbers by which Docusaurus orders files off every part of a path.
func WithoutNumbers(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = withoutNumber(parts[i])
	}
	return strings.Join(parts, "/")
}

// Shown is where the site shows a page: a path without leading slash, with the slash or extension at its end that the
// generator gives it.
func (s *Site) Shown(r Page) string {
	if r.Address != "" {
		return strings.TrimPrefix(r.Address, "/")
	}
	rel := s.relative(r.Path)
	dir, stem := path.Split(rel)
	if IsPage(stem) {
		stem = strings.TrimSuffix(stem, path.Ext(stem))
	}
	dir = strings.TrimSuffix(dir, "/")
	index := slices.Contains([]string{"index", "_index", "README", "readme"}, stem)
	join := func(slug string) string {
		if strings.HasPrefix(slug, "/") {
			return strings.Trim(path.Clean(slug), "/")
		}
		return strings.TrimPrefix(path.Join("/", dir, slug), "/")
	}
	folder := func(p string) string { // as a folder's address
		if p = strings.Trim(p, "/"); p == "" {
			return ""
		}
		return p + "/"
	}
	switch s.Kind {
	case api.SiteDocusaurus:
		prefix := ""
		if m := versioned.FindStringSubmatch(rel); m != nil {
			prefix, dir = path.Join(s.route["docs"], m[1]), strings.TrimPrefix(dir+"/", m[0])
		} else if m := localized.FindStringSubmatch(rel); m != nil {
			prefix, dir = path.Join(m[1], s.route["docs"], m[2]), strings.TrimPrefix(dir+"/", m[0])
		} else if rest, ok := strings.CutPrefix(rel, "docs/"); ok {
			prefix, dir = s.route["docs"], path.Dir(rest)
		} else if rest, ok := strings.CutPrefix(rel, "src/pages/"); ok {
			dir = path.Dir(rest)
		}
		dir = WithoutNumbers(strings.Trim(path.Clean("/"+dir), "/"))
		stem = withoutNumber(stem)
		if r.ID != "" {
			stem = r.ID
		}
		own := join(stem)
		if r.Slug != "" {
			own = join(r.Slug)
		} else if r.ID == "" && (strings.EqualFold(stem, "index") || strings.EqualFold(stem, "readme") || strings.EqualFold(stem, path.Base(dir))) {
			own = dir
		}
		return strings.Trim(path.Join(prefix, own), "/")
	case api.SiteHugo:
		for _, code := range Translations {
			if rest, ok := strings.CutSuffix(stem, "."+code); ok {
				stem, dir = rest, path.Join(code, dir)
				index = stem == "index" || stem == "_index"
			}
		}
		own := join(stem)
		switch {
		case r.Slug != "" && stem == "index": // a bundle: the folder is the page
			own = path.Join(path.Dir(dir), r.Slug)
		case r.Slug != "" && stem != "_index":
			own = join(strings.Trim(r.Slug, "/"))
		case index:
			own = dir
		}
		return folder(strings.ReplaceAll(strings.ToLower(own), " ", "-"))
	case api.SiteMkDocs, api.SiteVitePress:
		switch {
		case index:
			return folder(dir)
		case s.html:
			return join(stem + ".html")
		case s.Kind == api.SiteMkDocs:
			return folder(join(stem))
		}
		return join(stem)
	case api.SiteStarlight:
		if r.Slug != "" {
			return folder(r.Slug)
		}
		if index {
			return folder(strings.ToLower(dir))
		}
		return folder(strings.ToLower(join(stem)))
	}
	if r.Slug != "" {
		return join(r.Slug)
	}
	if index {
		return strings.Trim(path.Clean("/"+dir), "/")
	}
	return join(stem)
}

// AddressKey is an address as links are compared by: without what stands at its end by the generator's rule alone.
func AddressKey(address string) string {
	address = strings.TrimSuffix(strings.Trim(address, "/"), ".html")
	return address
}

// Crumbs are the titles of the folders above a page, where the generator shows them.
func (s *Site) Crumbs(r Page, titles map[string]string) []string {
	if s.Kind != api.SiteHugo && s.Kind != api.SiteDocusaurus {
		return nil
	}
	var out []string
	dir := path.Dir(r.Path)
	if strings.HasPrefix(path.Base(r.Path), "_index.") {
		dir = path.Dir(dir)
	}
	for ; dir != "." && dir != "/" && path.Join(s.docsDir, dir) != s.content && !strings.HasPrefix(dir, ".."); dir = path.Dir(dir) {
		name := s.labels[dir]
		if name == "" {
			name = titles[dir]
		}
		if name != "" && name != r.Title {
			out = append(out, name)
		}
	}
	slices.Reverse(out)
	return out
}

// Translations are the folders that hold one language's pages. Codes that are common English folder names are left out.
var Translations = strings.Fields(`ar bg bn ca cs da de el en es et fa fi fr he hi hr hu ja ko lt lv ms nb nl pl pt ro ru sk sl sr sv ta th tr uk ur vi zh
	pt-br zh-cn zh-tw zh-hans zh-hant en-us en-gb es-419 fr-ca`)

var pageExtensions = map[string]bool{".md": true, ".mdx": true, ".markdown": true, ".html": true, ".htm": true, ".txt": true, ".rst": true, ".adoc": true}

// IsPage tells from its name whether a file holds text for readers.
func IsPage(p string) bool { return pageExtensions[strings.ToLower(path.Ext(p))] }

// PageKey is the path of a page as links and navigation name it: without extension, leading slash and index.
func PageKey(p string) string {
	p = strings.Trim(path.Clean("/"+p), "/")
	if IsPage(p) {
		p = strings.TrimSuffix(p, path.Ext(p))
	}
	switch base := path.Base(p); base {
	case "index", "_index", "README", "readme":
		p = strings.TrimSuffix(strings.TrimSuffix(p, base), "/")
	}
	return p
}
