// Package pdf reads PDF files as Markdown: headings by the size of their letters, paragraphs, lists and code by where the
// lines stand. What stands on every page, such as page numbers, is left out.
//
// A file of this format is a program, and reading one may take any time and memory: who reads files of others does so
// in a process of its own.
package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"
)

// Bounds of what is read of one file.
const (
	maxPages = 5000
	maxText  = 2 << 20 // bytes of Markdown
)

// ErrNoText says that a file shows pictures of text at most.
var ErrNoText = errors.New("it holds no text: a scanned document has to go through text recognition (OCR) first")

// Markdown is the text of a PDF file. Before each page stands a comment that names it, in the form of PageMark.
func Markdown(content []byte) (text []byte, err error) {
	defer func() { // the library panics if a file is not what it says
		if r := recover(); r != nil {
			text, err = nil, fmt.Errorf("it is no whole PDF file: %v", r)
		}
	}()
	file, err := pdf.NewReader(bytes.NewReader(content), int64(len(content)))
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return nil, errors.New("it is encrypted")
	}
	if err != nil {
		return nil, fmt.Errorf("it is no whole PDF file: %w", err)
	}
	var pages [][]line
	for n := 1; n <= min(file.NumPage(), maxPages); n++ {
		pages = append(pages, linesOf(file.Page(n)))
	}
	w := writer{title: strings.TrimSpace(file.Trailer().Key("Info").Key("Title").Text())}
	w.measure(pages)
	for n, lines := range pages {
		if w.page(n+1, lines); w.out.Len() > maxText {
			break
		}
	}
	if strings.TrimSpace(w.body.String()) == "" {
		return nil, ErrNoText
	}
	return w.finish(), nil
}

// PageMark is the comment that stands before the text of a page.
func PageMark(number int) string { return fmt.Sprintf("<!-- page %d -->", number) }

// linesOf are the lines of a page; none of one that cannot be read.
func linesOf(p pdf.Page) (lines []line) {
	defer func() { _ = recover() }() // one page in a strange form does not cost the others
	text := p.Content().Text
	spaces := 0
	for _, t := range text {
		if t.S == " " {
			spaces++
		}
	}
	b := builder{spaced: spaces > len(text)/25}
	for _, t := range text {
		b.add(t)
	}
	b.end()
	return b.lines
}
