package site

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"docent/api"
	"docent/internal/formats"
	"docent/internal/glob"
	"docent/site/anchor"
	"docent/site/expand"
	"docent/site/markup"
)

// maxInherited is how many files a configuration consists of.
const maxInherited = 10

// computedNode tells a value that a tag of MkDocs or Python makes.
func computedNode(n yaml.Node) bool {
	return strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!")
}

// readMkDocs reads a configuration with those that it inherits from. from tells which file sets what, and base is the
// file that it inherits from itself.
func (s *Site) readMkDocs(file string,
	read func(string) ([]byte, error)) (doc map[string]yaml.Node, from map[string]string, base string) {
	from = map[string]string{}
	for n := range maxInherited {
		raw, err := read(file)
		var part map[string]yaml.Node // values may hold tags of Python
		if raw, err = settingsOf(file, raw, err); err == nil {
			err = formats.YAML(raw, &part)
		}
		if err != nil {
			s.unreadable(file, err)
			break
		}
		if doc == nil {
			doc = map[string]yaml.Node{}
		}
		for k, v := range part {
			if above, own := doc[k]; own && k == "plugins" && above.Kind == yaml.MappingNode && v.Kind == above.Kind {
				above.Content = slices.Concat(above.Content, v.Content)
				doc[k] = above
			} else if !own && k != "INHERIT" {
				doc[k], from[k] = v, file
			}
		}
		above := part["INHERIT"]
		if above.Value == "" && above.Kind == 0 {
			break
		}
		if n == maxInherited-1 || above.Kind != yaml.ScalarNode || computedNode(above) {
			s.unknown(file, "INHERIT is computed, or leads too far")
			break
		}
		file = path.Join(path.Dir(file), above.Value)
		base = cmp.Or(base, file)
	}
	return doc, from, base
}

// openLanguages finds the languages of a site that has a configuration for each, in a folder of the language's name.
// Their pages are shown below that name.
func (s *Site) openLanguages(files []string, read func(string) ([]byte, error)) {
	for _, file := range files {
		tag := path.Base(path.Dir(file))
		if file == s.config || Configures(file) != api.SiteMkDocs ||
			path.Dir(path.Dir(file)) != path.Dir(path.Dir(s.config)) || !IsLanguage(tag) {
			continue
		}
		doc, _, _ := s.readMkDocs(file, read)
		s.trees = append(s.trees, tree{folder: path.Join(s.docsDir, path.Dir(file), cmp.Or(doc["docs_dir"].Value, "docs")),
			language: tag})
	}
}

func (s *Site) openMkDocs(files []string, read func(string) ([]byte, error)) {
	if s.config == "" {
		return
	}
	doc, from, base := s.readMkDocs(s.config, read)
	// one language of a site: the other's rules are for all
	if Configures(base) == api.SiteMkDocs && slices.Contains(files, base) {
		s.config = base
		doc, from, _ = s.readMkDocs(s.config, read)
	}
	s.content = path.Join(s.folder(), "docs")
	s.openLanguages(files, read)
	if doc == nil {
		return
	}
	text := func(key string) string {
		n, ok := doc[key]
		if !ok || n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
			return ""
		}
		if n.Kind == yaml.AliasNode && n.Alias != nil {
			n = *n.Alias
		}
		if of, ok := environment(n); ok && of != "" && (key == "site_url" || key == "docs_dir") {
			return of
		}
		if n.Kind != yaml.ScalarNode || computedNode(n) {
			if key == "site_url" {
				s.warn(s.config, "site_url is computed; set --site-url")
			} else {
				s.unknown(s.config, "%s is computed", key)
			}
			return ""
		}
		return n.Value
	}
	if dir := text("docs_dir"); dir != "" {
		s.content = path.Join(s.folder(), dir)
	}
	if v, ok := plainValue(doc["use_directory_urls"]).(string); ok {
		s.html = strings.EqualFold(v, "false")
	}
	s.ignoring = from["exclude_docs"]
	s.ignored = s.ignores(s.ignoring, strings.Split(text("exclude_docs"), "\n"))
	s.drafting = from["draft_docs"]
	s.drafts = s.ignores(s.drafting, strings.Split(text("draft_docs"), "\n"))
	s.setOrigin(from["site_url"], "site_url", text("site_url"))
	anchor.Each(doc["theme"], func(key string, v yaml.Node) {
		if key == "custom_dir" && v.Kind == yaml.ScalarNode {
			s.templates = path.Join(s.folder(), v.Value)
		}
	})
	s.anchors.Toc = anchor.ReadToc(doc["markdown_extensions"])
	s.readSnippets(doc["markdown_extensions"])
	s.readMkDocsPlugins(doc["plugins"], from["plugins"])
	s.readMkDocsText(doc, files, read)
}

// environment is the default of a value that MkDocs takes from the environment.
func environment(n yaml.Node) (string, bool) {
	if n.Tag != "!ENV" || n.Kind != yaml.SequenceNode || len(n.Content) < 2 {
		return "", n.Tag == "!ENV"
	}
	last := *n.Content[len(n.Content)-1]
	if last.Tag == "!ENV" {
		return environment(last)
	}
	return last.Value, last.Kind == yaml.ScalarNode
}

// settingsOf are the settings of a file: Zensical has those of MkDocs in TOML.
func settingsOf(file string, raw []byte, err error) ([]byte, error) {
	if err != nil || path.Ext(file) != ".toml" {
		return raw, err
	}
	var doc map[string]any
	if err := formats.TOML(raw, &doc); err != nil {
		return nil, err
	}
	project := object(doc["project"])
	for name, of := range object(project["markdown_extensions"]) { // what MkDocs calls pymdownx.snippets is two tables
		for below, options := range object(of) {
			if object(options) != nil {
				object(project["markdown_extensions"])[name+"."+below] = options
			}
		}
	}
	return yaml.Marshal(project)
}

// plainValue is a node as values are: what a tag makes is its default, or nothing.
func plainValue(n yaml.Node) any {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		n = *n.Alias
	}
	if of, ok := environment(n); ok {
		return of
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		anchor.Each(n, func(key string, v yaml.Node) {
			if n.Kind != yaml.AliasNode {
				out[key] = plainValue(v)
			}
		})
		return out
	case yaml.ScalarNode:
		if !computedNode(n) {
			return n.Value
		}
	}
	return nil
}

// readMkDocsText reads what the text of pages takes in, and where more of it lies.
func (s *Site) readMkDocsText(doc map[string]yaml.Node, files []string, read func(string) ([]byte, error)) {
	s.rules.Bases = s.snippets
	if s.macros {
		values, _ := plainValue(doc["extra"]).(map[string]any)
		if values == nil {
			values = map[string]any{}
		}
		values["config"] = map[string]any{"site_name": doc["site_name"].Value, "site_url": doc["site_url"].Value, "repo_url": doc["repo_url"].Value}
		s.rules.Values = values
	}
	anchor.Each(doc["plugins"], func(name string, options yaml.Node) {
		switch name = path.Base(name); name {
		case "blog":
			s.readBlog(options)
		case "meta":
			s.readMetas(files, read)
		case "monorepo":
			s.readMonorepo(doc["nav"], files, read)
		}
	})
}

func (s *Site) readBlog(options yaml.Node) {
	b := &blog{folder: "blog", posts: "{blog}/posts", url: "{date}/{slug}", date: "yyyy/MM/dd"}
	anchor.Each(options, func(key string, v yaml.Node) {
		if to, ok := map[string]*string{"blog_dir": &b.folder, "post_dir": &b.posts, "post_url_format": &b.url,
			"post_url_date_format": &b.date}[key]; ok && v.Kind == yaml.ScalarNode {
			*to = v.Value
		}
	})
	b.folder = strings.Trim(path.Clean("/"+b.folder), "/")
	b.posts = strings.Trim(path.Clean("/"+strings.ReplaceAll(b.posts, "{blog}", b.folder)), "/")
	s.blog = b
}

var dateLetters = regexp.MustCompile(`[a-zA-Z]+`)

// dateAs writes a date by a pattern of letters.
func dateAs(at int64, pattern string) string {
	t := time.Unix(at, 0).UTC()
	return dateLetters.ReplaceAllStringFunc(pattern, func(p string) string {
		if layout := map[string]string{"yyyy": "2006", "y": "2006", "yy": "06", "MM": "01", "M": "1", "dd": "02", "d": "2", "MMM": "Jan",
			"MMMM": "January"}[p]; layout != "" {
			return t.Format(layout)
		}
		return p
	})
}

// readMetas reads the front matter that folders give to all pages below them.
func (s *Site) readMetas(files []string, read func(string) ([]byte, error)) {
	s.metas = map[string]Front{}
	seen := map[string]bool{}
	for _, f := range files {
		for dir := path.Dir(f); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			var values map[string]any
			if raw, err := read(path.Join(dir, ".meta.yml")); err == nil && formats.YAML(raw, &values) == nil {
				s.metas[dir] = ReadFront(values)
			}
			if dir == "." || strings.HasSuffix(dir, "..") {
				break
			}
		}
	}
}

// readMonorepo finds the sites that the navigation includes: their pages are shown below their names.
func (s *Site) readMonorepo(nav yaml.Node, files []string, read func(string) ([]byte, error)) {
	for _, n := range nav.Content {
		s.readMonorepo(*n, files, read)
	}
	at := func(file string) string { return path.Join(path.Dir(s.config), strings.TrimSpace(file)) }
	if file, ok := strings.CutPrefix(nav.Value, "!include "); ok || nav.Tag == "!include" {
		s.mountSite(at(file), read)
	} else if pattern, ok := strings.CutPrefix(nav.Value, "*include "); ok {
		g, err := glob.Compile(at(pattern), true)
		for _, file := range files {
			if err == nil && g.Match(file) {
				s.mountSite(file, read)
			}
		}
	}
}

// A name of a site that the plug-in monorepo has in addresses as it is, and what it makes a hyphen of in others.
var monorepoName, notWords = regexp.MustCompile(`^[a-zA-Z0-9_./-]+$`), regexp.MustCompile(`[^\pL\pN]+`)

// mountSite adds the pages of another site of MkDocs.
func (s *Site) mountSite(file string, read func(string) ([]byte, error)) {
	var doc map[string]yaml.Node
	raw, err := read(file)
	if err == nil {
		err = formats.YAML(raw, &doc)
	}
	if err != nil {
		s.warn(s.config, "%s, which the plug-in monorepo includes, cannot be read: its pages are left out", file)
		return
	}
	name := doc["site_name"].Value
	if !monorepoName.MatchString(name) {
		name = markup.Slug(strings.TrimSpace(notWords.ReplaceAllString(name, " ")))
	}
	s.trees = append(s.trees, tree{folder: path.Join(s.docsDir, path.Dir(file), cmp.Or(doc["docs_dir"].Value, "docs")), mounted: name})
}

// readSnippets reads where MkDocs takes snippets from: from the configuration's folder if nothing is said.
func (s *Site) readSnippets(extensions yaml.Node) {
	var folders []string
	anchor.Each(extensions, func(name string, options yaml.Node) {
		if name != "pymdownx.snippets" && name != "markdown_include.include" {
			return
		}
		anchor.Each(options, func(key string, v yaml.Node) {
			switch {
			case key != "base_path":
			case v.Kind == yaml.ScalarNode && !computedNode(v):
				folders = append(folders, v.Value)
			default:
				anchor.Each(v, func(folder string, _ yaml.Node) { folders = append(folders, folder) })
			}
		})
	})
	for _, folder := range append(folders, ".") {
		folder = strings.NewReplacer("$config_dir", ".", "!relative", ".").Replace(folder)
		s.snippets = append(s.snippets, path.Join(s.folder(), folder))
	}
}

// readMkDocsPlugins reads what plug-ins leave out.
func (s *Site) readMkDocsPlugins(plugins yaml.Node, file string) {
	if plugins.Kind != 0 && plugins.Tag != "!!null" && (computedNode(plugins) || plugins.Kind == yaml.ScalarNode) {
		s.unknown(file, "plugins are computed")
	}
	anchor.Each(plugins, func(name string, options yaml.Node) {
		switch name {
		case "macros":
			s.macros = true
			anchor.Each(options, func(key string, v yaml.Node) {
				if key == "include_dir" && v.Kind == yaml.ScalarNode {
					s.snippets = append(s.snippets, path.Join(s.folder(), v.Value))
				}
			})
		case "autorefs", "mkdocstrings":
			s.rules.Autorefs = true
		case "exclude":
			s.readMkDocsExclude(options, file)
		case "file-filter", "exclude-unused-files":
			s.unknown(file, "what the plug-in %s leaves out is not read", name)
		case "exclude-search":
			s.warn(file, "what the plug-in %s keeps out of searches is not read; set --exclude", name)
		}
	})
}

// readMkDocsExclude reads the patterns of the plug-in mkdocs-exclude: globs as Python's fnmatch has them, and regular
// expressions that a path begins with.
func (s *Site) readMkDocsExclude(options yaml.Node, file string) {
	if computedNode(options) {
		s.unknown(file, "the plug-in exclude is computed")
	}
	anchor.Each(options, func(key string, v yaml.Node) {
		if key != "glob" && key != "regex" {
			return
		}
		var list []string
		var err error
		if v.Kind == yaml.AliasNode && v.Alias != nil {
			v = *v.Alias
		}
		computed := computedNode(v) || slices.ContainsFunc(v.Content, func(n *yaml.Node) bool { return computedNode(*n) })
		if v.Kind == yaml.ScalarNode {
			list = []string{v.Value}
		} else {
			err = v.Decode(&list)
		}
		if err != nil || computed {
			s.unknown(file, "%s of the plug-in exclude is computed", key)
			return
		}
		for _, text := range list {
			expression := "^(?:" + text + ")"
			if key == "glob" {
				expression = glob.Expression(text, true)
			}
			re, err := regexp.Compile(expression)
			if err != nil {
				s.unknown(file, "the pattern %q of the plug-in exclude is not understood", text)
				continue
			}
			s.excluded = append(s.excluded, excluded{text, re})
		}
	})
	s.excluding = file
}

// An excluded is a pattern of what is left out, and the expression that it is.
type excluded struct {
	text string
	re   *regexp.Regexp
}

func mkDocsPage(p string) bool {
	return slices.Contains([]string{".md", ".markdown", ".mdown", ".mkdn", ".mkd"}, strings.ToLower(path.Ext(p)))
}

var mkDocsTemplates = glob.NewList("/templates/")

func (d *decider) mkDocs(e *Entry) Decision {
	rel, ok := d.inside(e.Path)
	if _, below, in := d.treeOf(e.Path); in {
		rel, ok = below, true
	}
	if !ok {
		return d.outside(d.Config())
	}
	if by := d.ignored.Last(rel); by != nil {
		if !by.Keep {
			return Decision{LeftOut, "exclude_docs: " + by.Text, d.file(d.ignoring)}
		}
	} else if mkDocsTemplates.Last(rel) != nil {
		return Decision{LeftOut, "MkDocs leaves out /templates/", ""}
	}
	if d.templates != "" && strings.HasPrefix(d.file(e.Path), d.templates+"/") {
		return Decision{LeftOut, "custom_dir of the theme holds templates", d.Config()}
	}
	for _, by := range d.excluded {
		if by.re.MatchString(rel) {
			return Decision{LeftOut, "the plug-in exclude: " + by.text, d.file(d.excluding)}
		}
	}
	if by := d.drafts.Last(rel); by != nil && !by.Keep {
		return Decision{LeftOut, "draft_docs: " + by.Text, d.file(d.drafting)}
	}
	if ext := strings.ToLower(path.Ext(rel)); ext == ".mdx" || expand.Markup(rel) && ext != ".ipynb" {
		return d.formats(e) // a reader finds the source at most
	}
	if p := d.importer(e); p != "" && e.Place == nil {
		return Decision{Included, "is taken in", d.file(p)}
	}
	for dir := path.Dir(e.Path); len(d.metas) > 0; dir = path.Dir(dir) {
		switch of := d.metas[dir]; {
		case of.Draft != "":
			return Decision{LeftOut, of.Draft, d.file(path.Join(dir, ".meta.yml"))}
		case of.Hidden != "":
			return Decision{Unlisted, of.Hidden, d.file(path.Join(dir, ".meta.yml"))}
		}
		if dir == "." || strings.HasSuffix(dir, "..") {
			break
		}
	}
	return Decision{Published, "lies in the documentation folder", d.Config()}
}

// sameAddress leaves out a README of MkDocs beside an index.
func (d *decider) sameAddress(entries []Entry, out []Decision) {
	at := map[string]int{}
	for i, e := range entries {
		if out[i].State.IsPage() {
			at[e.Path] = i
		}
	}
	for i, e := range entries {
		base := path.Base(e.Path)
		if stem := strings.TrimSuffix(base, path.Ext(base)); stem != "README" || !out[i].State.IsPage() {
			continue
		}
		if j, ok := at[path.Join(path.Dir(e.Path), "index"+path.Ext(base))]; ok {
			out[i] = Decision{LeftOut, "has the address of " + path.Base(entries[j].Path), d.file(entries[j].Path)}
		}
	}
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

func (s *Site) shownByMkDocs(r Page, n fileName) string {
	translated := ""
	if t, below, ok := s.treeOf(r.Path); ok {
		translated = path.Join(t.language, t.mounted, below)
	} else if tag, rest := s.layout.languageOfPath(r.Path); len(s.layout.locales) > 0 && tag != "" { // the plug-in i18n
		if strings.EqualFold(tag, s.layout.byDefault) {
			tag = ""
		}
		translated = path.Join(tag, rest)
	}
	if translated != "" {
		n = nameOf(translated, "index", "README", "readme")
	}
	if s.blog != nil && strings.HasPrefix(n.rel, s.blog.posts+"/") {
		return s.blog.post(r)
	}
	switch {
	case strings.EqualFold(path.Ext(n.rel), ".ipynb"): // by a plug-in
	case !mkDocsPage(n.rel):
		return n.rel // is copied as it is
	case n.index:
		return asFolder(n.dir)
	case s.html:
		return n.beside(n.stem + ".html")
	}
	return asFolder(n.beside(n.stem))
}
