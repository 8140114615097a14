package page

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"docent/internal/brief"
	"docent/internal/formats"
)

// Bounds of what is read of a document that describes an API.
const (
	maxRows       = 200_000 // of all tables: each schema counts as often as it is referred to, with each of its fields
	maxFields     = 300     // of one table
	maxOperations = 10_000
	maxAPIBytes   = 16 << 20 // of the rows, and of the pages: beyond them no further operation has a page
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

// apiPages writes an OpenAPI document as pages in Markdown: one for the whole, with what its operations share, and one
// for each operation. There are none for anything else: it is not for readers.
func apiPages(name string, content []byte) []Text {
	w := apiWriter{left: maxRows, bytes: maxAPIBytes, examples: maxExamples}
	return w.pages(name, content)
}

func (w *apiWriter) pages(name string, content []byte) []Text {
	if !describesAPI.Match(content) {
		return nil
	}
	read := formats.YAML
	if strings.EqualFold(path.Ext(name), ".json") {
		read = formats.JSON
	}
	if err := read(content, &w.doc); err != nil || w.doc["openapi"] == nil && w.doc["swagger"] == nil {
		return nil
	}
	operations, about := w.operations()
	w.overview(operations, about)
	pages := []Text{{Content: w.taken()}}
	names := make(map[string]int)
	for _, o := range operations {
		if w.written > maxAPIBytes {
			break
		}
		w.operation(o)
		pages = append(pages, Text{Path: name + "/" + o.fileName(w.text(o.op, "operationId"), names), Renders: o.call,
			Content: w.taken()})
	}
	return pages
}

type apiWriter struct {
	doc  map[string]any
	out  strings.Builder
	left int // rows that may still be made: a schema may name itself many times at each of its levels
	// bytes that rows may still have, and those of the pages so far
	bytes, written int
	// values of examples that may still be made, for the same reason
	examples int
}

// taken is what was written since it was called before.
func (w *apiWriter) taken() []byte {
	text := []byte(w.out.String())
	w.out.Reset()
	w.written += len(text)
	return text
}

// front begins a page.
func (w *apiWriter) front(title string, tags ...string) {
	w.out.WriteString("---\ntitle: " + strconv.Quote(brief.Line(title)) + "\n")
	for i, tag := range tags {
		if i == 0 {
			w.out.WriteString("tags:\n")
		}
		w.out.WriteString("  - " + strconv.Quote(brief.Line(tag)) + "\n")
	}
	w.out.WriteString("---\n\n")
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
func cellText(s string) string {
	return templates.Replace(strings.ReplaceAll(brief.Line(s), "|", `\|`))
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

// row adds a row, and reports whether there may be another one.
func (w *apiWriter) row(rows *[]string, format string, args ...any) bool {
	if w.left <= 0 || w.bytes <= 0 {
		return false
	}
	row := fmt.Sprintf(format, args...)
	w.left--
	w.bytes -= len(row)
	*rows = append(*rows, row)
	return true
}

// An operation is one method of one path.
type operation struct {
	call string // METHOD /path
	tags []string
	op   map[string]any
	item map[string]any
}

// title names an operation for readers.
func (w *apiWriter) title(o operation) string {
	if summary := brief.Line(w.text(o.op, "summary")); summary != "" {
		return o.call + ": " + summary
	}
	return o.call
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// fileName names an operation's page within its file: by its id if it has one, otherwise by its method and path.
// taken has what names are taken, and which number to try next for each.
func (o operation) fileName(id string, taken map[string]int) string {
	name := strings.Trim(notInNames.ReplaceAllString(id, "-"), "-.")
	if name == "" {
		name = strings.ToLower(strings.Trim(notInNames.ReplaceAllString(o.call, "-"), "-."))
	}
	name = name[:min(len(name), 150)]
	key := strings.ToLower(name)
	unique, next := name, max(taken[key], 2)
	for taken[strings.ToLower(unique)] > 0 {
		unique = fmt.Sprintf("%s-%d", name, next)
		next++
	}
	taken[key] = next
	if key = strings.ToLower(unique); taken[key] == 0 {
		taken[key] = 2
	}
	return unique
}

// notPublic are the marks of operations that are in no documentation: of Mintlify and of Redocly.
var notPublic = []string{"x-excluded", "x-hidden", "x-internal"}

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// operations are the public ones: by their first tag, in the order in which the document describes the tags, those
// without a tag first.
func (w *apiWriter) operations() (list []operation, about []apiTag) {
	byTag := make(map[string][]operation)
	named := make(map[string]bool)
	tags, _ := w.doc["tags"].([]any)
	for _, t := range tags {
		name := w.text(object(t), "name")
		named[name] = true
		about = append(about, apiTag{name, w.text(object(t), "description")})
	}
	found := 0
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
				o := operation{strings.ToUpper(method) + " " + brief.Line(name), nil, op, item}
				if found++; found > maxOperations {
					break
				}
				said, _ := op["tags"].([]any)
				for _, t := range said {
					o.tags = append(o.tags, fmt.Sprint(t))
				}
				tag := strings.Join(o.tags[:min(1, len(o.tags))], "")
				if !named[tag] {
					named[tag] = true
					about = append(about, apiTag{name: tag})
				}
				byTag[tag] = append(byTag[tag], o)
			}
		}
	}
	slices.SortStableFunc(about, func(a, b apiTag) int { return min(1, len(a.name)) - min(1, len(b.name)) })
	about = slices.CompactFunc(about, func(a, b apiTag) bool { return a.name == b.name })
	for _, t := range about {
		list = append(list, byTag[t.name]...)
		delete(byTag, t.name)
	}
	return list, about
}

// An apiTag is a group of operations.
type apiTag struct{ name, about string }

// overview is the page of the whole API: what it is, its address, how callers sign in, and what operations there are.
func (w *apiWriter) overview(operations []operation, about []apiTag) {
	info := object(w.doc["info"])
	w.front(w.text(info, "title"))
	w.paragraph(prose(w.text(info, "description")))
	if servers := w.servers(maxFields); len(servers) > 0 {
		w.paragraph("Servers: `" + strings.Join(servers, "`, `") + "`")
	}
	w.authentication()
	byTag := make(map[string][]operation)
	for _, o := range operations {
		tag := strings.Join(o.tags[:min(1, len(o.tags))], "")
		byTag[tag] = append(byTag[tag], o)
	}
	for _, tag := range about {
		if tag.name != "" {
			w.paragraph("## " + cellText(tag.name))
			w.paragraph(prose(tag.about))
		}
		for _, o := range byTag[tag.name] {
			w.out.WriteString("- " + cellText(w.title(o)) + "\n")
		}
		w.out.WriteString("\n")
	}
}

// servers are the first addresses that operations are called at.
func (w *apiWriter) servers(most int) (list []string) {
	servers, _ := w.doc["servers"].([]any)
	for _, s := range servers {
		if len(list) == most {
			return list
		}
		if address := w.text(object(s), "url"); address != "" {
			list = append(list, address)
		}
	}
	if host := w.text(w.doc, "host"); host != "" { // Swagger 2
		list = append(list, host+w.text(w.doc, "basePath"))
	}
	return list
}

// authentication says how callers of an API sign in.
func (w *apiWriter) authentication() {
	schemes := object(object(w.doc["components"])["securitySchemes"])
	if schemes == nil {
		schemes = object(w.doc["securityDefinitions"]) // Swagger 2
	}
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(schemes)) {
		s := w.resolve(schemes[name])
		how := cellText(strings.TrimSpace(w.text(s, "type") + " " + w.text(s, "scheme")))
		if in := w.text(s, "in"); in != "" {
			how += fmt.Sprintf(", %s `%s`", cellText(in), cellText(w.text(s, "name")))
		}
		w.row(&rows, "| `%s` | %s | %s |", cellText(name), how, cellText(w.text(s, "description")))
	}
	if len(rows) > 0 {
		w.paragraph("## Authentication")
		w.table("| Name | How | Description |", rows)
	}
}

// operation is the page of one operation.
func (w *apiWriter) operation(o operation) {
	w.front(w.title(o), o.tags...)
	if o.op["deprecated"] == true {
		w.paragraph("**Deprecated.**")
	}
	w.paragraph(prose(w.text(o.op, "description")))
	var rows []string
	var fields []any // of Swagger 2, whose body is a parameter
	params := w.parameters(o)
	for _, p := range params {
		if w.text(p, "in") == "body" {
			fields = append(fields, p["schema"])
			continue
		}
		schema := p
		if s := w.resolve(p["schema"]); s != nil {
			schema = s
		}
		if !w.row(&rows, "| `%s` | %s | %s | %s | %s |", cellText(w.text(p, "name")), cellText(w.text(p, "in")), w.typeOf(schema),
			yes(p["required"]), w.about(p, schema)) {
			break
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
	seen := make(map[string]bool)
	for _, schema := range fields {
		for _, row := range w.fields(schema, "", 0) {
			if !seen[row] { // the same in several formats
				seen[row] = true
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
		if !w.row(&rows, "| `%s` | %s |", cellText(code), cellText(w.text(w.resolve(responses[code]), "description"))) {
			break
		}
	}
	if len(rows) > 0 {
		w.paragraph("Responses:")
		w.table("| Status | Description |", rows)
	}
	w.example(o, params, fields)
}

// parameters are those of an operation and of its path.
func (w *apiWriter) parameters(o operation) (list []map[string]any) {
	for _, of := range []any{o.item["parameters"], o.op["parameters"]} {
		params, _ := of.([]any)
		for _, p := range params {
			list = append(list, w.resolve(p))
		}
	}
	return list
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
			return "array of " + cellText(w.text(items, "type"))
		}
		return cellText(t)
	case []any:
		var names []string
		for _, x := range t {
			names = append(names, cellText(fmt.Sprint(x)))
		}
		return strings.Join(names, " or ")
	}
	return ""
}

// about describes a value, with what it may be.
func (w *apiWriter) about(m, schema map[string]any) string {
	out := cellText(w.text(m, "description"))
	if out == "" {
		out = cellText(w.text(schema, "description"))
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
			names = append(names, "`"+cellText(fmt.Sprint(v))+"`")
		}
		add("One of " + strings.Join(names, ", ") + ".")
	}
	switch v := schema["default"].(type) {
	case string, bool, int, int64, uint64, float64:
		add("Default: `" + cellText(fmt.Sprint(v)) + "`.")
	}
	return out
}

// fields are the rows of a schema's values, those of objects within it by their whole names.
func (w *apiWriter) fields(v any, above string, depth int) (rows []string) {
	if w.left--; depth > 4 || w.left < 0 {
		return nil
	}
	schema := w.resolve(v)
	list, _ := schema["required"].([]any)
	required := make(map[string]bool, len(list))
	for _, name := range list {
		if name, ok := name.(string); ok {
			required[name] = true
		}
	}
	properties := object(schema["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := w.resolve(properties[name])
		full := above + name
		if !w.row(&rows, "| `%s` | %s | %s | %s |", cellText(full), w.typeOf(p), yes(required[name]), w.about(p, p)) {
			return rows
		}
		rows = append(rows, w.fields(p, full+".", depth+1)...)
	}
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		list, _ := schema[key].([]any)
		for _, v := range list {
			if w.left < 0 {
				return rows
			}
			rows = append(rows, w.fields(v, above, depth+1)...)
		}
	}
	if items, ok := schema["items"]; ok {
		rows = append(rows, w.fields(items, above, depth+1)...)
	}
	return rows
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
