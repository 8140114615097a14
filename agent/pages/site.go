// Package pages provides the documentation as its readers see it: its pages, the addresses that they are reached by,
// the links between them, and the navigation. It reads a workspace as it is now; what it writes are texts for the
// workspace.
package pages

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
	"docent/site"
	"docent/site/links"
	"docent/site/markup"
)

// A Site is the pages as their readers meet them: the addresses they are reached by, which are those that search
// shows too, and the links between them. It reads the workspace as it is now; a page is parsed again only when its
// bytes have changed.
type Site struct {
	Files     *workspace.Workspace
	project   api.Project
	now       time.Time
	Generator site.Site
	root      string // see Root
	prefix    string // what root-relative links begin with before that, without slashes
	sought    bool   // both are known, or have been looked for in links
	own       string // public address of the documentation folder; empty if not known
	base      string // the path of that
	// files, relative to the documentation folder, by the addresses of their pages on the published site; nil if not known
	Published map[string]string
	ends      *bool // links to pages end in a slash; nil when not counted yet
	dots      *bool // links to neighbors begin with "./"; nil when not counted yet

	listed   []string // the pages; for which list of files that holds
	listedOf *string
	names    map[string][]string // pages by their names; for which list
	namesOf  *string
	labels   map[string][]string // pages by Sphinx's labels; for how much of the workspace's log
	labeled  int

	pages  map[string]*markup.Page
	marked map[*markup.Page]map[string]bool // anchors of pages that import nothing
	shown  *links.Map                       // where the pages are shown; nil when not looked for yet
	seen   int                              // how much of the workspace's log shown knows of
}

// Open reads how the site of a workspace is made.
func Open(ws *workspace.Workspace, project api.Project, now time.Time) (*Site, error) {
	project.DocsDir = ws.DocsDir
	s := &Site{Files: ws, project: project, now: now, pages: map[string]*markup.Page{},
		marked: map[*markup.Page]map[string]bool{}}
	return s, s.open()
}

// At is the same documentation in another workspace.
func (s *Site) At(ws *workspace.Workspace) (*Site, error) {
	other := *s
	other.Files, other.pages, other.marked, other.shown, other.seen = ws, maps.Clone(s.pages), maps.Clone(s.marked), nil, 0
	if slices.ContainsFunc(s.Files.Log, s.configures) {
		return &other, other.open()
	}
	return &other, nil
}

// configures reports whether a file says how the site is made.
func (s *Site) configures(p string) bool {
	rel, ok := site.Relative(s.Files.DocsDir, p)
	return ok && site.Concerns(rel)
}

// open finds out how the site is made.
func (s *Site) open() error {
	var files []string
	for _, f := range s.Files.List() {
		if rel, ok := site.Relative(s.Files.DocsDir, f); ok &&
			(site.Concerns(rel) || site.IsPage(rel) && !workspace.Private(rel)) {
			files = append(files, rel)
		}
	}
	var failed error
	s.Generator = site.Open(s.project, files, func(p string) ([]byte, error) {
		src, err := s.Files.Read(path.Join(s.Files.DocsDir, p))
		if _, refused := say.AsRefusal(err); err != nil && !refused && !workspace.NotExist(err) {
			failed = err
		}
		return src, err
	})
	if failed != nil {
		return failed // what cannot be read now is not what is not there
	}
	s.shown = nil
	s.own, _ = s.Generator.Address()
	s.base = s.Generator.Base()
	s.root, s.prefix, s.sought = s.Files.DocsDir, "", s.Generated()
	if !s.sought {
		return nil // looked for where it is needed
	}
	s.prefix = s.base
	if dir := s.Generator.Pages(); s.Files.InDocs(dir+"/x") && s.Files.IsDir(dir) {
		s.root = dir
	}
	return nil
}

// Generated reports whether it is known what makes the site, and so where its pages are shown.
func (s *Site) Generated() bool {
	return s.Generator.Kind != "" && s.Generator.Kind != api.SitePlain
}

// addresses are those of the pages as they are now.
func (s *Site) addresses() *links.Map {
	if slices.ContainsFunc(s.Files.Log[s.seen:], s.configures) {
		_ = s.open() // what cannot be read any more is seen when it is edited or checked
		s.shown = nil
	}
	read := func(f string) (site.Page, site.Front) {
		rel, _ := site.Relative(s.Files.DocsDir, f)
		src, err := s.Files.Read(f)
		if err != nil || !workspace.IsText(src) {
			return site.Page{Path: rel}, site.Front{}
		}
		var front markup.Front
		if have, ok := s.pages[f]; ok && bytes.Equal(have.Src, src) {
			front = have.Front
		} else {
			front = markup.ReadFront(f, src) // parsing all pages would be most of what a small change costs
		}
		return site.ReadPage(rel, front.Values), site.ReadFront(front.Values)
	}
	changed := s.Files.Log[s.seen:]
	s.seen = len(s.Files.Log)
	if s.shown == nil {
		var pages []site.Page
		var entries []site.Entry
		for _, f := range s.List() {
			p, front := read(f)
			pages, entries = append(pages, p), append(entries, site.Entry{Path: p.Path, Front: front})
		}
		s.shown = links.NewMap(&s.Generator)
		for i, d := range s.Generator.Decide(entries, s.now) {
			s.shown.Add(pages[i], d.State.IsPage())
		}
		return s.shown
	}
	for _, f := range changed {
		p, _ := read(f)
		_, known := s.shown.Address(p.Path)
		shows := !known || s.shown.Shows(p.Path)
		if s.shown.Remove(p.Path); s.Files.Exists(f) && s.editable(f) {
			s.shown.Add(p, shows)
		}
	}
	return s.shown
}

// ShownAt finds the page that is shown at an address; empty if there is none.
func (s *Site) ShownAt(address string) string {
	if rel, ok := s.addresses().Find(address); ok {
		return path.Join(s.Files.DocsDir, rel)
	}
	return ""
}

// AddressOf is the address of a page, as Shown returns it.
func (s *Site) AddressOf(file string) string {
	rel, _ := site.Relative(s.Files.DocsDir, file)
	address, _ := s.addresses().Address(rel)
	return address
}

// Root is the folder that the pages' paths begin at, relative to the repository.
func (s *Site) Root() string {
	s.seekRoot()
	return s.root
}

// samples is how many links tell where links from the root start.
const samples = 200

// seekRoot finds out, if no generator says it, which folder root-relative links start from, and what stands before: the
// pair that most of some of them resolve with. Pages that cannot be read now are looked at again the next time.
func (s *Site) seekRoot() {
	if s.sought {
		return
	}
	was := *s // as they were before the edits: what these change is judged by it
	was.Files, was.pages, was.sought = s.Files.Unedited(), maps.Clone(s.pages), true
	dests, err := was.sampleLinks()
	s.sought = err == nil
	roots := []string{s.Files.DocsDir}
	for _, sub := range []string{"docs", "content", "content/docs", "content/en", "src", "src/content/docs", "src/pages",
		"pages"} {
		if d := path.Join(s.Files.DocsDir, sub); was.Files.IsDir(d) {
			roots = append(roots, d)
		}
	}
	prefixes := []string{""}
	if s.base != "" {
		prefixes = append(prefixes, s.base)
	}
	if s.Files.DocsDir != "" {
		prefixes = append(prefixes, path.Base(s.Files.DocsDir))
	}
	prefixes = append(prefixes, "docs")
	most := 0
	for _, prefix := range prefixes {
		for _, root := range roots {
			n := 0
			for _, d := range dests {
				rel, ok := links.Under(prefix, d)
				if ok && was.lookup(path.Join(root, rel)) != "" {
					n++
				}
			}
			if n > most {
				most, s.prefix, s.root = n, prefix, root
			}
		}
	}
}

// rootedLinks are how links from the root begin.
var rootedLinks = [][]byte{[]byte("](/"), []byte("](</"), []byte("]: /"), []byte(`="/`), []byte(`='/`), []byte(`={"/`)}

// sampleLinks are destinations that begin at the site's root, from pages all over it. Those that have none are not
// parsed, and the others no more than it takes.
func (s *Site) sampleLinks() (dests []string, err error) {
	list := s.List()
	for i := range list {
		if err := s.Files.Ended(); err != nil {
			return dests, err
		}
		f := list[i*7919%len(list)]
		if len(list)%7919 == 0 {
			f = list[i]
		}
		src, err := s.Files.Read(f)
		if _, refused := say.AsRefusal(err); err != nil && !refused && !workspace.NotExist(err) {
			return dests, err
		}
		if err != nil || !slices.ContainsFunc(rootedLinks, func(l []byte) bool { return bytes.Contains(src, l) }) {
			continue
		}
		p, err := s.Page(f)
		if err != nil {
			continue // no text
		}
		if dests = append(dests, rooted([]*markup.Page{p})...); len(dests) >= samples {
			break
		}
	}
	return dests, nil
}

// rooted are the destinations in pages that begin at the site's root.
func rooted(pages []*markup.Page) (dests []string) {
	for _, p := range pages {
		for _, l := range p.Links {
			if d, _, ok := links.LocalPath(l.Dest); ok && strings.HasPrefix(d, "/") && len(d) > 1 {
				dests = append(dests, d)
			}
		}
	}
	return dests
}

// slashed reports whether links to pages end in a slash.
func (s *Site) slashed() bool {
	if s.ends == nil {
		n := 0
		list, _ := s.All() // as far as they can be read
		for _, d := range rooted(list) {
			t := s.Resolve("", markup.Link{Dest: d})
			switch {
			case t.File == "" || !workspace.IsPage(t.File) || workspace.IsIndex(t.File):
			case strings.HasSuffix(d, "/"):
				n++
			default:
				n--
			}
		}
		ends := n > 0
		s.ends = &ends
	}
	return *s.ends
}

// editable reports whether a file is a page of the documentation.
func (s *Site) editable(p string) bool {
	return workspace.IsPage(p) && s.Files.InDocs(p) && s.Files.Writable(p) == nil
}

// List names the pages, in order.
func (s *Site) List() []string {
	s.list()
	return slices.Clone(s.listed)
}

func (s *Site) list() {
	files := s.Files.List()
	if len(files) == 0 {
		s.listed, s.listedOf = nil, nil
		return
	}
	if &files[0] == s.listedOf && s.listed != nil {
		return
	}
	s.listed, s.listedOf = []string{}, &files[0]
	for _, f := range files {
		if workspace.IsPage(f) && s.editable(f) {
			s.listed = append(s.listed, f)
		}
	}
}

// Page parses a page as it is now.
func (s *Site) Page(p string) (*markup.Page, error) {
	src, err := s.Files.Read(p)
	if err != nil {
		return nil, err
	}
	if have, ok := s.pages[p]; ok && bytes.Equal(have.Src, src) {
		return have, nil
	}
	if !workspace.IsText(src) {
		return nil, say.Refuse("%s is not text in UTF-8", p)
	}
	pg := s.Files.Parse(p, src)
	s.pages[p] = pg
	return pg, nil
}

// All parses every page that can be read; one that is too large or no text is left out.
func (s *Site) All() ([]*markup.Page, error) {
	var out []*markup.Page
	for _, f := range s.List() {
		if err := s.Files.Ended(); err != nil {
			return nil, err
		}
		p, err := s.Page(f)
		if err != nil {
			if _, ok := err.(*say.Refusal); ok || workspace.NotExist(err) {
				continue
			}
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// LineStart is the start of the line that a position is in.
func LineStart(src []byte, i int) int {
	return bytes.LastIndexByte(src[:i], '\n') + 1
}

// LineAfter is the start of the line after the one that a position is in.
func LineAfter(src []byte, i int) int {
	if k := bytes.IndexByte(src[i:], '\n'); k >= 0 {
		return i + k + 1
	}
	return len(src)
}

// EOL is how the lines of a text end.
func EOL(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
