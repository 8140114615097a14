package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"docent/bench/evaluation"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/commands"
	"docent/tests/harness"
)

// What the page shows as a file of questions is one, and the command that it has CI run is one too.
func TestTheFileOfQuestionsIsAsDocumented(t *testing.T) {
	t.Parallel()
	files, byName := 0, 0
	for _, f := range harness.ReadFences(t, "docs/operate/evaluation.mdx") {
		switch {
		case f.Language == "yaml" && strings.HasPrefix(f.Text, "questions:"):
			files++
			if set, err := evaluation.Read(f.Page, []byte(f.Text)); err != nil || len(set.Questions()) < 4 {
				t.Errorf("%s: %d questions, %v", f, len(set.Questions()), err)
			}
		case f.Language == "yaml":
			for _, run := range regexp.MustCompile(`docent (eval answers [^\n]*(?:\\\n[^\n]*)?)`).FindAllStringSubmatch(f.Text, -1) {
				byName++
				args := strings.Fields(strings.ReplaceAll(run[1], "\\\n", " "))
				cmd, rest, err := commands.New(cli.Program{}).Find(args)
				if err != nil || cmd.ParseFlags(rest) != nil {
					t.Errorf("%s: %q: %v", f, args, err)
				}
			}
		}
	}
	if files != 1 || byName != 2 {
		t.Errorf("%d files and %d commands are shown", files, byName)
	}
}

// The questions of docs/measurements/2026-11-judged-answers.md, which were written before anything was asked, are 60 that
// six documentation sets answer and 60 that they do not, two thirds of those in the words of the documentation.
func TestTheJudgedQuestionsAreWhole(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/judged/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		set, err := evaluation.Read(file, text)
		if err != nil {
			t.Error(err)
		}
		for _, q := range set.Questions() {
			switch {
			case !q.Unanswerable && len(q.Sources) > 0 && len(q.Facts) > 0:
				count["answered"]++
			case q.Unanswerable:
				count[q.Kind]++
			}
		}
	}
	if len(files) != 6 || count["answered"] != 60 || count["near"]+count["far"] != 60 || count["near"] < 30 {
		t.Errorf("%d files: %v", len(files), count)
	}
}
