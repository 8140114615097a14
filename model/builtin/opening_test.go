package builtin

import (
	"strings"
	"testing"

	"docent/model"
)

// What an announced list says belongs to the sentence that announces it.
func TestWhatIsItIsAnsweredWithTheListThatSaysIt(t *testing.T) {
	page := model.Passage{Path: "index.md", Title: "What Ferry is", Opens: true, Score: 1, Text: "Ferry gives a documentation site two things:\n\n" +
		"- an **agent** that takes a prompt, edits the pages and opens a pull request;\n" +
		"- an **assistant** that answers questions in a stream, with its sources.\n\n" +
		strings.Repeat("It is one program that runs on one machine with nothing installed beside it and nothing to look after. ", 6)}
	for _, question := range []string{"What is Ferry?", "What can it do?"} {
		text, cited, _, _ := answerOf(t, model.Request{Question: question, Project: "Ferry", Passages: []model.Passage{page}})
		if !strings.Contains(text, "an **agent**") || !strings.Contains(text, "an **assistant**") || len(cited) != 1 {
			t.Errorf("%s\n%s", question, text)
		}
	}
}

// A page in the place of a contact that names none is no answer.
func TestAPlaceThatSaysNothingIsNoContact(t *testing.T) {
	page := model.Passage{Path: "help.md", Title: "Get help", Opens: true, Score: 1, Text: "Read the manual first. Most of what goes wrong is in it."}
	if _, _, _, result := answerOf(t, model.Request{Question: "How do I contact you?", Passages: []model.Passage{page}}); result.Answered {
		t.Error("it is told as an answer")
	}
	page.Text = "Write to help@ferry.example."
	if text, cited, _, _ := answerOf(t, model.Request{Question: "How do I contact you?", Passages: []model.Passage{page}}); !strings.Contains(text, "help@ferry") || len(cited) != 1 {
		t.Errorf("%s", text)
	}
}
