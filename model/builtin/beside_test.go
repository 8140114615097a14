package builtin

import (
	"strings"
	"testing"

	"docent/model"
	"docent/model/builtin/blocks"
)

// A section that does something else with what is asked about is not the one to begin with, and neither is a page for those who make
// the product.
func TestWhatIsBesideTheQuestionComesLater(t *testing.T) {
	right := model.Passage{Path: "publish.md", Title: "Publishing", Heading: "Scheduled delivery", Anchor: "scheduled", Score: 0.5,
		Text: "You can delay a message and have it sent at a later date. Set the time with the header `At`."}
	for question, wrong := range map[string]model.Passage{
		"How do I schedule a message?": {Path: "api.md", Title: "API", Heading: "Fetch scheduled messages", Score: 0.52,
			Text: "A message that is scheduled for a later date is not returned. To return each scheduled message, use `scheduled=1`."},
		"How do I have a message delivered later?": {Path: "dev/delivery.md", Title: "Delivery", Heading: "Message delivery", Score: 0.52,
			Text: "A message that is delivered later waits in the table `later` of the deliverer, which is woken by a timer."},
		"How do I schedule messages for delivery?": {Path: "publish.md", Title: "Publishing", Heading: "How many messages are scheduled?", Score: 0.52,
			Text: "The page of each topic shows how many messages are scheduled for delivery."},
	} {
		text, _, _, _ := answerOf(t, model.Request{Question: question, Passages: []model.Passage{wrong, right}})
		if at := strings.Index(text, "header `At`"); at < 0 || strings.Contains(text[:at], wrong.Text[:20]) {
			t.Errorf("%s\n%s", question, text)
		}
	}
	if q := newQuery("How do I write a plugin?", nil); !q.makes || aside("changelog.md", newQuery("What is in the changelog?", nil)) || !aside("docs/changelog.md", q) {
		t.Error("pages of makers")
	}
}

// A sentence about "this option" says nothing of the product, and neither does the one that goes on with it.
func TestALineThatLeansOnWhatIsNotAskedIsNoAnswer(t *testing.T) {
	link := model.Passage{Path: "config.md", Title: "Configuration", Heading: "link", Score: 0.6,
		Text: "Whether links are made. This is off.\n\nThis option only works on platforms that support links. It will fail on Windows."}
	install := model.Passage{Path: "install.md", Title: "Installation", Heading: "Windows installation", Score: 0.6, Text: "Download the installer and run it. Kettle works on Windows 10 and later."}
	text, _, _, _ := answerOf(t, model.Request{Question: "Does it work on Windows?", Project: "Kettle", Passages: []model.Passage{link, install}})
	if fails := strings.Index(text, "It will fail"); !strings.Contains(text, "Kettle works on Windows 10") || fails >= 0 && fails < strings.Index(text, "Kettle works") {
		t.Errorf("%s", text)
	}
}

func TestCodeThatIsDataIsNotShown(t *testing.T) {
	p := model.Passage{Path: "a.md", Title: "Alerts", Score: 0.6, Text: "An alert is sent as JSON.\n\n```\n{\"alert\": \"" + strings.Repeat("end-to-end ", 60) + "\"}\n```\n"}
	if text, _, _, _ := answerOf(t, model.Request{Question: "Is an alert encrypted end-to-end?", Passages: []model.Passage{p}}); strings.Contains(text, "{") {
		t.Errorf("%s", text)
	}
}

// Where nothing says what license the product is under, that of something else is no answer.
func TestALicenseOfSomethingElseIsNoAnswer(t *testing.T) {
	other := model.Passage{Path: "plugins/sub.md", Title: "Sub plugin", Score: 0.4, Text: "This plugin requires Sub with a license."}
	if text, cited, _, _ := answerOf(t, model.Request{Question: "What license is it under?", Project: "Kettle", Passages: []model.Passage{other}}); len(cited) > 0 {
		t.Errorf("%s", text)
	}
}

// Of a long procedure the first steps are told and the rest is named, and none of it stands for the section that has all that is asked.
func TestALongProcedureNamesItsLastSteps(t *testing.T) {
	page := []model.Passage{{Path: "set-up.md", URL: "https://x/set-up", Title: "Set up the relay", Text: "The relay needs five steps.", Score: 0.8}}
	for _, h := range strings.Fields("Install Configure Start Connect Verify") {
		page = append(page, model.Passage{Path: "set-up.md", URL: "https://x/set-up#" + h, Anchor: h, Title: "Set up the relay", Heading: h + " the daemon", Score: 0.5,
			Text: "To " + h + " the daemon:\n\n1. " + strings.Repeat("Use the tool with care. ", 20) + "\n2. " + h + " it at last."})
	}
	req := model.Request{Question: "How do I set up the relay?", Passages: page[:1], Around: func(_, anchor string) []model.Passage { return page }}
	text, _, _, _ := answerOf(t, req)
	if !strings.Contains(text, "Install it at last") || strings.Contains(text, "Verify it at last") || !strings.Contains(text, "5. [Verify the daemon]") {
		t.Errorf("%s", text)
	}
	req.Question, req.Passages = "How do I start the daemon of the relay?", []model.Passage{page[3]}
	if text, _, _, _ = answerOf(t, req); !strings.Contains(text, "Start it at last") || strings.Contains(text, "Install it at last") {
		t.Errorf("%s", text)
	}
}

func TestListsInHTMLAndTabsOfMaterialAreRead(t *testing.T) {
	kinds := func(path, text string) (out []string) {
		for _, b := range blocks.Parse(&model.Passage{Path: path, Title: "x", Text: text}) {
			tab := ""
			if b.Tab {
				tab = "tab "
			}
			out = append(out, tab+b.Text)
		}
		return out
	}
	got := kinds("a.mdx", "<div>\n<p>Begin here.</p>\n<ol>\n<li>Register</li>\n<li><b>Add</b> a site\n<ul><li>or two</li></ul></li>\n</ol>\n</div>\n\nThen go on.\n")
	if want := "Begin here.|1. Register\n2. Add a site\n  - or two|Then go on."; strings.ReplaceAll(strings.Join(got, "|"), "**", "") != want {
		t.Errorf("%q", got)
	}
	got = kinds("a.md", "Send it:\n\n=== \"Command line (curl)\"\n    ```\n    curl x\n    ```\n\n=== \"CLI\"\n    ```\n    x send\n    ```\n")
	if len(got) != 5 || got[1] != "tab Command line (curl)" || got[3] != "tab CLI" {
		t.Errorf("%q", got)
	}
	shown, _, _, _ := answerOf(t, model.Request{Question: "How do I send a note?", Passages: []model.Passage{{Path: "a.md", Title: "Send a note", Score: 0.8,
		Text: "_Supported on:_\n\nSend a note with the tool."}}})
	if strings.Contains(shown, "Supported") {
		t.Errorf("%s", shown)
	}
}
