package search

import (
	"net/url"
	"path"
	"strings"

	"docent/api"
	"docent/search/index"
	"docent/search/page"
	"docent/site"
)

// leadsTo is where a link on a page leads for a reader of the site: the address of the page that it names, as the
// generator would find it. What names no page stays as it is, with the base that the generator puts before it. A
// destination below the site's root is one that templates put there.
func (s *snapshot) leadsTo(from *page.Record, dest string, belowRoot bool, labels *index.Manifest) string {
	to, rest := dest, ""
	if i := strings.IndexAny(dest, "?#"); i >= 0 {
		to, rest = dest[:i], dest[i:]
	}
	inRepository := strings.HasPrefix(to, "@site/")
	to = strings.TrimPrefix(to, "@site")
	if to == "" || strings.HasPrefix(to, "//") || strings.Contains(strings.SplitN(to, "/", 2)[0], ":") {
		return dest
	}
	if plain, err := url.PathUnescape(to); err == nil {
		to = plain
	}
	if strings.HasPrefix(to, "/") && !inRepository {
		return s.leadsBelow(to, belowRoot, labels) + rest
	}
	if found := s.relativePage(from, to, labels.Site.Kind); found != nil {
		return found.URL(labels.SiteURL, "") + rest
	}
	if copies[labels.Site.Kind] && labels.SiteURL != "" && path.Ext(to) != "" && from.File == "" {
		if at := path.Join(path.Dir(from.Path), to); !strings.HasPrefix(at, "..") {
			return strings.TrimRight(labels.SiteURL, "/") + (&url.URL{Path: "/" + at}).EscapedPath() + rest
		}
	}
	return dest
}

// copies are the generators that show files other than pages at the paths that they have in the documentation folder.
var copies = map[api.SiteKind]bool{api.SiteMintlify: true}

// leadsBelow is where a link leads that begins with a slash.
func (s *snapshot) leadsBelow(to string, belowRoot bool, labels *index.Manifest) string {
	host, own := "", "" // of the documentation folder's address
	if u, err := url.Parse(labels.SiteURL); err == nil && labels.SiteURL != "" {
		own = strings.TrimRight(u.Path, "/")
		u.Path, u.RawPath, u.RawQuery, u.Fragment = "", "", "", ""
		host = u.String()
	} else if labels.Site.AddsBase && labels.Site.Base != "" {
		own = "/" + labels.Site.Base
	}
	meant := []string{to}
	switch {
	case belowRoot:
		meant = []string{own + to}
	case labels.Site.AddsBase && labels.Site.Base != "":
		meant = []string{"/" + labels.Site.Base + to, to}
		if strings.HasPrefix(to+"/", "/"+labels.Site.Base+"/") { // as some write it, though it is put before it again
			meant[0], meant[1] = meant[1], meant[0]
		}
	case labels.Site.Kind == "" || labels.Site.Kind == api.SitePlain:
		meant = append(meant, own+to)
	}
	for _, full := range meant {
		if below, ok := strings.CutPrefix(full, own); ok && (below == "" || below[0] == '/') {
			if at, ok := s.find("/" + strings.TrimPrefix(below, "/")); ok {
				return s.pages[at].URL(labels.SiteURL, "")
			}
		}
	}
	return host + (&url.URL{Path: meant[0]}).EscapedPath()
}

// relativePage is the page that a link names which does not begin with a slash; nil if it names none.
func (s *snapshot) relativePage(from *page.Record, to string, kind api.SiteKind) *page.Record {
	for _, p := range relatives(from, to, kind) {
		if at, ok := s.find(p); ok {
			return s.pages[at]
		}
	}
	if kind != api.SiteHugo || strings.Contains(to, "/") {
		return nil
	}
	var found *page.Record // the only page of this name
	for _, r := range s.pages {
		if path.Base(site.PageKey(r.Path)) != site.PageKey(to) {
			continue
		}
		if found != nil {
			return nil
		}
		found = r
	}
	return found
}

// relatives are the paths that a link may mean which does not begin with a slash. Paths of files are found beside the
// file, those of addresses beside the address.
func relatives(from *page.Record, to string, kind api.SiteKind) []string {
	if rooted, ok := strings.CutPrefix(to, "/"); ok {
		return []string{rooted}
	}
	beside := path.Join(path.Dir(from.Path), to)
	if strings.HasPrefix(beside, "..") {
		return nil // out of the documentation
	}
	folder := "/" + from.Shown
	if !strings.HasSuffix(folder, "/") {
		folder = path.Dir(folder)
	}
	shown := path.Join("/", folder, to)
	out := []string{beside, shown}
	if !site.IsPage(to) && kind != "" && kind != api.SitePlain && kind != api.SiteMintlify {
		out = []string{shown, beside}
	}
	if kind == api.SiteHugo { // as its ref finds pages
		out = append(out, "/"+to)
	}
	return out
}
