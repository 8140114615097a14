package builtin

import (
	"strings"
	"testing"

	"docent/model"
)

func TestADefinitionOfTheProductIsFound(t *testing.T) {
	for text, want := range map[string]bool{
		"[Kettle](https://x.example/k) is a tea server.": true, "About Kettle\n\n**Kettle** is an app.": true,
		"Welcome to Kettle!\n\nLearn more":                                                false,
		"Welcome to the pages of [Kettle](https://x.example/), the tea server for teams.": true, "In Kettle, the lid is round.": false, "Kettle is fast.": false, "A teakettle is a pot.": false, "A pot is a thing.": false,
	} {
		if got := saysWhatItIs(text, "Kettle"); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// What license a product is under is said by one sentence of any page, not by a page that has the word.
func TestALicenseIsToldByTheSentenceThatSaysIt(t *testing.T) {
	text, _, _, result := answerOf(t, model.Request{Question: "What license is it under?", Project: "Kettle", Passages: []model.Passage{
		{Path: "releases.md", Title: "Release 2", Text: "- Remove the year from the LICENSE", Score: 1},
		{Path: "vision.md", Title: "Vision", Heading: "Open", Text: "We like tea.\n\nKettle is open source utilizing the MIT license.", Score: 0.6},
		{Path: "more.md", Title: "More", Text: "The plugin is licensed under the MIT license.", Score: 0.5},
	}})
	if !result.Answered || !strings.Contains(text, "utilizing the MIT license") || strings.Contains(text, "plugin") || strings.Contains(text, "year") {
		t.Errorf("%v: %s", result.Answered, text)
	}
}

// A sentence that leads to what follows says nothing by itself.
func TestASentenceThatOnlyLeadsOnIsNoAnswer(t *testing.T) {
	filler := strings.Repeat(" The network is looked at with a tool for it, and what it says is written down for later.", 5)
	text, _, _, _ := answerOf(t, model.Request{Question: "Why is sync so slow?", Passages: []model.Passage{{Path: "faq.md", Title: "FAQ",
		Heading: "Why is the sync so slow?", Score: 1, Text: "With slow sync, there are a number of things to check.\n\nFirst of all, verify that no relay is used." +
			filler + "\n\nSecond, look at the processor." + filler}}})
	if !strings.Contains(text, "no relay is used") {
		t.Error(text)
	}
}
