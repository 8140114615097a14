package pages

import (
	"net/url"
	"path"
	"strings"

	"docent/agent/workspace"
	"docent/site"
	"docent/site/links"
	"docent/site/markup"
)

// Exists reports whether a file is there now.
func (s *Site) Exists(file string) bool { return s.Files.Exists(file) }

// resolver follows references on the site as it is now.
func (s *Site) resolver() *links.Resolver {
	return &links.Resolver{Tree: s, Site: &s.Generator, DocsDir: s.Files.DocsDir, Own: s.own, Base: s.base, Marked: s.marked}
}

// Resolve follows a reference from a page.
func (s *Site) Resolve(from string, l markup.Link) links.Target { return s.resolver().Resolve(from, l) }

// lookup finds the file that an address without prefix leads to; empty if there is none.
func (s *Site) lookup(p string) string { return s.resolver().Lookup(p) }

// PagesNamed lists the pages that have a name, as links.Key gives it.
func (s *Site) PagesNamed(key string) []string {
	list := s.List()
	if s.names == nil || s.namesOf != s.listedOf {
		s.names, s.namesOf = map[string][]string{}, s.listedOf
		for _, f := range list {
			s.names[links.Key(f)] = append(s.names[links.Key(f)], f)
		}
	}
	return s.names[key]
}

// PagesLabeled lists the pages that define a label of Sphinx's.
func (s *Site) PagesLabeled(label string) []string {
	if s.labels == nil || s.labeled != len(s.Files.Log) {
		s.labels, s.labeled = map[string][]string{}, len(s.Files.Log)
		all, _ := s.All() // as far as they can be read
		for _, p := range all {
			for _, l := range p.Labels() {
				s.labels[l] = append(s.labels[l], p.Path)
			}
		}
	}
	return s.labels[label]
}

// Shows reports whether a file is a page of the site.
func (s *Site) Shows(file string) bool {
	rel, _ := site.Relative(s.Files.DocsDir, file)
	return s.addresses().Shows(rel)
}

// Holds reports whether pages are shown below an address.
func (s *Site) Holds(address string) bool { return s.addresses().Holds(address) }

// Prefix is what addresses from the site's root begin with before those of the documentation.
func (s *Site) Prefix() string {
	s.seekRoot()
	return s.prefix
}

// Broken lists the references of a page that lead nowhere on the site.
func (s *Site) Broken(p *markup.Page) (out []markup.Link) {
	for _, d := range s.resolver().Dead(p) {
		if !d.Hidden { // the project may publish it in another way
			out = append(out, d.Link)
		}
	}
	return out
}

// An Inbound reference leads to a page from this or another one.
type Inbound struct {
	Page *markup.Page
	Link markup.Link
	To   links.Target
}

// Inbound lists the references that lead to a file.
func (s *Site) Inbound(file string) ([]Inbound, error) {
	all, err := s.All()
	if err != nil {
		return nil, err
	}
	var out []Inbound
	for _, p := range all {
		for _, l := range p.References() {
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
func (s *Site) Address(from string, t links.Target, file, orig string) string {
	if t.Form >= links.PathForm {
		return s.constructed(from, t, file, orig)
	}
	rooted := t.Form == links.RootForm || t.Form == links.SiteForm
	// it is shown where it was
	if t.Form == links.SameForm || t.ByAlias || t.ByAddress && rooted && s.AddressOf(file) == t.Shown {
		return orig
	}
	p, rest := orig, ""
	if i := strings.IndexAny(orig, "?#"); i >= 0 {
		p, rest = orig[:i], orig[i:]
	}
	name, slash := s.linkName(t, file, p)
	var out string
	switch {
	case t.Form == links.SiteForm:
		if out = s.own + "/" + belowRoot(t, name, file, p); slash {
			out = strings.TrimSuffix(out, "/") + "/"
		}
		return out + rest
	case t.Form == links.RootForm:
		out = "/" + path.Join(t.Prefix, belowRoot(t, name, file, p))
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

// constructed writes a reference in a generator's own form.
func (s *Site) constructed(from string, t links.Target, file, orig string) string {
	parts := strings.Split(orig, "|")
	p, anchor, found := strings.Cut(parts[t.Part], "#")
	if found {
		anchor = "#" + anchor
	}
	name := file
	if t.Bare {
		if name = workspace.Stem(file); workspace.IsIndex(file) && !workspace.IsIndex(path.Base(p)) {
			name = path.Dir(file)
		}
	}
	switch modules, module, family, rel, ok := links.Family(file); {
	case t.Form == links.LabelForm:
		return orig
	case t.Form == links.NameForm && len(s.PagesNamed(links.Key(file))) == 1:
		if p = strings.TrimSpace(p); links.Key(p) == links.Key(file) {
			return orig
		}
		if name = path.Base(name); strings.Contains(p, " ") && !strings.Contains(p, "-") {
			name = strings.ReplaceAll(name, "-", " ")
		}
	case t.Form == links.NameForm:
		name = s.fromSources(from, name)
	case ok && strings.HasPrefix(t.Root+"/", modules+"/"):
		name = rel
		if lead := strings.TrimSuffix(family, "s") + "$"; family != "pages" || strings.Contains(t.Prefix, lead) {
			name = lead + name
		}
		if _, own, _, _, _ := links.Family(from); module != own || strings.Contains(t.Prefix, ":") {
			name = module + ":" + name
		}
	case t.Form == links.NextForm:
		name = Relative(path.Dir(from), name)
		if strings.HasPrefix(p, ".") && !strings.HasPrefix(name, ".") {
			name = "./" + name
		}
	case t.Root == "" || strings.HasPrefix(name, t.Root+"/"):
		name = t.Prefix + strings.TrimPrefix(strings.TrimPrefix(name, t.Root), "/")
	default:
		name = t.Prefix + s.fromSources(from, name)
	}
	if strings.HasSuffix(p, "/") && !strings.HasSuffix(name, "/") {
		name += "/"
	}
	parts[t.Part] = name + anchor
	return strings.Join(parts, "|")
}

// fromSources is a file's path below the folder of the site's sources that it lies in.
func (s *Site) fromSources(from, name string) string {
	for _, dir := range s.resolver().Sources(from) {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok && dir != "" {
			return rest
		}
	}
	return name
}

// linkName is how a link of the form of p names a file, from the repository's root or as its address, and whether a
// slash follows.
func (s *Site) linkName(t links.Target, file, p string) (name string, slash bool) {
	slash = strings.HasSuffix(p, "/")
	ext := strings.ToLower(path.Ext(strings.TrimSuffix(p, "/")))
	html := ext == ".html" || ext == ".htm"
	switch {
	case t.ByAddress:
		at := s.AddressOf(file)
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
	case markup.IsPage(ext):
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
func (s *Site) linkFolder(t links.Target, from string) string {
	switch {
	case t.Form == links.URLForm && t.ByAddress:
		return site.AddressKey(s.AddressOf(from))
	case t.Form == links.URLForm:
		return workspace.Stem(from)
	case t.Form == links.BesideForm && t.ByAddress:
		return path.Dir(site.AddressKey(s.AddressOf(from)))
	}
	return path.Dir(from)
}

// belowRoot is a name from the root that the link starts at. Folders of files that are published as they are may be
// left out.
func belowRoot(t links.Target, name, file, p string) string {
	if !t.ByAddress && t.Root != "" {
		name = strings.TrimPrefix(strings.TrimPrefix(name, t.Root), "/")
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
			d, _, ok := links.LocalPath(l.Dest)
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
