package site

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/internal/formats"
	"docent/site/anchor"
)

// Generators that make pages of what their navigation lists: mdBook and GitBook of a summary, Fern of docs.yml.

// summary is the file that lists the pages of mdBook and GitBook.
const summary = "SUMMARY.md"

// isSummary tells a file that lists pages by its name.
func isSummary(p string) bool { return strings.EqualFold(path.Base(p), summary) }

// A listedPage is a page as a navigation lists it.
type listedPage struct {
	address string // empty if the generator's rule says it
	title   string
	hidden  bool
	seq     int // from 1
}

func (s *Site) openMdBook(read func(string) ([]byte, error)) {
	src := "src"
	if s.config != "" {
		var doc struct {
			Book   struct{ Src string }
			Output map[string]any
		}
		s.configured(read, &doc)
		if doc.Book.Src != "" {
			src = doc.Book.Src
		}
		if at := text(object(doc.Output["html"])["site-url"]); strings.HasPrefix(at, "/") {
			s.base = strings.Trim(at, "/")
		} else {
			s.setOrigin(s.config, "output.html.site-url", at)
		}
	}
	s.content = path.Join(s.folder(), src)
	s.readSummary(path.Join(path.Dir(s.config), src, summary), read)
}

func (s *Site) openGitBook(read func(string) ([]byte, error)) {
	root, name, readme := path.Dir(s.config), summary, "README.md"
	if !isSummary(s.config) {
		var doc struct {
			Root      string `yaml:"root"`
			Structure struct{ Readme, Summary string }
		}
		s.configured(read, &doc)
		root = path.Join(root, doc.Root)
		name, readme = cmp.Or(doc.Structure.Summary, name), cmp.Or(doc.Structure.Readme, readme)
	}
	s.content = path.Join(s.docsDir, root)
	s.readSummary(path.Join(root, name), read)
	if at, ok := s.listed[path.Join(root, readme)]; ok {
		at.address = "/"
		s.listed[path.Join(root, readme)] = at
	}
}

var summaryLink = regexp.MustCompile(`\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?:<([^>\n]*)>|([^)\s"]*))`)

// eachSummary shows the pages of a summary in their order, with the titles of the parts above them.
func eachSummary(content []byte, found func(page, title string, above []string)) {
	var part string
	type item struct {
		indent int
		title  string
	}
	var above []item
	for line := range strings.Lines(string(content)) {
		trimmed := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(strings.TrimLeft(trimmed, "#"), " "); ok && strings.HasPrefix(trimmed, "#") {
			part, above = strings.TrimSpace(rest), nil
			continue
		}
		m := summaryLink.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		for len(above) > 0 && above[len(above)-1].indent >= indent {
			above = above[:len(above)-1]
		}
		var crumbs []string
		if part != "" && !strings.EqualFold(part, "Summary") && !strings.EqualFold(part, "Table of contents") {
			crumbs = append(crumbs, part)
		}
		for _, a := range above {
			crumbs = append(crumbs, a.title)
		}
		title := strings.NewReplacer(`\`, "", "`", "", "**", "").Replace(m[1])
		above = append(above, item{indent, title})
		if to, _, _ := strings.Cut(m[2]+m[3], "#"); to != "" && !strings.Contains(to, "://") {
			found(strings.ReplaceAll(to, "%20", " "), title, crumbs)
		}
	}
}

func (s *Site) readSummary(file string, read func(string) ([]byte, error)) {
	raw, err := read(file)
	if err != nil {
		return // GitBook shows all files then, and mdBook none
	}
	s.listing, s.listed = file, map[string]listedPage{}
	eachSummary(raw, func(page, title string, _ []string) {
		page = path.Join(path.Dir(file), page)
		if _, twice := s.listed[page]; !twice {
			s.listed[page] = listedPage{title: title, seq: len(s.listed) + 1}
		}
	})
}

// openFern reads docs.yml, whose titles make the addresses.
func (s *Site) openFern(read func(string) ([]byte, error)) {
	folder := path.Dir(s.config)
	s.content = path.Join(s.docsDir, folder)
	s.listing = path.Join(folder, "docs.yml")
	var doc struct {
		Instances []struct {
			URL    string `yaml:"url"`
			Domain any    `yaml:"custom-domain"`
		} `yaml:"instances"`
		Navigation any `yaml:"navigation"`
		Tabs       map[string]struct {
			Name string `yaml:"display-name"`
			Slug any    `yaml:"slug"`
			Skip bool   `yaml:"skip-slug"`
		} `yaml:"tabs"`
		Versions []struct {
			Name string `yaml:"display-name"`
			Path string `yaml:"path"`
			Slug string `yaml:"slug"`
		} `yaml:"versions"`
		Landing map[string]any `yaml:"landing-page"`
	}
	raw, err := read(s.listing)
	if err == nil {
		err = formats.YAML(raw, &doc)
	}
	if err != nil {
		s.unreadable(s.listing, err)
		return
	}
	s.listed = map[string]listedPage{}
	for _, i := range doc.Instances {
		domain := text(i.Domain)
		if list, ok := i.Domain.([]any); ok && len(list) > 0 {
			domain = text(list[0])
		}
		domain = cmp.Or(domain, i.URL)
		if domain != "" {
			s.setOrigin(s.listing, "instances", "https://"+strings.TrimPrefix(domain, "https://"))
			break
		}
	}
	tabs := map[string]any{}
	for id, tab := range doc.Tabs {
		tabs[id] = map[string]any{"section": tab.Name, "slug": tab.Slug, "skip-slug": tab.Skip}
	}
	if page := text(doc.Landing["path"]); page != "" {
		s.listed[path.Join(folder, page)] = listedPage{"/" + fernPath("", doc.Landing, "page"), text(doc.Landing["page"]), doc.Landing["hidden"] == true, 1}
	}
	s.walkFern(doc.Navigation, folder, "", false, tabs)
	for n, v := range doc.Versions {
		var of struct {
			Navigation any `yaml:"navigation"`
		}
		file := path.Join(folder, v.Path)
		if raw, err := read(file); err != nil || formats.YAML(raw, &of) != nil {
			s.warn(s.listing, "the navigation of the version %s cannot be read", v.Name)
			continue
		}
		below := cmp.Or(v.Slug, anchor.Kebab(v.Name))
		if n == 0 { // the default one has no version in its addresses
			below = ""
		}
		s.walkFern(of.Navigation, path.Dir(file), below, false, tabs)
	}
}

// walkFern follows sections, tabs and pages.
func (s *Site) walkFern(node any, folder, above string, hidden bool, tabs map[string]any) {
	list, _ := node.([]any)
	for _, v := range list {
		n := object(v)
		if tab, ok := tabs[text(n["tab"])].(map[string]any); ok {
			s.walkFern(n["layout"], folder, fernPath(above, tab, "section"), hidden || n["hidden"] == true, tabs)
			continue
		}
		here := hidden || n["hidden"] == true
		if page := text(n["page"]); page != "" {
			s.listed[path.Join(folder, text(n["path"]))] = listedPage{"/" + fernPath(above, n, "page"), page, here, len(s.listed) + 1}
			continue
		}
		if section := text(n["section"]); section != "" {
			at := fernPath(above, n, "section")
			if own := text(n["path"]); own != "" {
				s.listed[path.Join(folder, own)] = listedPage{"/" + at, section, here, len(s.listed) + 1}
			}
			s.walkFern(n["contents"], folder, at, here, tabs)
		}
	}
}

// fernPath is the address of a part of the navigation below another: by its slug, or by its title.
func fernPath(above string, n map[string]any, key string) string {
	slug, set := n["slug"].(string)
	switch {
	case n["skip-slug"] == true:
		return above
	case set && strings.HasPrefix(slug, "/"):
		return strings.Trim(slug, "/")
	case set:
		return path.Join(above, slug)
	}
	return path.Join(above, anchor.Kebab(text(n[key])))
}

// listedOnly decides by what the navigation lists.
func (d *decider) listedOnly(e *Entry) Decision {
	if _, ok := d.inside(e.Path); !ok {
		return d.outside(d.Config())
	}
	if e.OpenAPI {
		return d.formats(e)
	}
	at, ok := d.listed[e.Path]
	switch {
	case ok && at.hidden:
		return Decision{Unlisted, "is hidden in the navigation", d.file(d.listing)}
	case ok:
		return Decision{Published, "is in the navigation", d.file(d.listing)}
	}
	if p := d.importer(e); p != "" {
		return Decision{Included, "is taken in", d.file(p)}
	}
	if d.listed == nil && d.Kind == api.SiteGitBook {
		return d.plain(e)
	}
	return Decision{LeftOut, "is not in the navigation", d.file(d.listing)}
}

// openWiki recognizes a wiki of GitHub, GitLab or Gollum, which has no configuration: by its sidebar, or its home.
func (s *Site) openWiki(files []string) {
	if s.Kind != "" {
		return
	}
	home, wiki := false, false
	for _, f := range files {
		switch f {
		case "Home.md":
			home = true
		case "_Sidebar.md", "_Footer.md", "_Header.md":
			wiki = true
		case "index.md", "README.md", "index.html", "docs/index.md":
			return
		}
	}
	if home && wiki || home && !slices.ContainsFunc(files, func(f string) bool { return strings.Contains(f, "/") }) {
		s.Kind = api.SiteWiki
	}
}

// unsupported are generators that are recognized by a file, whose rules are not known.
var unsupported = map[string]string{"docfx.json": "DocFX", "myst.yml": "MyST", "_toc.yml": "Jupyter Book",
	"nuxt.config.ts": "Nuxt", "eleventy.config.js": "Eleventy", ".eleventy.js": "Eleventy", "gatsby-config.js": "Gatsby",
	"_bookdown.yml": "bookdown", "writerside.cfg": "Writerside", "redocly.yaml": "Redocly", "gridsome.config.js": "Gridsome",
	"_sidebar.md": "Docsify", "retype.yml": "Retype", "doxyfile": "Doxygen"}

// NameUnsupported warns of a generator whose rules are not known, by all files of the repository, and says how many pages
// are read by those of plain folders.
func (s *Site) NameUnsupported(all []string, pages int) {
	if s.Kind != "" && s.Kind != api.SitePlain {
		return
	}
	for _, f := range all {
		if name := unsupported[strings.ToLower(path.Base(f))]; name != "" && strings.Count(f, "/") < 3 {
			s.warn(f, "the site looks like one of %s, whose rules are not known: its %d pages are read as those of a plain folder, and addresses may differ. Read its web site with --kind web for answers, or set --site and --site-url",
				name, pages)
			return
		}
	}
}
