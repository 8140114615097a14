package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docent/internal/testing/need"
)

// A build is a small site with the generator that makes it, in its strictest manner.
type build struct {
	name, command string
	args          []string // OUT stands for the folder that is written
	files         map[string]string
	edits         []string          // one job each
	git           bool              // it reads a repository
	pages         map[string]string // files of the result, with what each holds at the end
}

var builds = []build{
	{"Hugo", "hugo", []string{"--quiet", "--destination", "OUT", "--panicOnWarning"}, map[string]string{
		"hugo.toml":                    "baseURL = \"https://docs.acme.test/\"\ntitle = \"Acme\"\ndisableKinds = [\"taxonomy\", \"term\", \"RSS\", \"sitemap\"]\n",
		"layouts/_default/single.html": "<main>{{ .Content }}</main>", "layouts/_default/list.html": "<main>{{ .Content }}</main>",
		"content/_index.md":        "---\ntitle: Acme\n---\nA [one]({{< relref \"guides/flows.md\" >}}) B [two]({{% ref \"/guides/flows\" %}}) C [three]({{< ref \"flows\" >}})\n",
		"content/guides/_index.md": "---\ntitle: Guides\n---\nAll.\n", "content/guides/flows.md": "---\ntitle: Flows\n---\n[up]({{< relref \"_index.md\" >}})\n\n## Part two\n",
		"content/guides/old.md": "---\ntitle: Old\n---\nOld.\n"},
		[]string{"move content/guides/flows.md to content/privacy/data.md", "delete page content/guides/old.md",
			`create page content/guides/new.md titled "New"`, `change heading "Part two" to "Part three" in content/privacy/data.md`},
		false, map[string]string{"index.html": "/privacy/data/", "guides/flows/index.html": "https://docs.acme.test/privacy/data/", "guides/new/index.html": ""}},
	{"MkDocs", "mkdocs", []string{"build", "--strict", "--quiet", "--site-dir", "OUT"}, map[string]string{
		"mkdocs.yml":    "site_name: Acme\nmarkdown_extensions: [attr_list]\nnav:\n  - index.md\n  - Guides:\n      - guides/flows.md\n      - guides/old.md\n",
		"docs/index.md": "# Acme\n\n[flows](guides/flows.md#part-two) and [note](guides/flows.md#note)\n", "docs/guides/flows.md": "# Flows\n\n[home](../index.md)\n\n## Part two\n\nA note.\n{ #note }\n",
		"docs/guides/old.md": "# Old\n"},
		[]string{"move docs/guides/flows.md to docs/privacy/data.md", "delete page docs/guides/old.md", `create page docs/privacy/new.md titled "New"`,
			`change heading "Part two" to "Part 3: more" in docs/privacy/data.md`},
		false, map[string]string{"index.html": "privacy/data/#part-3-more", "privacy/new/index.html": "New"}},
	{"Sphinx", "sphinx-build", []string{"-W", "-q", "-n", ".", "OUT"}, map[string]string{
		"conf.py":          "project = 'Acme'\nextensions = []\nexclude_patterns = ['parts']\n",
		"index.rst":        "Acme\n====\n\n.. toctree::\n\n   guides/flows\n   guides/old\n\nSee :doc:`guides/flows`, :doc:`it </guides/flows>` and :ref:`part-two`.\n\n.. include:: parts/quota.txt\n",
		"guides/flows.rst": "Flows\n=====\n\n.. _part-two:\n\nPart two\n--------\n\nBack to :doc:`../index`.\n", "guides/old.rst": "Old\n===\n\nText.\n", "parts/quota.txt": "40 projects.\n"},
		[]string{"move guides/flows.rst to privacy/data.rst", "delete page guides/old.rst"}, false, map[string]string{"index.html": "privacy/data.html", "privacy/data.html": "Part two"}},
	{"Jekyll", "jekyll", []string{"build", "--quiet", "--strict_front_matter", "--destination", "OUT"}, map[string]string{
		"_config.yml": "title: Acme\nbaseurl: /docs\n", "index.md": "---\ntitle: Acme\n---\n[flows]({{ site.baseurl }}{% link guides/flows.md %})\n\n{% include part.md %}\n",
		"guides/flows.md": "---\ntitle: Flows\n---\nText.\n", "_includes/part.md": "Part.\n", "guides/old.md": "---\ntitle: Old\n---\nOld.\n"},
		[]string{"move guides/flows.md to privacy/data.md", "delete page guides/old.md", `create page guides/new.md titled "New"`},
		false, map[string]string{"index.html": "/docs/privacy/data.html", "guides/new.html": ""}},
	{"mdBook", "mdbook", []string{"build", "--dest-dir", "OUT"}, map[string]string{
		"book.toml": "[book]\ntitle = \"Acme\"\n\n[build]\ncreate-missing = false\n", "src/SUMMARY.md": "# Summary\n\n- [Intro](README.md)\n- [Flows](guides/flows.md)\n- [Old](old.md)\n",
		"src/README.md": "# Intro\n\nSee [flows](guides/flows.md).\n", "src/guides/flows.md": "# Flows\n\n{{#include ../parts/need.md}}\n", "src/parts/need.md": "3 GB.\n", "src/old.md": "# Old\n"},
		[]string{"move src/guides/flows.md to src/privacy/data.md", "move src/parts/need.md to src/shared/need.md", "delete page src/old.md", `create page src/privacy/new.md titled "New"`},
		false, map[string]string{"index.html": "privacy/data.html", "privacy/data.html": "3 GB.", "guides/flows.html": "../privacy/data.html", "privacy/new.html": "New"}},
	{"VitePress", "vitepress", []string{"build", "--outDir", "OUT", "."}, map[string]string{
		".vitepress/config.mts": "export default {title: 'Acme', themeConfig: {sidebar: [{text: 'A', link: '/guides/flows'}]}}\n",
		"index.md":              "# Acme\n\n<!--@include: ./parts/quota.md-->\n\n[flows](guides/flows.md)\n", "guides/flows.md": "# Flows\n\n<<< @/parts/call.ts\n\n[home](../index.md)\n",
		"parts/quota.md": "40 projects.\n", "parts/call.ts": "call()\n", "guides/old.md": "# Old\n"},
		[]string{"move guides/flows.md to privacy/data.md", "move parts/quota.md to shared/limits.md", "delete page guides/old.md"},
		false, map[string]string{"index.html": "40 projects.", "privacy/data.html": "call"}},
	{"Docusaurus", "docusaurus", []string{"build", "--out-dir", "OUT"}, map[string]string{"package.json": "{\"name\": \"acme\", \"private\": true}\n",
		"docusaurus.config.js": "module.exports = {\n  title: 'Acme', url: 'https://docs.acme.test', baseUrl: '/', onBrokenLinks: 'throw', onBrokenAnchors: 'throw',\n" +
			"  presets: [['classic', {docs: {routeBasePath: '/', sidebarPath: './sidebars.js'}, blog: false}]],\n" +
			"  plugins: [['@docusaurus/plugin-client-redirects', {redirects: [{from: '/start', to: '/'}]}]],\n};\n",
		"sidebars.js": "module.exports = {docs: ['index', 'guides/flows', 'guides/old']};\n", "docs/index.md": "# Acme\n\n[flows](guides/flows.md#part-two)\n",
		"docs/guides/flows.md": "# Flows\n\n[home](../index.md)\n\n## Part two\n\nText.\n", "docs/guides/old.md": "# Old\n"},
		[]string{"move docs/guides/flows.md to docs/privacy/data.md", "delete page docs/guides/old.md", `create page docs/privacy/new.md titled "New"`,
			`change heading "Part two" to "Part three" in docs/privacy/data.md`},
		false, map[string]string{"index.html": "/privacy/data#part-three", "guides/flows/index.html": "/privacy/data", "privacy/new/index.html": "New"}},
	{"Starlight", "astro", []string{"build", "--outDir", "OUT"}, map[string]string{"package.json": "{\"name\": \"acme\", \"private\": true, \"type\": \"module\"}\n",
		"astro.config.mjs": "import { defineConfig } from 'astro/config';\nimport starlight from '@astrojs/starlight';\n\nexport default defineConfig({\n  site: 'https://docs.acme.test',\n" +
			"  redirects: {\n    '/start': '/',\n  },\n  integrations: [starlight({ title: 'Acme', sidebar: [{ label: 'Guides', items: ['guides/flows', 'guides/old'] }] })],\n});\n",
		"src/content.config.ts": "import { defineCollection } from 'astro:content';\nimport { docsLoader } from '@astrojs/starlight/loaders';\nimport { docsSchema } from '@astrojs/starlight/schema';\n" +
			"export const collections = { docs: defineCollection({ loader: docsLoader(), schema: docsSchema() }) };\n",
		"src/content/docs/index.md": "---\ntitle: Acme\n---\n\n[flows](/guides/flows/)\n", "src/content/docs/guides/flows.md": "---\ntitle: Flows\n---\n\n## Part two\n",
		"src/content/docs/guides/old.md": "---\ntitle: Old\n---\n\nOld.\n"},
		[]string{"move src/content/docs/guides/flows.md to src/content/docs/privacy/data.md", "delete page src/content/docs/guides/old.md"},
		false, map[string]string{"index.html": "/privacy/data/", "guides/flows/index.html": "/privacy/data"}},
	{"Antora", "antora", []string{"generate", "--log-failure-level=warn", "--to-dir", "OUT", "playbook.yml"}, map[string]string{
		"playbook.yml":           "site:\n  title: Acme\ncontent:\n  sources:\n  - url: .\n    branches: HEAD\nui:\n  bundle:\n    url: ./ui\nruntime:\n  cache_dir: ./cache\n",
		"ui/layouts/default.hbs": "<main>{{{page.contents}}}</main>", "antora.yml": "name: acme\nversion: ~\ntitle: Acme\nnav:\n- modules/ROOT/nav.adoc\n",
		"modules/ROOT/nav.adoc":         "* xref:index.adoc[]\n* xref:guides/flows.adoc[]\n* xref:guides/old.adoc[]\n",
		"modules/ROOT/pages/index.adoc": "= Acme\n\nSee xref:guides/flows.adoc#_part_two[flows].\n\ninclude::partial$quota.adoc[]\n", "modules/ROOT/partials/quota.adoc": "40 projects.\n",
		"modules/ROOT/pages/guides/flows.adoc": "= Flows\n\nBack to xref:index.adoc[].\n\n== Part two\n\nText.\n", "modules/ROOT/pages/guides/old.adoc": "= Old\n\nText.\n"},
		[]string{"move modules/ROOT/pages/guides/flows.adoc to modules/ROOT/pages/privacy/data.adoc", "delete page modules/ROOT/pages/guides/old.adoc",
			`change heading "Part two" to "Part three" in modules/ROOT/pages/privacy/data.adoc`},
		true, map[string]string{"acme/index.html": "privacy/data.html#_part_two", "acme/guides/flows.html": "../privacy/data.html"}},
}

// Real builds of small sites pass before and after each kind of edit.
func TestGeneratorsBuildTheirSitesAfterEachEdit(t *testing.T) {
	need.Everything(t, "builds sites with their generators")
	for _, b := range builds {
		t.Run(b.name, func(t *testing.T) {
			command, err := exec.LookPath(b.command)
			if b.command != "mdbook" { // which no registry of ours has as a program
				command, err = need.Generator(t, b.command), nil
			}
			if err != nil {
				t.Skipf("there is no %s", b.command)
			}
			j := newJob(t, b.files)
			j.project.Site = ""
			out := ""
			make := func(after string) {
				t.Helper()
				dir := t.TempDir()
				if modules := filepath.Dir(filepath.Dir(command)); filepath.Base(modules) == "node_modules" {
					// Beside what npm installed: Docusaurus renders no page whose modules are behind a symbolic link.
					if dir, err = os.MkdirTemp(filepath.Dir(modules), "site"); err != nil {
						t.Fatal(err)
					}
					defer os.RemoveAll(dir)
				}
				for name, text := range j.tree.files() {
					file := filepath.Join(dir, filepath.FromSlash(name))
					if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if b.git {
					for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "All"}} {
						git := exec.CommandContext(t.Context(), "git", args...)
						git.Dir = dir
						if said, err := git.CombinedOutput(); err != nil {
							t.Fatalf("git: %v\n%s", err, said)
						}
					}
				}
				out = filepath.Join(t.TempDir(), "out")
				var args []string
				for _, a := range b.args {
					args = append(args, strings.ReplaceAll(a, "OUT", out))
				}
				run := exec.CommandContext(t.Context(), command, args...)
				run.Dir, run.Env = dir, append(os.Environ(), "DOCUSAURUS_NO_PERSISTENT_CACHE=true") // sites of several tests share its modules
				if said, err := run.CombinedOutput(); err != nil || strings.Contains(string(said), "[ERROR]") {
					t.Fatalf("%s: %s: %v\n%s", after, b.command, err, said)
				}
			}
			make("before")
			for _, prompt := range b.edits {
				res := j.must(prompt)
				t.Log(res.Message)
				make(prompt)
			}
			for name, holds := range b.pages {
				text, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(name)))
				if err != nil || !strings.Contains(string(text), holds) {
					t.Errorf("%s does not hold %q: %v\n%.2000s", name, holds, err, text)
				}
			}
		})
	}
}
