package api

import (
	"path/filepath"
	"strings"
	"testing"

	"docent/tests/harness"
)

// A site is shown before it is read, is a project's documentation and a further source of another, and is followed.
func TestAWebSiteIsPreviewedAddedAndFollowed(t *testing.T) {
	t.Parallel()
	site, change := harness.ChangingSite(t)
	data, address := filepath.Join(t.TempDir(), "data"), site+"/docs/"
	if out := harness.Docent(t, "crawl", "preview", address, "--allow-private"); !strings.Contains(out,
		"following links") || !strings.Contains(out, "Pumps") || strings.Contains(out, "Menu") {
		t.Errorf("the preview:\n%s", out)
	}
	out := harness.Docent(t, "project", "add", "manual", "--data", data, "--domain", "manual.example.com", "--kind", "web", "--source", address,
		"--allow-private")
	if !strings.Contains(out, "2 pages") || !strings.Contains(out, site) {
		t.Errorf("added:\n%s", out)
	}
	if out := harness.Docent(t, "project", "check", "manual", "--data", data); !strings.Contains(out, address+"pumps ") ||
		!strings.Contains(out, "source docs (web): read 20") ||
		!strings.Contains(out, ": 0 new, 0 changed, 0 gone, 1 left out, 0 failed; again ") {
		t.Errorf("checked:\n%s", out)
	}
	harness.Docent(t, "project", "add", "own", "--data", data, "--domain", "own.example.com", "--source",
		harness.WriteFiles(t, harness.OnePage))
	if out := harness.Docent(t, "source", "add", "own", "manual", "--data", data, "--kind", "web", "--address", address, "--allow-private",
		"--every", "24h"); !strings.Contains(out, "2 pages") {
		t.Errorf("added as a source:\n%s", out)
	}
	change()
	if out := harness.Docent(t, "index", "manual", "--data", data); !strings.Contains(out, "2 pages, 2 sections at ") ||
		!strings.Contains(out, ": 0 added, 1 modified, 0 removed") {
		t.Errorf("read again:\n%s", out)
	}
	if out := harness.Docent(t, "source", "list", "own", "--data", data); !strings.Contains(out, "web") || !strings.Contains(out, "good") {
		t.Errorf("listed:\n%s", out)
	}
}
