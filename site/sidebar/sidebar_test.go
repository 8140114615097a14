package sidebar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"docent/api"
)

// The keys of an object are in the order in which a program writes them.
func TestKeysAreInTheOrderOfTheProgram(t *testing.T) {
	src := `// meta: {x: 1}
import a from './a' // { b: 1 }
const meta: MetaRecord = {
  'zoo-1': 'Zoo: {a, b: c}', /* { no: 1 } */
  "ant": { title: "Ant", theme: { toc: false } },
  index: "It's \"home\", key: x",
  '*': { type: 'page' },
  fn: (a, b) => ({ inner: 1 }),
  last: '',
}
export default meta`
	var got []string
	for _, e := range readMeta(src) {
		got = append(got, e.name)
	}
	if want := []string{"zoo-1", "ant", "index", "*", "fn", "last"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if list := readMeta(`{"b": "B", "a": {"title": "A", "display": "hidden"}}`); len(list) != 2 || list[0].title != "B" || !list[1].hidden {
		t.Errorf("%+v", list)
	}
}

func FuzzMeta(f *testing.F) {
	f.Add("export default { a: 'A' }")
	f.Add("{\"a\": /* ")
	f.Add("= { 'a' : `")
	f.Fuzz(func(t *testing.T, src string) { readMeta(src) })
}

// What a repository says of its order is told in the end, however much it says.
func TestAnOrderIsToldWhateverARepositorySays(t *testing.T) {
	const many = 4000
	var pages []Page
	for i := range many {
		name := "A"
		if i%2 == 0 {
			name = fmt.Sprint(i)
		}
		front := Front{At: fmt.Sprint(i % 7)}
		if i%3 == 0 {
			front.Parents = []string{"A"}
		}
		pages = append(pages, Page{Path: fmt.Sprintf("docs/%05d-x.md", i), Title: name, Front: front})
	}
	pages = append(pages, Page{Path: strings.Repeat("d/", 2000) + "x.md", Title: "Deep"})
	list := "nav:\n" + strings.Repeat("  - ... | regex=(a|b|x)*[0-9]+\n", 5000) + strings.Repeat("  - x.md\n", 5000)
	for _, kind := range []api.SiteKind{api.SiteDocusaurus, api.SiteStarlight, api.SiteHugo, api.SiteNext, api.SiteMkDocs, api.SiteJekyll} {
		r := Read(kind, []string{"docs/.pages", "docs/_meta.js", "docs/_category_.json"}, func(name string) ([]byte, error) {
			switch {
			case strings.HasSuffix(name, ".pages"):
				return []byte(list), nil
			case kind == api.SiteNext:
				return []byte("export default {" + strings.Repeat("'a': 1, ", 100_000)), nil
			}
			return nil, errors.New("there is none")
		})
		places := r.Order("", pages)
		if shown := slices.IndexFunc(places, func(p Place) bool { return p.At > 0 }); shown < 0 {
			t.Errorf("%s: no page has a place", kind)
		}
	}
}
