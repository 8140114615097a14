// Package markup reads Markdown and MDX with byte offsets, so that an edit can change some bytes and leave every other
// one as it was. It is pure: no files, no network. There is no kept MDX parser in Go, and a Markdown parser alone takes
// text indented inside a component for code and loses its links; so this is a scanner of our own that knows front
// matter, fences, components, expressions, comments, headings and links. Of reStructuredText and AsciiDoc it reads what
// tells running text, titles and code from the rest.
package markup

import "strings"

// A Span is a range of bytes of a page's source: Start inclusive, End exclusive.
type Span struct{ Start, End int }

// A Format is the language of a page.
type Format uint8

const (
	Markdown Format = iota + 1 // .md, .markdown: CommonMark with tables; raw HTML is markup
	MDX                        // .mdx: components, expressions, imports; no indented code
	Text                       // anything else: one body, no structure
	RST                        // .rst: reStructuredText as Sphinx has it
	AsciiDoc                   // .adoc, .asciidoc
)

// Plain reports whether a page is reStructuredText or AsciiDoc.
func (f Format) Plain() bool { return f == RST || f == AsciiDoc }

// String is what a format is called.
func (f Format) String() string {
	return map[Format]string{Markdown: "Markdown", MDX: "MDX", RST: "reStructuredText", AsciiDoc: "AsciiDoc"}[f]
}

// A Page is what the scanner found in one file. All spans refer to Src.
type Page struct {
	Path     string
	Format   Format
	Src      []byte
	Front    Front
	Body     Span // what follows the front matter
	Headings []Heading
	Links    []Link
	// [text][label] whose definition is not on the page: text to a reader, and links in a part of a page
	Undefined []Link
	// Of reStructuredText and AsciiDoc: what roles, directives, macros and references by a title name, which addresses do
	// not tell. Label is the name of the role or directive ("_" for a reference by name, "xref" in AsciiDoc).
	Refs   []Link
	Nodes  []Node // of the same
	Code   []Code
	Tags   []Tag
	Blocks []Span // paragraphs and the text of list items, in order: no headings, no tables
	Tables []Span // from the header row to the last one
	Notes  []Span // kinds of admonitions that have no title of their own
	// list items, each from its marker to the next block that is not part of it; a nested one within its parent
	Items []Span
	// What the generator replaces, and what it leaves out, of text that is no code.
	Templates []Template
	Comments  []Span
	// of MDX: imports and exports, and expressions that are more than one string; they run when the site is built
	Scripts []Span
	// what a reader sees as running text, in order: no code, no markup characters, no link destinations, no URLs
	Prose    []Span
	Problems []Problem // what a build of the site would refuse

	idPrefix, idSeparator string // of AsciiDoc: what its anchors are made with

	runs []run // the visible parts in order, prose and other
}

// Front is the front matter: a block of key/value lines at the top of the file.
type Front struct {
	Span   Span           // with its delimiters and the newline after them; empty if there is none
	Body   Span           // between the delimiters
	Kind   string         // "yaml", "toml" or ""
	Values map[string]any // nil if there is none or it does not parse
}

// A Heading starts a section.
type Heading struct {
	Level int
	Text  string // as a reader sees it
	// Typeset is Text if two or three hyphens outside of code are dashes, as some generators make them.
	Typeset string
	Named   string // what its anchor is made of: Text without what components add
	Anchor  string // explicit {#id}, or the GitHub-style slug made unique within the page
	Custom  bool   // the anchor is explicit
	Span    Span   // the whole line or lines, without the newline
	Inner   Span   // the text within, without markers and explicit id

	rules [2]Span // the lines of marks below and above it, of reStructuredText and AsciiDoc
}

// LinkKind tells the forms of a link apart.
type LinkKind uint8

const (
	InlineLink LinkKind = iota + 1
	ImageLink
	ReferenceDefinition // [label]: destination
	AutoLink            // <https://…> or a bare URL
	AttributeLink       // href or src of a tag
	ImportLink          // the module of an import in MDX or in a script
	ReferenceLink       // [text][label], [label][] or [label]: Dest is the definition's, At is empty
	IncludeLink         // a generator's own construct, among References alone
)

// A Link is a reference to somewhere else.
type Link struct {
	Kind  LinkKind
	Dest  string // as written, without angle brackets or quotes
	Span  Span   // the whole construct
	At    Span   // Dest within it; empty for a ReferenceLink, whose destination stands in its definition
	Inner Span   // the text between the brackets; empty if the form has none
	Text  string // as a reader sees it
	Label string // of a ReferenceLink and its ReferenceDefinition: the same for both

	// Of References.
	From   Base // what Dest starts from
	Takes  bool // the page takes the text of the file in
	Soft   bool // it may mean something else: one that leads nowhere is no fault
	Listed bool // it is an entry of a list that is navigation
}

// A Code is a stretch of code.
type Code struct {
	Span   Span
	Inner  Span   // without fences or backticks
	Inline bool   // a code span; otherwise a fenced or indented block
	Lang   string // first word of a fence's info string
	Info   string // the rest of it

	label Span // within the first line: what a site shows above the code
}

// Label is the title of code in its first line: [npm], title="npm", or a word or two before what is written {so}.
func (p *Page) Label(c *Code) string {
	if c.label.End > 0 {
		return string(p.Src[c.label.Start:c.label.End])
	}
	info := c.Info
	if at := strings.IndexAny(info, "{="); at >= 0 {
		info = info[:max(0, strings.LastIndexByte(info[:at], ' '))]
	}
	return strings.TrimSpace(info)
}

// A Tag is one JSX or HTML tag.
type Tag struct {
	Name    string
	Span    Span
	Close   bool // </Name>
	Self    bool // <Name/>
	Attrs   []Attr
	spreads []Span
	Partner int // index of the matching tag in Page.Tags; -1 if there is none or none is needed
}

// An Attr is one attribute of a tag.
type Attr struct {
	Name  string
	Value Span   // without quotes; the expression without braces
	Kind  string // "string", "expression", "flag"
}

// A Problem is something that a build of the site would refuse.
type Problem struct {
	Line    int // from 1
	Message string
}

// A Section is a stretch of a page from one heading to the next, as text for an index.
type Section struct {
	Heading string // empty before the first heading
	Anchor  string
	Level   int
	Trail   []string // headings above it
	Span    Span     // of the source
	Body    string   // as a reader sees it, code apart
	Code    string   // fenced blocks
}

// An Edit replaces a range of the source.
type Edit struct {
	Span Span
	New  []byte
}
