package affected

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What is written as SARIF is what OASIS published: the schema is sarif-2.1/schema/sarif-schema-2.1.0.json of its repository
// oasis-tcs/sarif-spec at e0583813964e (errata 01), compressed.
func TestSARIFKeepsToItsSchema(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/sarif-schema-2.1.0.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.UnmarshalJSON(z)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("sarif.json", schema); err != nil {
		t.Fatal(err)
	}
	sarif, err := c.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(log any) error {
		data, err := json.Marshal(log)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return sarif.Validate(v)
	}
	hostile := pagesOf(t, map[string]string{"docs/a b`,ü.md": "# A\n\n`--tide-table` <!-- x -->\n", "docs/b.md": "# Tides\n\nTides of `--wharf`.\n"})
	change := Parse(diffOf("cmd/tides.go", "-\tflags.StringVar(&tides, \"tide-table\", \"\", \"file\")\n \tflags.StringVar(&wharf, \"wharf\", \"\", \"\")\n"))
	for name, r := range map[string]Result{"pages": hostile.Find(change, Options{}), "none": {Findings: []Finding{}}} {
		if err := valid(r.SARIF("1.2.3")); err != nil || name == "pages" && len(r.Findings) == 0 {
			t.Errorf("%s: %d findings, %v", name, len(r.Findings), err)
		}
	}
	if err := valid(map[string]any{"version": "2.1.0", "runs": []any{map[string]any{}}}); err == nil || !strings.Contains(err.Error(), "tool") {
		t.Errorf("the schema holds nothing: %v", err)
	}
}
