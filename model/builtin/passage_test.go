package builtin

import (
	"slices"
	"strings"
	"testing"

	"docent/model"
)

// A parsed passage knows what reading its text term by term tells.
func TestAParsedPassageHoldsTheTermsOfItsPassage(t *testing.T) {
	l := newPassage(&install)
	l.parse()
	for i, u := range l.units {
		for _, want := range terms(u.text) {
			n := l.find(want.hash)
			if n < 0 {
				t.Fatalf("%q is not there", want.text)
			}
			times := 0
			for _, o := range terms(u.text) {
				if o == want {
					times++
				}
			}
			if !slices.Contains(l.inUnits.of(n), posting{int32(i), uint8(times)}) {
				t.Errorf("%q is %d times in unit %d: %v", want.text, times, i, l.inUnits.of(n))
			}
		}
		line := u.firstLine
		all := lines(&u)
		if len(all) < 2 {
			all = nil
		}
		for _, text := range all {
			found := terms(text)
			for _, want := range found {
				if !slices.ContainsFunc(l.inLines.of(l.find(want.hash)), func(m posting) bool { return m.at == int32(line) }) {
					t.Errorf("%q is in line %d", want.text, line)
				}
			}
			if len(found) > 0 {
				line++
			}
		}
		if line != u.firstLine+u.lines {
			t.Errorf("unit %d has %d lines, not %d", i, u.lines, line-u.firstLine)
		}
	}
	for _, want := range terms(install.Heading) {
		if n := l.find(want.hash); n < 0 || l.where[n]&(inHead|inContext) != inHead|inContext ||
			!slices.Contains(l.head, want.hash) {
			t.Errorf("%q is in the heading", want.text)
		}
	}
}

// The cache tells passages apart, whatever looks like them, and stays within its bytes.
func TestTheCacheTellsPassagesApart(t *testing.T) {
	s := newPassageCache()
	a, b := install, install
	b.Text = strings.Replace(b.Text, "one", "two", 1)
	for range 3 {
		if s.of(&a).of.Text != a.Text || s.of(&b).of.Text != b.Text {
			t.Fatal("one passage is taken for the other")
		}
	}
	c := a
	c.Text = strings.Clone(a.Text)
	if s.of(&a) != s.of(&c) {
		t.Error("the same passage is read twice")
	}
	for i := range 100_000 {
		p := model.Passage{Path: strings.Repeat("x", i%97), URL: strings.Repeat("y", i/97), Title: "T", Text: "A text."}
		if s.of(&p); s.Holds() > s.Most {
			t.Fatalf("%d bytes after %d passages", s.Holds(), i)
		}
	}
	if s.Holds() < s.Most/2 {
		t.Error("hardly anything is kept")
	}
}
