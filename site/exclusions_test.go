package site

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"docent/api"
)

// Each form that public repositories write their configurations in says what it leaves out, and where its site is.
func TestExclusionsAreReadInTheFormsOfPublicRepositories(t *testing.T) {
	raw, err := os.ReadFile("testdata/forms.txtar")
	if err != nil {
		t.Fatal(err)
	}
	sites := map[string]map[string]string{}
	for _, f := range txtar.Parse(raw).Files {
		name, file, _ := strings.Cut(f.Name, "/")
		if sites[name] == nil {
			sites[name] = map[string]string{}
		}
		sites[name][file] = string(f.Data)
	}
	if len(sites) != 8 {
		t.Fatalf("%d sites", len(sites))
	}
	for name, files := range sites {
		s := openFiles(api.Project{}, files)
		if err := s.Unreadable(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if address, _ := s.Address(); !strings.HasPrefix(address, "https://docs.acme.test") {
			t.Errorf("%s is at %q: %q", name, address, s.Warnings())
		}
		for file := range files {
			if !IsPage(file) {
				continue
			}
			shown := s.Decide([]Entry{{Path: file}}, time.Now())[0]
			if strings.Contains(file, "internal/") == shown.State.IsPage() {
				t.Errorf("%s: %s is %s: %s", name, file, shown.State, shown.Rule)
			}
		}
		if name == "template" {
			if at := s.Shown(Page{Path: "docs/intro.md"}); at != "intro" {
				t.Errorf("the page of the template is at %q", at)
			}
		}
	}
}

// An exclusion is one file of a site, whose settings say what is left out, or can't be read.
type exclusion struct {
	generator string
	files     map[string]string
}

func exclusionOf(generator string, files ...string) exclusion {
	e := exclusion{generator, map[string]string{}}
	for i := 0; i < len(files); i += 2 {
		e.files[files[i]] = files[i+1]
	}
	return e
}

// unreadableExclusions are sites of each generator that leave out what only running something would tell.
var unreadableExclusions = func() map[string]exclusion {
	docusaurus := func(config string) exclusion {
		return exclusionOf("Docusaurus", "docusaurus.config.js", config, "docs/a.md", "")
	}
	classic := func(docs string) exclusion {
		return docusaurus("module.exports = {title: 'x', presets: [['classic', {docs: " + docs + "}]]}")
	}
	vitePress := func(config string) exclusion {
		return exclusionOf("VitePress", ".vitepress/config.ts", config, "a.md", "")
	}
	mkDocs := func(config string) exclusion { return exclusionOf("MkDocs", "mkdocs.yml", config, "docs/a.md", "") }
	hugo := func(config string) exclusion { return exclusionOf("Hugo", "hugo.toml", config, "content/a.md", "") }
	astro := func(content string) exclusion {
		return exclusionOf("Starlight", "astro.config.mjs", "import s from '@astrojs/starlight'\nexport default {site: 'https://a.dev'}",
			"src/content.config.ts", content, "src/content/docs/a.md", "")
	}
	fumadocs := func(config string) exclusion {
		return exclusionOf("Fumadocs", "next.config.mjs", "export default {}", "source.config.ts", config, "content/docs/a.mdx", "")
	}
	mintlify := func(docs, ignore string) exclusion {
		return exclusionOf("Mintlify", "docs.json", docs, ".mintignore", ignore, "a.mdx", "")
	}
	return map[string]exclusion{
		"all is computed":          docusaurus("module.exports = make()"),
		"all comes from a package": docusaurus("module.exports = require('@acme/docs-config')"),
		"presets are computed":     docusaurus("module.exports = {title: 'x', presets: presets()}"),
		"presets are taken in":     docusaurus("module.exports = {...require('@acme/base'), title: 'x'}"),
		"a preset of their own":    docusaurus("module.exports = {title: 'x', presets: [['@acme/preset', {}]]}"),
		"a preset is a function":   docusaurus("module.exports = {title: 'x', presets: [[preset, {}]]}"),
		"options of the preset":    docusaurus("module.exports = {title: 'x', presets: [['classic', options()]]}"),
		"options are taken in":     docusaurus("module.exports = {title: 'x', presets: [['classic', {...base()}]]}"),
		"a plugin is computed":     docusaurus("module.exports = {title: 'x', plugins: [[docsPlugin, {exclude: ['a']}]]}"),
		"plugins are computed":     docusaurus("module.exports = {title: 'x', plugins: plugins()}"),
		"changed afterwards": docusaurus("const c = {title: 'x', presets: [['classic', {docs: {exclude: []}}]]}\n" +
			"c.presets[0][1].docs.exclude.push('x')\nmodule.exports = c"),
		"options of docs":      classic("options()"),
		"docs take in":         classic("{path: 'docs', ...base()}"),
		"exclude":              classic("{exclude: out()}"),
		"exclude in part":      classic("{exclude: ['b', ...out()]}"),
		"exclude negates":      classic("{exclude: ['!(a)/**']}"),
		"include":              classic("{include: out()}"),
		"path":                 classic("{path: process.env.DOCS}"),
		"current":              classic("{includeCurrentVersion: process.env.X === '1'}"),
		"versions":             classic("{onlyIncludeVersions: versions()}"),
		"versions.json":        exclusionOf("Docusaurus", "docusaurus.config.js", "module.exports = {title: 'x', presets: [['classic', {}]]}", "versions.json", "[", "docs/a.md", ""),
		"VitePress computes":   vitePress("export default make()"),
		"srcExclude":           vitePress("export default {title: 'x', srcExclude: out()}"),
		"srcExclude in part":   vitePress("export default {title: 'x', srcExclude: ['b', ...out()]}"),
		"srcExclude negates":   vitePress("export default {title: 'x', srcExclude: ['!(a).md']}"),
		"a spread of a module": vitePress("import {shared} from '@acme/shared'\nexport default {...shared, title: 'x'}"),
		"a spread of no file":  vitePress("import {shared} from './shared'\nexport default {...shared, title: 'x'}"),
		"a spread behind":      vitePress("import {shared} from 'x'\nexport default {srcExclude: ['b'], ...shared}"),
		"srcDir":               vitePress("export default {title: 'x', srcDir: process.env.DOCS}"),
		"exclude_docs":         mkDocs("exclude_docs: !ENV [X, '']\n"),
		"exclude_docs is none": mkDocs("exclude_docs: |\n  internal/[\n"),
		"draft_docs":           mkDocs("draft_docs: !ENV X\n"),
		"docs_dir":             mkDocs("docs_dir: !ENV X\n"),
		"INHERIT":              mkDocs("INHERIT: !ENV [BASE, base.yml]\n"),
		"INHERIT of no file":   mkDocs("INHERIT: ../base.yml\n"),
		"INHERIT of itself":    mkDocs("INHERIT: mkdocs.yml\n"),
		"the plug-in exclude":  mkDocs("plugins:\n  - exclude:\n      glob: !ENV [X, []]\n"),
		"exclude's expression": mkDocs("plugins:\n  exclude:\n    regex: ['(?<!a)b']\n"),
		"another plug-in":      mkDocs("plugins:\n  - file-filter:\n      exclude_glob: ['a*']\n"),
		"no YAML":              mkDocs("exclude_docs: [\n"),
		"ignoreFiles":          hugo("ignoreFiles = ['(']\n"),
		"ignoreFiles is none":  hugo("ignoreFiles = {a = 1}\n"),
		"a mount":              hugo("[[module.mounts]]\nsource = 'content'\ntarget = 'content'\nexcludeFiles = ['[b-a]']\n"),
		"no TOML":              hugo("ignoreFiles = [\n"),
		"a loader":             astro("export const collections = {docs: defineCollection({loader: mine()})}"),
		"a loader's pattern":   astro("export const collections = {docs: defineCollection({loader: glob({pattern: out(), base: 'src/content/docs'})})}"),
		"collections":          astro("export const collections = make()"),
		"srcDir of Astro":      exclusionOf("Starlight", "astro.config.mjs", "import s from '@astrojs/starlight'\nexport default {site: 'https://a.dev', srcDir: x()}", "src/content/docs/a.md", ""),
		"files":                fumadocs("export const docs = defineDocs({dir: 'content/docs', docs: {files: out()}})"),
		"dir":                  fumadocs("export const docs = defineDocs({dir: x(), docs: {files: ['**/*.mdx']}})"),
		"no JSON":              mintlify("{", ""),
		".mintignore":          mintlify("{}", "internal/[\n"),
		"a part of docs.json":  mintlify(`{"navigation": {"$ref": "nav.json"}}`, ""),
	}
}()

// If it cannot be known what a site leaves out, the site is unreadable, and says which setting and what to do; until
// the project says itself what is public.
func TestASiteWhoseExclusionsAreUnknownIsUnreadableUntilTheProjectSaysWhatIsPublic(t *testing.T) {
	for name, x := range unreadableExclusions {
		s := openFiles(api.Project{}, x.files)
		err := s.Unreadable()
		if err == nil {
			t.Errorf("%s: %s leaves out nothing; warnings %q", x.generator, name, s.Warnings())
			continue
		}
		if !strings.Contains(err.Error(), "--include or --exclude") || len(s.Warnings()) == 0 {
			t.Errorf("%s: %s: %v, warnings %q", x.generator, name, err, s.Warnings())
		}
		for _, p := range []api.Project{{Include: []string{"**"}}, {Exclude: []string{"internal/"}}} {
			if s := openFiles(p, x.files); s.Unreadable() != nil {
				t.Errorf("%s: %s: unreadable for a project that says what is public: %v", x.generator, name, s.Unreadable())
			}
		}
	}
}

// A configuration that cannot be read at all is no reason to answer from everything.
func TestAConfigurationThatCannotBeReadLeavesNothingPublic(t *testing.T) {
	for _, config := range []string{"docusaurus.config.js", ".vitepress/config.ts", "mkdocs.yml", "docs.json", "hugo.toml"} {
		s := Open(api.Project{}, []string{config, "docs/a.md", "content/a.md"},
			func(string) ([]byte, error) { return nil, errors.New("disk") })
		if s.Unreadable() == nil {
			t.Errorf("%s: answered", config)
		}
	}
	s := Open(api.Project{}, []string{"docs.json", ".mintignore", "a.mdx"}, func(p string) ([]byte, error) {
		if p == ".mintignore" {
			return nil, errors.New("disk")
		}
		return []byte("{}"), nil
	})
	if s.Unreadable() == nil {
		t.Error(".mintignore: answered")
	}
}

// What a configuration leaves out is left out, and a site that says nothing of it is answered: what is computed
// elsewhere in it is no reason against that.
func TestOrdinarySitesStayAnswered(t *testing.T) {
	for name, x := range map[string]struct {
		exclusion
		shown, hidden []string
	}{
		"docusaurus": {exclusionOf("", "docusaurus.config.js", `const lightCodeTheme = require('prism-react-renderer/themes/github')
const config = {
  title: 'x', url: process.env.URL, baseUrl: process.env.DEPLOY == "true" ? "/x/" : "/", customFields: make(),
  plugins: [plugin, ...more(), ['@docusaurus/plugin-client-redirects', redirects()], async function own() { return {name: 'a'} }],
  presets: [['classic', /** @type {X} */ ({
    docs: {editUrl: ({docPath}) => 'https://x/' + docPath, remarkPlugins: [math], sidebarPath: require.resolve('./sidebars.js'), exclude: ['internal/**', ...(process.env.X ? ['b.md'] : [])]},
    blog: process.env.X ? {path: 'blog'} : false, theme: {customCss: require.resolve('./src/css/custom.css')}, ...(process.env.X && {gtag: {}}) })]],
  themeConfig: ({navbar: nav()}),
};
config.plugins.push('x');
module.exports = config;`), []string{"docs/a.md", "blog/a.md"}, []string{"docs/internal/a.md", "docs/b.md"}},
		"two documentations": {exclusionOf("", "docusaurus.config.ts", `export default {title: 'x', presets: [['classic', {docs: false, blog: false}]],
  plugins: [['@docusaurus/plugin-content-docs', ({path: 'api', id: 'api', exclude: ['x/**']} satisfies O)], other]}`),
			[]string{"api/a.md"}, []string{"api/x/a.md", "docs/a.md"}},
		"vitepress": {exclusionOf("", ".vitepress/config/index.mts", `import { defineConfig } from 'vitepress'
import { shared } from './shared'
import { en } from './en'
export default withPwa(defineConfig({ ...shared, locales: { root: { label: 'English', ...en } }, head: [...head()], themeConfig: {...theme, sidebar: sidebar()},
  rewrites: {...made}, markdown: { config(md) { md.use(x) } }, async transformPageData(p) { return p } }))`,
			".vitepress/config/shared.ts", "export const shared = defineConfig({ title: 'x', srcExclude: ['internal/**'] })",
			".vitepress/config/en.ts", "export const en = make()"), []string{"a.md"}, []string{"internal/a.md"}},
		"mkdocs": {exclusionOf("", "mkdocs.yml", "site_url: !ENV [X, '']\nINHERIT: base.yml\nhooks: [x.py]\nplugins:\n  - search\n  - exclude:\n      glob:\n        - internal/*\n        - '*.tmp.md'\n      regex: ['b.*\\.md']\n"+
			"  - git: {enabled: !ENV [CI, false]}\nmarkdown_extensions:\n  - x: {slugify: !!python/name:a.b}\n",
			"base.yml", "exclude_docs: |\n  c.md\n"),
			[]string{"docs/a.md"}, []string{"docs/internal/x/a.md", "docs/x/y.tmp.md", "docs/bc.md", "docs/c.md"}},
		"hugo": {exclusionOf("", "config/_default/hugo.toml", "baseURL = 'https://a.dev/'\nignoreFiles = ['/drafts/']\ndisableLanguages = ['fr']\n[[module.mounts]]\nsource = 'content'\ntarget = 'content'\nexcludeFiles = ['internal/**', '**.tmp.md']\n",
			"config/production/hugo.toml", "ignoreFiles = ['/secret/']\n", "content/a.md", ""),
			[]string{"content/a.md", "content/drafts/a.md"},
			[]string{"content/internal/x/a.md", "content/x/b.tmp.md", "content/secret/a.md", "content/a.fr.md"}},
		"starlight": {exclusionOf("", "astro.config.mjs", "import s from '@astrojs/starlight'\nexport default defineConfig({site: 'https://a.dev', integrations: [starlight({...x, plugins: [y()]})]})",
			"src/content.config.ts", "import { docsLoader } from '@astrojs/starlight/loaders';\nexport const collections = { docs: defineCollection({ loader: docsLoader(), schema: docsSchema({extend: x()}) }), blog: make() };"),
			[]string{"src/content/docs/a.md"}, nil},
		"a glob of Astro's": {exclusionOf("", "astro.config.mjs", "import s from '@astrojs/starlight'\nexport default {site: 'https://a.dev'}",
			"src/content.config.ts", "export const collections = { docs: defineCollection({ loader: glob({ pattern: ['**/*.md', '!internal/**'], base: './src/content/docs' }) }) }"),
			[]string{"src/content/docs/a.md"}, []string{"src/content/docs/internal/a.md", "src/content/docs/a.mdx"}},
		"fumadocs": {exclusionOf("", "next.config.mjs", "export default withMDX({reactStrictMode: true})",
			"source.config.ts", "export const docs = defineDocs({ dir: 'content/docs', docs: { files: ['**/*.mdx', '!internal/**'], schema: x } });\nexport const other = defineDocs({ dir: 'content/api' });\nexport default defineConfig({mdxOptions: {}});"),
			[]string{"content/docs/a.mdx", "content/api/internal/a.mdx"}, []string{"content/docs/internal/a.mdx"}},
		"nextra": {exclusionOf("", "next.config.mjs", "import nextra from 'nextra'\nconst withNextra = nextra({search: true})\nexport default withNextra({...x})"),
			[]string{"content/a.mdx"}, nil},
		"mintlify": {exclusionOf("", "docs.json", `{"navigation": {"pages": ["a"]}}`, ".mintignore", "internal/\n"),
			[]string{"a.mdx"}, []string{"internal/a.mdx"}},
	} {
		for _, file := range append(x.shown, x.hidden...) {
			x.files[file] = ""
		}
		s := openFiles(api.Project{}, x.files)
		if err := s.Unreadable(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, file := range x.shown {
			if d := s.Decide([]Entry{{Path: file, Place: &Place{}}}, time.Now())[0]; !d.State.IsPage() {
				t.Errorf("%s: %s is %s: %s", name, file, d.State, d.Rule)
			}
		}
		for _, file := range x.hidden {
			if d := s.Decide([]Entry{{Path: file, Place: &Place{}}}, time.Now())[0]; d.State.IsPage() {
				t.Errorf("%s: %s is %s: %s", name, file, d.State, d.Rule)
			}
		}
	}
}
