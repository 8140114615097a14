package crawl

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"docent/internal/cell"
)

const (
	sitemapBytes = 50 << 20 // of one, unpacked, as the protocol has it
	sitemapFiles = 200
	sitemapDepth = 3
)

// A listed page is one that a sitemap or llms.txt names.
type listed struct {
	url     *url.URL
	fetch   *url.URL // of its Markdown; nil if it is the page itself
	lastmod string
	trail   []string
	text    *text  // of a page that came with the list
	from    string // the list that it came with
	held    bool   // the list is unchanged, and so is its page
}

// sitemaps reads sitemaps and those that they name. Missing ones are passed over; what a server cannot answer now is an
// error, as it is not known then which pages there are.
func (r *run) sitemaps(ctx context.Context, addresses []string) (pages []listed, read []string, err error) {
	type file struct {
		address string
		depth   int
	}
	var todo []file
	for _, a := range addresses {
		todo = append(todo, file{a, 0})
	}
	seen, listedPages := map[string]bool{}, map[string]bool{}
	for len(todo) > 0 && len(seen) < sitemapFiles {
		f := todo[0]
		todo = todo[1:]
		u := r.scope.parse(f.address)
		if u == nil || u.Host != r.scope.start.Host || seen[u.String()] || f.depth > sitemapDepth {
			continue
		}
		seen[u.String()] = true
		resp, err := r.get(ctx, u, nil, sitemapBytes)
		if err != nil {
			return nil, nil, fmt.Errorf("the sitemap %s: %w", u, err)
		}
		if resp.code != http.StatusOK || resp.kind == "text/html" {
			continue
		}
		found, err := cell.Call[sitemapOutput](ctx, r.crawler.o.Cell, kindSitemap,
			sitemapInput{resp.body, r.settings, r.maxListed() - len(pages)})
		if err != nil {
			return nil, nil, fmt.Errorf("the sitemap %s: %w", u, err)
		}
		if found.Listed == 0 {
			continue
		}
		read = append(read, u.String())
		for _, e := range found.Pages {
			if page := r.scope.parse(e.Loc); page != nil && !listedPages[e.Loc] {
				listedPages[e.Loc] = true
				pages = append(pages, listed{url: page, lastmod: e.LastMod})
			}
		}
		if found.Beyond {
			r.beyond()
		}
		for _, m := range found.More {
			todo = append(todo, file{m, f.depth + 1})
		}
	}
	return pages, read, nil
}

// maxListed is how many pages are taken of all lists of a site: as many as may be asked for.
func (r *run) maxListed() int { return 4*r.max + 1000 }

// beyond notes that a site lists more than that.
func (r *run) beyond() {
	if !r.limited {
		r.notes = append(r.notes, fmt.Sprintf("the site lists more than %d pages: the others are not read (--max-pages)",
			r.maxListed()))
	}
	r.limited = true
}

var (
	markdownLink = regexp.MustCompile(`\[([^\]\n]*)\]\(\s*<?([^)\s>]+)>?[^)\n]*\)`)
	bareMarkdown = regexp.MustCompile(`https?://[^\s()<>\[\]"']+\.mdx?\b`)
)

// readLLMs reads an llms.txt: the Markdown pages that it lists, each under the address at which people read it. It
// takes no more than most; beyond tells whether there are more.
func readLLMs(sc *scope, base *url.URL, raw []byte, most int) (out []listed, beyond bool) {
	section := ""
	seen := map[string]bool{}
	for text := range strings.Lines(string(raw)) {
		if title, ok := strings.CutPrefix(text, "## "); ok {
			section = strings.TrimSpace(title)
		}
		var found []string
		for _, m := range markdownLink.FindAllStringSubmatch(text, most+1) {
			found = append(found, m[2])
		}
		if len(found) == 0 {
			found = bareMarkdown.FindAllString(text, most+1)
		}
		for _, to := range found {
			at, err := base.Parse(to)
			if err != nil {
				continue
			}
			fetch := sc.parse(at.String())
			if fetch == nil || !isMarkdown(fetch.Path) || seen[fetch.String()] {
				continue
			}
			if len(out) == most {
				return out, true
			}
			seen[fetch.String()] = true
			l := listed{url: shownAt(fetch), fetch: fetch}
			if section != "" && !strings.EqualFold(section, "optional") && !strings.EqualFold(section, "docs") {
				l.trail = []string{section}
			}
			out = append(out, l)
		}
	}
	return out, false
}

func isMarkdown(p string) bool {
	p = strings.ToLower(p)
	return strings.HasSuffix(p, ".md") || strings.HasSuffix(p, ".mdx")
}

// shownAt is where people read the page of a Markdown file: x.md is x, x.html.md is x.html, and index.md its folder.
func shownAt(fetch *url.URL) *url.URL {
	u := *fetch
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, ".mdx"), ".md")
	for _, index := range []string{"/index", "/index.html"} {
		if dir, ok := strings.CutSuffix(u.Path, index); ok {
			u.Path = dir + "/"
			break
		}
	}
	u.RawPath = ""
	return &u
}

var fullSource = regexp.MustCompile(`(?i)^(?:source|url|link)\s*:\s*<?(https?://[^\s>]+)>?\s*$`)

// readFull takes an llms-full.txt apart if it says at which address each part of it is read: into no more parts than
// most. beyond tells whether there are more.
func readFull(sc *scope, raw []byte, most int) (out []listed, beyond bool) {
	full := string(raw)
	lineAt := func(at int) string {
		if end := strings.IndexByte(full[at:], '\n'); end >= 0 {
			return full[at : at+end+1]
		}
		return full[at:]
	}
	inCode := false
	var starts []int
	for at := 0; at < len(full) && !beyond; {
		text := lineAt(at)
		if strings.HasPrefix(text, "```") {
			inCode = !inCode
		}
		if !inCode && strings.HasPrefix(text, "# ") {
			next := at + len(text)
			for n := 0; n < 3 && next < len(full); n++ {
				said := lineAt(next)
				if fullSource.MatchString(strings.TrimSpace(said)) {
					if beyond = len(starts) == most; !beyond {
						starts = append(starts, at)
					}
					break
				}
				next += len(said)
			}
		}
		at += len(text)
	}
	for n, at := range starts {
		to := len(full)
		if n+1 < len(starts) {
			to = starts[n+1]
		}
		title := lineAt(at)
		p := listed{}
		var body strings.Builder
		for text := range strings.Lines(full[at+len(title) : to]) {
			if m := fullSource.FindStringSubmatch(strings.TrimSpace(text)); m != nil && p.url == nil {
				p.url = sc.parse(m[1])
				continue
			}
			body.WriteString(text)
		}
		if p.url == nil || sc.outside(p.url) != "" {
			continue
		}
		t := readMarkdown([]byte(body.String()))
		t.Title, t.By = strings.TrimSpace(strings.TrimPrefix(title, "# ")), "llms-full.txt"
		p.text = &t
		out = append(out, p)
	}
	return out, beyond
}
