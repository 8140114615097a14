package markup

import (
	"slices"
	"testing"
)

func TestParagraphsTablesAndListItemsHaveTheirPlaces(t *testing.T) {
	src := "---\ntitle: x\n---\n\n# Head\n\nOne\ntwo.\n## Next\nThree.\n\n| a | b |\n| - | - |\n| c | d |\n\n- e\n  f\n  - g\n- h\n\n  i\n\nEnd.\n\n> q\n>\n> r\n\n```\n- no\n```\n\n1. j\n2. k\n\nSetext\n===\n"
	p := Parse("a.md", []byte(src))
	text := func(spans []Span) (out []string) {
		for _, s := range spans {
			out = append(out, src[s.Start:s.End])
		}
		return out
	}
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"blocks", text(p.Blocks), []string{"One\ntwo.", "Three.", "e\n  f", "g", "h", "i", "End.", "q", "r", "j", "k"}},
		{"tables", text(p.Tables), []string{"| a | b |\n| - | - |\n| c | d |"}},
		{"items", text(p.Items), []string{"- e\n  f\n  - g\n", "- g\n", "- h\n\n  i\n\n", "1. j\n", "2. k\n\n"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
}

func TestALinkAndItsDefinitionHaveOneLabel(t *testing.T) {
	p := Parse("a.md", []byte("[Text][ A  b ] and [a B].\n\n[a b]: x.md\n"))
	for _, l := range p.Links {
		if l.Label != "a b" {
			t.Errorf("%d: label %q", l.Kind, l.Label)
		}
	}
	if len(p.Links) != 3 {
		t.Errorf("%d links", len(p.Links))
	}
}
