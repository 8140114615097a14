package builtin

import (
	"fmt"
	"strings"
	"testing"

	"docent/model"
)

// settings is a table of so many rows, each of some 20 words.
func settings(n int) string {
	table := "| Setting | Default | What it is |\n| --- | --- | --- |\n"
	for i := range n {
		table += fmt.Sprintf(
			"| `limit_%c` | `%d` | how many %s requests the server keeps at one time before it begins to turn away those that come after them |\n", 'a'+i%26, i, []string{"small", "large", "slow", "quick"}[i%4])
	}
	return table
}

func TestATableIsShownWholeOrSaysWhatIsLeftOut(t *testing.T) {
	more := strings.Repeat(
		"\n\nThe server writes a line for every request that it turns away, with the time and the address that it came from.",
		12)
	for name, c := range map[string]struct {
		text, question string
		want           []string
		not            []string
	}{
		"a small table is shown whole, and what introduces it may say so": {
			"Every limit of requests is in this table:\n\n" + settings(4) + more,
			"Which limits of requests does the server keep?",
			[]string{"Every limit of requests is in this table:", "`limit_a`", "`limit_b`", "`limit_c`", "`limit_d`"},
			[]string{" more]"}},
		"a long one is cut, says how much is left out, and where it is": {
			"The server turns requests away. Every limit of requests is in this table:\n\n" + settings(26) + more,
			"What is `limit_q`?",
			[]string{"The server turns requests away.", "| Setting | Default |", "`limit_q`",
				"\n\n[… 25 more](https://docs.example/limits#requests)"}, []string{"Every limit", "`limit_p`"}},
		"a question about which there are shows more of it": {
			"These are the limits:\n\n" + settings(26) + more, "Which limits are there?",
			[]string{"`limit_a`", "`limit_b`", "`limit_c`", "`limit_d`", " more]"}, []string{"`limit_z`"}},
		"a row is looked up by its first cell": {
			settings(20) + "| `large` | `7` | the size of the server |\n" + settings(5)[73:] + more,
			"What does the setting large do?",
			[]string{"| `large` | `7` |"}, []string{"`limit_c`"}},
		"both sides of a comparison are shown": {
			settings(20) + "| histogram | `7` | buckets on the server |\n" + settings(5)[73:] +
				"| summary | `8` | quantiles in the client, other than a histogram has them |\n" + more,
			"difference between a histogram and a summary",
			[]string{"| histogram | `7` |", "| summary | `8` |", " more]"}, []string{"`limit_c`"}},
		"a table whose columns are compared is shown whole": {
			"Some differences:\n\n| | Histogram | Summary |\n| --- | --- | --- |\n" +
				strings.Repeat("| cost of it | counts each observation in one of its buckets and does no more | keeps a window of what was observed lately and works out quantiles |\n", 9) + "| aggregation | possible | hardly |\n" + more,
			"What is the difference between a histogram and a summary?",
			[]string{"| | Histogram | Summary |", "| aggregation | possible | hardly |"}, []string{" more]"}},
		"a list is cut likewise": {
			"All steps of a release are these:\n\n" +
				strings.Repeat("- The builder compiles one more part of the program, and waits until it is there.\n", 9) +
				"- The uploader puts the archive into the bucket.\n" + more, "Where does the uploader put the archive?",
			[]string{"- The uploader puts the archive", "[… 9 more](https://docs.example/limits#requests)"},
			[]string{"All steps"}},
		"little that is left is shown, too": {
			"The file has these options:\n\n" +
				strings.Repeat("- The builder compiles the parts of the program and waits until they are there before it takes the next.\n", 4) + "- A color.\n- Its name.\n" + more, "What does the builder compile?",
			[]string{"- A color.\n- Its name."}, []string{" more]"}},
	} {
		text, _, _, result := answerOf(t, model.Request{Question: c.question, Passages: []model.Passage{
			{Path: "limits.md", URL: "https://docs.example/limits#requests", Title: "Server", Heading: "Requests", Score: 0.9,
				Text: c.text}}})
		if !result.Answered {
			t.Errorf("%s: not answered", name)
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q is not in\n%s\n", name, w, text)
			}
		}
		for _, w := range c.not {
			if strings.Contains(text, w) {
				t.Errorf("%s: %q is in\n%s\n", name, w, text)
			}
		}
	}
}

// Whatever a question is about, each table and list of an answer is whole or says what is missing, and nothing that is
// cut stands under words that say that it is all.
func TestNothingThatIsCutIsCalledWhole(t *testing.T) {
	text := "The server has limits. All of them are here:\n\n" + settings(26) + "\nIt also writes:\n\n" +
		strings.Repeat("- one line about a request that it has turned away, with its time\n", 12)
	for _, question := range strings.Fields(
		"limit_a small large slow quick server requests time line away default setting write") {
		answer, _, _, _ := answerOf(t,
			model.Request{Question: "What about " + question + "?",
				Passages: []model.Passage{{Path: "a.md", Title: "Limits", Score: 0.9, Text: text}}})
		rows, items := strings.Count(answer, "| `limit_"), strings.Count(answer, "- one line")
		if rows > 0 && rows < 26 &&
			(!strings.Contains(answer, fmt.Sprintf("… %d more", 26-rows)) || strings.Contains(answer, "All of them")) {
			t.Errorf("%s: %d rows of 26 in\n%s", question, rows, answer)
		}
		if items > 1 && items < 12 && !strings.Contains(answer, " more") {
			t.Errorf("%s: %d items of 12 in\n%s", question, items, answer)
		}
		if rows == 0 && items == 0 {
			t.Errorf("%s: nothing is quoted: %s", question, answer)
		}
	}
}

func TestWhatMayBeNoAnswerIsCalledThat(t *testing.T) {
	page := model.Passage{Path: "guide/widget.md", URL: "https://docs.example/guide/widget", Title: "Widgets",
		Heading: "Paint a widget", Score: 0.2,
		Text: "Before a widget is sold it can be painted. To paint it, choose a color and press the button at its side. The paint of a widget dries within an hour."}
	other := model.Passage{Path: "guide/shop.md", URL: "https://docs.example/guide/shop", Title: "The shop", Score: 0.1,
		Text: "A shop sells widgets to people who come in. Its color is green."}
	for question, want := range map[string]struct{ answered, cited bool }{
		"How do I paint a widget?":                         {true, true},
		"How do I paint a widget with the SprayBot robot?": {false, true},
		"How do I bake bread in a SprayBot oven?":          {false, false},
	} {
		for _, deflection := range []string{"", "help@widget.example"} {
			p := page
			if want.answered {
				p.Score = 0.5
			}
			text, cite, _, result := answerOf(t,
				model.Request{Question: question, Project: "Widget", Deflection: deflection, Passages: []model.Passage{p, other}})
			if result.Answered != want.answered || (len(cite) > 0) != want.cited {
				t.Errorf("%s: answered %v, cited %v: %s", question, result.Answered, cite, text)
			}
			if doubt := strings.HasPrefix(text,
				model.Doubtful("en")); doubt != (want.cited && !want.answered) {
				t.Errorf("%s: %s", question, text)
			}
			if !want.answered && deflection != "" &&
				!strings.HasSuffix(text, "[help@widget.example](mailto:help@widget.example).") {
				t.Errorf("%s does not say where to ask: %s", question, text)
			}
		}
	}
}

// Over our own documentation: what was once cut under words that promised all of it.
func TestOurOwnTablesAreQuotedWholeOrCounted(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	for question, want := range map[string][]string{
		"How do I make a backup?":                                {"docent backup --data", "the journal (", "the catalog (", "repositories"},
		"Which settings can I change in the configuration file?": {"| `data`, `--data` |", "| `listen`, `--listen` |", " more]("},
		// A word or a name is asked about as it stands.
		"installation":  {"docent"},
		"poll_interval": {"`poll_interval`"},
		"webhooks":      {"webhook"},
	} {
		req, _ := j.request(t, ourOwn, question)
		text, _, _, result := answerOf(t, req)
		if !result.Answered {
			t.Errorf("%s: not answered: %s", question, text)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q is not in\n%s", question, w, text)
			}
		}
	}
}
