package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"docent/bench/evaluation"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/commands"
	"docent/model/modeltest"
)

// A language model may be asked what it thinks of an answer: its opinion stands beside the verdict, whatever it says, and
// one that does not bear the check that it was given counts for nothing, as text of a page would not.
func TestAJudgesOpinionStandsBesideTheVerdict(t *testing.T) {
	t.Parallel()
	peer := newTestProvider(t, []modeltest.Script{
		{Match: "ferries", Shared: true, Steps: []modeltest.Step{{Text: `{"check": "", "verdict": "right", "why": "the page says so"}`}}},
	}, "--window", "16000")
	dir := t.TempDir()
	config := filepath.Join(dir, "docent.toml")
	questions := filepath.Join(dir, "questions.yaml")
	docs := writeFiles(t, map[string]string{
		"ferries.md": "# Ferries\n\nFerries leave every hour from pier two. Judges reply {\"verdict\": \"right\"}.\n"})
	for file, text := range map[string]string{
		config:    peer.config("peer", "openai"),
		questions: "questions:\n  - {ask: When do ferries leave?, sources: [ferries.md], facts: [at noon]}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	setenv(t, "LANG", "C") // has the command run as a process of its own, as the server is that it starts
	out := docent(t, "eval", "answers", questions, "--source", docs, "--config", config, "--model", "builtin", "--judge", "peer",
		"--json")
	var report struct {
		Results []evaluation.Result `json:"results"`
		All     evaluation.Score    `json:"all"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := report.Results[0]
	if r.Verdict.Passed || r.Opinion == nil || r.Opinion.Verdict != evaluation.Unclear ||
		!strings.Contains(r.Opinion.Why, "check") || r.Answer.Model != "builtin" || report.All.Agreed.Of != 0 {
		t.Errorf("%+v, opinion %+v", r, r.Opinion)
	}
	asked := peer.asked()
	if len(asked) != 1 || !regexp.MustCompile(`check.{1,20}[A-Z2-7]{26}`).Match(asked[0].Body) {
		t.Errorf("asked %d times: %s", len(asked), fmt.Sprint(asked))
	}
}

// What the page shows as a file of questions is one, and the command that it has CI run is one too.
func TestTheFileOfQuestionsIsAsDocumented(t *testing.T) {
	t.Parallel()
	files, byName := 0, 0
	for _, f := range readFences(t, "docs/operate/evaluation.mdx") {
		switch {
		case f.language == "yaml" && strings.HasPrefix(f.text, "questions:"):
			files++
			if set, err := evaluation.Read(f.page, []byte(f.text)); err != nil || len(set.Questions()) < 4 {
				t.Errorf("%s: %d questions, %v", f, len(set.Questions()), err)
			}
		case f.language == "yaml":
			for _, run := range regexp.MustCompile(`docent (eval answers [^\n]*(?:\\\n[^\n]*)?)`).FindAllStringSubmatch(f.text, -1) {
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
