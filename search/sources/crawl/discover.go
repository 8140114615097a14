package crawl

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"docent/search/sources/crawl/article"
)

// discover finds the pages that the site lists, and says what lists them. None are found if links are to be followed.
func (r *run) discover(ctx context.Context) ([]listed, string, error) {
	if r.settings.Sitemap == "none" {
		return nil, "following links", nil
	}
	var pages []listed
	method := ""
	if r.settings.Sitemap == "" {
		marked, at, err := r.llms(ctx)
		if err != nil {
			return nil, "", err
		}
		if len(marked) > 0 {
			pages, method = marked, fmt.Sprintf("%s (%d Markdown pages)", at, len(marked))
			if marked[0].from != "" {
				return pages, method, nil // it holds all of them
			}
		}
	}
	mapped, read, err := r.mapped(ctx)
	if err != nil {
		return nil, "", err
	}
	known := map[string]bool{}
	for _, p := range pages {
		known[sameKey(p.url)] = true
	}
	byKey := map[string]listed{}
	for _, m := range mapped {
		byKey[sameKey(m.url)] = m
	}
	for i, p := range pages { // the sitemap knows how an address ends, and when its page changed
		if m, ok := byKey[sameKey(p.url)]; ok {
			pages[i].url, pages[i].lastmod = m.url, m.lastmod
		}
	}
	within := 0
	for _, p := range mapped {
		if r.scope.outside(p.url) == "" {
			within++
			if !known[sameKey(p.url)] {
				pages = append(pages, p)
			}
		}
	}
	switch {
	case len(read) > 0 && within < 2 && len(pages) < 2:
		r.notes = append(r.notes, fmt.Sprintf("%s lists no pages below %s%s, so that links are followed", read[0], r.scope.origin,
			r.scope.prefix))
		pages = nil
	case len(read) > 0 && within > 0:
		said := read[0]
		if len(read) > 1 {
			said = fmt.Sprintf("%s and %d more sitemaps", said, len(read)-1)
		}
		method = strings.TrimPrefix(fmt.Sprintf("%s and %s (%d pages)", method, said, within), " and ")
	}
	if r.settings.Sitemap != "" && len(pages) == 0 {
		return nil, "", fmt.Errorf("%s is no sitemap, or lists no page below %s%s", r.settings.Sitemap, r.scope.origin, r.scope.prefix)
	}
	if len(pages) == 0 {
		return nil, "following links", nil
	}
	return pages, method, nil
}

// mapped returns the pages of the first group of sitemaps that exists, and their addresses.
func (r *run) mapped(ctx context.Context) (pages []listed, read []string, err error) {
	for _, at := range r.sitemapAddresses() {
		if pages, read, err = r.sitemaps(ctx, at); err != nil || len(read) > 0 {
			break
		}
	}
	return pages, read, err
}

// sitemapAddresses are the addresses at which the site may have sitemaps: those that it names before the usual ones, since
// what it names need not be there.
func (r *run) sitemapAddresses() [][]string {
	if r.settings.Sitemap != "" {
		return [][]string{{r.settings.Sitemap}}
	}
	var usual []string
	for _, dir := range r.roots() {
		usual = append(usual, dir+"sitemap.xml", dir+"sitemap_index.xml", dir+"sitemap-index.xml")
	}
	usual = slices.DeleteFunc(usual, func(at string) bool { return slices.Contains(r.listedMaps, at) }) // it is asked once
	return [][]string{r.listedMaps, usual}
}

// roots are the folders that may hold files about the site: that of the prefix, and the host's.
func (r *run) roots() []string {
	dir := r.scope.prefix
	if !strings.HasSuffix(dir, "/") {
		dir += "/"
	}
	out := []string{r.scope.origin + dir}
	if dir != "/" {
		out = append(out, r.scope.origin+"/")
	}
	return out
}

// llms reads what the site says to language models: the Markdown pages that llms.txt lists, and where it is.
func (r *run) llms(ctx context.Context) ([]listed, string, error) {
	for _, dir := range r.roots() {
		u := r.scope.parse(dir + "llms.txt")
		if u == nil || !r.allowed(u) {
			continue
		}
		resp, err := r.get(ctx, u, nil, r.crawler.o.MaxPage)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", u, err)
		}
		if resp.code != http.StatusOK || resp.kind == "text/html" {
			continue
		}
		pages, beyond := readLLMs(r.scope, u, resp.body, r.maxListed())
		if beyond {
			r.beyond()
		}
		pages = slices.DeleteFunc(pages, func(p listed) bool {
			return r.scope.outside(p.url) != "" || path.Base(p.fetch.Path) == "llms.md"
		})
		if len(pages) > 0 {
			return pages, u.String(), nil
		}
		full, err := r.full(ctx, dir)
		if err != nil || len(full) > 0 {
			return full, dir + "llms-full.txt", err
		}
	}
	return nil, "", nil
}

// full reads an llms-full.txt that says where each part of it is read: all pages in one answer.
func (r *run) full(ctx context.Context, dir string) ([]listed, error) {
	u := r.scope.parse(dir + "llms-full.txt")
	if u == nil || !r.allowed(u) {
		return nil, nil
	}
	address := u.String()
	rec := r.state.records[address]
	var held []listed
	conditions := http.Header{}
	if rec != nil && rec.Kind == isList {
		whole := true
		for _, p := range r.state.all() {
			if p.Fetch == address && p.Kind == isPage {
				at, err := url.Parse(p.URL)
				whole = whole && err == nil && r.intact(p)
				held = append(held, listed{url: at, from: address, held: true})
			}
		}
		if whole && len(held) > 0 && rec.ETag+rec.Modified != "" {
			conditions = rec.conditions()
		}
	}
	resp, err := r.get(ctx, u, conditions, fullBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u, err)
	}
	if resp.code == http.StatusNotModified {
		next := *rec
		next.Round = r.state.head.Round
		return held, r.state.put(&next)
	}
	if resp.code != http.StatusOK || resp.kind == "text/html" || resp.over {
		return nil, nil
	}
	pages, beyond := readFull(r.scope, article.Decode(resp.body, resp.header.Get("Content-Type")), r.maxListed())
	if beyond {
		r.beyond()
	}
	for i := range pages {
		pages[i].from = address
	}
	if len(pages) < 2 {
		return nil, nil
	}
	return pages, r.state.put(&record{URL: address, Kind: isList, Round: r.state.head.Round, ETag: resp.header.Get("ETag"),
		Modified: resp.header.Get("Last-Modified")})
}
