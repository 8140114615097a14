package article

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"slices"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/marker"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

func hexOf(id string) string { return hex.EncodeToString([]byte(id)) }

// markdown writes a page's part, with the anchors of its headings.
func markdown(top *html.Node) ([]byte, error) {
	conv := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
		table.NewTablePlugin(table.WithHeaderPromotion(true), table.WithSkipEmptyRows(true),
			table.WithNewlineBehavior(table.NewlineBehaviorPreserve),
			table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
	conv.Register.RendererFor("blockquote", converter.TagTypeBlock, quote, converter.PriorityEarly)
	out, err := conv.ConvertNode(top)
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	for i, line := range lines {
		m := placeholder.FindSubmatch(line)
		if m == nil {
			continue
		}
		id, err := hex.DecodeString(string(m[1]))
		line = bytes.TrimRight(placeholder.ReplaceAll(line, nil), " ")
		if at := bytes.TrimLeft(line, " >"); err == nil && bytes.HasPrefix(at, []byte("#")) {
			line = append(append(append(line, " {#"...), id...), '}')
		}
		lines[i] = line
	}
	return append(bytes.Join(lines, []byte("\n")), '\n'), nil
}

var manyLines = regexp.MustCompile(`\n{3,}`)

// quote writes a quotation. The converter's own writer leaves the lines of code in it outside: it ends them otherwise than
// lines of text.
func quote(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	var inner bytes.Buffer
	ctx.RenderChildNodes(ctx, &inner, n)
	content := manyLines.ReplaceAllLiteral(bytes.TrimSpace(inner.Bytes()), []byte("\n\n"))
	if len(content) == 0 {
		return converter.RenderSuccess
	}
	const sign = "> "
	content = bytes.ReplaceAll(content, []byte("\n"), []byte("\n"+sign))
	content = bytes.ReplaceAll(content, marker.BytesMarkerCodeBlockNewline, slices.Concat(marker.BytesMarkerCodeBlockNewline, []byte(sign)))
	_, _ = w.WriteString("\n\n" + sign + string(content) + "\n\n")
	return converter.RenderSuccess
}
