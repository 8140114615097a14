package builtin

import (
	"strings"
	"testing"

	"docent/model"
)

// A question for yes or no begins with the sentence that states it, and with the word only if nothing in that
// sentence can be read otherwise.
func TestYesOrNoIsSaidOnlyWithoutDoubt(t *testing.T) {
	filler := "The gateway writes a line to its log for each request.\n\n" + strings.Repeat(
		"Each request that the gateway turns away is written to the log with its time and the address it came from.\n\n", 12)
	for _, c := range []struct{ question, says, want string }{
		{"Can I rotate signing keys?", "You can rotate signing keys from the console.", "Yes. You can rotate"},
		{"Is it possible to rotate signing keys?", "It is possible to rotate signing keys.", "Yes. It is possible"},
		{"Does Acme support signing keys?", "Acme supports signing keys.", "Yes. Acme supports"},
		{"Are signing keys supported?", "Signing keys are not supported.", "No. Signing keys"},
		{"Does Acme support signing keys?", "Acme does not support signing keys.", "No. Acme does not"},
		{"Can I rotate signing keys?", "You cannot rotate signing keys.", "No. You cannot"},
		{"Are signing keys required?", "Signing keys are optional.", "No. Signing keys"},
		{"Are signing keys required?", "Signing keys are required.", "Yes. Signing keys"},
		{"Do I need to rotate signing keys?", "You don't need to rotate signing keys.", "No. You don't"},
		{"Can I rotate signing keys?", "Yes, from the console you rotate signing keys.", "Yes, from"},
		// A condition, a degree, an exception, another subject, another direction, or a turned question: quoted only.
		{"Can I rotate signing keys?", "You can only rotate signing keys once a year.", "You can only"},
		{"Can I rotate signing keys?", "You can rotate signing keys if you own them.", "You can rotate"},
		{"Can I rotate signing keys?", "You may rotate signing keys.", "You may"},
		{"Can I rotate signing keys?", "You cannot rotate signing keys without being an owner.", "You cannot"},
		{"Can I rotate signing keys?", "An owner can rotate signing keys.", "An owner"},
		{"Does Acme support signing keys?", "The other proxy supports signing keys.", "The other"},
		{"Does Acme support signing keys?", "Acme supports most signing keys.", "Acme supports"},
		{"Can I rotate signing keys without downtime?", "You can rotate signing keys with downtime.", "You can"},
		{"Can I copy tokens from vaults to buckets?", "You can copy tokens from buckets to vaults.", "You can"},
		{"Can't I rotate signing keys?", "You can rotate signing keys.", "You can"},
		{"Are signing keys required?", "Signing keys are required for the beta.", "Signing keys"},
	} {
		req := model.Request{Project: "Acme", Question: c.question, Passages: []model.Passage{
			{Path: "keys.md", Title: "Keys", Heading: "Keys and tokens", Text: filler + c.says + "\n\n" + filler, Score: 0.95}}}
		text, _, _, result := answerOf(t, req)
		if !result.Answered || !strings.HasPrefix(text, c.want) {
			t.Errorf("%s\n%s\nis answered\n%.200s", c.question, c.says, text)
		}
		if strings.Count(text, c.says) > 1 {
			t.Errorf("%s: said twice\n%s", c.question, text)
		}
	}
}

// What is shown in doubt never begins with a yes or a no of our own.
func TestADoubtfulAnswerSaysNoYes(t *testing.T) {
	text, _, _, result := answerOf(t, model.Request{Project: "Acme", Question: "Can I rotate signing keys of Zeppelin?",
		Passages: []model.Passage{{Path: "keys.md", Title: "Keys", Heading: "Keys",
			Text: "You can rotate signing keys.", Score: 0.2}}})
	if result.Answered || strings.Contains(text, "Yes.") {
		t.Errorf("answered %v: %s", result.Answered, text)
	}
}

// A request and a choice are no questions for yes or no.
func TestWhatIsNoQuestionForYesOrNo(t *testing.T) {
	for question, want := range map[string]bool{
		"Can I rotate keys?": true, "does it support NFS": true, "Is it possible to reload?": true,
		"Can you explain how keys rotate?": false, "Should I use keys or tokens?": false, "How do I rotate keys?": false,
		"What can I rotate?": false,
	} {
		if a, _ := yesNo(question, ""); (a != nil) != want {
			t.Errorf("%s: %v", question, a != nil)
		}
	}
}

// Rows of a table that share words with a question for yes or no do not come before a sentence that has as much of it.
func TestASentenceComesBeforeRowsThatShareWords(t *testing.T) {
	text, _, _, _ := answerOf(t, model.Request{Project: "Acme", Question: "Can I run Acme without a language model?",
		Passages: []model.Passage{
			{Path: "settings.md", Title: "Settings", Heading: "Every setting", Score: 0.5,
				Text: "| Setting | What it is |\n| --- | --- |\n| `listener` | address for those who run the server without a key |\n| `sandbox` | what checks run in |\n| `model` | the model of a language |\n"},
			{Path: "models.md", Title: "Models", Heading: "Models", Score: 0.45,
				Text: "Without a language model Acme runs with the built-in one, which composes answers from the documentation."}}})
	if !strings.Contains(text[:min(len(text), 60)], "Without a language model") && !strings.HasPrefix(text, "**Models**") {
		t.Error(text)
	}
}

func TestWindowsIsNoWindow(t *testing.T) {
	if termsOf("Windows")[0].text == termsOf("window")[0].text {
		t.Error("a flag for a window runs on Windows")
	}
}
