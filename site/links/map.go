package links

import (
	"slices"
	"strings"

	"docent/site"
)

// A Map finds pages by their addresses, and addresses by their pages.
type Map struct {
	site  *site.Site
	pages map[string]mapped   // by file
	files map[string][]string // by address
}

// A mapped page has the addresses that lead to it, its own one first.
type mapped struct {
	shown  string // as Shown gives it
	names  []string
	hidden bool // the site does not show the file
}

// NewMap makes a map of a site without pages.
func NewMap(s *site.Site) *Map {
	return &Map{site: s, pages: map[string]mapped{}, files: map[string][]string{}}
}

// Add adds a file. If the site does not show it, it is found only if no page has its address.
func (m *Map) Add(p site.Page, shown bool) {
	m.Remove(p.Path)
	at := mapped{shown: m.site.Shown(p), hidden: !shown}
	for _, address := range append([]string{at.shown}, p.Aliases...) {
		at.names = append(at.names, site.AddressKey(address))
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
	below := site.AddressKey(address) + "/"
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
	key := site.AddressKey(address)
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
