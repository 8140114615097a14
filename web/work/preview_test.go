package work

import (
	"context"
	"log/slog"
	"testing"

	"docent/internal/cell"
	"docent/web/console"
)

// A page that cannot be rendered is shown as it is written, and nothing in it runs.
func TestAPageThatCannotBeRenderedIsShownAsItIsWritten(t *testing.T) {
	t.Parallel()
	s := &handler{Server: &console.Server{Deps: console.Deps{Log: slog.New(slog.DiscardHandler),
		Cell: func(context.Context, string, []byte) ([]byte, error) {
			return nil, &cell.UnreadableError{Why: "it takes too long to be read", Broke: true}
		}}}}
	if got := s.blocks(t.Context(), "p", "a.md", []byte("# A <script>")); len(got) != 1 || got[0].HTML != "<pre># A &lt;script&gt;</pre>\n" {
		t.Errorf("%+v", got)
	}
}
