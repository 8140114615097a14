package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"docent/router/openapi"
)

// Every operation has an id of its own (but for the aliases), and every reference leads somewhere.
func TestTheDocumentIsComplete(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal(openapi.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				var target any = doc
				for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
					m, _ := target.(map[string]any)
					target = m[name]
				}
				if target == nil {
					t.Errorf("%s refers to %s, which is not there", at, ref)
				}
			}
			if _, ok := v["<<"]; ok {
				t.Errorf("%s: a merge key was not merged", at)
			}
			for k, e := range v {
				walk(at+"/"+k, e)
			}
		case []any:
			for _, e := range v {
				walk(at, e)
			}
		}
	}
	walk("#", doc)
	seen := map[string]string{}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			o, ok := op.(map[string]any)
			if !ok {
				continue
			}
			id, _ := o["operationId"].(string)
			if id == "" {
				t.Errorf("%s %s has no operationId", method, path)
			}
			path := strings.TrimPrefix(path, "/discovery")
			if other, ok := seen[id]; ok && other != path {
				t.Errorf("operationId %s is both %s and %s", id, other, path)
			}
			seen[id] = path
		}
	}
}
