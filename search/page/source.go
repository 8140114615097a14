package page

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"docent/internal/brief"
	"docent/search/sources/pdf"
	"docent/site"
	"docent/site/markup"
)

// A Source is one file as reading it gives it, before other files add to it.
type Source struct {
	passages []passage
	Place    site.Place // in the navigation
	Links    []string   // texts of the links that point to the page
	Dests    []string   // where its links lead to, as they are written
	headings []markup.Heading
	count    int // of the passages that were forgotten
}

// Held reports whether the source still has the page's text.
func (s *Source) Held() bool { return s.passages != nil }

// Forget lets go of the page's text.
func (s *Source) Forget() { s.count, s.passages, s.headings = s.Sections(), nil, nil }

// Sections is how many sections the page has to be found by.
func (s *Source) Sections() int {
	if s.Held() {
		return len(s.passages)
	}
	return s.count
}

// A passage is a stretch of a page from one heading to the next.
type passage struct {
	heading, anchor string
	level           int
	number          int // of the heading among all headings of a page in Markdown, from 1; 0 for any other
	trail           []string
	start, end      int
	body, code      string
}

// Classify tells from its path alone what a file can be to the index. Which pages the site shows is decided when all
// files are known.
func Classify(p string) Kind {
	base := path.Base(p)
	dirs := strings.Split(path.Dir(p), "/")
	if site.Concerns(p) {
		return KindNavigation
	}
	for _, d := range dirs {
		if d == "node_modules" || d != "." && strings.HasPrefix(d, ".") {
			return KindIgnored
		}
	}
	ext := strings.ToLower(path.Ext(base))
	if (IsData(base) || site.IsPDF(base)) && !strings.HasPrefix(base, ".") {
		return KindPage // if it describes an API, or holds text
	}
	if strings.HasPrefix(base, ".") || !site.IsPage(base) {
		return KindIgnored
	}
	if ext == ".txt" && (base == "robots.txt" || base == "requirements.txt" || base == "CMakeLists.txt") {
		return KindIgnored
	}
	return KindPage
}

// NameAnchors gives the sections the anchors that the site's generator does.
func (s *Source) NameAnchors(where *site.Site) {
	anchors := where.Anchors(s.headings)
	for i := range s.passages {
		if t := &s.passages[i]; t.number > 0 {
			t.anchor = anchors[t.number-1]
		}
	}
}

// maxLevel is the deepest heading that begins a section of its own.
const maxLevel = 4

// Read reads one file and fills in what it says of itself. The content is never refused: what cannot be parsed is
// read as text.
func Read(r *Record, content []byte) *Source {
	if r.Kind != KindPage {
		return &Source{}
	}
	r.Title, r.Description, r.Version, r.Language, r.Slug, r.ID, r.Address = "", "", "", "", "", "", ""
	if r.File == "" {
		r.Renders = ""
	}
	r.Aliases = nil
	r.Tags, r.Keywords, r.Groups, r.Links = nil, nil, nil, nil
	r.Front, r.Boost, r.Body = site.Front{}, 0, 0
	src := &Source{}
	switch {
	case IsHTML(r.Path):
		if bytes.HasPrefix(content, []byte("---")) || bytes.HasPrefix(content, []byte("+++")) {
			p := markup.Parse("front.md", content) // HTML itself has none
			r.Front, r.Body = frontOf(p), int64(p.Body.Start)
			readFront(r, src, frontValues(p))
			r.Groups = p.Front.Groups(p.Src)
		}
		readHTML(r, src, content)
	default:
		readMarkup(r, src, content)
		if site.IsPDF(r.Path) {
			src.namePages(content)
		}
	}
	if r.Title == "" {
		r.Title = titleOfPath(r.Path)
	}
	return src
}

// namePages gives the sections of a PDF file the anchors that browsers know: the numbers of its pages.
func (s *Source) namePages(content []byte) {
	at, number := 0, 1
	for i := range s.passages {
		t := &s.passages[i]
		upTo := t.start
		if i == 0 && t.heading == "" { // the beginning, up to what it says
			upTo = 0
		}
		for {
			mark := pdf.PageMark(number)
			next := bytes.Index(content[at:upTo], []byte(mark))
			if next < 0 {
				break
			}
			at, number = at+next+len(mark), number+1
		}
		t.number = 0 // the site's generator names no heading of it
		t.anchor = ""
		if number > 1 {
			t.anchor = fmt.Sprintf("page=%d", number-1)
		}
	}
}

// A Text is a page as it is indexed and shown.
type Text struct {
	Path    string // below the file's; the file's own if empty
	Renders string // the operation that it describes
	Content []byte
}

// frontOf is what a page's front matter says of whether the site shows it.
func frontOf(p *markup.Page) (f site.Front) {
	if p.Front.Values == nil && p.Front.Kind != "" {
		// A draft with a syntax error is still a draft.
		f = site.ReadFront(markup.FrontLines(string(p.Src[p.Front.Body.Start:p.Front.Body.End])))
		f.Problem = "it does not parse"
	} else {
		f = site.ReadFront(p.Front.Values)
	}
	f.Has = p.Front.Kind != ""
	return f
}

// frontValues are those of a page's front matter: a title with a syntax error is still a title.
func frontValues(p *markup.Page) map[string]any {
	if p.Front.Values == nil && p.Front.Kind != "" {
		return markup.FrontLines(string(p.Src[p.Front.Body.Start:p.Front.Body.End]))
	}
	return p.Front.Values
}

// permalink is the sign behind a heading that leads to it, with its title.
var permalink = regexp.MustCompile(`\s*(?:\n[^\n]*\n)?\s*[¶§🔗]\s*$`)

// numericVersion finds a version that is written as a number: 1.10 is not 1.1.
var numericVersion = regexp.MustCompile(`(?m)^version[ \t]*[:=][ \t]*(\d+(?:\.\d+)?)[ \t\r]*(?:#.*)?$`)

func readMarkup(r *Record, src *Source, content []byte) {
	p := markup.Parse(r.SourceName(), content)
	r.Body = int64(p.Body.Start)
	readFront(r, src, frontValues(p))
	r.Front, r.Groups = frontOf(p), p.Front.Groups(p.Src)
	if m := numericVersion.FindSubmatch(p.Src[p.Front.Body.Start:p.Front.Body.End]); m != nil {
		r.Version = string(m[1])
	}
	// A page's first heading of level 1 is its title and no section: what follows it is the beginning of the page.
	lead := ""
	if len(p.Headings) > 0 && p.Headings[0].Level == 1 {
		lead = p.Headings[0].Text
		r.Title = cmp.Or(r.Title, lead)
	}
	sections := p.Sections(maxLevel)
	for i := range sections {
		sections[i].Heading = permalink.ReplaceAllString(sections[i].Heading, "")
		for k, above := range sections[i].Trail {
			sections[i].Trail[k] = permalink.ReplaceAllString(above, "")
		}
	}
	src.headings = p.Headings
	numbers := make(map[int]int, len(p.Headings))
	for i, h := range p.Headings {
		numbers[h.Span.Start] = i + 1
	}
	for i, s := range sections {
		t := passage{heading: s.Heading, anchor: s.Anchor, number: numbers[s.Span.Start], level: s.Level, trail: s.Trail,
			start: s.Span.Start, end: s.Span.End, body: s.Body, code: s.Code}
		if lead != "" && i < 2 && s.Level == 1 && s.Span.Start == p.Headings[0].Span.Start {
			t.heading, t.anchor, t.number, t.level, t.trail = "", "", 0, 0, nil
			t.body = s.Heading + "\n\n" + s.Body
			if i == 1 { // text, as a rule an import or an image, stood before it
				before := &src.passages[0]
				before.end, before.body, before.code = t.end, before.body+"\n\n"+t.body,
					strings.TrimSpace(before.code+"\n\n"+t.code)
				continue
			}
		}
		if lead != "" && len(t.trail) > 0 && t.trail[0] == lead {
			t.trail = t.trail[1:]
		}
		src.passages = append(src.passages, t)
	}
	if len(src.passages) == 0 { // a page of nothing but its front matter is still found by its title
		src.passages = []passage{{start: p.Body.Start, end: p.Body.End}}
	}
	for _, l := range p.Links {
		switch l.Kind {
		case markup.InlineLink, markup.ReferenceLink, markup.AttributeLink:
			src.Dests = append(src.Dests, l.Dest)
			dest := markup.TemplateTarget(l.Dest)
			if dest != l.Dest && strings.Contains(dest, "/") && !strings.HasPrefix(dest, ".") {
				dest = "/" + strings.TrimPrefix(dest, "/") // ref names pages from the root
			}
			if to, ok := linkTarget(r.Origin(), dest); ok && strings.TrimSpace(l.Text) != "" {
				r.Links = append(r.Links, Link{To: to, Text: strings.TrimSpace(l.Text)})
			}
		}
	}
}

// linkTarget resolves a link as far as it can be without knowing the other pages.
func linkTarget(from, to string) (string, bool) {
	if i := strings.IndexAny(to, "#?"); i >= 0 {
		to = to[:i]
	}
	if to == "" || strings.Contains(to, ":") || strings.HasPrefix(to, "//") {
		return "", false
	}
	if !strings.HasPrefix(to, "/") {
		to = path.Join(path.Dir(from), to)
	}
	return site.PageKey(to), true
}

// readFront takes from the front matter what bears on finding the page. Names differ between site generators.
func readFront(r *Record, src *Source, front map[string]any) {
	text := func(keys ...string) string { return markup.FrontText(front, keys...) }
	list := func(keys ...string) []string { return markup.FrontList(front, keys...) }
	r.Title = text("title")
	r.Description = text("description", "summary")
	if hero, ok := front["hero"].(map[string]any); ok && r.Description == "" { // of a front page of VitePress or Starlight
		r.Description = markup.FrontText(hero, "tagline", "text")
	}
	r.Keywords = list("keywords")
	for _, name := range []string{text("sidebarTitle"), text("sidebar_label"), text("linkTitle"), text("openapi"),
		text("api")} {
		if name != "" && name != r.Title {
			r.Keywords = append(r.Keywords, name)
		}
	}
	for _, said := range []string{text("openapi"), text("api")} {
		if call := rendered(said); call != "" && r.Renders == "" {
			r.Renders = call
		}
	}
	// Other names of the page, as the sites' generators keep them: old addresses, and what a reference page is
	// generated from.
	for _, alias := range list("aliases", "redirect_from") {
		r.Keywords = append(r.Keywords, strings.ReplaceAll(strings.Trim(alias, "/"), "/", " "))
	}
	r.Keywords = append(r.Keywords, leaves(front["params"])...)
	r.Tags = list("tags", "tag")
	r.Version = text("version")
	if tag := text("language", "lang", "locale"); site.IsLanguage(tag) { // a page about Python may say language: python
		r.Language = tag
	}
	boost, _ := strconv.ParseFloat(text("boost"), 32)
	if m, ok := front["search"].(map[string]any); ok {
		if b, err := strconv.ParseFloat(fmt.Sprint(m["boost"]), 32); err == nil {
			boost = b
		}
	}
	if boost > 0 {
		r.Boost = float32(min(boost, 10))
	}
	at := site.ReadPage(r.Path, front)
	r.Slug, r.ID, r.Address, r.Aliases = at.Slug, at.ID, at.Address, at.Aliases
}

// leaves collects the texts in a value, in the order of its keys.
func leaves(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, x := range v {
			out = append(out, leaves(x)...)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, leaves(v[k])...)
		}
	}
	return out
}

// Name gives a page that has no title of its own the one of the navigation.
func (r *Record) Name(at site.Place) {
	if len(at.Names) > 0 && r.Title == titleOfPath(r.Path) {
		r.Title = at.Names[0]
	}
}

// titleOfPath makes a title of the last name in a path.
func titleOfPath(p string) string {
	key := site.PageKey(p)
	if key == "" {
		return "Home"
	}
	base := path.Base(key)
	words := strings.FieldsFunc(strings.TrimSuffix(base, path.Ext(base)),
		func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
	if len(words) == 0 {
		return base
	}
	words[0] = brief.Capital(words[0])
	return strings.Join(words, " ")
}
