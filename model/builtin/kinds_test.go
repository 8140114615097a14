package builtin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"docent/model"
)

// A message that a question quotes is looked for by itself.
func TestAQuotedMessageIsSearchedFor(t *testing.T) {
	for question, want := range map[string]string{
		"I get \"unable to open the lock file\" when I start it":         "unable to open the lock file",
		"What does `Error: listen EADDRINUSE address in use` mean here?": "Error: listen EADDRINUSE address in use",
		"What does `server.port` do?":                                    "",
		"Why is it slow?":                                                "",
	} {
		if got := Queries(question, nil, nil); want != "" && !slices.Contains(got, want) || want == "" && len(got) > 1 {
			t.Errorf("%q is searched for as %q, want %q", question, got, want)
		}
	}
}

// The steps of a how-to are never cut, however long the answer gets by them.
func TestStepsAreQuotedWholeAndInOrder(t *testing.T) {
	text := "Follow these steps to sign the application:\n\n"
	for i := range 12 {
		text += fmt.Sprintf("%d. Open page %d of the certificate tool, fill in its form as it asks, check what it "+
			"shows and confirm it before the tool closes the page.\n", i+1, i+1)
	}
	text += "\n" + strings.Repeat("The tool writes a line to its log for each page that was opened and closed again. ", 30)
	answer, _, _, _ := answerOf(t, model.Request{Question: "How do I sign the application?", Passages: []model.Passage{
		{Path: "sign.md", Title: "Signing", Heading: "Sign the application", Text: text, Score: 0.9}}})
	at := 0
	for i := range 12 {
		next := strings.Index(answer[at:], fmt.Sprintf("%d. Open page %d ", i+1, i+1))
		if next < 0 {
			t.Fatalf("step %d is missing in\n%s", i+1, answer)
		}
		at += next
	}
}
