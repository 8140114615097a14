package main

import (
	"os"
	"strings"
	"testing"

	"docent/bench"
)

func TestSizingTablesAreTheMeasuredOnes(t *testing.T) {
	t.Parallel()
	const page, results = "../../docs/operate/load.mdx", "../../bench/results/"
	var all bench.Report
	for i, name := range []string{"streams", "unpaced", "open", "turns"} {
		file, err := os.Open(results + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		r, err := bench.ReadReport(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			all = r
			continue
		}
		all.Results = append(all.Results, r.Results...)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), "writes them anew */}\n")
	_, tail, ok2 := strings.Cut(rest, "{/* end of figures */}")
	if !ok1 || !ok2 {
		t.Fatal("the page has lost the marks around its tables")
	}
	want := head + "writes them anew */}\n\n" + all.Markdown() + "\n{/* end of figures */}" + tail
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s does not show the figures of %s: run go test ./cmd/docent -run SizingTables -update", page, results)
	}
}
