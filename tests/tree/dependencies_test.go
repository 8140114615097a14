package tree

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestEveryDirectRequirementIsJustified(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/DEPENDENCIES.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatalf("read go.mod: %v", err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	required := map[string]bool{}
	for _, r := range mod.Require {
		if !r.Indirect {
			required[r.Path] = true
			if !strings.Contains(string(page), "| `"+r.Path+"` |") {
				t.Errorf("%s is required but not justified", r.Path)
			}
		}
	}
	for line := range strings.Lines(string(page)) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			if path, _, _ := strings.Cut(rest, "`"); !required[path] {
				t.Errorf("%s is justified but not required", path)
			}
		}
	}
}
