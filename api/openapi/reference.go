package openapi

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
)

// A Reference is the document as people read it: its operations by their tags, and its schemas, in the order in which
// they are written. What browsers and caches ask by themselves is left out, and an operation with two addresses
// stands there once.
type Reference struct {
	Title, Version, Summary, Description string

	Keys      []Key
	Groups    []Group
	Responses []Response // that operations share
	Schemas   []Schema
}

// A Key is a way in which callers say who they are.
type Key struct{ Name, Description string }

// A Group is the operations of one tag.
type Group struct {
	Name, Description string
	Operations        []Operation
}

// An Operation is one thing that callers can ask for.
type Operation struct {
	ID, Method, Path, Summary, Description string

	Also       string // an earlier address that is served as well
	Deprecated bool
	Keys       []string // names of the keys of which it needs one
	Open       bool     // a key may be left out, or is not looked at
	Parameters []Parameter
	Body       *Content
	Responses  []Response
}

// A Parameter is a value in the path, the query or the head of a request, or in the head of a response.
type Parameter struct {
	Name, In, Description, Example string

	Required bool
	Type     Type
}

// A Response is what one status says.
type Response struct {
	Status, Description string

	Name    string // of the component, if operations share it
	Headers []Parameter
	Content []Content
}

// Content is a body in one form.
type Content struct {
	Kind     string // its media type
	Type     Type
	Events   string // the schema of each event, if it is a stream
	Examples []Example
}

// An Example is a body as it is sent.
type Example struct{ Name, Summary, Text string }

// A Schema is a named type.
type Schema struct {
	Name, Description, Example string
	Type                       Type
}

// A Type is what a value may be.
type Type struct {
	Words   string  // before the schema, or all there is: "array of", "string", "integer, 1 to 50"
	Ref     string  // the schema that it is, or that its items are
	After   string  // after the schema: "or null"
	Limits  string  // what is allowed further
	Fields  []Field // of an object
	Choices []Type  // of which it is one
	All     []Type  // all of which it is
}

// A Field is a member of an object.
type Field struct {
	Name, Description string

	Required bool
	Type     Type
}

// Read reads the document, once.
var Read = sync.OnceValue(func() Reference {
	var root yaml.Node
	if err := yaml.Unmarshal(YAML, &root); err != nil {
		panic(fmt.Sprintf("openapi.yaml, which is a part of this program, is not YAML: %v", err)) // a test reads it
	}
	d := document{root: root.Content[0]}
	info := d.in(d.root, "info")
	r := Reference{Title: d.text(info, "title"), Version: d.text(info, "version"), Summary: d.text(info, "summary"),
		Description: d.text(info, "description")}
	for name, scheme := range d.pairs(d.in(d.root, "components", "securitySchemes")) {
		r.Keys = append(r.Keys, Key{name, d.text(scheme, "description")})
	}
	for name, response := range d.pairs(d.in(d.root, "components", "responses")) {
		shared := d.response("", response)
		shared.Name = name
		r.Responses = append(r.Responses, shared)
	}
	for name, schema := range d.pairs(d.in(d.root, "components", "schemas")) {
		s := Schema{Name: name, Description: d.text(schema, "description"), Type: d.kind(schema)}
		if examples := d.in(schema, "examples"); examples != nil && len(examples.Content) > 0 {
			s.Example = d.example(examples.Content[0])
		}
		r.Schemas = append(r.Schemas, s)
	}
	for _, tag := range d.list(d.root, "tags") {
		g := Group{Name: d.text(tag, "name"), Description: d.text(tag, "description")}
		if g.Operations = d.operations(g.Name); len(g.Operations) > 0 { // what is sent to others has none
			r.Groups = append(r.Groups, g)
		}
	}
	return r
})

// A document is read node by node, since only they have an order.
type document struct{ root *yaml.Node }

// whole follows aliases and references to what is meant.
func (d document) whole(n *yaml.Node) *yaml.Node {
	for n != nil {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
			continue
		}
		ref := d.ref(n)
		if ref == "" {
			return n
		}
		n = d.in(d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return nil
}

// ref is the reference that a node is, if it is one.
func (d document) ref(n *yaml.Node) string {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "$ref" {
			return n.Content[i+1].Value
		}
	}
	return ""
}

// pairs yields the members of a mapping, with those that it takes over from another one and does not replace.
func (d document) pairs(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		n := d.whole(n)
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		own := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			own[n.Content[i].Value] = true
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value != "<<" {
				if !yield(n.Content[i].Value, n.Content[i+1]) {
					return
				}
				continue
			}
			for name, value := range d.pairs(n.Content[i+1]) {
				if !own[name] && !yield(name, value) {
					return
				}
			}
		}
	}
}

// in is a member of a member, as it is written there; nil if there is none.
func (d document) in(n *yaml.Node, names ...string) *yaml.Node {
	for _, name := range names {
		found := (*yaml.Node)(nil)
		for key, value := range d.pairs(n) {
			if key == name {
				found = value
			}
		}
		if n = found; n == nil {
			return nil
		}
	}
	return n
}

func (d document) list(n *yaml.Node, names ...string) []*yaml.Node {
	if n = d.whole(d.in(n, names...)); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

func (d document) text(n *yaml.Node, names ...string) string {
	if n = d.whole(d.in(n, names...)); n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return strings.TrimSpace(n.Value)
}

// example is a value as it is sent: text as it is, and anything else as JSON.
func (d document) example(n *yaml.Node) string {
	n = d.whole(n)
	if n == nil {
		return ""
	}
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return d.json(n, "")
}

// json writes a value in the order in which it is written.
func (d document) json(n *yaml.Node, indent string) string {
	n = d.whole(n)
	deeper := indent + "  "
	var parts []string
	around := func(before, after string) string {
		if line := before + strings.Join(parts, ", ") + after; len(line) <= 80 && !strings.Contains(line, "\n") {
			return line
		}
		return before + "\n" + deeper + strings.Join(parts, ",\n"+deeper) + "\n" + indent + after
	}
	switch n.Kind {
	case yaml.MappingNode:
		for name, value := range d.pairs(n) {
			key, _ := json.Marshal(name)
			parts = append(parts, string(key)+": "+d.json(value, deeper))
		}
		return around("{", "}")
	case yaml.SequenceNode:
		for _, value := range n.Content {
			parts = append(parts, d.json(value, deeper))
		}
		return around("[", "]")
	}
	var v any
	if err := n.Decode(&v); err != nil {
		v = n.Value
	}
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil {
		return n.Value
	}
	return strings.TrimSpace(b.String())
}

// methods are those of operations that people read about, in the order in which they stand at an address.
var methods = []string{"post", "get", "put", "patch", "delete"}

// prefix stands before the addresses of readers' operations; earlier clients leave it out.
const prefix = "/discovery"

func (d document) operations(tag string) []Operation {
	var list []Operation
	paths := d.in(d.root, "paths")
	for path, item := range d.pairs(paths) {
		if d.in(paths, prefix+path) != nil {
			continue // it stands under its full address
		}
		for _, method := range methods {
			o := d.in(item, method)
			if o == nil || !slices.ContainsFunc(d.list(o, "tags"), func(n *yaml.Node) bool { return n.Value == tag }) {
				continue
			}
			op := Operation{ID: d.text(o, "operationId"), Method: strings.ToUpper(method), Path: path,
				Summary: d.text(o, "summary"), Description: d.text(o, "description"), Deprecated: d.text(o, "deprecated") == "true"}
			if short, ok := strings.CutPrefix(path, prefix); ok && d.in(paths, short, method) != nil {
				op.Also = short
			}
			alternatives := d.list(o, "security")
			op.Open = len(alternatives) == 0
			for _, a := range alternatives {
				keys := 0
				for name := range d.pairs(a) {
					keys++
					op.Keys = append(op.Keys, name)
				}
				op.Open = op.Open || keys == 0
			}
			for _, p := range slices.Concat(d.list(item, "parameters"), d.list(o, "parameters")) {
				op.Parameters = append(op.Parameters, d.parameter(p, d.text(p, "name")))
			}
			if body := d.in(o, "requestBody"); body != nil {
				if contents := d.contents(body); len(contents) > 0 {
					op.Body = &contents[0]
				}
			}
			for status, response := range d.pairs(d.in(o, "responses")) {
				op.Responses = append(op.Responses, d.response(status, response))
			}
			list = append(list, op)
		}
	}
	return list
}

func (d document) response(status string, n *yaml.Node) Response {
	r := Response{Status: status, Description: d.text(n, "description"), Content: d.contents(n)}
	if ref := d.ref(n); ref != "" {
		r.Name = ref[strings.LastIndexByte(ref, '/')+1:]
	}
	for name, header := range d.pairs(d.in(n, "headers")) {
		r.Headers = append(r.Headers, d.parameter(header, name))
	}
	return r
}

func (d document) parameter(n *yaml.Node, name string) Parameter {
	return Parameter{Name: name, In: d.text(n, "in"), Description: d.text(n, "description"),
		Required: d.text(n, "required") == "true", Type: d.kind(d.in(n, "schema")), Example: d.text(n, "example")}
}

func (d document) contents(n *yaml.Node) []Content {
	var list []Content
	for kind, content := range d.pairs(d.in(n, "content")) {
		schema := d.in(content, "schema")
		c := Content{Kind: kind, Type: d.kind(schema)}
		if events := d.ref(d.in(content, "x-itemSchema")); events != "" {
			c.Events = events[strings.LastIndexByte(events, '/')+1:]
		}
		for name, example := range d.pairs(d.in(content, "examples")) {
			c.Examples = append(c.Examples, Example{name, d.text(example, "summary"), d.example(d.in(example, "value"))})
		}
		if example := d.in(content, "example"); example != nil {
			c.Examples = append(c.Examples, Example{Text: d.example(example)})
		}
		if examples := d.list(schema, "examples"); len(c.Examples) == 0 && len(examples) > 0 {
			c.Examples = append(c.Examples, Example{Text: d.example(examples[0])})
		}
		list = append(list, c)
	}
	return list
}

// kind is what a schema allows. A schema of its own name is named, and described in its own place.
func (d document) kind(n *yaml.Node) Type {
	if ref := d.ref(n); ref != "" {
		return Type{Ref: ref[strings.LastIndexByte(ref, '/')+1:]}
	}
	n = d.whole(n)
	var t Type
	if items := d.in(n, "items"); items != nil {
		of := d.kind(items)
		t = Type{Words: strings.TrimSpace("array of " + of.Words), Ref: of.Ref, After: of.After, Fields: of.Fields}
	}
	t.Limits = d.limits(n)
	switch types := d.list(n, "type"); {
	case len(types) > 0: // array or null, string or null
		var names []string
		for _, name := range types {
			if name.Value != "array" || t.Words == "" {
				names = append(names, name.Value)
			}
		}
		switch {
		case t.Words == "":
			t.Words = strings.Join(names, " or ")
		default:
			t.After = strings.TrimSpace(t.After + " or " + strings.Join(names, " or "))
		}
	case t.Words == "":
		t.Words = d.text(n, "type")
	}
	if value := d.in(n, "const"); value != nil {
		t.Words, t.Limits = d.json(value, ""), ""
	}
	for name, value := range d.pairs(d.in(n, "properties")) {
		if d.whole(value).Kind != yaml.MappingNode {
			continue // a field that may not be there
		}
		t.Fields = append(t.Fields, Field{Name: name, Description: d.text(value, "description"), Type: d.kind(value),
			Required: slices.ContainsFunc(d.list(n, "required"), func(r *yaml.Node) bool { return r.Value == name })})
	}
	for _, choice := range slices.Concat(d.list(n, "oneOf"), d.list(n, "anyOf")) {
		t.Choices = append(t.Choices, d.kind(choice))
	}
	for _, part := range d.list(n, "allOf") {
		t.All = append(t.All, d.kind(part))
	}
	return t
}

// limits says what a value must be beside its type.
func (d document) limits(n *yaml.Node) string {
	var parts []string
	add := func(format string, keyword string) {
		if v := d.in(n, keyword); v != nil {
			parts = append(parts, fmt.Sprintf(format, d.json(v, "")))
		}
	}
	var values []string
	for _, v := range d.list(n, "enum") {
		values = append(values, d.json(v, ""))
	}
	if len(values) > 0 {
		parts = append(parts, strings.Join(values, ", "))
	}
	add("format %s", "format")
	between := func(low, high, unit string) {
		switch l, h := d.text(n, low), d.text(n, high); {
		case l != "" && h != "":
			parts = append(parts, l+" to "+h+unit)
		case l != "":
			if l == "1" {
				unit = strings.TrimSuffix(unit, "s")
			}
			parts = append(parts, "at least "+l+unit)
		case h != "":
			parts = append(parts, "at most "+h+unit)
		}
	}
	between("minimum", "maximum", "")
	between("minLength", "maxLength", " characters")
	between("minItems", "maxItems", " items")
	add("of the form %s", "pattern")
	add("default %s", "default")
	return strings.Join(parts, "; ")
}
