package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"docent/internal/testing/need"
)

// What a release is made of is there. scripts/check-release, in make test-all and in the workflow, makes one.
func TestWhatAReleaseIsMadeOfIsThere(t *testing.T) {
	t.Parallel()
	read := func(name string, into any) string {
		text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
		if err == nil && into != nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return string(text)
	}
	var config struct {
		Archives []struct {
			ID    string
			Files []struct{ Src string }
		}
		Nfpms []struct{ Contents []struct{ Src string } }
		Brews []struct {
			IDs     []string `yaml:"ids"`
			Install string
		}
	}
	all := read(".goreleaser.yaml", &config)
	var sources, archives []string
	for _, a := range config.Archives {
		archives = append(archives, a.ID)
		for _, f := range a.Files {
			sources = append(sources, f.Src)
		}
	}
	for _, p := range config.Nfpms {
		for _, f := range p.Contents {
			sources = append(sources, f.Src)
		}
	}
	for _, src := range sources {
		made := strings.HasPrefix(src, "bin/share/") // by scripts/release-files
		if there, err := filepath.Glob(filepath.Join(top, src)); !made && (err != nil || len(there) == 0) {
			t.Errorf("there is no %s", src)
		}
	}
	for _, b := range config.Brews {
		if len(b.IDs) != 1 || !slices.Contains(archives, b.IDs[0]) || !strings.Contains(b.Install, `bin.install "docent"`) {
			t.Errorf("the formula installs %q of %q", b.Install, b.IDs)
		}
	}
	if len(config.Brews) != 1 || len(sources) < 20 {
		t.Errorf("%d formulas, %d files", len(config.Brews), len(sources))
	}

	// The version is the one variable that the linker sets, in a package whose name no fork changes.
	if !strings.Contains(read("cmd/docent/main.go", nil), "\nvar version string\n") {
		t.Error("cmd/docent has no variable version")
	}
	stamp := regexp.MustCompile(`-X ([\w./$()]+)=`)
	for _, name := range []string{"Makefile", "scripts/build-image", "scripts/release-files", ".goreleaser.yaml"} {
		stamps := stamp.FindAllStringSubmatch(read(name, nil), -1)
		for _, m := range stamps {
			if m[1] != "main.version" {
				t.Errorf("%s sets %s", name, m[1])
			}
		}
		if len(stamps) == 0 {
			t.Errorf("%s builds without a version", name)
		}
	}
	for _, script := range regexp.MustCompile(`\./scripts/[\w-]+`).FindAllString(read(".github/workflows/release.yml", nil)+all, -1) {
		if info, err := os.Stat(filepath.Join(top, script)); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be run: %v", script, err)
		}
	}
	for _, m := range regexp.MustCompile(`Get "(kubernetes/\S+)"`).FindAllStringSubmatch(read("deploy/helm/templates/docent.yaml", nil), -1) {
		read("deploy/"+m[1], nil)
	}
}

// A fork sets one line, and everything is published under its name.
func TestAForkIsPublishedUnderItsOwnName(t *testing.T) {
	t.Parallel()
	const module = "github.com/Somebody/docent"
	dir := filepath.Join(t.TempDir(), "fork")
	here, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	run(t, command(t, "git", "clone", "--quiet", "--shared", here, dir))
	in := func(name string, args ...string) string {
		cmd := command(t, name, args...)
		cmd.Dir = dir
		return strings.TrimSpace(run(t, cmd))
	}
	for _, wrong := range []string{"docent", "github.com/docent", "github.com/a/b/c", "/a.b/c/d", "a.b/c/d e"} {
		cmd := command(t, "scripts/set-module", wrong)
		if cmd.Dir = dir; cmd.Run() == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
	in("scripts/set-module", module)
	for name, want := range map[string]string{"module": module, "repository": module, "owner": "Somebody", "image": "ghcr.io/somebody/docent"} {
		if got := in("scripts/names", name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if left := in("git", "status", "--short", "--untracked-files=all"); strings.Contains(left, "??") {
		t.Errorf("it leaves files:\n%s", left)
	}
	for _, path := range strings.Fields(in("go", "list", "-deps", "./cmd/docent")) {
		if strings.HasPrefix(path, "docent/") {
			t.Errorf("the program still imports %s", path)
		}
	}
	if got := in("go", "list", "-test", "./..."); strings.Contains("\n"+got, "\ndocent/") || !strings.Contains(got, module+"/tests/tree") {
		t.Error("tests are in the old module")
	}
	in("scripts/release-chart", "bin/chart", "1.2.3")
	for file, want := range map[string]string{"bin/chart/docent/values.yaml": "repository: ghcr.io/somebody/docent\n", "bin/chart/docent/Chart.yaml": "\nversion: 1.2.3\nappVersion: 1.2.3\n",
		"docs/deploy/download.mdx": "brew install Somebody/tap/docent"} {
		if text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file))); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v", file, want, err)
		}
	}
	if !need.All {
		return
	}
	// As `go install MODULE/cmd/docent@VERSION` gets it from there.
	git := func(args ...string) {
		in("git", append([]string{"-c", "user.name=fork", "-c", "user.email=fork@example.com"}, args...)...)
	}
	git("commit", "--quiet", "--all", "--message", "fork")
	git("tag", "v1.2.3")
	install := command(t, "go", "install", "-trimpath", module+"/cmd/docent@v1.2.3")
	install.Dir = t.TempDir()
	install.Env = append(os.Environ(), "GOBIN="+install.Dir, "CGO_ENABLED=0", "GOFLAGS=", "GOPRIVATE=github.com/Somebody/*", "GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=url.file://"+dir+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+module,
		"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*", "GIT_ALLOW_PROTOCOL=file:https")
	run(t, install)
	if said := run(t, command(t, filepath.Join(install.Dir, "docent"), "version")); !strings.HasPrefix(said, "docent 1.2.3 ") {
		t.Errorf("it says that it is %q", said)
	}
}
