package console

import (
	"context"
	"html/template"
	"log/slog"
	"strings"
	"testing"

	"docent/internal/cell"
)

// A text that cannot be rendered is shown as it is written, and nothing in it runs.
func TestWhatCannotBeRenderedIsShownAsItIsWritten(t *testing.T) {
	t.Parallel()
	s := &Server{Deps: Deps{Log: slog.New(slog.DiscardHandler), Cell: cell.InProcess(MarkdownKind())}}
	if got := s.Markdown(t.Context(), "p", "**bold** <b>x</b>"); got != "<p><strong>bold</strong> <!-- raw HTML omitted -->x<!-- raw HTML omitted --></p>\n" {
		t.Errorf("%s", got)
	}
	s.Cell = func(context.Context, string, []byte) ([]byte, error) {
		return nil, &cell.UnreadableError{Why: "it takes too long to be read", Broke: true}
	}
	if got := s.Markdown(t.Context(), "p", "**bold** <script>x"); got != "<pre>**bold** &lt;script&gt;x</pre>\n" {
		t.Errorf("%s", got)
	}
	large := strings.Repeat("x", 300<<10)
	s.Cell = cell.InProcess(MarkdownKind())
	if got := s.Markdown(t.Context(), "p", large); got != template.HTML("<pre>"+large+"</pre>\n") {
		t.Errorf("%.100s", got)
	}
}
