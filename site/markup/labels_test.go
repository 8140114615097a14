package markup_test

import (
	"strings"
	"testing"

	"docent/site/markup"
)

// What a site writes itself of what a page says is text that readers see: the kind of an admonition, the title of code.
func TestLabelsThatReadersSeeAreText(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		":::note\nText.\n:::\n":                                  "note Text.",
		"::: tip\nText.\n:::\n":                                  "tip Text.",
		"::: details\nText.\n:::\n":                              "details Text.",
		":::warning[Back up]\nText.\n:::\n":                      "[Back up] Text.",
		"::: danger STOP\nText.\n:::\n":                          "STOP Text.",
		":::cards\nText.\n:::\n":                                 "Text.",
		"::: {.callout-note}\nText.\n:::\n":                      "Text.",
		"> [!NOTE]\n> Text.\n":                                   "NOTE Text.",
		"> [!WARNING] Own title\n> Text.\n":                      "Own title Text.",
		"> [!x]\n> Text.\n":                                      "Text.",
		"<Aside type=\"caution\">\nText.\n</Aside>\n":            "caution Text.",
		"<Aside type=\"tip\" title=\"Mind\">\nText.\n</Aside>\n": "Mind Text.",
		"```sh title=\"install.sh\" {1}\ncode\n```\n":            "install.sh code",
		"```sh {1} filename='run.sh'\ncode\n```\n":               "run.sh code",
		"``` {.py title=\"call.py\"}\ncode\n```\n":               "call.py code",
		"::: code-group\n\n```sh [npm]\ncode\n```\n:::\n":        "npm code",
		"```js subtitle=\"x\"\ncode\n```\n":                      "code",
		"```rust,ignore\ncode\n```\n":                            "code",
		"# Use <Badge type=\"tip\" text=\"beta\" /> it\n":        "Use beta it",
	} {
		p := markup.Parse("a.mdx", []byte(src))
		if got := strings.Join(strings.Fields(p.Plain(p.Body)), " "); got != want {
			t.Errorf("%q in MDX: %q, not %q", src, got, want)
		}
	}
	for src, want := range map[string]string{
		"!!! note\n    Text.\n":                  "note Text.",
		"??? question inline end\n    Text.\n":   "question Text.",
		"!!! note inline \"Rates\"\n    Text.\n": "Rates Text.",
		"!!! note \"\"\n    Text.\n":             "Text.",
		"!!! own\n    Text.\n":                   "own Text.",
		"/// tip\nText.\n///\n":                  "tip Text.",
		"/// html | div\nText.\n///\n":           "Text.",
		"=== \"npm\"\n    Text.\n":               "npm Text.",
	} {
		p := markup.Parse("a.md", []byte(src))
		if got := strings.Trim(strings.Join(strings.Fields(strings.ReplaceAll(p.Plain(p.Body), `"`, "")), " "), " "); got != want {
			t.Errorf("%q: %q, not %q", src, got, want)
		}
	}
	p := markup.Parse("a.mdx", []byte("## Use <Badge text=\"beta\" />\n"))
	if h := p.Headings[0]; h.Text != "Use beta" || h.Anchor != "use" {
		t.Errorf("the heading %q has the anchor %q", h.Text, h.Anchor)
	}
}
