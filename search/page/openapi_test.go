package page

import (
	"fmt"
	"strings"
	"testing"

	"docent/internal/testing/need"
)

// readAPI reads a document, and holds what is made of it, and the work, against what may be.
func readAPI(t *testing.T, name, doc string) []Text {
	t.Helper()
	w := apiWriter{left: maxRows, bytes: maxAPIBytes, examples: maxExamples}
	pages := w.pages(name, []byte(doc))
	bytes := 0
	for _, p := range pages {
		bytes += len(p.Content)
	}
	// Of what is written when a bound is met as much may follow as the document itself holds.
	if most := maxAPIBytes + 10*(len(doc)+maxExampleBytes); bytes > 2*most {
		t.Errorf("%.100s: %d bytes of %d", doc, bytes, len(doc))
	}
	if w.left < -1000 || w.bytes < -10*(len(doc)+1000) || len(pages) > maxOperations+1 {
		t.Errorf("%.100s: %d rows and %d bytes of rows beyond what may be made, %d pages", doc, -w.left, -w.bytes, len(pages))
	}
	return pages
}

// itself is a document of some hundred bytes whose schema is k times a part of itself.
func itself(k int) string {
	var properties []string
	for i := range k {
		properties = append(properties, fmt.Sprintf(`"%c":{"$ref":"#/S"}`, 'a'+i))
	}
	call := func(n int) string {
		return fmt.Sprintf(`"/%d":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/S"}}}}}}`, n)
	}
	return `{"openapi":"3.1.0","info":{"title":"X"},"paths":{` + call(1) + "," + call(2) + `},"S":{"properties":{` +
		strings.Join(properties, ",") + `}}}`
}

func TestASmallDescriptionOfAnAPITakesBoundedWork(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	t.Parallel()
	for _, k := range []int{4, 10, 20} {
		if pages := readAPI(t, "openapi.json", itself(k)); len(pages) != 3 || !strings.Contains(string(pages[1].Content), "`a.a`") {
			t.Errorf("%d properties: %d pages", k, len(pages))
		}
	}
	var paths, params, tags []string
	for i := range 20_000 {
		paths = append(paths, fmt.Sprintf(`"/%d":{"$ref":"#/P"}`, i))
		params = append(params, fmt.Sprintf(`{"name":"%d","in":"query"}`, i))
		tags = append(tags, fmt.Sprintf(`{"name":"t%d"}`, i))
	}
	shared := `{"openapi":"3.1.0","info":{"title":"X"},"tags":[` + strings.Join(tags, ",") + `],"paths":{` + strings.Join(paths, ",") +
		`},"P":{"get":{"operationId":"same","parameters":[` + strings.Join(params, ",") + `]},"put":{"description":"` +
		strings.Repeat("long ", 100_000) + `"}}}`
	readAPI(t, "openapi.json", shared)
}

// FuzzAPI counts rows and bytes of what is made of a document.
func FuzzAPI(f *testing.F) {
	f.Add(itself(5), true)
	f.Add("openapi: 3.1.0\npaths:\n  /a: {get: {tags: [x], responses: {200: {content: {application/json: {schema: {type: array, items: {$ref: '#'}}}}}}}}\n", false)
	f.Add(`{"swagger":"2.0","host":"h","paths":{"/a":{"$ref":"#/paths/~1a"},"/b":{"post":{"parameters":[{"in":"body","schema":{"allOf":[{"$ref":"#/x"}]}}]}}},"x":{"oneOf":[{"$ref":"#/x"},{"$ref":"#/x"}]}}`, true)
	f.Fuzz(func(t *testing.T, doc string, json bool) {
		name := "openapi.yaml"
		if json {
			name = "openapi.json"
		}
		readAPI(t, name, doc)
	})
}
