package pages

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"docent/agent/workspace"
	"docent/api"
	"docent/internal/formats"
	"docent/site"
	"docent/site/markup"
	"docent/site/script"
)

// A Forward is a redirect from the former address of a page in its generator's own way: a file that is edited.
type Forward struct {
	File     string
	Content  []byte
	From, To string // as it is written
	Why      string // there is none, if File is empty
}

// configs are the files that tell generators by, nearest first.
var configs = []struct {
	kind  api.SiteKind
	names []string
}{
	{api.SiteMdBook, []string{"book.toml"}}, {api.SiteGitBook, []string{".gitbook.yaml", ".gitbook.yml"}},
	{api.SiteJekyll, []string{"_config.yml", "_config.yaml"}}, {api.SiteSphinx, []string{"conf.py"}},
	{api.SiteAntora, []string{"antora.yml"}}, {"docfx", []string{"docfx.json"}}, {api.SiteWiki, []string{"_Sidebar.md", "_Footer.md"}},
}

// Maker is what makes the site, by its configuration where its pages have the addresses of plain files, and the file that
// configures it; empty if that is not known.
func (s *Site) Maker() (kind api.SiteKind, config string) {
	if s.Generated() {
		kind, config = s.Generator.Kind, s.Generator.Config()
	}
	for _, c := range configs {
		for dir := s.Files.DocsDir; ; dir = path.Dir(dir) {
			if dir == "." || dir == "/" {
				dir = ""
			}
			for _, name := range c.names {
				f := path.Join(dir, name)
				if s.Files.Exists(f) && (kind == "" || kind == c.kind && config == "") {
					return c.kind, f
				}
			}
			if dir == "" {
				break
			}
		}
	}
	if kind == "" && s.Files.Exists(path.Join(s.Files.DocsDir, "SUMMARY.md")) {
		kind = api.SiteGitBook
	}
	return kind, config
}

// onSite is an address below the documentation folder's as one below the site's root.
func (s *Site) onSite(address string) string { return path.Join("/", s.Generator.Below(), address) }

// Forward makes a redirect to a page that has moved already. was is the address that it had.
func (s *Site) Forward(from, to, was string) (Forward, error) {
	kind, config := s.Maker()
	is := s.AddressOf(to)
	if s.Generated() && site.AddressKey(is) == site.AddressKey(was) {
		return Forward{Why: "-"}, nil // it is shown where it was
	}
	none := func(format string, args ...any) (Forward, error) {
		return Forward{Why: fmt.Sprintf(format, args...)}, nil
	}
	switch kind {
	case "", api.SitePlain:
		return none("it is not known what makes the site")
	case api.SiteHugo:
		return s.inFront(to, "aliases", s.folder(was))
	case api.SiteJekyll:
		src, _ := s.Files.Read(config) // there, as far as it can be read
		page, err := s.Page(to)
		if err != nil {
			return Forward{}, err
		}
		if _, own := page.Front.Values["redirect_from"]; !own && !bytes.Contains(src, []byte("jekyll-redirect-from")) {
			return none("Jekyll makes them with the plug-in jekyll-redirect-from, which %s does not name", path.Base(config))
		}
		at := s.onSite(was)
		if strings.HasSuffix(was, "/") {
			at = s.folder(was)
		}
		return s.inFront(to, "redirect_from", at)
	case api.SiteDocusaurus:
		return s.inProgram(config, "client-redirects", "the plug-in client-redirects", `{from: %s, to: %s}`, was, is)
	case api.SiteStarlight:
		return s.inProgram(config, "", "redirects", `%s: %s`, was, is)
	case api.SiteMdBook:
		return s.inBook(config, from, to)
	case api.SiteGitBook:
		return s.inGitBook(config, from, to)
	case api.SiteMkDocs:
		return s.inMkDocs(config, from, to)
	case api.SiteSphinx:
		return s.inSphinx(config, from, to, was, is)
	case api.SiteAntora:
		return s.inAntora(from, to)
	case api.SiteNext:
		return s.inNext(config, was, is)
	case api.SiteVitePress, api.SiteWiki, "docfx":
		return none("%s makes none of its own: the host of the site has to",
			map[api.SiteKind]string{api.SiteVitePress: "VitePress", api.SiteWiki: "a wiki", "docfx": "DocFX"}[kind])
	}
	return none("that of %s is not known", kind)
}

func (s *Site) folder(address string) string {
	return strings.TrimSuffix(s.onSite(strings.TrimSuffix(address, ".html")), "/") + "/"
}

// inFront adds an address to a list in the front matter of the page.
func (s *Site) inFront(file, key, address string) (Forward, error) {
	p, err := s.Page(file)
	if err != nil {
		return Forward{}, err
	}
	edits, err := p.AddToFront(key, address)
	if err != nil {
		return Forward{Why: err.Error()}, nil
	}
	out, err := markup.Apply(p.Src, edits)
	return Forward{File: file, Content: out, From: address, To: s.Show(file)}, err
}

// inProgram adds an entry to the list of redirects in a configuration that is a program.
func (s *Site) inProgram(config, plugin, what, entry, was, is string) (Forward, error) {
	why := Forward{Why: fmt.Sprintf("%s makes them with %s, which %s does not have as a plain list", s.Generator.Generator(), what, path.Base(config))}
	src, err := s.Files.Read(config)
	if err != nil || !workspace.IsText(src) {
		return why, nil
	}
	from := bytes.Index(src, []byte(plugin))
	if from < 0 {
		return why, nil
	}
	m := regexp.MustCompile(`\bredirects\s*:\s*[\[{]`).FindIndex(src[from:])
	if m == nil {
		return why, nil
	}
	quote := byte('\'') // as the plug-in's name has it
	if k := bytes.LastIndexAny(src[:from], `"'`); k >= 0 {
		quote = src[k]
	}
	text := func(address string) string { return script.Quote(strings.TrimSuffix(s.onSite(address), "/"), quote) }
	out := entered(src, from+m[1], fmt.Sprintf(entry, text(was), text(is)))
	texts := 2
	if plugin == "" { // the name of a property is none
		texts = 1
	}
	if len(script.Texts(string(out))) != len(script.Texts(string(src)))+texts {
		return why, nil
	}
	return Forward{File: config, Content: out, From: s.onSite(was), To: s.onSite(is)}, nil
}

// entered is a program with an entry at the beginning of a list, laid out like the one that was the first.
func entered(src []byte, at int, add string) []byte {
	line := src[at:LineAfter(src, at)]
	switch rest := bytes.TrimSpace(line); {
	case len(rest) == 0: // an entry a line
		next := src[at+len(line):]
		add = EOL(src) + string(next[:len(next)-len(bytes.TrimLeft(next, " \t"))]) + add + ","
	case rest[0] != ']' && rest[0] != '}':
		add += ", "
	}
	return append(append(bytes.Clone(src[:at]), add...), src[at:]...)
}

var (
	nextRedirects = regexp.MustCompile(`\bredirects\s*(?::\s*)?(?:async\s*)?(?:function\s*)?\(\s*\)\s*(?:=>\s*)?(?:\{\s*return\s*)?\(?\[`)
	pyRedirects   = regexp.MustCompile(`(?m)^(?:redirects|rediraffe_redirects)\s*(?::[^=\n]+)?=\s*\{`)
	rediraffeFile = regexp.MustCompile(`(?m)^rediraffe_redirects\s*(?::[^=\n]+)?=\s*["']([^"'\n]+)["']`)
)

// inNext adds a redirect of Next.js's. Its base path is no part of it.
func (s *Site) inNext(config, was, is string) (Forward, error) {
	why := Forward{Why: "Next.js makes them with redirects() in its configuration, which does not have it as a plain list"}
	src, err := s.Files.Read(config)
	if err != nil || !workspace.IsText(src) {
		return why, nil
	}
	m := nextRedirects.FindIndex(src)
	if m == nil {
		return why, nil
	}
	from, to := path.Join("/", was), path.Join("/", is)
	if !bytes.Contains(src, []byte("basePath")) {
		from, to = s.onSite(was), s.onSite(is)
	}
	out := entered(src, m[1], fmt.Sprintf(`{ source: %s, destination: %s, permanent: true }`, script.Quote(from, '\''), script.Quote(to, '\'')))
	if len(script.Texts(string(out))) != len(script.Texts(string(src)))+2 {
		return why, nil
	}
	return Forward{File: config, Content: out, From: from, To: to}, nil
}

// inSphinx adds a redirect of the extension that conf.py names, sphinx_reredirects or sphinxext.rediraffe: an entry of its
// dictionary, or a line of its file.
func (s *Site) inSphinx(config, from, to, was, is string) (Forward, error) {
	src, err := s.Files.Read(config)
	if err != nil {
		return Forward{}, err
	}
	why := Forward{Why: "Sphinx makes them with an extension, such as sphinx_reredirects or sphinxext.rediraffe, and conf.py has no plain list for one"}
	root := strings.TrimPrefix(path.Dir(config), ".")
	below := func(f string) string { return strings.TrimPrefix(strings.TrimPrefix(f, root), "/") }
	old, now := below(from), below(to)
	switch {
	case bytes.Contains(src, []byte("rediraffe")):
	case bytes.Contains(src, []byte("sphinx_reredirects")):
		dir := path.Dir(was)
		if strings.HasSuffix(was, "/") {
			dir = was
		}
		slash := ""
		if strings.HasSuffix(is, "/") {
			slash = "/"
		}
		old, now = workspace.Stem(old), Relative(strings.Trim(dir, "/"), strings.TrimPrefix(is, "/"))+slash
	default:
		return why, nil
	}
	if strings.ContainsAny(old+now, "\"'\\ ") {
		return why, nil
	}
	if m := rediraffeFile.FindSubmatch(src); m != nil {
		file := path.Join(root, string(m[1]))
		list, err := s.Files.Read(file)
		if err != nil || s.Files.Writable(file) != nil {
			return why, nil
		}
		if len(list) > 0 && !bytes.HasSuffix(list, []byte("\n")) {
			list = append(bytes.Clone(list), EOL(list)...)
		}
		return Forward{File: file, Content: append(bytes.Clone(list), fmt.Sprintf("%q %q%s", old, now, EOL(list))...), From: old, To: now}, nil
	}
	m := pyRedirects.FindIndex(src)
	if m == nil {
		return why, nil
	}
	return Forward{File: config, Content: entered(src, m[1], fmt.Sprintf("%q: %q", old, now)), From: old, To: now}, nil
}

// inAntora adds the page's former place to its page-aliases, in the header of the document.
func (s *Site) inAntora(from, to string) (Forward, error) {
	src, err := s.Files.Read(to)
	if err != nil {
		return Forward{}, err
	}
	place := func(f string) (module, page string) {
		parts := strings.Split(f, "/")
		for i := 0; i+3 < len(parts); i++ {
			if parts[i] == "modules" && parts[i+2] == "pages" {
				return parts[i+1], strings.Join(parts[i+3:], "/")
			}
		}
		return "", ""
	}
	module, alias := place(from)
	own, _ := place(to)
	title := adocTitle.FindIndex(src)
	if module == "" || own == "" || title == nil || path.Ext(to) != ".adoc" {
		return Forward{Why: "Antora makes them with page-aliases in a page's header, and this page has none that can be edited"}, nil
	}
	if module != own {
		alias = module + ":" + alias
	}
	at := title[1] // behind the lines of the header
	for at < len(src) && len(bytes.TrimSpace(src[at:LineAfter(src, at)])) > 0 {
		line := src[at:LineAfter(src, at)]
		if bytes.HasPrefix(line, []byte(":page-aliases:")) {
			end := at + len(bytes.TrimRight(line, "\r\n \t"))
			sep := " "
			if len(bytes.TrimSpace(line)) > len(":page-aliases:") {
				sep = ", "
			}
			return Forward{File: to, Content: slices.Concat(src[:end], []byte(sep+alias), src[end:]), From: alias, To: s.Show(to)}, nil
		}
		at = LineAfter(src, at)
	}
	add := ":page-aliases: " + alias + EOL(src)
	if !bytes.HasSuffix(src[:at], []byte("\n")) {
		add = EOL(src) + strings.TrimSuffix(add, EOL(src))
	}
	return Forward{File: to, Content: slices.Concat(src[:at], []byte(add), src[at:]), From: alias, To: s.Show(to)}, nil
}

// adocTitle matches a document's title with what may stand before it: comments, attributes, empty lines.
var adocTitle = regexp.MustCompile(`\A(?:(?://[^\n]*|:[^\n]*|[ \t]*)\r?\n)*= [^\n]*(?:\n|\z)`)

// inBook adds a redirect of mdBook's.
func (s *Site) inBook(config, from, to string) (Forward, error) {
	src, err := s.Files.Read(config)
	if err != nil {
		return Forward{}, err
	}
	root := s.summaryFolder()
	old, now := html(strings.TrimPrefix(from, root)), html(strings.TrimPrefix(to, root))
	key, dest := "/"+old, Relative(path.Dir(old), now)
	line := jsonString(key) + " = " + jsonString(dest) + EOL(src)
	table := regexp.MustCompile(`(?m)^[ \t]*\[output\.html\.redirect\][^\n]*\n`).FindIndex(src)
	var out []byte
	switch {
	case table != nil:
		at := table[1] // behind the last entry
		for at < len(src) && bytes.Contains(src[at:LineAfter(src, at)], []byte("=")) {
			at = LineAfter(src, at)
		}
		if at == len(src) && !bytes.HasSuffix(src, []byte("\n")) {
			line = EOL(src) + strings.TrimSuffix(line, EOL(src))
		}
		out = append(append(bytes.Clone(src[:at]), line...), src[at:]...)
	case bytes.Contains(src, []byte("redirect")):
		return Forward{Why: "the redirects in " + path.Base(config) + " are not a table of their own"}, nil
	default:
		lead := EOL(src)
		if len(src) > 0 && !bytes.HasSuffix(src, []byte("\n")) {
			lead += lead
		}
		out = append(bytes.Clone(src), lead+"[output.html.redirect]"+EOL(src)+line...)
	}
	var doc map[string]any
	if err := formats.Decode(config, out, &doc); err != nil {
		return Forward{Why: path.Base(config) + " cannot be edited by itself"}, nil
	}
	return Forward{File: config, Content: out, From: key, To: dest}, nil
}

// html is where mdBook writes a page, relative to the book.
func html(rel string) string {
	rel = strings.TrimPrefix(rel, "/")
	if workspace.IsIndex(rel) {
		return path.Join(path.Dir(rel), "index.html")
	}
	return workspace.Stem(rel) + ".html"
}

// inGitBook adds a redirect of GitBook's.
func (s *Site) inGitBook(config, from, to string) (Forward, error) {
	root := s.summaryFolder()
	key := workspace.Stem(strings.TrimPrefix(strings.TrimPrefix(from, root), "/"))
	if workspace.IsIndex(from) {
		key = path.Dir(key)
	}
	value := strings.TrimPrefix(strings.TrimPrefix(to, root), "/")
	if config == "" {
		return Forward{Why: "GitBook makes them with .gitbook.yaml, which is not there"}, nil
	}
	return s.inYAML(config, []string{"redirects"}, key, value)
}

// inMkDocs adds a redirect of MkDocs's plug-in.
func (s *Site) inMkDocs(config, from, to string) (Forward, error) {
	root := s.Generator.Content()
	rel := func(f string) string { return strings.TrimPrefix(strings.TrimPrefix(f, root), "/") }
	f, err := s.inYAML(config, []string{"plugins", "redirects", "redirect_maps"}, rel(from), rel(to))
	if f.Why != "" {
		f.Why = "MkDocs makes them with the plug-in redirects, and " + f.Why
	}
	return f, err
}

// inYAML adds an entry to a mapping of a file of YAML; those that led to the old page lead on. The last part of the
// mapping's path is made if the rest is there, or if it is the only one.
func (s *Site) inYAML(config string, at []string, key, value string) (Forward, error) {
	src, err := s.Files.Read(config)
	if err != nil {
		return Forward{}, err
	}
	none := func(format string, args ...any) (Forward, error) {
		return Forward{Why: fmt.Sprintf(format, args...)}, nil
	}
	name := path.Base(config)
	out, why := addToMapping(src, at, key, value)
	if why != "" {
		return none("%s %s", name, why)
	}
	return Forward{File: config, Content: out, From: key, To: value}, nil
}

// addToMapping adds an entry to a block mapping, laid out like those that are there.
func addToMapping(src []byte, at []string, key, value string) (out []byte, why string) {
	var doc yaml.Node
	if err := formats.YAML(src, &doc); err != nil || len(doc.Content) == 0 {
		return nil, "does not parse"
	}
	y := yamlLines{lines: bytes.SplitAfter(src, []byte("\n")), eol: EOL(src)}
	node, found := doc.Content[0], 0
	var name *yaml.Node
	for _, part := range at {
		k, v := entryOf(node, part)
		if k == nil {
			break
		}
		name, node = k, v
		found++
	}
	block := node.Kind == yaml.MappingNode && node.Style&yaml.FlowStyle == 0 && len(node.Content) > 0
	empty := node.Kind == yaml.ScalarNode && node.Value == "" && name != nil
	entry := yamlText(key, " ") + ": " + yamlText(value, "") + y.eol
	indent := func(n int) string { return strings.Repeat(" ", max(n, 0)) }
	switch {
	case found == len(at) && block:
		y.lead(node, key, value)
		y.insert(lastLine(node), indent(node.Content[0].Column-1)+entry)
	case found == len(at) && y.flow(node, key, value):
		line, at := y.lines[node.Line-1], node.Column // behind the brace
		y.lines[node.Line-1] = slices.Concat(line[:at], []byte(strings.TrimSuffix(entry, y.eol)+", "), line[at:])
	case found == len(at) && empty: // nothing in it yet
		y.insert(name.Line, indent(name.Column+1)+entry)
	case found == 0 && len(at) == 1:
		y.insert(len(y.lines), at[0]+":"+y.eol+"  "+entry)
	case found == len(at)-1 && block:
		own := indent(node.Content[0].Column - 1)
		y.insert(lastLine(node), own+at[found]+":"+y.eol+own+"  "+entry)
	case found == len(at)-1 && empty: // named without settings
		line := strings.TrimRight(string(y.lines[name.Line-1]), " \t\r\n")
		own := indent(name.Column + 1)
		y.lines[name.Line-1] = []byte(strings.TrimSuffix(line, ":") + ":" + y.eol + own + at[found] + ":" + y.eol + own + "  " + entry)
	case found < len(at)-1:
		return nil, "does not name it"
	default:
		return nil, "does not have it in a form that can be edited"
	}
	out = bytes.Join(y.lines, nil)
	if !holdsEntry(out, append(slices.Clone(at), key)) {
		return nil, "cannot be edited by itself"
	}
	return out, ""
}

// holdsEntry reports whether a file of YAML has an entry.
func holdsEntry(src []byte, at []string) bool {
	var doc yaml.Node
	if err := formats.YAML(src, &doc); err != nil || len(doc.Content) == 0 {
		return false
	}
	node := doc.Content[0]
	for _, part := range at {
		if _, node = entryOf(node, part); node == nil {
			return false
		}
	}
	return true
}

// yamlLines is a file of YAML as it is edited.
type yamlLines struct {
	lines [][]byte
	eol   string
}

// insert puts text behind a line, from 1.
func (y *yamlLines) insert(line int, text string) {
	if n := len(y.lines); line >= n && len(y.lines[n-1]) > 0 { // the last one does not end
		text = y.eol + strings.TrimSuffix(text, y.eol)
	}
	y.lines[line-1] = append(bytes.Clone(y.lines[line-1]), text...)
}

// flow reports whether a mapping stands in braces that an entry can be added to.
func (y *yamlLines) flow(node *yaml.Node, key, value string) bool {
	if node.Kind != yaml.MappingNode || node.Style&yaml.FlowStyle == 0 || len(node.Content) == 0 || strings.ContainsAny(key+value, ",[]{}") {
		return false
	}
	for i := 0; i < len(node.Content); i += 2 {
		if node.Content[i].Value == value || node.Content[i+1].Value == key {
			return false // what leads to the page, or hides it, stands on the same line
		}
	}
	line := y.lines[node.Line-1]
	return node.Column <= len(line) && line[node.Column-1] == '{'
}

// lead makes the entries that led to a page lead on, and takes out one that would hide where it is now.
func (y *yamlLines) lead(node *yaml.Node, from, to string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		switch k, v := node.Content[i], node.Content[i+1]; {
		case k.Value == to:
			y.lines[k.Line-1] = nil
		case v.Value == from && v.Line == k.Line:
			y.lines[k.Line-1] = bytes.Replace(y.lines[k.Line-1], []byte(v.Value), []byte(to), 1)
		}
	}
}

// entryOf finds a name in a mapping, or in a list of names and mappings.
func entryOf(n *yaml.Node, name string) (key, value *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		for _, e := range n.Content {
			if e.Kind == yaml.ScalarNode && e.Value == name {
				return e, &yaml.Node{Kind: yaml.ScalarNode}
			}
			if k, v := entryOf(e, name); k != nil && e.Kind == yaml.MappingNode {
				return k, v
			}
		}
	}
	return nil, nil
}

// lastLine is the last line that a node takes.
func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, c := range n.Content {
		last = max(last, lastLine(c))
	}
	return last
}

// summaryFolder is the folder that the pages of mdBook and GitBook lie in, with SUMMARY.md.
func (s *Site) summaryFolder() string {
	if f := s.Summary(); f != "" {
		return strings.TrimPrefix(path.Dir(f), ".")
	}
	return s.Root()
}

// Summary is the page that lists the others, of mdBook and GitBook; empty if there is none.
func (s *Site) Summary() string {
	kind, config := s.Maker()
	dir := strings.TrimPrefix(path.Dir(config), ".")
	var doc struct {
		Book struct {
			Src string `toml:"src"`
		} `toml:"book"`
		Root      string `yaml:"root"`
		Structure struct {
			Summary string `yaml:"summary"`
		} `yaml:"structure"`
	}
	if config != "" {
		if src, err := s.Files.Read(config); err == nil {
			_ = formats.Decode(config, src, &doc) // as far as it says
		}
	}
	var try []string
	switch kind {
	case api.SiteMdBook:
		doc.Book.Src = cmp.Or(doc.Book.Src, "src")
		try = []string{path.Join(dir, doc.Book.Src, "SUMMARY.md")}
	case api.SiteGitBook:
		doc.Structure.Summary = cmp.Or(doc.Structure.Summary, "SUMMARY.md")
		try = []string{path.Join(dir, doc.Root, doc.Structure.Summary), path.Join(s.Files.DocsDir, "SUMMARY.md")}
	}
	for _, f := range try {
		if s.Files.Exists(f) {
			return f
		}
	}
	return ""
}
