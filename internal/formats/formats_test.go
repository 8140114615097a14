package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"docent/internal/testing/need"
)

// hostile is nested input of some megabytes, of which each form ended a process or kept it busy.
func hostile() map[string]string {
	const n = 1_000_000
	return map[string]string{
		"arrays":            strings.Repeat("[", n),
		"objects":           strings.Repeat(`{"a":`, n),
		"closed in strings": strings.Repeat(`["]",`, n),
		"closed in comment": strings.Repeat("[/*]*/", n),
		"line comments":     strings.Repeat("[//]\n", n),
		"escaped quote":     strings.Repeat(`["\"]",`, n),
		"both":              strings.Repeat(`[{"a":`, n),
		"sequences":         strings.Repeat("- ", n),
		"flow in a key":     "a: " + strings.Repeat("[", n),
		"flow maps":         strings.Repeat("{a: ", n),
		"dotted":            strings.Repeat("a.", n) + "a = 1",
		"table":             "[" + strings.Repeat("a.", n) + "a]",
		"inline tables":     "a = " + strings.Repeat("{a = ", n),
		"toml arrays":       "a = " + strings.Repeat("[", n),
		"aliases":           aliases(60_000),
		"literals":          "a = " + strings.Repeat("[']',", n),
		"multiline":         "a = " + strings.Repeat("['''\n]''',", n),
		"toml comments":     "a = " + strings.Repeat("[ # ]\n", n),
	}
}

// aliases nest by reference: each line holds the one before.
func aliases(n int) string {
	var b strings.Builder
	b.WriteString("- &a0 x\n")
	for i := range n {
		fmt.Fprintf(&b, "- &a%d [*a%d]\n", i+1, i)
	}
	return b.String()
}

func TestHostileNestingIsAnErrorAndNotTheEndOfTheProcess(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	t.Parallel()
	refused := map[string]int{}
	for name, src := range hostile() {
		for format, read := range map[string]func([]byte, any) error{"JSON": JSON, "YAML": YAML, "TOML": TOML} {
			var v any
			if format == "TOML" {
				v = map[string]any{}
			}
			err := read([]byte(src), &v)
			var tooDeep *DepthError
			if err == nil && valueDepth(reflect.ValueOf(&v).Elem()) > 2 { // a plain text of YAML may be anything
				t.Errorf("%s was read as %s", name, format)
			} else if errors.As(err, &tooDeep) {
				refused[format]++
			}
		}
		if _, err := JSONTree([]byte(src)); err == nil {
			t.Errorf("%s was read as a tree", name)
		}
	}
	for _, format := range []string{"JSON", "YAML", "TOML"} {
		if refused[format] < 3 {
			t.Errorf("only %d of the forms were refused as %s for their depth", refused[format], format)
		}
	}
}

func TestWhatPeopleWriteIsRead(t *testing.T) {
	t.Parallel()
	deep := func(open, close string, n int) string { return strings.Repeat(open, n) + strings.Repeat(close, n) }
	for _, c := range []struct {
		read      func([]byte, any) error
		src, want string
	}{
		{JSON, `{"a": [1, {"b": "]]]"}]}`, `{"a":[1,{"b":"]]]"}]}`},
		{JSON, "{\n// a comment\n\"a\": [1, 2,], /* [ */\n}", `{"a":[1,2]}`},
		{YAML, "a:\n  - b: '[[['\n", `{"a":[{"b":"[[["}]}`},
		{YAML, "a: 1\n---\nb: 2\n", `{"a":1}`},
		{YAML, "", `null`},
		{TOML, "title = \"a.b.c.d\"\n[params.a.b]\nlist = [1.5, 2.5, '[[', \"\"\"\n[[\n\"\"\"] # [[[\n",
			`{"params":{"a":{"b":{"list":[1.5,2.5,"[[","[[\n"]}}},"title":"a.b.c.d"}`},
		{JSON, deep("[", "]", MaxDepth), deep("[", "]", MaxDepth)},
		{YAML, deep("[", "]", MaxDepth), deep("[", "]", MaxDepth)},
	} {
		var v any
		if err := c.read([]byte(c.src), &v); err != nil {
			t.Errorf("%q: %v", c.src, err)
			continue
		}
		if out, _ := json.Marshal(v); string(out) != c.want {
			t.Errorf("%q: %s, want %s", c.src, out, c.want)
		}
	}
}

// valueDepth is how deep a decoded value nests.
func valueDepth(v reflect.Value) int {
	deepest := 0
	switch v.Kind() {
	case reflect.Interface:
		return valueDepth(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			deepest = max(deepest, valueDepth(v.Index(i)))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			deepest = max(deepest, valueDepth(v.MapIndex(k)))
		}
	default:
		return 0
	}
	return deepest + 1
}

// FuzzDepth holds the check against the parsers themselves: what they read is never deeper than what was counted.
func FuzzDepth(f *testing.F) {
	for _, src := range hostile() {
		f.Add([]byte(src[:min(len(src), 60)]))
	}
	f.Add([]byte("a.b = [{c.d = \"\\\"]\"}, '''\n]''']\n[x.\"y.z\".w]\n[[x.v]]"))
	f.Add([]byte(`{"a": [1, /* ] */ "]", {"b": "\\"}], // }` + "\n}"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 4096 {
			return
		}
		const far = 1 << 20
		counted := depth(jsonSyntax, src, far)
		var v any
		if plain, err := hujson.Standardize(append([]byte(nil), src...)); err == nil && json.Unmarshal(plain, &v) == nil {
			if got := valueDepth(reflect.ValueOf(&v).Elem()); got > counted {
				t.Fatalf("JSON is %d deep, %d counted", got, counted)
			}
		}
		counted = depth(tomlSyntax, src, far)
		var m map[string]any
		if toml.Unmarshal(src, &m) == nil {
			// The outermost table and each table of an array of tables have no bracket of their own.
			if got := valueDepth(reflect.ValueOf(m)); got > 2*counted+2 {
				t.Fatalf("TOML is %d deep, %d counted", got, counted)
			}
		}
		var y any
		if YAML(src, &y) == nil && !bytes.ContainsRune(src, '*') { // what aliases stand for is nested again
			if got := valueDepth(reflect.ValueOf(&y).Elem()); got > MaxDepth+1 {
				t.Fatalf("YAML is %d deep", got)
			}
		}
	})
}
