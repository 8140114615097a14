package site

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/site/pattern"
)

// A State is what becomes of a file on the site.
type State string

const (
	Published State = "published" // a page that is found by searching
	Unlisted  State = "unlisted"  // a page that is shown to those who have its address, and not found by searching
	Included  State = "included"  // no page; its text is shown in the pages that include it
	LeftOut   State = "left out"  // not shown at all
)

// IsPage tells whether readers find the file at an address of its own.
func (s State) IsPage() bool { return s == Published || s == Unlisted }

// A Decision is what becomes of a file, and why.
type Decision struct {
	State State
	Rule  string
	File  string // that says so, relative to the repository's root; empty where it is the generator's own rule
}

// An Entry is a file that may be a page.
type Entry struct {
	Path      string
	Front     Front
	OpenAPI   bool     // a document that describes an API
	Importers []string // files that show this one's text
	Place     *Place   // in the navigation; nil where it is not there
}

// instructions are files that tell programs how to work on the repository. They are no pages, wherever they lie.
var instructions = []string{"claude.md", "claude.local.md", "agents.md", "agents.local.md", "agent.md", "gemini.md", "copilot-instructions.md"}

// Decide says of each file whether the site shows it. What the project says goes before what the site's files say.
func (s *Site) Decide(entries []Entry, now time.Time) []Decision {
	d := decider{Site: s, now: now, entries: make(map[string]*Entry, len(entries)), bundles: map[string]string{}, targets: map[string]pattern.Glob{}}
	for i := range entries {
		e := &entries[i]
		d.entries[e.Path] = e
		if base := path.Base(e.Path); s.Kind == api.SiteHugo && hugoFormats[strings.ToLower(path.Ext(base))] {
			if stem, _, _ := strings.Cut(base, "."); stem == "index" && !d.projectLeavesOut(e.Path) {
				d.bundles[path.Dir(e.Path)] = e.Path
			}
		}
	}
	out := make([]Decision, len(entries))
	for i := range entries {
		out[i] = d.decide(&entries[i])
	}
	if s.Kind == api.SiteMkDocs {
		d.sameAddress(entries, out)
	}
	return out
}

type decider struct {
	*Site
	now     time.Time
	entries map[string]*Entry
	targets map[string]pattern.Glob
	bundles map[string]string // folders that are one page of Hugo, with the file that is the page
}

// importer is a file of the site that shows this one's text; empty where none does.
func (d *decider) importer(e *Entry) string {
	for _, p := range e.Importers {
		above := d.entries[p]
		if above == nil {
			return p
		}
		alone := *above
		alone.Importers = nil
		if d.decide(&alone).State != LeftOut {
			return p
		}
	}
	return ""
}

func (d *decider) file(p string) string { return path.Join(d.docsDir, p) }

func (d *decider) projectLeavesOut(p string) bool {
	by := d.exclude.LastAsGit(p)
	return by != nil && !by.Keep
}

func (d *decider) decide(e *Entry) Decision {
	const deepest = 100 // patterns are held against each folder above a file
	if strings.Count(e.Path, "/") > deepest {
		return Decision{LeftOut, fmt.Sprintf("lies below more than %d folders", deepest), ""}
	}
	if by := d.exclude.LastAsGit(e.Path); by != nil {
		if by.Keep {
			return Decision{Published, "--exclude " + by.Text, ""}
		}
		return Decision{LeftOut, "--exclude " + by.Text, ""}
	}
	if len(d.include) > 0 {
		if by := d.include.LastAsGit(e.Path); by == nil || by.Keep {
			return Decision{Included, "no pattern of --include matches", ""} // a page that shows its text shows it all the same
		}
	}
	if slices.Contains(instructions, strings.ToLower(path.Base(e.Path))) {
		return Decision{LeftOut, "instructions for programs are no page", ""}
	}
	if f := e.Front.Draft; f != "" && !(d.Kind == api.SiteHugo && d.build.drafts && strings.HasPrefix(f, "draft")) {
		return Decision{LeftOut, f, d.file(e.Path)}
	}
	var own Decision
	switch d.Kind {
	case api.SiteMintlify:
		own = d.mintlify(e)
	case api.SiteMkDocs:
		own = d.mkDocs(e)
	case api.SiteVitePress:
		own = d.vitePress(e)
	case api.SiteDocusaurus:
		own = d.docusaurus(e)
	case api.SiteHugo:
		own = d.hugo(e)
	case api.SiteStarlight:
		own = d.starlight(e)
	default:
		own = d.plain(e)
	}
	if own.State == Published && e.Front.Hidden != "" {
		return Decision{Unlisted, e.Front.Hidden, d.file(e.Path)}
	}
	return own
}

// outside says of a file that does not lie where the generator looks for pages.
func (d *decider) outside(file string) Decision {
	folder := d.content
	if folder == "" {
		folder = "the root"
	}
	return Decision{Included, fmt.Sprintf("lies outside of %s, where %s has its pages", folder, generators[d.Kind]), file}
}

var generators = map[api.SiteKind]string{api.SiteMintlify: "Mintlify", api.SiteMkDocs: "MkDocs", api.SiteVitePress: "VitePress",
	api.SiteDocusaurus: "Docusaurus", api.SiteHugo: "Hugo", api.SiteStarlight: "Starlight"}

// formats says of a file of a kind that the generator makes no pages of.
func (d *decider) formats(e *Entry) Decision {
	if e.OpenAPI {
		return Decision{LeftOut, generators[d.Kind] + " makes no page of an OpenAPI document by itself", ""}
	}
	return Decision{LeftOut, fmt.Sprintf("%s makes no pages of %s files", generators[d.Kind], path.Ext(e.Path)), ""}
}

// inside is a file's path below the folder that holds the site's pages.
func (s *Site) inside(p string) (string, bool) {
	full := path.Join(s.docsDir, p)
	if s.content == "" {
		return full, !strings.HasPrefix(full, "..")
	}
	return strings.CutPrefix(full, s.content+"/")
}

func (d *decider) plain(e *Entry) Decision {
	for part := range strings.SplitSeq(e.Path, "/") {
		if strings.HasPrefix(part, "_") && !strings.HasPrefix(part, "_index.") {
			return Decision{Included, "names that begin with _ are parts of pages", ""}
		}
	}
	if p := d.importer(e); p != "" {
		return Decision{Included, "is imported", d.file(p)}
	}
	return Decision{Published, "is a page of the folder", ""}
}

var mintlifyDefaults = pattern.NewList(".git", ".github", ".claude", ".agents", ".idea", ".vscode", "node_modules", "build", "dist",
	"coverage", ".cache", "tmp", "temp", "README.md", "LICENSE.md", "CHANGELOG.md", "CONTRIBUTING.md")

func (d *decider) mintlify(e *Entry) Decision {
	rel, ok := d.inside(e.Path)
	if !ok {
		return d.outside(d.Config())
	}
	if by := d.ignored.LastAsGit(rel); by != nil && !by.Keep {
		return Decision{LeftOut, by.Text, d.file(d.ignoring)}
	}
	if by := mintlifyDefaults.LastAsGit(rel); by != nil {
		return Decision{LeftOut, "Mintlify leaves out " + by.Text, ""}
	}
	if e.OpenAPI {
		return Decision{Published, "describes an API", ""}
	}
	if ext := strings.ToLower(path.Ext(rel)); ext != ".md" && ext != ".mdx" {
		return d.formats(e)
	}
	if strings.HasPrefix(rel, "snippets/") || strings.HasPrefix(rel, "_snippets/") {
		return Decision{Included, "Mintlify makes no pages of what lies in " + rel[:strings.IndexByte(rel, '/')], ""}
	}
	if p := d.importer(e); p != "" {
		return Decision{Included, "is imported", d.file(p)}
	}
	switch {
	case d.allShown:
	case d.unlisted && e.Place == nil:
		return Decision{Unlisted, "is not in the navigation", d.Config()}
	case e.Place != nil && e.Place.Hidden && !e.Front.Shown:
		return Decision{Unlisted, "is in a hidden part of the navigation", d.Config()}
	}
	if e.Place != nil {
		return Decision{Published, "is in the navigation", d.Config()}
	}
	return Decision{Published, "is a page of the folder", ""}
}

func mkDocsPage(p string) bool {
	return slices.Contains([]string{".md", ".markdown", ".mdown", ".mkdn", ".mkd"}, strings.ToLower(path.Ext(p)))
}

var mkDocsTemplates = pattern.NewList("/templates/")

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
	if by := d.drafts.Last(rel); by != nil && !by.Keep {
		return Decision{LeftOut, "draft_docs: " + by.Text, d.file(d.drafting)}
	}
	if ext := strings.ToLower(path.Ext(rel)); ext == ".mdx" || ext == ".rst" || ext == ".adoc" {
		return d.formats(e) // a reader finds the source at most
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

func (d *decider) docusaurus(e *Entry) Decision {
	at := d.locate(e.Path)
	if !at.found {
		return Decision{Included, "lies outside of the folders of Docusaurus's plugins", d.Config()}
	}
	pl := at.plugin
	if ext := strings.ToLower(path.Ext(e.Path)); ext != ".md" && ext != ".mdx" && !pattern.Any(pl.include, at.rel) {
		return d.formats(e)
	}
	rel := at.rel
	if s := d.docsDir; s != pl.folder && strings.HasPrefix(s, pl.folder+"/") && at.version == "current" && at.prefix == "" {
		rel = path.Join(strings.TrimPrefix(s, pl.folder+"/"), rel) // globs are relative to the plugin's folder
	}
	if !pattern.Any(pl.include, rel) {
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

var hugoFormats = map[string]bool{".md": true, ".mdown": true, ".markdown": true, ".html": true, ".htm": true, ".adoc": true, ".asciidoc": true, ".ad": true, ".rst": true, ".org": true, ".pandoc": true, ".pdc": true}

func (d *decider) hugo(e *Entry) Decision {
	rel, ok := d.inside(e.Path)
	if t, below, in := d.treeOf(e.Path); in {
		rel, ok = path.Join(t.mounted, below), true
	}
	if !ok {
		return d.outside(d.Config())
	}
	full := d.file(e.Path)
	for _, re := range d.build.ignore {
		if re.MatchString(full) || re.MatchString("/"+full) {
			return Decision{LeftOut, "ignoreFiles: " + re.String(), d.Config()}
		}
	}
	base := path.Base(e.Path)
	if strings.HasPrefix(base, "#") || strings.HasSuffix(base, "~") {
		return Decision{LeftOut, "Hugo leaves out " + base, ""}
	}
	if !hugoFormats[strings.ToLower(path.Ext(base))] {
		return d.formats(e)
	}
	for dir := path.Dir(e.Path); ; dir = path.Dir(dir) {
		if page := d.bundles[dir]; page != "" && !(path.Dir(e.Path) == dir && strings.HasPrefix(base, "index.")) {
			return Decision{Included, "is a resource of the page that its folder is", d.file(page)}
		}
		if dir == "." || dir == "/" || strings.HasSuffix(dir, "..") {
			break
		}
	}
	build, from := d.hugoBuild(e, rel)
	if build.Draft != "" && !d.build.drafts {
		return Decision{LeftOut, "cascade: " + build.Draft, from.Draft}
	}
	switch build.Render {
	case "never", "link":
		return Decision{Included, "build.render: " + build.Render, from.Render}
	}
	if at := e.Front.PublishAt; at != 0 && at > d.now.Unix() && !d.build.future {
		return Decision{LeftOut, "is published from " + time.Unix(at, 0).UTC().Format(time.RFC3339) + " on", full}
	}
	if at := e.Front.ExpireAt; at != 0 && at <= d.now.Unix() && !d.build.expired {
		return Decision{LeftOut, "has expired on " + time.Unix(at, 0).UTC().Format(time.RFC3339), full}
	}
	if build.List == "never" {
		return Decision{Unlisted, "build.list: never", from.List}
	}
	return Decision{Published, "lies in the content folder", d.Config()}
}

// target tells whether a pattern of a cascade matches. One that is none matches everything: what it would leave out stays out.
func (d *decider) target(text, name string) bool {
	if text == "" {
		return true
	}
	g, known := d.targets[text]
	if !known {
		var err error
		if g, err = pattern.Compile(strings.ToLower(text), true); err != nil {
			g = everything
		}
		d.targets[text] = g
	}
	return g.Match(name)
}

var everything = pattern.Globs("**")[0]

// hugoBuild is what a page, those above it and the site say of building it, and which file says each.
func (d *decider) hugoBuild(e *Entry, rel string) (b, from Build) {
	take := func(x Build, file string) {
		if b.Render == "" && x.Render != "" {
			b.Render, from.Render = x.Render, file
		}
		if b.List == "" && x.List != "" {
			b.List, from.List = x.List, file
		}
		if b.Draft == "" && x.Draft != "" {
			b.Draft, from.Draft = x.Draft, file
		}
	}
	take(e.Front.Build, d.file(e.Path))
	kind, logical := "page", "/"+strings.ToLower(strings.TrimSuffix(rel, path.Ext(rel)))
	switch base := path.Base(logical); {
	case base == "_index" || strings.HasPrefix(base, "_index."):
		kind, logical = "section", path.Dir(logical)
		if logical == "/" {
			kind = "home"
		}
	case base == "index" || strings.HasPrefix(base, "index."):
		logical = path.Dir(logical)
	}
	cascade := func(list []Cascade, file string) {
		for _, c := range list {
			if d.target(c.Path, logical) && d.target(c.Kind, kind) && d.target(c.Lang, d.language) {
				take(c.Build, file)
			}
		}
	}
	for dir := path.Dir(e.Path); ; dir = path.Dir(dir) {
		for _, name := range []string{"_index.md", "_index.html", "_index.markdown", "_index.adoc", "_index.rst", "_index." + d.language + ".md"} {
			if above := d.entries[path.Join(dir, name)]; above != nil {
				cascade(above.Front.Cascade, d.file(above.Path))
			}
		}
		if dir == "." || dir == "/" || strings.HasSuffix(dir, "..") {
			break
		}
	}
	cascade(d.build.cascade, d.Config())
	return b, from
}

func (d *decider) starlight(e *Entry) Decision {
	rel, ok := d.inside(e.Path)
	if !ok {
		return d.outside(d.Config())
	}
	if !slices.Contains([]string{".markdown", ".mdown", ".mkdn", ".mkd", ".mdwn", ".md", ".mdx"}, strings.ToLower(path.Ext(rel))) {
		return d.formats(e)
	}
	for part := range strings.SplitSeq(rel, "/") {
		if strings.HasPrefix(part, "_") {
			return Decision{Included, "Starlight makes no pages of names that begin with _", ""}
		}
	}
	return Decision{Published, "lies in src/content/docs", d.Config()}
}
