package router

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"docent/api/openapi"
)

// The document is what clients are made from, and the table is what is served: each has all that the other has.
func TestTheDocumentHasEveryRouteAndNoOther(t *testing.T) {
	served := map[string]bool{}
	s := new(Server)
	s.routes = s.table()
	for _, r := range s.routes {
		var path []string
		for part := range strings.SplitSeq(r.pattern, "/") {
			if name, ok := strings.CutPrefix(strings.Replace(part, "*", ":", 1), ":"); ok {
				part = "{" + name + "}"
			}
			path = append(path, part)
		}
		at := strings.Join(path, "/")
		served[r.method+" "+at] = true
		if r.method == http.MethodGet {
			served[http.MethodHead+" "+at] = true
		}
		if r.crossOrigin() {
			served[http.MethodOptions+" "+at] = true
		}
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(openapi.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths {
		for method := range item {
			if method == "parameters" {
				continue
			}
			operation := strings.ToUpper(method) + " " + path
			if !served[operation] {
				t.Errorf("%s is in the document and not served", operation)
			}
			delete(served, operation)
		}
	}
	for operation := range served {
		t.Errorf("%s is served and not in the document", operation)
	}
}
