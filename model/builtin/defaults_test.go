package builtin

import (
	"fmt"
	"strings"
	"testing"

	"docent/model"
)

// A sample that merely sets a value comes after what states the default, in whichever form a reference does.
func TestADefaultIsAnsweredByWhatStatesIt(t *testing.T) {
	filler := strings.Repeat(
		"\n\nThe server writes a line for every request that it turns away, with the time and the address it came from.", 12)
	sample := model.Passage{Path: "start.md", Title: "First steps", Heading: "Set the scrape interval", Score: 0.6,
		Text: "The sample sets the scrape interval that all targets are scraped with by default:\n\n```yaml\nglobal:\n  scrape_interval: 15s\n```"}
	for name, c := range map[string]struct{ heading, text, want string }{
		"a commented scheme": {"Configuration",
			"```yaml\nglobal:\n  # How frequently to scrape targets.\n  [ scrape_interval: <duration> | default = 1m ]\n\n" +
				strings.Repeat("  # Another one.\n  [ timeout: <duration> | default = 10s ]\n", 40) + "```",
			"```yaml\n# How frequently to scrape targets.\n[ scrape_interval: <duration> | default = 1m ]\n```"},
		"a list under the setting's name": {"scrape.interval",
			"- **Type:** `duration`\n- **Default:** `1m`\n\nHow often targets are scraped." + filler,
			"- **Type:** `duration`\n- **Default:** `1m`"},
		"an item": {"Flags", "- `--scrape-interval`: how often targets are scraped (default 1m)\n" +
			strings.Repeat("- `--other`: another flag that does something else\n", 20),
			"`--scrape-interval`: how often targets are scraped (default 1m)"},
		"a sentence": {"Targets", "How often is up to you. The scrape interval defaults to 1m." + filler,
			"defaults to 1m"},
		"another sentence":               {"Targets", "The default scrape interval is 1 minute." + filler, "is 1 minute"},
		"a sentence that begins with it": {"Scrape interval", "By default, targets are asked every `1m`." + filler, "every `1m`"},
		"a dash": {"Flags", "- `--scrape-interval`: how often targets are scraped — default 1m\n" +
			strings.Repeat("- `--other`: another flag that does something else\n", 20), "scraped — default 1m"},
		"a column of a table": {"Settings", settings(20) + "| `scrape_interval` | `1m` | how often |\n",
			"| Setting | Default | What it is |\n| --- | --- | --- |\n| `scrape_interval` | `1m` | how often |"},
		"a small table, whole": {"Settings", "| Setting | Default |\n| --- | --- |\n| `scrape_interval` | 1m |" +
			filler, "| `scrape_interval` | 1m |"},
	} {
		reference := model.Passage{Path: "reference.md", Title: "Reference", Heading: c.heading, Text: c.text, Score: 0.2}
		for _, question := range []string{"What is the default scrape interval?", "default scrape_interval",
			"Which value does scrape_interval default to?"} {
			text, cited, _, result := answerOf(t,
				model.Request{Question: question, Passages: []model.Passage{sample, reference}})
			at := strings.Index(text, c.want)
			if sets := strings.Index(text, "15s"); !result.Answered || cited[0] != 1 || at < 0 || sets >= 0 && sets < at {
				t.Errorf("%s, %s: cited %v\n%s", name, question, cited, text)
			}
		}
	}
}

func TestWhatIsNoQuestionForADefault(t *testing.T) {
	for question, want := range map[string]bool{
		"What is the default scrape interval?":                                        true,
		"default scrape timeout":                                                      true,
		"how often are targets scraped by default":                                    true,
		"what does root_path default to?":                                             true,
		"serve the current docs as the default version without next in the url":       false,
		"open external links in the default browser instead of a new electron window": false,
		"how to open a url from an a tag in the default os browser":                   false,
		"How do I set the scrape interval?":                                           false,
		"default":                                                                     false,
		"What is the default?":                                                        false,
	} {
		if _, asked := StatesDefault(question); asked != want {
			t.Errorf("%s: %v", question, asked)
		}
	}
}

// A value that is another setting's is told after one that is a value.
func TestADefaultThatIsAnotherSettingsComesSecond(t *testing.T) {
	scheme := func(path, value string) model.Passage {
		return model.Passage{Path: path, Title: path, Heading: path, Score: 0.5,
			Text: fmt.Sprintf("```yaml\n# How often.\n[ scrape_interval: <duration> | default = %s ]\n```",
				value) + strings.Repeat("\n\nThe scrape interval is one of many.", 60)}
	}
	text, cited, _, _ := answerOf(t, model.Request{Question: "What is the default scrape interval?",
		Passages: []model.Passage{scheme("job.md", "<global.scrape_interval>"), scheme("global.md", "1m")}})
	if len(cited) == 0 || cited[0] != 1 || !strings.Contains(text, "= 1m") ||
		strings.Contains(text, "= <global") && strings.Index(text, "= 1m") > strings.Index(text, "= <global") {
		t.Errorf("cited %v\n%s", cited, text)
	}
}

// Over the documentation that showed it.
func TestTheDefaultScrapeIntervalIsNotThatOfASample(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	req, _ := j.request(t, "prometheus", "What is the default scrape interval?")
	text, _, _, _ := answerOf(t, req)
	states, sets := strings.Index(text, "[ scrape_interval: <duration> | default = 1m ]"), strings.Index(text, "15s")
	if states < 0 || sets >= 0 && sets < states {
		t.Error(text)
	}
}
