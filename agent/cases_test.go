package agent_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"docent/internal/testing/need"
)

// The cases of shared/cases that ask for an edit: what stands in which files afterwards, and what is said.
func TestCasesAreEdited(t *testing.T) {
	t.Parallel()
	const root = "../../shared/cases"
	need.Peer(t, "reads the cases of shared/cases", "a checkout with shared beside it", root)
	for _, c := range []editCase{
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
			c.holds(t, files)
		})
	}
}

// An editCase is an instruction, and what it makes of a case's files.
type editCase struct {
	dir, prompt string
	changed     [][3]string // a file, and what of it becomes what; nothing else of it changes
	says        []string
	refused     bool
}

func (c *editCase) holds(t *testing.T, files map[string]string) {
	t.Helper()
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
			was = files[change[0]]
			for name, text := range files { // if it has moved
				if was == "" && path.Base(name) == path.Base(change[0]) {
					was = text
				}
			}
		}
		want[change[0]] = strings.ReplaceAll(was, change[1], change[2])
	}
	for name, text := range want {
		if got := j.tree.files()[name]; got != text {
			t.Errorf("%s is\n%s\nnot\n%s\n%s", name, got, text, res.Message)
		}
	}
	for name, text := range j.tree.files() {
		if _, told := want[name]; !told && text != files[name] && files[name] != "" && !strings.HasPrefix(c.dir, "C29") {
			t.Errorf("%s changed as well:\n%s", name, text)
		}
	}
}

// Siblings of these cases: other files, layouts and spellings of the same kinds.
func TestSiblingsOfTheCasesAreEdited(t *testing.T) {
	t.Parallel()
	a, err := txtar.ParseFile("testdata/siblings.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []editCase{
		{dir: "C09-front", prompt: `replace "organise" with "organize" everywhere`, changed: [][3]string{{"docs/a.mdx", "We organise", "We organize"}, {"docs/b.md", "organise", "organize"}}},
		{dir: "C09-front", prompt: `create page Docs/A.mdx titled "A" with content: Text.`, refused: true, says: []string{"docs/a.mdx"}},
		{dir: "C09-front", prompt: `change heading "Old part" to "New part" in docs/b.md`, changed: [][3]string{{"docs/b.md", "## Old part", "## New part"}, {"docs/a.mdx", "#old-part", "#new-part"}}},
		{dir: "C10a-mapping", prompt: "move handbook/flows.md to handbook/privacy/flows.md", changed: [][3]string{
			{"mkdocs.yml", "'start.md': 'flows.md'\n", "'start.md': 'privacy/flows.md'\n      flows.md: privacy/flows.md\n"}, {"mkdocs.yml", "- flows.md", "- privacy/flows.md"}, {"handbook/index.md", "(flows.md#top)", "(privacy/flows.md#top)"}}},
		{dir: "C10a-flow", prompt: "move docs/flows.md to docs/privacy/flows.md", changed: [][3]string{
			{"mkdocs.yml", "{old.md: index.md}", "{flows.md: privacy/flows.md, old.md: index.md}"}}},
		{dir: "C10c-typescript", prompt: "move handbook/flows.md to handbook/privacy/flows.md", changed: [][3]string{
			{"docusaurus.config.ts", "redirects: [\n", "redirects: [\n          {from: '/manual/flows', to: '/manual/privacy/flows'},\n"}, {"handbook/index.md", "(flows.md)", "(privacy/flows.md)"}}},
		{dir: "C10c-computed", prompt: "move docs/flows.md to docs/privacy/flows.md", changed: [][3]string{{"docs/privacy/flows.md", "x", "x"}}, says: []string{"No redirect was added"}},
		{dir: "C10d-nested", prompt: "move text/part/README.md to text/other/README.md", changed: [][3]string{
			{"text/SUMMARY.md", "(part/README.md)", "(other/README.md)"}, {"text/start.md", "(part/README.md)", "(other/README.md)"},
			{"book.toml", "smart-punctuation = true\n", "smart-punctuation = true\n\n[output.html.redirect]\n\"/part/index.html\" = \"../other/index.html\"\n"}}},
		{dir: "C10d-inline", prompt: "move src/flows.md to src/privacy/flows.md", changed: [][3]string{{"src/SUMMARY.md", "(./flows.md)", "(./privacy/flows.md)"}}, says: []string{"No redirect was added"}},
		{dir: "C29-markers", prompt: "fix typos everywhere", changed: [][3]string{{"guide.md", "Recieve", "Receive"}, {"about-generated.md", "Recieve", "Receive"}},
			says: []string{"say that they are generated", "api/a.mdx", "api/b.md", "api/c.rst", "api/d.md", "api/e.md"}},
		{dir: "C29-attributes", prompt: "fix typos everywhere", changed: [][3]string{{"docs/guide.md", "Recieve", "Receive"}}, says: []string{"says that it is generated", "docs/api/x.md"}},
	} {
		t.Run(c.dir, func(t *testing.T) {
			files := map[string]string{}
			for _, f := range a.Files {
				if name, ok := strings.CutPrefix(f.Name, c.dir+"/"); ok {
					files[name] = string(f.Data)
				}
			}
			if c.dir == "C09-front" { // as an editor of Windows writes, and without an end
				files["docs/a.mdx"] = strings.TrimSuffix("\uFEFF"+strings.ReplaceAll(files["docs/a.mdx"], "\n", "\r\n"), "\r\n")
				files["docs/b.md"] = strings.Replace(files["docs/b.md"], "\n", "\r\n", 2)
			}
			c.holds(t, files)
		})
	}
}
