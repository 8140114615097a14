package pages

import (
	"path"
	"strings"

	"docent/agent/workspace"
	"docent/api"
	"docent/site"
	"docent/site/links"
	"docent/site/markup"
)

// A Naming is a place where a navigation that is a program names a page.
type Naming struct {
	File string
	site.Name
	To links.Target // of an address
}

// Programs are the files that hold the navigation as programs.
func (s *Site) Programs() []string {
	var files []string
	for _, f := range s.Files.List() {
		if rel, ok := site.Relative(s.Files.DocsDir, f); ok {
			files = append(files, rel)
		}
	}
	out := s.Generator.Programs(files)
	for i, f := range out {
		out[i] = path.Join(s.Files.DocsDir, f)
	}
	return out
}

// ID is how programs name a page, and the program that may.
func (s *Site) ID(file string) (id, sidebar string) {
	rel, _ := site.Relative(s.Files.DocsDir, file)
	at := site.Page{Path: rel}
	if p, err := s.Page(file); err == nil {
		at = site.ReadPage(rel, p.Front.Values)
	}
	return s.Generator.ID(at)
}

// Namings are the places where a program names a page.
func (s *Site) Namings(program, page string) (out []Naming) {
	src, err := s.Files.Read(program)
	if err != nil || !workspace.IsText(src) {
		return nil
	}
	rel, _ := site.Relative(s.Files.DocsDir, program)
	id, sidebar := s.ID(page)
	for _, n := range s.Generator.Names(rel, string(src)) {
		if n.ID != "" {
			if n.ID == id && (program == sidebar || n.Key == "docId" || s.Generator.Kind == api.SiteStarlight) {
				out = append(out, Naming{File: program, Name: n})
			}
			continue
		}
		if t := s.Resolve(page, markup.Link{Dest: "/" + strings.TrimPrefix(n.Address, "/")}); t.File == page {
			out = append(out, Naming{program, n, t})
		}
	}
	return out
}

// Named returns the places where any program names a page.
func (s *Site) Named(page string) (out []Naming) {
	for _, program := range s.Programs() {
		out = append(out, s.Namings(program, page)...)
	}
	return out
}
