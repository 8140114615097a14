package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Bounds of the examples in the pages of an API.
const (
	maxExamples     = 200_000 // values of one document
	maxExampleBytes = 4 << 10 // of one example
	exampleLevels   = 6       // of objects within objects
)

// example shows a call of an operation: the author's own sample if there is one, otherwise a request that follows from
// what is said of the parameters and the body, and the first response that succeeds.
func (w *apiWriter) example(o operation, params []map[string]any, bodies []any) {
	if !strings.HasPrefix(strings.TrimLeft(strings.SplitN(o.call, " ", 2)[1], " "), "/") {
		return // a webhook: nobody calls it
	}
	if !w.sample(o) {
		w.request(o, params, bodies)
	}
	responses := object(o.op["responses"])
	for _, code := range slices.Sorted(maps.Keys(responses)) {
		if !strings.HasPrefix(code, "2") {
			continue
		}
		response := w.resolve(responses[code])
		media, content := jsonOf(object(response["content"]))
		value, ok := w.given(content)
		switch {
		case ok:
		case media != "":
			value = w.value(content["schema"], "writeOnly", 0)
		case response["schema"] != nil: // Swagger 2
			value = w.value(response["schema"], "writeOnly", 0)
		}
		if text, ok := written(value); ok {
			w.fenced("Example response (`"+cellText(code)+"`):", "json", text)
		}
		return
	}
}

// sample writes the author's own sample, in the words of Redocly and of others.
func (w *apiWriter) sample(o operation) bool {
	for _, key := range []string{"x-codeSamples", "x-code-samples"} {
		list, _ := o.op[key].([]any)
		for _, v := range list {
			source := w.text(object(v), "source")
			if source == "" || len(source) > maxExampleBytes {
				continue
			}
			language := notInNames.ReplaceAllString(strings.ToLower(w.text(object(v), "lang")), "")
			if language == "curl" || language == "shell" {
				language = "bash"
			}
			w.fenced("Example:", language, source)
			return true
		}
	}
	return false
}

// request writes a call of an operation as a command.
func (w *apiWriter) request(o operation, params []map[string]any, bodies []any) {
	method, at, _ := strings.Cut(o.call, " ")
	server := ""
	if list := w.servers(1); len(list) > 0 {
		server = strings.TrimRight(list[0], "/")
		if server != "" && !strings.Contains(server, "://") && !strings.HasPrefix(server, "/") {
			server = "https://" + server
		}
	}
	query := url.Values{}
	var headers []string
	for _, p := range params {
		name, in := w.text(p, "name"), w.text(p, "in")
		value, said := w.stated(p)
		text := fmt.Sprint(value)
		switch {
		case in == "path" && said:
			at = strings.ReplaceAll(at, "{"+name+"}", url.PathEscape(text))
		case in == "query" && p["required"] == true:
			if !said {
				text = "<" + name + ">"
			}
			query.Set(name, text)
		case in == "header" && p["required"] == true:
			if !said {
				text = "<" + name + ">"
			}
			headers = append(headers, name+": "+text)
		}
	}
	address := server + at
	if len(query) > 0 {
		address += "?" + strings.NewReplacer("%3C", "<", "%3E", ">").Replace(query.Encode())
	}
	command := "curl"
	if method != "GET" {
		command += " -X " + method
	}
	command += " " + quoted(address)
	for _, h := range headers {
		command += " \\\n  -H " + quoted(h)
	}
	media, content := jsonOf(object(w.resolve(o.op["requestBody"])["content"]))
	value, ok := w.given(content)
	switch {
	case ok:
	case media != "":
		value = w.value(content["schema"], "readOnly", 0)
	case len(bodies) > 0 && object(w.resolve(o.op["requestBody"])["content"]) == nil: // Swagger 2
		media, value = "application/json", w.value(bodies[0], "readOnly", 0)
	}
	if text, ok := written(value); ok {
		command += " \\\n  -H " + quoted("Content-Type: "+media) + " \\\n  -d " + quoted(text)
	}
	if len(command) <= maxExampleBytes {
		w.fenced("Example:", "bash", command)
	}
}

// quoted is a word of a shell's command.
func quoted(s string) string {
	return "'" + strings.ReplaceAll(strings.Join(strings.Split(s, "\r"), ""), "'", `'\''`) + "'"
}

// fenced writes code whatever marks it holds.
func (w *apiWriter) fenced(about, language, code string) {
	fence := "```"
	for strings.Contains(code, fence) {
		fence += "`"
	}
	w.paragraph(about + "\n\n" + fence + language + "\n" + strings.TrimRight(code, "\n") + "\n" + fence)
}

// jsonOf is the first of several forms of a body that is JSON.
func jsonOf(content map[string]any) (media string, m map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if kind, _, _ := strings.Cut(name, ";"); kind == "application/json" || strings.HasSuffix(kind, "+json") {
			return kind, object(content[name])
		}
	}
	return "", nil
}

// given is the example that the author states for a body or a parameter.
func (w *apiWriter) given(m map[string]any) (any, bool) {
	if v, ok := m["example"]; ok {
		return v, true
	}
	examples := object(m["examples"])
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		if v, ok := w.resolve(examples[name])["value"]; ok {
			return v, true
		}
	}
	return nil, false
}

// stated is a value that the author states for a parameter.
func (w *apiWriter) stated(p map[string]any) (any, bool) {
	if v, ok := w.given(p); ok {
		return v, true
	}
	schema := w.resolve(p["schema"])
	if schema == nil {
		schema = p
	}
	return ofSchema(schema)
}

// ofSchema is a value that a schema states.
func ofSchema(schema map[string]any) (any, bool) {
	for _, key := range []string{"example", "const", "default"} {
		if v, ok := schema[key]; ok {
			return v, true
		}
	}
	for _, key := range []string{"examples", "enum"} {
		if list, ok := schema[key].([]any); ok && len(list) > 0 {
			return list[0], true
		}
	}
	return nil, false
}

// ofFormat are values of the formats that the specification names.
var ofFormat = map[string]string{"date": "2026-01-31", "date-time": "2026-01-31T12:00:00Z", "email": "user@example.com",
	"uri": "https://example.com", "url": "https://example.com", "uuid": "123e4567-e89b-12d3-a456-426614174000"}

// value is one that fits a schema, without the fields that bear a mark.
func (w *apiWriter) value(v any, without string, depth int) any {
	if w.examples--; depth > exampleLevels || w.examples < 0 {
		return nil
	}
	schema := w.resolve(v)
	if v, ok := ofSchema(schema); ok {
		return v
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if list, ok := schema[key].([]any); ok && len(list) > 0 {
			return w.value(list[0], without, depth+1)
		}
	}
	kind := w.text(schema, "type")
	if list, ok := schema["type"].([]any); ok && len(list) > 0 {
		kind = fmt.Sprint(list[0])
	}
	switch kind {
	case "string":
		if text, ok := ofFormat[w.text(schema, "format")]; ok {
			return text
		}
		return "string"
	case "integer", "number":
		return 0
	case "boolean":
		return true
	case "array":
		if item := w.value(schema["items"], without, depth+1); item != nil {
			return []any{item}
		}
		return []any{}
	}
	out := make(map[string]any)
	all, _ := schema["allOf"].([]any)
	for _, part := range all {
		maps.Copy(out, object(w.value(part, without, depth+1)))
	}
	for name, p := range object(schema["properties"]) {
		if w.resolve(p)[without] != true {
			out[name] = w.value(p, without, depth+1)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// written is a value as JSON; ok is false if there is none, or too much of it.
func written(value any) (string, bool) {
	if value == nil {
		return "", false
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(value)
	return strings.TrimSpace(text.String()), err == nil && text.Len() <= maxExampleBytes
}
