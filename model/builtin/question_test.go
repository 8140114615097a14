package builtin

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"docent/model"
)

var silence = model.Snippet{Kind: "textSelection", Path: "guide/silences",
	Text: "A silence in the Alertmanager prevents alerts from being sent."}

func TestWhatTheReaderHasSelectedIsSearchedFor(t *testing.T) {
	const about = "silence Alertmanager prevents alerts sent"
	history := []model.Message{{Role: "user", Text: "What is a histogram?"}, {Role: "assistant", Text: "It samples."}}
	for question, want := range map[string][]string{
		"What does this mean?":             {"What does this mean? " + about},
		"explain":                          {"explain " + about},
		"Explain the second line please":   {"Explain the second line please " + about},
		"how does it work with templates?": {"how does it work with templates? " + about},
		"How do I write an alerting rule?": {"How do I write an alerting rule?", "How do I write an alerting rule? " +
			about},
		"What is this? And how do I end it": {"What is this? And how do I end it " + about, "What is this? " + about,
			"And how do I end it " + about},
		"What is an alerting rule? And what is it for": {"What is an alerting rule? And what is it for",
			"What is an alerting rule?", "And what is it for alerting rule",
			"What is an alerting rule? And what is it for " + about},
	} {
		got := Queries(question, history, []model.Snippet{silence})
		for i := range got {
			got[i] = strings.Join(strings.Fields(got[i]), " ")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is searched for as %q, want %q", question, got, want)
		}
	}
	code := model.Snippet{Kind: "code", Text: "global:\n  scrape_interval: 15s # how often\n"}
	if got := Queries("What does this do?", nil, []model.Snippet{code}); len(got) != 1 ||
		!strings.HasPrefix(got[0], "What does this do? global scrape_interval 15s") {
		t.Errorf("code is searched for as %q", got)
	}
}

func TestNoSelectionIsTooLarge(t *testing.T) {
	var many []model.Snippet
	for range 100 {
		many = append(many, model.Snippet{Kind: "code", Text: strings.Repeat("wörd_of_code ", 4000)})
	}
	for _, question := range []string{"What does this mean?", "How do I write an alerting rule?",
		strings.Repeat("é why? ", 5000)} {
		for _, q := range Queries(question, nil, many) {
			if len(q) > 2*longestAsked || !utf8.ValidString(q) {
				t.Errorf("a query of %d bytes", len(q))
			}
		}
	}
}

// A long message is a text with the question before or after it.
func TestALongQuestionIsSearchedForByItsBeginningAndItsEnd(t *testing.T) {
	log := strings.Repeat("level=info caller=main.go msg=started\n", 500)
	for _, question := range []string{"How do I silence an alert?\n" + log, log + "How do I silence an alert?"} {
		if q := Queries(question, nil, nil); !strings.Contains(q[0], "How do I silence an alert?") {
			t.Errorf("searched for %q", q)
		}
	}
}

func TestTheBuiltinModelAnswersAboutWhatTheReaderHasSelected(t *testing.T) {
	passages := []model.Passage{
		{Path: "silences.md", Title: "Silences", Heading: "Silences", Score: 0.7,
			Text: "A silence mutes alerts for a given time. A silence in the Alertmanager prevents alerts from being sent. It is made of matchers."},
		{Path: "config.md", Title: "Configuration", Heading: "Global", Score: 0.5,
			Text: "The `scrape_interval` says how often targets are scraped."},
	}
	for name, c := range map[string]struct {
		question string
		selected model.Snippet
		want     string
	}{
		"text": {"What does this mean?", silence, "A silence mutes alerts"},
		"code": {"Explain this code", model.Snippet{Kind: "code", Text: "scrape_interval: 15s"},
			"how often targets are scraped"},
	} {
		req := model.Request{Question: c.question, Passages: passages}
		if _, _, _, result := answerOf(t, req); result.Answered {
			t.Errorf("%s: answered without the selection", name)
		}
		req.Context = []model.Snippet{c.selected}
		if text, _, _, result := answerOf(t, req); !result.Answered || !strings.Contains(text, c.want) {
			t.Errorf("%s: %+v, %q", name, result, text)
		}
		req.Question = "How do I bake a sourdough loaf?"
		if text, _, _, result := answerOf(t, req); result.Answered {
			t.Errorf("%s: a question about something else is answered: %q", name, text)
		}
	}
}

// A whole question that begins with "and" is about what it says.
func TestAWholeQuestionAfterAndIsItsOwn(t *testing.T) {
	before := []model.Message{{Role: "user", Text: "What do tickets cost?"}, {Role: "assistant", Text: "Four coins."}}
	for question, want := range map[string]string{
		"And where does the ferry leave?": "And where does the ferry leave?",
		"And where can I buy them?":       "And where can I buy them tickets cost",
		"And for children?":               "And for children tickets cost",
	} {
		if got := Standalone(question, before, nil); got != want {
			t.Errorf("%q is read as %q, not as %q", question, got, want)
		}
	}
}
