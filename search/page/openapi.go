package page

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"docent/formats"
)

// Bounds of what is read of a document that describes an API.
const (
	maxSchemas = 200_000 // each as often as it is referred to
	maxFields  = 300     // of one table
)

// IsData tells by its name a file that may describe an API.
func IsData(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".json", ".yaml", ".yml":
		return true
	}
	return false
}

// describesAPI is what every document that describes an API has, with its version.
var describesAPI = regexp.MustCompile(`(?m)(?:^|[{,\s])["']?(?:openapi|swagger)["']?\s*:\s*["']?[1-9]`)

// apiPage writes an OpenAPI document as a page in Markdown, with a section for each operation. ok is false for anything
// else: it is not for readers.
func apiPage(name string, content []byte) (page []byte, ok bool) {
	if !describesAPI.Match(content) {
		return nil, false
	}
	read := formats.YAML
	if strings.EqualFold(path.Ext(name), ".json") {
		read = formats.JSON
	}
	w := apiWriter{left: maxSchemas}
	if err := read(content, &w.doc); err != nil || w.doc["openapi"] == nil && w.doc["swagger"] == nil {
		return nil, false
	}
	w.write()
	return []byte(w.out.String()), true
}

type apiWriter struct {
	doc  map[string]any
	out  strings.Builder
	left int // schemas that may still be read: one may name itself many times at each of its levels
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func (w *apiWriter) text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return strings.TrimSpace(s)
}

// resolve follows references within the document.
func (w *apiWriter) resolve(v any) map[string]any {
	m := object(v)
	for range 8 { // a chain may lead back to itself
		ref, ok := m["$ref"].(string)
		if !ok {
			break
		}
		rest, local := strings.CutPrefix(ref, "#/")
		if !local {
			break
		}
		at := any(w.doc)
		for part := range strings.SplitSeq(rest, "/") {
			at = object(at)[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
		m = object(at)
	}
	return m
}

var (
	headingMark = regexp.MustCompile(`(?m)^[ \t]{0,3}#{1,6}[ \t]`)
	templates   = strings.NewReplacer("{{", `\{{`, "{%", `\{%`)
)

// prose is a description, which is Markdown: its headings begin no sections beside those of the operations.
func prose(s string) string {
	return templates.Replace(headingMark.ReplaceAllString(strings.TrimSpace(s), "##### "))
}

// cell is a description in a cell of a table.
func cell(s string) string {
	return templates.Replace(strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`))
}

func (w *apiWriter) paragraph(s string) {
	if s = strings.TrimSpace(s); s != "" {
		w.out.WriteString(s + "\n\n")
	}
}

func (w *apiWriter) table(head string, rows []string) {
	if len(rows) == 0 {
		return
	}
	w.out.WriteString(head + "\n|" + strings.Repeat(" --- |", strings.Count(head, "|")-1) + "\n")
	for _, row := range rows[:min(len(rows), maxFields)] {
		w.out.WriteString(row + "\n")
	}
	if more := len(rows) - maxFields; more > 0 {
		w.out.WriteString(fmt.Sprintf("\nand %d more.\n", more))
	}
	w.out.WriteString("\n")
}

// An operation is one method of one path.
type operation struct {
	call string // METHOD /path
	op   map[string]any
	item map[string]any
}

// notPublic are the marks of operations that are in no documentation: of Mintlify and of Redocly.
var notPublic = []string{"x-excluded", "x-hidden", "x-internal"}

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

func (w *apiWriter) write() {
	info := object(w.doc["info"])
	w.out.WriteString("---\ntitle: " + strconv.Quote(strings.Join(strings.Fields(w.text(info, "title")), " ")) + "\n---\n")
	w.paragraph(prose(w.text(info, "description")))
	var servers []string
	list, _ := w.doc["servers"].([]any)
	for _, s := range list {
		if address := w.text(object(s), "url"); address != "" {
			servers = append(servers, "`"+address+"`")
		}
	}
	if host := w.text(w.doc, "host"); host != "" {
		servers = append(servers, "`"+host+w.text(w.doc, "basePath")+"`")
	}
	if len(servers) > 0 {
		w.paragraph("Servers: " + strings.Join(servers, ", "))
	}
	// By their first tag, in the order in which the document describes the tags.
	byTag := make(map[string][]operation)
	var order []string
	about := make(map[string]string)
	tags, _ := w.doc["tags"].([]any)
	for _, t := range tags {
		name := w.text(object(t), "name")
		order, about[name] = append(order, name), w.text(object(t), "description")
	}
	for _, kind := range []string{"paths", "webhooks"} {
		items := object(w.doc[kind])
		for _, name := range slices.Sorted(maps.Keys(items)) {
			item := w.resolve(items[name])
			for _, method := range methods {
				op := object(item[method])
				hidden := func(key string) bool { return op[key] == true || item[key] == true }
				if op == nil || slices.ContainsFunc(notPublic, hidden) {
					continue
				}
				call := strings.ToUpper(method) + " " + strings.Join(strings.Fields(name), " ")
				tag := ""
				if list, ok := op["tags"].([]any); ok && len(list) > 0 {
					tag = fmt.Sprint(list[0])
				}
				if _, known := byTag[tag]; !known && !slices.Contains(order, tag) {
					order = append(order, tag)
				}
				byTag[tag] = append(byTag[tag], operation{call, op, item})
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { // those without a tag first: no heading ends their section
		return len(a[:min(1, len(a))]) - len(b[:min(1, len(b))])
	})
	for _, tag := range slices.Compact(order) {
		marks := "##"
		if tag != "" && len(byTag[tag]) > 0 {
			w.out.WriteString("## " + cell(tag) + "\n\n")
			w.paragraph(prose(about[tag]))
			marks = "###"
		}
		for _, o := range byTag[tag] {
			w.operation(marks, o)
		}
	}
}

var anchorID = regexp.MustCompile(`^[A-Za-z0-9_.:/-]+$`)

func (w *apiWriter) operation(marks string, o operation) {
	heading := o.call
	summary := strings.Join(strings.Fields(w.text(o.op, "summary")), " ")
	if summary != "" {
		heading += ": " + summary
	}
	w.out.WriteString(marks + " " + templates.Replace(heading))
	if id := w.text(o.op, "operationId"); anchorID.MatchString(id) {
		w.out.WriteString(" {#" + id + "}")
	}
	w.out.WriteString("\n\n")
	if o.op["deprecated"] == true {
		w.paragraph("**Deprecated.**")
	}
	w.paragraph(prose(w.text(o.op, "description")))
	var rows []string
	var fields []any // of Swagger 2, whose body is a parameter
	for _, list := range []any{o.item["parameters"], o.op["parameters"]} {
		params, _ := list.([]any)
		for _, p := range params {
			p := w.resolve(p)
			if in := w.text(p, "in"); in == "body" {
				fields = append(fields, p["schema"])
				continue
			}
			schema := p
			if s := w.resolve(p["schema"]); s != nil {
				schema = s
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s | %s |", cell(w.text(p, "name")), cell(w.text(p, "in")),
				w.typeOf(schema), yes(p["required"]), w.about(p, schema)))
		}
	}
	if len(rows) > 0 {
		w.paragraph("Parameters:")
		w.table("| Name | In | Type | Required | Description |", rows)
	}
	body := w.resolve(o.op["requestBody"])
	w.paragraph(prose(w.text(body, "description")))
	content := object(body["content"])
	for _, media := range slices.Sorted(maps.Keys(content)) {
		fields = append(fields, object(content[media])["schema"])
	}
	rows = nil
	for _, schema := range fields {
		for _, row := range w.fields(schema, "", 0) {
			if !slices.Contains(rows, row) { // the same in several formats
				rows = append(rows, row)
			}
		}
	}
	if len(rows) > 0 {
		w.paragraph("Body:")
		w.table("| Field | Type | Required | Description |", rows)
	}
	rows = nil
	responses := object(o.op["responses"])
	for _, code := range slices.Sorted(maps.Keys(responses)) {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", cell(code), cell(w.text(w.resolve(responses[code]), "description"))))
	}
	if len(rows) > 0 {
		w.paragraph("Responses:")
		w.table("| Status | Description |", rows)
	}
}

func yes(required any) string {
	if required == true {
		return "yes"
	}
	return "no"
}

// typeOf names the type of a schema's values.
func (w *apiWriter) typeOf(schema map[string]any) string {
	switch t := schema["type"].(type) {
	case string:
		if items := w.resolve(schema["items"]); t == "array" && w.text(items, "type") != "" {
			return "array of " + cell(w.text(items, "type"))
		}
		return cell(t)
	case []any:
		var names []string
		for _, x := range t {
			names = append(names, cell(fmt.Sprint(x)))
		}
		return strings.Join(names, " or ")
	}
	return ""
}

// about describes a value, with what it may be.
func (w *apiWriter) about(m, schema map[string]any) string {
	out := cell(w.text(m, "description"))
	if out == "" {
		out = cell(w.text(schema, "description"))
	}
	add := func(s string) {
		if out != "" && !strings.HasSuffix(out, ".") {
			out += "."
		}
		out = strings.TrimSpace(out + " " + s)
	}
	if values, ok := schema["enum"].([]any); ok && len(values) > 0 {
		names := make([]string, 0, len(values))
		for _, v := range values[:min(len(values), maxFields)] {
			names = append(names, "`"+cell(fmt.Sprint(v))+"`")
		}
		add("One of " + strings.Join(names, ", ") + ".")
	}
	switch v := schema["default"].(type) {
	case string, bool, int, int64, uint64, float64:
		add("Default: `" + cell(fmt.Sprint(v)) + "`.")
	}
	return out
}

// fields are the rows of a schema's values, those of objects within it by their whole names.
func (w *apiWriter) fields(v any, above string, depth int) (rows []string) {
	if w.left--; depth > 4 || w.left < 0 {
		return nil
	}
	schema := w.resolve(v)
	required, _ := schema["required"].([]any)
	properties := object(schema["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := w.resolve(properties[name])
		full := above + name
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", cell(full), w.typeOf(p),
			yes(slices.Contains(required, any(name))), w.about(p, p)))
		rows = append(rows, w.fields(p, full+".", depth+1)...)
	}
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		list, _ := schema[key].([]any)
		for _, v := range list {
			rows = append(rows, w.fields(v, above, depth+1)...)
		}
	}
	if items, ok := schema["items"]; ok {
		rows = append(rows, w.fields(items, above, depth+1)...)
	}
	return rows
}

// OperationOf is the operation that a section of such a page describes; empty where it describes none.
func OperationOf(heading string) string {
	call, _, _ := strings.Cut(heading, ": ")
	method, name, ok := strings.Cut(call, " ")
	if !ok || name == "" || !slices.Contains(methods, strings.ToLower(method)) {
		return ""
	}
	return strings.ToUpper(method) + " " + name
}

// rendered is the operation that a page of the site renders, by its front matter: "GET /pets", "api.yaml GET /pets" or
// "GET https://example.com/pets".
func rendered(said string) string {
	words := strings.Fields(said)
	for i := 0; i+1 < len(words); i++ {
		if !slices.Contains(methods, strings.ToLower(words[i])) {
			continue
		}
		name := words[i+1]
		if _, rest, ok := strings.Cut(name, "://"); ok {
			if at := strings.IndexByte(rest, '/'); at >= 0 {
				name = rest[at:]
			}
		}
		return strings.ToUpper(words[i]) + " " + name
	}
	return ""
}

// DescribesByName tells a document that describes an API by its name.
func DescribesByName(p string) bool {
	base := strings.ToLower(path.Base(p))
	return strings.Contains(base, "openapi") || strings.Contains(base, "swagger")
}
