package site

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/internal/glob"
)

// A State is what becomes of a file on the site.
type State string

const (
	Published State = "published" // a page that is found by searching
	Unlisted  State = "unlisted"  // a page that is shown to those who have its address, and not found by searching
	Included  State = "included"  // no page; its text is shown in the pages that include it
	LeftOut   State = "left out"  // not shown at all
)

// IsPage reports whether readers find the file at an address of its own.
func (s State) IsPage() bool { return s == Published || s == Unlisted }

// A Decision is what becomes of a file, and why.
type Decision struct {
	State State
	Rule  string
	File  string // that says so, relative to the repository's root; empty if it is the generator's own rule
}

// An Entry is a file that may be a page.
type Entry struct {
	Path      string
	Front     Front
	OpenAPI   bool     // a document that describes an API
	Importers []string // files that show this one's text
	Place     *Place   // in the navigation; nil if it is not there
}

// instructions are files that tell programs how to work on the repository. They are no pages, wherever they lie.
var instructions = []string{"claude.md", "claude.local.md", "agents.md", "agents.local.md", "agent.md", "gemini.md",
	"copilot-instructions.md"}

// Decide says of each file whether the site shows it. What the project says goes before what the site's files say.
func (s *Site) Decide(entries []Entry, now time.Time) []Decision {
	d := decider{Site: s, now: now, entries: make(map[string]*Entry, len(entries)), bundles: map[string]string{},
		targets: map[string]glob.Glob{}}
	for i := range entries {
		e := &entries[i]
		d.entries[e.Path] = e
		if base := path.Base(e.Path); s.Kind == api.SiteHugo && hugoFormats[strings.ToLower(path.Ext(base))] {
			_, _, content := s.treeOf(e.Path)
			if stem, _, _ := strings.Cut(base, "."); stem == "index" && (content || len(s.trees) == 0) && !d.projectLeavesOut(e.Path) {
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
	targets map[string]glob.Glob
	bundles map[string]string // folders that are one page of Hugo, with the file that is the page
}

// importer is a file of the site that shows this one's text; empty if none does.
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
	if d.Kind == api.SiteCollected { // the collector has decided
		return Decision{Published, "is a page that was collected", ""}
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
	if folder, ok := static[d.Kind]; ok && IsPDF(e.Path) {
		return d.copied(folder, e)
	}
	own := d.own(e)
	if own.State == Published && e.Front.Hidden != "" {
		return Decision{Unlisted, e.Front.Hidden, d.file(e.Path)}
	}
	return own
}

// own is what the generator's own rule says of a file.
func (d *decider) own(e *Entry) Decision {
	switch d.Kind {
	case api.SiteMintlify:
		return d.mintlify(e)
	case api.SiteMkDocs:
		return d.mkDocs(e)
	case api.SiteVitePress:
		return d.vitePress(e)
	case api.SiteDocusaurus:
		return d.docusaurus(e)
	case api.SiteHugo:
		return d.hugo(e)
	case api.SiteStarlight:
		return d.starlight(e)
	case api.SiteNext:
		return d.next(e)
	case api.SiteMdBook, api.SiteGitBook, api.SiteFern:
		return d.listedOnly(e)
	case api.SiteJekyll:
		return d.jekyllPage(e)
	case api.SiteSphinx:
		return d.sphinx(e)
	case api.SiteAntora:
		return d.antora(e)
	case api.SiteQuarto:
		return d.quarto(e)
	}
	return d.plain(e)
}

// outside reports that a file is not where the generator looks for pages.
func (d *decider) outside(file string) Decision {
	folder := cmp.Or(d.content, "the root")
	return Decision{Included, fmt.Sprintf("lies outside of %s, where %s has its pages", folder, generators[d.Kind]), file}
}

var generators = map[api.SiteKind]string{
	api.SiteMintlify: "Mintlify", api.SiteMkDocs: "MkDocs", api.SiteVitePress: "VitePress",
	api.SiteDocusaurus: "Docusaurus", api.SiteHugo: "Hugo", api.SiteStarlight: "Starlight", api.SiteNext: "Next.js",
	api.SiteMdBook: "mdBook", api.SiteGitBook: "GitBook", api.SiteJekyll: "Jekyll", api.SiteSphinx: "Sphinx", api.SiteAntora: "Antora",
	api.SiteFern: "Fern", api.SiteQuarto: "Quarto", api.SiteWiki: "a wiki"}

// formats says of a file of a kind that the generator makes no pages of.
func (d *decider) formats(e *Entry) Decision {
	if e.OpenAPI {
		return Decision{LeftOut, generators[d.Kind] + " makes no page of an OpenAPI document by itself", ""}
	}
	return Decision{LeftOut, fmt.Sprintf("%s makes no pages of %s files", generators[d.Kind], path.Ext(e.Path)), ""}
}

// copied says of a file that the generator takes over as it is.
func (d *decider) copied(folder string, e *Entry) Decision {
	if _, ok := belowStatic(folder, e.Path); ok {
		return Decision{Published, "is shown as it is", ""}
	}
	return Decision{LeftOut, generators[d.Kind] + " shows only files as they are that lie in " + folder + "/", ""}
}

// static are the folders whose files generators take over as they are, of those that do so with no others.
var static = map[api.SiteKind]string{api.SiteDocusaurus: "static", api.SiteHugo: "static", api.SiteVitePress: "public",
	api.SiteStarlight: "public", api.SiteNext: "public"}

// belowStatic is a file's path on the site, by its path in a folder of static files.
func belowStatic(folder, p string) (string, bool) {
	if rest, ok := strings.CutPrefix(p, folder+"/"); ok {
		return rest, true
	}
	_, rest, ok := strings.Cut(p, "/"+folder+"/")
	return rest, ok
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
