package pages

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"docent/agent/workspace"
)

// ByPath returns the pages that a path in somebody's words may mean: the one with that path, else those that end with it.
func (s *Site) ByPath(name string) []string {
	name = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(name), "./"), "/")
	if f, err := s.Find(name); err == nil && workspace.IsPage(f) && (strings.Contains(name, "/") || !workspace.IsIndex(name)) {
		return []string{f}
	}
	var out []string
	for _, f := range s.List() {
		if f == name || strings.HasSuffix(f, "/"+name) {
			out = append(out, f)
		}
	}
	if len(out) == 0 { // a path from elsewhere, such as the site's source: its end may be one of here
		for parts := strings.Split(name, "/"); len(parts) > 2; parts = parts[1:] {
			for _, f := range s.List() {
				if strings.HasSuffix("/"+f, "/"+strings.Join(parts[1:], "/")) {
					out = append(out, f)
				}
			}
			if len(out) > 0 {
				return out
			}
		}
	}
	return out
}

// Public returns the page that a public address shows, and the anchor on it: an address of the site, or of a file in its
// code host. An address of another site is none, unless a page's whole path is its end and at least two of its parts.
func (s *Site) Public(address string) (file, anchor string) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", ""
	}
	anchor = u.Fragment
	if s.own != "" {
		if f, err := s.Find(strings.TrimSuffix(strings.TrimSuffix(address, "#"+u.Fragment), "/")); err == nil && workspace.IsPage(f) {
			return f, anchor
		}
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if strings.HasSuffix(u.Host, "github.com") || strings.HasSuffix(u.Host, "githubusercontent.com") || slices.Contains(parts, "blob") {
		if len(parts) > 3 && workspace.IsPage(u.Path) {
			if same := s.ByPath(strings.Join(parts[3:], "/")); len(same) == 1 {
				return same[0], anchor
			}
		}
		return "", ""
	}
	if last := len(parts) - 1; last >= 0 {
		for _, e := range []string{".html", ".htm"} {
			parts[last] = strings.TrimSuffix(parts[last], e)
		}
	}
	same := s.ending(parts)
	if len(same) != 1 {
		return "", ""
	}
	return same[0], anchor
}

// ending lists the pages whose address ends like a public one, in as many parts as can be: two at least, if the page lies in
// a folder.
func (s *Site) ending(parts []string) []string {
	plain := func(p string) string {
		p = strings.ToLower(strings.ReplaceAll(p, "_", "-"))
		p = strings.TrimSuffix(p, path.Ext(p))
		return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(p, "/index"), "/_index"), "/readme")
	}
	for whole := len(parts); len(parts) > 1 || len(parts) == whole && whole > 0; parts = parts[1:] {
		want := strings.ToLower(strings.ReplaceAll(strings.Join(parts, "/"), "_", "-"))
		var out []string
		for _, f := range s.List() {
			own := plain(s.Show(f))
			if address := strings.ToLower(strings.Trim(s.AddressOf(f), "/")); address != "" && (address == want || strings.HasSuffix(address, "/"+want)) && strings.Contains(want, "/") {
				out = append(out, f)
			} else if own == want || strings.Contains(want, "/") && strings.HasSuffix(own, "/"+want) {
				out = append(out, f)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}
