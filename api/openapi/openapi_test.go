package openapi_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"docent/api/openapi"
	"docent/api/openapi/openapitest"
	"docent/internal/testing/need"
)

// each calls visit with every object of the document and where it stands.
func each(at string, v any, visit func(at string, object map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(at, v)
		for k, e := range v {
			each(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(k), e, visit)
		}
	case []any:
		for i, e := range v {
			each(at+"/"+strconv.Itoa(i), e, visit)
		}
	}
}

func document(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(openapi.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Generators of clients name a function after each operation's id: two of one name are an error there.
func TestEveryOperationHasAnIdOfItsOwn(t *testing.T) {
	seen := map[string]string{}
	for path, item := range document(t)["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			o, ok := op.(map[string]any)
			if !ok {
				continue
			}
			id, _ := o["operationId"].(string)
			operation := strings.ToUpper(method) + " " + path
			if id == "" {
				t.Errorf("%s has no operationId", operation)
			}
			if other, ok := seen[id]; ok {
				t.Errorf("operationId %s is both %s and %s", id, other, operation)
			}
			seen[id] = operation
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d operations were looked at", len(seen))
	}
}

func TestEveryReferenceLeadsSomewhere(t *testing.T) {
	doc := document(t)
	each("#", doc, func(at string, object map[string]any) {
		if ref, ok := object["$ref"].(string); ok {
			if follow(doc, ref) == nil {
				t.Errorf("%s refers to %s, which is not there", at, ref)
			}
		}
		if _, ok := object["<<"]; ok {
			t.Errorf("%s: a merge key was not merged", at)
		}
	})
}

// The description of OpenAPI 3.1 itself (Apache-2.0) finds what YAML lets pass: the rest of a sentence after a comma
// that was not quoted is a property there, which OpenAPI does not know.
func TestTheDocumentIsOpenAPI(t *testing.T) {
	text, err := os.ReadFile("testdata/oas-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	described, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("oas.json", described); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("oas.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document(t)); err != nil {
		t.Error(err)
	}
	broken := document(t)
	broken["paths"].(map[string]any)["/healthz"].(map[string]any)["get"].(map[string]any)["or only others."] = nil
	if schema.Validate(broken) == nil {
		t.Error("a property that OpenAPI does not know is not noticed")
	}
	each("#/components", document(t)["components"], func(at string, object map[string]any) {
		isArray := object["type"] == "array"
		if kinds, ok := object["type"].([]any); ok {
			for _, kind := range kinds {
				isArray = isArray || kind == "array"
			}
		}
		if _, ok := object["items"]; isArray && !ok {
			t.Errorf("%s does not say what its items are", at)
		}
	})
}

// A client's developer copies the examples.
func TestExamplesAreAsTheirSchemasSay(t *testing.T) {
	doc, compile := compiled(t)
	found := 0
	each("#", doc, func(at string, object map[string]any) {
		inSchemas := strings.HasPrefix(at, "#/components/schemas/")
		var examples []any
		schema := at
		if inSchemas {
			examples, _ = object["examples"].([]any)
			if e, ok := object["example"]; ok && object["type"] != "object" {
				examples = append(examples, e)
			}
		} else if _, ok := object["schema"]; ok { // a parameter, a header or the content of a body
			schema += "/schema"
			named, _ := object["examples"].(map[string]any)
			for _, e := range named {
				examples = append(examples, e.(map[string]any)["value"])
			}
			if e, ok := object["example"]; ok {
				examples = append(examples, e)
			}
		}
		for _, e := range examples {
			found++
			if err := compile(schema).Validate(e); err != nil {
				t.Errorf("%s: %v", at, err)
			}
		}
	})
	if found < 60 {
		t.Errorf("only %d examples were looked at", found)
	}
}

// A reader of an operation sees at once what to send, and what comes back.
func TestEveryBodyHasAnExample(t *testing.T) {
	doc := document(t)
	bodies, streams := 0, map[string]bool{}
	hasExample := func(content map[string]any) bool {
		if content["example"] != nil || content["examples"] != nil {
			return true
		}
		schema, _ := content["schema"].(map[string]any)
		for schema["$ref"] != nil {
			schema, _ = follow(doc, schema["$ref"].(string)).(map[string]any)
		}
		return schema["examples"] != nil
	}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			o, ok := op.(map[string]any)
			if !ok {
				continue
			}
			where := strings.ToUpper(method) + " " + path
			for _, name := range []string{"summary", "security", "tags"} {
				if o[name] == nil {
					t.Errorf("%s has no %s", where, name)
				}
			}
			places := map[string]any{}
			if body, ok := o["requestBody"].(map[string]any); ok {
				places["its request"] = body
			}
			for status, response := range o["responses"].(map[string]any) {
				r := response.(map[string]any)
				if ref, ok := r["$ref"].(string); ok {
					r = follow(doc, ref).(map[string]any)
				}
				places[status] = r
			}
			for name, place := range places {
				content, _ := place.(map[string]any)["content"].(map[string]any)
				for kind, c := range content {
					bodies++
					if !hasExample(c.(map[string]any)) {
						t.Errorf("%s: %s has no example of %s", where, name, kind)
					}
					item, _ := c.(map[string]any)["x-itemSchema"].(map[string]any)
					if ref, ok := item["$ref"].(string); ok {
						streams[ref] = true
					} else if kind == "text/event-stream" {
						t.Errorf("%s: %s does not say what its events are", where, name)
					}
				}
			}
		}
	}
	if bodies < 200 || len(streams) < 3 {
		t.Errorf("only %d bodies and %d streams were looked at", bodies, len(streams))
	}
}

// What is not referred to is not a part of the API: a schema, a response or a parameter that was left behind.
func TestEveryComponentIsUsed(t *testing.T) {
	doc := document(t)
	used := map[string]bool{}
	each("#", doc, func(_ string, object map[string]any) {
		if ref, ok := object["$ref"].(string); ok {
			used[ref] = true
		}
		alternatives, _ := object["security"].([]any)
		for _, alternative := range alternatives {
			for name := range alternative.(map[string]any) {
				used["#/components/securitySchemes/"+name] = true
			}
		}
	})
	for kind, components := range doc["components"].(map[string]any) {
		for name := range components.(map[string]any) {
			if at := "#/components/" + kind + "/" + name; !used[at] {
				t.Errorf("nothing refers to %s", at)
			}
		}
	}
}

// The streams that the document shows are streams of the form that it describes.
func TestExamplesOfStreamsAreAsTheirEventsSay(t *testing.T) {
	doc := document(t)
	lines := 0
	each("#/paths", doc["paths"], func(at string, content map[string]any) {
		item, _ := content["x-itemSchema"].(map[string]any)
		if item == nil {
			return
		}
		schema := item["$ref"].(string)
		example, _ := content["example"].(string)
		n, err := openapitest.Document().Events(schema, example)
		if err != nil {
			t.Errorf("%s: %v", at, err)
		}
		lines += n
	})
	if lines < 40 {
		t.Errorf("only %d events were looked at", lines)
	}
}

// compiled returns the document and its schemas by where they stand.
func compiled(t *testing.T) (map[string]any, func(at string) *jsonschema.Schema) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	return doc.(map[string]any), func(at string) *jsonschema.Schema {
		t.Helper()
		schema, err := compiler.Compile("openapi.json" + (&url.URL{Fragment: strings.TrimPrefix(at, "#")}).String())
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
}

// follow finds what a reference leads to, nil if it leads nowhere.
func follow(doc map[string]any, ref string) any {
	var target any = doc
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := target.(map[string]any)
		target = m[name]
	}
	return target
}

// TestTheLinterHasNothingToSay runs Redocly's linter, warnings included, as developers of clients do.
func TestTheLinterHasNothingToSay(t *testing.T) {
	t.Parallel()
	const redocly = "node_modules/.bin/redocly"
	need.Peer(t, "Redocly's linter", "scripts/install-openapi-lint", redocly)
	lint := exec.CommandContext(t.Context(), redocly, "lint", "openapi.yaml", "--config", "redocly.yaml", "--format",
		"stylish")
	lint.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
