package links

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/site"
	"docent/site/markup"
)

// A Dead reference leads nowhere.
type Dead struct {
	Link   markup.Link
	Target Target
	Anchor bool // the page is there, what the fragment names is not
	Hidden bool // the file is there, and is no page of the site
	Asset  bool // it names no page by its form, but a picture or a download
}

// Dead lists the references of a page that lead nowhere on the site.
func (s *Resolver) Dead(p *markup.Page) (out []Dead) {
	for _, l := range p.References() {
		if l.Kind == markup.ReferenceLink || l.Kind == markup.AutoLink {
			continue
		}
		t := s.Resolve(p.Path, l)
		if !t.Local {
			continue
		}
		d := Dead{Link: l, Target: t}
		switch {
		case t.File == "":
			if l.Soft || s.lives(p.Path, l) {
				continue
			}
			ext := strings.ToLower(path.Ext(strings.TrimSuffix(t.Path, "/")))
			d.Asset = ext != "" && !site.IsPage(t.Path) && !strings.ContainsAny(ext, " 0123456789")
		case !markup.IsPage(t.File):
			continue
		case t.Form != SameForm && !l.Takes && !s.Shows(t.File):
			if s.templated(l) || l.From != markup.LinkBase { // a generator's own form finds files that are no pages
				continue
			}
			d.Hidden = true
		case t.Fragment == "" || t.Fragment == "top" || l.Takes:
			continue
		default:
			q := p
			if t.File != p.Path {
				var err error
				if q, err = s.Page(t.File); err != nil {
					continue
				}
			}
			if s.Anchors(q)[t.Fragment] {
				continue
			}
			d.Anchor = true
		}
		out = append(out, d)
	}
	return out
}

// Why says why a reference leads nowhere.
func (d *Dead) Why() string {
	switch {
	case d.Hidden:
		return d.Target.File + " is no public page"
	case d.Anchor:
		return fmt.Sprintf("%s has no anchor #%s", d.Target.File, d.Target.Fragment)
	case d.Asset || d.Link.From != markup.LinkBase:
		return "there is no such file"
	}
	return "there is no such page"
}

var localeCode = regexp.MustCompile(`^[a-z]{2}(-[A-Za-z]{2,4})?$`)

// lives reports whether the site shows something at an address that belongs to no file: a redirect, the list of a folder,
// a page that is not translated in its own language, or a name that only the theme's templates know.
func (s *Resolver) lives(from string, l markup.Link) bool {
	p, _, ok := LocalPath(l.Dest)
	if !ok || l.From != markup.LinkBase || l.Takes {
		return false
	}
	kind := s.Site.Kind
	var at []string
	if rooted, ok := strings.CutPrefix(p, "/"); ok {
		if at = []string{rooted}; s.Site.Redirects(p) {
			return true
		}
		for _, prefix := range s.Prefixes() {
			if rel, ok := Under(prefix, p); ok {
				at = append(at, rel)
			}
		}
	} else {
		if s.templated(l) {
			return true
		}
		shown := s.AddressOf(from)
		at = []string{path.Join("/", shown, p), path.Join("/", path.Dir(strings.TrimSuffix("/"+shown, "/")), p)}
		if kind == api.SiteHugo {
			at = append(at, p)
		}
	}
	for _, name := range at {
		name = site.AddressKey(site.PageKey(strings.Trim(path.Clean("/"+name), "/")))
		if name == "" || (kind == api.SiteHugo || kind == api.SiteDocusaurus) && s.Holds(name) ||
			kind == api.SiteDocusaurus && s.ShownAt(site.WithoutNumbers(name)) != "" {
			return true
		}
		if s.made(name) {
			return true
		}
		if code, rest, ok := strings.Cut(name, "/"); ok && localeCode.MatchString(code) && s.ShownAt(rest) != "" {
			return true
		}
	}
	return false
}

// templated tells a word that the templates of Hugo's theme may know.
func (s *Resolver) templated(l markup.Link) bool {
	return s.Site.Kind == api.SiteHugo && l.From == markup.LinkBase && !strings.ContainsAny(l.Dest, "/#?") && path.Ext(l.Dest) == ""
}

// made reports whether a program makes a page of this name, or a file is published as it is.
func (s *Resolver) made(name string) bool {
	folders := []string{path.Clean(s.DocsDir), path.Dir(s.Site.Config()), path.Clean(s.Site.Content())} // most often one
	slices.Sort(folders)
	for _, above := range slices.Compact(folders) {
		for _, folder := range []string{"src/pages", "pages", "static", "public"} {
			at := path.Join(above, folder, name)
			for _, ext := range []string{"", ".html", ".js", ".jsx", ".ts", ".tsx", ".vue", ".astro", ".md", ".mdx"} {
				if s.Exists(at+ext) || ext != "" && s.Exists(at+"/index"+ext) {
					return true
				}
			}
		}
	}
	return false
}

// takenDepth is how deep what a page takes in is followed for its anchors.
const takenDepth = 3

// Anchors are everything that a fragment may name on a page: what its generator makes of the headings and, since
// versions and plug-ins differ, what the common rules make of them; and what the page names itself.
func (s *Resolver) Anchors(p *markup.Page) map[string]bool { return s.anchors(p, takenDepth) }

func (s *Resolver) anchors(p *markup.Page, depth int) map[string]bool {
	if a, ok := s.Marked[p]; ok {
		return a
	}
	out := map[string]bool{}
	add := func(a string) {
		if a != "" {
			out[a], out[strings.ToLower(a)] = true, true
		}
	}
	for _, a := range s.Site.Anchors(p.Headings) {
		add(a)
	}
	counts := map[string]int{}
	for _, h := range p.Headings {
		add(h.Anchor)
		if h.Custom {
			continue
		}
		for _, v := range Slugs(h.Text) {
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
	tagAnchors(p, add)
	for _, a := range p.Names() {
		add(a)
	}
	takes := false
	for _, l := range p.References() {
		if !l.Takes {
			continue
		}
		if takes = true; depth == 0 {
			break
		}
		if t := s.Resolve(p.Path, l); t.File != "" && t.File != p.Path && markup.IsPage(t.File) {
			if q, err := s.Page(t.File); err == nil {
				for a := range s.anchors(q, depth-1) {
					out[a] = true
				}
			}
		}
	}
	if !takes && s.Marked != nil {
		s.Marked[p] = out
	}
	return out
}

// tagAnchors gives the anchors of a page's components and HTML.
func tagAnchors(p *markup.Page, add func(string)) {
	for _, t := range p.Tags {
		for _, a := range t.Attrs {
			if a.Kind != "string" {
				continue
			}
			v := string(p.Src[a.Value.Start:a.Value.End])
			named := false
			switch a.Name {
			case "id", "name", "anchor":
				named = true
				add(v)
			case "title", "label", "path", "query", "body", "header":
			default:
				continue
			}
			for _, sl := range Slugs(v) {
				add(sl)
				add("param-" + sl)
				if named {
					add("parameter-" + sl)
					add("field-" + sl)
				}
			}
		}
	}
}
