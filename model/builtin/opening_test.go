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
		"It is one program. It runs on one machine with nothing installed beside it: no database server, no vector store, no queue and no language " +
		"model are needed, though a [database](/db), [several nodes](/nodes) and [any model](/models) can be configured. It speaks the public API of " +
		"a hosted platform, so a client of that platform only changes its base URL.\n\n## What it promises\n\n1. A job that was accepted is on " +
		"disk. It is carried out exactly once, whatever dies in between.\n2. A job ends with exactly one branch and at most one open pull request."}
	other := model.Passage{Path: "install.md", Title: "Installation", Heading: "By package", Score: 0.9,
		Text: "A release of Ferry has packages for amd64 and arm64. A package brings Ferry, a user `ferry`, and two units: the service, and the " +
			"address that it listens on.\n\nOn Debian Ferry runs once it is installed, on the machine's own address alone; it needs no configuration to " +
			"begin with. On systems with rpm, the person who installs Ferry starts it:\n\n```bash\nsudo dnf install ./ferry-*.rpm\n```\n\n" +
			"Without a package, put Ferry at `/usr/bin/ferry` and take `deploy/systemd` of the release or the repository of Ferry."}
	for question, project := range map[string]string{"What is Ferry?": "docs", "What is ferry? ": "Ferry", "What can it do?": "Ferry"} {
		page.Opens = project == "Ferry"
		text, _, _, _ := answerOf(t, model.Request{Question: question, Project: project, Passages: []model.Passage{page, other}})
		if !strings.Contains(text, "an **agent**") || !strings.Contains(text, "an **assistant**") {
			t.Errorf("%s\n%s", question, text)
		}
	}
	page.Opens = true
	j := New("b").Prompt(model.Request{Question: "What is Ferry?", Project: "Ferry", Passages: []model.Passage{page, other}}).Judged
	if j.Opening != "about" || j.Verdict != model.VerdictAnswered {
		t.Errorf("it is judged as %+v", j)
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

// One passage says which section it is from, unless it begins with the line that answers or has the section's name itself.
func TestOnePassageSaysItsSection(t *testing.T) {
	option := model.Passage{Path: "options.md", Title: "Options", Heading: "DB_ENGINE", Anchor: "db", Score: 0.6, Text: "Values: `postgres` or `sqlite` | Default = `sqlite`"}
	text, _, _, _ := answerOf(t, model.Request{Question: "How do I use postgres instead of sqlite?", Project: "Kettle", Passages: []model.Passage{option}})
	if !strings.HasPrefix(text, "**Options: DB_ENGINE**\n\nValues") {
		t.Errorf("%s", text)
	}
	option.Heading = "Sqlite, postgres"
	if text, _, _, _ = answerOf(t, model.Request{Question: "How do I use postgres instead of sqlite?", Project: "Kettle", Passages: []model.Passage{option}}); strings.HasPrefix(text, "**Options") {
		t.Errorf("%s", text)
	}
}
