package agent_test

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/internal/testing/need"
)

// The cases of shared/cases that ask for an edit: what stands in which files afterwards, and what is said.
func TestCasesAreEdited(t *testing.T) {
	t.Parallel()
	const root = "../../shared/cases"
	need.Peer(t, "reads the cases of shared/cases", "a checkout with shared beside it", root)
	for _, c := range []struct {
		dir, prompt string
		changed     [][3]string // a file, and what of it becomes what; nothing else of it changes
		says        []string
		refused     bool
	}{
		{dir: "C09-agent-bytes", prompt: `create page docs/coordination.md titled "Coordination" with content: All agents meet at noon.`, refused: true, says: []string{"docs/coordination.md"}},
		{dir: "C09-agent-bytes", prompt: `replace "colour" with "color" everywhere`, changed: [][3]string{{"docs/crlf.md", "colour", "color"}, {"docs/mixed.md", "colour", "color"}}},
		{dir: "C10a-move-mkdocs-redirects", prompt: "move data-flows.md to privacy/data-flows.md", changed: [][3]string{
			{"mkdocs.yml", "old/start.md: index.md\n", "old/start.md: index.md\n        data-flows.md: privacy/data-flows.md\n"}, {"mkdocs.yml", "Data flows: data", "Data flows: privacy/data"},
			{"docs/index.md", "(data", "(privacy/data"}}},
		{dir: "C10b-move-hugo-aliases", prompt: "move data-flows.md to privacy/data-flows.md", changed: [][3]string{
			{"content/privacy/data-flows.md", "[/flows/]", "[/flows/, /data-flows/]"}, {"content/_index.md", `"data-flows.md"`, `"privacy/data-flows.md"`}}},
		{dir: "C10c-move-docusaurus-redirects", prompt: "move data-flows.md to privacy/data-flows.md", changed: [][3]string{
			{"docusaurus.config.js", "redirects:[", "redirects:[{from: '/data-flows', to: '/privacy/data-flows'}, "}, {"docs/intro.md", "./data", "./privacy/data"}}},
		{dir: "C10d-move-mdbook", prompt: "move data-flows.md to privacy/data-flows.md", changed: [][3]string{
			{"src/SUMMARY.md", "(data", "(privacy/data"}, {"src/README.md", "(data", "(privacy/data"}, {"book.toml", `"/old.html" = "index.html"`, "\"/old.html\" = \"index.html\"\n\"/data-flows.html\" = \"privacy/data-flows.html\""}}},
		{dir: "C23-versioned-edit", prompt: `In docs/install.md, replace "Recieve" with "Receive".`, changed: [][3]string{{"docs/install.md", "Recieve", "Receive"}},
			says: []string{"versioned_docs/version-2.0/install.md", "versioned_docs/version-1.0/install.md"}},
		{dir: "C23-versioned-edit", prompt: "fix typos everywhere", changed: [][3]string{{"docs/install.md", "Recieve", "Receive"},
			{"versioned_docs/version-2.0/install.md", "Recieve", "Receive"}, {"versioned_docs/version-1.0/install.md", "Recieve", "Receive"}}},
		{dir: "C29-generated-pages", prompt: "fix typos everywhere", changed: [][3]string{{"guide.md", "Recieve", "Receive"}},
			says: []string{"say that they are generated", "reference/cli.md", "Edit cli.rs instead", "reference/api.md", "reference/admin.md", "gen.lua"}},
		{dir: "C35-hugo-relref", prompt: "move content/guides/data-flows.md to content/privacy/data-flows.md", changed: [][3]string{
			{"content/_index.md", `relref "guides/`, `relref "privacy/`}, {"content/_index.md", `"/guides/data-flows"`, `"/privacy/data-flows"`}, {"content/_index.md", "(/guides/data-flows/)", "(/privacy/data-flows/)"},
			{"content/_index.md", "(guides/", "(privacy/"}, {"content/privacy/data-flows.md", "title: Data flows\n", "title: Data flows\naliases: [/guides/data-flows/]\n"}}},
	} {
		t.Run(c.dir, func(t *testing.T) {
			files := map[string]string{}
			err := fs.WalkDir(os.DirFS(filepath.Join(root, c.dir, "site")), ".", func(name string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					var raw []byte
					raw, err = os.ReadFile(filepath.Join(root, c.dir, "site", name))
					files[name] = string(raw)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			j := newJob(t, files)
			res := j.do(c.prompt)
			for _, s := range c.says {
				if !strings.Contains(res.Message, s) || !c.refused && !strings.Contains(strings.ReplaceAll(res.Body, `\`, ""), s) {
					t.Errorf("%q is not said: %s\n%s", s, res.Message, res.Body)
				}
			}
			if c.refused != (len(res.Changes) == 0) {
				t.Fatalf("%d changes: %s", len(res.Changes), res.Message)
			}
			want := map[string]string{}
			for _, change := range c.changed {
				was, told := want[change[0]]
				if !told {
					was = cmp.Or(files[change[0]], files["content/data-flows.md"], files["content/guides/data-flows.md"]) // if it has moved
				}
				want[change[0]] = strings.ReplaceAll(was, change[1], change[2])
			}
			for name, text := range want {
				if got := j.tree.files()[name]; got != text {
					t.Errorf("%s is\n%s\nnot\n%s\n%s", name, got, text, res.Message)
				}
			}
			for name, text := range j.tree.files() {
				if _, told := want[name]; !told && text != files[name] && files[name] != "" && c.dir != "C29-generated-pages" {
					t.Errorf("%s changed as well:\n%s", name, text)
				}
			}
		})
	}
}
