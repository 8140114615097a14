package script

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// one is a value that is one of two.
func (m *module) one(a, b any) any {
	_, unknownA := a.(Computed)
	_, unknownB := b.(Computed)
	if unknownA || unknownB {
		return Computed{}
	}
	if identical(a, b) {
		return a
	}
	x, isObject := a.(map[string]any)
	y, both := b.(map[string]any)
	if isObject && both {
		return m.oneOf(x, y)
	}
	var out Either
	for _, v := range []any{a, b} {
		if e, ok := v.(Either); ok {
			out = append(out, e...)
		} else {
			out = append(out, v)
		}
	}
	if !m.step(len(out)) {
		return Computed{}
	}
	return out
}

// identical reports whether two values are one: the same text, or the same object.
func identical(a, b any) bool {
	switch a := a.(type) {
	case nil, bool, string, float64:
		switch b.(type) {
		case nil, bool, string, float64:
			return a == b
		}
	case map[string]any, []any, Either:
		x, y := reflect.ValueOf(a), reflect.ValueOf(b)
		return b != nil && x.Type() == y.Type() && x.Len() == y.Len() && x.Pointer() == y.Pointer()
	}
	return false
}

// oneOf is an object that is one of two: what each of its keys may hold.
func (m *module) oneOf(a, b map[string]any) any {
	out := map[string]any{}
	_, spreadA := a["..."]
	_, spreadB := b["..."]
	for _, from := range []map[string]any{a, b} {
		for key := range from {
			if _, done := out[key]; done || key == "..." {
				continue
			}
			if !m.step(1) {
				return Computed{}
			}
			out[key] = m.one(a[key], b[key])
		}
	}
	if spreadA || spreadB {
		out["..."] = Spread{}
	}
	return out
}

// spread takes the properties of a value into an object.
func (m *module) spread(out map[string]any, v any) {
	switch v := v.(type) {
	case nil, bool, string, float64:
	case map[string]any:
		s, partly := v["..."].(Spread)
		if partly {
			out["..."] = Spread{}
		}
		if !m.step(len(v)) {
			out["..."] = Spread{}
			return
		}
		for key, x := range v {
			switch {
			case key == "...":
			case !partly || s[key]:
				set(out, key, x)
			default:
				out[key] = x
			}
		}
	case Either: // each of them, or nothing
		before := maps.Clone(out)
		var all any
		for i, x := range v {
			with := maps.Clone(before)
			if m.spread(with, x); i == 0 {
				all = with
			} else {
				all = m.one(all, with)
			}
		}
		if of, ok := all.(map[string]any); ok {
			maps.Copy(out, of)
		} else {
			out["..."] = Spread{}
		}
	default:
		out["..."] = Spread{}
	}
}

// join takes the entries of a value into a list.
func (m *module) join(out []any, v any) []any {
	switch v := v.(type) {
	case nil:
		return out
	case []any:
		if m.step(len(v)) {
			return append(out, v...)
		}
	case Either: // all that may be there
		for _, x := range v {
			if is, known := truth(x); known && !is {
				continue
			}
			out = m.join(out, x)
		}
		return out
	}
	return append(out, Computed{})
}

// merge joins objects one into the other, as functions do that are named for it.
func (m *module) merge(values []any, depth int) any {
	out := map[string]any{}
	for _, v := range values {
		of, ok := v.(map[string]any)
		if !ok {
			m.spread(out, v)
			continue
		}
		for key, x := range of {
			was := out[key]
			a, list := was.([]any)
			b, lists := x.([]any)
			c, object := was.(map[string]any)
			d, objects := x.(map[string]any)
			switch {
			case key == "...":
			case list && lists:
				x = m.join(slices.Clone(a), b)
			case object && objects && depth < deepest:
				x = m.merge([]any{c, d}, depth+1)
			case was != nil:
				x = m.one(was, x)
			}
			if !m.step(1) {
				return Computed{}
			}
			if key != "..." {
				set(out, key, x)
			}
		}
		if _, partly := of["..."]; partly {
			out["..."] = Spread{}
		}
	}
	return out
}

var merges = regexp.MustCompile(`(?i)merge|extend|defu|defaults`)

// same are functions that return what they are given.
var same = []string{"defineConfig", "defineAdditionalConfig", "defineDocs", "defineCollection", "defineCollections",
	"freeze", "structuredClone", "resolve"}

// call is what a call returns. path is how the program names the function.
func (p *reader) call(f any, path string, arguments []any, depth int) any {
	first := any(nil)
	if len(arguments) > 0 {
		first = arguments[0]
	}
	if f, ok := f.(*function); ok {
		return f.returns(depth + 1)
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case path == "require":
		if from, ok := first.(string); ok && p.of != nil && p.of.program != nil {
			return p.of.of(from, "*")
		}
		return Computed{}
	case path == "Object.assign":
		out := map[string]any{}
		for _, v := range arguments {
			p.of.spread(out, v)
		}
		return out
	case slices.Contains(same, name) && len(arguments) > 0:
		return first
	case name != "" && merges.MatchString(name):
		return p.of.merge(arguments, 0)
	case name == "":
		return Computed{}
	}
	return Call{path, arguments}
}

// method is what a method of a value returns.
func (p *reader) method(v any, path, name string, depth int) any {
	arguments := p.arguments(depth)
	switch list, ok := v.([]any); {
	case ok && name == "concat":
		for _, x := range arguments {
			if _, is := x.([]any); !is {
				x = []any{x}
			}
			list = p.of.join(slices.Clone(list), x)
		}
		return list
	case ok && name == "filter": // some of them
		return list
	case ok && name == "flat":
		out := []any{}
		for _, x := range list {
			if of, is := x.([]any); is {
				out = p.of.join(out, of)
			} else {
				out = append(out, x)
			}
		}
		return out
	}
	if path == "" {
		return Computed{}
	}
	if name == "assign" && path == "Object" || name == "resolve" && path == "require" || name == "freeze" {
		return p.call(nil, path+"."+name, arguments, depth)
	}
	return p.call(property(v, name), path+"."+name, arguments, depth)
}

// returns is what a function returns: one of what its return statements name.
func (f *function) returns(depth int) any {
	key := "returns " + itoa(f.at)
	if depth > deepest || f.of.reading == nil || f.of.reading[key] || !f.of.step(1) {
		return Computed{}
	}
	f.of.reading[key] = true
	defer delete(f.of.reading, key)
	r := reader{src: f.of.src, at: f.at, of: f.of}
	if !f.block {
		return r.value(depth)
	}
	r.at++
	var v any
	some := false
	for open := 0; r.at < len(r.src) && open >= 0 && f.of.step(1); {
		switch c := r.peek(); {
		case c == '{': // a block, since objects are passed over with what they stand behind
			open++
			r.at++
		case c == '}':
			open--
			r.at++
		case c == '=' || c == ':' || c == '(' || c == '[' || c == ',':
			r.passOver(c)
		case c == '"' || c == '\'' || c == '`':
			r.text()
		default:
			word := r.word()
			switch {
			case word == "function" || word == "async":
				if r.arrow() == nil {
					r.at += len(word)
				}
			case word == "return":
				r.at += len(word)
				x := r.value(depth)
				if v = f.of.one(v, x); !some {
					v, some = x, true
				}
			case word == "":
				r.at++
			default:
				r.at += len(word)
			}
		}
	}
	return v
}

// passOver passes over what a character begins within the body of a function, if it is no statement.
func (p *reader) passOver(c byte) {
	p.at++
	switch {
	case c == '(' || c == '[':
		p.close(closing[c])
	case c == '=' && p.at < len(p.src) && p.src[p.at] == '>':
		p.at++
		p.braces()
	default:
		p.braces()
	}
}

// braces passes over an object or a body that follows.
func (p *reader) braces() {
	if p.peek() == '{' {
		p.at++
		p.close('}')
	}
}

// speaks reports whether an object has one of the keys that are looked for.
func (p *program) speaks(m map[string]any) bool {
	return slices.ContainsFunc(p.keys, func(key string) bool { _, ok := m[key]; return ok })
}

// unwrap is the object that a value is when functions have returned it and calls have handed it on. It is whole if
// nothing else can have come into it.
func (p *program) unwrap(v any, depth int) (doc map[string]any, whole bool) {
	if depth > deepest {
		return nil, false
	}
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case *function:
		return p.unwrap(v.returns(0), depth+1)
	case Call: // the first argument is what others are about
		for i, x := range v.Arguments {
			of, whole := p.unwrap(x, depth+1)
			if of != nil && p.speaks(of) {
				return of, whole && i == 0
			}
		}
	case Either:
		whole = true
		var all any
		for _, x := range v {
			of, complete := p.unwrap(x, depth+1)
			if whole = whole && complete && of != nil; of == nil {
				continue
			}
			if all == nil {
				all = of
				continue
			}
			all = (&module{program: p}).one(all, of)
		}
		doc, _ = all.(map[string]any)
		return doc, whole && doc != nil
	}
	return nil, false
}

// largest is the object of a file that has the most of the keys.
func (m *module) largest() (best map[string]any) {
	most := 0
	for _, at := range objects.FindAllStringIndex(m.src, maxObjects) {
		r := reader{src: m.src, at: at[1] - 1, of: m}
		of, _ := r.object(0).(map[string]any)
		n := 0
		for _, key := range m.keys {
			if _, ok := of[key]; ok {
				n++
			}
		}
		if n > most {
			best, most = of, n
		}
	}
	return best
}

// clean is a value as Settings hands it out: without functions, and no bigger than what was read.
func (p *program) clean(v any) any {
	p.left--
	if p.left < -maxSteps {
		return Computed{}
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, x := range v {
			if x = p.clean(x); x != nil {
				out[key] = x
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, x := range v {
			if x = p.clean(x); x != nil {
				out = append(out, x)
			}
		}
		return out
	case Either:
		out := make(Either, 0, len(v))
		for _, x := range v {
			out = append(out, p.clean(x))
		}
		return out
	case Call:
		if !p.calls {
			return Computed{}
		}
		arguments, _ := p.clean(v.Arguments).([]any)
		return Call{v.Name, arguments}
	case *function:
		return Computed{}
	}
	return v
}
