// Package need provides, in one place, the rules of which tests wait for make test-all, and what a test needs beyond Go.
package need

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docent/internal/race"
)

// All makes tests run with real peers and in full, as make test-all does. The race detector is not for them: it would
// judge programs that it does not see, and take its time from those that keep to times.
var All = os.Getenv("DOCENT_TEST_ALL") != "" && !race.Enabled

// Everything skips a test that takes long or computes for long, unless everything runs.
func Everything(t testing.TB, why string) {
	t.Helper()
	if !All {
		t.Skip(why + ": make test-all runs it")
	}
}

// NoRace skips a test in which the race detector would find nothing, and take many times as long to find it.
func NoRace(t testing.TB, why string) {
	t.Helper()
	if race.Enabled {
		t.Skip(why + ": runs only without the race detector")
	}
}

// Peer skips a test with a real program of others, unless everything runs: then what is missing fails the test. It
// answers with the path of the first of the files and programs needed; a name without a slash is looked for in PATH.
func Peer(t testing.TB, what, script string, needed ...string) string {
	t.Helper()
	Everything(t, what)
	return Installed(t, what, script, needed...)
}

// Installed is Peer for what runs wherever it is installed.
func Installed(t testing.TB, what, script string, needed ...string) (first string) {
	t.Helper()
	for _, name := range needed {
		path, err := name, error(nil)
		if strings.Contains(name, "/") {
			_, err = os.Stat(name)
		} else {
			path, err = exec.LookPath(name)
		}
		if err != nil && All {
			t.Fatalf("%s: %v; %s installs it", what, err, script)
		}
		if err != nil {
			t.Skipf("%s is left out: there is no %s; %s installs it", what, name, script)
		}
		first = cmp.Or(first, path)
	}
	return first
}

// Generator answers with the path of a generator of documentation sites, as scripts/install-generators installs it, or as
// PATH has it.
func Generator(t testing.TB, name string) string {
	t.Helper()
	root := Root()
	for _, at := range []string{"bin/" + name, "bin/*/node_modules/.bin/" + name, "examples/sites/*/node_modules/.bin/" + name} {
		if found, err := filepath.Glob(filepath.Join(root, at)); err == nil && len(found) > 0 {
			if info, err := os.Stat(found[0]); err == nil && !info.IsDir() {
				return found[0]
			}
		}
	}
	return Peer(t, "a generator of documentation sites", "scripts/install-generators", name)
}

// Root is the folder of the module that a test runs in; its sources do not tell, since builds may leave out where they are.
func Root() string {
	root, err := filepath.Abs(".")
	for err == nil && root != filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Dir(root)
	}
	return root
}
