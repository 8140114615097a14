package script

import (
	"fmt"
	"strings"
	"testing"
)

// A text of a program is found where it stands alone, with what takes its entry out. What is computed is not.
func TestTextsOfAProgramAreFoundWithTheirEntries(t *testing.T) {
	const src = `// 'comment'
import x from './x'
const re = /['"]/g, other = a / b / 'no'
export default {
  sidebar: {
    '/guide/': [
      {
        text: 'Guide', base: '/guide/',
        items: [
          { text: 'A', link: 'a' },
          { text: "B", link: "b" }, // last
          ` + "{ text: `C${n}`, link: `c` }," + `
        ],
      },
    ],
  },
  docs: ['one', 'two', { type: 'category', link: { type: 'doc', id: 'three' }, items: ['four'] }] as const,
  logo: { src: 'x.svg', href: '/home' },
  computed: 'a' + 'b',
  call: link('no'),
}
function more(): Item[] { return [ { text: 'D', link: '/d' } ] }
`
	var got strings.Builder
	for _, x := range Texts(src) {
		if x.Key == "text" || x.Key == "type" || x.Key == "src" {
			continue
		}
		fmt.Fprintf(&got, "%s|%s|%s|%s|%s\n", src[x.Start:x.End], x.Key, x.List, x.Base,
			strings.Join(strings.Fields(src[x.Cut[0]:x.Cut[1]]), " "))
	}
	want := `'/guide/'|base||/guide/|base: '/guide/',
'a'|link||/guide/|{ text: 'A', link: 'a' },
"b"|link||/guide/|{ text: "B", link: "b" },
` + "`c`|link||/guide/|{ text: `C${n}`, link: `c` },\n" + `'one'||||'one',
'two'||||'two',
'three'|id|||link: { type: 'doc', id: 'three' },
'four'||items||'four'
'/home'|href|||
'/d'|link|||{ text: 'D', link: '/d' }
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	for _, open := range []string{"[", "{", "("} {
		if Texts(strings.Repeat(open, 100_000)) != nil {
			t.Errorf("%s: what has no end has texts", open)
		}
	}
	Texts(strings.Repeat("'a',", 100_000)) // in one pass
}

func FuzzTexts(f *testing.F) {
	f.Add("export default { sidebar: [{ text: 'A', link: '/a' }, \"b\", `c`], re: /[/']/ }")
	f.Add("{a:[b,{'c':'d',},],}")
	f.Fuzz(func(t *testing.T, src string) {
		for _, x := range Texts(src) {
			if x.Start < 0 || x.End > len(src) || x.Start >= x.End || x.Cut[0] > x.Cut[1] || x.Cut[1] > len(src) {
				t.Fatalf("%+v of %d bytes", x, len(src))
			}
			if x.Cut[1] > 0 && (x.Cut[0] > x.Start || x.Cut[1] < x.End) {
				t.Fatalf("%+v: its entry does not hold it", x)
			}
		}
	})
}
