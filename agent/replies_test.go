package agent_test

import (
	"strings"
	"testing"
)

// What a tool answers begins with a capital letter, whatever letter that is, and with a path as it is.
func TestARefusalKeepsPathsAndLettersWhole(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		call  any
		want  string
	}{
		{map[string]string{"über.md": "x\n"}, one("write_file", args{"path": "über.md", "content": "y"}),
			"über.md exists already"},
		{map[string]string{"guides/a.md": "x\n"}, one("write_file", args{"path": "guides/a.md", "content": "y"}),
			"guides/a.md exists already"},
		{map[string]string{"guides/a.md": "x\n"}, one("write_file", args{"path": "Guides/b.md", "content": "y"}),
			"Guides/b.md and guides"},
		{map[string]string{"a.md": "x\n"}, one("read_file", args{"path": "b.md"}), "There is no file"},
		{map[string]string{"a.md": "x\n"}, read("a.md"), "a.md, lines 1"},
	} {
		j := newLoop(t, c.files, c.call, finish)
		if _, err := j.run(); err != nil {
			t.Fatal(err)
		}
		if got := j.model.shown(1); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q, want %q at its beginning", got, c.want)
		}
	}
}

// A new page is said to be in a navigation only if there is one that lists it.
func TestANewPageIsSaidToBeInANavigationOnlyWhereItIs(t *testing.T) {
	group := map[string]string{"docs.json": `{"navigation": {"groups": [{"group": "G", "pages": ["a"]}]}}`,
		"a.mdx": "---\ntitle: A\n---\n"}
	for _, c := range []struct {
		files       map[string]string
		path        string
		says, never string
	}{
		{map[string]string{"a.md": "# A\n"}, "b.md", "b.md is created", "navigation"},
		{map[string]string{"hugo.toml": "title = 'X'\n", "content/a.md": "# A\n"}, "content/b.md", "follows from its pages",
			"listed in the navigation"},
		{group, "b.mdx", "It is listed in the navigation.", "no navigation"},
		{group, "other/b.mdx", "It is in no navigation yet", "It is listed"},
	} {
		j := newLoop(t, c.files, one("write_file", args{"path": c.path, "content": "---\ntitle: B\n---\n"}), finish, finish)
		if _, err := j.run(); err != nil {
			t.Fatal(err)
		}
		if got := j.model.shown(1); !strings.Contains(got, c.says) || strings.Contains(got, c.never) {
			t.Errorf("%s: %q", c.path, got)
		}
	}
}
