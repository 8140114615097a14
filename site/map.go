package site

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"docent/api"
)

// Relative names a file of the repository as Open knows it: by its path from the documentation folder. Of what lies
// above that folder, only the files that configure the site are known.
func Relative(docsDir, p string) (string, bool) {
	if docsDir == "" {
		return p, true
	}
	if rel, ok := strings.CutPrefix(p, docsDir+"/"); ok {
		return rel, true
	}
	dir := path.Dir(p)
	base := path.Base(p)
	if Configures(p) == "" && !Lays(p) || strings.HasPrefix(base, "_category_.") {
		return "", false
	}
	// its own folder lies beside the pages'
	for _, sub := range []string{"config/_default", ".vitepress", ".vitepress/config"} {
		if strings.HasSuffix("/"+dir, "/"+sub) {
			dir = path.Dir(dir)
			if sub != ".vitepress" {
				dir = path.Dir(dir)
			}
		}
	}
	if dir != "." && !strings.HasPrefix(docsDir+"/", dir+"/") {
		return "", false
	}
	up := strings.Count(docsDir, "/") + 1
	return strings.Repeat("../", up) + p, true
}

// Concerns reports whether a file, named as Open knows it, says something of the site as a whole.
func Concerns(p string) bool {
	return (Configures(p) != "" || Lays(p)) && !slices.Contains(strings.Split(path.Dir(p), "/"), "node_modules")
}

// Generator is what makes the site, as people call it; empty if that is not known.
func (s *Site) Generator() string { return generators[s.Kind] }

// Pages is the folder that a new page belongs in, relative to the repository's root: the content folder, or the part of
// it that holds the documentation's pages.
func (s *Site) Pages() string {
	switch s.Kind {
	case api.SiteDocusaurus:
		for _, p := range s.plugins {
			if p.kind == docsPlugin && p.id == "default" {
				return p.folder
			}
		}
	case api.SiteHugo:
		for _, t := range s.trees {
			if t.language == "" && t.mounted == "" {
				return t.folder
			}
		}
	}
	return s.content
}

// ContentFolders are the folders that paths of the generator's own start from, relative to the repository's root.
func (s *Site) ContentFolders() (out []string) {
	out = append(out, s.Pages())
	for _, t := range s.trees {
		out = append(out, t.folder)
	}
	return append(out, s.content)
}

// SnippetFolders are the folders that MkDocs takes snippets from.
func (s *Site) SnippetFolders() []string { return s.snippets }

// Base is the path at which the documentation folder is shown, without slashes at its ends: what addresses from the
// site's root begin with before that of a page.
func (s *Site) Base() string {
	if address, _ := s.Address(); address != "" {
		if u, err := url.Parse(address); err == nil {
			return strings.Trim(u.Path, "/")
		}
	}
	return s.Below()
}

// A Map finds pages by their addresses, and addresses by their pages.
type Map struct {
	site  *Site
	pages map[string]mapped   // by file
	files map[string][]string // by address
}

// A mapped page has the addresses that lead to it, its own one first.
type mapped struct {
	shown  string // as Shown gives it
	names  []string
	hidden bool // the site does not show the file
}

// Map makes a map of the site without pages.
func (s *Site) Map() *Map {
	return &Map{site: s, pages: map[string]mapped{}, files: map[string][]string{}}
}

// Add adds a file. If the site does not show it, it is found only if no page has its address.
func (m *Map) Add(p Page, shown bool) {
	m.Remove(p.Path)
	at := mapped{shown: m.site.Shown(p), hidden: !shown}
	for _, address := range append([]string{at.shown}, p.Aliases...) {
		at.names = append(at.names, AddressKey(address))
	}
	m.pages[p.Path] = at
	for _, key := range at.names {
		i, _ := slices.BinarySearch(m.files[key], p.Path)
		m.files[key] = slices.Insert(m.files[key], i, p.Path)
	}
}

// Shows reports whether a file is a page of the site.
func (m *Map) Shows(file string) bool {
	at, known := m.pages[file]
	return known && !at.hidden
}

// Holds reports whether pages are shown below an address.
func (m *Map) Holds(address string) bool {
	below := AddressKey(address) + "/"
	for _, at := range m.pages {
		if !at.hidden && strings.HasPrefix(at.shown, below) {
			return true
		}
	}
	return false
}

// Remove takes a page out.
func (m *Map) Remove(file string) {
	for _, key := range m.pages[file].names {
		m.files[key] = slices.DeleteFunc(m.files[key], func(f string) bool { return f == file })
		if len(m.files[key]) == 0 {
			delete(m.files, key)
		}
	}
	delete(m.pages, file)
}

// Find is the page at an address that is relative to the documentation folder's. If several files claim it, what the
// site shows goes before what it does not, and a page whose own address it is before one that only had it once.
func (m *Map) Find(address string) (file string, ok bool) {
	key := AddressKey(address)
	best := 0
	for _, f := range m.files[key] {
		rank := 1
		if !m.pages[f].hidden {
			rank += 2
		}
		if m.pages[f].names[0] == key {
			rank++
		}
		if rank > best {
			file, best = f, rank
		}
	}
	return file, best > 0
}

// Address is the address of a page, as Shown returns it.
func (m *Map) Address(file string) (string, bool) {
	at, ok := m.pages[file]
	return at.shown, ok
}
