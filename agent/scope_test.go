package agent_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"docent/agent"
)

// An asked prompt and what it comes to: the files that change with the text that is replaced in them, or a refusal.
type asked struct {
	prompt  string
	want    map[string][]string // file -> old, new, old, new …; old is replaced wherever it stands
	refused string              // a part of the message; nothing changes
}

// run tries each prompt on its own on the documentation set.
func (c asked) run(t *testing.T, files map[string]string) {
	t.Helper()
	j := newJob(t, files)
	j.once = true
	res := j.do(c.prompt)
	want := maps.Clone(files)
	for f, pairs := range c.want {
		if !strings.Contains(files[f], pairs[0]) {
			t.Fatalf("%s has no %q", f, pairs[0])
		}
		want[f] = strings.NewReplacer(pairs...).Replace(files[f])
	}
	if after := j.tree.files(); !maps.Equal(after, want) {
		t.Errorf("%q: %s\n%s\nwanted:\n%s", c.prompt, firstLine(res.Message), difference(files, after),
			difference(files, want))
	}
	if c.refused != "" && !strings.Contains(res.Message, c.refused) {
		t.Errorf("%q: the message %q lacks %q", c.prompt, firstLine(res.Message), c.refused)
	}
}

func scopeSite() map[string]string {
	return map[string]string{
		"a.md":        "---\ntitle: The cat\n---\n\n# A cat\n\nA cat and `cat` and [a cat](cat.md) here.\n\n```\ncat\n```\n\n| cat | x |\n| - | - |\n| b | cat |\n\n- cat\n\n## More\n\nThe cat.\n",
		"b.md":        "# B cat\n\nA cat.\n\n## More\n\nMore cat.\n",
		"cat.md":      "# The page\n\nText.\n",
		"blog.md":     "# Blog\n\nA cat.\n",
		"blog/one.md": "# One\n\nA cat.\n",
		"blog/two.md": "# Two\n\nA cat.\n",
	}
}

func TestALeadingPageIsTheOnlyOneChanged(t *testing.T) {
	b := map[string][]string{"b.md": {"cat", "dog"}}
	for _, prompt := range []string{
		`In b.md, replace "cat" with "dog".`, `For b.md: replace "cat" with "dog"`,
		`On the page b.md, replace "cat" with "dog".`, `b.md: replace "cat" with "dog"`,
		`Only in b.md, replace "cat" with "dog"`,
		`In the file b.md please replace "cat" with "dog"`, `Within b.md, could you replace "cat" with "dog"?`,
		`In ./b.md, rename "cat" to "dog"`,
		"In b.md:\n- replace \"A cat\" with \"A dog\"\n- replace \"B cat\" with \"B dog\"\n- replace \"More cat\" with \"More dog\"",
		`In b.md, replace "A cat" with "A dog", replace "B cat" with "B dog" and then replace "More cat" with "More dog".`,
		`In all pages, in b.md, replace "cat" with "dog".`,
	} {
		asked{prompt: prompt, want: b}.run(t, scopeSite())
	}
	blog := map[string][]string{"blog/one.md": {"cat", "dog"}, "blog/two.md": {"cat", "dog"}}
	for _, prompt := range []string{
		`In blog/, replace "cat" with "dog".`, `In the folder blog, replace "cat" with "dog".`,
		`Everywhere under blog/, replace "cat" with "dog".`, `In all pages in blog/, replace "cat" with "dog".`,
		`In blog/*.md, rename "cat" to "dog"`,
		`Replace "cat" with "dog" in the blog folder.`, `replace "cat" with "dog" in all pages under blog/`,
	} {
		asked{prompt: prompt, want: blog}.run(t, scopeSite())
	}
}

func TestAnInstructionNeverRunsInMorePlacesThanItsWordsName(t *testing.T) {
	for _, c := range []asked{
		{prompt: `In nothere.md, replace "cat" with "dog".`, refused: "there is no page"},
		{prompt: `In the appendix, replace "cat" with "dog".`, refused: "there is no page"},
		{prompt: `In nothere/, replace "cat" with "dog".`, refused: "nothere"},
		{prompt: `Replace "cat" with "dog" in the sidebar.`},
		{prompt: `Replace "cat" with "dog" in footnotes.`},
		{prompt: `In b.md, replace "cat" with "dog" in a.md.`, refused: "no page is in"},
		{prompt: `In blog/, replace "cat" with "dog" in b.md.`, refused: "no page is in"},
		{prompt: `In b.md, replace "A cat" with "A dog". Then replace "cat" with "dog".`,
			refused: "in b.md too, or everywhere"},
		{prompt: `Replace "A cat" with "A dog" in b.md and replace "The cat" with "The dog".`, refused: "in each"},
		{prompt: `Replace "cat" with "dog" and rename "page" to "leaf" in cat.md.`, refused: "in each"},
		{prompt: `Replace "cat" with "dog" in b.md; only in headings`, refused: "does not say where"},
		{prompt: `In b.md, create page c.md titled "C".`, refused: "not limited to places"},
		{prompt: `In b.md, delete the page cat.md and unlink it.`, refused: "not limited to places"},
		{prompt: `Replace "cat" with "dog" on the page.`, refused: "which page is meant"},
		{prompt: `Replace the link "cat" with "dog".`, refused: "link targets"},
		{prompt: `Set the title of blog/ to "X".`, refused: "the same title"},
		{prompt: `Replace "cat" with "dog" everywhere but in a.md, b.md, cat.md and blog/.`,
			want: map[string][]string{"blog.md": {"cat", "dog"}}},
		{prompt: `Remove "cat".`, refused: "from where"},
		{prompt: `Delete "More".`, refused: "from where"},
		{prompt: `In b.md, delete the section "More", also in code.`, refused: "no meaning"},
		{prompt: `In b.md, replace "A cat" with "A dog". Then replace "The cat" with "The dog" everywhere.`,
			want: map[string][]string{"b.md": {"A cat", "A dog"}, "a.md": {"The cat", "The dog"}}},
		{prompt: `In b.md, replace "A cat" with "A dog", and then move cat.md to blog/cat.md.`,
			want: map[string][]string{"b.md": {"A cat", "A dog"}, "a.md": {"(cat.md)", "(blog/cat.md)"},
				"cat.md": {"# The page\n\nText.\n", ""}}},
	} {
		files := scopeSite()
		if _, moved := c.want["cat.md"]; moved {
			j := newJob(t, files)
			j.must(c.prompt)
			if now := j.tree.files(); now["blog/cat.md"] == "" ||
				now["b.md"] != strings.Replace(files["b.md"], "A cat", "A dog", 1) || now["blog/one.md"] != files["blog/one.md"] {
				t.Errorf("%q:\n%s", c.prompt, difference(files, now))
			}
			continue
		}
		c.run(t, files)
	}
}

func TestAPartThatIsNamedIsTheOnlyOneChanged(t *testing.T) {
	for _, c := range []asked{
		{prompt: `Replace "cat" with "dog" in the headings.`,
			want: map[string][]string{"a.md": {"# A cat", "# A dog"}, "b.md": {"# B cat", "# B dog"}}},
		{prompt: `In the headings of b.md, replace "cat" with "dog".`,
			want: map[string][]string{"b.md": {"# B cat", "# B dog"}}},
		{prompt: `In b.md, replace "cat" with "dog", but only in headings.`,
			want: map[string][]string{"b.md": {"# B cat", "# B dog"}}},
		{prompt: `Replace "cat" with "dog" in code blocks in a.md.`,
			want: map[string][]string{"a.md": {"```\ncat", "```\ndog"}}},
		{prompt: `Replace "cat" with "dog" in the code block of a.md.`,
			want: map[string][]string{"a.md": {"```\ncat", "```\ndog"}}},
		{prompt: `Replace "cat" with "dog" in inline code.`, want: map[string][]string{"a.md": {"`cat`", "`dog`"}}},
		{prompt: `Replace "cat" with "dog" in code in a.md.`,
			want: map[string][]string{"a.md": {"`cat`", "`dog`", "```\ncat", "```\ndog"}}},
		{prompt: `In tables, replace "cat" with "dog".`,
			want: map[string][]string{"a.md": {"| cat", "| dog", "b | cat", "b | dog"}}},
		{prompt: `In the lists of a.md, replace "cat" with "dog".`, want: map[string][]string{"a.md": {"- cat", "- dog"}}},
		{prompt: `In link texts, replace "cat" with "dog".`, want: map[string][]string{"a.md": {"[a cat]", "[a dog]"}}},
		{prompt: `In the titles, replace "cat" with "dog".`,
			want: map[string][]string{"a.md": {"title: The cat", "title: The dog"}}},
		{prompt: `Replace "cat" with "dog" in the front matter of a.md`,
			want: map[string][]string{"a.md": {"title: The cat", "title: The dog"}}},
		{prompt: `In the section "More" of a.md, replace "cat" with "dog".`,
			want: map[string][]string{"a.md": {"\nThe cat.", "\nThe dog."}}},
		{prompt: `Under the heading "More" in b.md, rename "cat" to "dog".`,
			want: map[string][]string{"b.md": {"More cat", "More dog"}}},
		{prompt: `In headings and tables of a.md, replace "cat" with "dog".`,
			want: map[string][]string{"a.md": {"# A cat", "# A dog", "| cat", "| dog", "b | cat", "b | dog"}}},
		{prompt: `Replace "cat" with "dog" in b.md, also in code`, want: map[string][]string{"b.md": {"cat", "dog"}}},
		{prompt: `Replace "cat" with "dog" in a.md in code too`,
			want: map[string][]string{"a.md": {"The cat", "The dog", "A cat", "A dog", "`cat`", "`dog`", "[a cat]", "[a dog]",
				"```\ncat", "```\ndog", "| cat", "| dog", "b | cat", "b | dog", "- cat", "- dog"}}},
		{prompt: `In links, replace "cat" with "dog".`, refused: "say “in link texts” or “in link targets”"},
		{prompt: `In the section "More", replace "cat" with "dog".`, refused: "say in which page: a.md, b.md"},
		{prompt: `In the heading, replace "cat" with "dog".`, refused: "none is certain"},
		{prompt: `In the tables of b.md, replace "cat" with "dog".`, refused: "does not occur"},
		{prompt: `In the code blocks of a.md, append "A dog." to it.`, refused: "beyond what was said"},
		{prompt: `In the headings of b.md, delete the section "More".`, refused: "beyond what was said"},
	} {
		c.run(t, scopeSite())
	}
}

func TestDeletingARowOrAnItemLeavesTheOthers(t *testing.T) {
	page := "# A\n\n| h | i |\n| - | - |\n| old | 1 |\n| new | 2 |\n\n1. first\n2. second old\n   goes on\n3. third\n\n- one\n\n  its second paragraph\n\n- two\n  - below two\n\n> quoted one\n>\n> quoted two\n\nPlain text\nwraps.\n## Next\n\nEnd.\n"
	files := map[string]string{"a.md": page}
	for _, c := range []asked{
		{prompt: `delete the table row containing "old" from a.md`, want: map[string][]string{"a.md": {"| old | 1 |\n", ""}}},
		{prompt: `delete the row containing "old" from the table in a.md`,
			want: map[string][]string{"a.md": {"| old | 1 |\n", ""}}},
		{prompt: `delete the list item containing "second old" from a.md`,
			want: map[string][]string{"a.md": {"2. second old\n   goes on\n3. third", "2. third"}}},
		{prompt: `delete the item containing "two" from the lists of a.md`, refused: "2 list items"},
		{prompt: `delete the bullet containing "- below two" from a.md`,
			want: map[string][]string{"a.md": {"  - below two\n", ""}}},
		{prompt: `delete the bullet point containing "below two" from a.md`,
			want: map[string][]string{"a.md": {"  - below two\n", ""}}},
		{prompt: `delete the paragraph containing "its second paragraph" from a.md`,
			want: map[string][]string{"a.md": {"  its second paragraph\n\n", ""}}},
		{prompt: `delete the paragraph containing "quoted two" from a.md`,
			want: map[string][]string{"a.md": {"> quoted two\n\n", ""}}},
		{prompt: `delete the paragraph containing "wraps" from a.md`,
			want: map[string][]string{"a.md": {"\nPlain text\nwraps.\n", ""}}},
		{prompt: `delete the paragraph containing "| old" from a.md`, refused: "delete the table row containing"},
		{prompt: `delete the paragraph containing "goes on" from a.md`, refused: "delete the list item containing"},
		{prompt: `delete the paragraph containing "Next" from a.md`, refused: "in a heading"},
		{prompt: `delete the row containing "| h |" from a.md`, refused: "the head of a table"},
		{prompt: `delete the line containing "| h |" from a.md`, refused: "the head of a table"},
		{prompt: `delete the row containing "wraps" from a.md`, refused: "no table"},
		{prompt: `delete the list item containing "wraps" from a.md`, refused: "no list item"},
	} {
		c.run(t, files)
	}
}

func TestANumberedListGoesOnCounting(t *testing.T) {
	for name, c := range map[string]struct{ before, item, after string }{
		"the first": {"1. one\n2. two\n3. three\n\nText.\n", "one", "1. two\n2. three\n\nText.\n"},
		"the last":  {"1. one\n2. two\n", "two", "1. one\n"},
		"apart":     {"1. one\n\n2. two\n\n   more\n\n3. three\n", "one", "1. two\n\n   more\n\n2. three\n"},
		"nested": {"- a\n  1. one\n  2. two\n     - deep\n  3. three\n- b\n", "one",
			"- a\n  1. two\n     - deep\n  2. three\n- b\n"},
		"with what is below": {"1. one\n   - deep\n2. two\n", "one", "1. two\n"},
		"all the same":       {"1. one\n1. two\n1. three\n", "two", "1. one\n1. three\n"},
		"another list":       {"1. one\n2. two\n\nText.\n\n3. three\n", "one", "1. two\n\nText.\n\n3. three\n"},
		"from ten on":        {"9. one\n10. two\n11. three\n", "one", "9. two\n10. three\n"},
	} {
		j := newJob(t, map[string]string{"a.md": c.before})
		j.must(`delete the list item containing "` + c.item + `" from a.md`)
		if got := j.tree.files()["a.md"]; got != c.after {
			t.Errorf("%s: %q, want %q", name, got, c.after)
		}
	}
}

func TestADeletedSectionLeavesTheDefinitionsThatOthersUse(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"the last one": {"# A\n\nSee [x][one] and [two].\n\n## Old\n\n[x][three].\n\n[one]: https://one.example\n[Two]: https://two.example\n[three]: https://three.example\n", "# A\n\nSee [x][one] and [two].\n\n[one]: https://one.example\n[Two]: https://two.example\n"},
		"another": {"# A\n\nSee [one].\n\n## Old\n\nText.\n\n[one]: https://one.example\n\n## New\n\nText.\n",
			"# A\n\nSee [one].\n\n## New\n\nText.\n\n[one]: https://one.example\n"},
		"nothing used": {"# A\n\n## Old\n\n[one].\n\n[one]: https://one.example\n\n## New\n", "# A\n\n## New\n"},
		"a footnote":   {"# A\n\nSee[^1].\n\n## Old\n\nText[^2].\n\n[^1]: The first\n    goes on.\n[^2]: The second.\n\n## New\n\nText.\n", "# A\n\nSee[^1].\n\n## New\n\nText.\n\n[^1]: The first\n    goes on.\n"},
		"defined twice": {"# A\n\nSee [one].\n\n[one]: https://one.example\n\n## Old\n\n[one]: https://other.example\n",
			"# A\n\nSee [one].\n\n[one]: https://one.example\n"},
	} {
		j := newJob(t, map[string]string{"a.md": c.before})
		j.must(`delete the section "Old" from a.md`)
		if got := j.tree.files()["a.md"]; got != c.after {
			t.Errorf("%s: %q, want %q", name, got, c.after)
		}
	}
}

func TestAFolderIsNoPage(t *testing.T) {
	for _, c := range []asked{
		{prompt: `replace "cat" with "dog" in blog`, refused: "is a page, “blog.md”, and a folder"},
		{prompt: `replace "cat" with "dog" in the page blog`, want: map[string][]string{"blog.md": {"cat", "dog"}}},
		{prompt: `append "Text." to blog/`, refused: "is a folder"},
		{prompt: `delete the page blog/`, refused: "is a folder"},
		{prompt: `delete blog/`, refused: "is a folder"},
	} {
		if c.refused == "is a page, “blog.md”, and a folder" {
			c.refused = "and a folder"
		}
		c.run(t, scopeSite())
	}
	files := map[string]string{"guides/index.md": "# G\n\n[a](a.md)\n",
		"guides/a.md": "# A\n\n[up](../top.md) [in](sub/b.md)\n", "guides/sub/b.md": "# B\n\n[a](../a.md)\n",
		"guides/pic.png": "x", "top.md": "# Top\n\n[a](guides/a.md) [g](guides/)\n"}
	for _, prompt := range []string{`rename guides/ to howto/`, `move the folder guides to howto`,
		`rename the guides folder to howto`, `rename "guides/" to "howto/"`} {
		j := newJob(t, files)
		res := j.must(prompt)
		want := map[string]string{"howto/index.md": "# G\n\n[a](a.md)\n", "howto/a.md": files["guides/a.md"],
			"howto/sub/b.md": files["guides/sub/b.md"], "guides/pic.png": "x",
			"top.md": "# Top\n\n[a](howto/a.md) [g](howto/)\n"}
		if now := j.tree.files(); !maps.Equal(now, want) {
			t.Errorf("%s: %s\n%s", prompt, res.Message, difference(want, now))
		}
	}
	for prompt, refused := range map[string]string{
		`move guides/ to top.md`: "names a page", `rename guides/ to guides/new/`: "within",
		`move the folder nothere to howto`: "no folder", `move guides to howto.md`: "is a folder",
	} {
		asked{prompt: prompt, refused: refused}.run(t, files)
	}
	both := maps.Clone(files)
	both["howto/x.md"] = "# X\n"
	asked{prompt: `rename guides/ to howto/`, refused: "already"}.run(t, both)
}

func TestAWordIsNoPartOfALongerOne(t *testing.T) {
	files := map[string]string{"a.md": "# A log\n\nA login, a log, catalog. Log it.\n"}
	for _, noun := range []string{"word", "words", "term"} {
		asked{prompt: `replace the ` + noun + ` "log" with "journal" in a.md`,
			want: map[string][]string{"a.md": {"A log\n", "A journal\n", "a log,", "a journal,"}}}.run(t, files)
	}
	asked{prompt: `remove the word "log" from a.md, ignoring case`,
		want: map[string][]string{"a.md": {"A log\n", "A\n", "a log,", "a,", "Log it", "it"}}}.run(t, files)
}

func TestANameIsRenamedAsItIsWrittenAlone(t *testing.T) {
	files := map[string]string{"a.md": "# Go client\n\nGo is a language. To go arbitrarily, go on; ongoing. GO!\n\nA widget, a Widget and WIDGETS.\n"}
	for _, c := range []asked{
		{prompt: `rename "Go" to "Golang" everywhere`,
			want: map[string][]string{"a.md": {"# Go client", "# Golang client", "Go is", "Golang is"}}},
		{prompt: `rename "Go" to "Golang" everywhere, ignoring case`,
			want: map[string][]string{"a.md": {"# Go client", "# Golang client", "Go is", "Golang is", "To go", "To golang",
				", go on", ", golang on", "GO!", "GOLANG!"}}},
		{prompt: `rename "widget" to "gadget" in a.md`,
			want: map[string][]string{"a.md": {"widget", "gadget", "Widget", "Gadget", "WIDGETS", "GADGETS"}}},
		{prompt: `rename "GitHub" to "Codeberg" in a.md`, refused: "does not occur"},
		{prompt: `rename "Language" to "Tongue" in a.md`, refused: "in another case"},
	} {
		c.run(t, files)
	}
	j := newJob(t, files)
	if res := j.must(`rename "Go" to "Golang" everywhere`); !strings.Contains(res.Message,
		"Left 3 occurrences of “Go” in another case") {
		t.Errorf("%s", res.Message)
	}
}

func TestWhatIsRemovedLeavesNothingHollow(t *testing.T) {
	files := map[string]string{"a.md": "---\ntitle: Alone\n---\n\n# A\n\n## Log files\n\nSome (very) long text, really, with [YAML](yaml.md) and more.\n\n- item\n- other item here\n\nWhole line.\n", "yaml.md": "# YAML\n"}
	for _, c := range []asked{
		{prompt: `remove "Log files" from a.md`, refused: "the words of a heading"},
		{prompt: `remove "YAML" from a.md`, refused: "the text or the target of a link"},
		{prompt: `remove "yaml.md" from a.md, also in links`, refused: "the text or the target of a link"},
		{prompt: `remove "Alone" from a.md`, refused: "front matter"},
		{prompt: `remove "Whole line." from a.md`, refused: "a paragraph or list item"},
		{prompt: `remove "item" from a.md`, refused: "a paragraph or list item"},
		{prompt: `remove "and more" from a.md`, want: map[string][]string{"a.md": {" and more", ""}}},
		{prompt: `remove "long" from a.md`, want: map[string][]string{"a.md": {" long", ""}}},
		{prompt: `remove "Some" from a.md`, want: map[string][]string{"a.md": {"Some ", ""}}},
		{prompt: `remove ", really" from a.md`, want: map[string][]string{"a.md": {", really", ""}}},
		{prompt: `delete the heading "Log files" from a.md`, want: map[string][]string{"a.md": {"## Log files\n\n", ""}}},
		{prompt: `in a.md, delete the "Log files" heading`, want: map[string][]string{"a.md": {"## Log files\n\n", ""}}},
	} {
		c.run(t, files)
	}
}

func TestAKeyBelowOthersIsSetWhereItStands(t *testing.T) {
	files := map[string]string{
		"a.md": "---\ntitle: A\ncompat:\n  minVersion: \"1.0\" # of the server\n  flags: {é: 1, fast: true}\nrequest:\n  timeout: 10\nbuild:\n  timeout: 20\nlong:\n  text: |\n    x\n---\n\n# A\n",
		"b.md": "+++\ntitle = \"B\"\n[compat]\nminVersion = \"1\"\n+++\n",
	}
	for _, c := range []asked{
		{prompt: `set minVersion of a.md to "2.0"`, want: map[string][]string{"a.md": {`"1.0" #`, `"2.0" #`}}},
		{prompt: `Set compat.minVersion of a.md to 2.0`, want: map[string][]string{"a.md": {`"1.0" #`, `"2.0" #`}}},
		{prompt: `set build.timeout of a.md to 30`, want: map[string][]string{"a.md": {"timeout: 20", "timeout: 30"}}},
		{prompt: `change build.timeout of a.md from "20" to "30"`,
			want: map[string][]string{"a.md": {"timeout: 20", "timeout: 30"}}},
		{prompt: `change build.timeout of a.md from "10" to "30"`, refused: "not \"10\""},
		{prompt: `set timeout of a.md to 30`, refused: "build.timeout, request.timeout"},
		{prompt: `set fast of a.md to false`, refused: "cannot"},
		{prompt: `set text of a.md to "y"`, refused: "no value on one line"},
		{prompt: `set compat of a.md to "y"`, refused: "holds other keys"},
		{prompt: `remove minVersion from the front matter of a.md`, refused: "compat.minVersion"},
		{prompt: `set minVersion of b.md to "2"`, refused: "table"},
		{prompt: `set draft of a.md to true`, want: map[string][]string{"a.md": {"    x\n---", "    x\ndraft: true\n---"}}},
	} {
		c.run(t, files)
	}
}

func TestContentDoesNotTakeInTheNextInstruction(t *testing.T) {
	files := map[string]string{"a.md": "# A\n\n## Old\n\nText.\n"}
	for _, prompt := range []string{
		`create page b.md titled "B" with content: Some text. Then delete the section "Old" from a.md.`,
		"create page b.md titled \"B\" with content:\n\nSome text.\n\nDelete the section \"Old\" from a.md.",
		"append to a.md: Some text.\n- replace \"Text\" with \"Words\" in a.md",
		`add a section "New" to a.md: Some text and then delete section "Old" from a.md`,
	} {
		asked{prompt: prompt, refused: "put the content in quotes or in a fenced block"}.run(t, files)
	}
	j := newJob(t, files)
	j.must("append \"Some text.\" to a.md. Then delete the section \"Old\" from a.md.")
	if got := j.tree.files()["a.md"]; got != "# A\n" && got != "# A\n\nSome text.\n" {
		t.Errorf("%q", got)
	}
	j = newJob(t, files)
	j.must("append to a.md: Add the repository to your system.\nThen start it, and remove what is old; use the new one.")
	if got := j.tree.files()["a.md"]; !strings.HasSuffix(got, "use the new one.\n") {
		t.Errorf("%q", got)
	}
}

func TestLinksArePointedElsewhereAndNothingElse(t *testing.T) {
	files := map[string]string{
		"a.md":     "# A\n\n[one](b.md) [two](b.md#part) [three](dir/c.md) [out](https://x.example) b.md `b.md`\n",
		"b.md":     "# B\n\n## Part\n\n[one](dir/c.md)\n",
		"dir/c.md": "# C\n\n[up](../b.md) ![b](../b.md)\n",
	}
	for _, c := range []asked{
		{prompt: `change the links to b.md to dir/c.md in a.md`,
			want: map[string][]string{"a.md": {"[one](b.md)", "[one](dir/c.md)"}}},
		{prompt: `In dir/, change the link to b.md to a.md`, want: map[string][]string{"dir/c.md": {"../b.md", "../a.md"}}},
		{prompt: `change the link to b.md#part to https://y.example`,
			want: map[string][]string{"a.md": {"b.md#part", "https://y.example"}}},
		{prompt: `change the link to https://x.example to dir/c.md`,
			want: map[string][]string{"a.md": {"https://x.example", "dir/c.md"}}},
		{prompt: `In b.md, point the link "one" to a.md.`, want: map[string][]string{"b.md": {"dir/c.md", "a.md"}}},
		{prompt: `change the URL of the link "out" in a.md to https://y.example.`,
			want: map[string][]string{"a.md": {"https://x.example", "https://y.example"}}},
		{prompt: `point the link "one" to a.md everywhere`, refused: "2 links have the text"},
		{prompt: `change the link to nothere.md to a.md`, refused: "no link leads to"},
		{prompt: `change the link to b.md to nothere.md`, refused: "there is no page"},
		{prompt: `change the link to b.md#part to dir/c.md#nothere`, refused: "where nothing is"},
	} {
		c.run(t, files)
	}
}

// A linkedTree is a tree with symbolic links.
type linkedTree struct {
	*memTree
	links []string
}

func (l linkedTree) Links(context.Context) ([]string, error) { return l.links, nil }

func TestASymbolicLinkIsRefusedByItsName(t *testing.T) {
	files := map[string]string{"guides/a.md": "# A\n", "b.md": "# B\n"}
	for _, prompt := range []string{
		`append "x" to latest/a.md`, `create page latest/new.md titled "X"`, `move b.md to latest/b.md`,
		`append "x" to readme.md`, `create page readme.md titled "X"`, `replace "A" with "B" in readme.md`,
		`delete page readme.md`, `set title of readme.md to "X"`,
	} {
		tr := linkedTree{tree(files), []string{"latest", "readme.md"}}
		res, err := agent.New(agent.Options{}).Edit(context.Background(), agent.Task{Job: "job_1", Prompt: prompt, Tree: tr},
			nil)
		if err != nil {
			t.Fatal(err)
		}
		name := "readme.md"
		if strings.Contains(prompt, "latest") {
			name = "latest"
		}
		if len(res.Changes) > 0 || !strings.Contains(res.Message, name) || !strings.Contains(res.Message, "symbolic link") {
			t.Errorf("%q: %d changes, %q", prompt, len(res.Changes), firstLine(res.Message))
		}
	}
}

func TestANameInAnotherFormOfUnicodeIsTheSameName(t *testing.T) {
	const nfc, nfd = "caf\u00e9", "cafe\u0301"
	for _, c := range [][2]string{{nfc, nfd}, {nfd, nfc}} {
		files := map[string]string{c[0] + ".md": "# A\n\nText.\n", "dir-" + c[0] + "/x.md": "# X\n", "b.md": "# B\n"}
		for _, prompt := range []string{`create page ` + c[1] + `.md titled "X"`, `create page ` + c[1] + `.mdx titled "X"`,
			`move b.md to ` + c[1] + `.md`, `create page dir-` + c[1] + `/y.md titled "Y"`} {
			j := newJob(t, files)
			j.once = true
			if res := j.do(prompt); len(res.Changes) > 0 || !strings.Contains(res.Message, "already") {
				t.Errorf("%q: %d changes, %q", prompt, len(res.Changes), firstLine(res.Message))
			}
		}
		j := newJob(t, files)
		if res := j.must(`append "More." to ` + c[1] + `.md`); !slices.ContainsFunc(res.Changes,
			func(ch agent.Change) bool { return ch.Path == c[0]+".md" }) {
			t.Errorf("%s: %+v", c[1], res.Changes)
		}
	}
}
