package markup

import (
	"bytes"
	"slices"
)

// A Node is a block of reStructuredText or AsciiDoc, in their order: what such a page is written from again. Those that lie
// within another one follow it, at a deeper column in reStructuredText.
type Node struct {
	Kind       NodeKind
	First, End int // lines, from 0
	Col        int // of reStructuredText: where it begins
	Content    int // where what follows its marker does
	// the marker of an item, a field or a note; the name of a directive, a macro or a substitution; the language of code
	Mark    string
	Text    Span   // the running text, the argument, or the lines of code or of a table
	Options [2]int // lines of a directive
	Attrs   string // of AsciiDoc: what stands above it
	Term    bool   // what follows explains it
}

// NodeKind tells blocks apart.
type NodeKind uint8

const (
	NodeHeading      NodeKind = iota + 1 // the next of Page.Headings
	NodeText                             // a paragraph, of an item too
	NodeCode                             // lines that are shown as they are
	NodeTable                            // one that is drawn
	NodeDirective                        // or a macro that is a block; what it holds follows
	NodeSubstitution                     // the definition of one
	NodeTitle                            // of the block that follows
	NodeContainer                        // a line that opens or closes a block with others in it
	NodePass                             // lines in the language of the output
)

func (s *scanner) node(n Node) { s.p.Nodes = append(s.p.Nodes, n) }

// An Inline is a form within running text of reStructuredText or AsciiDoc.
type Inline struct {
	Kind  InlineKind
	Span  Span
	Inner Span   // what it names or holds
	Text  Span   // of AsciiDoc: what stands in brackets
	Name  string // of a role or a macro; "_" for a reference by a name, "default" for text without a role
}

// InlineKind tells forms within running text apart.
type InlineKind uint8

const (
	InlineCode     InlineKind = iota + 1 // shown as it is
	InlineRole                           // of reStructuredText
	InlineMacro                          // of AsciiDoc
	InlineAddress                        // a URL
	InlineEscape                         // a backslash before what it keeps from being markup
	InlineValue                          // |name| or {name}
	InlineNote                           // the reference to a footnote
	InlineTarget                         // an anchor
	InlinePass                           // in the language of the output
	InlineTerm                           // of an index
	InlineEntity                         // a character's
	InlineEmphasis                       // a mark of emphasis
	InlineBreak                          // the end of a line that stays one
)

func (f Inline) moved(by int) Inline {
	for _, at := range []*Span{&f.Span, &f.Inner, &f.Text} {
		at.Start, at.End = at.Start+by, at.End+by
	}
	return f
}

// Inlines are the forms within running text of reStructuredText or AsciiDoc, in their order. What lies between them is text.
func Inlines(format Format, src []byte) (out []Inline) {
	re, special, marks := rstInline, "`|_[\\@", "*"
	if format == AsciiDoc {
		re, special, marks = adocInline, "`<[{&+\\@(", "*_#"
	}
	var free []Span // what none of the forms covers
	from := 0
	if bytes.ContainsAny(src, special) || bytes.Contains(src, []byte("://")) {
		for _, m := range re.FindAllSubmatchIndex(src, -1) {
			f, is := Inline{}, true
			if format == AsciiDoc {
				f = adocForm(src, m)
			} else if f, is = rstForm(src, m); !is {
				continue
			}
			out = append(out, f)
			free = append(free, Span{from, f.Span.Start})
			from = f.Span.End
		}
	}
	free = append(free, Span{from, len(src)})
	forms := len(out)
	for _, c := range []byte(marks) {
		for _, at := range emphases(src, free, c) {
			out = append(out, Inline{Kind: InlineEmphasis, Span: at, Inner: at})
		}
	}
	if len(out) > forms {
		slices.SortStableFunc(out, func(a, b Inline) int { return a.Span.Start - b.Span.Start })
	}
	return out
}

// emphases are the marks of emphasis in text: those that open behind a blank or a bracket and close before one.
func emphases(src []byte, text []Span, c byte) (out []Span) {
	edge := func(i int) bool { return i < 0 || i >= len(src) || !isWord(src[i]) && src[i] < 0x80 }
	open := Span{}
	for _, at := range text {
		for i := at.Start; i < at.End; i++ {
			if src[i] != c {
				continue
			}
			n := 1
			for i+n < at.End && src[i+n] == c {
				n++
			}
			opens := edge(i-1) && i+n < len(src) && !isSpace(src[i+n])
			closes := i > 0 && !isSpace(src[i-1]) && edge(i+n)
			switch {
			case n <= 2 && closes && open.End-open.Start == n:
				out = append(out, open, Span{i, i + n})
				open = Span{}
			case n <= 2 && opens && open.End == 0:
				open = Span{i, i + n}
			}
			i += n - 1
		}
	}
	return out
}
