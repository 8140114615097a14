package page

import (
	"slices"
	"strings"
	"testing"
)

// What a page in HTML says of itself before its first tag is front matter, and no text.
func TestAnHTMLPageHasFrontMatter(t *testing.T) {
	r := &Record{Path: "_index.html", Kind: KindPage}
	src := Read(r, []byte("---\ntitle: A reader\ndescription: Reads feeds\ngroups: [staff]\n---\n\n<h1>Feeds</h1>\n<p>They are read.</p>\n<h2>More</h2>\n<p>Text.</p>\n"))
	if r.Title != "A reader" || r.Description != "Reads feeds" || !slices.Equal(r.Groups, []string{"staff"}) || !r.Front.Has {
		t.Errorf("%+v", r)
	}
	if len(src.passages) != 2 || strings.Contains(src.passages[0].body, "---") || int64(src.passages[0].start) != r.Body {
		t.Errorf("%+v", src.passages)
	}
}

// The sign that leads to a heading is no part of it.
func TestAPermalinkIsNoHeading(t *testing.T) {
	r := &Record{Path: "cli.md", Kind: KindPage}
	src := Read(r, []byte("Text.\n\n## Create a user <a class=\"anchor\" href=\"#create\" title=\"Permalink\">¶</a>\n\nSo.\n\n"+
		"### Now [¶](#now)\n\nGo.\n\n## In C#\n\nText.\n"))
	var got []string
	for _, p := range src.passages {
		got = append(got, strings.Join(append(p.trail, p.heading), " > "))
	}
	if want := []string{"", "Create a user", "Create a user > Now", "In C#"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A front page says what the project is in its hero.
func TestAHeroDescribesTheSite(t *testing.T) {
	r := &Record{Path: "index.md", Kind: KindPage}
	if Read(r, []byte("---\nlayout: home\nhero:\n  name: Acme\n  text: ''\n  tagline: Sends messages\n---\n")); r.Description != "Sends messages" {
		t.Errorf("%q", r.Description)
	}
}

// A file without a title has one of its name, which may begin with any character: what is stored is text.
func TestATitleOfANameIsText(t *testing.T) {
	for name, want := range map[string]string{"docs/übersicht.md": "Übersicht", "docs/♪.md": "♪", "docs/set-up.md": "Set up"} {
		if got := titleOfPath(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
