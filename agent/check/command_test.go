//go:build unix

package check_test

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"docent/agent/check"
	"docent/agent/check/sandbox"
	"docent/api"
	"docent/internal/testing/need"
)

type fileSet map[string]string

func (f fileSet) List() []api.File {
	var out []api.File
	for p, s := range f {
		out = append(out, api.File{Path: p, Size: int64(len(s))})
	}
	return out
}

func (f fileSet) Read(p string) ([]byte, error) { return []byte(f[p]), nil }

func TestACommandSeesTheFilesAndNothingOfTheService(t *testing.T) {
	need.NoRace(t, "other processes do the work")
	t.Setenv("DOCENT_MODEL_API_KEY", "sk-not-for-you")
	for name, c := range map[string]struct {
		command check.Command
		want    string // in the complaint; "" for none
		fails   string // words of the error
	}{
		"content": {command: check.Command{Args: []string{"test", "-f", "docs/a.md"}}},
		"complains": {command: check.Command{Args: []string{"sh", "-c", "echo docs/a.md:1: too long >&2; exit 3"}},
			want: "docs/a.md:1: too long\n\n(exit status 3)"},
		"its folder":  {command: check.Command{Args: []string{"cat", "a.md", "none"}, Folder: "docs"}, want: "hello"},
		"environment": {command: check.Command{Args: []string{"sh", "-c", "env; exit 1"}}, want: "CI=1"},
		"words stay words": {command: check.Command{Args: []string{"sh", "-c", `echo "$1"; exit 1`, "x",
			`"; touch /tmp/y; $(id)`}}, want: `"; touch /tmp/y; $(id)`},
		"time": {command: check.Command{Args: []string{"sleep", "600"}, Timeout: 200 * time.Millisecond},
			want: "did not end within 200ms"},
		"time of children": {command: check.Command{Args: []string{"sh", "-c", "sleep 600 & sleep 600"},
			Timeout: 200 * time.Millisecond}, want: "did not end within"},
		"left behind": {command: check.Command{Args: []string{"sh", "-c", "sleep 600 & exit 0"}}},
		"much to say": {command: check.Command{Args: []string{"sh", "-c", "yes | head -c 5000000; echo END; exit 1"}},
			want: "bytes left out]"},
		"memory": {command: check.Command{Args: []string{"sh", "-c",
			"x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}; exit 0"}, Memory: 32 << 20}, want: "("},
		"is not there": {command: check.Command{Args: []string{"no-such-program"}}, fails: "no-such-program"},
		"folder is missing": {command: check.Command{Args: []string{"true"}, Folder: "elsewhere"},
			fails: "folder of the check"},
		"folder outside": {command: check.Command{Args: []string{"true"}, Folder: "../.."},
			fails: "no path within the repository"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			checks := &check.Commands{Folder: folder, Sandbox: anywhere(), Projects: map[api.ProjectID]check.Command{"p": c.command}}
			files := fileSet{"docs/a.md": "hello\n", ".vale.ini": "x\n", "../outside.md": "x\n", ".git/hooks/pre-commit": "x\n",
				"/etc/x": "x\n"}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // half of what a command sleeps that is not ended
			defer cancel()
			says, ok, err := checks.Check(ctx, api.Project{ID: "p"}, files)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%v, want %q", err, c.fails)
				}
			} else if err != nil || !ok || (says == "") != (c.want == "") || !strings.Contains(says, c.want) {
				t.Errorf("%q, %v, %v; want %q", says[:min(len(says), 500)], ok, err, c.want)
			}
			if len(says) > 70_000 || strings.Contains(says, "sk-not-for-you") ||
				strings.Contains(says, folder+"/docent-check-") && name != "environment" {
				t.Errorf("%d bytes: %s", len(says), says[:min(len(says), 500)])
			}
			if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestAProjectWithoutACommandIsNotChecked(t *testing.T) {
	checks := &check.Commands{Projects: map[api.ProjectID]check.Command{"q": {Args: []string{"false"}}}}
	if says, ok, err := checks.Check(t.Context(), api.Project{ID: "p"}, fileSet{}); says != "" || ok || err != nil {
		t.Error(says, ok, err)
	}
}

func TestACommandEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	dir := t.TempDir()
	go func() {
		for {
			if began, _ := filepath.Glob(filepath.Join(dir, "*", "repository", "began")); len(began) > 0 {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	checks := &check.Commands{Folder: dir, Sandbox: anywhere(),
		Projects: map[api.ProjectID]check.Command{"p": {Args: []string{"sh", "-c", "touch began; sleep 600"}}}}
	if _, _, err := checks.Check(ctx, api.Project{ID: "p"}, fileSet{"a.md": "x"}); err == nil {
		t.Error("no error")
	}
}

// anywhere is what commands run in on systems that have no sandbox, and the first that can be had on Linux.
func anywhere() sandbox.Kind {
	if runtime.GOOS == "linux" {
		return ""
	}
	return sandbox.None
}

func TestACommandThatCannotBeKeptApartIsNotRun(t *testing.T) {
	if runtime.GOOS == "linux" {
		t.Skip("Linux has sandboxes; what it says without is in TestWhatIsMissingForASandboxIsSaid")
	}
	checks := &check.Commands{Projects: map[api.ProjectID]check.Command{"p": {Args: []string{"true"}}}}
	if _, _, err := checks.Check(t.Context(), api.Project{ID: "p"}, fileSet{}); err == nil ||
		!strings.Contains(err.Error(), `check_sandbox = "none"`) {
		t.Error(err)
	}
}
