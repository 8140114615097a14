// Package links follows the references of pages: Markdown's links and what generators take in or look up, from the
// text that names something to the file that it means and the anchor on it. Search, checks and edits all follow them
// here.
package links

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"docent/api"
	"docent/site"
	"docent/site/markup"
)

// A Tree is the documentation that references are followed in. Files are named relative to the repository.
type Tree interface {
	Exists(file string) bool
	Page(file string) (*markup.Page, error)
	ShownAt(address string) string      // the page at an address below the documentation's; empty if there is none
	AddressOf(file string) string       // as site.Shown gives it
	PagesNamed(key string) []string     // the pages that Key gives a name for
	PagesLabeled(label string) []string // the pages of Sphinx that define a label
	Shows(file string) bool             // the file is a page of the site
	Holds(address string) bool          // pages are shown below an address
	Root() string                       // the folder that paths from the root begin at
	Prefix() string                     // what addresses from the site's root begin with before that, without slashes
}

// A Resolver follows references.
type Resolver struct {
	Tree
	Site    *site.Site
	DocsDir string
	Own     string                           // public address of the documentation folder; empty if not known
	Base    string                           // the path of that
	Marked  map[*markup.Page]map[string]bool // the anchors of pages that take nothing in, kept; nil to keep none
}

// Key is the name of a page as wikis and short names of Hugo's compare it.
func Key(name string) string {
	base := path.Base(name)
	if markup.IsPage(base) {
		base = stem(base)
	}
	return strings.ToLower(strings.NewReplacer(" ", "-", "_", "-").Replace(base))
}

func stem(p string) string { return strings.TrimSuffix(p, path.Ext(p)) }

// IsIndex tells the page of a folder itself by its name.
func IsIndex(p string) bool {
	switch strings.ToLower(stem(path.Base(p))) {
	case "index", "readme", "_index":
		return true
	}
	return false
}

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

// indexes are the names of a folder's own page.
var indexes = []string{"index.mdx", "index.md", "README.md", "_index.md", "readme.md", "README.mdx", "index.markdown"}

// Lookup finds the file that an address without prefix leads to; empty if there is none.
func (s *Resolver) Lookup(p string) string {
	p = strings.Trim(path.Clean("/"+p), "/")
	if p != "" && s.Exists(p) {
		return p
	}
	for _, ext := range []string{".mdx", ".md", ".markdown"} {
		if p != "" && s.Exists(p+ext) {
			return p + ext
		}
	}
	for _, ext := range []string{".html", ".htm"} {
		if b, ok := strings.CutSuffix(p, ext); ok {
			if f := s.Lookup(b); f != "" {
				return f
			}
		}
	}
	for _, base := range indexes {
		if f := strings.TrimPrefix(p+"/"+base, "/"); s.Exists(f) {
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
	Form     Form
	Path     string // as it was looked for, relative to the repository
	Asked    string // the same as an address below the documentation's, of a link from the root

	ByAddress bool   // the link names the page's address, not its file
	ByAlias   bool   // it names an older address of the page, which the page takes along
	Shown     string // the page's address then
	Prefix    string // what a link from the root begins with before the path
	Root      string // the folder that the path was found to start from

	Bare bool // of PathForm and NameForm: the extension, or the index of a folder, is not written
	Part int  // of a wiki's link of two parts: the one that names the page
}

// A Form says what the path of a link starts from.
type Form uint8

const (
	SameForm   Form = iota // #fragment alone
	RootForm               // /path
	FileForm               // relative to the file's folder
	URLForm                // relative to the page's address, taken as a folder
	BesideForm             // relative to the folder of the page's address
	SiteForm               // the whole address, beginning with the site's own
	PathForm               // a generator's: from Root, behind Prefix
	NextForm               // a generator's: relative to the file's folder
	NameForm               // a name that one page has
	LabelForm              // a label that stands on the page, wherever that is
)

// Rooted reports whether a link of this form means the same on whichever page it stands.
func (f Form) Rooted() bool {
	return f == RootForm || f == SiteForm || f == PathForm || f == NameForm || f == LabelForm
}

// Resolve follows a reference from a page.
func (s *Resolver) Resolve(from string, l markup.Link) Target {
	if l.From != markup.LinkBase {
		return s.construct(from, l)
	}
	if own := s.Own; own != "" && l.Kind != markup.AutoLink && strings.HasPrefix(l.Dest, own+"/") {
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
	if strings.HasPrefix(p, "@site/") { // Docusaurus's
		return s.construct(from, markup.Link{Kind: l.Kind, From: markup.SourceBase, Dest: p + rest})
	}
	if l.Kind == markup.ImportLink || l.Kind == markup.IncludeLink && l.Takes {
		return s.imported(from, p, t)
	}
	if strings.HasPrefix(p, "/") {
		return s.fromRoot(t, p)
	}
	t.Form = FileForm
	t.Path = path.Join(path.Dir(from), p)
	if t.File = s.Lookup(t.Path); t.File != "" {
		return t
	}
	shown := s.AddressOf(from)
	folder, beside := path.Join("/", shown, p), path.Join("/", path.Dir(strings.TrimSuffix("/"+shown, "/")), p)
	try := []struct {
		form Form
		at   string
	}{{BesideForm, beside}, {URLForm, folder}}
	if strings.HasSuffix(shown, "/") {
		slices.Reverse(try)
	}
	for _, c := range try {
		if f := s.ShownAt(c.at); f != "" {
			t.Form, t.Path, t.File = c.form, f, f
			t.ByAddress, t.Shown = true, s.AddressOf(f)
			return t
		}
	}
	if !IsIndex(from) {
		if at := path.Join(stem(from), p); s.Lookup(at) != "" {
			t.Form, t.Path, t.File = URLForm, at, s.Lookup(at)
		}
	}
	return t
}

// fromRoot follows a path that begins with a slash.
func (s *Resolver) fromRoot(t Target, p string) Target {
	t.Form = RootForm
	first, ours := t, false
	_, adds := s.Site.LinkBase() // the generator puts it there by itself: the link stays on the site
	for _, prefix := range s.Prefixes() {
		rel, ok := Under(prefix, p)
		if !ok {
			continue
		}
		found := s.rooted(t, rel, prefix)
		if found.File != "" {
			return found
		}
		if prefix == s.Prefix() || prefix == "" && adds && !ours {
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

// Generated reports whether it is known what makes the site, and so where its pages are shown.
func (s *Resolver) Generated() bool { return s.Site.Kind != "" && s.Site.Kind != api.SitePlain }

// Prefixes are what addresses from the site's root may begin with before those of the documentation.
func (s *Resolver) Prefixes() []string {
	out := []string{s.Prefix()}
	if s.Base != out[0] {
		out = append(out, s.Base)
	}
	if s.Generated() && !slices.Contains(out, "") {
		out = append(out, "") // some generators put it before links by themselves
	}
	return out
}

// roots are the folders that a path from the root may begin at.
func (s *Resolver) roots() []string {
	out := []string{s.Root()}
	for _, dir := range []string{s.Site.Content(), s.DocsDir} {
		if s.Generated() && s.inDocs(path.Join(dir, "x")) && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

func (s *Resolver) inDocs(p string) bool {
	return s.DocsDir == "" || strings.HasPrefix(p, s.DocsDir+"/")
}

// Under takes what addresses begin with off a path from the root.
func Under(prefix, dest string) (string, bool) {
	d := strings.TrimPrefix(dest, "/")
	if prefix == "" {
		return d, true
	}
	if d == prefix {
		return "", true
	}
	return strings.CutPrefix(d, prefix+"/")
}

// rooted follows a path from the root of the documentation's addresses.
func (s *Resolver) rooted(t Target, p, prefix string) Target {
	t.Prefix, t.Root, t.Asked = prefix, s.Root(), strings.Trim(p, "/")
	if !markup.IsPage(p) {
		if f := s.ShownAt(p); f != "" {
			t.File, t.Path, t.ByAddress, t.Shown = f, f, true, s.AddressOf(f)
			t.ByAlias = site.AddressKey(p) != site.AddressKey(t.Shown)
			return t
		}
	}
	for i, root := range s.roots() {
		at := path.Join(root, p)
		if i == 0 {
			t.Path = at
		}
		if f := s.Lookup(at); f != "" {
			t.File, t.Path, t.Root = f, at, root
			break
		}
	}
	return t
}

// static finds a file that is published as it is.
func (s *Resolver) static(p string) string {
	for _, root := range s.staticRoots() {
		for _, pub := range []string{"public", "static"} {
			if f := path.Join(root, pub, p); s.Exists(f) {
				return f
			}
		}
	}
	return ""
}

// staticRoots are the folders that may hold what is published as it is.
func (s *Resolver) staticRoots() []string {
	out := s.roots()
	if config := s.Site.Config(); config != "" {
		out = append(out, path.Dir(config))
	}
	return out
}

// imported follows the module of an import.
func (s *Resolver) imported(from, p string, t Target) Target {
	switch {
	case strings.HasPrefix(p, "/"):
		rel, ok := Under(s.Prefix(), p)
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
		if s.Exists(t.Path + ext) {
			t.File = t.Path + ext
			return t
		}
	}
	if t.Form == RootForm {
		t.File = s.static(p)
	}
	return t
}
