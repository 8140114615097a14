package site

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"docent/api"
	"docent/formats"
	"docent/markup"
	"docent/site/pattern"
	"docent/site/script"
)

// origin sets the address of the site as a file states it. Addresses that come with an example say nothing.
func (s *Site) setOrigin(file, key, address string) {
	address = strings.TrimSpace(address)
	if address == "" {
		return
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return
	}
	host := strings.ToLower(u.Hostname())
	for _, example := range []string{"example.com", "example.org", "example.net", "localhost"} {
		if host == example || strings.HasSuffix(host, "."+example) {
			s.warn(file, "%s is %s, which is only an example", key, address)
			return
		}
	}
	u.RawQuery, u.Fragment = "", ""
	s.origin, s.stated = strings.TrimRight(u.String(), "/"), key+" in "+path.Join(s.docsDir, file)
}

// Address is where readers find the documentation folder, without a slash at the end, and what says so. Both are empty
// where nobody does.
func (s *Site) Address() (address, from string) {
	if s.project.SiteURL != "" {
		return strings.TrimRight(s.project.SiteURL, "/"), "--site-url"
	}
	if s.origin == "" {
		return "", ""
	}
	below := s.below()
	if below == "" {
		return s.origin, s.stated
	}
	return s.origin + (&url.URL{Path: "/" + below}).EscapedPath(), s.stated
}

// below is the documentation folder's place on the site, of which it may be a part.
func (s *Site) below() string {
	below := ""
	switch s.Kind {
	case api.SiteDocusaurus:
		for _, p := range s.plugins {
			if s.docsDir == p.folder || strings.HasPrefix(s.docsDir, p.folder+"/") {
				below = path.Join(p.route, p.versionPath("current"), WithoutNumbers(strings.TrimPrefix(s.docsDir, p.folder)))
			}
		}
	case api.SiteHugo:
		if t, rel, ok := s.treeOf("x.md"); ok {
			if s.docsDir == t.folder || strings.HasPrefix(s.docsDir, t.folder+"/") {
				below = path.Join(t.language, t.mounted, strings.ToLower(path.Dir("/"+rel)))
			}
			break
		}
		fallthrough
	default:
		if s.content != "" && strings.HasPrefix(s.docsDir, s.content+"/") {
			below = strings.TrimPrefix(s.docsDir, s.content+"/")
		} else if s.content == "" {
			below = s.docsDir
		}
	}
	return strings.Trim(below, "/.")
}

// LinkBase is the path, without slashes at its ends, that the generator puts before a link that begins with a slash; ok is false
// where it leaves such links as they are, so that they lead to the root of the host.
func (s *Site) LinkBase() (base string, ok bool) {
	switch s.Kind {
	case api.SiteNext:
		return s.base, s.base != ""
	case api.SiteDocusaurus, api.SiteVitePress:
		if s.base != "" {
			return s.base, true
		}
		fallthrough
	case api.SiteMintlify:
		address := s.origin
		if address == "" {
			address = s.project.SiteURL
		}
		if u, err := url.Parse(address); err == nil {
			return strings.Trim(u.Path, "/"), true
		}
		return "", true
	}
	return "", false
}

// Templates are the kinds of templates that the generator replaces in pages. Of a site whose generator is not known they are all:
// what is not told is not shown.
func (s *Site) Templates() markup.Templates {
	switch s.Kind {
	case api.SiteHugo:
		return markup.Shortcodes
	case api.SiteMkDocs:
		if s.macros {
			return markup.Values | markup.Tags
		}
		return 0
	case api.SiteStarlight:
		return 0
	case api.SiteVitePress, api.SiteDocusaurus, api.SiteMintlify, api.SiteNext:
		return markup.Values
	}
	return markup.Shortcodes | markup.Values | markup.Tags
}

func (s *Site) openMintlify(files []string, read func(string) ([]byte, error)) {
	if s.config == "" {
		return
	}
	s.content = s.folder()
	if name := path.Join(path.Dir(s.config), ".mintignore"); slices.Contains(files, name) {
		if raw, err := read(name); err == nil {
			s.ignored, s.ignoring = s.ignores(name, strings.Split(string(raw), "\n")), name
		}
	}
	raw, err := read(s.config)
	var doc map[string]any
	missing := ""
	if err == nil {
		doc, missing, err = readDocs(s.config, raw, read)
	}
	if err != nil {
		s.unreadable(s.config, err)
		return
	}
	of := func(v any, keys ...string) any {
		for _, k := range keys {
			m, _ := v.(map[string]any)
			v = m[k]
		}
		return v
	}
	if s.unlisted = doc["navigation"] != nil; missing != "" {
		s.unlisted = false
		s.warn(s.config, "takes in %s, which cannot be read, so that pages outside of the navigation are not told apart", missing)
	}
	s.apis = map[string]string{}
	s.readAPIs(doc["navigation"])
	redirects, _ := doc["redirects"].([]any)
	for _, r := range redirects {
		if from, ok := of(r, "source").(string); ok {
			if re := routePattern(strings.Trim(from, "/")); re != nil {
				s.redirects = append(s.redirects, re)
			}
		}
	}
	s.allShown = of(doc, "seo", "indexing") == "all" || of(doc, "seo", "indexHiddenPages") == true
	for _, keys := range [][]string{{"seo", "metatags", "canonical"}, {"metadata", "canonical"}} {
		if address, ok := of(doc, keys...).(string); ok {
			s.setOrigin(s.config, strings.Join(keys, "."), address)
		}
	}
}

// readAPIs finds the descriptions of APIs that the navigation of Mintlify names: a page is made of each of their operations.
func (s *Site) readAPIs(v any) {
	add := func(file, folder string) {
		if file != "" && !strings.Contains(file, "://") {
			s.apis[path.Join(path.Dir(s.config), strings.TrimPrefix(file, "/"))] = strings.Trim(orElse(folder, "api-reference"), "/")
		}
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			s.readAPIs(x)
		}
	case map[string]any:
		for key, x := range v {
			if key != "openapi" {
				s.readAPIs(x)
				continue
			}
			files, _ := strs(x)
			if m, ok := x.(map[string]any); ok {
				folder, _ := m["directory"].(string)
				files, _ = strs(m["source"])
				for _, file := range files {
					add(file, folder)
				}
				continue
			}
			for _, file := range files {
				add(file, "")
			}
		}
	}
}

// APIs are the folders of the pages that the generator makes of the operations of APIs, by the paths of their descriptions.
func (s *Site) APIs() map[string]string { return s.apis }

var pathParameter = regexp.MustCompile(`\{.*?\}`)

// OperationAddress is where Mintlify shows an operation of an API in a folder, by the rule of @mintlify/common.
func OperationAddress(folder, tag, method, at, summary string) string {
	name := func(s string) string {
		s = pathParameter.ReplaceAllString(strings.ReplaceAll(s, " ", "-"), "-")
		s = strings.TrimSuffix(strings.TrimPrefix(s, "-"), "-")
		s = strings.NewReplacer("{", "", "}", "", "(", "", ")", "", ",", "", ".", "", "'", "", "\n", "", "/", "").Replace(s)
		return markup.Lower(strings.ReplaceAll(s, "--", "-"))
	}
	page := name(summary)
	if summary == "" {
		page = strings.ToLower(method) + "-" + name(at)
	}
	return path.Join(folder, name(tag), page)
}

// readMkDocs reads a configuration with those that it inherits from. from tells which file sets what, and base is the file that
// it inherits from itself.
func (s *Site) readMkDocs(file string, read func(string) ([]byte, error)) (doc map[string]yaml.Node, from map[string]string, base string) {
	from = map[string]string{}
	for n := 0; n < 10; n++ {
		raw, err := read(file)
		var part map[string]yaml.Node // values may hold tags of Python
		if err == nil {
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
			if _, own := doc[k]; !own && k != "INHERIT" {
				doc[k], from[k] = v, file
			}
		}
		above := part["INHERIT"]
		if above.Value == "" {
			break
		}
		file = path.Join(path.Dir(file), above.Value)
		if base == "" {
			base = file
		}
	}
	return doc, from, base
}

// openLanguages finds the languages of a site that has a configuration for each, in a folder of the language's name. Their pages
// are shown below that name.
func (s *Site) openLanguages(files []string, read func(string) ([]byte, error)) {
	for _, file := range files {
		tag := path.Base(path.Dir(file))
		if file == s.config || Configures(file) != api.SiteMkDocs || path.Dir(path.Dir(file)) != path.Dir(path.Dir(s.config)) || !IsLanguage(tag) {
			continue
		}
		doc, _, _ := s.readMkDocs(file, read)
		s.trees = append(s.trees, tree{folder: path.Join(s.docsDir, path.Dir(file), orElse(doc["docs_dir"].Value, "docs")), language: tag})
	}
}

func (s *Site) openMkDocs(files []string, read func(string) ([]byte, error)) {
	if s.config == "" {
		return
	}
	doc, from, base := s.readMkDocs(s.config, read)
	if Configures(base) == api.SiteMkDocs && slices.Contains(files, base) { // one language of a site: the other's rules are for all
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
		if n.Kind != yaml.ScalarNode || strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
			s.warn(s.config, "%s is computed; set %s", key, map[string]string{"site_url": "--site-url"}[key]+map[bool]string{true: "--exclude"}[key != "site_url"])
			return ""
		}
		return n.Value
	}
	if dir := text("docs_dir"); dir != "" {
		s.content = path.Join(s.folder(), dir)
	}
	if n := doc["use_directory_urls"]; strings.EqualFold(n.Value, "false") {
		s.html = true
	}
	s.ignored, s.ignoring = s.ignores(from["exclude_docs"], strings.Split(text("exclude_docs"), "\n")), from["exclude_docs"]
	s.drafts, s.drafting = s.ignores(from["draft_docs"], strings.Split(text("draft_docs"), "\n")), from["draft_docs"]
	s.setOrigin(from["site_url"], "site_url", text("site_url"))
	s.toc = readToc(doc["markdown_extensions"])
	var plugins []any
	if n, ok := doc["plugins"]; ok && n.Decode(&plugins) == nil {
		for _, p := range plugins {
			m, _ := p.(map[string]any)
			if _, ok := m["macros"]; ok || p == "macros" {
				s.macros = true
			}
			if _, ok := m["exclude"]; ok || p == "exclude" {
				s.warn(s.config, "the plugin exclude is not read; set --exclude")
			}
		}
	}
}

// A rewrite shows a page of VitePress at the place of another one.
type rewrite struct {
	from *regexp.Regexp
	to   string
}

var parameter = regexp.MustCompile(`:(\w+)([*+?]?)`)

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

// routePattern compiles a path with parameters, as in "packages/:name/src/:rest*"; nil where it holds more than these.
func routePattern(from string) *regexp.Regexp {
	if strings.ContainsAny(from, "(){}") {
		return nil
	}
	pattern, at := "", 0
	for _, m := range parameter.FindAllStringSubmatchIndex(from, -1) {
		part := `[^/]+?`
		switch from[m[4]:m[5]] {
		case "*":
			part = `.*`
		case "+":
			part = `.+`
		}
		pattern += regexp.QuoteMeta(from[at:m[0]]) + "(?P<" + from[m[2]:m[3]] + ">" + part + ")"
		at = m[1]
	}
	re, err := regexp.Compile("^" + pattern + strings.ReplaceAll(regexp.QuoteMeta(from[at:]), `\*`, `.*`) + "$")
	if err != nil {
		return nil
	}
	return re
}

// Redirects tells whether the site sends readers of an address elsewhere.
func (s *Site) Redirects(address string) bool {
	return slices.ContainsFunc(s.redirects, func(re *regexp.Regexp) bool { return re.MatchString(strings.Trim(address, "/")) })
}

// strs are the texts of a list in JavaScript; whole says that nothing in it has to be run.
func strs(v any) (out []string, whole bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		return []string{v}, true
	case []any:
		whole = true
		for _, x := range v {
			if text, ok := x.(string); ok {
				out = append(out, text)
			} else {
				whole = false
			}
		}
		return out, whole
	}
	return nil, false
}

// globList reads a list of globs and says what of it cannot be read.
func (s *Site) globList(file, key string, v any) []pattern.Glob {
	list, whole := strs(v)
	if !whole {
		s.warn(file, "%s is computed; set --exclude", key)
	}
	var out []pattern.Glob
	for _, text := range list {
		text = strings.TrimPrefix(text, "./")
		g, err := pattern.Compile(text, true)
		if err != nil || extended.MatchString(text) || strings.HasPrefix(text, "!") {
			s.warn(file, "the pattern %q of %s is not understood; set --exclude", text, key)
			continue
		}
		out = append(out, g)
	}
	return out
}

var extended = regexp.MustCompile(`[!+@?*]\(`)

// spreads says that an object takes in another one, which may set what it does not.
func (s *Site) spreads(file string, m map[string]any) {
	if _, ok := m["..."]; ok {
		s.warn(file, "takes in settings that are computed; set --exclude and --site-url where they leave pages out or name the address")
	}
}

func (s *Site) openVitePress(read func(string) ([]byte, error)) {
	if s.config == "" {
		return
	}
	s.content = path.Clean(strings.TrimSuffix(strings.TrimSuffix(s.folder(), "/config"), ".vitepress"))
	s.html = true
	raw, err := read(s.config)
	if err != nil {
		return
	}
	doc := script.Settings(string(raw), "title", "themeConfig", "srcExclude", "srcDir", "cleanUrls", "rewrites", "base", "sitemap", "description", "markdown", "locales")
	if doc == nil {
		s.warn(s.config, "its settings are computed; set --exclude and --site-url")
		return
	}
	s.spreads(s.config, doc)
	if dir, ok := doc["srcDir"].(string); ok {
		s.content = path.Join(s.content, dir)
	} else if doc["srcDir"] != nil {
		s.warn(s.config, "srcDir is computed; set --docs-dir")
	}
	s.html = doc["cleanUrls"] != true
	if base, ok := doc["base"].(string); ok {
		s.base = strings.Trim(base, "/")
	}
	s.globs = s.globList(s.config, "srcExclude", doc["srcExclude"])
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
		return
	}
	doc := script.Settings(string(raw), "site", "base", "integrations", "srcDir")
	s.spreads(s.config, doc)
	if dir, ok := doc["srcDir"].(string); ok {
		s.content = path.Join(root, dir, "content/docs")
	}
	if address, ok := doc["site"].(string); ok {
		base, _ := doc["base"].(string)
		s.setOrigin(s.config, "site", strings.TrimRight(address, "/")+path.Clean("/"+base))
	} else if doc["site"] != nil {
		s.warn(s.config, "site is computed; set --site-url")
	}
}

// A tree is a folder of Hugo's content. Its pages' addresses begin with the language, where that is shown, and the folder
// that it is mounted as.
type tree struct{ folder, language, mounted string }

// treeOf is the folder of Hugo's content that a page lies in, and the page's path there.
func (s *Site) treeOf(p string) (t tree, rel string, ok bool) {
	full := path.Join(s.docsDir, p)
	for _, x := range s.trees {
		if below, in := strings.CutPrefix(full, x.folder+"/"); in && (!ok || len(x.folder) > len(t.folder)) {
			t, rel, ok = x, below, true
		}
	}
	return t, rel, ok
}

// hugoBuild is what Hugo's configuration says of all pages.
type hugoBuild struct {
	drafts, future, expired bool
	ignore                  []*regexp.Regexp
	cascade                 []Cascade
}

// inTree is where in Hugo's content a page lies; its path there, and what its address begins with.
func (s *Site) inTree(p string) (prefix, rel string, ok bool) {
	t, rel, ok := s.treeOf(p)
	if ok && s.docsDir != "" && (s.docsDir == t.folder || strings.HasPrefix(s.docsDir, t.folder+"/")) {
		return "", "", false // the documentation folder's address says it
	}
	return path.Join(t.language, t.mounted), rel, ok
}

func (s *Site) openHugo(files []string, read func(string) ([]byte, error)) {
	s.language = "en"
	if s.config == "" {
		if slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, "content/") }) {
			s.content = path.Join(s.docsDir, "content")
		}
		return
	}
	dir := strings.TrimSuffix(strings.TrimSuffix(s.folder(), "config/_default"), "/")
	settings := map[string]any{}
	for _, f := range files {
		base, full := path.Base(f), path.Join(s.docsDir, path.Dir(f))
		if Configures(f) != api.SiteHugo || full != s.folder() && full != path.Join(dir, "config/_default") && !(dir == "" && full == "config/_default") {
			continue
		}
		raw, err := read(f)
		var doc map[string]any
		if err == nil {
			switch path.Ext(f) {
			case ".toml":
				err = formats.TOML(raw, &doc)
			case ".yml", ".yaml":
				err = formats.YAML(raw, &doc)
			case ".json":
				err = formats.JSON(raw, &doc)
			}
		}
		if err != nil {
			s.unreadable(f, err)
			continue
		}
		doc = lowerKeys(doc)
		if stem := strings.TrimSuffix(base, path.Ext(base)); stem == "languages" || stem == "module" {
			doc = map[string]any{stem: doc}
		}
		for k, v := range doc {
			if _, taken := settings[k]; !taken || f == s.config {
				settings[k] = v
			}
		}
	}
	text := func(v any) string { t, _ := v.(string); return t }
	s.content = path.Join(dir, orElse(text(settings["contentdir"]), "content"))
	s.language = orElse(strings.ToLower(text(settings["defaultcontentlanguage"])), "en")
	languages, _ := settings["languages"].(map[string]any)
	own := []tree{}
	for _, code := range sortedKeys(languages) {
		m, _ := languages[code].(map[string]any)
		m = lowerKeys(m)
		t := tree{folder: path.Join(dir, text(m["contentdir"]))}
		if !strings.EqualFold(code, s.language) || settings["defaultcontentlanguageinsubdir"] == true {
			t.language = strings.ToLower(code)
		}
		if text(m["contentdir"]) != "" {
			own = append(own, t)
		}
	}
	if module, ok := settings["module"].(map[string]any); ok {
		mounts, _ := lowerKeys(module)["mounts"].([]any)
		for _, v := range mounts {
			m, _ := v.(map[string]any)
			m = lowerKeys(m)
			target, source := path.Clean(text(m["target"])), text(m["source"])
			if source == "" || target != "content" && !strings.HasPrefix(target, "content/") {
				continue
			}
			t := tree{folder: path.Join(dir, source), mounted: strings.TrimPrefix(strings.TrimPrefix(target, "content"), "/")}
			if lang := text(m["lang"]); lang != "" && !strings.EqualFold(lang, s.language) {
				t.language = strings.ToLower(lang)
			}
			own = append(own, t)
			for _, k := range []string{"excludefiles", "includefiles", "files"} {
				if m[k] != nil {
					s.warn(s.config, "%s of a mount is not read; set --exclude", k)
				}
			}
		}
	}
	s.trees = append(own, tree{folder: s.content})
	is := func(key string) bool { return settings[key] == true }
	s.build = hugoBuild{drafts: is("builddrafts"), future: is("buildfuture"), expired: is("buildexpired"), cascade: readCascades(settings["cascade"])}
	patterns, _ := strs(settings["ignorefiles"])
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			s.warn(s.config, "the pattern %q of ignoreFiles is not understood; set --exclude", p)
			continue
		}
		s.build.ignore = append(s.build.ignore, re)
	}
	s.setOrigin(s.config, "baseURL", text(settings["baseurl"]))
	parser := settings
	for _, key := range []string{"markup", "goldmark", "parser"} {
		m, _ := parser[key].(map[string]any)
		parser = lowerKeys(m)
	}
	s.anchorType = orElse(text(parser["autoidtype"]), text(parser["autoheadingidtype"]))
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func sortedKeys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

type pluginKind string

const (
	docsPlugin  pluginKind = "docs"
	blogPlugin  pluginKind = "blog"
	pagesPlugin pluginKind = "pages"
)

// A plugin of Docusaurus makes pages of one folder's files.
type plugin struct {
	kind             pluginKind
	id               string
	root             string // of the site
	folder           string // relative to the repository's root
	route            string
	include, exclude []pattern.Glob
	current          bool              // the version that is being written is shown
	versions         []string          // that are shown; nil for all
	versioned        bool              // versions says what there is
	paths            map[string]string // of versions, in the address; where it is not said, the rule of versionPath
	last             string            // the version that is shown without a path of its own; empty where there is one version
	whole            bool              // its folder is not known: it is the whole content
	sidebar          string            // file of its sidebars, relative to the repository's root; empty where it is not known
}

var (
	underscored = pattern.Globs("**/_*.{js,jsx,ts,tsx,md,mdx}", "**/_*/**", "**/*.test.{js,jsx,ts,tsx}", "**/__tests__/**")
	markdown    = pattern.Globs("**/*.{md,mdx}")
)

func (s *Site) openDocusaurus(files []string, read func(string) ([]byte, error)) {
	root := s.docsDir
	known := strings.HasPrefix(path.Base(s.config), "docusaurus.config.")
	var doc map[string]any
	text := "" // of the configuration
	if known {
		root = s.folder()
		s.content = root
		if raw, err := read(s.config); err == nil {
			text = string(raw)
			doc = script.Settings(text, "presets", "plugins", "themeConfig", "url", "baseUrl", "title", "i18n", "themes", "favicon", "organizationName", "markdown")
			if doc == nil && len(strings.TrimSpace(string(raw))) > 0 && !emptyExport.Match(raw) {
				s.warn(s.config, "its settings are computed; set --exclude and --site-url")
			}
		}
	}
	s.spreads(s.config, doc)
	add := func(kind pluginKind, v any) {
		options, ok := v.(map[string]any)
		if v == false {
			return
		}
		if !ok && v != nil && v != true {
			s.warn(s.config, "options of the plugin %s are computed; set --exclude", kind)
		}
		s.spreads(s.config, options)
		p := plugin{kind: kind, id: "default", root: root, current: true, exclude: underscored, include: markdown}
		p.folder, p.route = map[pluginKind]string{docsPlugin: "docs", blogPlugin: "blog", pagesPlugin: "src/pages"}[kind], map[pluginKind]string{docsPlugin: "docs", blogPlugin: "blog"}[kind]
		for key, to := range map[string]*string{"path": &p.folder, "routeBasePath": &p.route, "id": &p.id} {
			switch v := options[key].(type) {
			case nil:
			case string:
				*to = v
			default:
				s.warn(s.config, "%s of the plugin %s is computed", key, kind)
			}
		}
		p.folder, p.route = path.Join(root, p.folder), strings.Trim(p.route, "/")
		if kind == docsPlugin {
			p.sidebar = s.sidebarOf(p, options["sidebarPath"], text, files)
		}
		if v, ok := options["include"]; ok && kind != pagesPlugin {
			p.include = s.globList(s.config, "include", v)
		}
		if v, ok := options["exclude"]; ok {
			p.exclude = s.globList(s.config, "exclude", v)
			if _, whole := strs(v); !whole {
				p.exclude = append(slices.Clone(p.exclude), underscored...) // as a rule a computed list adds to the usual one
			}
		}
		p.current = options["includeCurrentVersion"] != false
		if v, ok := options["onlyIncludeVersions"]; ok {
			list, whole := strs(v)
			if whole {
				p.versions, p.versioned = list, true
				p.current = p.current && slices.Contains(list, "current")
			} else {
				s.warn(s.config, "onlyIncludeVersions is computed; set --exclude")
			}
		}
		if name := path.Join(path.Dir(s.config), versionsFile(p.id)); kind == docsPlugin && !p.versioned && slices.Contains(files, name) {
			var list []string
			if raw, err := read(name); err == nil && formats.JSON(raw, &list) == nil {
				p.versions, p.versioned = list, true
			}
		}
		for _, v := range p.versions {
			if v != "current" && p.last == "" {
				p.last = v
			}
		}
		if last, ok := options["lastVersion"].(string); ok {
			p.last = last
		}
		p.paths = map[string]string{}
		versions, _ := options["versions"].(map[string]any)
		for v, o := range versions {
			m, _ := o.(map[string]any)
			if to, ok := m["path"].(string); ok {
				p.paths[v] = to
			}
		}
		s.plugins = append(s.plugins, p)
	}
	presets, _ := doc["presets"].([]any)
	classic := false
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
			options, ok = entry[1].(map[string]any)
			if !ok {
				s.warn(s.config, "options of a preset are computed; set --exclude")
			}
		}
		if named && name != "classic" && !strings.Contains(name, "preset-classic") && options["docs"] == nil && options["blog"] == nil && options["pages"] == nil {
			continue
		}
		classic = true
		s.spreads(s.config, options)
		add(docsPlugin, options["docs"])
		add(blogPlugin, options["blog"])
		add(pagesPlugin, options["pages"])
	}
	if _, computed := doc["presets"].(script.Computed); computed {
		s.warn(s.config, "presets are computed; set --exclude")
	}
	plugins, _ := doc["plugins"].([]any)
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
			s.warn(s.config, "a plugin is computed: its pages are not known")
			continue
		}
		for _, kind := range []pluginKind{docsPlugin, blogPlugin, pagesPlugin} {
			if strings.HasSuffix(name, "content-"+string(kind)) {
				var options any
				if len(entry) > 1 {
					options = entry[1]
				}
				add(kind, options)
			}
		}
	}
	if !classic && len(s.plugins) == 0 { // nothing is known of them
		add(docsPlugin, nil)
		add(blogPlugin, nil)
		add(pagesPlugin, nil)
	}
	if !known {
		s.plugins = append(s.plugins, plugin{kind: docsPlugin, id: "default", root: root, folder: root, include: markdown, exclude: underscored, current: true, whole: true,
			sidebar: s.sidebarOf(plugin{id: "default", root: root}, nil, "", files)})
	}
	// The deepest folder counts.
	slices.SortStableFunc(s.plugins, func(a, b plugin) int { return len(b.folder) - len(a.folder) })
	markdownOptions, _ := doc["markdown"].(map[string]any)
	anchors, _ := markdownOptions["anchors"].(map[string]any)
	s.keepCase = anchors["maintainCase"] == true
	if base, ok := doc["baseUrl"].(string); ok {
		s.base = strings.Trim(base, "/")
	}
	if address, ok := doc["url"].(string); ok {
		base, _ := doc["baseUrl"].(string)
		if _, computed := doc["baseUrl"].(script.Computed); computed {
			s.warn(s.config, "baseUrl is computed; set --site-url")
		} else {
			s.setOrigin(s.config, "url and baseUrl", strings.TrimRight(address, "/")+path.Clean("/"+base))
		}
	} else if doc["url"] != nil {
		s.warn(s.config, "url is computed; set --site-url")
	}
}

var sidebarPath = regexp.MustCompile(`\bsidebarPath\s*:\s*require\.resolve\(\s*['"]([^'"]+)['"]`)

// sidebarOf is the file of a plugin's sidebars. A path that is computed is known where it is the only one.
func (s *Site) sidebarOf(p plugin, option any, config string, files []string) string {
	switch v := option.(type) {
	case string:
		return path.Join(p.root, v)
	case script.Computed:
		if found := sidebarPath.FindAllStringSubmatch(config, -1); len(found) == 1 && strings.Count(config, "sidebarPath") == 1 {
			return path.Join(p.root, found[0][1])
		}
		return ""
	}
	if p.id == "default" {
		for _, f := range files {
			if full := path.Join(s.docsDir, f); path.Dir(full) == path.Clean("./"+p.root) && strings.HasPrefix(path.Base(f), "sidebars.") {
				return full
			}
		}
	}
	return ""
}

var emptyExport = regexp.MustCompile(`^\s*(?:export\s+default|module\.exports\s*=)\s*\{\s*\}\s*;?\s*$`)

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

// A location is where a file lies in the content of a Docusaurus site.
type location struct {
	plugin  plugin
	rel     string // relative to the plugin's folder, or to that of a version or translation of it
	prefix  string // of the address
	version string // "current" where it is the version that is being written
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
		if rest, ok := below(path.Join(pl.root, name("versioned_docs"))); ok && pl.kind == docsPlugin && strings.HasPrefix(rest, "version-") {
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

var dated = regexp.MustCompile(`^(\d{4})[-/](\d{1,2})[-/](\d{1,2})[-/]?(.*)$`)

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
		stem = fmt.Sprintf("%s/%02s/%02s/%s", m[1], m[2], m[3], m[4])
	}
	return strings.Trim(path.Join(at.prefix, stem), "/")
}
