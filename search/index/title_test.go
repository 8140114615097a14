package index

import (
	"testing"

	"docent/api"
)

func TestTheNameOfTheProductIsTheSites(t *testing.T) {
	for _, c := range []struct {
		kind               api.SiteKind
		file, config, want string
	}{
		{api.SiteDocusaurus, "docusaurus.config.js", "module.exports = {\n  title: 'Kettle Maker Documentation',\n  tagline: 'Tea',\n  themeConfig: {\n    navbar: {\n      title: 'Nav',", "Kettle Maker"},
		{api.SiteHugo, "hugo.yaml", "baseURL: https://example.org\ntitle: Kettle # the product\nlanguages:\n  en:\n    title: Other\n", "Kettle"},
		{api.SiteHugo, "hugo.toml", "baseURL = \"x\"\ntitle = \"Kettle | Tea for all\"\n", "Kettle"},
		{api.SiteMkDocs, "mkdocs.yml", "site_name: Kettle Docs\nsite_url: https://kettle.dev\n", "Kettle"},
		{api.SiteSphinx, "conf.py", "project = u'Kettle'\nauthor = 'A'\n", "Kettle"},
		{api.SiteSphinx, "conf.py", "project = 'Kettle'\nauthor = 'A'\n", "Kettle"},
		{api.SiteMintlify, "docs.json", `{"theme": "mint", "name": "Kettle", "colors": {"name": "x"}}`, ""},
		{api.SiteMintlify, "docs.json", "{\n  \"theme\": \"mint\",\n  \"name\": \"Kettle\",\n  \"navigation\": {\n    \"name\": \"x\"", "Kettle"},
		{api.SiteStarlight, "astro.config.mjs", "export default defineConfig({\n  integrations: [\n    starlight({\n      title: 'Kettle',\n", "Kettle"},
		{api.SiteVitePress, "config.ts", "export default defineConfig({\n  title: `Kettle`,\n  title: titles.en,", ""},
		{api.SiteDocusaurus, "docusaurus.config.js", "const config = {\n  title: title(),\n", ""},
		{api.SiteJekyll, "_config.yml", "title: Docs\n", ""},
		{api.SiteMkDocs, "mkdocs.yml", "site_name: My Docs\n", ""},
		{api.SiteMkDocs, "mkdocs.yml", "site_name: McDonald's Platform\n", "McDonald's Platform"},
		{api.SiteHugo, "hugo.yaml", "title: C# Kit # ours\n", "C# Kit"},
		{api.SiteVitePress, "config.ts", "export default defineConfig({\n  title: pkg.name,\n  themeConfig: {\n    outline: {\n      title: 'On this page',\n", ""},
		{api.SiteHugo, "hugo.yaml", "title: \" \"\n", ""},
		{api.SiteHugo, "hugo.yaml", "title: \"A\tB\"\n", ""},
		{api.SitePlain, "", "title: Kettle\n", ""},
	} {
		if got := titleOf(c.kind, c.file, []byte(c.config)); got != c.want {
			t.Errorf("%s: %q is called %q, not %q", c.kind, c.config, got, c.want)
		}
	}
}
