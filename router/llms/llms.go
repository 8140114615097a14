// Package llms writes documentation for machines that read: llms.txt (https://llmstxt.org), which lists the pages with
// where each is as Markdown, and llms-full.txt, which is all of them in one text. Only what every reader may find is
// in them.
package llms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"docent/api"
	"docent/internal/brief"
	"docent/search"
)

// Pages are the published pages of projects. A page that does not exist is api.ErrNotFound.
type Pages interface {
	Published(ctx context.Context, project api.ProjectID) ([]search.PageInfo, error)
	Page(ctx context.Context, project api.ProjectID, path string, groups []string) (search.Page, error)
}

// Index writes llms.txt. Base is the address below which each page is as Markdown, without a slash at the end.
func Index(w io.Writer, p api.Project, pages []search.PageInfo, base string) error {
	var b strings.Builder
	name := cmp.Or(p.Name, p.Domain)
	about := "The documentation at " + p.Domain + ", a page a line."
	for _, page := range pages {
		if read(page) && page.Source == pages[0].Source && page.Description != "" && home(page, p.SiteURL) {
			about = page.Description
		}
	}
	fmt.Fprintf(&b, "# %s\n\n> %s\n", brief.Line(name), brief.Line(about))
	var others []search.PageInfo
	var sections []string // in the order of the navigation, as far as it is known
	in := map[string][]search.PageInfo{}
	groups := map[string]bool{}  // of the navigation
	ordered := map[string]bool{} // sources that have one
	for _, page := range pages {
		ordered[page.Source] = ordered[page.Source] || page.Order > 0
		if len(page.Crumbs) > 0 {
			groups[page.Crumbs[0]] = true
		}
	}
	for _, page := range inOrder(pages) {
		if !read(page) {
			others = append(others, page)
			continue
		}
		name := section(page)
		switch {
		case len(page.Crumbs) > 0 || strings.HasPrefix(page.Path, "@"):
		case groups[label(page)]: // the page that a group's own name leads to
			name = label(page)
		case ordered[page.Source] && page.Order == 0:
			name = "Other pages"
		}
		if len(in[name]) == 0 {
			sections = append(sections, name)
		}
		in[name] = append(in[name], page)
	}
	for _, name := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n", brief.Line(name))
		for _, page := range in[name] {
			entry(&b, p, page, base)
		}
	}
	if len(others) > 0 { // the format's name for what may be left out
		b.WriteString("\n## Optional\n\n")
		for _, page := range others {
			entry(&b, p, page, base)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// inOrder puts the pages of each source's navigation in its order, before the others, which stay in the order of their paths.
func inOrder(pages []search.PageInfo) []search.PageInfo {
	pages = slices.Clone(pages)
	for from, to := 0, 0; from < len(pages); from = to {
		for to < len(pages) && pages[to].Source == pages[from].Source {
			to++
		}
		slices.SortStableFunc(pages[from:to], func(a, b search.PageInfo) int {
			return cmp.Compare(uint(a.Order-1), uint(b.Order-1)) // 0, of no known place, comes last
		})
	}
	return pages
}

// home reports whether a page is where the site begins.
func home(p search.PageInfo, site string) bool {
	file := File(p, site)
	return file == "index.html.md" || strings.EqualFold(file, "index.md") || strings.EqualFold(file, "readme.md")
}

// Write writes the file of that name and returns its path: llms.txt, or a page, to those who accept Markdown by its address
// without .md too. It fails with api.ErrNotFound if there is none.
func Write(ctx context.Context, w io.Writer, name string, markdown bool, p api.Project, from Pages, base string) (string, error) {
	if name == "llms.txt" {
		pages, err := from.Published(ctx, p.ID)
		if err != nil {
			return "", err
		}
		return name, Index(w, p, pages, base)
	}
	path, ok := Asked(name)
	if !ok && !markdown {
		return "", api.ErrNotFound
	}
	page, err := from.Page(ctx, p.ID, path, nil)
	if err != nil {
		return "", err
	}
	return page.Path, Page(w, page)
}

// section is the group of the navigation that a page is in, or its folder.
func section(p search.PageInfo) string {
	folder, _, inside := strings.Cut(p.Path, "/")
	switch {
	case strings.HasPrefix(folder, "@") && p.Source != "":
		return p.Source // a further source
	case len(p.Crumbs) > 0:
		return p.Crumbs[0]
	case !inside, p.Order > 0: // at the top of the navigation
		return "Pages"
	}
	return folder
}

// label is what the navigation calls a page.
func label(p search.PageInfo) string { return cmp.Or(p.Label, p.Title) }

func entry(b *strings.Builder, of api.Project, p search.PageInfo, base string) {
	fmt.Fprintf(b, "- [%s](%s)", strings.NewReplacer("[", `\[`, "]", `\]`).Replace(brief.Line(label(p))), base+"/"+escaped(File(p, of.SiteURL)))
	if p.Description != "" {
		b.WriteString(": " + brief.Line(p.Description))
	}
	if p.Version != "" && !p.Current {
		b.WriteString(" (version " + brief.Line(p.Version) + ")")
	}
	b.WriteString("\n")
}

// escaped is a file's name in an address.
func escaped(file string) string { return (&url.URL{Path: file}).EscapedPath() }

// read reports whether a page is of the version and the language that readers get by default.
func read(p search.PageInfo) bool { return p.Current && p.Own }

// Full writes llms-full.txt: every page of the current version in the site's own language.
func Full(ctx context.Context, w io.Writer, p api.Project, from Pages) error {
	pages, err := from.Published(ctx, p.ID)
	if err != nil {
		return err
	}
	for _, info := range pages {
		if !read(info) {
			continue
		}
		page, err := from.Page(ctx, p.ID, info.Path, nil)
		if errors.Is(err, api.ErrNotFound) {
			continue // it went since
		}
		if err != nil {
			return err
		}
		if err := Page(w, page); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n\n"); err != nil {
			return err
		}
	}
	return nil
}

// Page writes one page as Markdown, with its title and where readers find it.
func Page(w io.Writer, p search.Page) error {
	text := strings.TrimSpace(p.Content)
	if !strings.HasPrefix(text, "# ") {
		text = "# " + brief.Line(p.Title) + "\n\n" + text
	}
	title, rest, _ := strings.Cut(text, "\n")
	_, err := fmt.Fprintf(w, "%s\n\nSource: %s\n\n%s\n", title, p.URL, strings.TrimSpace(rest))
	return err
}

// File is the name under which a page is as Markdown, by the convention: its address on the site with the ending .md,
// that of a folder with index.html.md. A page that the site has no address for is at its path.
func File(p search.PageInfo, site string) string {
	site = strings.TrimRight(site, "/")
	address, ok := strings.CutPrefix(p.URL, site+"/")
	if p.URL == site {
		address, ok = "", true
	}
	if address, _, _ = strings.Cut(address, "#"); !ok || site == "" || strings.ContainsAny(address, "?\\") || !clean(address) {
		return strings.TrimSuffix(p.Path, path.Ext(p.Path)) + ".md"
	}
	if plain, err := url.PathUnescape(address); err == nil && clean(plain) {
		address = plain
	}
	if address == "" || strings.HasSuffix(address, "/") {
		address += "index.html"
	}
	return address + ".md"
}

// clean reports whether an address leads nowhere but down.
func clean(address string) bool {
	return path.Clean("/"+address) == strings.TrimRight("/"+address, "/") || address == ""
}

// Asked is what a file's name asks for: the path or the address of a page.
func Asked(file string) (page string, ok bool) {
	page, ok = strings.CutSuffix(file, ".md")
	if page == "index.html" {
		return "/", ok
	}
	return strings.TrimSuffix(page, "/index.html"), ok
}
