// Package expand makes of a page's file the text that its generator builds: with the files that it takes in, the values
// that its settings hold, and as Markdown if it is written in another language. What cannot be expanded is left out and
// counted. It runs nothing, and reads no file outside of the repository.
package expand

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"docent/api"
	"docent/site/markup"
)

// Bounds of what is made of one page.
const (
	deepest   = 8       // files that take in each other
	mostFiles = 200     // that a page takes in
	mostMade  = 2 << 20 // bytes
	mostTaken = 1000    // times that a file is read for it
	mostLost  = 100     // things that are named of those that could not be expanded
)

// Rules are what a site's settings say of the text of its pages. Paths are relative to the repository's root.
type Rules struct {
	Kind   api.SiteKind
	Root   string         // that paths with a slash at their beginning are below
	Bases  []string       // other folders that files are looked for in
	Values map[string]any // of templates, by their names
	// of reStructuredText: what stands before and behind each file, and roles that are short for links: what
	// their addresses and texts are made with, in which %s is the name; without a text, the address is shown
	Prolog, Epilog string
	Roles          map[string][2]string
	// references that no page defines lead to what MkDocs generates
	Autorefs bool
}

// A Text is a page as its generator builds it.
type Text struct {
	Content []byte
	Files   []string // that were looked for, each once
	Left    []string // what could not be expanded, as it is written
	// the page's front matter has no line that opens or closes it, or does not stand first
	Unopened bool
}

// Markup tells from its name a file whose language is made Markdown.
func Markup(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".rst", ".adoc", ".asciidoc", ".ipynb", ".org", ".qmd", ".rmd", ".mdoc":
		return true
	}
	return false
}

var signs = [][]byte{[]byte("{{"), []byte("{%"), []byte("{!"), []byte("8<-"), []byte("@include"), []byte("<<<"), []byte("\n{:"),
	[]byte("{:"), []byte("[["), []byte("<Snippet"), []byte("<Markdown"), []byte("<Code "), []byte("<include"), []byte("<h1 "), []byte("<h2 "), []byte("<h3 "), []byte("<h4 "), []byte("*["), []byte("[!code"), []byte("[TOC]"), []byte(")!")}

// Concerns reports whether a file may be other than it is written.
func Concerns(rules *Rules, name string, content []byte) bool {
	whole := rules.Kind == api.SiteSphinx || rules.Kind == api.SiteMdBook || rules.Kind == api.SiteGitBook
	if Markup(name) || whole || slices.ContainsFunc(signs, func(sign []byte) bool { return bytes.Contains(content, sign) }) {
		return true
	}
	if rules.Kind == api.SiteMkDocs && tightHeading.Match(content) {
		return true
	}
	return rules.Autorefs && bytes.Contains(content, []byte("][")) || isMDX(name, rules.Kind) && modules.Match(content) || oddFront(content)
}

// Front matter that is other than between two lines of hyphens or plus signs: without the line that opens it, without the one
// that closes it or behind blank lines, of a language that is named, or in JSON.
var (
	unopened = regexp.MustCompile(`\A(?:\xEF\xBB\xBF)?(?:[A-Za-z_][\w-]*:(?:[ \t].*)?\r?\n)+---[ \t]*\r?\n`)
	fronted  = regexp.MustCompile(`\A(?:\xEF\xBB\xBF)?(?:\{\s*\n\s*"|\s*\n---[ \t]*\r?\n[A-Za-z_][\w-]*:|---(?:yaml|toml|json)[ \t]*\r?\n)`)
	tagged   = regexp.MustCompile(`\A---(yaml|toml|json)[ \t]*\r?\n((?s:.*?)\n)---[ \t]*(?:\r?\n|\z)`)
	unclosed = regexp.MustCompile(`\A---[ \t]*\r?\n(?:[A-Za-z_][\w-]*:(?:[ \t].*)?\r?\n|[ \t]+\S.*\n|- .*\n)+`)
	closing  = regexp.MustCompile(`(?m)^(?:---|\.\.\.)[ \t]*\r?$`)
)

// oddFront reports whether a page has such front matter.
func oddFront(content []byte) bool {
	return unopened.Match(content) || fronted.Match(content) || unclosed.Match(content) && closing.FindIndex(content[3:]) == nil
}

// opened is a page with its front matter between two lines, and whether that was broken.
func opened(content []byte) (out []byte, broken bool) {
	if unopened.Match(content) {
		return append([]byte("---\n"), content...), true
	}
	if !oddFront(content) {
		return content, false
	}
	content = bytes.TrimPrefix(content, []byte("\xEF\xBB\xBF"))
	between := func(line string, front, body []byte) []byte {
		return slices.Concat([]byte(line+"\n"), bytes.TrimSpace(front), []byte("\n"+line+"\n"), body)
	}
	if m := tagged.FindSubmatchIndex(content); m != nil {
		line := "---"
		if string(content[m[2]:m[3]]) == "toml" {
			line = "+++"
		}
		return between(line, content[m[4]:m[5]], content[m[1]:]), false
	}
	if content[0] == '{' {
		var front bytes.Buffer
		d := json.NewDecoder(bytes.NewReader(content))
		var of json.RawMessage
		if d.Decode(&of) != nil || json.Compact(&front, of) != nil {
			return content, false
		}
		return between("---", front.Bytes(), content[d.InputOffset():]), false
	}
	late := bytes.TrimLeft(content, " \t\r\n")
	if m := unclosed.Find(late); m != nil && closing.FindIndex(late[3:]) == nil {
		return between("---", m[3:], late[len(m):]), true
	}
	return late, len(late) < len(content)
}

// Page expands a page. read reads a file by its path; labeled is the file that has a label of Labels, if that is asked.
func Page(rules *Rules, file string, content []byte, read func(string) ([]byte, error), labeled func(label string) (file string)) Text {
	groups := groupsOf(file, content)
	x := &expander{Rules: rules, labeled: labeled, read: func(name string) ([]byte, error) {
		taken, err := read(name)
		if err == nil && !Open(groups, groupsOf(name, taken)) {
			return nil, fs.ErrPermission // no page tells others what is for some
		}
		return taken, err
	}}
	broken := false
	if !Markup(file) {
		content, broken = opened(content)
	}
	made := x.file(file, content, nil, "")
	return Text{Content: made, Files: x.files, Left: x.left, Unopened: broken}
}

type expander struct {
	*Rules
	read    func(string) ([]byte, error)
	labeled func(string) string
	files   []string
	left    []string
	stack   []string // files that are being expanded
	taken   int      // files, each time
	made    int      // bytes that files and values gave
	front   map[string]any
}

// A text is what was made so far.
type text []byte

func (t *text) write(s string) { *t = append(*t, s...) }

// lose notes what could not be expanded.
func (x *expander) lose(written string) {
	if len(x.left) < mostLost {
		x.left = append(x.left, strings.TrimSpace(written))
	}
}

// admits reports whether a file may be taken in without passing a bound.
func (x *expander) admits(content []byte) bool {
	return len(x.stack) < deepest && x.gives(len(content))
}

// gives reports whether that many bytes may be made of what the page does not hold where they stand, and counts them.
func (x *expander) gives(n int) bool {
	if x.made+n > mostMade {
		return false
	}
	x.made += n
	return true
}

// value is a text in the place of a name that stands for it.
func (x *expander) value(s string) (text, bool) {
	if !x.gives(len(s)) {
		return nil, false
	}
	return text(s), true
}

// load reads a file, if not too many were read.
func (x *expander) load(name string) ([]byte, error) {
	if x.taken >= mostTaken {
		return nil, fs.ErrPermission
	}
	content, err := x.read(name)
	if err == nil {
		x.taken++
	}
	return content, err
}

// find reads the first of these files that is there.
func (x *expander) find(names ...string) (file string, content []byte) {
	for _, name := range names {
		if name = path.Clean(name); name == "." || strings.HasPrefix(name, "..") || strings.HasPrefix(name, "/") ||
			slices.Contains(x.stack, name) {
			continue
		}
		if !slices.Contains(x.files, name) {
			if len(x.files) >= mostFiles {
				return "", nil
			}
			x.files = append(x.files, name)
		}
		if content, err := x.load(name); err == nil {
			return name, content
		}
	}
	return "", nil
}

// beside are the paths that a name may mean which a file takes in.
func (x *expander) beside(from, name string) []string {
	name = strings.TrimSpace(name)
	for _, prefix := range []string{"@site/", "@/", "~/", "/"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			out := []string{path.Join(x.Root, rest), path.Join(x.Root, "src", rest)}
			for _, base := range x.Bases {
				out = append(out, path.Join(base, rest))
			}
			return out
		}
	}
	out := []string{path.Join(path.Dir(from), name)}
	if !strings.HasPrefix(name, "./") && !strings.HasPrefix(name, "../") {
		for _, base := range append(slices.Clip(x.Bases), x.Root) {
			out = append(out, path.Join(base, name))
		}
	}
	return out
}

// include is the text of a file that another one takes in, expanded if it is a page's.
func (x *expander) include(file string, content []byte, props map[string]any, children string) (text, bool) {
	if !x.admits(content) {
		return nil, false
	}
	made := x.file(file, content, props, children)
	x.made += len(made)
	return made, x.made <= mostMade
}

// file expands a file; of one that is taken in, its front matter is no text.
func (x *expander) file(name string, content []byte, props map[string]any, children string) text {
	x.stack = append(x.stack, name)
	defer func() { x.stack = x.stack[:len(x.stack)-1] }()
	front := markup.ReadFront(asMarkdown(name), content)
	if len(x.stack) == 1 {
		x.front = front.Values
	} else {
		content = content[front.Span.End:]
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".rst":
		return x.fronted(name, content, x.rst)
	case ".adoc", ".asciidoc":
		return x.fronted(name, content, x.adoc)
	case ".ipynb", ".org":
		made := text(converted(name, content))
		if len(x.stack) > 1 {
			made = made[markup.ReadFront("x.md", made).Span.End:]
		}
		return made
	case ".qmd", ".rmd":
		content = quarto(front.Values, content)
	}
	if x.Kind == api.SiteJekyll {
		content = x.liquid(content, props)
	}
	made := x.directives(name, content, props)
	if x.Kind == api.SiteSphinx {
		made = x.myst(name, made)
	}
	if isMDX(name, x.Kind) {
		return x.mdx(name, made, props, children)
	}
	return x.headings(made)
}

// fronted makes Markdown of a page in another format, below what says who may read it: its front matter, or what its first
// field or attribute of that name says.
func (x *expander) fronted(name string, content []byte, read func(name string, content []byte) text) text {
	if len(x.stack) > 1 {
		return read(name, content)
	}
	front := markup.ReadFront("x.md", content).Span.End
	made := text(slices.Clip(content[:front]))
	if m := groupsField.FindSubmatch(content[front:min(len(content), front+topOfPage)]); m != nil && front == 0 {
		made.write("---\ngroups: " + strconv.Quote(strings.Trim(string(m[1]), "[] \t")) + "\n---\n\n")
	}
	return append(made, read(name, content[front:])...)
}

// topOfPage is within how many bytes of a page that is said.
const topOfPage = 1000

// groupsField is, at the beginning of a line, a field of reStructuredText or an attribute of AsciiDoc.
var groupsField = regexp.MustCompile(`(?im)^:(?:page-)?groups:[ \t]*(\S[^\r\n]*)`)

// groupsOf are the groups whose readers alone may read a file, none if everybody may.
func groupsOf(name string, content []byte) []string {
	switch strings.ToLower(path.Ext(name)) {
	case ".rst", ".adoc", ".asciidoc":
		front := markup.ReadFront("x.md", content)
		if m := groupsField.FindSubmatch(content[:min(len(content), topOfPage)]); m != nil && front.Span.End == 0 {
			return markup.FrontList(map[string]any{"": strings.Trim(string(m[1]), "[] \t")}, "")
		}
		return front.Groups(content)
	case ".md", ".mdx", ".markdown", ".mkd", ".mkdn", ".mdown", ".qmd", ".rmd", ".mdoc", ".html", ".htm":
		content, _ = opened(content)
		return markup.ReadFront("x.md", content).Groups(content)
	case ".ipynb", ".org": // what is made of them says it
		made := converted(name, content)
		return markup.ReadFront("x.md", made).Groups(made)
	}
	return nil
}

// converted is a notebook or an Org file as Markdown.
func converted(name string, content []byte) []byte {
	if strings.EqualFold(path.Ext(name), ".ipynb") {
		return notebook(content)
	}
	return org(content)
}

// Open reports whether a text for some groups, or for everybody if there are none, may stand on a page that is for others.
func Open(page, text []string) bool {
	return len(text) == 0 || len(page) > 0 && !slices.ContainsFunc(page, func(g string) bool { return !slices.Contains(text, g) })
}

func asMarkdown(name string) string {
	if isMDX(name, "") {
		return "x.mdx"
	}
	return "x.md"
}

func isMDX(name string, kind api.SiteKind) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".mdx" || ext == ".md" && kind == api.SiteDocusaurus
}

// replace makes a text of another one, with some of its stretches replaced.
func (t text) replace(edits []edit) text {
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	var out text
	at := 0
	for _, e := range edits {
		if e.start < at {
			continue
		}
		out = append(append(out, t[at:e.start]...), e.new...)
		at = e.end
	}
	return append(out, t[at:]...)
}

// An edit puts a text in the place of a stretch.
type edit struct {
	start, end int
	new        text
}

// indented is a text whose further lines have the indentation of the line that takes it in.
func (t text) indented(in string) text {
	if in == "" || len(t) == 0 {
		return t
	}
	var edits []edit
	for i, c := range t[:len(t)-1] {
		if c == '\n' && t[i+1] != '\n' {
			edits = append(edits, edit{i + 1, i + 1, text(in)})
		}
	}
	return t.replace(edits)
}
