package agent

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"docent/api"
	"docent/markup"
)

// A site is the documentation as its readers meet it: pages, the addresses they are reached by, and the links between
// them. It reads the workspace as it is now; a page is parsed again only when its bytes have changed.
type site struct {
	ws      *workspace
	project api.Project
	kind    siteKind
	config  string // docs.json, mint.json or mkdocs.yml; empty where there is none that can be edited
	root    string // folder that "/" stands for, relative to the repository
	prefix  string // what root-relative links begin with before that, without slashes
	slashed bool   // links to pages end in a slash
	dots    *bool  // links to neighbours begin with "./"; nil when not counted yet

	listed   []string // the pages; for which list of files that holds
	listedOf *string

	pages  map[string]*markup.Page
	marked map[*markup.Page]map[string]bool // anchors of pages that import nothing
}

type siteKind string

const (
	mintlify   siteKind = "docs.json"
	mkdocs     siteKind = "MkDocs"
	docusaurus siteKind = "Docusaurus"
	vitepress  siteKind = "VitePress"
	hugo       siteKind = "Hugo"
	astro      siteKind = "Astro"
	plain      siteKind = "Markdown"
)

func openSite(ws *workspace, project api.Project) (*site, error) {
	s := &site{ws: ws, project: project, pages: map[string]*markup.Page{}, marked: map[*markup.Page]map[string]bool{}, kind: plain, root: ws.docsDir}
	depth := func(p string) int { return strings.Count(p, "/") }
	best := func(p string) bool { return s.config == "" || depth(p) < depth(s.config) }
	for _, f := range ws.files() {
		switch base := path.Base(f); {
		case (base == "docs.json" || base == "mint.json") && ws.inDocs(f) && depth(f) <= depth(ws.docsDir+"/x")+2:
			if s.kind != mintlify || best(f) {
				s.kind, s.config = mintlify, f
			}
		case s.kind == mintlify:
		case base == "mkdocs.yml" || base == "mkdocs.yaml":
			if s.kind != mkdocs || best(f) {
				s.kind, s.config = mkdocs, f
			}
		case s.kind == mkdocs:
		case strings.HasPrefix(base, "docusaurus.config."):
			s.kind = docusaurus
		case strings.Contains("/"+f, "/.vitepress/"):
			s.kind = vitepress
		case base == "hugo.toml" || base == "hugo.yaml" || base == "config.toml" && ws.isDir("content"):
			s.kind = hugo
		case strings.HasPrefix(base, "astro.config."):
			s.kind = astro
		}
	}
	if s.kind == mintlify {
		if s.root = path.Dir(s.config); s.root == "." {
			s.root = ""
		}
		return s, nil
	}
	if s.kind == mkdocs {
		src, err := ws.read(s.config)
		if err != nil {
			return nil, err
		}
		if dir := (&navigation{site: s, file: s.config, src: src, yaml: true}).yamlDir(); ws.isDir(dir) {
			s.root = dir
		}
	}
	return s, s.findRoot()
}

// findRoot finds out which folder root-relative links start from, and what stands before: the pair that most of them
// resolve with.
func (s *site) findRoot() error {
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
	if u, err := url.Parse(s.project.SiteURL); err == nil && strings.Trim(u.Path, "/") != "" {
		prefixes = append(prefixes, strings.Trim(u.Path, "/"))
	}
	if s.ws.docsDir != "" {
		prefixes = append(prefixes, path.Base(s.ws.docsDir))
	}
	prefixes = append(prefixes, "docs")
	var dests []string
	slash, bare := 0, 0
	for _, p := range list {
		for _, l := range p.Links {
			if d, _, ok := localPath(l.Dest); ok && strings.HasPrefix(d, "/") && len(d) > 1 {
				dests = append(dests, d)
			}
		}
	}
	most := 0
	for _, prefix := range prefixes {
		for _, root := range roots {
			n := 0
			for _, d := range dests {
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
	for _, d := range dests {
		if rel, ok := under(s.prefix, d); ok {
			if f := s.lookup(path.Join(s.root, rel)); f != "" && isPage(f) && !isIndex(f) {
				if strings.HasSuffix(d, "/") {
					slash++
				} else {
					bare++
				}
			}
		}
	}
	s.slashed = slash > bare
	return nil
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
func (s *site) editable(p string) bool {
	return isPage(p) && s.ws.inDocs(p) && s.ws.writable(p) == nil
}

// list names the pages, in order.
func (s *site) list() []string {
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
func (s *site) page(p string) (*markup.Page, error) {
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
	name, named := s.ws.named(p)
	if _, edited := s.ws.over[p]; edited {
		named = false
	}
	var pg *markup.Page
	if named {
		pg = s.ws.limits.shared.find(name)
	}
	if pg == nil {
		pg = markup.Parse(p, src)
		if named {
			pg = s.ws.limits.shared.keep(name, pg)
		}
	}
	if named {
		s.ws.cache[p] = pg.Src
	}
	s.pages[p] = pg
	return pg, nil
}

// all parses every page that can be read; one that is too large or no text is left out.
func (s *site) all() ([]*markup.Page, error) {
	var out []*markup.Page
	for _, f := range s.list() {
		if err := s.ws.ctx.Err(); err != nil {
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
func (s *site) lookup(p string) string {
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
}

type linkForm uint8

const (
	sameForm linkForm = iota // #fragment alone
	rootForm                 // /path
	fileForm                 // relative to the file's folder
	urlForm                  // relative to the page's address, taken as a folder
	siteForm                 // the whole address, beginning with the site's own
)

// resolve follows a destination from a page.
func (s *site) resolve(from string, l markup.Link) target {
	if own := strings.TrimSuffix(s.project.SiteURL, "/"); own != "" && l.Kind != markup.AutoLink && strings.HasPrefix(l.Dest, own+"/") {
		p, rest, ok := localPath(strings.TrimPrefix(l.Dest, own))
		if !ok {
			return target{}
		}
		at := strings.Trim(path.Join(s.root, p), "/")
		f := s.lookup(at)
		if f == "" {
			return target{} // the published site may have more than this repository
		}
		return target{local: true, file: f, fragment: fragment(rest), form: siteForm, path: at}
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
	if l.Kind == markup.ImportLink && !strings.HasPrefix(p, ".") && !strings.HasPrefix(p, "/") {
		return target{} // a package
	}
	find := func(at string) string {
		if l.Kind == markup.ImportLink {
			if s.ws.exists(at) {
				return at
			}
			for _, ext := range []string{".js", ".jsx", ".ts", ".tsx", ".mdx", ".md", ".json"} {
				if s.ws.exists(at + ext) {
					return at + ext
				}
			}
			return ""
		}
		return s.lookup(at)
	}
	if strings.HasPrefix(p, "/") {
		t.form = rootForm
		rel, ok := under(s.prefix, p)
		if ok {
			t.path = path.Join(s.root, rel)
			t.file = find(t.path)
		}
		if t.file == "" {
			for _, pub := range []string{"public", "static"} {
				if f := path.Join(s.root, pub, p); s.ws.exists(f) {
					t.file = f
				}
			}
		}
		if !ok && t.file == "" {
			return target{} // another part of the site
		}
		return t
	}
	t.form = fileForm
	t.path = path.Join(path.Dir(from), p)
	t.file = find(t.path)
	if t.file == "" && !isIndex(from) && l.Kind != markup.ImportLink {
		at := path.Join(strings.TrimSuffix(from, path.Ext(from)), p)
		if f := find(at); f != "" {
			t.form, t.path, t.file = urlForm, at, f
		}
	}
	return t
}

// anchors gives everything that a fragment may name on a page. The site generators' rules for slugs differ, so every
// common one is accepted.
func (s *site) anchors(p *markup.Page, depth int) map[string]bool {
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
func (s *site) broken(p *markup.Page, redirects map[string]string) []markup.Link {
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
			if d, _, _ := localPath(l.Dest); redirects[strings.TrimSuffix(d, "/")] != "" {
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
func (s *site) inbound(file string) ([]inbound, error) {
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
func (s *site) find(p string) (string, error) {
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
func (s *site) fresh(p string) (string, error) {
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
func (s *site) ext() string {
	counts := map[string]int{}
	for _, f := range s.list() {
		counts[strings.ToLower(path.Ext(f))]++
	}
	best := ".md"
	if s.kind == mintlify {
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
func (s *site) show(p string) string {
	if s.ws.docsDir == "" {
		return p
	}
	return strings.TrimPrefix(p, s.ws.docsDir+"/")
}
