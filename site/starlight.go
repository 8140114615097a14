package site

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"docent/internal/glob"
	"docent/site/markup"
	"docent/site/script"
)

func (s *Site) openStarlight(read func(string) ([]byte, error)) {
	root := s.docsDir
	if s.config != "" {
		root = s.folder()
	}
	s.content = path.Join(root, "src/content/docs")
	if s.config == "" {
		return
	}
	raw, err := read(s.config)
	if err != nil {
		s.unreadable(s.config, err)
		return
	}
	doc := script.Settings(s.config, string(raw), read, "site", "base", "integrations", "srcDir", "markdown", "trailingSlash")
	markdown, _ := doc["markdown"].(map[string]any)
	s.anchors.Untyped = markdown["smartypants"] == false
	if doc["trailingSlash"] == "never" {
		s.unslashed = "/"
	}
	s.spreads(s.config, doc)
	src := path.Join(path.Dir(s.config), "src")
	if dir, ok := doc["srcDir"].(string); ok {
		s.content, src = path.Join(root, dir, "content/docs"), path.Join(path.Dir(s.config), dir)
	} else if doc["srcDir"] != nil {
		s.unknown(s.config, "srcDir is computed")
	}
	s.readAstro(src, read)
	if address, ok := doc["site"].(string); ok {
		base, _ := doc["base"].(string)
		s.setOrigin(s.config, "site", strings.TrimRight(address, "/")+path.Clean("/"+base))
	} else if doc["site"] != nil {
		s.warn(s.config, "site is computed; set --site-url")
	}
}

func (d *decider) starlight(e *Entry) Decision {
	rel, ok := d.inside(e.Path)
	if !ok {
		return d.outside(d.Config())
	}
	if !slices.Contains([]string{".markdown", ".mdown", ".mkdn", ".mkd", ".mdwn", ".md", ".mdx"},
		strings.ToLower(path.Ext(rel))) {
		return d.formats(e)
	}
	for part := range strings.SplitSeq(rel, "/") {
		if strings.HasPrefix(part, "_") {
			return Decision{Included, "Starlight makes no pages of names that begin with _", ""}
		}
	}
	for _, g := range d.globs {
		if g.Match(rel) {
			return Decision{LeftOut, "pattern: !" + g.Text, d.file(d.loading)}
		}
	}
	if d.loaded != nil && !glob.Any(d.loaded, rel) {
		return Decision{LeftOut, "no pattern of the collection docs matches", d.file(d.loading)}
	}
	return Decision{Published, "lies in src/content/docs", d.Config()}
}

func (l *layout) readStarlight(src []byte) {
	for _, m := range objectsAt(src, "locales") {
		l.readLocales(m)
	}
	if m := defaultLocale.FindSubmatch(src); m != nil && string(m[1]) != "root" {
		l.setDefault(cmp.Or(l.locales[strings.ToLower(string(m[1]))], string(m[1])))
	}
	l.readObject(src, "i18n", "defaultLocale")
	for _, at := range starlightLabels.FindAllIndex(src, maxObjects) { // the plugin starlight-versions
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

func shownByStarlight(r Page, n fileName) string {
	switch {
	case r.Slug != "":
		return asFolder(r.Slug)
	case n.index:
		return asFolder(starlightID(n.dir))
	}
	return asFolder(starlightID(n.beside(n.stem)))
}

// starlightID is the id that Astro gives a file: the slug of each part of its path.
func starlightID(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = markup.Slug(parts[i])
	}
	return strings.Join(parts, "/")
}
