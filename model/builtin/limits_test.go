package builtin

import (
	"strings"
	"testing"

	"docent/model"
)

// A question for a number begins with the line that says it, and never with a sample or a version that has one.
func TestANumberIsAnsweredByTheLineThatSaysIt(t *testing.T) {
	filler := strings.Repeat("Each request of the gateway is written to the log with its time and address.\n\n", 14)
	for _, c := range []struct{ question, text, want string }{
		{"How many webhooks can a workspace have?",
			"For example, a workspace with 3 webhooks is small. A workspace has at most 25 webhooks.",
			"A workspace has at most 25 webhooks."},
		{"How long are access tokens valid?",
			"Access tokens came with version 2.10. Access tokens are valid for at most 15 minutes.",
			"Access tokens are valid for at most 15 minutes."},
		{"Which port does the metrics endpoint listen on?",
			"When the metrics endpoint is on port 80, stop it. The metrics endpoint always listens on port 9187.",
			"The metrics endpoint always listens on port 9187."},
		{"What is the maximum size of an attachment?",
			"- Attachment names: 3 of them, as they are\n- Attachment: the maximum size is 20 MB\n" +
				strings.Repeat("- Something else that the gateway knows of, in a longer line of words\n", 9),
			"- Attachment: the maximum size is 20 MB"},
	} {
		text, _, _, result := answerOf(t, model.Request{Question: c.question, Passages: []model.Passage{
			{Path: "a.md", Title: "Reference", Heading: "Notes", Text: filler + c.text + "\n\n" + filler, Score: 0.95}}})
		if !result.Answered || !strings.HasPrefix(text, c.want) {
			t.Errorf("%s\nis answered %v\n%.300s", c.question, result.Answered, text)
		}
	}
}
