package brief_test

import (
	"testing"

	"docent/internal/brief"
)

func TestATextIsCutBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		text, bytes, runes string
		most               int
	}{
		{"", "", "", 0},
		{"a", "…", "…", 0},
		{"a", "…", "…", -1},
		{"abc", "abc", "abc", 3},
		{"abcd", "abc…", "abc…", 3},
		{"äöü", "ä…", "äöü", 3},
		{"日本語で", "日…", "日本語で", 5},
		{"日本語で", "…", "日本…", 2},
	} {
		if got := brief.Bytes(c.text, c.most, "…"); got != c.bytes {
			t.Errorf("%d bytes of %q: %q, want %q", c.most, c.text, got, c.bytes)
		}
		if got := brief.Runes(c.text, c.most, "…"); got != c.runes {
			t.Errorf("%d characters of %q: %q, want %q", c.most, c.text, got, c.runes)
		}
	}
}

func TestALineHasOneBlankForEachRunOfWhiteSpace(t *testing.T) {
	if got := brief.Line(" a\tb\r\n\n c\u00a0d "); got != "a b c d" {
		t.Errorf("%q", got)
	}
}

func TestATextBeginsWithACapitalLetter(t *testing.T) {
	for in, want := range map[string]string{"": "", "a": "A", "Ab": "Ab", "übersicht": "Übersicht", "♪": "♪", "\xff": "\xff"} {
		if got := brief.Capital(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
