package builtin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"docent/model"
)

func answerOf(t testing.TB, req model.Request) (text string, cite []int, deltas []model.Delta, result model.Result) {
	t.Helper()
	result, err := New(model.Builtin).Answer(t.Context(), req, func(d model.Delta) error {
		text += d.Text
		cite = append(cite, d.Cite...)
		deltas = append(deltas, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text, cite, deltas, result
}

var sourceNumber = regexp.MustCompile(`\n*\s?\[\d\]`)

// unnumbered is an answer without the numbers of its sources.
func unnumbered(text string) string { return sourceNumber.ReplaceAllString(text, "") }

var install = model.Passage{Path: "guide/install.mdx", URL: "https://docs.example/guide/install", Title: "Install",
	Heading: "Install the widget", Score: 0.8, Text: `import { Note } from "x"

## Install the widget

{/* a comment */}
The widget is installed with <b>one</b> command. See [the options](./options.mdx#all), [the site](https://widget.example) and ![a picture](/p.png) below.

<Steps>
  <Step title="Get it">
    Fetch the archive:

    ` + "```sh {2} title=\"x\"\n    curl -O https://widget.example/w.tar\n    ```" + `
  </Step>
  <Step title="Unpack it">
    1. Run ` + "`tar xf w.tar`" + `.
    2. Enter the folder.
  </Step>
</Steps>

:::tip
Use <T> in ` + "`a<T>`" + ` freely.
:::
`}

func TestAnswersAreTheDocumentationsOwnWordsInMarkdown(t *testing.T) {
	text, cite, _, result := answerOf(t,
		model.Request{Question: "How do I install the widget?", Passages: []model.Passage{install}})
	want := "The widget is installed with one command. See [the options](https://docs.example/guide/options#all), [the site](https://widget.example) and below.\n\n" +
		"**Get it**\n\nFetch the archive:\n\n```sh\ncurl -O https://widget.example/w.tar\n```\n\n**Unpack it**\n\n1. Run `tar xf w.tar`.\n2. Enter the folder.\n\n**Tip:** Use in `a<T>` freely."
	if unnumbered(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if !slices.Equal(cite, []int{0}) || !result.Answered || result.Reason != "stop" || result.Model != model.Builtin {
		t.Errorf("%v, %+v", cite, result)
	}
}

func TestPagesOfManyDialectsAreCutIntoWhatAReaderSees(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"the page's own title": {"# Widget\n\nA widget.", "A widget."},
		"imports and includes": {"import X from 'x'\n\n{* ../src/main.py hl[1] *}\n\nA widget.\n\n[ref]: https://x.example\n",
			"A widget."},
		"shortcodes": {"{{< note >}}\nA {{% b %}}widget and `{{< c >}}`.\n{{< /note >}}",
			"A widget and `{{< c >}}`."},
		"admonitions":            {"/// note | Title\n\nA widget.\n\n///\n\n:::tip More\nB widget.\n:::\n\n> [!NOTE]\n> C widget.\n\n!!! note\n    D widget.\n", "**Title**\n\nA widget.\n\n**More**\n\nB widget.\n\n**Note:** C widget.\n\n**Note:** D widget."},
		"a tag of several lines": {"<Card\n  title=\"Own\"\n  href=\"/x\"\n>\n  A widget.\n</Card>", "**Own**\n\nA widget."},
		"fields": {"<ResponseField name=\"color\" type=\"string\">\n  The widget's color.\n</ResponseField>",
			"**`color`**\n\nThe widget's color."},
		"a table": {"| a | b |\n|---|---|\n| [x](https://x.example) widget | `<T>` |",
			"| a | b |\n|---|---|\n| [x](https://x.example) widget | `<T>` |"},
		"a table without outer bars": {"Widget | Size\n--- | ---\n`a \\| b` | 3", "| Widget | Size |\n| --- | --- |\n| `a \\| b` | 3 |"},
		"pre": {"A widget:\n<pre><code class=\"x\">\nwidget &lt;a&gt;\n\n  <b>widget</b> _b_\n</code></pre>\nThe end.",
			"A widget:\n\n```\nwidget <a>\n\n  widget _b_\n```\n\nThe end."},
		"dl": {"<dl>\n  <dt>Widget</dt>\n  <dd>A <b>thing</b>.</dd>\n\n  <dt>Widgets</dt>\n\n  <dd>\n\n  Many widgets.\n\n  </dd>\n</dl>\nThe end of a widget.",
			"Widget: A thing.\n\nWidgets: Many widgets.\n\nThe end of a widget."},
		"a table in HTML": {"<table>\n<tr><th>Widget</th><th>Size</th></tr>\n<tr><td><code>a_b</code></td><td>3 &lt; <b>x</b> | y</td></tr>\n</table>\n\nThe end.",
			"| Widget | Size |\n| --- | --- |\n| `a_b` | 3 &lt; x \\| y |\n\nThe end."},
		"a table in HTML without a head": {"<table><tbody><tr><td>Widget</td><td>3</td></tr></tbody></table>",
			"| | |\n| --- | --- |\n| Widget | 3 |"},
		"tabs in code":               {"A widget:\n\n```make\nall:\n\twidget \\\n\t  -x  \n```\n", "A widget:\n\n```make\nall:\n\twidget \\\n\t  -x  \n```"},
		"indented tabs":              {"A widget:\n\n\tif x\n\t\twidget\n", "A widget:\n\n```\nif x\n\twidget\n```"},
		"code with brackets in HTML": {"A widget has <code>a\\_b &lt;c&gt;</code> and <kbd>x</kbd>.", "A widget has `a_b <c>` and x."},
		"a list with code": {"* Run:\n\n  ```sh\n  widget\n  ```\n* Done\n  now.",
			"* Run:\n  ```sh\n  widget\n  ```\n* Done\n  now."},
		"indented code": {"A widget:\n\n    widget start\n\nThe end.",
			"A widget:\n\n```\nwidget start\n```\n\nThe end."},
		"links":             {"A widget: [a](../b/c.md#d), [e](#f), [g](/h/), [i](j), [k][l], [m](javascript:x), <https://n.example>.", "A widget: [a](https://docs.example/v1/b/c#d), [e](https://docs.example/v1/a/widget#f), [g](https://docs.example/h/), i, k, m, <https://n.example>."},
		"an unclosed fence": {"A widget.\n\n```sh\nwidget\n", "A widget.\n\n```sh\nwidget\n```"},
	} {
		text, _, _, _ := answerOf(t, model.Request{Question: "What is a widget?", Passages: []model.Passage{
			{Path: "a/widget.md", URL: "https://docs.example/v1/a/widget", Title: "Widget", Text: c.page, Score: 0.9}}})
		if unnumbered(text) != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, text, c.want)
		}
	}
}

func TestEachPassageIsCitedBeforeItsText(t *testing.T) {
	req := model.Request{Question: "How do I install the widget and how do I remove the widget?",
		Passages: []model.Passage{install,
			{Path: "guide/remove.md", Title: "Remove", Heading: "Remove the widget", Score: 0.7,
				Text: "To remove the widget, delete its folder and restart the server."}}}
	_, cite, deltas, _ := answerOf(t, req)
	if !slices.Equal(cite, []int{0, 1}) {
		t.Fatalf("cited %v", cite)
	}
	for i, d := range deltas {
		if len(d.Cite) > 0 && d.Cite[0] == 1 && !strings.Contains(d.Text, "Remove") {
			t.Errorf("piece %d cites a passage that it does not begin: %q", i, d.Text)
		}
		if d.Text == "" && len(d.Cards) == 0 {
			t.Errorf("piece %d is empty", i)
		}
		if n := len(strings.Fields(d.Text)); n > 8 && !strings.Contains(d.Text, "curl") {
			t.Errorf("piece %d has %d words", i, n)
		}
	}
}

func TestAFollowUpIsAnsweredAboutWhatWasAskedBefore(t *testing.T) {
	history := []model.Message{{Role: "user", Text: "How do I install the widget?"},
		{Role: "assistant", Text: "With one command."}}
	remove := model.Passage{Path: "guide/remove.md", Title: "Remove", Heading: "Remove the widget", Score: 0.5,
		Text: "To remove the widget, delete its folder."}
	text, cite, _, _ := answerOf(t,
		model.Request{Question: "and how do I remove it?", History: history, Passages: []model.Passage{remove}})
	if !slices.Equal(cite, []int{0}) || unnumbered(text) != remove.Text {
		t.Errorf("%v: %s", cite, text)
	}
}

func TestNothingIsSaidTwice(t *testing.T) {
	same := "To rotate the signing key of the widget, run the rotate command on the primary server and wait for the replicas."
	text, _, _, _ := answerOf(t, model.Request{Question: "rotate the signing key of the widget", Passages: []model.Passage{
		{Path: "v1/keys.md", Title: "Keys", Heading: "Rotate the signing key", Score: 0.9, Text: same},
		{Path: "v2/keys.md", Title: "Keys", Heading: "Rotate the signing key", Score: 0.9, Text: same}}})
	if strings.Count(text, "primary server") != 1 {
		t.Errorf("got %s", text)
	}
}

func TestItSaysThatTheDocumentationDoesNotAnswer(t *testing.T) {
	for name, req := range map[string]model.Request{
		"nothing found": {Question: "How do I bake bread?"},
		"nothing fits":  {Question: "How do I bake sourdough bread in a clay oven?", Passages: []model.Passage{install}},
		"no question":   {Question: "???", Passages: []model.Passage{install}},
		"function only": {Question: "how do I do this", Passages: []model.Passage{install}},
	} {
		for deflection, want := range map[string]string{"": "other words",
			"help@widget.example":         "[help@widget.example](mailto:help@widget.example)",
			"https://widget.example/help": "<https://widget.example/help>"} {
			req.Project, req.Deflection = "Widget", deflection
			text, cite, _, result := answerOf(t, req)
			if result.Answered || len(cite) != 0 ||
				!strings.HasPrefix(text, "The Widget documentation does not answer this question.") ||
				!strings.Contains(text, want) {
				t.Errorf("%s: %q, %v, %+v", name, text, cite, result)
			}
		}
	}
}

func TestAnAnswerEndsWithItsContextAndWithItsReader(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	req := model.Request{Question: "How do I install the widget?", Passages: []model.Passage{install}}
	n := 0
	_, err := Model{}.Answer(ctx, req, func(model.Delta) error { n++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("%d pieces, %v", n, err)
	}
	full := errors.New("full")
	if _, err := New("").Answer(t.Context(), req, func(model.Delta) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

func TestPiecesAreTheWholeText(t *testing.T) {
	for _, s := range []string{"", "a", "a b c d e f g h", "  x\n\n```go\nfunc main() { a b c d e f }\n```\n\ny",
		"trailing  \n", "\n\n\n", "ünï cödé 𝕏 𝕏 𝕏 𝕏 𝕏"} {
		if got := strings.Join(slices.Collect(pieces(s)), ""); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestFollowUpsAreSearchedWithWhatTheyLeaveOut(t *testing.T) {
	history := []model.Message{{Role: "user", Text: "What is a histogram?"},
		{Role: "assistant", Text: "A histogram samples observations."}}
	for question, want := range map[string]string{
		"and how do I configure it?":              "and how do I configure it histogram",
		"How does it differ from a summary?":      "How does it differ from a summary histogram",
		"why?":                                    "why histogram",
		"what about native ones?":                 "what about native ones histogram",
		"Can this be disabled?":                   "Can this be disabled histogram",
		"How do I configure alerting rules?":      "How do I configure alerting rules?",
		"remote_write":                            "remote_write",
		"Where do I set the path of `rules.yml`?": "Where do I set the path of `rules.yml`?",
	} {
		if got := Standalone(question, history, nil); got != want {
			t.Errorf("%q became %q, want %q", question, got, want)
		}
		if got := Standalone(question, nil, nil); got != question {
			t.Errorf("without history %q became %q", question, got)
		}
	}
	chain := append(history, model.Message{Role: "user", Text: "and how do I configure it?"},
		model.Message{Role: "assistant", Text: "…"})
	if got, want := Standalone("is it possible in YAML?", chain, nil),
		"is it possible in YAML configure histogram"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for question, want := range map[string]string{"is it possible in YAML?": "What is a histogram? and how do I configure it?",
		"How do I configure alerting rules?": ""} {
		if got := Before(question, chain, nil); got != want {
			t.Errorf("%q leans on %q, want %q", question, got, want)
		}
	}
	if got := Before("What does this mean?", nil, []model.Snippet{{Text: "scrape_interval"}}); got != "scrape_interval" {
		t.Errorf("what is selected is %q", got)
	}
	for question, want := range map[string][]string{
		"What is a histogram and how does it differ from a summary?": {"What is a histogram and how does it differ from a summary?", "What is a histogram", "and how does it differ from a summary histogram"},
		"How do I install and configure it":                          {"How do I install and configure it"},
		"Is it fast? Thanks!":                                        {"Is it fast? Thanks!"},
	} {
		if got := Queries(question, nil, nil); !slices.Equal(got, want) {
			t.Errorf("%q: %q", question, got)
		}
	}
}

// Whatever bytes a page has, the answer ends and repeats nothing but the page.
func FuzzBuiltin(f *testing.F) {
	f.Add(install.Text, "How do I install the widget?")
	f.Add("| a | b |\n|---|---|\n| c | d |\n\n- x\n  ```\n  y\n", "a b c")
	f.Add("Lumina is a switchboard for lamps.", "Was ist Lumina?")
	f.Add("Lumina is a switchboard for lamps.", "hi")
	f.Add("<Card\n title=\"x\"\n>\n> [!NOTE]\n> q\n\n[a](b[c](d)", "x q a")
	f.Add("| x | Default |\n|---|---|\n| y | 1 |\n\n| y default: 1 |\n\n```y default=1\ny = 2 # default: 1\n```\n\n    y (default 1", "y")
	f.Fuzz(func(t *testing.T, page, question string) {
		req := model.Request{Question: question,
			Passages: []model.Passage{{Path: "a.mdx", URL: "https://docs.example/a", Title: "A", Heading: question, Text: page,
				Score: 1}}}
		text, cite, _, result := answerOf(t, req)
		language, courtesy := Language(&req), Courtesy(question) != ""
		unsure := strings.HasPrefix(text, model.Doubtful(language)) // or sure of what is in another language
		if result.Answered && (unsure || len(cite) == 0 && !courtesy) || text == "" ||
			!result.Answered && (courtesy || len(cite) > 0 && !unsure && !strings.HasPrefix(text, strings.TrimRight(model.Foreign(language, ""), ":：。"))) {
			t.Errorf("%+v, cited %v, %q", result, cite, text)
		}
		Standalone(question, []model.Message{{Role: "user", Text: page}}, []model.Snippet{{Kind: "code", Text: page}})
		Queries(question, nil, nil)
		req.Question = "What is the default " + question + "?"
		answerOf(t, req)
	})
}

// What one whole answer costs, from five passages of the size that documentation has: the first time that they are
// seen, and after that.
func BenchmarkBuiltin(b *testing.B) {
	var passages []model.Passage
	for i := range 5 {
		p := install
		p.Path = fmt.Sprintf("guide/install-%d.mdx", i)
		p.Text += strings.Repeat(
			"\n\nThe widget keeps its settings in a [file](https://widget.example/file) that `widget start` reads once. "+
				"A setting that is not there has its default, and one that is not known is an error that names it.\n\n* one `item` of a list\n* another item of the list\n", 12)
		passages = append(passages, p)
	}
	req := model.Request{Question: "How do I install the widget and where does it keep its settings?", Passages: passages}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			parsed = newPassageCache()
			answerOf(b, req)
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			answerOf(b, req)
		}
	})
}

// What answers is taken out of a long list or table item by item, with what it is below; the list is not quoted whole.
func TestLongListsAndTablesAreTakenInParts(t *testing.T) {
	options := "The file has these options:\n\n- `mode`: how it is written, among others\n"
	table := "| option | what it does |\n| --- | --- |\n"
	for _, name := range strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu") {
		options += "  - `" + name + "`: writes the letter " + name + " to the end of every line of the whole file\n"
		table += "| `" + name + "` | puts the sign " +
			name + " between every two words of a page, and does so again whenever the page is rewritten by somebody |\n"
	}
	options += "    Returns nothing.\n- `last`: the end\n"
	passages := []model.Passage{
		{Path: "a.md", Title: "Options", Text: options, Score: 0.9},
		{Path: "b.md", Title: "Signs", Text: "All signs:\n\n" + table, Score: 0.8},
	}
	for question, want := range map[string][]string{
		"how do I write the letter theta to every line": {"The file has these options:",
			"- `mode`: how it is written, among others\n  - `theta`: writes"},
		"put the sign kappa between words of a page": {"| option | what it does |\n| --- | --- |\n",
			"| `kappa` | puts the sign kappa"},
	} {
		text, _, _, _ := answerOf(t, model.Request{Question: question, Passages: passages})
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q is not in\n%s", question, w, text)
			}
		}
		if strings.Contains(text, "`last`") || strings.Count(text, "puts the sign") > 9 {
			t.Errorf("%s: too much is quoted\n%s", question, text)
		}
	}
}
