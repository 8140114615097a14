package site

import (
	"net/url"
	"strings"

	"docent/internal/formats"
)

// CollectedFile lies in the root of a folder whose pages a program has collected, as from a web site, and says so. Each
// page is Markdown, whose front matter holds its address as url.
const CollectedFile = "docent.collected.json"

// Collected is what a CollectedFile holds.
type Collected struct {
	Address   string              `json:"address"`             // of the site's root, such as https://docs.example.com
	Language  string              `json:"language,omitempty"`  // that the site is written in if a page does not say it
	Trails    map[string][]string `json:"trails,omitempty"`    // the titles above a page, by the path of its file
	Addresses map[string]string   `json:"addresses,omitempty"` // of pages, by the path of their file
	Edits     map[string]string   `json:"edits,omitempty"`     // where their links for editors lead, the same
}

// openCollected reads what the collector of the pages says of all of them.
func (s *Site) openCollected(read func(string) ([]byte, error)) {
	raw, err := read(CollectedFile)
	if err != nil {
		return // a project says that its pages were collected: they hold their addresses
	}
	if err := formats.Decode(CollectedFile, raw, &s.collected); err != nil {
		s.warn(CollectedFile, "cannot be read: %v", err)
		return
	}
	if u, err := url.Parse(s.collected.Address); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		s.origin, s.stated = strings.TrimRight(u.String(), "/"), "the site that was read"
	}
}

// shownAsCollected is a page's address as Shown names it: below the site's root if it lies there, otherwise whole.
func (s *Site) shownAsCollected(address string) string {
	base := s.origin
	if s.project.SiteURL != "" {
		base = strings.TrimRight(s.project.SiteURL, "/")
	}
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if u.Scheme == "" {
		return strings.TrimPrefix(u.Path, "/")
	}
	u.Fragment = ""
	below, ok := strings.CutPrefix(u.String(), base)
	if !ok || base == "" || u.RawQuery != "" || below != "" && below[0] != '/' {
		return u.String()
	}
	if below, err = url.PathUnescape(below); err != nil {
		return u.String()
	}
	return strings.TrimPrefix(below, "/")
}
