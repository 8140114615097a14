// Package manual shows Docent's own documentation: its pages, their navigation and their pictures, as they are in the
// binary. It also writes them as files for a static site.
package manual

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"docent/docs"
	"docent/site"
	"docent/site/markup"
)

// Root is the address of the first page.
const Root = "/docs"

// A page is one of the documentation.
type page struct {
	Name               string // its path, without the ending of the file
	Title, Description string
	Group              string
	source             *markup.Page
}

// A group is some pages under one title of the navigation.
type group struct {
	Tab, Title string
	Pages      []*page
}

// book returns the pages in the order of the navigation. They are read at the first request for one.
var book = sync.OnceValues(func() (groups []*group, err error) {
	content, err := fs.ReadFile(docs.Files, "docs.json")
	if err != nil {
		return nil, err
	}
	read := func(name string) ([]byte, error) { return fs.ReadFile(docs.Files, name) }
	site.ReadNavigation("docs.json", content, read, func(name string, at site.Place) {
		src, readErr := read(name + ".mdx")
		if readErr != nil {
			err = readErr
			return
		}
		p := &page{Name: name, Group: at.Crumbs[len(at.Crumbs)-1], source: markup.Parse(name+".mdx", src)}
		p.Title, _ = p.source.Front.Values["title"].(string)
		p.Description, _ = p.source.Front.Values["description"].(string)
		if last := len(groups) - 1; last < 0 || groups[last].Title != p.Group {
			groups = append(groups, &group{Tab: at.Crumbs[0], Title: p.Group})
		}
		last := groups[len(groups)-1]
		last.Pages = append(last.Pages, p)
	})
	return groups, err
})

// moved returns where pages are told now that had an address of their own, by that address.
var moved = sync.OnceValue(func() map[string]string {
	var config struct {
		Redirects []struct{ Source, Destination string }
	}
	to := map[string]string{}
	if content, err := fs.ReadFile(docs.Files, "docs.json"); err == nil && json.Unmarshal(content, &config) == nil {
		for _, r := range config.Redirects {
			to[strings.TrimPrefix(r.Source, "/")] = r.Destination
		}
	}
	return to
})

// pages returns the pages of all groups, one after the other.
func pages(groups []*group) (list []*page) {
	for _, g := range groups {
		list = append(list, g.Pages...)
	}
	return list
}

// find returns a page by its address below the first one: nil if there is none.
func find(list []*page, name string) *page {
	for _, want := range []string{name, path.Join(name, "index")} {
		if i := slices.IndexFunc(list, func(p *page) bool { return p.Name == want }); i >= 0 {
			return list[i]
		}
	}
	return nil
}

// A view is a page with what stands around it.
type view struct {
	*page
	Groups        []*group
	Text          template.HTML
	Before, After *page
	Link          func(*page) string
	Style         string // of a static site
}

// newView renders a page. link is the address of a page, and picture that of a file, as the page names them.
func newView(groups []*group, p *page, link func(*page) string, picture func(name string) string) (view, error) {
	v := view{page: p, Groups: groups, Link: link}
	list := pages(groups)
	at := slices.Index(list, p)
	if at > 0 {
		v.Before = list[at-1]
	}
	if at < len(list)-1 {
		v.After = list[at+1]
	}
	src := p.source.Src[p.source.Body.Start:p.source.Body.End]
	body := make([]byte, 0, len(src))
	from := p.source.Body.Start
	for _, c := range p.source.Comments {
		body = append(body, p.source.Src[from:c.Start]...)
		from = c.End
	}
	body = append(body, p.source.Src[from:p.source.Body.End]...)
	ids := anchors(p.source.Headings)
	doc := renderer.Parser().Parse(text.NewReader(body), parser.WithContext(parser.NewContext(parser.WithIDs(&ids))))
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if name, ok := bytes.CutPrefix(n.Destination, []byte("/")); ok && entering {
				target, anchor, _ := strings.Cut(string(name), "#")
				to := find(list, target)
				if to == nil {
					return ast.WalkStop, fmt.Errorf("%s links to %s, which is not in the navigation", p.Name, n.Destination)
				}
				if n.Destination = []byte(link(to)); anchor != "" {
					n.Destination = append(n.Destination, "#"+anchor...)
				}
			}
		case *ast.Image:
			if name, ok := bytes.CutPrefix(n.Destination, []byte("/")); ok && entering {
				n.Destination = []byte(picture(string(name)))
				if width, height, err := size(string(name)); err == nil {
					n.SetAttributeString("width", []byte(strconv.Itoa(width)))
					n.SetAttributeString("height", []byte(strconv.Itoa(height)))
				}
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return v, err
	}
	var out bytes.Buffer
	err = renderer.Renderer().Render(&out, body, doc)
	v.Text = template.HTML(scrolling.Replace(out.String())) // of the program's own pages, without raw HTML
	return v, err
}

// size returns the width and height of a picture, so that its place is kept while it loads. It knows WebP's extended form, which
// browsers write.
func size(name string) (width, height int, err error) {
	f, err := docs.Files.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	var head [30]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return 0, 0, err
	}
	if string(head[8:16]) != "WEBPVP8X" {
		return 0, 0, fmt.Errorf("%s is no WebP of the extended form", name)
	}
	dimension := func(b []byte) int { return 1 + int(b[0]) + int(b[1])<<8 + int(b[2])<<16 }
	return dimension(head[24:27]), dimension(head[27:30]), nil
}

var renderer = goldmark.New(goldmark.WithParserOptions(parser.WithAutoHeadingID()), goldmark.WithExtensions(
	extension.Strikethrough, extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))))

// scrolling lets what is wider than the page be reached with the keyboard. A heading without a text is none.
var scrolling = strings.NewReplacer("<pre>", `<pre tabindex="0">`, "</table>", "</table></div>",
	"<table>", `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table class="list">`, "<th></th>", "<td></td>")

// anchors gives each heading the anchor that links have for it: the one that the index knows.
type anchors []markup.Heading

// Generate returns the anchor of the next heading.
func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	if len(*a) == 0 {
		return []byte(markup.Slug(string(value)))
	}
	next := (*a)[0]
	*a = (*a)[1:]
	return []byte(next.Anchor)
}

// Put does nothing: the anchors are unique.
func (a *anchors) Put([]byte) {}
