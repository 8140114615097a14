package markup

import (
	"slices"
	"testing"
)

func TestConstructsAreFoundByEachOfTheirNames(t *testing.T) {
	for text, want := range map[string]string{
		"See {ref}`a-label`.":                  "a-label",
		"See {numref}`a table <a-label>`.":     "a-label",
		"See {{< ref \"a.md\" >}}.":            "a.md",
		"See {{% relref \"a.md\" %}}.":         "a.md",
		"{{< include file=\"a.md\" >}}":        "a.md",
		"<img src={require('./a.png')} />":     "./a.png",
		"It requires {{ref}} and a `require`.": "",
	} {
		refs := Parse("a.mdx", []byte(text+"\n")).References()
		if want == "" && len(refs) == 0 {
			continue
		}
		if !slices.ContainsFunc(refs, func(l Link) bool { return l.Dest == want && l.Kind == IncludeLink }) {
			t.Errorf("%s: %+v", text, refs)
		}
	}
}
