package markup_test

import (
	"testing"

	"docent/site/markup"
)

func TestFrontMatterIsEditedByLine(t *testing.T) {
	for _, c := range []struct{ name, in, key, value, want string }{
		{"a plain value", "---\ntitle: Old # kept\nx: 1\n---\nText\n", "title", "New",
			"---\ntitle: New # kept\nx: 1\n---\nText\n"},
		{"quotes stay", "---\ntitle: 'Old'\n---\n", "title", "It's", "---\ntitle: 'It''s'\n---\n"},
		{"double quotes stay", "---\ntitle: \"Old\"  \n---\n", "title", `a "b"`, "---\ntitle: \"a \\\"b\\\"\"  \n---\n"},
		{"quotes where needed", "---\ntitle: Old\n---\n", "title", "A: b", "---\ntitle: \"A: b\"\n---\n"},
		{"CRLF", "---\r\ntitle: Old\r\n---\r\nText\r\n", "title", "New", "---\r\ntitle: New\r\n---\r\nText\r\n"},
		{"a new key in the style of the others", "---\ntitle: \"A\"\n# c\n---\n", "description", "B",
			"---\ntitle: \"A\"\n# c\ndescription: \"B\"\n---\n"},
		{"a new number", "---\ntitle: A\n---\n", "sort_rank", "3", "---\ntitle: A\nsort_rank: 3\n---\n"},
		{"a new title that looks like a number", "---\nx: A\n---\n", "title", "2024", "---\nx: A\ntitle: \"2024\"\n---\n"},
		{"a block value is replaced whole", "---\ntitle: A\ntags:\n- a\n- b\n\nx: 1\n---\n", "tags", "[c]",
			"---\ntitle: A\ntags: [c]\n\nx: 1\n---\n"},
		{"a folded value is replaced whole", "---\ndescription: >\n  a\n  b\ntitle: A\n---\n", "description", "c",
			"---\ndescription: c\ntitle: A\n---\n"},
		{"an empty value", "---\ntitle:\n---\n", "title", "A", "---\ntitle: A\n---\n"},
		{"none before", "# A\n", "title", "B", "---\ntitle: \"B\"\n---\n\n# A\n"},
		{"none before, with a byte order mark", "\xef\xbb\xbf# A\r\n", "title", "B",
			"\xef\xbb\xbf---\r\ntitle: \"B\"\r\n---\r\n\r\n# A\r\n"},
		{"toml", "+++\ntitle = \"A\" # c\n[x]\ntitle = \"B\"\n+++\n", "title", "C",
			"+++\ntitle = \"C\" # c\n[x]\ntitle = \"B\"\n+++\n"},
		{"toml, a new key before the tables", "+++\na = 1\n[x]\nb = 2\n+++\n", "weight", "3",
			"+++\na = 1\nweight = 3\n[x]\nb = 2\n+++\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := markup.Parse("a.md", []byte(c.in))
			edits, err := p.SetFront(c.key, c.value)
			if err != nil {
				t.Fatal(err)
			}
			got, err := markup.Apply(p.Src, edits)
			if err != nil || string(got) != c.want {
				t.Errorf("%q %v\nwant %q", got, err, c.want)
			}
		})
	}
}

func TestFrontMatterKeysAreRemovedWithTheirValues(t *testing.T) {
	for _, c := range []struct{ in, key, want string }{
		{"---\na: 1\nb:\n  - x\n  - y\n# c\nd: 2\n---\n", "b", "---\na: 1\n# c\nd: 2\n---\n"},
		{"---\r\na: 1\r\nb: 2\r\n---\r\n", "a", "---\r\nb: 2\r\n---\r\n"},
		{"+++\na = [\n 1,\n]\nb = 2\n+++\n", "a", "+++\nb = 2\n+++\n"},
	} {
		p := markup.Parse("a.md", []byte(c.in))
		edits, err := p.RemoveFront(c.key)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := markup.Apply(p.Src, edits); err != nil || string(got) != c.want {
			t.Errorf("%q %v\nwant %q", got, err, c.want)
		}
	}
}

func TestFrontMatterThatCannotBeEditedSafelyIsRefused(t *testing.T) {
	for _, c := range []struct{ in, key, value string }{
		{"---\na: [\n---\n", "a", "b"},
		{"---\na: 1\n---\n", "a\nb", "c"},
		{"---\na: 1\n---\n", "a", "b\nc: d"},
		{"---\n{a: 1, b: 2}\n---\n", "a", "c"},
		{"---\na: &x 1\nb: *x\n---\n", "a", "c"},
	} {
		p := markup.Parse("a.md", []byte(c.in))
		if edits, err := p.SetFront(c.key, c.value); err == nil {
			t.Errorf("%q: %v", c.in, edits)
		}
	}
	if _, err := markup.Parse("a.md", []byte("---\na: 1\n---\n")).RemoveFront("b"); err == nil {
		t.Error("a key that is not there was removed")
	}
}
