package search

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/formats"
)

// A site is how the generator of a documentation site names its pages. It is recognised by its files, and decides where
// a reader finds a page; the project's SiteURL is where the documentation folder itself is shown.
type site struct {
	kind    api.SiteKind
	content string            // folder that holds the pages, relative to the repository's root
	docsDir string            // the project's
	html    bool              // pages end in .html
	labels  map[string]string // titles of folders, by their path relative to the documentation folder
	layout  *layout
}

// siteFile tells what a file of this name configures; empty for any other.
func siteFile(p string) api.SiteKind {
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
)

// findSite recognises the generator. What a project says of itself goes before what its files say.
func findSite(p api.Project, records []*record, content func(*record) ([]byte, error)) site {
	s := site{kind: p.Site, docsDir: p.DocsDir, content: p.DocsDir, labels: map[string]string{}}
	rank := map[api.SiteKind]int{api.SiteMintlify: 5, api.SiteMkDocs: 4, api.SiteDocusaurus: 3, api.SiteVitePress: 2, api.SiteHugo: 1}
	var config *record
	found := api.SiteKind("")
	for _, r := range records {
		kind := siteFile(r.Path)
		if kind == api.SiteHugo && path.Base(r.Path) == "config.toml" && !slices.ContainsFunc(records, func(o *record) bool {
			return strings.HasPrefix(path.Join(p.DocsDir, o.Path), path.Join(p.DocsDir, path.Dir(r.Path), "content")+"/")
		}) {
			continue // a config.toml of something else
		}
		if kind == "" && r.Kind == kindPage && strings.HasPrefix(path.Base(r.Path), "_index.") {
			kind = api.SiteHugo
		}
		if kind == "" || p.Site != "" && kind != p.Site {
			continue
		}
		if strings.HasPrefix(path.Base(r.Path), "_category_.") {
			if raw, err := content(r); err == nil {
				var c struct {
					Label string `json:"label" yaml:"label"`
				}
				if path.Ext(r.Path) == ".json" {
					err = formats.JSON(raw, &c)
				} else {
					err = formats.YAML(raw, &c)
				}
				if err == nil && c.Label != "" {
					s.labels[path.Dir(r.Path)] = c.Label
				}
			}
		}
		// The file that is nearest to the root speaks for the site.
		better := config == nil || r.Kind == kindNavigation && (config.Kind != kindNavigation || strings.Count(r.Path, "/") < strings.Count(config.Path, "/"))
		if rank[kind] > rank[found] || kind == found && better && !strings.HasPrefix(path.Base(r.Path), "sidebars.") {
			found, config = kind, r
		}
	}
	if s.kind == "" {
		s.kind = found
	}
	var raw []byte
	dir := p.DocsDir
	if config != nil && config.Kind == kindNavigation {
		dir = path.Join(p.DocsDir, path.Dir(config.Path))
		raw, _ = content(config)
	}
	var settings struct {
		DocsDir       string `yaml:"docs_dir"`
		DirectoryURLs *bool  `yaml:"use_directory_urls"`
		ContentDir    string `yaml:"contentDir" toml:"contentDir" json:"contentDir"`
	}
	if config != nil {
		switch path.Ext(config.Path) { // a file that cannot be read sets nothing
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
	switch s.kind {
	case api.SiteMintlify:
		s.content = dir
	case api.SiteMkDocs:
		if config != nil {
			s.content = path.Join(dir, or(settings.DocsDir, "docs"))
		}
		s.html = settings.DirectoryURLs != nil && !*settings.DirectoryURLs
	case api.SiteVitePress:
		if config != nil {
			dir = strings.TrimSuffix(strings.TrimSuffix(dir, "/config"), ".vitepress")
			s.content = path.Clean(dir)
			if m := srcDir.FindSubmatch(raw); m != nil {
				s.content = path.Join(dir, string(m[1]))
			}
		}
		s.html = !cleanURLs.Match(raw)
	case api.SiteHugo:
		if config != nil && config.Kind == kindNavigation {
			dir = strings.TrimSuffix(strings.TrimSuffix(dir, "config/_default"), "/")
			s.content = path.Join(dir, or(settings.ContentDir, "content"))
		} else if slices.ContainsFunc(records, func(r *record) bool { return strings.HasPrefix(r.Path, "content/") }) {
			s.content = path.Join(p.DocsDir, "content")
		}
	case api.SiteDocusaurus:
		if config != nil && strings.HasPrefix(path.Base(config.Path), "docusaurus.config.") {
			s.content = dir
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
func (s *site) relative(p string) string {
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
)

func withoutNumber(name string) string {
	if m := numbered.FindStringSubmatch(name); m != nil && !notNumber.MatchString(name) {
		return m[1]
	}
	return name
}

// withoutNumbers takes the numbers by which Docusaurus orders files off every part of a path.
func withoutNumbers(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = withoutNumber(parts[i])
	}
	return strings.Join(parts, "/")
}

// address is where the site shows a page: a path without leading slash, with the slash or extension at its end that the
// generator gives it.
func (s *site) address(r *record) string {
	if r.Address != "" {
		return strings.TrimPrefix(r.Address, "/")
	}
	rel := s.relative(r.Path)
	dir, stem := path.Split(rel)
	if pageExtensions[strings.ToLower(path.Ext(stem))] {
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
	switch s.kind {
	case api.SiteDocusaurus:
		prefix, rest := s.layout.docsAddress(rel)
		dir = path.Dir(rest)
		dir = withoutNumbers(strings.Trim(path.Clean("/"+dir), "/"))
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
		language, rest := s.layout.addressOf(r.Path)
		dir, stem = path.Split(s.relative(rest))
		dir, stem = path.Join(language, dir), strings.TrimSuffix(stem, path.Ext(stem))
		index = stem == "index" || stem == "_index"
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
		case s.kind == api.SiteMkDocs:
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

// addressKey is an address as links are compared by: without what stands at its end by the generator's rule alone.
func addressKey(address string) string {
	address = strings.TrimSuffix(strings.Trim(address, "/"), ".html")
	return address
}

// crumbs are the titles of the folders above a page, where the generator shows them.
func (s *site) crumbs(r *record, titles map[string]string) []string {
	if s.kind != api.SiteHugo && s.kind != api.SiteDocusaurus {
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
