package site

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/site/script"
)

func (s *Site) openVitePress(read func(string) ([]byte, error)) {
	if s.config == "" {
		return
	}
	s.content = path.Clean(strings.TrimSuffix(strings.TrimSuffix(s.folder(), "/config"), ".vitepress"))
	s.html = true
	raw, err := read(s.config)
	if err != nil {
		s.unreadable(s.config, err)
		return
	}
	doc := script.Settings(s.config, string(raw), read, "title", "themeConfig", "srcExclude", "srcDir", "cleanUrls", "rewrites", "base",
		"sitemap", "description", "markdown", "locales")
	if doc == nil {
		s.unknown(s.config, "its settings are computed")
		return
	}
	s.spreads(s.config, doc, "srcExclude", "srcDir")
	if dir, ok := doc["srcDir"].(string); ok {
		s.content = path.Join(s.content, dir)
	} else if doc["srcDir"] != nil {
		s.unknown(s.config, "srcDir is computed")
	}
	s.html = doc["cleanUrls"] != true
	if base, ok := doc["base"].(string); ok {
		s.base = strings.Trim(base, "/")
	}
	s.globs = s.globList(s.config, "srcExclude", atMost(doc["srcExclude"]))
	switch to := doc["rewrites"].(type) {
	case nil:
	case map[string]any:
		for from, v := range to {
			target, ok := v.(string)
			if !ok {
				s.warn(s.config, "rewrites are computed: some pages may be at other addresses")
				continue
			}
			if re := routePattern(from); re != nil {
				s.rewrites = append(s.rewrites, rewrite{re, target})
			} else {
				s.warn(s.config, "the rewrite %q is not understood: its pages may be at other addresses", from)
			}
		}
		slices.SortFunc(s.rewrites, func(a, b rewrite) int { return strings.Compare(b.from.String(), a.from.String()) })
	default:
		s.warn(s.config, "rewrites are computed: some pages may be at other addresses")
	}
	if sitemap, ok := doc["sitemap"].(map[string]any); ok {
		if host, ok := sitemap["hostname"].(string); ok {
			s.setOrigin(s.config, "sitemap.hostname", host)
		}
	}
}

// A rewrite shows a page of VitePress at the place of another one.
type rewrite struct {
	from *regexp.Regexp
	to   string
}

// rewritten is the path that a page of VitePress is shown as.
func (s *Site) rewritten(rel string) (string, bool) {
	for _, r := range s.rewrites {
		if m := r.from.FindStringSubmatch(rel); m != nil {
			return path.Clean(parameter.ReplaceAllStringFunc(r.to, func(p string) string {
				if i := r.from.SubexpIndex(parameter.FindStringSubmatch(p)[1]); i > 0 {
					return m[i]
				}
				return p
			})), true
		}
	}
	return "", false
}

var dynamicRoute = regexp.MustCompile(`\[\w+?\]`)

func (d *decider) vitePress(e *Entry) Decision {
	rel, ok := d.inside(e.Path)
	if !ok {
		return d.outside(d.Config())
	}
	if strings.ToLower(path.Ext(rel)) != ".md" {
		return d.formats(e)
	}
	for name := rel; name != "."; name = path.Dir(name) {
		if base := path.Base(name); base == "dist" && name != rel || base == "node_modules" {
			return Decision{LeftOut, "VitePress leaves out " + base, ""}
		}
		for _, g := range d.globs {
			if g.Match(name) || g.Match(name+"/") && name != rel {
				return Decision{Included, "srcExclude: " + g.Text, d.Config()}
			}
		}
	}
	if dynamicRoute.MatchString(rel) {
		return Decision{Included, "is a template for pages", ""}
	}
	return Decision{Published, "lies in the source folder", d.Config()}
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

func (s *Site) shownByVitePress(n fileName) string {
	if to, ok := s.rewritten(n.rel); ok {
		n = nameOf(strings.TrimSuffix(to, path.Ext(to))+".md", "index")
	}
	switch {
	case n.index:
		return asFolder(n.dir)
	case s.html:
		return n.beside(n.stem + ".html")
	}
	return n.beside(n.stem)
}
