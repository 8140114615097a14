package crawl

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html/charset"

	"docent/internal/cell"
	"docent/search/sources/crawl/article"
)

// Kinds are the parsers of what a site serves, which the program runs apart: in the cell that a crawler is made with.
func Kinds() []cell.Kind {
	return []cell.Kind{
		{Name: kindPage, Time: 10 * time.Second, MaxInput: 16 << 20, MaxOutput: 16 << 20, Read: cell.Values(readHTML)},
		{Name: kindSitemap, Time: 30 * time.Second, MaxInput: sitemapBytes + 1<<20, MaxOutput: 2*sitemapText + 1<<20,
			Read: cell.Values(readSitemap)},
	}
}

const (
	kindPage    = "web page"
	kindSitemap = "sitemap"
)

// An htmlInput is an HTML page of a site.
type htmlInput struct {
	Body        []byte
	ContentType string
	At          string
	Site        Settings
}

// An htmlOutput is what it holds, or why that is nothing.
type htmlOutput struct {
	Article article.Article
	Left    string
}

func readHTML(in htmlInput) (out htmlOutput, err error) {
	sc, err := newScope(in.Site)
	if err != nil {
		return out, err
	}
	at, err := url.Parse(in.At)
	if err != nil {
		return out, err
	}
	ours := func(u *url.URL) bool { return sc.outside(sc.at(u)) == "" }
	out.Article, err = article.Read(article.Decode(in.Body, in.ContentType), at, ours)
	if err != nil && out.Article.Refresh == "" {
		out.Left = err.Error()
	}
	return out, nil
}

// sitemapText is how many bytes of addresses are taken of one sitemap.
const sitemapText = 16 << 20

// A sitemapInput is a sitemap, packed or not, and how many pages may be taken of it.
type sitemapInput struct {
	Body []byte
	Site Settings
	Max  int
}

// A sitemapOutput is what a sitemap lists: pages of the site, each once, and further sitemaps.
type sitemapOutput struct {
	Pages  []sitemapEntry
	More   []string
	Listed int  // entries, also of what is no page of the site
	Beyond bool // there are more
}

type sitemapEntry struct {
	Loc     string `xml:"loc"`
	LastMod string `xml:"lastmod"`
}

// readSitemap reads a sitemap as it unpacks. One without XML has an address on each line.
func readSitemap(in sitemapInput) (out sitemapOutput, err error) {
	sc, err := newScope(in.Site)
	if err != nil {
		return out, err
	}
	var raw io.Reader = bytes.NewReader(in.Body)
	if bytes.HasPrefix(in.Body, []byte{0x1f, 0x8b}) {
		if raw, err = gzip.NewReader(raw); err != nil {
			return out, nil
		}
	}
	l := sitemapList{sitemapOutput: &out, scope: sc, max: in.Max, seen: map[string]bool{}}
	b := bufio.NewReader(io.LimitReader(raw, sitemapBytes))
	first, err := firstByte(b)
	if err != nil {
		return out, nil // it is empty
	}
	if first != '<' {
		lines := bufio.NewScanner(b)
		for lines.Scan() && !out.Beyond {
			if line := strings.TrimSpace(lines.Text()); strings.HasPrefix(line, "http") {
				l.page(sitemapEntry{Loc: line})
			}
		}
		return out, nil
	}
	d := xml.NewDecoder(b)
	d.Strict, d.CharsetReader = false, charset.NewReaderLabel
	for !out.Beyond {
		token, err := d.Token()
		if err != nil { // what could be read of it counts
			return out, nil
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
			l.page(e)
		} else {
			l.sitemap(strings.TrimSpace(e.Loc))
		}
	}
	return out, nil
}

// firstByte is what a text begins with, behind blanks and a byte order mark, which stay unread.
func firstByte(b *bufio.Reader) (byte, error) {
	for {
		next, err := b.Peek(1)
		if err != nil {
			return 0, err
		}
		switch next[0] {
		case ' ', '\t', '\r', '\n':
		case 0xEF:
			if mark, _ := b.Peek(3); string(mark) != "\xef\xbb\xbf" {
				return next[0], nil
			}
			_, _ = b.Discard(2)
		default:
			return next[0], nil
		}
		if _, err := b.Discard(1); err != nil {
			return 0, err
		}
	}
}

// A sitemapList takes what a sitemap lists, up to what may be taken of it.
type sitemapList struct {
	*sitemapOutput
	scope *scope
	max   int
	seen  map[string]bool
	bytes int
}

func (l *sitemapList) page(e sitemapEntry) {
	l.Listed++
	at := l.scope.parse(e.Loc)
	if at == nil || l.scope.outside(at) != "" {
		return
	}
	address := at.String()
	if l.seen[address] {
		return
	}
	if l.bytes += len(address); len(l.Pages) >= l.max || l.bytes > sitemapText {
		l.Beyond = true
		return
	}
	l.seen[address] = true
	if e.LastMod = strings.TrimSpace(e.LastMod); len(e.LastMod) > 64 {
		e.LastMod = "" // it is no time
	}
	l.Pages = append(l.Pages, sitemapEntry{strings.Clone(address), strings.Clone(e.LastMod)})
}

func (l *sitemapList) sitemap(address string) {
	l.Listed++
	if l.seen[address] || len(address) > 2000 {
		return
	}
	if len(l.More) >= sitemapFiles {
		l.Beyond = true
		return
	}
	l.seen[address] = true
	l.More = append(l.More, strings.Clone(address))
}

// broken reports whether what a site serves broke its parser, or a bound.
func broken(err error) bool {
	var u *cell.UnreadableError
	return errors.As(err, &u) && u.Broke
}
