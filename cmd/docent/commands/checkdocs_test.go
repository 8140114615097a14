package commands

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docent/cmd/docent/cli"
	"docent/internal/testing/need"
)

// TestCheckDocs checks the documentation of a repository against its last commit, in each form and with each way to give
// the change.
func TestCheckDocs(t *testing.T) {
	need.Installed(t, "a range of commits", "apt-get install git", "git")
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("docs/cli.md", "# Command line\n\n`--tide-table` names a file, `--max-berths` a number.\n")
	write("docs/old/cli.md", "# Command line of 1.0\n\n`--tide-table` names a file.\n")
	write("docs/about.md", "# About\n\nHarbors.\n")
	write("serve.go", "package main\n\nfunc init() {\n\tflags.String(\"tide-table\", \"\", \"\")\n\tflags.Int(\"max-berths\", 12, \"\")\n}\n")
	write("other.go", "package main\n\nconst berths = \"max-berths\"\n")
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	write("serve.go", "package main\n\nfunc init() {\n}\n")
	git("commit", "-q", "-am", "feat: no tides")
	t.Chdir(dir)
	text := func(stdin string, want int, args ...string) string {
		t.Helper()
		cmd := New(cli.Program{})
		var out bytes.Buffer
		cmd.SetIn(strings.NewReader(stdin))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append([]string{"check-docs"}, args...))
		if got := cli.ExitStatus(cmd.ExecuteContext(t.Context())); got != want {
			t.Errorf("%q ends with %d, want %d\n%s", args, got, want, out.String())
		}
		return out.String()
	}
	const outdated = "docs/cli.md:3: outdated: the flag `tide-table` is removed (serve.go:4)\n"
	got := text("", 6, "--diff", "HEAD~1..HEAD", "--exclude", "old")
	if !strings.Contains(got, outdated) || strings.Contains(got, "docs/old") || strings.Contains(got, "about.md") {
		t.Errorf("%s", got)
	}
	if strings.Contains(got, "`max-berths` is removed") {
		t.Errorf("what another file still has counts as removed:\n%s", got)
	}
	diff := git("diff", "HEAD~1", "HEAD")
	if got := text(diff, 6, "--diff", "-", "--docs", "docs"); !strings.Contains(got, outdated) || !strings.Contains(got, "docs/old/cli.md:3") {
		t.Errorf("%s", got)
	}
	write("change.diff", diff)
	if got := text("", 0, "--diff", "change.diff", "--fail-on", "never", "--max-pages", "1", "--format", "github"); !strings.HasPrefix(got,
		"::warning file=docs/") || strings.Count(got, "file=docs/cli.md") > 0 && strings.Count(got, "file=docs/old") > 0 {
		t.Errorf("%s", got)
	}
	var sarif struct {
		Version string
		Runs    []struct {
			Results []struct{ RuleID, Level string }
		}
	}
	if err := json.Unmarshal([]byte(text(diff, 6, "--diff", "-", "--format", "sarif")), &sarif); err != nil || sarif.Version != "2.1.0" ||
		len(sarif.Runs) != 1 || len(sarif.Runs[0].Results) < 2 || sarif.Runs[0].Results[0].Level != "warning" {
		t.Errorf("%+v, %v", sarif, err)
	}
	if got := text(diff, 6, "--diff", "-", "--format", "json"); !strings.Contains(got, `"page":"docs/cli.md"`) {
		t.Errorf("%s", got)
	}
	if got := text(diff, 6, "--diff", "-", "--format", "github", "--format", "json=pages.json"); !strings.HasPrefix(got, "::") || strings.Contains(got, "{") {
		t.Errorf("%s", got)
	}
	if got, err := os.ReadFile("pages.json"); err != nil || !strings.Contains(string(got), `"page":"docs/cli.md"`) {
		t.Errorf("%s, %v", got, err)
	}
	if got := text(diff, 6, "--diff", "-", "--format", "markdown"); !strings.Contains(got, "**`docs/cli.md`**") {
		t.Errorf("%s", got)
	}
	text("", 0, "--diff", "HEAD..HEAD")
	for _, args := range [][]string{{}, {"--diff", "-x"}, {"--diff", "HEAD", "--format", "xml"}, {"--diff", "HEAD", "--fail-on", "x"},
		{"--diff", "HEAD", "--docs", "nowhere"}, {"--diff", "HEAD", "--max-pages", "0"}} {
		text("", 2, args...)
	}
	text("", 1, "--diff", "no-such-branch...HEAD")
	text("<html><title>404</title></html>\n", 1, "--diff", "-")
	text("", 0, "--diff", "-")
	text("commit 0123456789abcdef\nAuthor: A\n\n    empty\n", 0, "--diff", "-")
	t.Chdir(filepath.Join(dir, "docs")) // paths are those of the repository, wherever one stands
	if got := text("", 6, "--diff", "HEAD~1..HEAD"); !strings.Contains(got, outdated) {
		t.Errorf("%s", got)
	}
}
