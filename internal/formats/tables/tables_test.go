package tables

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// filled is how many cells the tables of a page have once each row is filled up, counted as slowly as it is defined.
func filled(top *html.Node) (cells int) {
	for n := range top.Descendants() {
		if n.DataAtom == atom.Table {
			cells += max(0, grid(n))
		}
	}
	return cells
}

func parse(t *testing.T, source string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func written(t *testing.T, n *html.Node) string {
	t.Helper()
	var b strings.Builder
	if err := html.Render(&b, n); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAFewBytesMakeNoLargeTable(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		`<table><tr><td colspan=40000000>a</td></tr></table>`,
		`<table><tr><td colspan=99999999999999999999>a</td></tr></table>`,
		`<table><tr><td rowspan=40000000>a</td></tr></table>`,
		`<table><tr><td rowspan=1000 colspan=1000>a</td></tr>` + strings.Repeat("<tr>", 5000) + `</table>`,
		`<table><tr>` + strings.Repeat("<td colspan=1000>", 500) + strings.Repeat("<tr><td>", 5000) + `</table>`,
		strings.Repeat(`<table><tr><td colspan=1000>a</td></tr></table>`, 5000),
		`<table>` + strings.Repeat(`<tr><td rowspan=1000>`, 3000) + `</table>`,
	} {
		doc := parse(t, source)
		Bound(doc)
		if cells := filled(doc); cells > maxCells {
			t.Errorf("%.80s: %d cells", source, cells)
		}
		if !strings.Contains(source, "<td colspan=1000>a") && strings.Contains(source, ">a<") && !strings.Contains(written(t, doc), "a") {
			t.Errorf("%.80s: its text is gone", source)
		}
	}
}

func TestTablesOfPeopleStayAsTheyAre(t *testing.T) {
	t.Parallel()
	source := `<table><caption>c</caption><tbody><tr><th colspan="2">a</th><td rowspan="2">b</td></tr><tr><td>1</td><td>2</td></tr></tbody></table>`
	doc := parse(t, source)
	Bound(doc)
	if got := written(t, doc); !strings.Contains(got, source) {
		t.Errorf("%s", got)
	}
	large := parse(t, "<table>"+strings.Repeat("<tr>"+strings.Repeat("<td>x", 20), 5000)+"</table>")
	Bound(large)
	if n := filled(large); n != 100_000 {
		t.Errorf("%d cells", n)
	}
}

// FuzzBound counts what is made of a page: its tables have no more cells than they may.
func FuzzBound(f *testing.F) {
	f.Add("<table><tr><td colspan=99 rowspan=7>", uint16(400))
	f.Add("<table><td rowspan=0><table><tr><th colspan=-1>", uint16(2))
	f.Add("<table><th span=2000", uint16(131)) // is none of a cell's
	f.Fuzz(func(t *testing.T, source string, times uint16) {
		if len(source) > 200 {
			return
		}
		doc, err := html.Parse(strings.NewReader(strings.Repeat(source, int(times%1000))))
		if err != nil {
			return // nested too deep
		}
		Bound(doc)
		if cells := filled(doc); cells > maxCells {
			t.Errorf("%d cells", cells)
		}
		for n := range doc.Descendants() {
			if n.DataAtom == atom.Td || n.DataAtom == atom.Th {
				for _, a := range n.Attr {
					var by int
					if _, err := fmt.Sscan(a.Val, &by); (a.Key == "colspan" || a.Key == "rowspan") && err == nil && by > maxSpan && inTable(n) {
						t.Errorf("%s=%d", a.Key, by)
					}
				}
			}
		}
	})
}

func inTable(n *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == atom.Table {
			return true
		}
	}
	return false
}
