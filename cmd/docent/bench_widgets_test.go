package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"docent/bench"
	"docent/internal/testing/need"
)

// TestAThousandWidgetsAtOnceAreAnswered has a thousand readers open the widget at one moment on one server. Each gets the
// dialog, its results and its whole answer; none is refused for good.
func TestAThousandWidgetsAtOnceAreAnswered(t *testing.T) {
	t.Parallel()
	readers := "200"
	if need.All {
		readers = "1000"
	}
	data := filepath.Join(t.TempDir(), "data")
	server := newTestServer(t, data)
	p := newTestProject(t, data, "docs", filepath.Join("..", "..", "docs"))
	out := docent(t, "bench", "widgets", "--url", server.url, "--domain", p.domain, "--key", p.assistant, "--readers", readers, "--json")
	var f bench.WidgetFigures
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if f.Answered != f.Readers || f.Readers < 200 || f.Whole.Count != int64(f.Readers) || f.Dialog.Count != int64(f.Readers) ||
		f.Requests < int64(9*f.Readers) {
		t.Errorf("%+v", f)
	}
	t.Logf("%s", out)
}
