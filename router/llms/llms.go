// Package llms writes documentation for machines that read: llms.txt (https://llmstxt.org), which lists the pages with
// where each is as Markdown, and llms-full.txt, which is all of them in one text. Only what every reader may find is
// in them.
package llms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
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
	name := p.Name
	if name == "" {
		name = p.Domain
	}
	fmt.Fprintf(&b, "# %s\n\n> The documentation at %s, a page a line.\n", brief.Line(name), p.Domain)
	section := "\x00"
	var others []search.PageInfo
	for _, page := range pages {
		if !read(page) {
			others = append(others, page)
			continue
		}
		folder, _, inside := strings.Cut(page.Path, "/")
		if strings.HasPrefix(folder, "@") && page.Source != "" {
			folder = page.Source // a further source
		}
		if !inside {
			folder = "Pages"
		}
		if folder != section {
			section = folder
			fmt.Fprintf(&b, "\n## %s\n\n", brief.Line(folder))
		}
		entry(&b, page, base)
	}
	if len(others) > 0 { // the format's name for what may be left out
		b.WriteString("\n## Optional\n\n")
		for _, page := range others {
			entry(&b, page, base)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func entry(b *strings.Builder, p search.PageInfo, base string) {
	fmt.Fprintf(b, "- [%s](%s)", strings.NewReplacer("[", `\[`, "]", `\]`).Replace(brief.Line(p.Title)), base+"/"+File(p))
	if p.Description != "" {
		b.WriteString(": " + brief.Line(p.Description))
	}
	if p.Version != "" && !p.Current {
		b.WriteString(" (version " + brief.Line(p.Version) + ")")
	}
	b.WriteString("\n")
}

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

// File is the name under which a page is as Markdown: its path with the ending .md.
func File(p search.PageInfo) string { return strings.TrimSuffix(p.Path, path.Ext(p.Path)) + ".md" }
