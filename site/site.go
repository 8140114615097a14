// Package site implements the rules of documentation generators: which one makes a site, where it shows a page and
// under what names, and which files it publishes at all. It reads their configurations and never runs them. There is
// one file for each generator: what its configuration says, which files are its pages, and how it keeps versions and
// languages apart.
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
	"docent/site/anchor"
	"docent/site/expand"
	"docent/site/sidebar"
)

// A Site is how the generator of a documentation site names its pages. It is recognized by its files, and decides where
// a reader finds a page; the project's SiteURL is where the documentation folder itself is shown. Paths are relative to
// the documentation folder; those of files above it begin with "../".
type Site struct {
	Kind    api.SiteKind
	content string            // folder that holds the pages, relative to the repository's root
	docsDir string            // the project's
	html    bool              // pages end in .html
	labels  map[string]string // titles of folders, by their path relative to the documentation folder

	config    string // the file that configures the site, as it is named among the files; empty if there is none
	warnings  []Warning
	broken    error // why a configuration cannot be read
	project   api.Project
	exclude   glob.List // the project's
	include   glob.List
	origin    string           // address of the site's root as the configuration states it, without a slash at its end
	base      string           // path of the site's root as the configuration states it, without slashes at its ends
	stated    string           // where it states it
	ignored   glob.List        // what the configuration leaves out, in the syntax of .gitignore
	ignoring  string           // the file that holds these patterns
	drafts    glob.List        // MkDocs's draft_docs
	excluded  []excluded       // of MkDocs's plug-in exclude
	excluding string           // the file that holds these
	drafting  string           // the file that holds these
	templates string           // MkDocs's folder of the theme's templates
	globs     []glob.Glob      // what VitePress's srcExclude, or a loader of Astro's, leaves out
	loaded    []glob.Glob      // what a loader of Astro's takes in; nil for all
	loading   string           // the file that says what a loader takes in
	dirs      []collection     // Fumadocs's
	redirects []*regexp.Regexp // Mintlify's
	rewrites  []rewrite        // VitePress's
	plugins   []plugin         // Docusaurus's folders of content
	trees     []tree           // Hugo's content folders of several languages
	language  string           // Hugo's default language
	build     hugoBuild
	// what the addresses of Nextra's content begin with
	contentBase string
	numbers     bool   // Next.js: folders and files have numbers that are not in addresses
	slash       bool   // Next.js, Docusaurus: addresses end with a slash
	unslashed   string // Starlight: what addresses do not end with
	nextra      bool   // Next.js: Nextra makes the pages
	allShown    bool   // Mintlify: pages outside of the navigation are searched too
	unlisted    bool   // the navigation lists what is searched
	layout      *layout
	anchors     anchor.Settings
	apis        map[string]string // Mintlify: folders of the pages that are made of descriptions of APIs, by their paths
	macros      bool              // the plug-in macros of MkDocs
	snippets    []string          // folders of MkDocs's snippets, relative to the repository's root
	collected   Collected         // of a folder whose pages a program has collected

	listed     map[string]listedPage // the pages that a navigation lists, by path; nil if none does
	listing    string                // the file that lists them
	jekyll     jekyll
	components []tree           // Antora's
	style      string           // of its addresses: html_extension_style
	suffixes   []string         // of the files that Sphinx makes pages of
	blog       *blog            // of Material for MkDocs
	metas      map[string]Front // front matter of all pages of a folder, by its path
	languages  []byte           // the program that says which languages Fumadocs has
	rules      expand.Rules
}

// A Warning is something of a configuration that bears on what is published and cannot be read.
type Warning struct {
	File string `json:"file"`
	Text string `json:"text"`
}

func (s *Site) warn(file, format string, args ...any) {
	w := Warning{path.Join(s.docsDir, file), fmt.Sprintf(format, args...)}
	if !slices.Contains(s.warnings, w) {
		s.warnings = append(s.warnings, w)
	}
}

// unreadable notes a configuration that the generator could not read either.
func (s *Site) unreadable(file string, err error) {
	s.warn(file, "cannot be read: %v", err)
	s.withhold("%s cannot be read, so that it is not known what the site leaves out: %v", path.Join(s.docsDir, file), err)
}

// configured decodes the configuration file, and reports whether it can be read.
func (s *Site) configured(read func(string) ([]byte, error), of any) bool {
	raw, err := read(s.config)
	if err == nil {
		err = formats.Decode(s.config, raw, of)
	}
	if err != nil {
		s.unreadable(s.config, err)
	}
	return err == nil
}

// unknown notes a setting that decides what the site leaves out, and that only running it would tell.
func (s *Site) unknown(file, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	s.warn(file, "%s; set --exclude", what)
	s.withhold("%s: %s, so that it is not known what the site leaves out", path.Join(s.docsDir, file), what)
}

// withhold makes the site unreadable, unless the project says what is public.
func (s *Site) withhold(format string, args ...any) {
	if len(s.project.Include)+len(s.project.Exclude) == 0 && s.broken == nil {
		s.broken = &api.StateError{Kind: api.ErrConflict, Reason: fmt.Sprintf(format, args...) +
			"; mend it, or say what is public: with --include or --exclude, in the console with \"Include\" or \"Leave out\" (--include '**' if everything is)"}
	}
}

// Unreadable says why it is not known what the site publishes: its configuration cannot be read, or would have to be
// run, and the project does not say it either. It is nil if that is known.
func (s *Site) Unreadable() error { return s.broken }

// Warnings say what of the site's configuration could not be read.
func (s *Site) Warnings() []Warning { return s.warnings }

// Config is the file that configures the site, relative to the repository's root; empty if there is none.
func (s *Site) Config() string {
	if s.config == "" {
		return ""
	}
	return path.Join(s.docsDir, s.config)
}

// configures are generators by the names of the files that configure them.
var configures = map[string]api.SiteKind{"docs.json": api.SiteMintlify, "mint.json": api.SiteMintlify, ".mintignore": api.SiteMintlify,
	"mkdocs.yml": api.SiteMkDocs, "mkdocs.yaml": api.SiteMkDocs, "zensical.toml": api.SiteMkDocs, "book.toml": api.SiteMdBook,
	".gitbook.yaml": api.SiteGitBook, ".gitbook.yml": api.SiteGitBook, "_config.yml": api.SiteJekyll, "_config.yaml": api.SiteJekyll,
	"conf.py": api.SiteSphinx, "antora.yml": api.SiteAntora, "fern.config.json": api.SiteFern, "_quarto.yml": api.SiteQuarto, "_quarto.yaml": api.SiteQuarto}

// Configures tells what a file of this name configures; empty for any other.
func Configures(p string) api.SiteKind {
	base, dir := path.Base(p), path.Base(path.Dir(p))
	stem := strings.TrimSuffix(base, path.Ext(base))
	switch {
	case p == CollectedFile:
		return api.SiteCollected
	case configures[base] != "":
		return configures[base]
	case isSummary(p):
		return api.SiteGitBook
	case stem == "docusaurus.config" || stem == "sidebars" || stem == "_category_":
		return api.SiteDocusaurus
	case stem == "config" && dir == ".vitepress" || stem == "index" && strings.HasSuffix(path.Dir(p), ".vitepress/config"):
		return api.SiteVitePress
	case stem == "astro.config":
		return api.SiteStarlight
	case base == "versions.json" || strings.HasSuffix(base, "_versions.json"):
		return api.SiteDocusaurus
	case stem == "hugo" && slices.Contains([]string{".toml", ".yaml", ".yml", ".json"}, path.Ext(base)),
		base == "config.toml", (dir == "_default" || dir == "production") && slices.Contains([]string{"config", "languages", "module", "params", "permalinks", "markup"}, stem) &&
			path.Base(path.Dir(path.Dir(p))) == "config":
		return api.SiteHugo
	}
	return ""
}

// A Page is what a page says of its own address.
type Page struct {
	Path    string
	Title   string
	Slug    string   // last part of the page's address, or all of it, if the front matter sets it
	ID      string   // the same by Docusaurus's older rule
	Address string   // the whole address if the front matter sets it
	Aliases []string // older addresses that lead to it
	Date    int64    // of a post, in seconds since 1970; 0 if it does not say
	// of a post
	Categories []string
}

// Open recognizes the generator and reads its configuration. What a project says of itself goes before what its files
// say.
func Open(p api.Project, files []string, read func(string) ([]byte, error)) Site {
	s := Site{Kind: p.Site, docsDir: p.DocsDir, content: p.DocsDir, labels: map[string]string{}, project: p,
		exclude: glob.NewList(p.Exclude...), include: glob.NewList(p.Include...)}
	found, config := s.recognize(files, read)
	s.Kind = cmp.Or(s.Kind, found)
	if config != "" && weight(config) > 0 {
		s.config = config
	}
	switch s.Kind {
	case api.SiteMintlify:
		s.openMintlify(files, read)
	case api.SiteMkDocs:
		s.openMkDocs(files, read)
	case api.SiteVitePress:
		s.openVitePress(read)
	case api.SiteHugo:
		s.openHugo(files, read)
	case api.SiteDocusaurus:
		s.openDocusaurus(files, read)
	case api.SiteStarlight:
		s.openStarlight(read)
	case api.SiteCollected:
		s.openCollected(read)
	case api.SiteMdBook:
		s.openMdBook(read)
	case api.SiteGitBook:
		s.openGitBook(read)
	case api.SiteJekyll:
		s.openJekyll(files, read)
	case api.SiteSphinx:
		s.openSphinx(read)
	case api.SiteAntora:
		s.openAntora(files, read)
	case api.SiteFern:
		s.openFern(read)
	case api.SiteQuarto:
		s.openQuarto(read)
	}
	if s.content == "." {
		s.content = ""
	}
	s.openNext(files, read)
	s.openWiki(files)
	s.readLayout(files, read)
	s.rules.Kind = s.Kind
	s.rules.Root = cmp.Or(s.rules.Root, s.content)
	s.rules.Bases = append(s.rules.Bases, p.DocsDir)
	return s
}

// recognition is the order of generators when a repository holds files of several.
var recognition = []api.SiteKind{"", api.SiteGitBook, api.SiteJekyll, api.SiteSphinx, api.SiteMdBook, api.SiteAntora, api.SiteFern, api.SiteQuarto, api.SiteHugo, api.SiteStarlight, api.SiteVitePress, api.SiteDocusaurus,
	api.SiteMkDocs, api.SiteMintlify, api.SiteCollected}

// recognize finds the generator, and the file that speaks for it: the one that is nearest to the root.
func (s *Site) recognize(files []string, read func(string) ([]byte, error)) (found api.SiteKind, config string) {
	for _, file := range files {
		kind := s.kindOf(file, files)
		if kind == "" || s.Kind != "" && kind != s.Kind {
			continue
		}
		if strings.HasPrefix(path.Base(file), "_category_.") {
			s.readLabel(file, read)
		}
		if !speaks(file) {
			continue
		}
		if another(file, kind, files, read) {
			continue
		}
		better := config == "" || weight(file) > weight(config) || weight(file) == weight(config) &&
			strings.Count(file, "/") < strings.Count(config, "/")
		if slices.Index(recognition, kind) > slices.Index(recognition, found) || kind == found && better {
			found, config = kind, file
		}
	}
	if found == api.SiteHugo && s.Kind == "" && Configures(config) == "" && !laidOutForHugo(files) {
		return "", ""
	}
	return found, config
}

// another reports whether a file that has the name of a generator's configuration is something else.
func another(file string, kind api.SiteKind, files []string, read func(string) ([]byte, error)) bool {
	switch {
	case kind == api.SiteStarlight: // of a site of Astro that is made in another way
		raw, err := read(file)
		return err != nil || !bytes.Contains(raw, []byte("@astrojs/starlight"))
	case kind == api.SiteSphinx:
		raw, err := read(file)
		return err != nil || !sphinxKey.Match(raw)
	case isSummary(file): // a list of something else
		return strings.Contains(file, "/") || !slices.Contains(files, "README.md")
	case kind == api.SiteJekyll: // Jupyter Book's
		return slices.Contains(files, path.Join(path.Dir(file), "_toc.yml"))
	}
	return false
}

// laidOutForHugo reports whether files without any configuration are Hugo's by their names: more than one folder has an
// _index, or the one that Hugo calls content, and none lies below an index.md, which would make a resource of it.
func laidOutForHugo(files []string) bool {
	sections := 0
	leaves := map[string]bool{} // folders with an index
	for _, f := range files {
		if IsPage(f) && strings.HasPrefix(path.Base(f), "index.") {
			leaves[path.Dir(f)] = true
		}
	}
	for _, f := range files {
		if !IsPage(f) || !strings.HasPrefix(path.Base(f), "_index.") {
			continue
		}
		if sections++; path.Dir(f) == "content" {
			sections++
		}
		for dir := path.Dir(f); ; dir = path.Dir(dir) {
			if leaves[dir] {
				return false
			}
			if dir == "." || dir == "/" || strings.HasSuffix(dir, "..") {
				break
			}
		}
	}
	return sections > 1
}

// kindOf is the generator that a file belongs to; empty if it belongs to none.
func (s *Site) kindOf(file string, files []string) api.SiteKind {
	base, kind := path.Base(file), Configures(file)
	if base == "config.toml" && kind == api.SiteHugo {
		content := path.Join(s.docsDir, path.Dir(file), "content") + "/"
		if !slices.ContainsFunc(files, func(o string) bool { return strings.HasPrefix(path.Join(s.docsDir, o), content) }) {
			return "" // it configures something else
		}
	}
	if kind == "" && IsPage(file) && strings.HasPrefix(base, "_index.") {
		return api.SiteHugo
	}
	return kind
}

// speaks reports whether a file says by itself which generator makes the site.
func speaks(file string) bool {
	switch base := path.Base(file); {
	case base == ".mintignore", strings.HasSuffix(base, "versions.json"), path.Base(path.Dir(file)) == "production",
		path.Base(path.Dir(file)) == "_default" &&
			!strings.HasPrefix(base, "config.") && !strings.HasPrefix(base, "hugo."):
		return false
	}
	return true
}

// weight is how much of the site a file configures.
func weight(file string) int {
	switch base := path.Base(file); {
	case Configures(file) == "", strings.HasPrefix(base, "sidebars."), strings.HasPrefix(base, "_category_."):
		return 0
	}
	return 1
}

func (s *Site) readLabel(file string, read func(string) ([]byte, error)) {
	var c struct {
		Label string `json:"label" yaml:"label"`
	}
	raw, err := read(file)
	if err == nil && formats.Decode(file, raw, &c) == nil && c.Label != "" {
		s.labels[path.Dir(file)] = c.Label
	}
}

// Content is the folder that holds the site's pages, relative to the repository's root.
func (s *Site) Content() string { return s.content }

// folder is the folder that a configuration file lies in, relative to the repository's root.
func (s *Site) folder() string { return path.Join(s.docsDir, path.Dir(s.config)) }

// relative is a page's path below the folder that holds the site's pages; if the documentation folder is that
// folder, or within it, below the documentation folder.
func (s *Site) relative(p string) string {
	if s.content == s.docsDir || s.content == "" || strings.HasPrefix(s.docsDir, s.content+"/") {
		return p
	}
	if rest, ok := strings.CutPrefix(path.Join(s.docsDir, p), s.content+"/"); ok {
		return rest
	}
	return p
}

// WithoutNumbers takes the numbers by which Docusaurus orders files off every part of a path.
func WithoutNumbers(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = sidebar.WithoutNumber(parts[i])
	}
	return strings.Join(parts, "/")
}

// Shown is where the site shows a page: a path without leading slash, with the slash or extension at its end that the
// generator gives it.
func (s *Site) Shown(r Page) string {
	if s.Kind == api.SiteCollected {
		if address := cmp.Or(r.Address, s.collected.Addresses[r.Path]); address != "" {
			return s.shownAsCollected(address)
		}
	}
	if r.Address != "" && !strings.Contains(r.Address, ":") {
		return strings.TrimPrefix(r.Address, "/")
	}
	if IsPDF(r.Path) {
		return s.shownAsFile(r.Path)
	}
	rel := s.relative(r.Path)
	switch s.Kind {
	case api.SiteJekyll:
		return s.shownByJekyll(r)
	case api.SiteAntora:
		return s.shownByAntora(r)
	case api.SiteMdBook, api.SiteGitBook, api.SiteFern, api.SiteWiki, api.SiteSphinx, api.SiteQuarto:
		return s.shownListed(r, rel)
	case api.SiteNext:
		return s.nextPath(r.Path)
	case api.SiteDocusaurus:
		shown := s.shownByDocusaurus(r, nameOf(rel, indexes...))
		if s.slash {
			return asFolder(shown)
		}
		return shown
	case api.SiteHugo:
		return s.shownByHugo(r, nameOf(rel, "index", "_index"))
	case api.SiteMkDocs:
		return s.shownByMkDocs(r, nameOf(rel, indexes...))
	case api.SiteVitePress:
		return s.shownByVitePress(nameOf(rel, "index"))
	case api.SiteStarlight:
		shown := shownByStarlight(r, nameOf(rel, "index"))
		return strings.TrimSuffix(shown, s.unslashed)
	}
	n := nameOf(rel, indexes...)
	if s.Kind == api.SiteMintlify {
		n = nameOf(rel, "index")
	}
	switch ext := path.Ext(rel); {
	case (s.Kind == "" || s.Kind == api.SitePlain) && r.Slug == "" && (ext == ".html" || ext == ".htm"): // the file itself
		if n.index {
			return asFolder(n.dir)
		}
		return n.beside(n.stem + ext)
	case r.Slug != "":
		return n.beside(r.Slug)
	case n.index:
		return strings.Trim(path.Clean("/"+n.dir), "/")
	}
	return n.beside(n.stem)
}

// A fileName is the name of a page's file in the parts that its address is made of.
type fileName struct {
	rel, dir, stem string
	index          bool // the page is its folder's
}

// indexes are the names of folders' pages, if a generator has no list of its own.
var indexes = []string{"index", "_index", "README", "readme"}

func nameOf(rel string, indexes ...string) fileName {
	dir, stem := path.Split(rel)
	if IsPage(stem) {
		stem = strings.TrimSuffix(stem, path.Ext(stem))
	}
	return fileName{rel, strings.TrimSuffix(dir, "/"), stem, slices.Contains(indexes, stem)}
}

// beside is the address of a name in the file's folder; a name that begins with a slash is the whole address.
func (n fileName) beside(name string) string {
	if strings.HasPrefix(name, "/") {
		return strings.Trim(path.Clean(name), "/")
	}
	return strings.TrimPrefix(path.Join("/", n.dir, name), "/")
}

// asFolder is an address as that of a folder.
func asFolder(address string) string {
	if address = strings.Trim(address, "/"); address == "" {
		return ""
	}
	return address + "/"
}

// AddressKey is an address as links are compared by: without what stands at its end by the generator's rule alone.
func AddressKey(address string) string {
	address = strings.TrimSuffix(strings.Trim(address, "/"), ".html")
	return address
}

// Crumbs are the titles of the folders above a page, if the generator shows them.
func (s *Site) Crumbs(r Page, titles map[string]string) []string {
	if trail := s.collected.Trails[r.Path]; trail != nil {
		return trail
	}
	if s.Kind != api.SiteHugo && s.Kind != api.SiteDocusaurus && s.Kind != api.SiteCollected {
		return nil
	}
	var out []string
	dir := path.Dir(r.Path)
	if strings.HasPrefix(path.Base(r.Path), "_index.") {
		dir = path.Dir(dir)
	}
	for ; dir != "." && dir != "/" && path.Join(s.docsDir, dir) != s.content &&
		!strings.HasPrefix(dir, ".."); dir = path.Dir(dir) {
		name := cmp.Or(s.labels[dir], titles[dir])
		if name != "" && name != r.Title {
			out = append(out, name)
		}
	}
	slices.Reverse(out)
	return out
}

// Translations are the folders that hold one language's pages. Codes that are common English folder names are left out.
var Translations = strings.Fields(
	`ar bg bn ca cs da de el en es et fa fi fr he hi hr hu ja ko lt lv ms nb nl pl pt ro ru sk sl sr sv ta th tr uk ur vi zh
	pt-br zh-cn zh-tw zh-hans zh-hant en-us en-gb es-419 fr-ca`)

var pageExtensions = map[string]bool{".md": true, ".mdx": true, ".markdown": true, ".mkd": true, ".mkdn": true, ".mdown": true, ".html": true, ".htm": true,
	".txt": true, ".rst": true, ".adoc": true, ".asciidoc": true, ".ipynb": true, ".qmd": true, ".rmd": true, ".mdoc": true, ".org": true}

// IsPDF tells from its name a file that sites show as it is, and that holds text for readers all the same.
func IsPDF(p string) bool { return strings.EqualFold(path.Ext(p), ".pdf") }

// shownAsFile is the address of a file that the generator copies unchanged.
func (s *Site) shownAsFile(p string) string {
	if folder, ok := static[s.Kind]; ok {
		if rest, ok := belowStatic(folder, p); ok {
			return rest
		}
	}
	return s.relative(p)
}

// IsPage tells from its name whether a file holds text for readers.
func IsPage(p string) bool { return pageExtensions[strings.ToLower(path.Ext(p))] }

// PageKey is the path of a page as links and navigation name it: without extension, leading slash and index.
func PageKey(p string) string {
	if strings.HasPrefix(p, ".") || strings.Contains(p, "//") || strings.Contains(p, "/.") {
		p = path.Clean("/" + p)
	}
	p = strings.Trim(p, "/")
	if IsPage(p) {
		p = strings.TrimSuffix(p, path.Ext(p))
	}
	switch base := path.Base(p); base {
	case "index", "_index", "README", "readme":
		p = strings.TrimSuffix(strings.TrimSuffix(p, base), "/")
	}
	return p
}
