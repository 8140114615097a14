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

// A page says for whom it is, and a slip in how it says so opens it to nobody.
func TestGroupsThatCannotBeReadOpenNoPage(t *testing.T) {
	nobody := []string{""}
	for front, want := range map[string][]string{
		"title: x":             nil,
		"groups:":              nil,
		"groups: []":           nil,
		"groups: ''":           nil,
		"title: 'Groups: who'": nil,
		"title: Groups: who":   nil,
		"description: of\n  groups and people: all": nil,
		"groups: [staff, partner]":                  {"staff", "partner"},
		"groups:\n- staff":                          {"staff"},
		"groups: [staff, null]":                     {"staff"},
		"groups: {staff: true}":                     nobody,
		"groups: true":                              nobody,
		"groups: 2026-11-29":                        nobody,
		"groups: !!set {staff}":                     nobody,
		"groups:\n-":                                nobody,
		"groups: ','":                               nobody,
		"groups:\n\t- staff":                        nobody,
		"title: a: b\ngroups:\n  - staff":           nobody,
		"title: a: b\n\"groups\": [staff]":          nobody,
		"{title: a: b, groups: [staff]}":            nobody,
		"title: a: b\nGROUPS:\n  - staff":           nobody,
		"title: a: b\ngroups: staff":                {"staff"},
	} {
		for name, wrap := range map[string]string{"a.md": "---\n%\n---\n\n# A\n\nText.\n", "a.html": "---\n%\n---\n<h1>A</h1><p>Text.</p>\n"} {
			r := &Record{Path: name, Kind: KindPage}
			if Read(r, []byte(strings.Replace(wrap, "%", front, 1))); !slices.Equal(r.Groups, want) {
				t.Errorf("%s %q is for %q, want %q", name, front, r.Groups, want)
			}
			if want != nil && (r.Allowed(nil) || want[0] == "" && r.Allowed([]string{"staff", "true"})) {
				t.Errorf("%s %q is open", name, front)
			}
		}
	}
}
