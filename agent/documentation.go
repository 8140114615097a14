package agent

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"docent/api"
	"docent/markup"
	"docent/site"
)

// A documentation is the pages as their readers meet them: the addresses they are reached by, which are those that search
// shows too, and the links between them. It reads the workspace as it is now; a page is parsed again only when its bytes have
// changed.
type documentation struct {
	ws        *workspace
	project   api.Project
	now       time.Time
	generator site.Site
	root      string // folder that the pages' paths begin at, relative to the repository
	prefix    string // what root-relative links begin with before that, without slashes
	own       string // where readers find the documentation folder; empty where that is not known
	base      string // the path of that
	ends      *bool  // links to pages end in a slash; nil when not counted yet
	dots      *bool  // links to neighbours begin with "./"; nil when not counted yet

	listed   []string // the pages; for which list of files that holds
	listedOf *string

	pages  map[string]*markup.Page
	marked map[*markup.Page]map[string]bool // anchors of pages that import nothing
	shown  *site.Map                        // where the pages are shown; nil when not looked for yet
	seen   int                              // how much of the workspace's log shown knows of
}

func openDocumentation(ws *workspace, project api.Project, now time.Time) (*documentation, error) {
	project.DocsDir = ws.docsDir
	s := &documentation{ws: ws, project: project, now: now, pages: map[string]*markup.Page{}, marked: map[*markup.Page]map[string]bool{}}
	return s, s.open()
}

// at is the same documentation in another workspace.
func (s *documentation) at(ws *workspace) (*documentation, error) {
	other := *s
	other.ws, other.pages, other.marked, other.shown, other.seen = ws, maps.Clone(s.pages), maps.Clone(s.marked), nil, 0
	if slices.ContainsFunc(s.ws.log, s.configures) {
		return &other, other.open()
	}
	return &other, nil
}

// configures tells whether a file says how the site is made.
func (s *documentation) configures(p string) bool {
	rel, ok := site.Relative(s.ws.docsDir, p)
	return ok && site.Concerns(rel)
}

// open finds out how the site is made.
func (s *documentation) open() error {
	var files []string
	for _, f := range s.ws.files() {
		if rel, ok := site.Relative(s.ws.docsDir, f); ok && (site.Concerns(rel) || site.IsPage(rel) && !private(rel)) {
			files = append(files, rel)
		}
	}
	var failed error
	s.generator = site.Open(s.project, files, func(p string) ([]byte, error) {
		src, err := s.ws.read(path.Join(s.ws.docsDir, p))
		var refused *refusal
		if err != nil && !notExist(err) && !errors.As(err, &refused) {
			failed = err
		}
		return src, err
	})
	if failed != nil {
		return failed // what cannot be read now is not what is not there
	}
	s.shown = nil
	s.own, _ = s.generator.Address()
	s.base = s.generator.Base()
	if s.root = s.ws.docsDir; !s.generated() {
		return s.findRoot()
	}
	s.prefix = s.base
	if dir := s.generator.Pages(); s.ws.inDocs(dir+"/x") && s.ws.isDir(dir) {
		s.root = dir
	}
	return nil
}

// generated tells whether it is known what makes the site, and so where its pages are shown.
func (s *documentation) generated() bool {
	return s.generator.Kind != "" && s.generator.Kind != api.SitePlain
}

// addresses are those of the pages as they are now.
func (s *documentation) addresses() *site.Map {
	if slices.ContainsFunc(s.ws.log[s.seen:], s.configures) {
		_ = s.open() // what cannot be read any more is seen when it is edited or checked
		s.shown = nil
	}
	read := func(f string) (site.Page, site.Front) {
		rel, _ := site.Relative(s.ws.docsDir, f)
		p, err := s.page(f)
		if err != nil {
			return site.Page{Path: rel}, site.Front{}
		}
		return site.ReadPage(rel, p.Front.Values), site.ReadFront(p.Front.Values)
	}
	changed := s.ws.log[s.seen:]
	s.seen = len(s.ws.log)
	if s.shown == nil {
		var pages []site.Page
		var entries []site.Entry
		for _, f := range s.list() {
			p, front := read(f)
			pages, entries = append(pages, p), append(entries, site.Entry{Path: p.Path, Front: front})
		}
		s.shown = s.generator.Map()
		for i, d := range s.generator.Decide(entries, s.now) {
			s.shown.Add(pages[i], d.State.IsPage())
		}
		return s.shown
	}
	for _, f := range changed {
		p, _ := read(f)
		_, known := s.shown.Address(p.Path)
		shows := !known || s.shown.Shows(p.Path)
		if s.shown.Remove(p.Path); s.ws.exists(f) && s.editable(f) {
			s.shown.Add(p, shows)
		}
	}
	return s.shown
}

// shownAt finds the page that is shown at an address; empty where there is none.
func (s *documentation) shownAt(address string) string {
	if rel, ok := s.addresses().Find(address); ok {
		return path.Join(s.ws.docsDir, rel)
	}
	return ""
}

// addressOf is where a page is shown, as Shown gives it.
func (s *documentation) addressOf(file string) string {
	rel, _ := site.Relative(s.ws.docsDir, file)
	address, _ := s.addresses().Address(rel)
	return address
}

// roots are the folders that a path from the root may begin at.
func (s *documentation) roots() []string {
	out := []string{s.root}
	for _, dir := range []string{s.generator.Content(), s.ws.docsDir} {
		if s.generated() && s.ws.inDocs(path.Join(dir, "x")) && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// prefixes are what addresses from the site's root may begin with before those of the documentation.
func (s *documentation) prefixes() []string {
	out := []string{s.prefix}
	if s.base != s.prefix {
		out = append(out, s.base)
	}
	if s.generated() && !slices.Contains(out, "") {
		out = append(out, "") // some generators put it before links by themselves
	}
	return out
}

// findRoot finds out, where no generator says it, which folder root-relative links start from, and what stands before: the
// pair that most of them resolve with.
func (s *documentation) findRoot() error {
	list, err := s.all()
	if err != nil {
		return err
	}
	roots := []string{s.ws.docsDir}
	for _, sub := range []string{"docs", "content", "content/docs", "content/en", "src", "src/content/docs", "src/pages", "pages"} {
		if d := path.Join(s.ws.docsDir, sub); s.ws.isDir(d) {
			roots = append(roots, d)
		}
	}
	prefixes := []string{""}
	if s.base != "" {
		prefixes = append(prefixes, s.base)
	}
	if s.ws.docsDir != "" {
		prefixes = append(prefixes, path.Base(s.ws.docsDir))
	}
	prefixes = append(prefixes, "docs")
	most := 0
	for _, prefix := range prefixes {
		for _, root := range roots {
			n := 0
			for _, d := range rooted(list) {
				rel, ok := under(prefix, d)
				if ok && s.lookup(path.Join(root, rel)) != "" {
					n++
				}
			}
			if n > most {
				most, s.prefix, s.root = n, prefix, root
			}
		}
	}
	return nil
}

// rooted are the destinations in pages that begin at the site's root.
func rooted(pages []*markup.Page) (dests []string) {
	for _, p := range pages {
		for _, l := range p.Links {
			if d, _, ok := localPath(l.Dest); ok && strings.HasPrefix(d, "/") && len(d) > 1 {
				dests = append(dests, d)
			}
		}
	}
	return dests
}

// slashed tells whether links to pages end in a slash.
func (s *documentation) slashed() bool {
	if s.ends == nil {
		n := 0
		list, _ := s.all() // as far as they can be read
		for _, d := range rooted(list) {
			t := s.resolve("", markup.Link{Dest: d})
			switch {
			case t.file == "" || !isPage(t.file) || isIndex(t.file):
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

func under(prefix, dest string) (string, bool) {
	d := strings.TrimPrefix(dest, "/")
	if prefix == "" {
		return d, true
	}
	if d == prefix {
		return "", true
	}
	return strings.CutPrefix(d, prefix+"/")
}

func isPage(p string) bool { return pageExts[strings.ToLower(path.Ext(p))] }

func isIndex(p string) bool {
	switch strings.ToLower(strings.TrimSuffix(path.Base(p), path.Ext(p))) {
	case "index", "readme", "_index":
		return true
	}
	return false
}

// editable tells whether a file is a page of the documentation.
func (s *documentation) editable(p string) bool {
	return isPage(p) && s.ws.inDocs(p) && s.ws.writable(p) == nil
}

// list names the pages, in order.
func (s *documentation) list() []string {
	files := s.ws.files()
	if len(files) == 0 {
		return nil
	}
	if &files[0] == s.listedOf && s.listed != nil {
		return slices.Clone(s.listed)
	}
	out := []string{}
	for _, f := range files {
		if isPage(f) && s.editable(f) {
			out = append(out, f)
		}
	}
	s.listed, s.listedOf = out, &files[0]
	return slices.Clone(out)
}

// page parses a page as it is now.
func (s *documentation) page(p string) (*markup.Page, error) {
	src, err := s.ws.read(p)
	if err != nil {
		return nil, err
	}
	if have, ok := s.pages[p]; ok && bytes.Equal(have.Src, src) {
		return have, nil
	}
	if !isText(src) {
		return nil, refuse("%s is not text in UTF-8", p)
	}
	pg := s.ws.parse(p, src)
	s.pages[p] = pg
	return pg, nil
}

// all parses every page that can be read; one that is too large or no text is left out.
func (s *documentation) all() ([]*markup.Page, error) {
	var out []*markup.Page
	for _, f := range s.list() {
		if err := s.ws.ended(); err != nil {
			return nil, err
		}
		p, err := s.page(f)
		if err != nil {
			if _, ok := err.(*refusal); ok || notExist(err) {
				continue
			}
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// localPath splits a destination that stays on the site into its path, unescaped, and what follows.
func localPath(dest string) (p, rest string, ok bool) {
	if dest == "" || strings.HasPrefix(dest, "//") || strings.ContainsAny(dest, "{}<>") {
		return "", "", false
	}
	if i := strings.IndexAny(dest, ":/?#"); i > 0 && dest[i] == ':' {
		return "", "", false
	}
	if i := strings.IndexAny(dest, "?#"); i >= 0 {
		dest, rest = dest[:i], dest[i:]
	}
	if u, err := url.PathUnescape(dest); err == nil {
		dest = u
	}
	return strings.ReplaceAll(dest, `\`, ""), rest, true
}

func fragment(rest string) string {
	_, f, _ := strings.Cut(rest, "#")
	if u, err := url.PathUnescape(f); err == nil {
		f = u
	}
	f, _, _ = strings.Cut(f, ":~:")
	return f
}

// lookup finds the file that an address without prefix leads to; empty where there is none.
func (s *documentation) lookup(p string) string {
	p = strings.Trim(path.Clean("/"+p), "/")
	if p != "" && s.ws.exists(p) {
		return p
	}
	for _, ext := range []string{".mdx", ".md", ".markdown"} {
		if p != "" && s.ws.exists(p+ext) {
			return p + ext
		}
	}
	for _, ext := range []string{".html", ".htm"} {
		if b, ok := strings.CutSuffix(p, ext); ok {
			if f := s.lookup(b); f != "" {
				return f
			}
		}
	}
	for _, base := range []string{"index.mdx", "index.md", "README.md", "_index.md", "readme.md", "README.mdx", "index.markdown"} {
		if f := strings.TrimPrefix(p+"/"+base, "/"); s.ws.exists(f) {
			return f
		}
	}
	return ""
}

// A target is where a link leads to.
type target struct {
	local    bool   // it stays on the site
	file     string // empty where nothing is there
	fragment string
	form     linkForm
	path     string // as it was looked for, relative to the repository
	asked    string // the same as an address below the documentation's, of a link from the root

	byAddress bool   // the link names the page's address, not its file
	byAlias   bool   // it names an older address of the page, which the page takes along
	shown     string // the page's address then
	prefix    string // what a link from the root begins with before the path
	root      string // the folder that the path was found to start from
}

type linkForm uint8

const (
	sameForm   linkForm = iota // #fragment alone
	rootForm                   // /path
	fileForm                   // relative to the file's folder
	urlForm                    // relative to the page's address, taken as a folder
	besideForm                 // relative to the folder of the page's address
	siteForm                   // the whole address, beginning with the site's own
)

// resolve follows a destination from a page.
func (s *documentation) resolve(from string, l markup.Link) target {
	if own := s.own; own != "" && l.Kind != markup.AutoLink && strings.HasPrefix(l.Dest, own+"/") {
		p, rest, ok := localPath(strings.TrimPrefix(l.Dest, own))
		if !ok {
			return target{}
		}
		t := target{local: true, fragment: fragment(rest), form: siteForm}
		if t = s.rooted(t, p, ""); t.file == "" {
			return target{} // the published site may have more than this repository
		}
		return t
	}
	p, rest, ok := localPath(l.Dest)
	if !ok {
		return target{}
	}
	t := target{local: true, fragment: fragment(rest)}
	if p == "" {
		t.file, t.form = from, sameForm
		return t
	}
	if l.Kind == markup.ImportLink {
		return s.imported(from, p, t)
	}
	if strings.HasPrefix(p, "/") {
		t.form = rootForm
		first, ours := t, false
		for _, prefix := range s.prefixes() {
			rel, ok := under(prefix, p)
			if !ok {
				continue
			}
			found := s.rooted(t, rel, prefix)
			if found.file != "" {
				return found
			}
			if prefix == s.prefix {
				first, ours = found, true
			}
		}
		if f := s.static(p); f != "" {
			first.file = f
			return first
		}
		if !ours {
			return target{} // another part of the site
		}
		return first
	}
	t.form = fileForm
	t.path = path.Join(path.Dir(from), p)
	if t.file = s.lookup(t.path); t.file != "" {
		return t
	}
	shown := s.addressOf(from)
	folder, beside := path.Join("/", shown, p), path.Join("/", path.Dir(strings.TrimSuffix("/"+shown, "/")), p)
	try := []struct {
		form linkForm
		at   string
	}{{besideForm, beside}, {urlForm, folder}}
	if strings.HasSuffix(shown, "/") {
		slices.Reverse(try)
	}
	for _, c := range try {
		if f := s.shownAt(c.at); f != "" {
			t.form, t.path, t.file = c.form, f, f
			t.byAddress, t.shown = true, s.addressOf(f)
			return t
		}
	}
	if !isIndex(from) {
		if at := path.Join(stem(from), p); s.lookup(at) != "" {
			t.form, t.path, t.file = urlForm, at, s.lookup(at)
		}
	}
	return t
}

// rooted follows a path from the root of the documentation's addresses.
func (s *documentation) rooted(t target, p, prefix string) target {
	t.prefix, t.root, t.asked = prefix, s.root, strings.Trim(p, "/")
	if !pageExts[strings.ToLower(path.Ext(p))] {
		if f := s.shownAt(p); f != "" {
			t.file, t.path, t.byAddress, t.shown = f, f, true, s.addressOf(f)
			t.byAlias = site.AddressKey(p) != site.AddressKey(t.shown)
			return t
		}
	}
	for i, root := range s.roots() {
		at := path.Join(root, p)
		if i == 0 {
			t.path = at
		}
		if f := s.lookup(at); f != "" {
			t.file, t.path, t.root = f, at, root
			break
		}
	}
	return t
}

// static finds a file that is published as it is.
func (s *documentation) static(p string) string {
	for _, root := range s.roots() {
		for _, pub := range []string{"public", "static"} {
			if f := path.Join(root, pub, p); s.ws.exists(f) {
				return f
			}
		}
	}
	return ""
}

// imported follows the module of an import.
func (s *documentation) imported(from, p string, t target) target {
	switch {
	case strings.HasPrefix(p, "/"):
		rel, ok := under(s.prefix, p)
		if !ok {
			return target{}
		}
		t.form, t.path = rootForm, path.Join(s.root, rel)
	case strings.HasPrefix(p, "."):
		t.form, t.path = fileForm, path.Join(path.Dir(from), p)
	default:
		return target{} // a package
	}
	for _, ext := range []string{"", ".js", ".jsx", ".ts", ".tsx", ".mdx", ".md", ".json"} {
		if s.ws.exists(t.path + ext) {
			t.file = t.path + ext
			return t
		}
	}
	if t.form == rootForm {
		t.file = s.static(p)
	}
	return t
}

// anchors gives everything that a fragment may name on a page. The site generators' rules for slugs differ, so every
// common one is accepted.
func (s *documentation) anchors(p *markup.Page, depth int) map[string]bool {
	if a, ok := s.marked[p]; ok {
		return a
	}
	out := map[string]bool{}
	counts := map[string]int{}
	imports := false
	add := func(a string) {
		if a != "" {
			out[a] = true
			out[strings.ToLower(a)] = true
		}
	}
	for _, h := range p.Headings {
		add(h.Anchor)
		if !h.Custom {
			for _, v := range slugs(h.Text) {
				n := counts[v]
				counts[v]++
				if n == 0 {
					add(v)
				} else {
					add(fmt.Sprintf("%s-%d", v, n+1))
					add(fmt.Sprintf("%s-%d", v, n))
				}
			}
		}
	}
	for _, t := range p.Tags {
		for _, a := range t.Attrs {
			if a.Kind != "string" {
				continue
			}
			v := string(p.Src[a.Value.Start:a.Value.End])
			switch a.Name {
			case "id", "name", "anchor":
				add(v)
				for _, pre := range []string{"param-", "parameter-", "field-"} {
					for _, sl := range slugs(v) {
						add(pre + sl)
					}
				}
				fallthrough
			case "title", "label", "path", "query", "body", "header":
				for _, sl := range slugs(v) {
					add(sl)
					add("param-" + sl)
				}
			}
		}
	}
	for _, l := range p.Links {
		if l.Kind == markup.ImportLink {
			imports = true
			if depth == 0 {
				break
			}
			if t := s.resolve(p.Path, l); t.file != "" && isPage(t.file) {
				if q, err := s.page(t.file); err == nil {
					for a := range s.anchors(q, depth-1) {
						out[a] = true
					}
				}
			}
		}
	}
	if !imports {
		s.marked[p] = out
	}
	return out
}

var mintSlug = strings.NewReplacer("'", "’", ".", "-", "(", "", ")", "", " ", "-", "`", "", ",", "", "?", "", "!", "", ":", "", "\"", "")

// slugRules are the usual rules for a heading's anchor.
var slugRules = []func(text string) string{
	markup.Slug,
	func(text string) string { // Mintlify
		return mintSlug.Replace(strings.ToLower(strings.TrimSpace(text)))
	},
	func(text string) string { // VitePress, MkDocs: every run of other characters is one hyphen
		var b strings.Builder
		dash := false
		for _, r := range strings.ToLower(text) {
			if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 0x80 {
				if dash && b.Len() > 0 {
					b.WriteByte('-')
				}
				dash = false
				b.WriteRune(r)
			} else {
				dash = true
			}
		}
		return b.String()
	},
	func(text string) string {
		s := markup.Slug(text)
		for strings.Contains(s, "--") {
			s = strings.ReplaceAll(s, "--", "-")
		}
		return strings.Trim(s, "-")
	},
}

// slugs are the forms that a heading's text takes as an anchor.
func slugs(text string) []string {
	var out []string
	for _, rule := range slugRules {
		out = append(out, rule(text))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// broken lists the links of a page that lead nowhere on the site.
func (s *documentation) broken(p *markup.Page) []markup.Link {
	var out []markup.Link
	for _, l := range p.Links {
		if l.Kind == markup.ReferenceLink || l.Kind == markup.AutoLink {
			continue
		}
		t := s.resolve(p.Path, l)
		if !t.local {
			continue
		}
		if t.file == "" {
			if d, _, _ := localPath(l.Dest); t.form == rootForm && s.generator.Redirects(d) {
				continue
			}
			out = append(out, l)
			continue
		}
		if t.fragment != "" && isPage(t.file) && t.fragment != "top" && l.Kind != markup.ImportLink {
			q, err := s.page(t.file)
			if err != nil {
				continue
			}
			if !s.anchors(q, 3)[t.fragment] {
				out = append(out, l)
			}
		}
	}
	return out
}

// An inbound link leads to a page from this or another one.
type inbound struct {
	page *markup.Page
	link markup.Link
	to   target
}

// inbound lists the links that lead to a file.
func (s *documentation) inbound(file string) ([]inbound, error) {
	all, err := s.all()
	if err != nil {
		return nil, err
	}
	var out []inbound
	for _, p := range all {
		for _, l := range p.Links {
			if l.Kind == markup.ReferenceLink {
				continue
			}
			if t := s.resolve(p.Path, l); t.local && t.file == file {
				out = append(out, inbound{p, l, t})
			}
		}
	}
	return out, nil
}

// find settles which file a user's path means.
func (s *documentation) find(p string) (string, error) {
	if own := s.own; own != "" && (p == own || strings.HasPrefix(p, own+"/")) {
		p, _, _ = localPath(strings.TrimPrefix(p, own) + "/")
		if f := s.shownAt(p); f != "" {
			return f, nil
		}
	}
	if strings.HasPrefix(p, "/") && !s.ws.exists(path.Join(s.ws.docsDir, p)) { // an address goes before a path without its extension
		for _, prefix := range s.prefixes() {
			if rel, ok := under(prefix, p); ok {
				if f := s.shownAt(rel); f != "" {
					return f, nil
				}
			}
		}
	}
	name := strings.TrimPrefix(p, "./")
	name = strings.TrimPrefix(name, "/")
	if name == "" {
		return "", refuse("a path is empty")
	}
	if err := cleanPath(strings.TrimSuffix(name, "/")); err != nil {
		return "", err
	}
	name = strings.TrimSuffix(name, "/")
	var tries []string
	tries = append(tries, path.Join(s.ws.docsDir, name), path.Join(s.root, name))
	if s.ws.docsDir != "" && strings.HasPrefix(name, s.ws.docsDir+"/") {
		tries = append(tries, name)
	}
	if s.ws.docsDir != "" {
		tries = append(tries, name)
	}
	for _, t := range tries {
		for _, form := range []string{t, norm.NFC.String(t), norm.NFD.String(t)} {
			if f := s.lookup(form); f != "" && s.ws.inDocs(f) {
				return f, nil
			}
		}
	}
	for _, t := range tries {
		if err := s.ws.viaLink(t); err != nil {
			return "", err
		}
	}
	if rel, ok := under(s.prefix, name); ok && s.prefix != "" {
		if f := s.lookup(path.Join(s.root, rel)); f != "" && s.ws.inDocs(f) {
			return f, nil
		}
	}
	if f := s.shownAt(name); f != "" && s.generated() {
		return f, nil
	}
	for _, t := range tries {
		if s.ws.exists(t) && !s.ws.inDocs(t) {
			return "", refuse("%s lies outside the documentation folder %s", t, s.ws.docsDir)
		}
	}
	// A bare name is enough where one page alone has it.
	if !strings.Contains(name, "/") {
		var same []string
		for _, f := range s.list() {
			base := path.Base(f)
			if base == name || strings.TrimSuffix(base, path.Ext(base)) == name {
				same = append(same, f)
			}
		}
		if len(same) == 1 {
			return same[0], nil
		}
		if len(same) > 1 {
			return "", refuse("%s could be any of %s", quote(p), listing(same))
		}
	}
	return "", refuse("there is no page %s", quote(p))
}

func listing(l []string) string {
	const most = 8
	if len(l) <= most {
		return strings.Join(l, ", ")
	}
	return strings.Join(l[:most], ", ") + fmt.Sprintf(" and %d more", len(l)-most)
}

// fresh settles where a new page goes.
func (s *documentation) fresh(p string) (string, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(p, "./"), "/")
	if err := cleanPath(name); err != nil {
		return "", err
	}
	if !isPage(name) {
		if ext := path.Ext(name); ext != "" && textExts[strings.ToLower(ext)] {
			return "", refuse("%s is no Markdown page", quote(p))
		}
		name += s.ext()
	}
	base := s.root
	if !s.ws.inDocs(path.Join(base, "x")) {
		base = s.ws.docsDir
	}
	if s.ws.docsDir != "" && strings.HasPrefix(name, s.ws.docsDir+"/") || base != "" && strings.HasPrefix(name, base+"/") {
		return name, s.ws.writable(name)
	}
	// A path written from the documentation folder although the pages begin lower down is taken as it stands.
	if first, _, ok := strings.Cut(name, "/"); ok && base != s.ws.docsDir && !s.ws.isDir(path.Join(base, first)) && s.ws.isDir(path.Join(s.ws.docsDir, first)) {
		base = s.ws.docsDir
	}
	f := path.Join(base, name)
	return f, s.ws.writable(f)
}

// ext is the extension that most pages have.
func (s *documentation) ext() string {
	counts := map[string]int{}
	for _, f := range s.list() {
		counts[strings.ToLower(path.Ext(f))]++
	}
	best := ".md"
	if s.generator.Kind == api.SiteMintlify {
		best = ".mdx"
	}
	for _, e := range []string{".md", ".mdx", ".markdown"} {
		if counts[e] > counts[best] {
			best = e
		}
	}
	return best
}

// show names a file for people: relative to the documentation folder.
func (s *documentation) show(p string) string {
	if s.ws.docsDir == "" {
		return p
	}
	return strings.TrimPrefix(p, s.ws.docsDir+"/")
}

// matching gives the pages that a pattern fits.
func (s *documentation) matching(said, pattern string) ([]string, error) {
	for _, seg := range strings.Split(pattern, "/") {
		if seg == ".." || strings.EqualFold(seg, ".git") {
			return nil, refuse("the path %s leaves the documentation", quote(said))
		}
	}
	var out []string
	for _, f := range s.list() {
		if globbed(pattern, f) || globbed(pattern, s.show(f)) || s.root != "" && globbed(pattern, strings.TrimPrefix(f, s.root+"/")) {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return nil, refuse("no page matches %s", quote(said))
	}
	return out, nil
}

// below gives the pages of a folder, and whether there is one.
func (s *documentation) below(folder string) (pages []string, dir bool) {
	if cleanPath(folder) != nil {
		return nil, false
	}
	for _, d := range []string{path.Join(s.ws.docsDir, folder), path.Join(s.root, folder), folder} {
		if !s.ws.isDir(d) || d != s.ws.docsDir && !s.ws.inDocs(d+"/x") {
			continue
		}
		dir = true
		for _, p := range s.list() {
			if strings.HasPrefix(p, d+"/") {
				pages = append(pages, p)
			}
		}
		if len(pages) > 0 {
			break
		}
	}
	return pages, dir
}
