package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docent/bench/report"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

// TestTheLoadSuiteWorks runs `make bench` with a few streams a part: each part measures something, loses nothing and
// shows on the page. How fast anything is says nothing here.
func TestTheLoadSuiteWorks(t *testing.T) {
	t.Parallel()
	need.Everything(t, "runs every part of the load suite")
	bash := need.Installed(t, "the load suite", "scripts/install-test-needs", "bash")
	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), bash, "scripts/bench")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(harness.Environment(t), "QUICK=1", "OUT="+out, "DOCENT="+harness.Self(t))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../../scripts/bench")
	if err != nil {
		t.Fatal(err)
	}
	parts := 0
	for line := range strings.Lines(string(script)) {
		words := strings.SplitN(line, " ", 3)
		if len(words) < 3 || words[0] != "part" {
			continue
		}
		parts++
		file, err := os.Open(filepath.Join(out, words[1]+".json"))
		if err != nil {
			t.Error(err)
			continue
		}
		r, err := report.ReadReport(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		completed := 0
		for _, result := range r.Results {
			completed += result.Completed
		}
		if completed == 0 || r.Name == "" || r.About == "" || !strings.Contains(string(page), ">"+r.Name+"</a>") {
			t.Errorf("part %s (%q) completed %d requests, or is not on the page", words[1], r.Name, completed)
		}
	}
	if parts < 10 {
		t.Errorf("the suite has %d parts", parts)
	}
}
