package builtin

import (
	"strings"
	"testing"

	"docent/model"
)

// Of what a page says in several forms a reader gets his own, with links to the others.
func TestOneOfSeveralFormsIsQuoted(t *testing.T) {
	t.Parallel()
	mdx := "Install the widget:\n\n<Tabs>\n<Tab title=\"npm\">\n\n```sh\nnpm i widget\n```\n\n</Tab>\n<Tab title=\"Yarn\">\n\n```sh\nyarn add widget\n```\n\n</Tab>\n</Tabs>\n\nThe widget is then installed in the folder `modules`.\n"
	group := "Install the widget:\n\n<CodeGroup>\n```bash npm\nnpm i widget\n```\n\n```bash yarn\nyarn add widget\n```\n</CodeGroup>\n"
	press := "Install the widget:\n\n::: code-group\n\n```sh [npm]\nnpm i widget\n```\n\n```sh [Yarn]\nyarn add widget\n```\n\n:::\n"
	material := "Install the widget:\n\n=== \"npm\"\n\n    ```sh\n    npm i widget\n    ```\n\n=== \"Yarn\"\n\n    ```sh\n    yarn add widget\n    ```\n\nThe widget is then installed in the folder `modules`.\n"
	bare := "Install the widget from code:\n\n```js\ninstall('widget')\n```\n\n```python\ninstall(\"widget\")\n```\n"
	unlike := "Install the widget:\n\n```sh\nnpm i widget\n```\n\n```js\nimport 'widget'\n```\n"
	pages := "Install the widget:\n\n<Tabs>\n<Tab title=\"In the console\">\n\nOpen the console and press Add.\n\n</Tab>\n<Tab title=\"In a file\">\n\nWrite `widget` into the file `widgets.txt`.\n\n</Tab>\n</Tabs>\n"
	const npm, yarn = "npm i widget", "yarn add widget"
	for name, c := range map[string]struct {
		text, question, page string
		want, not            []string
	}{
		"the first one":                 {mdx, "How do I install the widget?", "", []string{npm, "**npm** · [Yarn](https://docs.example/w)", "`modules`"}, []string{yarn}},
		"the one that is asked for":     {mdx, "How do I install the widget with yarn?", "", []string{yarn, "**Yarn** · [npm](", "`modules`"}, []string{npm}},
		"both of them":                  {mdx, "Install the widget with npm or yarn?", "", []string{npm, yarn}, nil},
		"a group of code":               {group, "How do I install the widget with yarn?", "", []string{yarn, "**yarn** · [npm]("}, []string{npm}},
		"a group of VitePress":          {press, "How do I install the widget?", "", []string{npm, "**npm** · [Yarn]("}, []string{yarn}},
		"tabs of Material":              {material, "How do I install the widget with Yarn?", "", []string{yarn, "**Yarn** · [npm]("}, []string{npm}},
		"what comes after them":         {material, "How do I install the widget?", "", []string{npm, "`modules`"}, []string{yarn}},
		"code in two languages":         {bare, "How do I install the widget?", "", []string{"install('widget')", "**JavaScript** · [Python]("}, []string{`"widget"`}},
		"by the page of the reader":     {bare, "How do I install the widget?", "python/start.md", []string{`install("widget")`}, []string{`'widget'`}},
		"code that belongs together":    {unlike, "How do I install the widget?", "", []string{npm, "import 'widget'"}, []string{" · "}},
		"tabs of any name by the words": {pages, "How do I install the widget in a file?", "", []string{"`widgets.txt`", "**In a file** · [In the console]("}, []string{"press Add"}},
		"no name by an everyday word":   {strings.ReplaceAll(bare, "python", "go"), "where do I go to install the widget", "", []string{"install('widget')"}, []string{`"widget"`}},
	} {
		text, _, _, _ := answerOf(t, model.Request{Question: c.question, Page: c.page, Passages: []model.Passage{
			{Path: "w.mdx", URL: "https://docs.example/w", Title: "Install the widget", Text: c.text, Score: 0.9}}})
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", name, w, text)
			}
		}
		for _, w := range c.not {
			if strings.Contains(text, w) {
				t.Errorf("%s: %q in\n%s", name, w, text)
			}
		}
	}
}
