package crawl

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html/charset"
)

const (
	sitemapBytes = 50 << 20 // of one, unpacked, as the protocol has it
	sitemapFiles = 200
	sitemapDepth = 3
)

// A listed page is one that a sitemap or llms.txt names.
type listed struct {
	url     *url.URL
	fetch   *url.URL // of its Markdown; nil where it is the page itself
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
	seen := map[string]bool{}
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
		entries, more := readSitemap(resp.body)
		if len(entries)+len(more) == 0 {
			continue
		}
		read = append(read, u.String())
		for _, e := range entries {
			if page := r.scope.parse(e.Loc); page != nil {
				pages = append(pages, listed{url: page, lastmod: strings.TrimSpace(e.LastMod)})
			}
		}
		for _, m := range more {
			todo = append(todo, file{m.Loc, f.depth + 1})
		}
	}
	return pages, read, nil
}

type sitemapEntry struct {
	Loc     string `xml:"loc"`
	LastMod string `xml:"lastmod"`
}

// readSitemap reads a sitemap, packed or not: the pages and the sitemaps that it names. One without XML has an address
// on each line.
func readSitemap(raw []byte) (pages, more []sitemapEntry) {
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, nil
		}
		if raw, err = io.ReadAll(io.LimitReader(z, sitemapBytes)); err != nil {
			return nil, nil
		}
	}
	if text := bytes.TrimSpace(raw); len(text) > 0 && text[0] != '<' && !bytes.HasPrefix(text, []byte("\xef\xbb\xbf<")) {
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "http") {
				pages = append(pages, sitemapEntry{Loc: line})
			}
		}
		return pages, nil
	}
	d := xml.NewDecoder(bytes.NewReader(raw))
	d.Strict, d.CharsetReader = false, charset.NewReaderLabel
	for {
		token, err := d.Token()
		if err != nil { // what could be read of it counts
			return pages, more
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "url" && start.Name.Local != "sitemap" {
			continue
		}
		var e sitemapEntry
		if d.DecodeElement(&e, &start) != nil || strings.TrimSpace(e.Loc) == "" {
			continue
		}
		if start.Name.Local == "url" {
			pages = append(pages, e)
		} else {
			more = append(more, e)
		}
	}
}

var (
	markdownLink = regexp.MustCompile(`\[([^\]\n]*)\]\(\s*<?([^)\s>]+)>?[^)\n]*\)`)
	bareMarkdown = regexp.MustCompile(`https?://[^\s()<>\[\]"']+\.mdx?\b`)
)

// readLLMs reads an llms.txt: the Markdown pages that it lists, each under the address at which people read it.
func readLLMs(sc *scope, base *url.URL, raw []byte) (out []listed) {
	section := ""
	seen := map[string]bool{}
	for text := range strings.Lines(string(raw)) {
		if title, ok := strings.CutPrefix(text, "## "); ok {
			section = strings.TrimSpace(title)
		}
		var found []string
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			found = append(found, m[2])
		}
		if len(found) == 0 {
			found = bareMarkdown.FindAllString(text, -1)
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
			seen[fetch.String()] = true
			l := listed{url: shownAt(fetch), fetch: fetch}
			if section != "" && !strings.EqualFold(section, "optional") && !strings.EqualFold(section, "docs") {
				l.trail = []string{section}
			}
			out = append(out, l)
		}
	}
	return out
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

// readFull takes an llms-full.txt apart where it says at which address each part of it is read.
func readFull(sc *scope, raw []byte) (out []listed) {
	all := strings.SplitAfter(string(raw), "\n")
	inCode := false
	var starts []int
	for i, text := range all {
		if strings.HasPrefix(text, "```") {
			inCode = !inCode
		}
		if inCode || !strings.HasPrefix(text, "# ") {
			continue
		}
		for _, next := range all[i+1 : min(len(all), i+4)] {
			if fullSource.MatchString(strings.TrimSpace(next)) {
				starts = append(starts, i)
				break
			}
		}
	}
	for n, i := range starts {
		to := len(all)
		if n+1 < len(starts) {
			to = starts[n+1]
		}
		p := listed{}
		var body strings.Builder
		for _, text := range all[i+1 : to] {
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
		t.title, t.by = strings.TrimSpace(strings.TrimPrefix(all[i], "# ")), "llms-full.txt"
		p.text = &t
		out = append(out, p)
	}
	return out
}
