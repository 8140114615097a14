package expand

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"docent/api"
	"docent/site/markup"
)

// A directive is one form in which a generator takes something in: what matches is replaced by what is made of it; ok is
// false if that is not known.
type directive struct {
	kinds []api.SiteKind // that know it; nil for all
	re    *regexp.Regexp
	make  func(x *expander, file string, m []string, props map[string]any) (made text, ok bool)
	prose bool // within code it is code
}

var directives []directive

func init() { // since what they make may hold others
	vitePress, mkDocs, jekyll, liquid := []api.SiteKind{api.SiteVitePress}, []api.SiteKind{api.SiteMkDocs}, []api.SiteKind{api.SiteJekyll}, []api.SiteKind{api.SiteJekyll, api.SiteGitBook, api.SitePlain, ""}
	directives = []directive{
		{liquid, rawRE, asWritten, true}, // markup knows the tags in prose
		{jekyll, rawRE, literal, false},  // what is left is code
		{vitePress, regexp.MustCompile(`<!--\s*@include:\s*([^\s{}#>]+)(#[\w-]+)?(?:\{(\d*)(,?)(\d*)\})?\s*-->`), vitePressInclude, false},
		{vitePress, regexp.MustCompile(`(?m)^[ \t]*<<<[ \t]+([^\s{}#\[]+)(#[\w-]+)?(?:[ ]?\{[^}\n]*\})?[ \t]*(?:\[([^\]\n]*)\])?[ \t]*$`), vitePressCode, false},
		{[]api.SiteKind{api.SiteMdBook}, regexp.MustCompile(`\\?\{\{\s*#(\w+)\s+([^\s{}]+)[^{}]*\}\}`), mdBookInclude, false},
		{mkDocs, regexp.MustCompile(`(?m)^([ \t]*)-+8<-+[ \t]+["']([^"'\n]+)["'][ \t]*$`), snippet, false},
		{mkDocs, regexp.MustCompile(`(?m)^([ \t]*)-+8<-+[ \t]*\n((?:[^\n]*\n)*?)[ \t]*-+8<-+[ \t]*$`), snippets, false},
		{mkDocs, regexp.MustCompile(`(?m)^([ \t]*);(;*-+8<-+[^\n]*)$`), unescaped, false},
		{mkDocs, regexp.MustCompile(`\{%-?\s*include(?:-markdown)?\s+["']([^"']+)["']((?s:[^%]*?))-?%\}`), includeMarkdown, false},
		{mkDocs, regexp.MustCompile(`\{!>?\s*([^\s{}!]+)[^{}]*!\}`), includeMarkdown, false},
		{vitePress, regexp.MustCompile(`(?m)^\[\[toc\]\][ \t]*$`), nothing, true},
		{vitePress, regexp.MustCompile(`[ \t]*(?://|#|--|/\*|<!--)[ \t]*\[!code [^\]\n]*\](?:[ \t]*(?:\*/|-->))?`), nothing, false},
		{mkDocs, tightHeading, spaced, true},
		{mkDocs, regexp.MustCompile(`[ \t]*(?:#|//|--|/\*|<!--)[ \t]*\(\d+\)!(?:[ \t]*(?:\*/|-->))?`), nothing, false}, // an annotation's place
		{[]api.SiteKind{api.SiteMdBook}, regexp.MustCompile("(?ms)^[ \t]*```rust\\b[^\n]*\n.*?^[ \t]*```[ \t]*$"), unhidden, false},
		{[]api.SiteKind{api.SiteGitBook}, regexp.MustCompile(`(?m)^(#{1,6}[ \t][^\n]*?)[ \t]*<a [^>\n]*\bid="([^"\n]+)"[^>\n]*>[ \t]*</a>[ \t]*$`), headingID, true},
		{mkDocs, regexp.MustCompile(`(?m)^\[TOC\][ \t]*$`), nothing, true},
		{mkDocs, regexp.MustCompile(`:(?:material|fontawesome|octicons|simple)-([a-z0-9-]+):(?:\{[^}\n]*\})?`), icon, true},
		{mkDocs, regexp.MustCompile(`\[([^\]\[\n]+)\]\[(?:[A-Za-z_]\w*(?:\.\w+)+)?\]`), autoref, true},
		{liquid, regexp.MustCompile(`\{%-?\s*include(_relative|_cached)?\s+["']?([\w./-]+)["']?((?s:[^%]*?))-?%\}`), liquidInclude, false},
		{[]api.SiteKind{api.SiteHugo}, regexp.MustCompile(`\{\{[<%]\s*(param|include|readfile|readFile|include-md|render|snippet)\s+([^<>%\n]*?)\s*/?[>%]\}\}`), shortcode, false},
		{[]api.SiteKind{api.SiteQuarto}, regexp.MustCompile(`\{\{<\s*(include|var|meta)\s+([^<>%\s]+)\s*>\}\}`), quartoShortcode, false},
		{[]api.SiteKind{api.SiteHugo}, regexp.MustCompile(`\{\{[<%]\s*figure\s+([^<>%]*?)\s*/?[>%]\}\}`), figure, false},
		{[]api.SiteKind{api.SiteGitBook}, regexp.MustCompile(`(?m)^[ \t]*\{%\s*(tab|embed|content-ref|step|code)\b([^%]*)%\}[ \t]*$`), gitBookTag, false},
		{jekyll, regexp.MustCompile(`(?m)^(#{1,6}[ \t][^\n]*?)[ \t]*#*[ \t]*\n\{:[^}\n]*?#([\w-]+)[^}\n]*\}[ \t]*$`), headingID, true},
		{jekyll, regexp.MustCompile(`(?m)^([^\n]*\S)[ \t]*\n((?:=+|-+)[ \t]*\n)\{:[^}\n]*?#([\w-]+)[^}\n]*\}[ \t]*$`), setextID, true},
		{jekyll, regexp.MustCompile(`(?m)^[ \t]*(?:[*+-]|\d+\.)[ \t][^\n]*\n[ \t]*\{:[ \t]*toc\b[^}\n]*\}[ \t]*$`), nothing, true},
		{jekyll, regexp.MustCompile(`(?m)^[ \t]*\{:[^}\n]*\}[ \t]*\n?`), nothing, true},
		{append(jekyll, api.SiteMkDocs), regexp.MustCompile(`(?m)^ {0,3}\*\[[^\]\n]+\]:[^\n]*\n?`), nothing, true}, // what an abbreviation is short for
		{[]api.SiteKind{api.SiteWiki}, regexp.MustCompile(`\[\[([^\]\[\n|]+)(?:\|([^\]\[\n]+))?\]\]`), wikiLink, false},
		{nil, regexp.MustCompile(`\{\{-?\s*([A-Za-z_$][\w.$-]*)\s*(?:\|\s*default[(:]?\s*["']([^"']*)["']\)?\s*)?-?\}\}`), value, false},
	}
}

// headingID puts the id that kramdown has below a heading into it.
func headingID(_ *expander, _ string, m []string, _ map[string]any) (text, bool) {
	return text(m[1] + " {#" + m[2] + "}"), true
}

// tightHeading is a heading without a blank behind its signs, which Python-Markdown knows.
var tightHeading = regexp.MustCompile(`(?m)^(#{1,6})([^#\s!])`)

func spaced(_ *expander, _ string, m []string, _ map[string]any) (text, bool) {
	return text(m[1] + " " + m[2]), true
}

func setextID(_ *expander, _ string, m []string, _ map[string]any) (text, bool) {
	return text(m[1] + " {#" + m[3] + "}\n" + m[2]), true
}

var hiddenLine = regexp.MustCompile(`(?m)^[ \t]*#(?: .*)?\n`)

// unhidden is code in Rust without the lines that mdBook hides.
func unhidden(_ *expander, _ string, m []string, _ map[string]any) (text, bool) {
	return text(hiddenLine.ReplaceAllString(m[0], "")), true
}

var rawRE = regexp.MustCompile(`(?s)\{%-?\s*raw\s*-?%\}(.*?)\{%-?\s*endraw\s*-?%\}`)

// asWritten keeps what stands there, so that nothing in it is replaced.
func asWritten(_ *expander, _ string, m []string, _ map[string]any) (text, bool) {
	return text(m[0]), true
}

// literal is what stands between Liquid's tags raw and endraw.
func literal(_ *expander, _ string, m []string, _ map[string]any) (text, bool) {
	return text(m[1]), true
}

// unescaped is a directive that is shown, not followed.
func unescaped(_ *expander, _ string, m []string, _ map[string]any) (text, bool) {
	return text(m[1] + m[2]), true
}

// icon is what an icon of Material for MkDocs tells without its picture.
func icon(_ *expander, _ string, m []string, _ map[string]any) (text, bool) {
	switch name := m[1]; {
	case strings.Contains(name, "check"):
		return text("✓"), true
	case strings.Contains(name, "close"), strings.Contains(name, "cancel"):
		return text("✗"), true
	}
	return nil, true
}

func nothing(*expander, string, []string, map[string]any) (text, bool) { return nil, true }

// directives replaces what is taken in by the generator's templates.
func (x *expander) directives(file string, content []byte, props map[string]any) text {
	var edits []edit
	covered := make([]bool, len(content)) // by what matched before
	var code []bool                       // once it is asked
	inCode := func(i int) bool {
		if code == nil {
			code = codeOf(content)
		}
		return code[i]
	}
	for _, d := range directives {
		if d.kinds != nil && !slices.Contains(d.kinds, x.Kind) {
			continue
		}
		for _, at := range d.re.FindAllSubmatchIndex(content, -1) {
			if slices.Contains(covered[at[0]:at[1]], true) || d.prose && inCode(at[0]) {
				continue
			}
			m := make([]string, len(at)/2)
			for i := range m {
				if at[2*i] >= 0 {
					m[i] = string(content[at[2*i]:at[2*i+1]])
				}
			}
			made, ok := d.make(x, file, m, props)
			if !ok {
				stays := strings.HasPrefix(m[0], "{{") && !strings.HasPrefix(m[0], "{{#") // and is left out by its kind
				if !stays || x.Kind == api.SiteJekyll || !inCode(at[0]) {                 // in code, it is what the page shows
					x.lose(m[0])
				}
				if stays {
					continue
				}
				made = nil
			}
			edits = append(edits, edit{at[0], at[1], made})
			for i := at[0]; i < at[1]; i++ {
				covered[i] = true
			}
		}
	}
	if len(edits) == 0 {
		return content
	}
	return text(content).replace(edits)
}

// codeOf says of each byte of a page whether it is code.
func codeOf(content []byte) []bool {
	out := make([]bool, len(content)+1)
	for _, c := range markup.Parse("x.md", content).Code {
		for i := c.Span.Start; i < c.Span.End; i++ {
			out[i] = true
		}
	}
	return out
}

// value is what a name stands for in the settings, in the page's front matter, or among what a file is given.
func value(x *expander, _ string, m []string, props map[string]any) (text, bool) {
	name := m[1]
	for _, of := range []struct {
		prefix string
		values map[string]any
	}{{"page.meta.", x.front}, {"page.", x.front}, {"$frontmatter.", x.front}, {"frontmatter.", x.front}, {"include.", props}, {"props.", props}, {"", x.Values}} {
		if rest, ok := strings.CutPrefix(name, of.prefix); ok {
			if s, ok := said(of.values, rest); ok {
				return x.value(s)
			}
		}
	}
	if m[2] != "" {
		return text(m[2]), true
	}
	return nil, false
}

// said is the text under a name of several parts.
func said(values map[string]any, name string) (string, bool) {
	for {
		first, rest, more := strings.Cut(name, ".")
		v, ok := values[first]
		if !ok {
			return "", false
		}
		if !more {
			switch v.(type) {
			case string, bool, int, int64, uint64, float64:
				return fmt.Sprint(v), true
			}
			return "", false
		}
		if values, ok = v.(map[string]any); !ok {
			return "", false
		}
		name = rest
	}
}

// lines are those of a text between two of its lines, counted from 1; 0 is its beginning or end.
func lines(content []byte, from, to int) []byte {
	all := bytes.SplitAfter(content, []byte("\n"))
	if to <= 0 || to > len(all) {
		to = len(all)
	}
	from = max(1, from)
	if from > to {
		return nil
	}
	return bytes.Join(all[from-1:to], nil)
}

var (
	marker = regexp.MustCompile(`(?m)^.*(?:#(?:end)?region\b|--8<-- *\[|ANCHOR(?:_END)?:|(?:tag|end)::[\w-]+\[\]).*\n?`)
	forms  = []string{`#region[ \t]+%s\b`, `--8<-- *\[start:%s\]`, `ANCHOR:[ \t]*%s\b`, `tag::%s\[\]`}
	ends   = []string{`#endregion`, `--8<-- *\[end:%s\]`, `ANCHOR_END:[ \t]*%s\b`, `end::%s\[\]`}
)

// region is what stands between the marks of a name in a file; ok is false if there are none.
func region(content []byte, name string) (of []byte, ok bool) {
	for i, form := range forms {
		from := regexp.MustCompile(`(?m)^.*` + strings.ReplaceAll(form, "%s", regexp.QuoteMeta(name)) + `.*$`).FindIndex(content)
		if from == nil {
			continue
		}
		rest := content[from[1]:]
		if to := regexp.MustCompile(`(?m)^.*` + strings.ReplaceAll(ends[i], "%s", regexp.QuoteMeta(name)) + `.*$`).FindIndex(rest); to != nil {
			rest = rest[:to[0]]
		}
		return bytes.Trim(rest, "\n"), true
	}
	return nil, false
}

// sectionOf is the section of a heading with this anchor.
func sectionOf(content []byte, anchor string) (of []byte, ok bool) {
	p := markup.Parse("x.md", content)
	for i, h := range p.Headings {
		if h.Anchor != anchor {
			continue
		}
		end := len(content)
		for _, next := range p.Headings[i+1:] {
			if next.Level <= h.Level {
				end = next.Span.Start
				break
			}
		}
		return content[h.Span.Start:end], true
	}
	return nil, false
}

// part cuts a region, a section or lines out of a file; a name that is not there is no part of it.
func part(content []byte, name string, from, to int) ([]byte, bool) {
	if name != "" {
		of, ok := region(content, name)
		if !ok {
			of, ok = sectionOf(content, name)
		}
		if !ok {
			return nil, false
		}
		content = of
	}
	return marker.ReplaceAll(lines(content, from, to), nil), true
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }

func vitePressInclude(x *expander, file string, m []string, props map[string]any) (text, bool) {
	name, content := x.find(x.beside(file, m[1])...)
	if name == "" {
		return nil, false
	}
	to := number(m[5])
	if m[4] == "" {
		to = number(m[3])
	}
	if m[2] == "" && m[3]+m[4]+m[5] == "" { // lines are counted in the whole file
		content = content[markup.ReadFront("x.md", content).Span.End:]
	}
	content, ok := part(content, strings.TrimPrefix(m[2], "#"), number(m[3]), to)
	if !ok {
		return nil, false
	}
	return x.include(name, content, props, "")
}

// code is a file as a block of code.
func (x *expander) code(file string, content []byte, ok bool) (text, bool) {
	if !ok || !x.admits(content) {
		return nil, false
	}
	fence := "```"
	for bytes.Contains(content, []byte(fence)) {
		fence += "`"
	}
	out := text(fence + strings.TrimPrefix(path.Ext(file), ".") + "\n")
	body := markup.Dedent(string(content))
	out.write(body)
	out.write("\n" + fence)
	return out, true
}

func vitePressCode(x *expander, file string, m []string, _ map[string]any) (text, bool) {
	name, content := x.find(x.beside(file, m[1])...)
	if name == "" {
		return nil, false
	}
	content, ok := part(content, strings.TrimPrefix(m[2], "#"), 0, 0)
	made, ok := x.code(name, content, ok)
	if line := bytes.IndexByte(made, '\n'); m[3] != "" && line > 0 { // its tab
		made = slices.Concat(made[:line], text(" ["+m[3]+"]"), made[line:])
	}
	return made, ok
}

func mdBookInclude(x *expander, file string, m []string, _ map[string]any) (text, bool) {
	if strings.HasPrefix(m[0], `\`) {
		return text(m[0][1:]), true
	}
	if m[1] == "title" {
		return nil, true
	}
	if m[1] != "include" && m[1] != "rustdoc_include" && m[1] != "playground" {
		return nil, false
	}
	name, rest, _ := strings.Cut(m[2], ":")
	name, content := x.find(path.Join(path.Dir(file), name))
	if name == "" {
		return nil, false
	}
	first, last, ranged := strings.Cut(rest, ":")
	ok := true
	switch from, err := strconv.Atoi(first); {
	case rest == "":
		content, ok = part(content, "", 0, 0)
	case err == nil || first == "":
		to := number(last)
		if !ranged {
			to = from
		}
		content, ok = part(content, "", from, to)
	default:
		content, ok = part(content, first, 0, 0)
	}
	if !ok {
		return nil, false
	}
	content = bytes.TrimRight(content, "\n")
	switch {
	case m[1] == "playground":
		return x.code(name, content, true)
	case path.Ext(name) == ".md":
		return x.include(name, content, nil, "")
	}
	return content, x.admits(content)
}

var snippetLines = regexp.MustCompile(`:(\d*(?::\d*)?(?:,\d*:?\d*)*)$`)

func snippet(x *expander, file string, m []string, _ map[string]any) (text, bool) {
	name, section, ranges := m[2], "", ""
	if strings.Contains(name, "://") {
		return nil, false
	}
	if at := snippetLines.FindStringSubmatch(name); at != nil {
		name, ranges = strings.TrimSuffix(name, at[0]), at[1]
	} else if stem, of, ok := strings.Cut(name, ":"); ok {
		name, section = stem, of
	}
	name, content := x.find(x.snippetPaths(name)...)
	var cut []byte
	for lines := range strings.SplitSeq(ranges, ",") {
		from, to, _ := strings.Cut(lines, ":")
		of, ok := part(content, section, number(from), number(to))
		if name == "" || !ok || !x.gives(len(of)) {
			return nil, false
		}
		cut = append(cut, of...)
	}
	made, ok := x.include(name, bytes.TrimRight(cut, "\n"), nil, "")
	out := text(m[1])
	out = append(out, made.indented(m[1])...)
	return out, ok
}

// snippetPaths are those of the extension's own folders, and of those that it has by itself.
func (x *expander) snippetPaths(name string) []string {
	var out []string
	for _, base := range append(slices.Clip(x.Bases), x.Root) {
		out = append(out, path.Join(base, name))
	}
	return out
}

func snippets(x *expander, file string, m []string, props map[string]any) (text, bool) {
	var out text
	for name := range strings.Lines(m[2]) {
		if name = strings.TrimSpace(name); name == "" || strings.HasPrefix(name, ";") {
			continue
		}
		made, ok := snippet(x, file, []string{"", m[1], strings.Trim(name, `"'`)}, props)
		if !ok {
			x.lose(name)
			continue
		}
		out = append(out, made...)
		out.write("\n\n")
	}
	return out, true
}

var option = regexp.MustCompile(`([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))`)

// options are the named parameters of a template.
func options(s string) map[string]any {
	out := map[string]any{}
	for _, m := range option.FindAllStringSubmatch(s, -1) {
		out[m[1]] = m[2] + m[3] + m[4]
	}
	return out
}

// autoref is the text of a link to an object of a program that a plug-in documents.
func autoref(x *expander, _ string, m []string, _ map[string]any) (text, bool) {
	if !x.Autorefs || strings.HasSuffix(m[0], "[]") && !strings.Contains(m[1], ".") {
		return text(m[0]), true
	}
	return text(m[1]), true
}

func includeMarkdown(x *expander, file string, m []string, _ map[string]any) (text, bool) {
	name, content := x.find(x.beside(file, m[1])...)
	if name == "" {
		return nil, false
	}
	if len(m) > 2 {
		o := options(m[2])
		if start, _ := o["start"].(string); start != "" {
			_, content, _ = bytes.Cut(content, []byte(start))
		}
		if end, _ := o["end"].(string); end != "" {
			content, _, _ = bytes.Cut(content, []byte(end))
		}
	}
	return x.include(name, bytes.TrimSpace(content), nil, "")
}

func liquidInclude(x *expander, file string, m []string, props map[string]any) (text, bool) {
	names := []string{path.Join(path.Dir(file), m[2])}
	if m[1] != "_relative" && x.Kind != api.SiteGitBook {
		names = []string{path.Join(x.Root, "_includes", m[2])}
	}
	name, content := x.find(names...)
	if name == "" {
		return nil, false
	}
	given := options(m[3])
	for key, v := range given { // {{ x }} and include.x within the parameters are values themselves
		if s, ok := v.(string); ok && strings.HasPrefix(s, "include.") {
			given[key] = props[strings.TrimPrefix(s, "include.")]
		}
	}
	return x.include(name, bytes.TrimRight(content, "\n"), given, "")
}

var quoted = regexp.MustCompile("[\"'`]([^\"'`]+)[\"'`]|([^\\s=\"']+)")

func shortcode(x *expander, file string, m []string, _ map[string]any) (text, bool) {
	o := options(m[2])
	first := ""
	if at := quoted.FindStringSubmatch(m[2]); at != nil && len(o) == 0 {
		first = at[1] + at[2]
	}
	for _, key := range []string{"file", "path", "src", "name"} {
		if s, ok := o[key].(string); ok && first == "" {
			first = s
		}
	}
	if m[1] == "param" {
		for _, values := range []map[string]any{x.front, x.Values} {
			for _, key := range []string{"params." + first, first} {
				if s, ok := said(values, key); ok {
					return x.value(s)
				} else if s, ok := said(values, strings.ToLower(key)); ok { // as Hugo has its settings
					return x.value(s)
				}
			}
		}
		return nil, false
	}
	name, content := x.find(x.beside(file, first)...)
	if name == "" || first == "" {
		return nil, false
	}
	if lang, ok := o["code"].(string); ok && lang == "true" || !markdown(name) {
		return x.code(name, content, true)
	}
	return x.include(name, bytes.TrimRight(content, "\n"), nil, "")
}

// quartoShortcode takes in a file, or a value of the project or of the page.
func quartoShortcode(x *expander, file string, m []string, props map[string]any) (text, bool) {
	values := x.front
	switch m[1] {
	case "include":
		return shortcode(x, file, m, props)
	case "var":
		values, _ = x.Values["var"].(map[string]any)
	}
	s, ok := said(values, m[2])
	if !ok {
		return nil, false
	}
	return x.value(s)
}

// figure is a picture with the words that Hugo shows at it.
func figure(_ *expander, _ string, m []string, _ map[string]any) (text, bool) {
	o := options(m[1])
	said := func(key string) string { s, _ := o[key].(string); return s }
	return text("![" + said("alt") + "](" + said("src") + ") " + strings.TrimSpace(said("title")+" "+said("caption")+" "+said("attr"))), true
}

func markdown(name string) bool {
	return slices.Contains([]string{".md", ".mdx", ".markdown", ".html", ".txt", ".rst", ".adoc", ".qmd"}, strings.ToLower(path.Ext(name)))
}

func gitBookTag(_ *expander, _ string, m []string, _ map[string]any) (text, bool) {
	o := options(m[2])
	switch m[1] {
	case "tab", "code":
		if title, ok := o["title"].(string); ok {
			return text("\n**" + title + "**\n"), true
		}
	case "embed":
		if to, ok := o["url"].(string); ok {
			return text("<" + to + ">"), true
		}
	}
	return nil, true
}

func wikiLink(_ *expander, _ string, m []string, _ map[string]any) (text, bool) {
	shown, to := m[1], m[1]
	if m[2] != "" { // GitHub has the text first
		to = m[2]
	}
	if strings.Contains(to, ":") {
		return text(shown), true
	}
	name, anchor, _ := strings.Cut(strings.TrimSpace(to), "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	return text("[" + shown + "](" + strings.ReplaceAll(name, " ", "-") + anchor + ")"), true
}
