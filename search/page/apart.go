package page

import (
	"context"
	"time"

	"docent/internal/cell"
	"docent/search/sources/pdf"
)

// Kinds are the parsers of files that may make much of little, which the program runs apart.
func Kinds() []cell.Kind {
	return []cell.Kind{
		{Name: KindPDF, Time: time.Minute, MaxInput: 64 << 20, MaxOutput: 8 << 20, Read: pdf.Markdown},
		{Name: kindAPI, Time: 20 * time.Second, MaxInput: 4 << 20, MaxOutput: 2*maxAPIBytes + 1<<20,
			Read: cell.Values(func(in apiInput) ([]Text, error) { return apiPages(in.Name, in.Content), nil })},
	}
}

const (
	// KindPDF makes Markdown of a PDF file, in the form of docent/search/sources/pdf.
	KindPDF = "PDF file"
	kindAPI = "description of an API"
)

type apiInput struct {
	Name    string
	Content []byte
}

// Texts are the pages of a file, the file's own first: of a document that describes an API one for the whole and one for
// each operation. There are none if the file holds nothing for readers. Such a document is read in the cell.
func Texts(ctx context.Context, apart cell.Func, name string, content []byte) ([]Text, error) {
	if !IsData(name) {
		return []Text{{Content: content}}, nil
	}
	if !describesAPI.Match(content) {
		return nil, nil
	}
	return cell.Call[[]Text](ctx, apart, kindAPI, apiInput{name, content})
}
