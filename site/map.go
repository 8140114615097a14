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
