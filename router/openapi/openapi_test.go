package openapi_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"docent/router/openapi"
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
		for _, e := range v {
			each(at, e, visit)
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
			var target any = doc
			for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				m, _ := target.(map[string]any)
				target = m[name]
			}
			if target == nil {
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
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	found := 0
	each("#/components/schemas", doc.(map[string]any)["components"].(map[string]any)["schemas"],
		func(at string, object map[string]any) {
			examples, _ := object["examples"].([]any)
			if len(examples) == 0 {
				return
			}
			schema, err := compiler.Compile("openapi.json" + at)
			if err != nil {
				t.Error(err)
				return
			}
			for _, e := range examples {
				found++
				if err := schema.Validate(e); err != nil {
					t.Errorf("%s: %v", at, err)
				}
			}
		})
	if found < 10 {
		t.Errorf("only %d examples were looked at", found)
	}
}

// TestTheLinterHasNothingToSay runs Redocly's linter, warnings included, as developers of clients do.
// scripts/install-openapi-lint installs it; without it this says that it is left out.
func TestTheLinterHasNothingToSay(t *testing.T) {
	t.Parallel()
	const redocly = "node_modules/.bin/redocly"
	if _, err := os.Stat(redocly); err != nil {
		t.Skip("the linter is left out: scripts/install-openapi-lint installs it (it needs npm)")
	}
	lint := exec.CommandContext(t.Context(), redocly, "lint", "openapi.yaml", "--config", "redocly.yaml", "--format",
		"stylish")
	lint.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
