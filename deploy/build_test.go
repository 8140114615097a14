package deploy_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"docent/internal/testing/need"
)

// top is the top folder of the repository.
const top = ".."

// nfpm is the program that builds packages, of the version that scripts/install-nfpm installs.
func nfpm(t testing.TB) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(top, "scripts", "install-nfpm"))
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(string(script), "\nversion=")
	version, _, _ = strings.Cut(version, "\n")
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(cache, "docent-tests", "nfpm-"+version)
	return need.Peer(t, "what builds packages", nfpmNeeds, program)
}

// leaveOut skips a test that this machine cannot run, and fails it where nothing may be left out.
func leaveOut(t testing.TB, why string) {
	t.Helper()
	if need.All {
		t.Fatal(why)
	}
	t.Skip(why)
}

// run runs a command and returns what it says.
func run(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

func command(t testing.TB, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, name, args...)
}

// packaged is the definition of the packages in .goreleaser.yaml as nfpm itself reads it, so that the tests need not
// build a whole release: what goreleaser fills in is the binary, the version and the architecture.
func packaged(t testing.TB, binary, version string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var release struct {
		Nfpms []map[string]any
	}
	if err := yaml.Unmarshal(text, &release); err != nil || len(release.Nfpms) != 1 {
		t.Fatalf("%d definitions of packages: %v", len(release.Nfpms), err)
	}
	d := maps.Clone(release.Nfpms[0])
	contents, _ := d["contents"].([]any)
	manuals := t.TempDir() // in bin/share a release may be made meanwhile
	run(t, command(t, filepath.Join(top, "scripts", "release-manuals"), binary, manuals))
	for _, c := range contents {
		if file, ok := c.(map[string]any); ok {
			if rest, is := strings.CutPrefix(fmt.Sprint(file["src"]), "bin/share/"); is {
				file["src"] = filepath.Join(manuals, rest)
			}
		}
	}
	d["contents"] = append(contents, map[string]any{
		"src": binary, "dst": fmt.Sprint(d["bindir"], "/docent"), "file_info": map[string]any{"mode": 0o755},
	})
	d["name"], d["version"], d["arch"], d["platform"] = d["package_name"], version, runtime.GOARCH, "linux"
	d["mtime"] = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Format(time.RFC3339)
	for _, ours := range []string{"id", "ids", "package_name", "formats", "bindir"} {
		if d[ours] == nil {
			t.Errorf("the packages' definition has no %s", ours)
		}
		delete(d, ours)
	}
	out, err := yaml.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var binaries struct {
	mu  sync.Mutex
	dir string
}

// buildBinary builds the program with a version; TestMain removes it.
func buildBinary(t testing.TB, version string) string {
	t.Helper()
	binaries.mu.Lock()
	defer binaries.mu.Unlock()
	if binaries.dir == "" {
		dir, err := os.MkdirTemp("", "docent-packages-")
		if err != nil {
			t.Fatal(err)
		}
		binaries.dir = dir
	}
	binary := filepath.Join(binaries.dir, "docent-"+version)
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	build := command(t, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", binary, "./cmd/docent")
	build.Dir, build.Env = top, append(os.Environ(), "CGO_ENABLED=0")
	run(t, build)
	return binary
}

// buildPackage builds a package (deb, rpm) that bears a version, around a binary that says the same one.
func buildPackage(t testing.TB, format, version string) string {
	t.Helper()
	program := nfpm(t)
	dir := t.TempDir()
	binary := buildBinary(t, version)
	file := filepath.Join(dir, "nfpm.yaml")
	if err := os.WriteFile(file, packaged(t, binary, version), 0o644); err != nil {
		t.Fatal(err)
	}
	pack := command(t, program, "package", "--config", file, "--packager", format, "--target", dir)
	pack.Dir = top
	run(t, pack)
	list, err := filepath.Glob(filepath.Join(dir, "*."+format))
	if err != nil || len(list) != 1 {
		t.Fatalf("%q: %v", list, err)
	}
	return list[0]
}

const nfpmNeeds = "scripts/install-nfpm" // installs what builds and judges packages
