// Package sites holds what Docent reads from the source of documentation sites against what their generators make of it.
package sites

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"docent/api"
	"docent/bench/corpora"
	"docent/internal/testing/need"
)

// The first lines of a site say how it is built: what is needed, the command, which part of a page is its text, what of
// that is the theme's, which pages are the generator's own, and what is known to differ.
func says(text []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.Contains(key, " ") {
			out[key] = value
		}
	}
	return out
}

// A small site of each generator is built by the generator itself, and what it publishes is what Docent reads from the
// source: every page's address, anchors, title and words, and nothing of what is left out.
func TestSourceIsReadAsItsGeneratorPublishesIt(t *testing.T) {
	need.Everything(t, "builds sites with their generators")
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no sites: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			s := says(a.Comment)
			tree := corpora.Tree{}
			for _, f := range a.Files {
				tree[f.Name] = f.Data
			}
			out := builtBy(t, s, tree)
			how, err := lookOf(s["content"], s["gone"])
			if err != nil {
				t.Fatal(err)
			}
			published, err := how.built(out)
			if err != nil {
				t.Fatal(err)
			}
			read, of := fromSource(t, api.Project{DocsDir: s["docs-dir"]}, tree)
			if string(of.Site.Kind) != s["kind"] || of.SiteURL != s["address"] {
				t.Errorf("it is read as %s at %q, not %s at %q", of.Site.Kind, of.SiteURL, s["kind"], s["address"])
			}
			v := compare(published, read, oneOf(s["generated"]))
			t.Log(v.row())
			for _, said := range v.said {
				if !strings.Contains(string(a.Comment), "known: "+said) {
					t.Error(said)
				}
			}
			if v.pages < 4 || v.headings < 5 {
				t.Errorf("only %d pages with %d headings were compared", v.pages, v.headings)
			}
		})
	}
}

// oneOf matches addresses of a list, in which * stands for the rest of one.
func oneOf(list string) func(at string) bool {
	own := strings.Fields(list)
	return func(at string) bool {
		return slices.ContainsFunc(own, func(of string) bool {
			return at == of || strings.HasSuffix(of, "*") && strings.HasPrefix(at, strings.TrimSuffix(of, "*"))
		})
	}
}

// builtBy builds a site with its own generator, in the way that its first lines say, and returns where the pages are.
func builtBy(t *testing.T, s map[string]string, tree corpora.Tree) (out string) {
	t.Helper()
	command := strings.Fields(s["build"])
	program := need.Generator(t, command[0])
	dir, err := os.MkdirTemp(".", ".built-*") // Astro finds no modules of a site that lies in another tree
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.Abs(dir); err != nil {
		t.Fatal(err)
	}
	if err := tree.Write(dir); err != nil {
		t.Fatal(err)
	}
	if s["git"] != "" { // it reads what is committed
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@acme.test", "commit", "-qm", "a"}} {
			git := exec.CommandContext(t.Context(), "git", args...)
			git.Dir = dir
			if said, err := git.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, said)
			}
		}
	}
	// What comes from npm is found from where its command is installed.
	if modules := filepath.Dir(filepath.Dir(program)); filepath.Base(modules) == "node_modules" {
		if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
	out = filepath.Join(t.TempDir(), "out")
	for i := range command {
		command[i] = strings.ReplaceAll(command[i], "OUT", out)
	}
	build := exec.CommandContext(t.Context(), program, command[1:]...)
	build.Dir = dir
	build.Env = append(os.Environ(), "CI=1", "DOCUSAURUS_NO_PERSISTENT_CACHE=true", "NEXT_TELEMETRY_DISABLED=1", "ASTRO_TELEMETRY_DISABLED=1")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", s["build"], err, said)
	}
	if s["out"] != "" {
		out = filepath.Join(dir, s["out"])
	}
	return out
}
