package report

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docent/internal/testing/need"
)

// TestThePageInABrowser opens the page with the results that are in the repository from the disk, as an operator does,
// on a phone, a screen and paper.
func TestThePageInABrowser(t *testing.T) {
	t.Parallel()
	const clients = "../../tests/testdata/clients"
	chromium := need.Peer(t, "the report in a browser", "scripts/install-browser", "chromium", clients+"/node_modules/playwright-core")
	stored, err := filepath.Glob("../results/*.json")
	if err != nil || len(stored) == 0 {
		t.Fatalf("there are no results: %v", err)
	}
	sample := sampleReport()
	sample.About = strings.Repeat("A sentence about it. ", 10)
	sample.Command = "docent bench --slo " + strings.Repeat("ttfe.p99<200ms,", 30)
	reports := []Report{sample}
	for _, name := range stored {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ReadReport(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
	}
	var page bytes.Buffer
	if err := WriteHTML(&page, reports...); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name, pdf := filepath.Join(dir, "report.html"), filepath.Join(dir, "report.pdf")
	if err := os.WriteFile(name, page.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal(map[string]string{"page": "file://" + filepath.ToSlash(name), "chromium": chromium,
		"pdf": pdf})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "report.mjs")
	cmd.Dir = clients
	cmd.Env = append(os.Environ(), "DOCENT_REPORT="+string(settings))
	var problems, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &problems, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("report.mjs: %v\n%s", err, wrong.String())
	}
	if problems.Len() > 0 {
		t.Errorf("the page is not as it should be:\n%s", problems.String())
	}
	if printed, err := os.ReadFile(pdf); err != nil || !bytes.HasPrefix(printed, []byte("%PDF")) {
		t.Errorf("it cannot be printed: %v", err)
	}
}
