package page

import (
	"bytes"
	"path"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"

	"docent/internal/formats/tables"
)

// IsHTML tells from its name whether a page is HTML.
func IsHTML(p string) bool {
	ext := strings.ToLower(path.Ext(p))
	return ext == ".html" || ext == ".htm"
}

// chrome is what stands on every page of a site, and what is there to be used and not read.
var chrome = map[string]bool{"nav": true, "footer": true, "button": true, "form": true, "svg": true, "template": true,
	"noscript": true, "dialog": true}

// Markdown is a part of an HTML page as Markdown, for those who read pages as Markdown: of its main element, if the
// part has one, without what stands on every page. The part may begin and end anywhere between two elements. What
// cannot be converted stays as it is.
func Markdown(part []byte) []byte {
	doc, err := html.Parse(bytes.NewReader(part))
	if err != nil {
		return part
	}
	var main *html.Node
	var gone []*html.Node
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if main == nil && n.Data == "main" {
			main = n
		}
		unseen := chrome[n.Data]
		for _, a := range n.Attr {
			unseen = unseen || a.Key == "hidden"
		}
		if unseen {
			gone = append(gone, n)
		}
	}
	for _, n := range gone {
		n.Parent.RemoveChild(n)
	}
	if main == nil {
		main = doc
	}
	tables.Bound(main)
	conv := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
		table.NewTablePlugin()))
	text, err := conv.ConvertNode(main)
	if err != nil {
		return part
	}
	return text
}
