package thread

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"docent/bench/corpora"
	"docent/internal/testing/need"
	"docent/model"
)

// A firstQuestion is one that everybody asks first, of a judged set, with the pages that answer it as an expression; empty if none
// does, or if the page says that no assistant shall read it (Mintlify's changelog has noindex). PROJECT stands for the set's name.
type firstQuestion struct {
	Set, Query, Page string
}

func TestFirstQuestionsFindTheirPages(t *testing.T) {
	need.Everything(t, "indexes whole documentation sets")
	t.Parallel()
	var all []firstQuestion
	if err := json.Unmarshal(read(t, "testdata/firstquestions.json"), &all); err != nil {
		t.Fatal(err)
	}
	right, wrong, missed, denied, absent, none := 0, 0, 0, 0, 0, 0
	asking := map[string]func(string, ...model.Message) smallAnswer{}
	for _, q := range all {
		if asking[q.Set] == nil {
			asking[q.Set] = asker(t, q.Set, corpora.Judged(t, q.Set))
		}
		a := asking[q.Set](strings.ReplaceAll(q.Query, "PROJECT", strings.ToUpper(q.Set[:1])+q.Set[1:]))
		first := ""
		if len(a.sources) > 0 {
			first = a.sources[0]
		}
		mark := "right"
		switch {
		case q.Page == "" && a.verdict == model.VerdictAnswered:
			absent++
			none++
			mark = "TOLD"
		case q.Page == "":
			none++
			mark = "-"
		case first != "" && regexp.MustCompile(q.Page).MatchString(first):
			right++
		case a.verdict == model.VerdictAnswered:
			wrong++
			mark = "WRONG"
		case a.verdict == model.VerdictDenied:
			denied++
			mark = "DENIED"
		default:
			missed++
			mark = "MISSED"
		}
		t.Logf("%-7s %-11s %-40s %-12s %v", mark, q.Set, q.Query, a.verdict, a.sources)
	}
	n := right + wrong + missed + denied
	t.Logf("%d of %d have a right first source, %d are told a wrong one, %d shown one, %d denied; %d of %d that the set does not answer are told one",
		right, n, wrong, missed, denied, absent, none)
	if right < 53 || wrong > 0 || absent > 0 {
		t.Error("that is fewer than before")
	}
}

// The page that readers begin with speaks for the whole project, wherever it stands.
func TestTheFirstPageSaysWhoCanBeAsked(t *testing.T) {
	t.Parallel()
	tree := corpora.Tree{"docs/guide/index.md": []byte("# Getting Started\n\nKettle is a viewer of logs.\n\n## Community\n\n" +
		"If you have questions, reach out to the community at [Discord](https://chat.example).\n")}
	for n := range 20 {
		tree[fmt.Sprintf("docs/config/%d.md", n)] = fmt.Appendf(nil, "# Options %d\n\nText.\n\n## Community plugins\n\nOther text.\n", n)
	}
	if a := asker(t, "kettle", tree)("How do I contact you?"); !strings.Contains(a.text, "chat.example") || a.verdict != model.VerdictAnswered {
		t.Error(a.verdict, a.text)
	}
}

// A verb is parted from its particle by what it is about.
func TestWhatIsDoneToItIsOneWordWithItsParticle(t *testing.T) {
	t.Parallel()
	tree := corpora.Tree{
		"docs/backup.md":  []byte("# Backup\n\nCopy the folder `data` to another disk.\n"),
		"docs/upgrade.md": []byte("# Upgrade\n\n## Go back\n\nInstall the old version to go back.\n"),
		"docs/setup.md":   []byte("# Setup\n\n```sh\ngo install kettle.example@latest\n```\n"),
		"docs/stop.md":    []byte("# Shutdown\n\nPress the red button for five seconds.\n"),
	}
	for n := range 12 {
		tree[fmt.Sprintf("docs/more/%d.md", n)] = fmt.Appendf(nil, "# Page %d\n\nWhat is set here, and how to set it down in a list.\n", n)
	}
	ask := asker(t, "kettle", tree)
	for question, source := range map[string]string{
		"How do I back it up?": "docs/backup.md", "How can I set it up?": "docs/setup.md", "How do I shut it down?": "docs/stop.md",
	} {
		if a := ask(question); len(a.sources) == 0 || a.sources[0] != source {
			t.Error(question, a.verdict, a.sources, a.text)
		}
	}
}

// How a product is installed is what its own pages say, with what is typed: not how something beside it is, nor what else can be
// downloaded.
func TestAnInstallationHasItsCommand(t *testing.T) {
	t.Parallel()
	tree := corpora.Tree{"mkdocs.yml": []byte("site_name: Kettle\nnav:\n  - about.md\n  - start.md\n  - spout.md\n")}
	for path, text := range map[string]string{
		"about.md": "# What is Kettle?\n\nKettle is a viewer of logs.\n",
		"start.md": "# Getting started\n\nKettle runs in several ways.\n\n## Standalone\n\nThis is the easiest one:\n\n" +
			"```sh\ndocker run kettle/kettle\n```\n\n## Cluster\n\nAsk us.\n",
		"spout.md":               "# Introducing Spout\n\nSpout shows processes.\n\n## Installation\n\n```sh\nbrew install spout\n```\n",
		"more/download-bills.md": "# Bills\n\nYou can download the bills from your account.\n",
	} {
		tree["docs/"+path] = []byte(text)
	}
	for n := range 12 {
		tree[fmt.Sprintf("docs/more/%d.md", n)] = fmt.Appendf(nil, "# Page %d\n\nText.\n", n)
	}
	ask := asker(t, "kettle", tree)
	for _, question := range []string{"How do I install it?", "How do I get started?"} {
		a := ask(question)
		if len(a.sources) == 0 || !strings.Contains(strings.Join(a.sources, " "), "start.md") || !strings.Contains(a.text, "**Standalone**") ||
			!strings.Contains(a.text, "docker run kettle/kettle") || strings.Contains(a.text, "spout") || strings.Contains(a.text, "bills") {
			t.Errorf("%s\n%v\n%s", question, a.sources, a.text)
		}
	}
}
