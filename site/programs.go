package site

import (
	"path"
	"slices"
	"strings"

	"docent/api"
	"docent/site/script"
)

// A Name is a text of a navigation that is a program, as it names a page.
type Name struct {
	script.Text
	ID string // the page's id there; empty if Address is set
	// Address is that of the page, with what the program puts before it.
	Address string
}

// Programs are the files, among those of the site, that hold its navigation as programs or as data of theirs. Their
// names are those that Open knows.
func (s *Site) Programs(files []string) (out []string) {
	for _, f := range files {
		dir, base := path.Split(f)
		code := slices.Contains([]string{".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".json"}, path.Ext(base))
		switch s.Kind {
		case api.SiteDocusaurus:
			versioned := strings.HasSuffix(dir, "versioned_sidebars/") && strings.HasPrefix(base, "version-")
			if code && (strings.HasPrefix(base, "sidebars.") || strings.HasPrefix(base, "docusaurus.config.") || versioned ||
				slices.ContainsFunc(s.plugins, func(p plugin) bool { return p.sidebar == path.Join(s.docsDir, f) })) {
				out = append(out, f)
			}
		case api.SiteVitePress:
			_, below, ok := strings.Cut("/"+f, "/.vitepress/")
			top, _, _ := strings.Cut(below, "/")
			if ok && code && !slices.Contains([]string{"theme", "cache", "dist"}, top) {
				out = append(out, f)
			}
		case api.SiteStarlight:
			if code && strings.HasPrefix(base, "astro.config.") {
				out = append(out, f)
			}
		}
	}
	return out
}

// Names finds the texts of a program that may name pages. file is its name as Open knows it.
func (s *Site) Names(file, src string) (out []Name) {
	for _, t := range script.Texts(src) {
		address, id := false, false
		switch s.Kind {
		case api.SiteDocusaurus:
			id = t.Key == "docId" || !strings.HasPrefix(path.Base(file), "docusaurus.config.") && (t.Key == "" || t.Key == "id")
			address = t.Key == "to" || t.Key == "href"
		case api.SiteVitePress:
			address = t.Key == "link"
		case api.SiteStarlight:
			id = t.Key == "slug" || t.Key == "" && (t.List == "items" || t.List == "sidebar")
			address = t.Key == "link"
		}
		switch {
		case id:
			out = append(out, Name{Text: t, ID: strings.Trim(t.Value, "/")})
		case address && !strings.Contains(t.Value, ":") && !strings.HasPrefix(t.Base+t.Value, "//"):
			out = append(out, Name{Text: t, Address: t.Base + t.Value})
		}
	}
	return out
}

// ID is how programs name a page that is no address of it, and the program alone that may: the page's sidebar, if it
// has one of its own. Both are empty if there is no such name.
func (s *Site) ID(p Page) (id, sidebar string) {
	switch s.Kind {
	case api.SiteStarlight:
		return AddressKey(s.Shown(p)), ""
	case api.SiteDocusaurus:
		at := s.locate(p.Path)
		pl := at.plugin
		translated := strings.HasPrefix(path.Join(s.docsDir, p.Path), path.Join(pl.root, "i18n")+"/")
		if !at.found || pl.kind != docsPlugin || translated {
			return "", "" // a translation is named by the page that it translates
		}
		rel := WithoutNumbers(strings.TrimSuffix(at.rel, path.Ext(at.rel)))
		if s.docsDir != at.plugin.folder && strings.HasPrefix(s.docsDir, at.plugin.folder+"/") {
			rel = path.Join(WithoutNumbers(strings.TrimPrefix(s.docsDir, at.plugin.folder+"/")), rel)
		}
		if p.ID != "" {
			rel = path.Join(path.Dir(rel), p.ID)
		}
		if at.version == "current" {
			return rel, at.plugin.sidebar
		}
		folder := "versioned_sidebars"
		if at.plugin.id != "default" {
			folder = at.plugin.id + "_" + folder
		}
		return rel, path.Join(at.plugin.root, folder, "version-"+at.version+"-sidebars.json")
	}
	return "", ""
}
