package site

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/internal/formats"
	"docent/internal/glob"
	"docent/site/script"
	"docent/site/sidebar"
)

type pluginKind string

const (
	docsPlugin  pluginKind = "docs"
	blogPlugin  pluginKind = "blog"
	pagesPlugin pluginKind = "pages"
)

var pluginKinds = []pluginKind{docsPlugin, blogPlugin, pagesPlugin}

// A plugin of Docusaurus makes pages of one folder's files.
type plugin struct {
	kind             pluginKind
	id               string
	root             string // of the site
	folder           string // relative to the repository's root
	route            string
	include, exclude []glob.Glob
	current          bool              // the version that is being written is shown
	versions         []string          // that are shown; nil for all
	versioned        bool              // versions says what there is
	paths            map[string]string // of versions, in the address; if it is not said, the rule of versionPath
	// the version that is shown without a path of its own; empty if there is one version
	last  string
	whole bool // its folder is not known: it is the whole content
	exact bool // numbers of files and folders are in addresses
	// file of its sidebars, relative to the repository's root; empty if it is not known
	sidebar string
}

var (
	underscored = glob.Globs("**/_*.{js,jsx,ts,tsx,md,mdx}", "**/_*/**", "**/*.test.{js,jsx,ts,tsx}", "**/__tests__/**")
	markdown    = glob.Globs("**/*.{md,mdx}")
)

// A docusaurusConfig is the configuration of a Docusaurus site while it is read.
type docusaurusConfig struct {
	*Site
	root  string // folder of the site, relative to the repository's root
	doc   map[string]any
	files []string
	read  func(string) ([]byte, error)
	// what of its presets and plugins is not known
	strange string
}

func (s *Site) openDocusaurus(files []string, read func(string) ([]byte, error)) {
	c := docusaurusConfig{Site: s, root: s.docsDir, files: files, read: read}
	known := strings.HasPrefix(path.Base(s.config), "docusaurus.config.")
	if known {
		c.root = s.folder()
		s.content = c.root
		c.readDoc()
	}
	s.spreads(s.config, c.doc, "presets")
	if classic := c.readPresets(); c.readPlugins() == 0 && !classic { // nothing is known of them
		if c.strange != "" {
			s.unknown(s.config, "%s, and no other one shows pages", c.strange)
		}
		for _, kind := range pluginKinds {
			c.add(kind, nil)
		}
	}
	if !known {
		s.plugins = append(s.plugins, plugin{kind: docsPlugin, id: "default", root: c.root, folder: c.root,
			include: markdown, exclude: underscored, current: true, whole: true,
			sidebar: s.sidebarOf(plugin{id: "default", root: c.root}, nil, files)})
	}
	// The deepest folder counts.
	slices.SortStableFunc(s.plugins, func(a, b plugin) int { return len(b.folder) - len(a.folder) })
	s.anchors.KeepCase = object(object(c.doc["markdown"])["anchors"])["maintainCase"] == true
	c.slash = c.doc["trailingSlash"] == true
	c.readAddress()
}

// readDoc reads the file that configures the site.
func (c *docusaurusConfig) readDoc() {
	raw, err := c.read(c.config)
	if err != nil {
		c.unreadable(c.config, err)
		return
	}
	c.doc = script.Settings(c.config, string(raw), c.read, "presets", "plugins", "themeConfig", "url", "baseUrl", "title",
		"i18n", "themes", "favicon", "organizationName", "markdown", "trailingSlash")
	if c.doc == nil && len(bytes.TrimSpace(raw)) > 0 {
		c.unknown(c.config, "its settings are computed")
	}
}

// readPresets reads the plugins of the preset classic, and tells whether there is one.
func (c *docusaurusConfig) readPresets() (classic bool) {
	presets, whole := atMost(c.doc["presets"]).([]any)
	if !whole && c.doc["presets"] != nil {
		c.unknown(c.config, "presets are computed")
	}
	for _, v := range presets {
		entry, ok := v.([]any)
		if !ok && v != nil {
			entry = []any{v}
		}
		if len(entry) == 0 {
			continue
		}
		name, named := entry[0].(string)
		var options map[string]any
		if len(entry) > 1 {
			if options, ok = c.options(entry[1]); !ok {
				c.unknown(c.config, "options of a preset are computed")
			}
		}
		if named && name != "classic" && !strings.Contains(name, "preset-classic") && options["docs"] == nil &&
			options["blog"] == nil && options["pages"] == nil {
			c.strange = "it is not known what the preset " + name + " shows"
			continue
		}
		if !named && options["docs"] == nil && options["blog"] == nil && options["pages"] == nil {
			c.strange = "a preset is computed"
			continue
		}
		classic = true
		c.spreads(c.config, options, string(docsPlugin), string(blogPlugin), string(pagesPlugin))
		for _, kind := range pluginKinds {
			c.add(kind, options[string(kind)])
		}
	}
	return classic
}

// options are an object of options, of which there is one at most; ok is false if they are computed.
func (c *docusaurusConfig) options(v any) (of map[string]any, ok bool) {
	switch v := v.(type) {
	case nil, bool:
		return nil, true
	case map[string]any:
		return v, true
	case script.Either: // on or off
		for _, x := range v {
			is, known := c.options(x)
			if !known || is != nil && of != nil {
				return nil, false
			}
			if is != nil {
				of = is
			}
		}
		return of, true
	}
	return nil, false
}

// readPlugins reads the plugins that stand outside of presets. It returns how many plugins are known then.
func (c *docusaurusConfig) readPlugins() int {
	plugins, whole := atMost(c.doc["plugins"]).([]any)
	if !whole && c.doc["plugins"] != nil || !script.Known(c.doc, "plugins") {
		c.strange = "plugins are computed"
	}
	for _, v := range plugins {
		entry, ok := v.([]any)
		if !ok {
			entry = []any{v}
		}
		if len(entry) == 0 {
			continue
		}
		name, ok := entry[0].(string)
		if !ok {
			c.strange = "a plugin is computed"
			c.warn(c.config, "a plugin is computed: its pages are not known")
			continue
		}
		var options any
		if len(entry) > 1 {
			options = entry[1]
		}
		for _, kind := range pluginKinds {
			if strings.HasSuffix(name, "content-"+string(kind)) {
				c.add(kind, options)
			}
		}
	}
	return len(c.plugins)
}

// add adds a plugin with its options; false for one that is off.
func (c *docusaurusConfig) add(kind pluginKind, v any) {
	if v == false {
		return
	}
	options, ok := c.options(v)
	if !ok {
		c.unknown(c.config, "options of the plugin %s are computed", kind)
	}
	c.spreads(c.config, options, "path", "include", "exclude", "includeCurrentVersion", "onlyIncludeVersions")
	p := plugin{kind: kind, id: "default", root: c.root, current: true, exclude: underscored, include: markdown}
	switch kind {
	case docsPlugin, blogPlugin:
		p.folder, p.route = string(kind), string(kind)
	case pagesPlugin:
		p.folder = "src/pages"
	}
	for _, o := range []struct {
		key string
		to  *string
	}{{"path", &p.folder}, {"routeBasePath", &p.route}, {"id", &p.id}} {
		switch v := options[o.key].(type) {
		case nil:
		case string:
			*o.to = v
		default:
			if o.key == "path" {
				c.unknown(c.config, "path of the plugin %s is computed", kind)
			} else {
				c.warn(c.config, "%s of the plugin %s is computed", o.key, kind)
			}
		}
	}
	p.folder, p.route = path.Join(c.root, p.folder), strings.Trim(p.route, "/")
	if v, ok := options["include"]; ok && kind != pagesPlugin {
		p.include = c.globList(c.config, "include", v)
		if _, whole := strs(v); !whole {
			p.include = append(slices.Clone(p.include), markdown...)
		}
	}
	if v, ok := options["exclude"]; ok {
		p.exclude = c.globList(c.config, "exclude", atMost(v))
		if _, whole := strs(v); !whole {
			p.exclude = append(slices.Clone(p.exclude), underscored...) // as a rule a computed list adds to the usual one
		}
	}
	if kind == docsPlugin {
		p.exact = options["numberPrefixParser"] == false
		p.sidebar = c.sidebarOf(p, options["sidebarPath"], c.files)
	}
	c.readVersions(&p, options)
	c.plugins = append(c.plugins, p)
}

// readVersions reads which versions a plugin shows, and where.
func (c *docusaurusConfig) readVersions(p *plugin, options map[string]any) {
	p.current = options["includeCurrentVersion"] != false
	if _, known := options["includeCurrentVersion"].(bool); !known && options["includeCurrentVersion"] != nil {
		c.unknown(c.config, "includeCurrentVersion is computed")
	}
	if v, ok := options["onlyIncludeVersions"]; ok {
		if list, whole := strs(v); whole {
			p.versions, p.versioned = list, true
			p.current = p.current && slices.Contains(list, "current")
		} else {
			c.unknown(c.config, "onlyIncludeVersions is computed")
		}
	}
	if name := path.Join(path.Dir(c.config), versionsFile(p.id)); p.kind == docsPlugin && !p.versioned &&
		slices.Contains(c.files, name) {
		var list []string
		raw, err := c.read(name)
		if err == nil {
			err = formats.JSON(raw, &list)
		}
		if err != nil {
			c.unreadable(name, err)
		} else {
			p.versions, p.versioned = list, true
		}
	}
	if i := slices.IndexFunc(p.versions, func(v string) bool { return v != "current" }); i >= 0 {
		p.last = p.versions[i]
	}
	if last, ok := options["lastVersion"].(string); ok {
		p.last = last
	}
	p.paths = map[string]string{}
	for v, o := range object(options["versions"]) {
		if to, ok := object(o)["path"].(string); ok {
			p.paths[v] = to
		}
	}
}

func (c *docusaurusConfig) readAddress() {
	base, plain := c.doc["baseUrl"].(string)
	if plain {
		c.base = strings.Trim(base, "/")
	}
	computed := c.doc["baseUrl"] != nil && !plain
	switch address, ok := c.doc["url"].(string); {
	case ok && computed:
		c.warn(c.config, "baseUrl is computed; set --site-url")
	case ok:
		c.setOrigin(c.config, "url and baseUrl", strings.TrimRight(address, "/")+path.Clean("/"+base))
	case c.doc["url"] != nil:
		c.warn(c.config, "url is computed; set --site-url")
	}
}

// sidebarOf is the file of a plugin's sidebars; empty if it is computed.
func (s *Site) sidebarOf(p plugin, option any, files []string) string {
	if name, ok := option.(string); ok {
		return path.Join(p.root, name)
	}
	if p.id == "default" && option == nil {
		for _, f := range files {
			if full := path.Join(s.docsDir, f); path.Dir(full) == path.Clean("./"+p.root) &&
				strings.HasPrefix(path.Base(f), "sidebars.") {
				return full
			}
		}
	}
	return ""
}

func versionsFile(id string) string {
	if id == "default" {
		return "versions.json"
	}
	return id + "_versions.json"
}

// versionPath is what the addresses of a version's pages begin with, behind the route.
func (p *plugin) versionPath(version string) string {
	if to, ok := p.paths[version]; ok {
		return to
	}
	switch {
	case version == p.last, version == "current" && p.last == "":
		return ""
	case version == "current":
		return "next"
	}
	return version
}

// A location is a file's place in the content of a Docusaurus site.
type location struct {
	plugin  plugin
	rel     string // relative to the plugin's folder, or to that of a version or translation of it
	prefix  string // of the address
	version string // "current" if it is the version that is being written
	found   bool
}

// locate finds the plugin that makes a page of a file.
func (s *Site) locate(p string) location {
	full := path.Join(s.docsDir, p)
	below := func(folder string) (string, bool) {
		if folder == "" || folder == "." {
			return full, true
		}
		return strings.CutPrefix(full, folder+"/")
	}
	for _, pl := range s.plugins {
		at := location{plugin: pl, version: "current", found: true}
		name := func(suffix string) string { // as the folder of a plugin that is not the first of its kind
			if pl.id == "default" {
				return suffix
			}
			if suffix == "versioned_docs" {
				return pl.id + "_" + suffix
			}
			return suffix + "-" + pl.id
		}
		if rest, ok := below(path.Join(pl.root, name("versioned_docs"))); ok && pl.kind == docsPlugin &&
			strings.HasPrefix(rest, "version-") {
			if version, rel, ok := strings.Cut(strings.TrimPrefix(rest, "version-"), "/"); ok {
				at.rel, at.version, at.prefix = rel, version, path.Join(pl.route, pl.versionPath(version))
				return at
			}
		}
		if rest, ok := below(path.Join(pl.root, "i18n")); ok {
			locale, rest, _ := strings.Cut(rest, "/")
			if rest, ok := strings.CutPrefix(rest, name("docusaurus-plugin-content-"+string(pl.kind))+"/"); ok {
				if locale == s.layout.byDefault {
					locale = ""
				}
				at.rel, at.prefix = rest, path.Join(locale, pl.route)
				if version, rel, ok := strings.Cut(rest, "/"); ok && pl.kind == docsPlugin {
					at.rel, at.version = rel, strings.TrimPrefix(version, "version-")
					at.prefix = path.Join(at.prefix, pl.versionPath(at.version))
				}
				return at
			}
		}
		if rest, ok := below(pl.folder); ok {
			if at.rel = rest; s.docsDir == pl.folder || strings.HasPrefix(s.docsDir, pl.folder+"/") {
				at.rel = p // the documentation folder's address says the rest
			} else {
				at.prefix = path.Join(pl.route, pl.versionPath("current"))
			}
			return at
		}
	}
	return location{rel: s.relative(p), version: "current"}
}

var dated = regexp.MustCompile(`^(.*)(\d{4}[-/]\d{1,2}[-/]\d{1,2})[-/]?(.*?)$`)

// post is the address of a post in the blog.
func (at *location) post(r Page) string {
	stem := strings.TrimSuffix(at.rel, path.Ext(at.rel))
	if base := path.Base(stem); base == "index" {
		stem = path.Dir(stem)
	}
	if r.Slug != "" {
		return strings.Trim(path.Join(at.prefix, r.Slug), "/")
	}
	if m := dated.FindStringSubmatch(stem); m != nil {
		stem = strings.ReplaceAll(m[2], "-", "/") + "/" + m[1] + m[3]
	}
	return strings.Trim(path.Join(at.prefix, stem), "/")
}

func (d *decider) docusaurus(e *Entry) Decision {
	at := d.locate(e.Path)
	if !at.found {
		return Decision{Included, "lies outside of the folders of Docusaurus's plugins", d.Config()}
	}
	pl := at.plugin
	if ext := strings.ToLower(path.Ext(e.Path)); ext != ".md" && ext != ".mdx" && !glob.Any(pl.include, at.rel) {
		return d.formats(e)
	}
	rel := at.rel
	if s := d.docsDir; s != pl.folder && strings.HasPrefix(s, pl.folder+"/") && at.version == "current" &&
		at.prefix == "" {
		rel = path.Join(strings.TrimPrefix(s, pl.folder+"/"), rel) // globs are relative to the plugin's folder
	}
	if !glob.Any(pl.include, rel) {
		return Decision{Included, fmt.Sprintf("no pattern of include of the plugin %s matches", pl.kind), d.Config()}
	}
	for _, g := range pl.exclude {
		if g.Match(rel) {
			return Decision{Included, fmt.Sprintf("exclude of the plugin %s: %s", pl.kind, g.Text), d.Config()}
		}
	}
	if pl.kind == docsPlugin {
		if at.version == "current" && !pl.current {
			return Decision{LeftOut, "the version that is being written is not shown", d.Config()}
		}
		if at.version != "current" && pl.versioned && !slices.Contains(pl.versions, at.version) {
			return Decision{LeftOut, "the version " + at.version + " is not shown", d.Config()}
		}
	}
	return Decision{Published, fmt.Sprintf("lies in the folder of the plugin %s", pl.kind), d.Config()}
}

var docsOptions = regexp.MustCompile(`plugin-content-docs['"]\s*,\s*(?:/\*[^*]*\*/\s*)?\(?\s*\{`)

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
	for _, at := range docsOptions.FindAllStringIndex(src, maxObjects) {
		v, _ := script.Literal(src[at[1]-1:])
		if m, ok := v.(map[string]any); ok {
			read(m)
		}
	}
	return out
}

var (
	versionedDocs = regexp.MustCompile(`^(?:([^/]+)_)?versioned_docs/version-([^/]+)/(.+)$`)
	localizedDocs = regexp.MustCompile(
		`^i18n/([^/]+)/docusaurus-plugin-content-docs(?:-([^/]+))?/(current|version-[^/]+)/(.+)$`)
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

// findInstances completes the documentations of a Docusaurus site by the files that Docusaurus makes for each version,
// and settles which version readers see first.
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

func (s *Site) shownByDocusaurus(r Page, n fileName) string {
	at := s.locate(r.Path)
	n.dir = path.Dir(at.rel)
	switch at.plugin.kind {
	case blogPlugin:
		return at.post(r)
	case pagesPlugin:
		if n.index {
			n.stem = ""
		}
		return strings.Trim(path.Join("/", at.prefix, n.dir, n.stem), "/")
	}
	n.dir = strings.Trim(path.Clean("/"+n.dir), "/")
	name := n.stem
	if !at.plugin.exact {
		n.dir, name = WithoutNumbers(n.dir), sidebar.WithoutNumber(name)
	}
	own := n.beside(cmp.Or(r.ID, name))
	if r.Slug != "" {
		own = n.beside(r.Slug)
	} else if strings.EqualFold(name, "index") || strings.EqualFold(name, "readme") ||
		strings.EqualFold(name, path.Base(n.dir)) {
		own = n.dir // whatever its id is
	}
	return strings.Trim(path.Join(at.prefix, own), "/")
}
