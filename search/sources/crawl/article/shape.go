package article

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	bounds "docent/internal/formats/tables"
)

// Anchors are kept through the conversion as their ids between two characters that no text has.
const (
	begin = '\uE000'
	end   = '\uE001'
)

// placeholder finds the anchor of a heading; the id is written in hexadecimal digits.
var placeholder = regexp.MustCompile(`\x{E000}([0-9a-f]*)\x{E001}`)

// shape makes of a page's part the elements that Markdown has.
func shape(top *html.Node, base *url.URL, ours func(*url.URL) bool) {
	for n := range top.Descendants() {
		if n.Type == html.TextNode && strings.ContainsAny(n.Data, string(begin)+string(end)+"\u200b") {
			n.Data = strings.NewReplacer(string(begin), "", string(end), "", "\u200b", "").Replace(n.Data)
		}
	}
	formulas(top)
	tabs(top)
	nameHeadings(top)
	code(top)
	notes(top)
	withoutChrome(top)
	asides(top)
	foldings(top)
	definitions(top)
	tables(top)
	bounds.Bound(top)
	images(top, base)
	address(top, base, ours)
}

var (
	formula     = selects(".katex, mjx-container, .MathJax")
	texSource   = selects(`annotation[encoding="application/x-tex"]`)
	texScripts  = selects(`script[type^="math/tex"]`)
	tabLists    = selects("[role=tablist]")
	tabElements = selects("[role=tab]")
	tabPanels   = selects("[role=tabpanel]")
)

// formulas are shown as they are written in TeX.
func formulas(top *html.Node) {
	for _, n := range all(top, texScripts) {
		replace(n, element(atom.Code, textNode("$"+strings.TrimSpace(raw(n))+"$")))
	}
	for _, n := range all(top, formula) {
		if source := first(n, texSource); source != nil && n.Parent != nil {
			replace(n, element(atom.Code, textNode("$"+squeeze(raw(source))+"$")))
		}
	}
}

// raw is the text of an element as it stands.
func raw(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// tabs shows every panel, under what its tab says.
func tabs(top *html.Node) {
	byID := map[string]*html.Node{}
	for n := range top.Descendants() {
		if id := ""; n.Type == html.ElementNode {
			if id = attr(n, "id"); id != "" {
				byID[id] = n
			}
		}
	}
	left := maxPanelSteps
	for range top.Descendants() {
		left += maxStepsEach
	}
	for _, list := range all(top, tabLists) {
		labels := all(list, tabElements)
		panels := panelsOf(list, labels, top, byID, &left)
		if len(panels) != len(labels) || len(labels) == 0 {
			continue
		}
		for i, p := range panels {
			p.InsertBefore(label(text(labels[i])), p.FirstChild)
			show(p)
		}
		if list != top {
			drop(list)
		}
	}
	for _, set := range all(top, tabSets) {
		labels, panels := all(set, setLabels), all(set, setPanels)
		if len(labels) != len(panels) {
			continue
		}
		for i, p := range panels {
			if p.Parent == nil {
				continue // it was a label of a panel before it
			}
			p.Parent.InsertBefore(label(text(labels[i])), p)
			drop(labels[i])
			show(p)
		}
	}
}

var (
	tabSets   = selects(".tabbed-set, .vp-code-group")
	setLabels = selects(".tabbed-labels label, .tabs label")
	setPanels = selects(".tabbed-content > .tabbed-block, .blocks > *")
)

// Elements that are looked at in search of panels: so many, and more for each element of the page. If a page has too
// many lists of tabs without panels, those at its end stay lists.
const (
	maxPanelSteps = 100_000
	maxStepsEach  = 100
)

// panelsOf finds the panels of a list of tabs: by the ids that tell them, otherwise by their order.
func panelsOf(list *html.Node, labels []*html.Node, top *html.Node, byID map[string]*html.Node, left *int) []*html.Node {
	var out []*html.Node
	taken := map[*html.Node]bool{}
	for _, l := range labels {
		id := cmp.Or(attr(l, "aria-controls"), strings.TrimPrefix(attr(l, "href"), "#"))
		if p := byID[id]; p != nil && id != "" && !taken[p] && holds(top, p) && !holds(p, list) {
			taken[p] = true
			out = append(out, p)
		}
	}
	if len(out) == len(labels) {
		return out
	}
	for p := list.Parent; p != nil && holds(top, p); p = p.Parent {
		if found := panelsIn(p, left); len(found) >= len(labels) || *left < 0 {
			return found
		}
	}
	return nil
}

// panelsIn are the panels below an element, without those of tabs within a panel.
func panelsIn(top *html.Node, left *int) (out []*html.Node) {
	for n := top.FirstChild; n != nil; {
		if *left--; *left < 0 {
			return nil
		}
		isPanel := n.Type == html.ElementNode && tabPanels.Match(n)
		if isPanel {
			out = append(out, n)
		}
		if n.FirstChild != nil && !isPanel {
			n = n.FirstChild
			continue
		}
		for n.NextSibling == nil {
			if n = n.Parent; n == top {
				return out
			}
		}
		n = n.NextSibling
	}
	return out
}

// show takes off a panel what hides it.
func show(n *html.Node) {
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool {
		return a.Key == "hidden" || a.Key == "aria-hidden" || a.Key == "style"
	})
}

// nameHeadings keeps the anchors of headings, and takes their links to themselves out.
func nameHeadings(top *html.Node) {
	for _, h := range all(top, anyHeading) {
		id := anchorOf(h, top)
		for _, n := range all(h, links) {
			switch {
			case isSelfLink(n):
				drop(n)
			case strings.HasPrefix(attr(n, "href"), "#"):
				unwrap(n)
			}
		}
		if id != "" && !strings.ContainsAny(id, "{} \t\r\n") && len(id) <= 300 {
			h.AppendChild(textNode(string(begin) + hexOf(id) + string(end)))
		}
	}
}

var named = selects("[id], a[name]")

// anchorOf is the anchor that leads to a heading: its own, that of something within it, that of the section that it
// begins, or that of its link to itself.
func anchorOf(h, top *html.Node) string {
	if id := attr(h, "id"); id != "" {
		return id
	}
	if n := first(h, named); n != nil {
		return cmp.Or(attr(n, "id"), attr(n, "name"))
	}
	leading := all(h, links)
	slices.SortStableFunc(leading, func(a, b *html.Node) int { return cmp.Compare(selfness(b), selfness(a)) })
	for _, n := range leading {
		if id, ok := strings.CutPrefix(attr(n, "href"), "#"); ok && id != "" && selfness(n) >= 0 {
			return id
		}
	}
	for n, up := h, 0; n.Parent != nil && n != top && up < 3; n, up = n.Parent, up+1 {
		if id := linkAfter(n); id != "" && up < 2 {
			return id
		}
		for s := n.PrevSibling; s != nil; s = s.PrevSibling {
			if s.Type == html.ElementNode && s.DataAtom != atom.A && s.DataAtom != atom.Span ||
				s.Type == html.TextNode && strings.TrimSpace(s.Data) != "" {
				return ""
			}
			if id := cmp.Or(attr(s, "id"), attr(s, "name")); s.Type == html.ElementNode && id != "" {
				return id
			}
		}
		if id := attr(n.Parent, "id"); id != "" && n.Parent != top {
			return id
		}
	}
	return ""
}

// linkAfter is the anchor that the element after n leads to, if it is a heading's link to itself.
func linkAfter(n *html.Node) string {
	s := n.NextSibling
	for s != nil && s.Type != html.ElementNode {
		s = s.NextSibling
	}
	if s == nil || !isSelfLink(s) || !strings.HasPrefix(attr(s, "href"), "#") {
		return ""
	}
	return attr(s, "href")[1:]
}

// selfness is above 0 for a heading's link to itself, and below for one back to the table of contents.
func selfness(n *html.Node) int {
	switch {
	case isSelfLink(n):
		return 1
	case slices.Contains(strings.Fields(attr(n, "class")), "toc-backref") || attr(n, "role") == "doc-backlink":
		return -1
	}
	return 0
}

var (
	pres        = selects("pre")
	lineNumbers = selects(`.linenos, .lineno, .line-number, .line-numbers, .line-numbers-wrapper, .lnt, .ln, .gutter, .hljs-ln-numbers, .linenodiv, button, .copy, .lang, .visually-hidden, .sr-only`)
	numberCells = selects(`td.linenos, td.gutter, td.lntd:has(.lnt), div[class*="language-"] > .lang`)
	language    = regexp.MustCompile(`(?:^|\s)(?:language|lang|highlight-source|highlight|brush:)-?\s*([A-Za-z0-9+#._-]+)`)
)

// noLanguage are names that say nothing of a language.
var noLanguage = []string{"default", "none", "text", "plaintext", "notranslate", "wrapper", "box", "code", "block",
	"container", "table", "content", "text-only"}

// code keeps the text of code to the letter, and its language.
func code(top *html.Node) {
	for _, n := range all(top, numberCells) {
		drop(n)
	}
	for _, pre := range all(top, pres) {
		if pre.Parent == nil || !holds(top, pre) {
			continue
		}
		for _, n := range all(pre, lineNumbers) {
			drop(n)
		}
		source := strings.Trim(codeText(pre), "\n")
		if strings.TrimSpace(source) == "" {
			drop(pre)
			continue
		}
		inner := element(atom.Code, textNode(source))
		if lang := languageOf(pre, top); lang != "" {
			inner.Attr = []html.Attribute{{Key: "class", Val: "language-" + lang}}
		}
		clean := element(atom.Pre, inner)
		at := pre
		// With numbers of lines it is a table of one row, whose other cell is empty now.
		for t := pre.Parent; t != nil && t != top; t = t.Parent {
			if t.DataAtom == atom.Table {
				if len(all(t, pres)) == 1 && squeeze(codeText(t)) == squeeze(source) {
					at = t
				}
				break
			}
		}
		replace(at, clean)
	}
}

// codeText is code as it stands; lines that are elements of their own end as such.
func codeText(n *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		for c := range n.ChildNodes() {
			switch {
			case c.Type == html.TextNode:
				b.WriteString(c.Data)
			case c.DataAtom == atom.Br:
				b.WriteByte('\n')
			case c.DataAtom == atom.Style || c.DataAtom == atom.Script:
			default:
				isLine := c.DataAtom == atom.Div && (strings.Contains(attr(c, "class"), "line") || c.Parent.DataAtom == atom.Code)
				walk(c)
				if isLine && !strings.HasSuffix(b.String(), "\n") {
					b.WriteByte('\n')
				}
			}
		}
	}
	walk(n)
	return b.String()
}

// languageOf is the language of code, as its element or one around it names it.
func languageOf(pre, top *html.Node) string {
	around := []*html.Node{pre}
	for c := range pre.ChildNodes() {
		if c.DataAtom == atom.Code {
			around = append([]*html.Node{c}, around...)
		}
	}
	for p, n := pre.Parent, 0; p != nil && p != top && n < 4 && p.DataAtom != atom.Body; p, n = p.Parent, n+1 {
		around = append(around, p)
	}
	for _, n := range around {
		if lang := cmp.Or(attr(n, "data-lang"), attr(n, "data-language")); lang != "" {
			return strings.ToLower(lang)
		}
		for _, m := range language.FindAllStringSubmatch(attr(n, "class"), -1) {
			if lang := strings.ToLower(m[1]); !slices.Contains(noLanguage, lang) {
				return lang
			}
		}
	}
	return ""
}

var (
	noteElements = selects(`.admonition, .theme-admonition, div.custom-block, .starlight-aside, .markdown-alert, div.alert, .callout,
		.hint, .notice, .admonitionblock`)
	noteTitles = selects(`.admonition-title, .admonition-heading, [class*="admonitionHeading"], .custom-block-title,
		.starlight-aside__title, .markdown-alert-title, .alert-heading, .callout-title, .hint-title`)
	noteKind = regexp.MustCompile(`(?i)\b(note|tip|info|warning|danger|caution|important|success|seealso|deprecated|attention|error)\b`)
)

// notes are quoted, under their titles.
func notes(top *html.Node) {
	for _, n := range all(top, noteElements) {
		if n == top || n.Parent == nil || within(n, top, atom.Table) {
			continue
		}
		title := ""
		if t := first(n, noteTitles); t != nil {
			title = text(t)
			drop(t)
		} else if m := noteKind.FindString(attr(n, "class")); m != "" {
			title = strings.ToUpper(m[:1]) + strings.ToLower(m[1:])
		}
		quote := element(atom.Blockquote, children(n)...)
		if title != "" {
			quote.InsertBefore(label(title), quote.FirstChild)
		}
		replace(n, quote)
	}
}

var asideElements = selects("aside")

// asides of a page's text are notes; those that are mostly links are there to be used.
func asides(top *html.Node) {
	for _, n := range all(top, asideElements) {
		if n == top || n.Parent == nil {
			continue
		}
		linked := 0
		for _, l := range all(n, links) {
			linked += len(text(l))
		}
		if 2*linked > len(text(n)) {
			drop(n)
			continue
		}
		rename(n, atom.Blockquote)
	}
}

var (
	folded    = selects("details")
	summaries = selects("summary")
	lists     = selects("dl")
	terms     = selects("dt, dd")
)

// foldings are shown whole.
func foldings(top *html.Node) {
	for _, n := range all(top, folded) {
		rename(n, atom.Div)
		if s := first(n, summaries); s != nil {
			if said := text(s); said != "" && first(s, anyHeading) == nil {
				replace(s, label(said))
			} else {
				unwrap(s)
			}
		}
	}
}

// definitions are a line with the term, and its text; the signature of a program's part is a heading.
func definitions(top *html.Node) {
	for _, list := range all(top, lists) {
		for _, n := range all(list, terms) {
			switch {
			case n.DataAtom == atom.Dd:
				rename(n, atom.Div)
			case attr(n, "id") != "" && strings.Contains(" "+attr(n, "class")+" ", " sig "):
				id := attr(n, "id")
				signature := element(atom.Code, textNode(headingText(n)))
				for _, c := range children(n) {
					drop(c)
				}
				n.AppendChild(signature)
				if !strings.ContainsAny(id, "{} \t\r\n") {
					n.AppendChild(textNode(string(begin) + hexOf(id) + string(end)))
				}
				rename(n, atom.H4)
			default:
				strong := element(atom.Strong, children(n)...)
				n.AppendChild(strong)
				rename(n, atom.P)
			}
		}
		rename(list, atom.Div)
	}
}

var (
	tableElements = selects("table")
	cells         = selects("td, th")
	inCells       = selects("p, div, ul, ol, li, pre, blockquote, h1, h2, h3, h4, h5, h6, section, figure")
)

// tables have cells of one line; those that lay a page out are no tables.
func tables(top *html.Node) {
	for _, t := range all(top, tableElements) {
		if t == top || !holds(top, t) {
			continue
		}
		if len(all(t, tableElements)) > 0 {
			for n := range t.Descendants() {
				switch n.DataAtom {
				case atom.Td, atom.Th, atom.Tr, atom.Tbody, atom.Thead, atom.Caption:
					if nearest(n, atom.Table) == t {
						rename(n, atom.Div)
					}
				}
			}
			rename(t, atom.Div)
			continue
		}
		for _, c := range all(t, cells) {
			for _, b := range all(c, inCells) {
				switch {
				case b.DataAtom == atom.Pre:
					replace(b, element(atom.Code, textNode(squeeze(raw(b)))))
					continue
				case b.DataAtom == atom.Li:
					b.InsertBefore(textNode("• "), b.FirstChild)
				}
				if b.NextSibling != nil && followed(b) {
					b.Parent.InsertBefore(element(atom.Br), b.NextSibling)
				}
				unwrap(b)
			}
		}
	}
}

func nearest(n *html.Node, tag atom.Atom) *html.Node {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == tag {
			return p
		}
	}
	return nil
}

// followed reports whether there is anything to read behind an element in its parent.
func followed(n *html.Node) bool {
	for s := n.NextSibling; s != nil; s = s.NextSibling {
		if s.Type == html.ElementNode || s.Type == html.TextNode && strings.TrimSpace(s.Data) != "" {
			return true
		}
	}
	return false
}

var imageElements = selects("img, picture source")

// images are told by what they show; those that nobody describes are decoration.
func images(top *html.Node, base *url.URL) {
	for _, n := range all(top, imageElements) {
		alt := squeeze(attr(n, "alt"))
		if n.DataAtom != atom.Img || alt == "" {
			drop(n)
			continue
		}
		u := whole(base, cmp.Or(attr(n, "src"), attr(n, "data-src")))
		if u == nil { // it is written out in the page
			replace(n, textNode(alt))
			continue
		}
		n.Attr = []html.Attribute{{Key: "alt", Val: alt}, {Key: "src", Val: u.String()}}
	}
}

// address writes where links lead as it holds wherever the text is read.
func address(top *html.Node, base *url.URL, ours func(*url.URL) bool) {
	for _, n := range all(top, links) {
		href := strings.TrimSpace(attr(n, "href"))
		switch u := whole(base, href); {
		case strings.HasPrefix(href, "#"), strings.HasPrefix(href, "mailto:"):
		case u == nil:
			unwrap(n)
		default:
			fragment := ""
			if _, f, ok := strings.Cut(href, "#"); ok && f != "" {
				fragment = "#" + f
			}
			to := u.String()
			if ours(u) {
				to = u.RequestURI()
			}
			n.Attr = []html.Attribute{{Key: "href", Val: to + fragment}}
		}
	}
}
