package pages

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
	"docent/site/markup"
	"docent/site/script"
)

// Navigation that is a list of links in a page: mdBook's and GitBook's SUMMARY.md, docsify's and wikis' bars, Sphinx's
// toctree, Antora's nav.adoc. It is edited by lines.

// Navigates tells a page that is navigation by its name.
func Navigates(p string) bool {
	switch base := path.Base(p); strings.ToLower(base) {
	case "summary.md", "_sidebar.md", "_navbar.md":
		return true
	default:
		return strings.HasPrefix(base, "nav") && path.Ext(base) == ".adoc"
	}
}

// An Entry is a line of a list that names a page.
type Entry struct {
	Page        *markup.Page // the list
	Link        markup.Link
	File        string // that it names
	Group       string // the heading above it
	Line        markup.Span
	Lead        string // what stands before the link
	tree        bool   // of a toctree
	under, next int    // how deep it stands, and where what stands below it ends
}

// Entry is the line of a list that a reference is, if it is one.
func (s *Site) Entry(p *markup.Page, l markup.Link) (e Entry, ok bool) {
	src := p.Src
	start, end := LineStart(src, l.Span.Start), LineAfter(src, max(l.Span.Start, l.Span.End-1))
	e = Entry{Page: p, Link: l, Line: markup.Span{Start: start, End: end}, Lead: string(src[start:l.Span.Start]), tree: l.Listed}
	if l.Listed {
		e.Lead = string(src[start : start+len(src[start:end])-len(bytes.TrimLeft(src[start:end], " \t"))])
		e.next = end
		return e, true
	}
	rest := src[min(l.Span.End, end):end]
	if path.Ext(p.Path) == ".adoc" {
		_, rest, _ = bytes.Cut(src[l.At.End:end], []byte("]"))
	}
	marker := strings.TrimSpace(e.Lead)
	if !Navigates(p.Path) || marker == "" || strings.Trim(marker, "-*+.") != "" || len(bytes.TrimSpace(rest)) > 0 {
		return e, false
	}
	e.under = depthOf(e.Lead + "x")
	for e.next = end; e.next < len(src); e.next = LineAfter(src, e.next) {
		line := string(src[e.next:LineAfter(src, e.next)])
		if strings.TrimSpace(line) == "" || depthOf(line) <= e.under {
			break
		}
	}
	return e, true
}

// Holds reports whether entries stand below one.
func (e Entry) Holds() bool { return e.next > e.Line.End }

func depthOf(line string) int {
	if t := strings.TrimLeft(line, " \t"); strings.HasPrefix(t, "*") || strings.HasPrefix(t, ".") { // AsciiDoc counts marks
		return len(line) - len(t) + len(t) - len(strings.TrimLeft(t, "*."))
	}
	return len(line) - len(strings.TrimLeft(line, " \t")) + 1
}

// entries are those of all lists, in order.
func (s *Site) entries() ([]Entry, error) {
	all, err := s.All()
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, p := range all {
		refs := p.References()
		if !Navigates(p.Path) && !slices.ContainsFunc(refs, func(l markup.Link) bool { return l.Listed }) {
			continue
		}
		for _, l := range refs {
			e, ok := s.Entry(p, l)
			if !ok {
				continue
			}
			for _, h := range p.Headings {
				if h.Span.Start < e.Line.Start && h.Level > 1 {
					e.Group = h.Text
				}
			}
			e.File = s.Resolve(p.Path, l).File
			out = append(out, e)
		}
	}
	return out, nil
}

// NeedsListing reports whether the generator shows only pages that a list names.
func (s *Site) NeedsListing() bool {
	kind, _ := s.Maker()
	return kind == api.SiteMdBook || kind == api.SiteGitBook || kind == api.SiteSphinx || kind == api.SiteAntora
}

// AddToList adds a page to a list: below another one, or below those of its folder, else at the end. It returns the list, its
// new text, and the group's name; no list if there is none.
func (s *Site) AddToList(e NewEntry) (list string, out []byte, group string, err error) {
	entries, err := s.entries()
	if err != nil || len(entries) == 0 {
		return "", nil, "", err
	}
	if k := slices.IndexFunc(entries, func(x Entry) bool { return x.File == e.File }); k >= 0 {
		return "", nil, "", say.Idle("%s is in the navigation already", s.Show(e.File))
	}
	if s.globbed(entries, e.File) {
		return "", nil, "", say.Idle("%s is in the navigation already: a pattern names it", s.Show(e.File))
	}
	near, before, deeper, err := s.near(e, entries)
	if err != nil {
		return "", nil, "", err
	}
	p := near.Page
	lead := near.Lead
	if deeper {
		lead = "  " + lead
		if path.Ext(p.Path) == ".adoc" {
			lead = strings.TrimSpace(near.Lead) + "* "
		}
	}
	name := Relative(path.Dir(p.Path), e.File)
	text := "[" + strings.NewReplacer("[", `\[`, "]", `\]`).Replace(e.Title) + "](" + strings.ReplaceAll(name, " ", "%20") + ")"
	switch {
	case near.tree:
		if text = workspace.Stem(name); strings.HasPrefix(near.Link.Dest, "/") {
			text = "/" + s.fromSources(p.Path, workspace.Stem(e.File))
		}
	case near.Link.From == markup.WikiBase:
		text = "[[" + strings.ReplaceAll(workspace.Stem(path.Base(e.File)), "-", " ") + "]]"
	case path.Ext(p.Path) == ".adoc":
		text = "xref:" + s.constructed(p.Path, s.Resolve(p.Path, near.Link), e.File, near.Link.Dest) + "[" + e.Title + "]"
	}
	at := near.next
	if before {
		at = near.Line.Start
	}
	line := lead + text + EOL(p.Src)
	if at == len(p.Src) && !bytes.HasSuffix(p.Src, []byte("\n")) {
		line = EOL(p.Src) + strings.TrimSuffix(line, EOL(p.Src))
	}
	out, err = markup.Apply(p.Src, []markup.Edit{{Span: markup.Span{Start: at, End: at}, New: []byte(line)}})
	return p.Path, out, cmp.Or(near.Group, path.Base(p.Path)), err
}

// near finds the entry that a new one stands below or before, and whether it is one of its parts.
func (s *Site) near(e NewEntry, entries []Entry) (near Entry, before, deeper bool, err error) {
	if e.Group != "" {
		all := entries
		if entries = slices.DeleteFunc(slices.Clone(entries), func(x Entry) bool { return !SameFold(x.Group, e.Group) }); len(entries) == 0 {
			return near, false, false, noGroup(e.Group, all, func(x Entry) string { return x.Group })
		}
	}
	if e.After != "" || e.Before != "" {
		sib, err := s.Find(cmp.Or(e.After, e.Before))
		if err != nil {
			return near, false, false, err
		}
		k := slices.IndexFunc(entries, func(x Entry) bool { return x.File == sib })
		if k < 0 {
			return near, false, false, say.Refuse("%s is not in the navigation", s.Show(sib))
		}
		return entries[k], e.Before != "", false, nil
	}
	if e.Top {
		return entries[0], true, false, nil
	}
	last := entries[len(entries)-1]
	for _, x := range entries { // of those at the top, if none is of its folder
		if x.Page == last.Page && x.under <= last.under {
			near = x
		}
	}
	for _, x := range entries {
		if x.File == "" || path.Dir(x.File) != path.Dir(e.File) {
			continue
		}
		near, deeper = x, workspace.IsIndex(x.File) && !x.tree && path.Dir(x.File) != path.Dir(x.Page.Path)
	}
	return near, false, deeper, nil
}

var patterns = regexp.MustCompile(`(?m)^[ \t]+([^\s:*]*\*[^\s]*)[ \t]*\r?$`)

// globbed reports whether a toctree names a page by a pattern.
func (s *Site) globbed(entries []Entry, file string) bool {
	seen := map[*markup.Page]bool{}
	for _, e := range entries {
		if !e.tree || seen[e.Page] || !bytes.Contains(e.Page.Src, []byte(":glob:")) {
			continue
		}
		seen[e.Page] = true
		for _, m := range patterns.FindAllSubmatch(e.Page.Src, -1) {
			if ok, _ := path.Match(string(m[1]), Relative(path.Dir(e.Page.Path), workspace.Stem(file))); ok {
				return true
			}
		}
	}
	return false
}

// AddToProgram adds a page to a navigation that is a program, behind the last page of its folder that it names in a list of
// texts. It returns the program and its new text; none if there is no such place.
func (s *Site) AddToProgram(e NewEntry) (program string, out []byte) {
	id, _ := s.ID(e.File)
	for _, f := range s.Programs() {
		src, err := s.Files.Read(f)
		if err != nil {
			continue
		}
		var near Naming
		for _, page := range s.List() {
			if page == e.File || path.Dir(page) != path.Dir(e.File) {
				continue
			}
			for _, n := range s.Namings(f, page) {
				if n.Start > near.Start && (n.ID != "" && n.Key == "" && id != "" || s.Generator.Kind == api.SiteVitePress && n.Key == "link") {
					near = n
				}
			}
		}
		if near.File == "" {
			continue
		}
		at, text := near.End, script.Quote(id, src[near.Start])
		lead := string(src[LineStart(src, near.Start):near.Start])
		if near.Key == "link" { // { text: 'A', link: '/a' }
			m := entryObject.FindSubmatchIndex(src[LineStart(src, near.Start):])
			if m == nil {
				continue
			}
			from := LineStart(src, near.Start)
			if from+m[6] != near.Start {
				continue
			}
			link := s.Address(near.File, near.To, e.File, "/"+strings.TrimPrefix(near.Address, "/"))
			link, ok := strings.CutPrefix(link, "/"+strings.TrimPrefix(near.Base, "/"))
			if !ok {
				continue
			}
			if near.Base == "" && strings.HasPrefix(near.Value, "/") {
				link = "/" + link
			}
			at, lead = from+m[1], string(src[from:from+m[0]])
			object := string(src[from+m[0] : from+m[1]])
			base := m[0]
			text = object[:m[4]-base] + script.Quote(e.Title, src[from+m[4]]) + object[m[5]-base:m[6]-base] + script.Quote(link, src[near.Start]) + object[m[7]-base:]
		}
		if strings.TrimSpace(lead) == "" {
			lead = "," + EOL(src) + lead
		} else {
			lead = ", "
		}
		out = slices.Concat(src[:at], []byte(lead+text), src[at:])
		if len(script.Texts(string(out))) <= len(script.Texts(string(src))) {
			continue
		}
		return f, out
	}
	return "", nil
}

// entryObject is an entry of VitePress's sidebar on one line. The groups are its beginning, its text and its link.
var entryObject = regexp.MustCompile(`(\{\s*text:\s*)("[^"\n]*"|'[^'\n]*')\s*,\s*link:\s*("[^"\n]*"|'[^'\n]*')\s*,?\s*\}`)
