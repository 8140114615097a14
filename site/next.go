package site

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/site/script"
)

// Sites that are made with Next.js: by Nextra, by Fumadocs, by a router of its own, or in the way of its documentation,
// whose folders have numbers that order them.

var (
	twoDigits = regexp.MustCompile(`^\d{2,3}[-_.]+(\D.*)$`)
	group     = regexp.MustCompile(`^\([^()]+\)$`)
)

// openNext recognizes a site of Next.js by its configuration, by folders of names in parentheses, or by numbered
// folders.
func (s *Site) openNext(files []string, read func(string) ([]byte, error)) {
	if s.Kind != "" && s.Kind != api.SiteNext {
		return
	}
	grouped, mdx, others := false, false, false
	top := map[string]bool{} // what stands in the root: pages and the folders of pages
	for _, f := range files {
		base := path.Base(f)
		if stem := strings.TrimSuffix(base, path.Ext(base)); stem == "next.config" &&
			(s.config == "" || strings.Count(f, "/") < strings.Count(s.config, "/")) {
			s.config = f
		}
		others = others || base == "SUMMARY.md" || base == "_sidebar.md" // mdBook and Docsify show names as they are
		if strings.HasPrefix(f, "../") || !IsPage(f) {
			continue
		}
		mdx = mdx || path.Ext(base) == ".mdx"
		grouped = grouped || slices.ContainsFunc(strings.Split(path.Dir(f), "/"), group.MatchString)
		if name := topName(f); name != "" {
			top[name] = true
		}
	}
	s.numbers = len(top) > 1 && mdx && !others
	for name := range top {
		s.numbers = s.numbers && twoDigits.MatchString(name)
	}
	if s.config != "" || s.numbers || grouped && mdx && !others {
		s.Kind = api.SiteNext
	}
	if s.Kind == api.SiteNext && s.config != "" {
		s.readNext(read)
	}
}

// importsNextra matches a configuration that is Nextra's as well.
var importsNextra = regexp.MustCompile(`['"]nextra['"]`)

func (s *Site) readNext(read func(string) ([]byte, error)) {
	raw, err := read(s.config)
	if err != nil {
		return
	}
	doc := script.Settings(s.config, string(raw), read, "basePath", "i18n", "output", "images", "reactStrictMode", "pageExtensions",
		"trailingSlash")
	base, _ := doc["basePath"].(string)
	s.base = strings.Trim(base, "/")
	s.slash = doc["trailingSlash"] == true
	if s.nextra = importsNextra.Match(raw); s.nextra {
		s.anchors.Slugged = true
		below, _ := script.Settings(s.config, string(raw), read,
			"contentDirBasePath")["contentDirBasePath"].(string)
		s.contentBase = strings.Trim(below, "/")
		return
	}
	s.readFumadocs(read)
	first := func(stems ...string) []byte {
		for _, stem := range stems {
			for _, ext := range []string{".ts", ".tsx", ".js", ".mjs"} {
				if raw, err := read(path.Join(path.Dir(s.config), stem+ext)); err == nil {
					return raw
				}
			}
		}
		return nil
	}
	s.languages = first("lib/i18n", "src/lib/i18n", "i18n", "src/i18n")
	for name, base := range script.Loaders(first("lib/source", "src/lib/source", "app/source", "src/app/source", "lib/source/index", "src/lib/source/index")) {
		i := slices.IndexFunc(s.dirs, func(c collection) bool { return c.name == name })
		if i < 0 && name != "docs" {
			continue
		} else if i < 0 {
			i, s.dirs = len(s.dirs), append(s.dirs, collection{folder: path.Join(s.folder(), "content/docs")})
		}
		s.dirs[i].base, s.dirs[i].based = base, true
	}
}

// languagesDirs matches settings of Fumadocs by which each language has a folder.
var languagesDirs = regexp.MustCompile(`\bparser\s*:\s*["']dir["']`)

// byLoader is a page's address by the loader of its collection; false if that is not known.
func (s *Site) byLoader(p string) (string, bool) {
	full := path.Join(s.docsDir, p)
	for _, c := range s.dirs {
		rel, in := strings.CutPrefix(full, c.folder+"/")
		if !in || !c.based || s.docsDir != "" && strings.HasPrefix(s.docsDir+"/", c.folder+"/") {
			continue
		}
		rel = strings.TrimSuffix(rel, path.Ext(rel))
		tag := ""
		if first, rest, ok := strings.Cut(rel, "/"); ok && languagesDirs.Match(s.languages) && s.layout.locales[FoldTag(first)] != "" {
			tag, rel = first, rest
		} else if dot := path.Ext(rel); dot != "" && s.layout.locales[FoldTag(dot[1:])] != "" {
			tag, rel = s.layout.locales[FoldTag(dot[1:])], strings.TrimSuffix(rel, dot)
		}
		if strings.EqualFold(tag, s.layout.byDefault) {
			tag = ""
		}
		parts := strings.Split(rel, "/")
		parts = slices.DeleteFunc(parts, group.MatchString)
		if n := len(parts); n > 0 && parts[n-1] == "index" {
			parts = parts[:n-1]
		}
		return path.Join(append([]string{tag, c.base}, parts...)...), true
	}
	return "", false
}

var (
	fumadocsLanguages = regexp.MustCompile(`\blanguages\s*:\s*\[([^\]]*)\]`)
	fumadocsDefault   = regexp.MustCompile(`\bdefaultLanguage\s*:\s*["']([\w-]+)["']`)
	quotedTag         = regexp.MustCompile(`["']([\w-]+)["']`)
)

// readFumadocs reads the languages that Fumadocs has pages in.
func (l *layout) readFumadocs(src []byte) {
	if m := fumadocsDefault.FindSubmatch(src); m != nil {
		l.setDefault(string(m[1]))
	}
	if m := fumadocsLanguages.FindSubmatch(src); m != nil {
		for _, tag := range quotedTag.FindAllSubmatch(m[1], -1) {
			l.name(string(tag[1]), string(tag[1]))
		}
	}
}

// router is the folder of Next.js's that a page lies in, and the page's path there; ok is false if it lies in none.
func (s *Site) router(p string) (folder, rel string, ok bool) {
	root := path.Dir(s.config)
	if s.config == "" {
		root = "."
	} else if strings.HasPrefix(root, "..") { // the documentation folder's address says the rest
		return "", p, false
	}
	if root != "." {
		p = strings.TrimPrefix(p, root+"/")
	}
	for _, folder := range routers {
		if rest, in := strings.CutPrefix(p, folder+"/"); in {
			return folder, rest, true
		}
	}
	return "", p, false
}

func (d *decider) next(e *Entry) Decision {
	if why, ok := d.leftOutOf(e.Path); ok {
		return why
	}
	if !d.nextra || strings.HasPrefix(d.config, "../") {
		return d.plain(e)
	}
	folder, rel, ok := d.router(e.Path)
	switch {
	case !ok:
		return Decision{Included, "lies outside of content and app, where Nextra has its pages", d.Config()}
	case path.Base(folder) == "app" && strings.TrimSuffix(path.Base(rel), path.Ext(rel)) != "page":
		return Decision{Included, "Nextra makes pages of the files in app that are named page", ""}
	}
	return d.plain(e)
}

// topName is the name in the root by which a page is found; empty for the root's own page and for what is hidden.
func topName(page string) string {
	first, _, below := strings.Cut(page, "/")
	own := !below && (PageKey(page) == "" || strings.ToLower(PageKey(page)) == "readme")
	if own || strings.HasPrefix(first, ".") || strings.HasPrefix(first, "_") {
		return ""
	}
	return first
}

// routers are the folders that hold the pages of Next.js, Nextra and Fumadocs.
var routers = []string{"src/content", "content", "src/app", "app", "src/pages", "pages"}

// nextPath is where Next.js shows a file, without the folders that only order or group pages.
func (s *Site) nextPath(p string) string {
	if at, ok := s.byLoader(p); ok {
		return at
	}
	folder, full, ok := s.router(p)
	app := path.Base(folder) == "app"
	if !ok {
		app = strings.Contains("/"+s.docsDir+"/", "/app/")
	}
	full = strings.TrimSuffix(full, path.Ext(full))
	if app {
		full = strings.TrimSuffix(strings.TrimSuffix("/"+full, "/page"), "/")
	}
	if dot := path.Ext(full); dot != "" { // a language that the configuration names
		if tag := s.layout.locales[FoldTag(dot[1:])]; tag != "" {
			full = strings.TrimSuffix(full, dot)
			if !strings.EqualFold(tag, s.layout.byDefault) {
				full = path.Join(tag, full)
			}
		}
	}
	var parts []string
	for part := range strings.SplitSeq(strings.Trim(full, "/"), "/") {
		if group.MatchString(part) {
			continue
		}
		if m := twoDigits.FindStringSubmatch(part); m != nil && s.numbers {
			part = m[1]
		}
		parts = append(parts, part)
	}
	if n := len(parts); n > 0 && parts[n-1] == "index" {
		parts = parts[:n-1]
	}
	if path.Base(folder) == "content" && s.contentBase != "" {
		parts = append([]string{s.contentBase}, parts...)
	}
	if s.slash {
		return asFolder(strings.Join(parts, "/"))
	}
	return strings.Join(parts, "/")
}
