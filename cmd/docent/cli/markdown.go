package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	renderer "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// Markdown shows the Markdown that is written to it as a terminal can: block by block, as each is whole. Close shows the
// last one.
type Markdown struct {
	w      io.Writer
	block  []byte
	before bool // a block was shown
}

// NewMarkdown returns a writer that shows Markdown on w if it is a terminal with colors, and one that leaves it as it is if
// not. No terminal gets what it would act on.
func NewMarkdown(w io.Writer) io.WriteCloser {
	switch {
	case Colors(w):
		return &Markdown{w: w}
	case Terminal(w):
		return plain{w}
	}
	return unchanged{w}
}

// plain takes whole characters, as answers come.
type plain struct{ w io.Writer }

func (p plain) Write(text []byte) (int, error) {
	_, err := io.WriteString(p.w, PlainText(string(text)))
	return len(text), err
}

func (plain) Close() error { return nil }

type unchanged struct{ io.Writer }

func (unchanged) Close() error { return nil }

// maxBlock is the longest block that is parsed.
const maxBlock = 16 << 10

// Write takes Markdown.
func (m *Markdown) Write(p []byte) (int, error) {
	m.block = append(m.block, p...)
	for {
		end := blockEnd(m.block)
		if end == 0 {
			return len(p), nil
		}
		if err := m.show(m.block[:end]); err != nil {
			return 0, err
		}
		m.block = m.block[end:]
	}
}

// Close shows what is left.
func (m *Markdown) Close() error {
	rest := m.block
	m.block = nil
	return m.show(rest)
}

// blockEnd is where the first block ends that is whole: before a line that follows an empty one, is not indented and is in
// no block of code. It is 0 if there is none yet.
func blockEnd(src []byte) int {
	fence, empty, at := "", false, 0
	for line := range bytes.Lines(src) {
		if fence == "" && empty && line[0] != ' ' && line[0] != '\t' && line[0] != '\n' {
			return at
		}
		trimmed := string(bytes.TrimSpace(line))
		for _, mark := range []string{"```", "~~~"} {
			switch {
			case fence == "" && strings.HasPrefix(trimmed, mark):
				fence = mark
			case fence == mark && trimmed == mark:
				fence = ""
			}
		}
		empty = trimmed == "" && (at > 0 || empty)
		at += len(line)
	}
	if at > maxBlock {
		return at
	}
	return 0
}

func (m *Markdown) show(src []byte) error {
	if src = bytes.TrimRight(src, "\n"); len(bytes.TrimSpace(src)) == 0 {
		return nil
	}
	shown := PlainText(string(src))
	if len(src) <= maxBlock {
		src = []byte(shown)
		p := &painter{src: src}
		p.blocks(terminalParser.Parse(text.NewReader(src)), "")
		shown = strings.TrimRight(atEnds.ReplaceAllString(p.out.String(), ""), "\n")
	}
	if m.before {
		shown = "\n" + shown
	}
	m.before = true
	_, err := io.WriteString(m.w, shown+"\n")
	return err
}

// atEnds are blanks at the ends of lines.
var atEnds = regexp.MustCompile(`(?m) +$`)

var terminalParser = goldmark.New(goldmark.WithExtensions(extension.Strikethrough, extension.Table)).Parser()

// A painter writes blocks of Markdown with the codes of a terminal, each of which is ended by its own.
type painter struct {
	src []byte
	out strings.Builder
}

func paint(on, off int, s string) string { return fmt.Sprintf("\x1b[%dm%s\x1b[%dm", on, s, off) }

func bold(s string) string { return paint(1, 22, s) }

func cyan(s string) string { return paint(36, 39, s) }

// line writes a text with an indent before each of its lines.
func (p *painter) line(indent, s string) {
	p.out.WriteString(indent + strings.ReplaceAll(s, "\n", "\n"+indent) + "\n")
}

// blocks writes the blocks of a node. indent stands before each.
func (p *painter) blocks(parent ast.Node, indent string) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil && n.HasBlankPreviousLines() {
			p.out.WriteByte('\n')
		}
		switch n := n.(type) {
		case *ast.Heading:
			p.line(indent, bold(p.inline(n)))
		case *ast.List:
			p.list(n, indent)
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			code := strings.TrimRight(string(n.Lines().Value(p.src)), "\n")
			for line := range strings.SplitSeq(code, "\n") {
				if line != "" {
					line = cyan(line)
				}
				p.line(indent+"    ", line)
			}
		case *ast.Blockquote:
			p.blocks(n, indent+"│ ")
		case *ast.ThematicBreak:
			p.line(indent, "────────")
		case *tables.Table:
			p.table(n, indent)
		case *ast.HTMLBlock:
			p.line(indent, strings.TrimRight(string(n.Lines().Value(p.src)), "\n"))
		default:
			p.line(indent, p.inline(n))
		}
	}
}

func (p *painter) list(list *ast.List, indent string) {
	number := list.Start
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if list.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		if item.PreviousSibling() != nil && !list.IsTight {
			p.out.WriteByte('\n')
		}
		sub := painter{src: p.src}
		sub.blocks(item, "")
		p.line(indent, mark+strings.ReplaceAll(strings.TrimRight(sub.out.String(), "\n"), "\n",
			"\n"+strings.Repeat(" ", utf8.RuneCountInString(mark))))
	}
}

// table writes a table in columns.
func (p *painter) table(table *tables.Table, indent string) {
	var rows [][]string
	var widths []int
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			s := p.inline(cell)
			if len(rows) == 0 {
				s = bold(s)
			}
			if len(widths) == len(cells) {
				widths = append(widths, 0)
			}
			widths[len(cells)] = max(widths[len(cells)], visible(s))
			cells = append(cells, s)
		}
		rows = append(rows, cells)
	}
	for _, cells := range rows {
		line := ""
		for i, s := range cells {
			line += s + strings.Repeat(" ", widths[i]-visible(s)+2)
		}
		p.line(indent, strings.TrimRight(line, " "))
	}
}

// visible is how many characters of a text are seen.
func visible(s string) (n int) {
	code := false
	for _, r := range s {
		switch {
		case r == '\x1b':
			code = true
		case code:
			code = r != 'm'
		default:
			n++
		}
	}
	return n
}

// inline is the text of a block.
func (p *painter) inline(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			if value := n.Value(p.src); n.IsRaw() { // code
				b.Write(value)
			} else {
				b.WriteString(meant(value))
			}
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte('\n')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.CodeSpan:
			b.WriteString(cyan(p.inline(n)))
		case *ast.Emphasis:
			if n.Level > 1 {
				b.WriteString(bold(p.inline(n)))
			} else {
				b.WriteString(paint(3, 23, p.inline(n)))
			}
		case *ast.Link:
			label := p.inline(n)
			b.WriteString(paint(4, 24, label))
			if to := string(n.Destination); to != label {
				b.WriteString(" (" + to + ")")
			}
		case *ast.AutoLink:
			b.WriteString(paint(4, 24, string(n.URL(p.src))))
		case *ast.RawHTML:
			b.Write(n.Segments.Value(p.src))
		default:
			b.WriteString(p.inline(n))
		}
	}
	return b.String()
}

// meant is a text of Markdown without its escapes and entities, which may stand for what a terminal would act on.
func meant(markdown []byte) string {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	renderer.DefaultWriter.Write(w, markdown) // as HTML
	_ = w.Flush()                             // to memory
	return PlainText(html.UnescapeString(b.String()))
}

// PlainText takes out what a terminal would act on.
func PlainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && r != '\n' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// PlainLine takes out what a terminal would act on, and ends of lines.
func PlainLine(s string) string { return strings.ReplaceAll(PlainText(s), "\n", "") }
