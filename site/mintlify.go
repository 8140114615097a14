package site

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/internal/glob"
	"docent/site/markup"
)

func (s *Site) openMintlify(files []string, read func(string) ([]byte, error)) {
	if name := path.Join(path.Dir(s.config), ".mintignore"); slices.Contains(files, name) {
		raw, err := read(name)
		if err != nil {
			s.unreadable(name, err)
		}
		s.ignored, s.ignoring = s.ignores(name, strings.Split(string(raw), "\n")), name
	}
	if s.config == "" {
		return
	}
	s.content = s.folder()
	raw, err := read(s.config)
	var doc map[string]any
	missing := ""
	if err == nil {
		doc, missing, err = readDocs(s.config, raw, read)
	}
	if err != nil {
		s.unreadable(s.config, err)
		return
	}
	of := func(v any, keys ...string) any {
		for _, k := range keys {
			m, _ := v.(map[string]any)
			v = m[k]
		}
		return v
	}
	if s.unlisted = doc["navigation"] != nil; missing != "" {
		s.unlisted = false
		s.unknown(s.config, "takes in %s, which cannot be read, so that pages outside of the navigation are not told apart",
			missing)
	}
	s.rules.Values, _ = doc["variables"].(map[string]any)
	s.apis = map[string]string{}
	s.readAPIs(doc["navigation"])
	redirects, _ := doc["redirects"].([]any)
	for _, r := range redirects {
		if from, ok := of(r, "source").(string); ok {
			if re := routePattern(strings.Trim(from, "/")); re != nil {
				s.redirects = append(s.redirects, re)
			}
		}
	}
	s.allShown = of(doc, "seo", "indexing") == "all" || of(doc, "seo", "indexHiddenPages") == true
	for _, keys := range [][]string{{"seo", "metatags", "canonical"}, {"metadata", "canonical"}} {
		if address, ok := of(doc, keys...).(string); ok {
			s.setOrigin(s.config, strings.Join(keys, "."), address)
		}
	}
}

// readAPIs finds the descriptions of APIs that the navigation of Mintlify names: a page is made of each of their
// operations.
func (s *Site) readAPIs(v any) {
	add := func(file, folder string) {
		if file != "" && !strings.Contains(file, "://") {
			file = path.Join(path.Dir(s.config), strings.TrimPrefix(file, "/"))
			s.apis[file] = strings.Trim(cmp.Or(folder, "api-reference"), "/")
		}
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			s.readAPIs(x)
		}
	case map[string]any:
		for key, x := range v {
			if key != "openapi" {
				s.readAPIs(x)
				continue
			}
			files, _ := strs(x)
			if m, ok := x.(map[string]any); ok {
				folder, _ := m["directory"].(string)
				files, _ = strs(m["source"])
				for _, file := range files {
					add(file, folder)
				}
				continue
			}
			for _, file := range files {
				add(file, "")
			}
		}
	}
}

// APIs are the folders of the pages that the generator makes of the operations of APIs, by the paths of their
// descriptions.
func (s *Site) APIs() map[string]string { return s.apis }

var pathParameter = regexp.MustCompile(`\{.*?\}`)

// OperationAddress is where Mintlify shows an operation of an API in a folder, by the rule of @mintlify/common.
func OperationAddress(folder, tag, method, at, summary string) string {
	name := func(s string) string {
		s = pathParameter.ReplaceAllString(strings.ReplaceAll(s, " ", "-"), "-")
		s = strings.TrimSuffix(strings.TrimPrefix(s, "-"), "-")
		s = strings.NewReplacer("{", "", "}", "", "(", "", ")", "", ",", "", ".", "", "'", "", "\n", "", "/", "").Replace(s)
		return markup.Lower(strings.ReplaceAll(s, "--", "-"))
	}
	page := name(summary)
	if summary == "" {
		page = strings.ToLower(method) + "-" + name(at)
	}
	return path.Join(folder, name(tag), page)
}

var mintlifyDefaults = glob.NewList(".git", ".github", ".claude", ".agents", ".idea", ".vscode", "node_modules",
	"build", "dist",
	"coverage", ".cache", "tmp", "temp", "README.md", "LICENSE.md", "CHANGELOG.md", "CONTRIBUTING.md")

func (d *decider) mintlify(e *Entry) Decision {
	rel, ok := d.inside(e.Path)
	if !ok {
		return d.outside(d.Config())
	}
	if by := d.ignored.LastAsGit(rel); by != nil && !by.Keep {
		return Decision{LeftOut, by.Text, d.file(d.ignoring)}
	}
	if by := mintlifyDefaults.LastAsGit(rel); by != nil {
		return Decision{LeftOut, "Mintlify leaves out " + by.Text, ""}
	}
	if e.OpenAPI {
		return Decision{Published, "describes an API", ""}
	}
	if IsPDF(rel) {
		return Decision{Published, "is shown as it is", ""}
	}
	if ext := strings.ToLower(path.Ext(rel)); ext != ".md" && ext != ".mdx" {
		return d.formats(e)
	}
	if strings.HasPrefix(rel, "snippets/") || strings.HasPrefix(rel, "_snippets/") {
		return Decision{Included, "Mintlify makes no pages of what lies in " + rel[:strings.IndexByte(rel, '/')], ""}
	}
	if p := d.importer(e); p != "" {
		return Decision{Included, "is imported", d.file(p)}
	}
	switch {
	case d.allShown:
	case d.unlisted && e.Place == nil:
		return Decision{Unlisted, "is not in the navigation", d.Config()}
	case e.Place != nil && e.Place.Hidden && !e.Front.Shown:
		return Decision{Unlisted, "is in a hidden part of the navigation", d.Config()}
	}
	if e.Place != nil {
		return Decision{Published, "is in the navigation", d.Config()}
	}
	return Decision{Published, "is a page of the folder", ""}
}

// readMintlify reads which languages a navigation has, and which is the default one: the one that says so, or the
// first.
func (l *layout) readMintlify(f siteConfig, docsDir string, read func(string) ([]byte, error)) {
	name := f.path
	if docsDir != "" {
		name = strings.TrimPrefix(name, docsDir+"/")
	}
	doc, _, err := readDocs(name, f.text, read)
	if err != nil {
		return
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			if list, ok := v["languages"].([]any); ok {
				for _, i := range defaultFirst(list) {
					if tag, ok := entry(list[i], "language"); ok {
						l.setDefault(tag)
						l.name(tag, tag)
					}
				}
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(doc["navigation"])
	list, _ := doc["versions"].([]any) // mint.json: {name, locale, default}
	for _, i := range defaultFirst(list) {
		if tag, ok := entry(list[i], "locale"); ok {
			l.setDefault(tag)
			l.name(tag, tag)
		}
	}
}
