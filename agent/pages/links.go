package pages

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"docent/agent/workspace"
	"docent/site"
	"docent/site/markup"
)

// LocalPath splits a destination that stays on the site into its path, unescaped, and what follows.
func LocalPath(dest string) (p, rest string, ok bool) {
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

// lookup finds the file that an address without prefix leads to; empty if there is none.
func (s *Site) lookup(p string) string {
	p = strings.Trim(path.Clean("/"+p), "/")
	if p != "" && s.Files.Exists(p) {
		return p
	}
	for _, ext := range []string{".mdx", ".md", ".markdown"} {
		if p != "" && s.Files.Exists(p+ext) {
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
	for _, base := range []string{"index.mdx", "index.md", "README.md", "_index.md", "readme.md", "README.mdx",
		"index.markdown"} {
		if f := strings.TrimPrefix(p+"/"+base, "/"); s.Files.Exists(f) {
			return f
		}
	}
	return ""
}

// A Target is where a link leads.
type Target struct {
	Local    bool   // it stays on the site
	File     string // empty if nothing is there
	Fragment string
	Form     LinkForm
	Path     string // as it was looked for, relative to the repository
	asked    string // the same as an address below the documentation's, of a link from the root

	byAddress bool   // the link names the page's address, not its file
	ByAlias   bool   // it names an older address of the page, which the page takes along
	shown     string // the page's address then
	prefix    string // what a link from the root begins with before the path
	root      string // the folder that the path was found to start from
}

// A LinkForm says what the path of a link starts from.
type LinkForm uint8

const (
	SameForm   LinkForm = iota // #fragment alone
	RootForm                   // /path
	FileForm                   // relative to the file's folder
	URLForm                    // relative to the page's address, taken as a folder
	BesideForm                 // relative to the folder of the page's address
	SiteForm                   // the whole address, beginning with the site's own
)

// Resolve follows a destination from a page.
func (s *Site) Resolve(from string, l markup.Link) Target {
	if own := s.own; own != "" && l.Kind != markup.AutoLink && strings.HasPrefix(l.Dest, own+"/") {
		p, rest, ok := LocalPath(strings.TrimPrefix(l.Dest, own))
		if !ok {
			return Target{}
		}
		t := Target{Local: true, Fragment: fragment(rest), Form: SiteForm}
		if t = s.rooted(t, p, ""); t.File == "" {
			return Target{} // the published site may have more than this repository
		}
		return t
	}
	p, rest, ok := LocalPath(l.Dest)
	if !ok {
		return Target{}
	}
	t := Target{Local: true, Fragment: fragment(rest)}
	if p == "" {
		t.File, t.Form = from, SameForm
		return t
	}
	if l.Kind == markup.ImportLink {
		return s.imported(from, p, t)
	}
	if strings.HasPrefix(p, "/") {
		t.Form = RootForm
		first, ours := t, false
		for _, prefix := range s.prefixes() {
			rel, ok := under(prefix, p)
			if !ok {
				continue
			}
			found := s.rooted(t, rel, prefix)
			if found.File != "" {
				return found
			}
			if prefix == s.prefix {
				first, ours = found, true
			}
		}
		if f := s.static(p); f != "" {
			first.File = f
			return first
		}
		if !ours {
			return Target{} // another part of the site
		}
		return first
	}
	t.Form = FileForm
	t.Path = path.Join(path.Dir(from), p)
	if t.File = s.lookup(t.Path); t.File != "" {
		return t
	}
	shown := s.addressOf(from)
	folder, beside := path.Join("/", shown, p), path.Join("/", path.Dir(strings.TrimSuffix("/"+shown, "/")), p)
	try := []struct {
		form LinkForm
		at   string
	}{{BesideForm, beside}, {URLForm, folder}}
	if strings.HasSuffix(shown, "/") {
		slices.Reverse(try)
	}
	for _, c := range try {
		if f := s.shownAt(c.at); f != "" {
			t.Form, t.Path, t.File = c.form, f, f
			t.byAddress, t.shown = true, s.addressOf(f)
			return t
		}
	}
	if !workspace.IsIndex(from) {
		if at := path.Join(workspace.Stem(from), p); s.lookup(at) != "" {
			t.Form, t.Path, t.File = URLForm, at, s.lookup(at)
		}
	}
	return t
}

// rooted follows a path from the root of the documentation's addresses.
func (s *Site) rooted(t Target, p, prefix string) Target {
	t.prefix, t.root, t.asked = prefix, s.Root(), strings.Trim(p, "/")
	if !workspace.PageExts[strings.ToLower(path.Ext(p))] {
		if f := s.shownAt(p); f != "" {
			t.File, t.Path, t.byAddress, t.shown = f, f, true, s.addressOf(f)
			t.ByAlias = site.AddressKey(p) != site.AddressKey(t.shown)
			return t
		}
	}
	for i, root := range s.roots() {
		at := path.Join(root, p)
		if i == 0 {
			t.Path = at
		}
		if f := s.lookup(at); f != "" {
			t.File, t.Path, t.root = f, at, root
			break
		}
	}
	return t
}

// static finds a file that is published as it is.
func (s *Site) static(p string) string {
	for _, root := range s.roots() {
		for _, pub := range []string{"public", "static"} {
			if f := path.Join(root, pub, p); s.Files.Exists(f) {
				return f
			}
		}
	}
	return ""
}

// imported follows the module of an import.
func (s *Site) imported(from, p string, t Target) Target {
	switch {
	case strings.HasPrefix(p, "/"):
		s.seekRoot()
		rel, ok := under(s.prefix, p)
		if !ok {
			return Target{}
		}
		t.Form, t.Path = RootForm, path.Join(s.Root(), rel)
	case strings.HasPrefix(p, "."):
		t.Form, t.Path = FileForm, path.Join(path.Dir(from), p)
	default:
		return Target{} // a package
	}
	for _, ext := range []string{"", ".js", ".jsx", ".ts", ".tsx", ".mdx", ".md", ".json"} {
		if s.Files.Exists(t.Path + ext) {
			t.File = t.Path + ext
			return t
		}
	}
	if t.Form == RootForm {
		t.File = s.static(p)
	}
	return t
}

// Broken lists the links of a page that lead nowhere on the site.
func (s *Site) Broken(p *markup.Page) []markup.Link {
	var out []markup.Link
	for _, l := range p.Links {
		if l.Kind == markup.ReferenceLink || l.Kind == markup.AutoLink {
			continue
		}
		t := s.Resolve(p.Path, l)
		if !t.Local {
			continue
		}
		if t.File == "" {
			if d, _, _ := LocalPath(l.Dest); t.Form == RootForm && s.Generator.Redirects(d) {
				continue
			}
			out = append(out, l)
			continue
		}
		if t.Fragment != "" && workspace.IsPage(t.File) && t.Fragment != "top" && l.Kind != markup.ImportLink {
			q, err := s.Page(t.File)
			if err != nil {
				continue
			}
			if !s.Anchors(q, 3)[t.Fragment] {
				out = append(out, l)
			}
		}
	}
	return out
}

// An Inbound link leads to a page from this or another one.
type Inbound struct {
	Page *markup.Page
	Link markup.Link
	To   Target
}

// Inbound lists the links that lead to a file.
func (s *Site) Inbound(file string) ([]Inbound, error) {
	all, err := s.All()
	if err != nil {
		return nil, err
	}
	var out []Inbound
	for _, p := range all {
		for _, l := range p.Links {
			if l.Kind == markup.ReferenceLink {
				continue
			}
			if t := s.Resolve(p.Path, l); t.Local && t.File == file {
				out = append(out, Inbound{p, l, t})
			}
		}
	}
	return out, nil
}

// Address writes the destination of a link from a page to a file, in the form that the link had when it led to t.
func (s *Site) Address(from string, t Target, file, orig string) string {
	rooted := t.Form == RootForm || t.Form == SiteForm
	// it is shown where it was
	if t.Form == SameForm || t.ByAlias || t.byAddress && rooted && s.addressOf(file) == t.shown {
		return orig
	}
	p, rest := orig, ""
	if i := strings.IndexAny(orig, "?#"); i >= 0 {
		p, rest = orig[:i], orig[i:]
	}
	name, slash := s.linkName(t, file, p)
	var out string
	switch {
	case t.Form == SiteForm:
		if out = s.own + "/" + belowRoot(t, name, file, p); slash {
			out = strings.TrimSuffix(out, "/") + "/"
		}
		return out + rest
	case t.Form == RootForm:
		out = "/" + path.Join(t.prefix, belowRoot(t, name, file, p))
	default:
		if out = Relative(s.linkFolder(t, from), name); out == "" {
			out = "."
		}
		if (strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../") && s.dotted(from)) && !strings.HasPrefix(out, ".") {
			out = "./" + out
		}
	}
	if slash && !strings.HasSuffix(out, "/") {
		out += "/"
	} else if !slash && out != "/" {
		out = strings.TrimSuffix(out, "/")
	}
	if strings.Contains(p, "%") || strings.ContainsAny(out, " ()") {
		out = (&url.URL{Path: out}).EscapedPath()
		out = strings.NewReplacer("(", "%28", ")", "%29").Replace(out)
	}
	return out + rest
}

// linkName is how a link of the form of p names a file, from the repository's root or as its address, and whether a
// slash follows.
func (s *Site) linkName(t Target, file, p string) (name string, slash bool) {
	slash = strings.HasSuffix(p, "/")
	ext := strings.ToLower(path.Ext(strings.TrimSuffix(p, "/")))
	html := ext == ".html" || ext == ".htm"
	switch {
	case t.byAddress:
		at := s.addressOf(file)
		name = site.AddressKey(at)
		if html && name != "" && !strings.HasSuffix(at, "/") {
			return name + ext, false
		}
		if workspace.IsIndex(t.File) && !workspace.IsIndex(file) {
			slash = s.slashed()
		}
		return name, slash
	case !workspace.IsPage(file):
		return file, slash
	case workspace.PageExts[ext]:
		return file, false
	case html:
		return workspace.Stem(file) + ext, false
	case workspace.IsIndex(path.Base(p)): // it says so
		return workspace.Stem(file), slash
	case workspace.IsIndex(file):
		if dir := path.Dir(file); dir != "." {
			return dir, slash
		}
		return "", slash
	case workspace.IsIndex(t.File):
		slash = s.slashed()
	}
	return workspace.Stem(file), slash
}

// linkFolder is what a relative link of a page starts from.
func (s *Site) linkFolder(t Target, from string) string {
	switch {
	case t.Form == URLForm && t.byAddress:
		return site.AddressKey(s.addressOf(from))
	case t.Form == URLForm:
		return workspace.Stem(from)
	case t.Form == BesideForm && t.byAddress:
		return path.Dir(site.AddressKey(s.addressOf(from)))
	}
	return path.Dir(from)
}

// belowRoot is a name from the root that the link starts at. Folders of files that are published as they are may be
// left out.
func belowRoot(t Target, name, file, p string) string {
	if !t.byAddress && t.root != "" {
		name = strings.TrimPrefix(strings.TrimPrefix(name, t.root), "/")
	}
	for _, pub := range []string{"public/", "static/"} {
		if !workspace.IsPage(file) && strings.HasPrefix(name, pub) && !strings.HasPrefix(strings.TrimPrefix(p, "/"), pub) {
			return strings.TrimPrefix(name, pub)
		}
	}
	return name
}

// dotted reports whether links to a page's neighbors begin with "./": on the page or, if it has none, on the site.
func (s *Site) dotted(from string) bool {
	count := func(p *markup.Page) (n int) {
		for _, l := range p.Links {
			d, _, ok := LocalPath(l.Dest)
			switch {
			case !ok || d == "" || l.Kind == markup.ImportLink || strings.HasPrefix(d, "/") || strings.HasPrefix(d, "../"):
			case strings.HasPrefix(d, "./"):
				n++
			default:
				n--
			}
		}
		return n
	}
	if s.Files.Exists(from) {
		if p, err := s.Page(from); err == nil {
			if n := count(p); n != 0 {
				return n > 0
			}
		}
	}
	if s.dots == nil {
		n := 0
		if all, err := s.All(); err == nil {
			for _, p := range all {
				n += count(p)
			}
		}
		dots := n > 0
		s.dots = &dots
	}
	return *s.dots
}

// Relative returns the way from a folder to a file, both relative to the repository.
func Relative(dir, to string) string {
	if dir == "." || dir == "" {
		return to
	}
	a, b := strings.Split(dir, "/"), strings.Split(to, "/")
	if to == "" {
		b = nil
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return strings.TrimSuffix(strings.Repeat("../", len(a)-i)+strings.Join(b[i:], "/"), "/")
}
