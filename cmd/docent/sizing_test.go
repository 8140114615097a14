package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/bench/report"
)

// The page on sizing shows the results that are stored: its tables, its curves and its example are made from them.
func TestSizingPageShowsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	const page, results, images, folder = "../../docs/operate/load.mdx", "../../bench/results/", "../../docs/images/",
		"/images"
	var parts []report.Report
	for _, name := range []string{"streams", "unpaced", "paced", "busy", "open", "turns"} {
		file, err := os.Open(results + name + ".json")
		if errors.Is(err, fs.ErrNotExist) && name != "streams" {
			continue // a suite of some parts only
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := report.ReadReport(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, r)
	}
	made, figures := report.Sizing(folder, parts...)
	if len(figures) == 0 || !strings.Contains(made, "A worked example") {
		t.Errorf("%d curves in\n%s", len(figures), made)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), "writes it anew */}\n")
	_, tail, ok2 := strings.Cut(rest, "{/* end of figures */}")
	if !ok1 || !ok2 {
		t.Fatal("the page has lost the marks around what is generated")
	}
	want := map[string]string{page: head + "writes it anew */}\n\n" + made + "\n{/* end of figures */}" + tail}
	for _, f := range figures {
		want[images+f.Name] = f.SVG
	}
	drawn, err := filepath.Glob(images + "load-*.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range drawn {
		if !slices.ContainsFunc(figures, func(f report.Figure) bool { return f.Name == filepath.Base(name) }) {
			if *updateFiles {
				err = os.Remove(name)
			} else {
				err = errors.New("no result has that curve")
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, content := range want {
		if *updateFiles {
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755),
				os.WriteFile(name, []byte(content), 0o644)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != content {
			t.Errorf("%s does not show the figures of %s (%v): run go test ./cmd/docent -run Sizing -update", name, results, err)
		}
	}
}
