package script

import (
	"reflect"
	"testing"
)

// Only what is written out is read of a configuration that is a program.
func TestLiteralsAreReadWithoutRunningThem(t *testing.T) {
	for src, want := range map[string]any{
		`{a: 1, 'b-c': "x\"y", "d": [true, null, 2.5,], /* c */ e: f(1, [2]), ...g, h, i() { return {} }, j: 'k' + l, m: ` +
			"`n`" + `, o: ` + "`p${q}`" + ` } // end`: map[string]any{
			"a": 1.0, "b-c": `x"y`, "d": []any{true, 2.5}, "m": "n"},
		`[{text: 'A'}, [b].map(x => x), c ? d : e, {text: 'F'}] as const`: []any{map[string]any{"text": "A"},
			map[string]any{"text": "F"}},
		`sidebars`: nil,
		`{`:        map[string]any{},
		`[`:        []any{},
		`{a:`:      map[string]any{},
		`"a`:       "a",
	} {
		if got, _ := Literal(src); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %#v\nwant %#v", src, got, want)
		}
	}
}

func FuzzLiteral(f *testing.F) {
	f.Add(`{a: [1, 'b', {c}], d: e(f)}`)
	f.Add("[[[[[[")
	f.Add("{a:/*")
	f.Fuzz(func(_ *testing.T, src string) { Literal(src) }) // ends
}

// Settings are found whatever the file makes of the object, and names stand for what they are declared as.
func TestSettingsAreReadWithoutRunningThem(t *testing.T) {
	for src, want := range map[string]map[string]any{
		"const base = '/b/';\nconst c: Config = { url: 'https://a.dev', base, more: f(), list: ['a', ...x], on: false };\nexport default c": {
			"url": "https://a.dev", "base": "/b/", "more": Computed{}, "list": []any{"a", Computed{}}, "on": false},
		"export default defineConfig({ url: `a${b}`, base: null })": {"url": Computed{}},
		"module.exports = function () { const x = {y: 1}; return { url: 'u', x, } }": {"url": "u",
			"x": map[string]any{"y": 1.0}},
		"const a = b, b = a; export default { url: a, base() { return 1 }, ...a }": {"url": Computed{}, "base": Computed{},
			"...": Spread{}},
		"export default make()": nil,
		"":                      nil,
	} {
		if got := Settings("site.config.ts", src, nil, "url", "base"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %#v\nwant %#v", src, got, want)
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add("const a = a; export default {a, b: [a], ...a}")
	f.Add("={={={={")
	f.Fuzz(func(_ *testing.T, src string) { Settings("a.ts", src, nil, "a") }) // ends
}
