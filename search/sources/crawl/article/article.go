package article

import (
	"bytes"
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"docent/internal/brief"
	"docent/site/published"
)

// An Article is what a page holds for its readers, and what it says of itself.
type Article struct {
	Title       string
	Description string
	Language    string   // as the page names it; empty if it does not
	Trail       []string // the titles above it
	Markdown    []byte   // its main part, without its title
	Words       int      // of its main part
	By          string   // what told which part is the main one
	Page
}

// A Page is what a page says to programs.
type Page struct {
	Canonical string // whole address of the page that this one is another name of; empty if there is none
	Refresh   string // whole address that the page leads on to by itself
	NoIndex   bool
	NoFollow  bool
	Links     []string // whole addresses without fragments, each once
	Edit      string   // whole address of the file in a repository that its link for editors names
}

// ErrNoText is of a page without anything to read.
var ErrNoText = errors.New("has no text")

// ErrScripts is of a page that is empty until its programs run.
var ErrScripts = errors.New("has no text without JavaScript")

// most is what is taken from a page of each kind of thing, beyond which nobody writes for readers.
const (
	maxLinks = 5000
	maxTitle = 300
	maxWords = 2000 // bytes of a description
)

// Read reads an HTML page in UTF-8 that stands at an address. Ours says which addresses are pages of the same
// collection: links to them begin with a slash, all others are whole.
func Read(content []byte, at *url.URL, ours func(*url.URL) bool) (Article, error) {
	doc, err := html.Parse(bytes.NewReader(content))
	if err != nil {
		return Article{}, err
	}
	base := at
	if n := first(doc, baseElement); n != nil {
		if u, err := at.Parse(strings.TrimSpace(attr(n, "href"))); err == nil && u.Host == at.Host {
			base = u
		}
	}
	a := Article{Page: readPage(doc, base)}
	a.Description = brief.Bytes(meta(doc, "description", "og:description"), maxWords, "")
	if n := first(doc, htmlElement); n != nil {
		a.Language = brief.Bytes(strings.TrimSpace(attr(n, "lang")), 35, "")
	}
	scripts := first(doc, scriptElement) != nil
	top, by := mainPart(doc, at)
	a.Title, a.Trail = brief.Bytes(titleOf(doc, top), maxTitle, ""), trailOf(doc)
	withoutEdit(top, base, a.Edit)
	shape(top, base, ours)
	if n := first(top, anyHeading); n != nil && by == "readability" && n.DataAtom == atom.H2 && headingOf(n) == a.Title {
		drop(n) // which makes all headings ones of level 2 and below
	}
	withoutTitle(top, &a)
	a.By, a.Words = by, len(strings.Fields(text(top)))
	if a.Words == 0 {
		if scripts {
			return a, ErrScripts
		}
		return a, ErrNoText
	}
	if n := len(a.Trail); n > 0 && strings.EqualFold(a.Trail[n-1], a.Title) {
		a.Trail = a.Trail[:n-1]
	}
	a.Markdown, err = markdown(top)
	return a, err
}

var (
	baseElement   = selects("base[href]")
	htmlElement   = selects("html")
	scriptElement = selects("script")
	heading1      = selects("h1")
	anyHeading    = selects("h1, h2, h3, h4, h5, h6")
	titleElement  = selects("head title, title")
	links         = selects("a[href], area[href]")
	crumbs        = selects(`nav[aria-label*="readcrumb"], .theme-doc-breadcrumbs, .breadcrumbs, .breadcrumb, [itemtype$="BreadcrumbList"]`)
	crumbItems    = selects("li, [itemprop=itemListElement]")
	crumbLinks    = selects("a, span[aria-current]")
)

// readPage reads what a page says to programs.
func readPage(doc *html.Node, base *url.URL) (p Page) {
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch {
		case n.DataAtom == atom.Link && hasWord(n, "rel", "canonical"):
			if u := whole(base, attr(n, "href")); p.Canonical == "" && u != nil {
				p.Canonical = u.String()
			}
		case n.DataAtom == atom.Meta && slices.Contains([]string{"robots", "docent"}, strings.ToLower(attr(n, "name"))):
			p.obey(attr(n, "content"))
		case n.DataAtom == atom.Meta && strings.EqualFold(attr(n, "http-equiv"), "refresh"):
			if _, to, ok := strings.Cut(attr(n, "content"), "="); ok {
				if u := whole(base, strings.Trim(to, `'" `)); u != nil {
					p.Refresh = u.String()
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, n := range all(doc, links) {
		u := whole(base, attr(n, "href"))
		if p.Edit == "" && u != nil && forEditors(n) && published.IsEdit(u.String()) {
			p.Edit = u.String()
		}
		if u == nil || hasWord(n, "rel", "nofollow") || has(n, "download") {
			continue
		}
		if address := u.String(); !seen[address] && len(p.Links) < maxLinks {
			seen[address] = true
			p.Links = append(p.Links, address)
		}
	}
	return p
}

var (
	editClass = regexp.MustCompile(`(?i)(?:^|[\s_-])edit(?:[\s_-]|$)`)
	editWords = regexp.MustCompile(`(?i)^\W*(?:edit|suggest|improve|view|show)\b.{0,60}\b(?:edits?|page|source|file|topic|article|github|gitlab|bitbucket|gitea|codeberg)\b`)
)

// forEditors reports whether a link says that it leads to the file of the page.
func forEditors(n *html.Node) bool {
	return hasWord(n, "rel", "edit") || editClass.MatchString(attr(n, "class")) ||
		editWords.MatchString(attr(n, "title")) || editWords.MatchString(attr(n, "aria-label")) || !longer(n, 100) && editWords.MatchString(text(n))
}

// obey takes over what a list of rules for robots says.
func (p *Page) obey(rules string) {
	for rule := range strings.SplitSeq(strings.ToLower(rules), ",") {
		switch strings.TrimSpace(rule) {
		case "noindex":
			p.NoIndex = true
		case "nofollow":
			p.NoFollow = true
		case "none":
			p.NoIndex, p.NoFollow = true, true
		}
	}
}

// Obey takes over what the header X-Robots-Tag says to all robots, or to the one of this name.
func (p *Page) Obey(headers []string, robot string) {
	for _, h := range headers {
		name, rules, ok := strings.Cut(h, ":")
		switch {
		case !ok, strings.Contains(name, ","), strings.EqualFold(strings.TrimSpace(name), "unavailable_after"):
			p.obey(h)
		case strings.EqualFold(strings.TrimSpace(name), robot):
			p.obey(rules)
		}
	}
}

// whole is the address that a link leads to, without its fragment; nil if that is none of the web.
func whole(base *url.URL, href string) *url.URL {
	href = strings.TrimSpace(href)
	if href == "" || len(href) > 2000 {
		return nil
	}
	u, err := base.Parse(href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil
	}
	u.Fragment, u.RawFragment = "", ""
	return u
}

// meta is the first of the head's descriptions of these names.
func meta(doc *html.Node, names ...string) string {
	found := map[string]string{}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.DataAtom == atom.Meta {
			name := strings.ToLower(cmp.Or(attr(n, "name"), attr(n, "property")))
			if said := squeeze(attr(n, "content")); said != "" && found[name] == "" {
				found[name] = said
			}
		}
	}
	for _, name := range names {
		if found[name] != "" {
			return found[name]
		}
	}
	return ""
}

// besideTitle separates a page's title from the site's.
var besideTitle = regexp.MustCompile(`\s+[|•·—–-]\s+|\s+::\s+`)

// titleOf is the first heading of level 1 of the page's text, else of the document; otherwise the document's title without
// the site's name. A heading in a header that leads elsewhere is the site's name, and so is one above the text that ends
// the document's title.
func titleOf(doc, top *html.Node) string {
	var parts []string
	if n := first(doc, titleElement); n != nil {
		parts = besideTitle.Split(text(n), -1)
	}
	for _, n := range append(all(top, heading1), all(doc, heading1)...) {
		if !within(n, nil, atom.Nav, atom.Footer, atom.Aside) && !(within(n, top, atom.Header) && slices.ContainsFunc(all(n, links), leadsAway)) {
			if said := headingText(n); said != "" && (holds(top, n) || len(parts) < 2 || said != parts[len(parts)-1]) {
				return said
			}
		}
	}
	if said := meta(doc, "og:title"); said != "" {
		return besideTitle.Split(said, 2)[0]
	}
	if len(parts) > 0 {
		return parts[0]
	}
	return ""
}

func leadsAway(link *html.Node) bool { return !isSelfLink(link) }

// headingText is what a heading says, without the link to itself.
func headingText(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode && !inSelfLink(c, n) {
			b.WriteString(c.Data)
		}
	}
	return squeeze(b.String())
}

func inSelfLink(n, heading *html.Node) bool {
	for p := n.Parent; p != nil && p != heading; p = p.Parent {
		if isSelfLink(p) {
			return true
		}
	}
	return false
}

// marks are what links from a heading to itself show.
var marks = []string{"", "#", "¶", "§", "🔗", "link", "permalink", "anchor", "copy link", "direct link", "\uf0c1", "∞"}

// isSelfLink reports whether an element is a heading's link to itself, and nothing that readers read.
func isSelfLink(n *html.Node) bool {
	if n.DataAtom != atom.A || !strings.Contains(attr(n, "href"), "#") {
		return false
	}
	return attr(n, "aria-hidden") == "true" || slices.Contains(marks, strings.ToLower(text(n))) ||
		selfLinkClass.MatchString(attr(n, "class"))
}

var selfLinkClass = regexp.MustCompile(`(?:^|\s)(?:headerlink|hash-link|header-anchor|anchor-link|sl-anchor-link|anchorjs-link|heading-anchor|subheading-anchor|anchor)(?:\s|$)`)

// trailOf are the titles above the page, if it shows them.
func trailOf(doc *html.Node) (out []string) {
	top := first(doc, crumbs)
	if top == nil {
		return nil
	}
	items := all(top, crumbItems)
	if len(items) == 0 {
		items = all(top, crumbLinks)
	}
	for _, n := range items[:min(len(items), 10)] {
		said := brief.Bytes(strings.Trim(text(n), " /›»>"), 100, "")
		if said == "" || strings.EqualFold(said, "home") || slices.Contains(out, said) {
			continue
		}
		out = append(out, said)
	}
	return out
}

// headingOf is what a heading says whose anchor is kept.
func headingOf(n *html.Node) string { return squeeze(placeholder.ReplaceAllString(text(n), "")) }

// withoutTitle takes the heading that is the page's title out of its text: it is told apart. Other headings of that
// level begin sections.
func withoutTitle(top *html.Node, a *Article) {
	for i, n := range all(top, heading1) {
		said := headingOf(n)
		if i == 0 && (said == a.Title || a.Title == "") {
			a.Title = said
			drop(n)
			continue
		}
		rename(n, atom.H2)
	}
}
