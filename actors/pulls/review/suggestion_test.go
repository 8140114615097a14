package review

import (
	"strings"
	"testing"

	"docent/api"
)

// A suggestion of a reviewer becomes an instruction with its old lines and its new ones; the words around it do not.
func TestASuggestionBecomesAnInstruction(t *testing.T) {
	c := api.ReviewComment{Path: "docs/p4.md", Line: 6, Quote: "One line.\nTwo lines.",
		Text: "apply this\n\n```suggestion\nThree lines.\n```\n"}
	want := "In docs/p4.md, replace lines 5 to 6:\n```text\nOne line.\nTwo lines.\n```\nwith\n```suggestion\nThree lines.\n```\n"
	if got := Prompt("#1", []api.ReviewComment{c}, true); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Prompt("#1", []api.ReviewComment{c}, false); !strings.Contains(got, "docs/p4.md, lines 5 to 6:") {
		t.Errorf("a model is not told all lines: %s", got)
	}
	c.Quote = ""
	if got := Prompt("#1", []api.ReviewComment{c}, true); strings.Contains(got, "replace line") {
		t.Errorf("lines that are not known are replaced: %s", got)
	}
}
