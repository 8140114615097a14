package page

import (
	"bytes"
	"cmp"
	"strings"

	"golang.org/x/net/html"

	"docent/internal/brief"
	"docent/site/markup"
)

// voidTags have no end.
var voidTags = map[string]bool{"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true,
	"img": true, "input": true, "link": true, "meta": true, "source": true, "track": true, "wbr": true}

// unreadTags hold nothing that a reader of the page sees.
var unreadTags = map[string]bool{"script": true, "style": true, "nav": true, "template": true, "noscript": true}

// An htmlReader cuts an HTML page at its headings.
type htmlReader struct {
	record *Record
	source *Source

	passage             passage // that is being read
	body, code, heading strings.Builder
	title               strings.Builder
	trail               [maxLevel + 1]string
	level               int    // of the heading that we are in; 0 if we are in none
	anchor              string // of that heading
	seen                bool   // a heading has ended
	inTitle             bool
	pre, hidden         int    // depth of elements of these kinds that we are in
	unseenTag           string // the element with a hidden attribute that we are in
	unseenDepth         int
}

// An htmlTag is what counts of a tag.
type htmlTag struct {
	name, id, alt         string
	metaName, metaContent string
	hidden                bool // it has the attribute of that name
	open, selfClosing     bool
}

func readHTML(r *Record, src *Source, content []byte) {
	body := int(r.Body) // behind the front matter
	z := html.NewTokenizer(bytes.NewReader(content[body:]))
	h := htmlReader{record: r, source: src, passage: passage{start: body}}
	for at := body; ; {
		kind := z.Next()
		start := at
		at += len(z.Raw())
		if kind == html.ErrorToken {
			break
		}
		switch kind {
		case html.TextToken:
			h.text(html.UnescapeString(string(z.Text())))
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			h.tag(readTag(z, kind), start)
		}
	}
	h.flush(len(content))
	r.Title = cmp.Or(r.Title, brief.Line(h.title.String()))
	if len(src.passages) == 0 {
		src.passages = []passage{{start: body, end: len(content)}}
	}
}

func readTag(z *html.Tokenizer, kind html.TokenType) htmlTag {
	name, more := z.TagName()
	t := htmlTag{name: string(name), open: kind == html.StartTagToken, selfClosing: kind == html.SelfClosingTagToken}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "id":
			t.id = string(value)
		case "alt":
			t.alt = string(value)
		case "hidden":
			t.hidden = true
		case "name":
			t.metaName = strings.ToLower(string(value))
		case "content":
			t.metaContent = string(value)
		}
	}
	return t
}

// flush ends the passage that is being read.
func (h *htmlReader) flush(end int) {
	p := &h.passage
	p.body, p.code, p.end = strings.TrimSpace(h.body.String()), strings.TrimSpace(h.code.String()), end
	if p.heading != "" || p.body != "" || p.code != "" {
		h.source.passages = append(h.source.passages, *p)
	}
	h.body.Reset()
	h.code.Reset()
}

func (h *htmlReader) text(text string) {
	switch {
	case h.hidden > 0:
	case h.inTitle:
		h.title.WriteString(text)
	case h.level > 0:
		h.heading.WriteString(text)
	case h.pre > 0:
		h.code.WriteString(text)
	default:
		h.body.WriteString(text)
	}
}

func (h *htmlReader) tag(t htmlTag, start int) {
	if t.name == "meta" && t.metaName == "description" {
		h.record.Description = strings.TrimSpace(t.metaContent)
	}
	step := -1
	if t.open {
		step = 1
	}
	switch {
	case t.hidden && h.unseenTag == "" && t.open && !voidTags[t.name]:
		h.unseenTag, h.unseenDepth = t.name, 1
		h.hidden++
	case t.name == h.unseenTag:
		if h.unseenDepth += step; h.unseenDepth == 0 {
			h.unseenTag = ""
			h.hidden = max(0, h.hidden-1)
		}
	case t.selfClosing || voidTags[t.name]:
		if h.hidden == 0 {
			h.body.WriteString(" " + t.alt + " ")
		}
	case unreadTags[t.name]:
		h.hidden = max(0, h.hidden+step)
	case t.name == "title":
		h.inTitle = t.open
	case t.name == "pre":
		h.pre = max(0, h.pre+step)
	case headingLevel(t.name) > 0 && t.open:
		h.beginHeading(t, start)
	case headingLevel(t.name) > 0:
		h.endHeading()
	default:
		h.body.WriteByte(' ')
	}
}

// headingLevel is the level of the headings of a tag that begin sections; 0 of any other tag.
func headingLevel(tag string) int {
	if len(tag) == 2 && tag[0] == 'h' && tag[1] >= '1' && tag[1] <= '0'+maxLevel {
		return int(tag[1] - '0')
	}
	return 0
}

// beginHeading begins a section, but at the page's first heading of level 1: that is its title.
func (h *htmlReader) beginHeading(t htmlTag, start int) {
	level := headingLevel(t.name)
	if level != 1 || h.seen {
		h.flush(start)
		h.passage = passage{start: start}
	}
	h.level, h.anchor = level, t.id
	h.heading.Reset()
}

func (h *htmlReader) endHeading() {
	text := brief.Line(h.heading.String())
	switch {
	case h.level == 1 && !h.seen:
		if h.title.Len() == 0 || text != "" {
			h.title.Reset()
			h.title.WriteString(text)
		}
		h.body.WriteString(text + "\n")
	case h.level > 0:
		p := &h.passage
		p.heading, p.level, p.anchor = text, h.level, h.anchor
		p.anchor = cmp.Or(p.anchor, markup.Slug(text))
		for k := 2; k < h.level; k++ {
			if h.trail[k] != "" {
				p.trail = append(p.trail, h.trail[k])
			}
		}
		h.trail[h.level] = text
		clear(h.trail[h.level+1:])
	}
	h.seen, h.level = true, 0
}
