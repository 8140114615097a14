package script

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Computed stands, in what Settings reads, for a value that would have to be run.
type Computed struct{}

// Either stands for a value that is one of several: which one depends on what the program would have to be run for.
type Either []any

// Spread is what an object holds under the key "..." if another one that cannot be read is spread into it. It has
// the keys that are set behind it, which are known all the same.
type Spread map[string]bool

// Known reports whether an object that Settings has read says what it holds under a key, if only that it holds nothing.
func Known(m map[string]any, key string) bool {
	s, spread := m["..."].(Spread)
	return !spread || s[key]
}

// Settings reads the object that a configuration in JavaScript or TypeScript makes, as far as it is written out in the
// file or in files that it imports by a relative path. Names stand for the values that they are declared with. It reads
// through functions, and through calls that take the object with some of these keys. What would have to be run is
// Computed. read reads a file by its path; nil if there are no others.
//
// If it is not clear which object the program exports, Settings takes the one with the most of the keys and marks
// it as one into which another is spread.
func Settings(file, src string, read func(string) ([]byte, error), keys ...string) map[string]any {
	p := &program{read: read, keys: keys, modules: map[string]*module{}, left: maxSteps}
	m := p.open(file, src)
	v, exported := m.exported("default")
	doc, whole := p.unwrap(v, 0)
	if !exported || doc == nil || !p.speaks(doc) {
		if largest := m.largest(); largest != nil {
			doc, whole = largest, false
		}
	}
	if doc == nil {
		return nil
	}
	if !whole {
		doc = maps.Clone(doc)
		m.spread(doc, Computed{})
	}
	out, _ := p.clean(doc).(map[string]any)
	return out
}

// A Call is what a function that is not known makes of its arguments.
type Call struct {
	Name      string // as the program names the function
	Arguments []any
}

// Exports are what a file exports by its declarations, under their names, read in the way of Settings. What functions
// that are not known make of their arguments is a Call.
func Exports(file, src string, read func(string) ([]byte, error)) map[string]any {
	p := &program{read: read, modules: map[string]*module{}, left: maxSteps, calls: true}
	m := p.open(file, src)
	out := map[string]any{}
	for _, found := range exported.FindAllStringSubmatch(m.src, -1) {
		if v, ok := m.exported(found[1]); ok && len(out) < maxObjects {
			out[found[1]] = p.clean(v)
		}
	}
	return out
}

const (
	maxSteps   = 200_000 // of reading a configuration with the files that it imports
	maxModules = 50
	maxObjects = 100     // that are looked at if the exported one is not found
	maxSource  = 1 << 20 // bytes of a file
)

// A program is a configuration while it is read.
type program struct {
	read    func(string) ([]byte, error)
	keys    []string
	modules map[string]*module
	left    int  // steps
	calls   bool // are asked for
}

// A module is one file of a program.
type module struct {
	*program
	file, src string
	declared  map[string][]declaration
	imported  map[string]binding
	changed   map[string][]change
	values    map[string]any
	reading   map[string]bool
}

// A declaration is where a name gets its value.
type declaration struct {
	at       int
	function bool
	property string // of the value
}

// A binding is what a name is imported as.
type binding struct{ from, name string }

// A change is made to the value of a name elsewhere than in its declaration.
type change struct {
	path []string // of properties
	adds bool     // to a list
}

// A function is one of a program, which is not run: what it returns is read.
type function struct {
	of    *module
	at    int
	block bool // it has a body in braces
}

// step counts what is done. It returns false if that has been enough.
func (m *module) step(n int) bool {
	if m == nil || m.keys == nil && m.modules == nil { // of Literal, whose text is read once
		return true
	}
	m.left -= n
	return m.left > 0
}

var (
	declares  = regexp.MustCompile(`\b(?:const|let|var)\s+([\w$]+)\s*(?::[^=;]*)?=\s*`)
	functions = regexp.MustCompile(`\b(?:async\s+)?function\s*\*?\s*([\w$]+)\s*\(`)
	takesOut  = regexp.MustCompile(`\b(?:const|let|var)\s*\{([^{}]*)\}\s*(?::[^=;]*)?=\s*`)
	imports   = regexp.MustCompile(`\bimport\s+(?:type\s+)?([^'"` + "`" + `;()]*?)\s*from\s*['"]([^'"]+)['"]`)
	exports   = regexp.MustCompile(`\bexport\s*\{([^{}]*)\}(?:\s*from\s*['"]([^'"]+)['"])?`)
	passesOn  = regexp.MustCompile(`\bexport\s*\*\s*from\s*['"]([^'"]+)['"]`)
	isDefault = regexp.MustCompile(`\bexport\s+default\b\s*|\bmodule\.exports\s*=\s*|\bexport\s*=\s*`)
	changes   = regexp.MustCompile(
		`([\w$]+)((?:\??\.[\w$]+|\[[^\]\n]*\])*?)\s*(?:=[^=>]|(?:\+|\|\||&&|\?\?)=|\.(push|unshift|splice|fill)\s*\()`)
	exported = regexp.MustCompile(`\bexport\s+(?:const|let|var)\s+([\w$]+)`)
	assigns  = regexp.MustCompile(`\bObject\.assign\(\s*([\w$]+)\s*,`)
	parts    = regexp.MustCompile(`[\w$]+`)
	objects  = regexp.MustCompile(`(?:=|\bexport\s+default|\breturn|\()\s*\{`)
)

// open takes up a file.
func (p *program) open(file, src string) *module {
	m := &module{program: p, file: file, declared: map[string][]declaration{}, imported: map[string]binding{},
		changed: map[string][]change{}, values: map[string]any{}, reading: map[string]bool{}}
	p.modules[file] = m
	if len(src) > maxSource {
		return m
	}
	src = withoutComments(src)
	m.src = src
	own := map[int]bool{} // where declarations have their names
	for _, at := range declares.FindAllStringSubmatchIndex(src, -1) {
		name := src[at[2]:at[3]]
		own[at[2]] = true
		m.declared[name] = append(m.declared[name], declaration{at: at[1]})
	}
	for _, at := range functions.FindAllStringSubmatchIndex(src, -1) {
		name := src[at[2]:at[3]]
		m.declared[name] = append(m.declared[name], declaration{at: at[0], function: true})
	}
	for _, at := range takesOut.FindAllStringSubmatchIndex(src, -1) {
		for _, n := range names(src[at[2]:at[3]], ":") {
			m.declared[n.name] = append(m.declared[n.name], declaration{at: at[1], property: n.from})
		}
	}
	for _, found := range imports.FindAllStringSubmatch(src, -1) {
		m.imports(found[1], found[2])
	}
	for _, at := range changes.FindAllStringSubmatchIndex(src, -1) {
		name := src[at[2]:at[3]]
		if own[at[2]] || at[2] > 0 && src[at[2]-1] == '.' {
			continue
		}
		m.changed[name] = append(m.changed[name], change{parts.FindAllString(src[at[4]:at[5]], -1), at[6] >= 0})
	}
	for _, found := range assigns.FindAllStringSubmatch(src, -1) {
		m.changed[found[1]] = append(m.changed[found[1]], change{path: []string{"..."}})
	}
	return m
}

// names reads a list of names in braces, each of which may stand for another one.
func names(list, as string) (out []binding) {
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimPrefix(strings.TrimSpace(entry), "type ")
		if as == ":" {
			entry, _, _ = strings.Cut(entry, "=")
		}
		from, name, renamed := strings.Cut(entry, as)
		if !renamed {
			name = from
		}
		if from, name = strings.TrimSpace(from), strings.TrimSpace(name); name != "" {
			out = append(out, binding{from, name})
		}
	}
	return out
}

// imports reads what an import statement names.
func (m *module) imports(clause, from string) {
	if open := strings.IndexByte(clause, '{'); open >= 0 {
		within, _, _ := strings.Cut(clause[open+1:], "}")
		for _, n := range names(within, " as ") {
			m.imported[n.name] = binding{from, n.from}
		}
		clause = clause[:open]
	}
	for entry := range strings.SplitSeq(clause, ",") {
		if entry = strings.TrimSpace(entry); strings.HasPrefix(entry, "*") {
			if name := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(entry[1:]), "as")); name != "" {
				m.imported[name] = binding{from, "*"}
			}
		} else if entry != "" {
			m.imported[entry] = binding{from, "default"}
		}
	}
}

// withoutComments is a program whose comments are blanks.
func withoutComments(src string) string {
	out := []byte(src)
	p := reader{src: src}
	last := byte(0)
	for p.at < len(src) {
		start := p.at
		p.space()
		for i := start; i < p.at; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
		if p.at >= len(src) {
			break
		}
		switch c := src[p.at]; {
		case c == '"' || c == '\'' || c == '`':
			p.text()
			last = c
		case c == '/' && (last == 0 || strings.IndexByte("(,=:[!&|?{};", last) >= 0):
			p.pattern()
			last = c
		default:
			last = c
			p.at++
		}
	}
	return string(out)
}

// named is the value of a name.
func (m *module) named(name string, depth int) any {
	if m == nil || m.values == nil || m.reading[name] || depth > deepest || !m.step(1) {
		return Computed{}
	}
	if v, ok := m.values[name]; ok {
		return v
	}
	m.reading[name] = true
	v := m.find(name, depth)
	delete(m.reading, name)
	if v == nil {
		v = Computed{} // it is declared without a value, and gets one elsewhere
	}
	for _, c := range m.changed[name] {
		v = m.apply(v, c.path, c.adds)
	}
	m.values[name] = v
	return v
}

func (m *module) find(name string, depth int) any {
	var v any
	for i, d := range m.declared[name] {
		r := reader{src: m.src, at: d.at, of: m}
		var x any
		if d.function {
			x = r.primary(depth + 1)
		} else {
			x = r.value(depth + 1)
		}
		if d.property != "" {
			x = property(x, d.property)
		}
		if v = m.one(v, x); i == 0 {
			v = x
		}
	}
	if len(m.declared[name]) > 0 {
		return v
	}
	if b, ok := m.imported[name]; ok {
		return m.of(b.from, b.name)
	}
	return Computed{}
}

// of is what another file exports under a name.
func (m *module) of(from, name string) any {
	other := m.resolve(from)
	if other == nil {
		return Computed{}
	}
	if name == "*" {
		if all, ok := other.exported("default"); ok {
			return all
		}
		return Computed{}
	}
	v, ok := other.exported(name)
	if !ok {
		return Computed{}
	}
	return v
}

// resolve opens a file by the path that a module imports it by; nil if it is not a file of the repository.
func (m *module) resolve(from string) *module {
	if m.read == nil || !strings.HasPrefix(from, "./") && !strings.HasPrefix(from, "../") {
		return nil
	}
	base := path.Join(path.Dir(m.file), from)
	stem := strings.TrimSuffix(base, path.Ext(base))
	candidates := []string{base}
	for _, ext := range []string{".ts", ".mts", ".js", ".mjs", ".cjs", ".cts", ".json"} {
		candidates = append(candidates, base+ext, path.Join(base, "index"+ext))
		if strings.HasSuffix(path.Ext(base), "js") { // TypeScript imports files by the names that they are compiled to
			candidates = append(candidates, stem+ext)
		}
	}
	for _, file := range candidates {
		if other := m.modules[file]; other != nil {
			return other
		}
		if path.Ext(file) == "" || len(m.modules) >= maxModules {
			continue
		}
		if raw, err := m.read(file); err == nil {
			return m.program.open(file, string(raw))
		}
	}
	return nil
}

// exported is what a file exports under a name; false if that is not found.
func (m *module) exported(name string) (any, bool) {
	key := "export " + name
	if v, ok := m.values[key]; ok {
		return v, true
	}
	if m.reading[key] || !m.step(1) {
		return nil, false
	}
	m.reading[key] = true
	defer delete(m.reading, key)
	v, ok := m.export(name)
	if ok {
		m.values[key] = v
	}
	return v, ok
}

func (m *module) export(name string) (any, bool) {
	if path.Ext(m.file) == ".json" {
		var v any
		if json.Unmarshal([]byte(m.src), &v) != nil {
			return nil, false
		}
		if name != "default" {
			return property(v, name), true
		}
		return v, true
	}
	for _, found := range exports.FindAllStringSubmatch(m.src, -1) {
		for _, n := range names(found[1], " as ") {
			switch {
			case n.name != name:
			case found[2] != "":
				return m.of(found[2], n.from), true
			default:
				return m.named(n.from, 0), true
			}
		}
	}
	if name != "default" && len(m.declared[name]) > 0 {
		return m.named(name, 0), true
	}
	if at := isDefault.FindAllStringIndex(m.src, 2); len(at) > 0 {
		var v any
		for i, x := range at {
			r := reader{src: m.src, at: x[1], of: m}
			if one := r.value(0); i == 0 {
				v = one
			} else {
				v = m.one(v, one)
			}
		}
		for _, c := range m.changed["module"] {
			if len(c.path) > 1 {
				v = m.apply(v, c.path[1:], c.adds)
			}
		}
		if name == "default" {
			return v, true
		}
		if all, ok := v.(map[string]any); ok {
			return property(all, name), true
		}
	}
	for _, found := range passesOn.FindAllStringSubmatch(m.src, -1) {
		if other := m.resolve(found[1]); other != nil && name != "default" {
			if v, ok := other.exported(name); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// apply changes a value as a statement elsewhere does: what it is there is not known.
func (m *module) apply(v any, at []string, adds bool) any {
	switch v := v.(type) {
	case []any:
		if len(at) == 0 && adds {
			return append(slices.Clone(v), Computed{})
		}
		if len(at) > 0 {
			for i := range v {
				if at[0] == itoa(i) {
					out := slices.Clone(v)
					out[i] = m.apply(v[i], at[1:], adds)
					return out
				}
			}
		}
	case map[string]any:
		if len(at) == 0 {
			break
		}
		out := maps.Clone(v)
		if at[0] == "..." {
			m.spread(out, Computed{})
			return out
		}
		if out[at[0]] == nil && len(at) > 1 {
			out[at[0]] = Computed{}
			return out
		}
		out[at[0]] = m.apply(v[at[0]], at[1:], adds)
		return out
	}
	return Computed{}
}
