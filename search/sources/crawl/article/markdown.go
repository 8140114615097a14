package article

import (
	"bytes"
	"encoding/hex"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
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
