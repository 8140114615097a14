package slack

import (
	"strings"
	"testing"
	"unicode/utf8"

	"docent/api/client"
)

func TestMarkdownBecomesSlacksOwnForm(t *testing.T) {
	t.Parallel()
	for markdown, want := range map[string]string{
		"# Set **up**\n\nRun `a < b` & wait.":                "*Set up*\n\nRun `a &lt; b` &amp; wait.",
		"- one\n  * two\n1. three":                           "• one\n  • two\n1. three",
		"**bold** __also__ *it* ~~gone~~ snake_case 2*3*4":   "*bold* *also* _it_ ~gone~ snake_case 2_3_4",
		"[Keys](https://x.example/a_(b)?c=1&d=2) [1]":        "<https://x.example/a_(b)?c=1&amp;d=2|Keys> [1]",
		"[Keys](/keys) ![A map](https://x.example/m.png)":    "Keys <https://x.example/m.png|A map>",
		"**[Keys](https://x.example)** and **`x`**":          "*<https://x.example|Keys>* and *`x`*",
		"<!channel> <@U1> [<!here>](https://x.example/<!a>)": "&lt;!channel&gt; &lt;@U1&gt; <https://x.example/%3C!a%3E|&lt;!here&gt;>",
		"```sh\nls *.md > x\n# no heading\n```":              "```\nls *.md &gt; x\n# no heading\n```",
		"~~~\nhalf":                                          "```\nhalf\n```",
	} {
		if got := mrkdwn(markdown); got != want {
			t.Errorf("%q: %q, want %q", markdown, got, want)
		}
	}
}

func TestAMessageIsReadAsItsWriterSeesIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<@UBOT> How do I &lt;b&gt; &amp; c?":                "How do I <b> & c?",
		"<!here> see <#C1|general> <@U2|ann>":                "see #general",
		"<https://x.example/a|the page> <https://y.example>": "the page (https://x.example/a) https://y.example",
		"<http://x.example|x.example>":                       "http://x.example",
	} {
		if got := asked(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestAnswersKeepSlacksBounds has texts that are longer than a section, with code that is cut.
func TestAnswersKeepSlacksBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A line of an answer that says a bit: ä.\n", 200) + "```\n" + strings.Repeat("code\n", 2000) + "```\n" +
		strings.Repeat("x", 7000)
	list := pieces(long)
	letters := 0
	for i, p := range list {
		if n := utf8.RuneCountInString(p); n == 0 || n > maxSection {
			t.Errorf("piece %d has %d characters", i, n)
		}
		if strings.Count(p, "```")%2 != 0 {
			t.Errorf("piece %d ends in code: %.40q", i, p)
		}
		letters += strings.Count(p, "x") + strings.Count(p, "code")
	}
	if letters != 9000 {
		t.Errorf("of 9000 parts of the text %d are there", letters)
	}
	huge := answered(client.Answer{Text: strings.Repeat(long, 20), Sources: []client.Source{{Title: "A", URL: "https://x.example"}}}, true)
	if n := len(huge["blocks"].([]object)); n != maxSections+3 {
		t.Errorf("%d blocks", n)
	}
}
