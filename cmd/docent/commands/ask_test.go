package commands

import (
	"strings"
	"testing"

	"docent/api/client"
)

// Titles and excerpts are of pages that others write: none acts on the terminal that they are printed on.
func TestSourcesHoldNothingThatATerminalActsOn(t *testing.T) {
	const evil = "a\x1b]52;c;eA==\x07b\u009b2J\n"
	a := client.Answer{Sources: []client.Source{{Title: evil, URL: evil}}, Cards: []client.Card{{Title: evil, URL: evil, Excerpt: evil}},
		Suggestions: []client.Suggestion{{Text: evil}}}
	var b strings.Builder
	printSources(&b, a)
	const good = "a]52;c;eA==b2J"
	want := "\nSources:\n  [1] " + good + "  " + good + "\n\nSee also:\n  " + good + "  " + good + "\n      " + good +
		"\n\nYou can also ask:\n  " + good + "\n\nThread: \n"
	if b.String() != want {
		t.Errorf("%q", b.String())
	}
}
