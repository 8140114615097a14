package article

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// containers are the elements that generators of documentation put a page's text into, the narrowest first.
var containers = []struct {
	by string
	at selector
}{
	{"Docusaurus", selects(".theme-doc-markdown, article .markdown")},
	{"VitePress", selects(".vp-doc")},
	{"Starlight", selects(".sl-markdown-content")},
	{"Material for MkDocs", selects("article.md-content__inner")},
	{"Sphinx", selects("[itemprop=articleBody], div.documentwrapper div.body, article.bd-article, #furo-main-content")},
	{"Mintlify", selects("#content .mdx-content, #content-area .mdx-content, .mdx-content")},
	{"mdBook", selects("#content main, #mdbook-content main")},
	{"Docsy", selects(".td-content")},
	{"Hugo Book", selects("article.book-article, .book-page article.markdown")},
	{"Antora", selects("article.doc")},
	{"Just the Docs", selects(".main-content main")},
	{"rustdoc", selects("#main-content.content")},
	{"ReadMe", selects(".rm-Article .rm-Markdown")},
	{"Fumadocs", selects("#nd-page .prose")},
	{"data-pagefind-body", selects("[data-pagefind-body]")},
	{"the element main", selects("main article")},
	{"the element main", selects("main, [role=main]")},
	{"the element article", selects("article")},
}

// readable is how many bytes of a page readability looks at: its time grows faster than the page.
const readable = 2 << 20

// mainPart finds the part of a page that is its text, and what told it.
func mainPart(doc *html.Node, at *url.URL) (*html.Node, string) {
	for _, c := range containers {
		found := all(doc, c.at)
		if len(found) == 0 || len(found) > 50 {
			continue
		}
		top := found[0]
		for _, n := range found[1:] {
			for !holds(top, n) {
				top = top.Parent
			}
		}
		if top.DataAtom != atom.Body && text(top) != "" {
			return top, c.by
		}
	}
	if n := first(doc, bodyElement); n != nil && len(text(n)) < readable {
		if a, err := readability.FromDocument(doc, at); err == nil && a.Node != nil && text(a.Node) != "" {
			for n := range a.Node.Descendants() {
				n.DataAtom = atom.Lookup([]byte(n.Data)) // it renames elements by their names alone
			}
			return a.Node, "readability"
		}
	}
	if n := first(doc, bodyElement); n != nil {
		return n, "the element body"
	}
	return doc, "the document"
}

var (
	bodyElement = selects("body")
	// chrome is what is there to be used and not read, or stands on every page of a site.
	chrome = selects(`script, style, noscript, template, svg, iframe, object, embed, canvas, form, button, input, select,
		textarea, dialog, nav, footer, video, audio, map,
		[role=navigation], [role=search], [role=contentinfo], [role=dialog], [hidden], [aria-hidden=true],
		.visually-hidden, .sr-only, .screen-reader-text, .visuallyhidden, .skip-link,
		.theme-edit-this-page, .theme-doc-breadcrumbs, .theme-doc-toc-mobile, .theme-doc-toc-desktop, .theme-doc-footer,
		.theme-doc-version-badge, .theme-doc-version-banner, .theme-last-updated, .pagination-nav,
		.table-of-contents, .toc, #toc, #TableOfContents, .on-this-page, .breadcrumb, .breadcrumbs, .wy-breadcrumbs,
		a.headerlink, a.hash-link, a.header-anchor, a.anchor-link, a.sl-anchor-link, a.anchorjs-link, a.heading-anchor,
		.copy, .copy-button, .copybtn, .clipboard, .clipboard-button, .md-clipboard, .md-source-file, .md-feedback,
		.md-content__button, .edit-link, .edit-page-link, .edit-page, .edit-this-page, .last-updated, .prev-next,
		.page-nav, .VPDocFooter, .td-page-meta, .td-toc, .feedback, .page-feedback, .docs-feedback, .giscus,
		.utterances, .rst-footer-buttons, .sphinxsidebar, div.related, .newsletter, .cookie-banner, .page-footer`)
	// said are lines that belong to a page's frame.
	said  = regexp.MustCompile(`(?i)^(?:✎\s*)?(?:edit (?:this page|page|on github|on gitlab|this page on .{1,30})|suggest (?:an |changes|edits?).{0,20}|was this (?:page |article |section )?helpful\??|skip to (?:main )?content|back to top|on this page|copy(?: page| code| link| to clipboard)?|table of contents:?|last (?:updated|modified)(?: on|:|at| by)? .{0,40}|report an issue.{0,20}|view (?:page )?source|show source|previous|next|← ?prev(?:ious)?|next ?→)$`)
	lines = selects("p, div, a, span, small")
)

// withoutChrome takes out of a page's part what is no text of the page.
func withoutChrome(top *html.Node) {
	for _, n := range all(top, chrome) {
		if n != top {
			drop(n)
		}
	}
	for _, n := range all(top, lines) {
		if n == top || within(n, top, atom.Table, atom.Ul, atom.Ol, atom.Dl, atom.Pre, atom.Code) || longer(n, 80) {
			continue
		}
		if t := text(n); t != "" && said.MatchString(t) && first(n, keeps) == nil {
			drop(n)
		}
	}
	withoutContents(top)
	var gone []*html.Node
	for n := range top.Descendants() {
		if n.Type == html.CommentNode {
			gone = append(gone, n)
		}
	}
	for _, n := range gone {
		drop(n)
	}
}

// withoutEdit takes out the link by which the page's file is edited, unless it is part of a sentence.
func withoutEdit(top *html.Node, base *url.URL, edit string) {
	for _, n := range all(top, links) {
		if u := whole(base, attr(n, "href")); u == nil || u.String() != edit || longer(n, 80) || within(n, top, atom.Table) {
			continue
		}
		block := n.Parent
		for block != nil && block != top && !blocks[block.DataAtom] {
			block = block.Parent
		}
		if hasWord(n, "rel", "edit") || block == top || block != nil && text(block) == text(n) {
			drop(n)
		}
	}
}

// withoutContents takes out lists of nothing but links to what follows on the page, if they stand before its first section
// or are named so, with the heading that names them: its table of contents, which answers nothing.
func withoutContents(top *html.Node) {
	const least = 3 // links
	ids, begins, sections, i := map[string]int{}, map[*html.Node]int{}, 0, 0
	for n := range top.Descendants() {
		i++
		for _, id := range []string{attr(n, "id"), attr(n, "name")} {
			if _, known := ids[id]; !known && id != "" {
				ids[id] = i
			}
		}
		switch n.DataAtom {
		case atom.Ul, atom.Ol:
			begins[n] = i
		case atom.H2, atom.H3, atom.H4:
			if sections == 0 && !contentsName.MatchString(headingOf(n)) {
				sections = i
			}
		}
	}
	for _, list := range all(top, contentsList) {
		toBelow := all(list, links)
		if len(toBelow) < least || slices.ContainsFunc(toBelow, func(a *html.Node) bool {
			id, here := strings.CutPrefix(attr(a, "href"), "#")
			return !here || ids[id] <= begins[list]
		}) || saysMore(list) {
			continue
		}
		before := list.PrevSibling
		for before != nil && before.Type != html.ElementNode && strings.TrimSpace(before.Data) == "" {
			before = before.PrevSibling
		}
		named := before != nil && before.Type == html.ElementNode && !longer(before, 80) && contentsName.MatchString(headingOf(before))
		if named && before.DataAtom != atom.H1 {
			drop(before)
		}
		if named || begins[list] < sections {
			drop(list)
		}
	}
}

var (
	contentsList = selects("ul, ol")
	contentsName = regexp.MustCompile(`(?i)^\W*(?:(?:table of )?contents|on this page|in this (?:article|guide|page)|toc)\W*$`)
)

// saysMore reports whether a list has text that is no link's.
func saysMore(list *html.Node) bool {
	for n := range list.Descendants() {
		if n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" && !within(n, list, atom.A) {
			return true
		}
	}
	return false
}

var keeps = selects("h1, h2, h3, h4, h5, h6, pre, table, img")

// longer reports whether an element holds more text than that, without reading all of it.
func longer(n *html.Node, most int) bool {
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			if most -= len(strings.TrimSpace(c.Data)); most < 0 {
				return true
			}
		}
	}
	return false
}
