package site

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/internal/formats"
	"docent/site/markup"
	"docent/site/script"
)

// Sphinx, whose configuration is a program of Python of which what is written out is read, and Antora.

// sphinxKey tells a configuration of Sphinx among programs of the same name.
var sphinxKey = regexp.MustCompile(`(?m)^(?:extensions|html_theme|master_doc|root_doc|html_baseurl|exclude_patterns|source_suffix)\b[^=\n]*=|^import sphinx|^from sphinx`)

func (s *Site) openSphinx(read func(string) ([]byte, error)) {
	s.content, s.html = s.folder(), true
	raw, err := read(s.config)
	if err != nil {
		s.unreadable(s.config, err)
		return
	}
	values, lists, computed := script.Python(string(raw))
	if strings.Contains(string(raw), "exclude_patterns") && lists["exclude_patterns"] == nil && !regexp.MustCompile(`exclude_patterns[^=\n]*=\s*\[\s*\]`).Match(raw) ||
		computed["exclude_patterns"] {
		s.unknown(s.config, "exclude_patterns is computed")
	}
	var patterns []any
	for _, key := range []string{"exclude_patterns", "templates_path", "html_extra_path"} {
		patterns = append(patterns, anys(lists[key]).([]any)...)
	}
	s.globs = s.globList(s.config, "exclude_patterns", patterns)
	s.setOrigin(s.config, "html_baseurl", values["html_baseurl"])
	s.suffixes = []string{".rst"}
	for _, of := range append(lists["source_suffix"], values["source_suffix"]) {
		if strings.HasPrefix(of, ".") && !slices.Contains(s.suffixes, of) {
			s.suffixes = append(s.suffixes, of)
		}
	}
	for _, extension := range lists["extensions"] {
		switch extension {
		case "myst_parser", "recommonmark", "m2r2", "sphinx_mdinclude":
			s.suffixes = append(s.suffixes, ".md")
		case "myst_nb":
			s.suffixes = append(s.suffixes, ".md", ".ipynb")
		case "nbsphinx":
			s.suffixes = append(s.suffixes, ".ipynb")
		}
	}
	for up := ""; up != "../../../"; up += "../" {
		for _, name := range []string{".readthedocs.yaml", ".readthedocs.yml"} {
			var of struct {
				Sphinx struct{ Builder string }
			}
			if raw, err := read(path.Join(path.Dir(s.config), up+name)); err == nil && formats.YAML(raw, &of) == nil && of.Sphinx.Builder == "dirhtml" {
				s.html = false
			}
		}
	}
	s.rules.Prolog, s.rules.Epilog = values["rst_prolog"], values["rst_epilog"]
	s.rules.Values = map[string]any{}
	for key := range slices.Chunk(lists["myst_substitutions"], 2) {
		if len(key) == 2 && !computed["myst_substitutions"] {
			s.rules.Values[key[0]] = key[1]
		}
	}
	s.rules.Roles = script.ExtLinks(string(raw))
	for _, key := range []string{"version", "release", "project"} {
		if values[key] != "" {
			s.rules.Values[key] = values[key]
		}
	}
}

func (d *decider) sphinx(e *Entry) Decision {
	rel, ok := d.inside(e.Path)
	if !ok {
		return d.outside(d.Config())
	}
	if e.OpenAPI || !slices.Contains(d.suffixes, strings.ToLower(path.Ext(rel))) {
		if p := d.importer(e); p != "" {
			return Decision{Included, "is included", d.file(p)}
		}
		return d.formats(e)
	}
	for name := rel; name != "."; name = path.Dir(name) {
		for _, g := range d.globs {
			if g.Match(name) || strings.TrimSuffix(g.Text, "/") == name {
				state := LeftOut
				if d.importer(e) != "" {
					state = Included
				}
				return Decision{state, "exclude_patterns: " + g.Text, d.Config()}
			}
		}
	}
	return Decision{Published, "lies in the source folder", d.Config()}
}

// openAntora reads the descriptors of components: which folders they are in, under what names, and their attributes.
func (s *Site) openAntora(files []string, read func(string) ([]byte, error)) {
	s.content = s.docsDir
	s.rules.Values = map[string]any{}
	var playbook struct {
		Site struct{ URL string }
		URLs struct {
			Style    string `yaml:"html_extension_style"`
			Latest   string `yaml:"latest_version_segment"`
			Strategy string `yaml:"latest_version_segment_strategy"`
		}
		Asciidoc struct{ Attributes map[string]any }
	}
	for _, file := range files {
		if base := path.Base(file); strings.HasSuffix(base, "playbook.yml") {
			if raw, err := read(file); err == nil && formats.YAML(raw, &playbook) == nil {
				s.setOrigin(file, "site.url", playbook.Site.URL)
			}
		}
	}
	s.style = playbook.URLs.Style
	latest := map[string]string{} // the newest version of each component that is no prerelease
	for _, file := range files {
		if path.Base(file) != "antora.yml" {
			continue
		}
		var doc struct {
			Name     string `yaml:"name"`
			Version  any    `yaml:"version"`
			Before   any    `yaml:"prerelease"`
			Asciidoc struct {
				Attributes map[string]any `yaml:"attributes"`
			} `yaml:"asciidoc"`
		}
		raw, err := read(file)
		if err == nil {
			err = formats.YAML(raw, &doc)
		}
		if err != nil {
			s.unreadable(file, err)
			continue
		}
		version := markup.FrontText(map[string]any{"v": doc.Version}, "v")
		if version == "~" || version == "master" {
			version = ""
		}
		name := doc.Name
		if name == "ROOT" {
			name = ""
		}
		folder := path.Join(s.docsDir, path.Dir(file))
		s.components = append(s.components, tree{folder: folder, language: name, mounted: version})
		if old, known := latest[name]; (!known || compareVersions(version, old) > 0) && (doc.Before == nil || doc.Before == false) {
			latest[name] = version
		}
		attributes := maps.Clone(playbook.Asciidoc.Attributes)
		if attributes == nil {
			attributes = map[string]any{}
		}
		maps.Copy(attributes, map[string]any{"page-component-name": doc.Name, "page-component-version": version, "page-version": version})
		maps.Copy(attributes, doc.Asciidoc.Attributes)
		s.rules.Values[folder] = attributes
	}
	for i, c := range s.components {
		segment := c.mounted
		if to := playbook.URLs; to.Latest != "" && to.Strategy != "redirect:from" && segment != "" && segment == latest[c.language] {
			segment = to.Latest
		}
		s.components[i].mounted = path.Join(c.language, segment)
	}
}

// antoraFile is a file's place in a component: its address's beginning, its module, the family that it belongs to, and
// its path there.
func (s *Site) antoraFile(p string) (prefix, module, family, rel string, ok bool) {
	full := path.Join(s.docsDir, p)
	best := -1
	for _, c := range s.components {
		rest, in := strings.CutPrefix(full, path.Join(c.folder, "modules")+"/")
		if parts := strings.SplitN(rest, "/", 3); in && len(parts) == 3 && len(c.folder) > best {
			prefix, module, family, rel, ok, best = c.mounted, parts[0], parts[1], parts[2], true, len(c.folder)
		}
	}
	return prefix, module, family, rel, ok
}

func (s *Site) shownByAntora(r Page) string {
	prefix, module, _, rel, ok := s.antoraFile(r.Path)
	if !ok {
		return r.Path
	}
	if module == "ROOT" {
		module = ""
	}
	stem := strings.TrimSuffix(rel, path.Ext(rel))
	switch out := path.Join(prefix, module, stem); {
	case s.style == "":
		return out + ".html"
	case path.Base(stem) == "index":
		return asFolder(path.Dir("/" + out))
	case s.style == "indexify":
		return asFolder(out)
	default:
		return out
	}
}

func (d *decider) antora(e *Entry) Decision {
	_, _, family, rel, ok := d.antoraFile(e.Path)
	switch ext := strings.ToLower(path.Ext(e.Path)); {
	case !ok:
		return Decision{Included, "lies outside of the modules, where Antora has its pages", d.Config()}
	case family != "pages":
		return Decision{Included, "lies in " + family + ", which holds no pages", ""}
	case ext != ".adoc" && ext != ".asciidoc":
		return d.formats(e)
	}
	for part := range strings.SplitSeq(rel, "/") {
		if strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") {
			return Decision{Included, "Antora makes no pages of names that begin with " + part[:1], ""}
		}
	}
	return Decision{Published, "lies in the pages of a module", d.Config()}
}

// shownListed is the address of a page of the generators whose rule is one line.
func (s *Site) shownListed(r Page, rel string) string {
	n := nameOf(rel, "index", "README", "readme")
	switch s.Kind {
	case api.SiteMdBook:
		if strings.EqualFold(n.stem, "readme") {
			n.stem = "index"
		}
		out := n.beside(n.stem + ".html")
		if s.project.SiteURL == "" {
			out = path.Join(s.base, out)
		}
		return out
	case api.SiteFern, api.SiteGitBook:
		if at, ok := s.listed[r.Path]; ok && at.address != "" {
			if r.Slug != "" && s.Kind == api.SiteFern {
				return strings.Trim(r.Slug, "/")
			}
			return strings.Trim(at.address, "/")
		}
	case api.SiteWiki:
		return path.Base(n.stem)
	case api.SiteQuarto:
		return shownByQuarto(rel)
	case api.SiteSphinx:
		stem := strings.TrimSuffix(rel, path.Ext(rel))
		switch {
		case s.html:
			return stem + ".html"
		case path.Base(stem) == "index":
			return asFolder(path.Dir("/" + stem))
		}
		return asFolder(stem)
	}
	if n.index {
		return strings.Trim(path.Clean("/"+n.dir), "/")
	}
	return n.beside(n.stem)
}

// blog is the plug-in blog of Material for MkDocs.
type blog struct{ folder, posts, url, date string }

// post is the address of a post below the documentation folder.
func (b *blog) post(r Page) string {
	slug := cmp.Or(r.Slug, markup.Slug(r.Title))
	date := ""
	if r.Date != 0 {
		date = dateAs(r.Date, b.date)
	}
	at := strings.NewReplacer("{date}", date, "{slug}", slug, "{categories}", strings.Join(r.Categories, "/"),
		"{file}", strings.TrimSuffix(path.Base(r.Path), path.Ext(r.Path))).Replace(b.url)
	return asFolder(path.Join(b.folder, at))
}
