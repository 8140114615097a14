package check

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
	"docent/internal/formats"
	"docent/site/markup"
)

// What a documentation site's build runs is left to people: a pull request whose check builds the site would run it
// before anybody has read it. Files that steer the build as a whole are not written at all (steering); of configuration
// that holds the navigation too, the keys that name code stay as they are (steeringKeys); and pages get no code that
// the documentation does not have already (codeIn).

var buildFile = regexp.MustCompile(
	`(?i)^(?:package\.json|tsconfig.*\.json|deno\.jsonc?|composer\.json|renovate\.json5?|(?:netlify|vercel|wrangler|book|pyproject|cargo|fly)\.(?:toml|json)|` +
		`.*\.(?:config|data|paths)\.[cm]?[jt]sx?|sidebars\.[cm]?[jt]sx?|(?:docker-)?compose\.ya?ml|action\.ya?ml|requirements.*\.txt|codecov\.ya?ml|\.?gitlab-ci\.ya?ml|azure-pipelines\.ya?ml|` +
		`conf\.py|_quarto\.ya?ml|antora(?:-playbook)?\.ya?ml)$`)

// Steering tells files whose content is run, or says what is.
func Steering(p string) bool { return buildFile.MatchString(path.Base(p)) }

// steeringKeys are the top-level keys that name what a build runs or reads elsewhere, by the configuration's name.
func steeringKeys(p string) []string {
	switch strings.ToLower(path.Base(p)) {
	case "mkdocs.yml", "mkdocs.yaml": // https://www.mkdocs.org/user-guide/configuration/
		return []string{"hooks", "plugins", "markdown_extensions", "theme", "INHERIT", "watch", "docs_dir", "site_dir"}
	case "_config.yml", "_config.yaml", "_config.toml": // https://jekyllrb.com/docs/configuration/options/
		return []string{"plugins", "gems", "plugins_dir", "whitelist", "safe", "theme", "remote_theme", "layouts_dir",
			"includes_dir", "source", "destination"}
	case "hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json", "config.toml", "config.yaml", "config.yml",
		"config.json": // https://gohugo.io/configuration/
		return []string{"security", "module", "theme", "themesDir", "build", "caches", "publishDir", "contentDir",
			"layoutDir", "dataDir"}
	}
	return nil
}

// yamlTag is a tag with which YAML names code or the environment: MkDocs obeys both.
var yamlTag = regexp.MustCompile(`!!?(?:python/[\w./:-]+|ENV)`)

// steeringChange returns the key that the change sets and that decides what a build runs.
func steeringChange(p string, old, now []byte) string {
	keys := steeringKeys(p)
	if keys == nil {
		return ""
	}
	read := formats.YAML
	switch path.Ext(p) {
	case ".toml":
		read = formats.TOML
	case ".json":
		read = formats.JSON
	}
	for _, tag := range yamlTag.FindAllString(string(now), -1) {
		if !strings.Contains(string(old), tag) {
			return tag
		}
	}
	var before, after map[string]any
	if read(now, &after) != nil {
		return "" // said elsewhere
	}
	_ = read(old, &before)
	for _, key := range keys {
		// Hugo and Jekyll do not mind the case of their keys everywhere.
		for name, value := range after {
			if strings.EqualFold(name, key) && !reflect.DeepEqual(withoutRedirects(value), withoutRedirects(before[name])) {
				return name
			}
		}
	}
	return ""
}

// withoutRedirects are MkDocs's plug-ins without the addresses that the one called redirects is given: these are data.
func withoutRedirects(plugins any) any {
	bare := func(m map[string]any) map[string]any {
		options, ok := m["redirects"].(map[string]any)
		if ok && len(options) == 1 && options["redirect_maps"] != nil {
			m = maps.Clone(m)
			m["redirects"] = nil
		}
		return m
	}
	switch v := plugins.(type) {
	case map[string]any:
		return bare(v)
	case []any:
		v = slices.Clone(v)
		for i, p := range v {
			if m, ok := p.(map[string]any); ok {
				v[i] = bare(m)
			} else if p == "redirects" {
				v[i] = map[string]any{"redirects": nil}
			}
		}
		return v
	}
	return plugins
}

// A codeBase is what the documentation runs already.
type codeBase struct {
	scripts map[string]bool
	modules map[string]bool
}

// codeIn lists the code of a page that runs when the site is built, and the modules that it imports.
func codeIn(s *pages.Site, p *markup.Page) (scripts, modules []string) {
	if s.Generator.Kind == api.SiteDocusaurus && p.Format == markup.Markdown { // Docusaurus reads its .md as MDX
		p = markup.Parse(workspace.Stem(p.Path)+".mdx", p.Src)
	}
	for _, sp := range p.Scripts {
		scripts = append(scripts, strings.TrimSpace(string(p.Src[sp.Start:sp.End])))
	}
	if p.Format == markup.MDX {
		for _, l := range p.Links {
			if l.Kind == markup.ImportLink {
				modules = append(modules, l.Dest)
			}
		}
	}
	if s.Generator.Kind == api.SiteVitePress { // whose pages are Vue components
		for i, t := range p.Tags {
			if strings.EqualFold(t.Name, "script") && !t.Close {
				end := len(p.Src)
				if t.Partner > i {
					end = p.Tags[t.Partner].Span.End
				}
				scripts = append(scripts, strings.TrimSpace(string(p.Src[t.Span.Start:end])))
			}
		}
		code := p.Code // in the order of their beginnings, as the matches are
		for _, m := range mustache.FindAllSubmatchIndex(p.Src, -1) {
			for len(code) > 0 && code[0].Span.End <= m[0] {
				code = code[1:]
			}
			if len(code) == 0 || m[0] < code[0].Span.Start {
				scripts = append(scripts, strings.TrimSpace(string(p.Src[m[2]:m[3]])))
			}
		}
	}
	return scripts, modules
}

var mustache = regexp.MustCompile(`\{\{((?s:.*?))\}\}`)

// readCodeBase reads what the documentation runs as it stands.
func readCodeBase(s *pages.Site) (codeBase, error) {
	known := codeBase{scripts: map[string]bool{}, modules: map[string]bool{}}
	pages, err := s.All()
	if err != nil {
		return known, err
	}
	for _, p := range pages {
		scripts, modules := codeIn(s, p)
		for _, code := range scripts {
			known.scripts[code] = true
		}
		for _, m := range modules {
			known.modules[m] = true
		}
	}
	return known, nil
}

// newCode tells what code a page would run that the documentation does not run already and that does more than hold
// values.
func newCode(s *pages.Site, p *markup.Page, known codeBase) string {
	scripts, modules := codeIn(s, p)
	for _, m := range modules {
		if !known.modules[m] && !ownModule(m) {
			return fmt.Sprintf("an import of %s", say.Quote(m))
		}
	}
	for _, code := range scripts {
		if !known.scripts[code] && calls(code) {
			return fmt.Sprintf("the code %s", say.Quote(say.OneLine(code, 80)))
		}
	}
	return ""
}

// ownModule tells modules that are the site's own files: pages, snippets and components.
func ownModule(m string) bool {
	m = strings.TrimPrefix(m, "!!raw-loader!") // it is shown, not run
	return strings.HasPrefix(m, "./") || strings.HasPrefix(m, "../") || strings.HasPrefix(m, "/") && !strings.HasPrefix(m,
		"//") || strings.HasPrefix(m, "@site/") || strings.HasPrefix(m, "@theme/")
}

// quotedText is a string or comment of JavaScript, and a template that nothing is put into and that nothing is called
// with.
var quotedText = regexp.MustCompile(
	"\"(?:[^\"\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\n]|\\\\.)*'|/\\*(?s:.*?)\\*/|(^|[=([{,:?]\\s*)`(?:[^`\\\\$]|\\\\.)*`")

// calls reports whether code may call something. What has no parenthesis and no template outside of strings and comments
// only holds values, components and names.
func calls(code string) bool {
	return strings.ContainsAny(quotedText.ReplaceAllString(code, "$1"), "(`")
}
