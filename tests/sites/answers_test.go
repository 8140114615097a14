package sites

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"docent/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// Questions whose answer stands on one page of a real site are put to the built-in model as readers put them: the project
// is a repository and the address of its built site. Right is an answer whose first source is that page.
func TestKnownAnswersComeFirst(t *testing.T) {
	root := realSites
	if root == "" {
		t.Skip("no folder of repositories and their sites is named by DOCENT_SITES")
	}
	sites, err := txtar.ParseFile("testdata/real/sites.txtar")
	if err != nil {
		t.Fatal(err)
	}
	questions, err := txtar.ParseFile("testdata/real/questions.txtar")
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	for _, f := range questions.Files {
		i := slices.IndexFunc(sites.Files, func(s txtar.File) bool { return s.Name == f.Name })
		out := filepath.Join(root, "out", f.Name)
		if _, err := os.Stat(out); err != nil || i < 0 {
			t.Logf("%s is not built", f.Name)
			continue
		}
		s := says(sites.Files[i].Data)
		base := s["base"]
		address := host(t, out, base).URL + base
		p := harness.NewProject(t, data, f.Name, filepath.Join(root, "src", f.Name), "--docs-dir", s["docs-dir"], "--public",
			"--site-url", address+"/"+s["start"], "--allow-private", "--answers-from", "site")
		right, of := 0, 0
		for line := range strings.Lines(string(f.Data)) {
			pages, question, ok := strings.Cut(strings.TrimSpace(line), ": ")
			if !ok {
				continue
			}
			text, sources := harness.Answer(t, server, p, question)
			for i, source := range sources {
				source, _, _ = strings.Cut(strings.TrimPrefix(source, address), "#")
				sources[i] = addressKey(source)
			}
			of++
			if len(sources) > 0 && slices.Contains(strings.Fields(pages), sources[0]) {
				right++
			} else {
				t.Logf("%s, %s: %q is answered from %v\n%s", f.Name, pages, question, sources, text)
			}
		}
		t.Logf("%s: %d of %d answers have the page with the answer as their first source", f.Name, right, of)
	}
}
