package markup

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"docent/internal/brief"
)

// A Base says what the path of a reference starts from, by the rule of the generator whose construct it is.
type Base uint8

const (
	LinkBase    Base = iota // as links of Markdown: the file, the page's address, or the site's root
	FileBase                // the file's folder, or the site's sources if it begins with a slash
	SourceBase              // the site's sources: {% link x.md %}, @/x
	PartBase                // Jekyll's _includes
	PostBase                // Jekyll's _posts, without extension
	SnippetBase             // the folders that MkDocs and Mintlify take snippets from
	HugoBase                // Hugo's ref and relref: the file's folder, the content, or a name that one page has
	DocBase                 // Sphinx: as FileBase, without extension
	LabelBase               // Sphinx: a label that some page has
	WikiBase                // the name of a page
	AntoraBase              // version@component:module:family$path, or a path from the file
)

// mostReferences is how many constructs of a page are looked at beside its links.
const mostReferences = 20_000

// A construct is a form in which generators name files in the text of a page. The first group is the path.
type construct struct {
	markers []string // one of them stands in each
	re      *regexp.Regexp
	base    Base
	takes   bool // the text of the file becomes part of the page
	code    bool // it is replaced within code too
	soft    bool // one that leads nowhere is no fault: it may be of another generator
}

var constructs = []construct{
	{[]string{"{{#"}, regexp.MustCompile(`(?:^|[^\\])\{\{#(?:include|rustdoc_include|playground|playpen)\s+([^\s}:]+)[^}\n]*\}\}`),
		FileBase, true, true, false}, // mdBook
	{[]string{"@include"}, regexp.MustCompile(`<!--\s*@include:\s*([^\s#{}]+)[^\n]*?-->`), FileBase, true, true, false},
	{[]string{"<<<"}, regexp.MustCompile(`(?m)^[ \t]*<<<[ \t]*([@.\w][^\s#{\[]*)`), FileBase, true, false, false}, // VitePress
	{[]string{"{%"}, regexp.MustCompile(`\{%-?\s*include(?:-markdown)?\s+["']([^"'{}]+)["']`), FileBase, true, true, true},
	{[]string{"{%"}, regexp.MustCompile(`\{%-?\s*include_relative\s+([^\s%{}"']+)`), FileBase, true, true, false},
	{[]string{"{%"}, regexp.MustCompile(`\{%-?\s*include(?:_cached)?\s+([^\s%{}"']+)`), PartBase, true, true, false},
	{[]string{"{%"}, regexp.MustCompile(`\{%-?\s*link\s+([^\s%{}]+)`), SourceBase, false, true, false},
	{[]string{"{%"}, regexp.MustCompile(`\{%-?\s*post_url\s+([^\s%{}]+)`), PostBase, false, true, false},
	{[]string{"content-ref"}, regexp.MustCompile(`\{%\s*content-ref\s+url=["']([^"'{}]+)["']`), LinkBase, false, false, false},
	{[]string{"8<"}, regexp.MustCompile(`(?m)^[ \t>]*-+8<-+[ \t]+["']([^"'\n:]+)[^"'\n]*["'][ \t]*\r?$`), SnippetBase, true, true, false},
	{[]string{"{!"}, regexp.MustCompile(`\{!>?\s*([^\s{}!]+)\s*!\}`), SnippetBase, true, true, true}, // markdown-include
	{[]string{"{include}"}, regexp.MustCompile("(?m)^[ \t]*(?:`{3,}|:{3,})\\{include\\}[ \t]+(\\S+)"), FileBase, true, true, false},
	{[]string{"literalinclude"}, regexp.MustCompile("(?m)^[ \t]*(?:`{3,}|:{3,})\\{literalinclude\\}[ \t]+(\\S+)"), FileBase, true, true, false},
	{[]string{"<include"}, regexp.MustCompile(`<include(?:\s+(?:lang|meta)=[^>\n]*)?>\s*([^<>\s#]+)`), FileBase, true, false, true},    // Fumadocs
	{[]string{"<Markdown", "<Code"}, regexp.MustCompile(`<(?:Markdown|Code)\s+src=["']([^"'{}\s]+)["']`), FileBase, true, false, true}, // Fern
	{[]string{"<Snippet"}, regexp.MustCompile(`<Snippet\s+file=["']([^"'{}\s]+)["']`), SnippetBase, true, false, true},                 // Mintlify
	{[]string{"{doc}"}, regexp.MustCompile("\\{doc\\}`(?:[^`<\n]*<)?([^`<>\n]+?)>?`"), DocBase, false, false, false},
	{[]string{"{ref}", "{numref}"}, regexp.MustCompile("\\{(?:num)?ref\\}`(?:[^`<\n]*<)?([^`<>\n]+?)>?`"), LabelBase, false, false, true},
	{[]string{"{{<", "{{%"}, regexp.MustCompile(`\{\{[<%]\s*(?:rel)?ref\s+(?:path\s*=\s*)?["'\x60]?([^"'\x60\s>%{}]+)`), HugoBase, false, true, false},
	{[]string{"{{<", "{{%"}, regexp.MustCompile(`\{\{[<%]\s*(?:include|readfile|include-?md|code|snippet)\s+(?:file\s*=\s*)?["']?([^"'\s>%{}=]+\.\w+)`),
		HugoBase, true, true, true},
	{[]string{"[["}, regexp.MustCompile(`\[\[([^\[\]\n]+)\]\]`), WikiBase, false, false, false},
	{[]string{"require("}, regexp.MustCompile(`\brequire\(\s*["']([^"'\n]+)["']\s*\)`), LinkBase, true, false, true},
}

// named says what of reStructuredText and AsciiDoc leads to files, by the name of the role, the directive or the macro.
var named = map[string]construct{
	"include": {base: FileBase, takes: true}, "literalinclude": {base: FileBase, takes: true}, "image": {base: FileBase},
	"figure": {base: FileBase}, "download": {base: FileBase}, "doc": {base: DocBase}, "std:doc": {base: DocBase},
	"ref": {base: LabelBase, soft: true}, "numref": {base: LabelBase, soft: true}, "std:ref": {base: LabelBase, soft: true},
}

// plainReferences are those of reStructuredText and AsciiDoc that lead to files.
func (p *Page) plainReferences() (out []Link) {
	for _, l := range p.Refs {
		c, ok := named[l.Label]
		if p.Format == AsciiDoc {
			if c.base, c.soft = AntoraBase, l.Label == "image"; l.Label == "xref" {
				file, _, _ := strings.Cut(l.Dest, "#")
				l.Dest, l.At.End, ok = file, l.At.Start+len(file), FormatOf(file) == AsciiDoc
			}
		}
		if ok && l.Kind != ReferenceDefinition && !strings.ContainsAny(l.Dest, "{}\n") {
			l.Kind, l.From, l.Takes, l.Soft, l.Label = IncludeLink, c.base, c.takes, c.soft, ""
			out = append(out, l)
		}
	}
	return out[:min(len(out), mostReferences)]
}

// References are all that a page names by a path or a name: its links, with the path alone where templates or loaders
// stand around it, and what generators take in or look up. The last are of the kind IncludeLink.
func (p *Page) References() []Link {
	found := p.constructs()
	out := make([]Link, 0, len(p.Links)+len(found))
	for _, l := range p.Links {
		switch {
		case l.At.Start < l.At.End && slices.ContainsFunc(found, func(c Link) bool { return l.At.Start <= c.At.Start && c.At.End <= l.At.End }):
			for i, c := range found { // the link is the construct, with a text
				if l.At.Start <= c.At.Start && c.At.End <= l.At.End {
					found[i].Kind, found[i].Span, found[i].Inner, found[i].Text, found[i].Label = l.Kind, l.Span, l.Inner, l.Text, l.Label
				}
			}
			continue
		case hasTemplate(l.Dest):
			to := TemplateTarget(l.Dest)
			at := strings.LastIndex(l.Dest, to)
			if to == "" || at < 0 {
				continue
			}
			l.At = Span{l.At.Start + at, l.At.Start + at + len(to)}
			l.Dest = to
		case l.Kind == ImportLink:
			l.narrow()
			l.Takes = true
		case p.included(l):
			l.Takes = true
			if rest, ok := strings.CutPrefix(l.Dest, "~/"); ok {
				l.Dest, l.At.Start, l.From = rest, l.At.Start+2, SourceBase
			}
		}
		out = append(out, l)
	}
	if len(found) == 0 {
		return out
	}
	out = append(out, found...)
	slices.SortStableFunc(out, func(a, b Link) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	return out
}

// narrow takes the loaders and the query off the module of an import: !!raw-loader!./x, ./x?raw.
func (l *Link) narrow() {
	if i := strings.LastIndexByte(l.Dest, '!'); i >= 0 {
		l.Dest, l.At.Start = l.Dest[i+1:], l.At.Start+i+1
	}
	if i := strings.IndexByte(l.Dest, '?'); i > 0 {
		l.At.End -= len(l.Dest) - i
		l.Dest = l.Dest[:i]
	}
}

// included tells DocFX's [!INCLUDE [text](path)] and [!code-x[text](path)], whose inner part is a link.
func (p *Page) included(l Link) bool {
	if l.Kind != InlineLink {
		return false
	}
	before := p.Src[max(0, l.Span.Start-40):l.Span.Start]
	i := bytes.LastIndex(before, []byte("[!"))
	if i < 0 {
		return false
	}
	name := strings.ToLower(string(before[i+2:]))
	return strings.TrimSpace(name) == "include" || strings.HasPrefix(name, "code") && !strings.ContainsAny(name, " []")
}

// constructs finds what generators take in or look up.
func (p *Page) constructs() (out []Link) {
	list := constructs
	switch p.Format {
	case Text:
		return nil
	case RST:
		return append(p.toctrees(regexp.MustCompile(`^[ \t]*\.\. toctree::`)), p.plainReferences()...)
	case AsciiDoc:
		return p.plainReferences()
	default:
		if bytes.Contains(p.Src, []byte("{toctree}")) {
			out = p.toctrees(regexp.MustCompile("^[ \t]*(?:`{3,}|:{3,})\\{toctree\\}"))
		}
		if bytes.Contains(p.Src, []byte("8<--")) {
			out = append(out, p.scissored()...)
		}
	}
	src := p.Src[p.Body.Start:p.Body.End]
	for _, c := range list {
		if !slices.ContainsFunc(c.markers, func(m string) bool { return bytes.Contains(src, []byte(m)) }) {
			continue
		}
		for _, m := range c.re.FindAllSubmatchIndex(src, mostReferences) {
			at := Span{p.Body.Start + m[2], p.Body.Start + m[3]}
			if begin := p.Body.Start + m[0]; !c.code && p.inCode(Span{begin, begin + 1}) {
				continue
			}
			l := Link{Kind: IncludeLink, From: c.base, Takes: c.takes, Soft: c.soft, Dest: string(p.Src[at.Start:at.End]), At: at,
				Span: Span{p.Body.Start + m[0], p.Body.Start + m[1]}}
			if l.Span.Start < at.Start && c.markers[0] == "{{#" && p.Src[l.Span.Start] != '{' {
				l.Span.Start++ // the character before it
			}
			l.narrow()
			out = append(out, l)
		}
	}
	return out
}

func (p *Page) inCode(at Span) bool {
	i, _ := slices.BinarySearchFunc(p.Code, at.Start, func(c Code, at int) int { return cmp.Compare(c.Span.End, at) })
	return i < len(p.Code) && p.Code[i].Span.Start <= at.Start && at.End <= p.Code[i].Span.End
}

// toctrees are the pages that Sphinx's lists name, a line each: "path" or "title <path>".
func (p *Page) toctrees(opens *regexp.Regexp) (out []Link) {
	at, within, indent := p.Body.Start, false, 0
	for line := range bytes.Lines(p.Src[p.Body.Start:]) {
		start := at
		at += len(line)
		text := strings.TrimSpace(string(line))
		column := len(line) - len(bytes.TrimLeft(line, " \t"))
		switch {
		case opens.Match(line):
			within, indent = true, column
		case !within || text == "" || strings.HasPrefix(text, ":") && !strings.HasPrefix(text, ":::"):
		case strings.HasPrefix(text, "```"), strings.HasPrefix(text, ":::"), p.Format == RST && column <= indent:
			within = false
		default:
			name := text
			if i := strings.LastIndexByte(text, '<'); i >= 0 && strings.HasSuffix(text, ">") {
				name = text[i+1 : len(text)-1]
			}
			k := start + bytes.LastIndex(line, []byte(name))
			if name == "self" || strings.ContainsAny(name, ":*?[") || name == "" {
				continue
			}
			out = append(out, Link{Kind: IncludeLink, From: DocBase, Dest: name, Span: Span{start, at}, At: Span{k, k + len(name)}, Listed: true})
		}
	}
	return out
}

// scissored are the snippets of MkDocs that stand a line each between two lines of scissors.
func (p *Page) scissored() (out []Link) {
	at, within := p.Body.Start, false
	for line := range bytes.Lines(p.Src[p.Body.Start:]) {
		start := at
		at += len(line)
		text := strings.TrimSpace(string(line))
		switch {
		case strings.Trim(text, "-") == "8<" && strings.HasPrefix(text, "-") && strings.HasSuffix(text, "-"):
			within = !within
		case within && text != "" && !strings.HasPrefix(text, ";"):
			name, _, _ := strings.Cut(text, ":")
			k := start + bytes.Index(line, []byte(name))
			out = append(out, Link{Kind: IncludeLink, From: SnippetBase, Takes: true, Dest: name, Span: Span{start, at}, At: Span{k, k + len(name)}})
		}
	}
	return out
}

// Generated tells what a page says of itself: that it is made by a program, and in which words. It is empty if it says
// nothing of the kind.
func (p *Page) Generated() string {
	for _, key := range []string{"source_url", "generated_from", "autogenerated", "auto_generated", "generated", "generator"} {
		switch v := p.Front.Values[key].(type) {
		case string:
			if v != "" && !strings.EqualFold(v, "false") {
				return key + ": " + v
			}
		case bool:
			if v {
				return key + ": true"
			}
		}
	}
	comment := false // of several lines
	for line := range strings.Lines(string(p.Src[:min(len(p.Src), 4096)])) {
		begins := opensComment.MatchString(line)
		said := (begins || comment) && saysGenerated.MatchString(line) || statesGenerated.MatchString(line)
		if begins && strings.Contains(line, "<!--") || comment {
			comment = !strings.Contains(line, "-->")
		}
		if said {
			return brief.Line(commentEnd.ReplaceAllString(opensComment.ReplaceAllString(strings.TrimSpace(line), ""), ""))
		}
	}
	return ""
}

var (
	opensComment  = regexp.MustCompile(`^\s*(?:<!--+|\[//\]:\s*(?:#|<>)|\[comment\]:\s*(?:#|<>)|\{/\*+|//+|\.\. |#\s)\s*["'(]?`)
	commentEnd    = regexp.MustCompile(`["')]?\s*(?:--+>|\*+/\})?\s*$`)
	saysGenerated = regexp.MustCompile(`(?i)\bauto(?:matically)?[- ]?generated\b|\b(?:is|was) generated (?:automatically|from|by|with)\b|` +
		`\bgenerated\b.*\b(?:do not|don't) (?:edit|modify|change)\b|\bdo not (?:edit|modify|change)\b.*\b(?:generated|by hand|manually|directly|this (?:file|page))\b|\bcode generated by\b`)
	// in the text itself
	statesGenerated = regexp.MustCompile(`(?i)\bthis (?:page|file|document|documentation|reference)\b[^.]*\b(?:auto(?:matically)?[- ]?generated|generated (?:automatically|from|by)\b)`)
)

// IsPage tells a page by its name.
func IsPage(name string) bool { return FormatOf(name) != Text }

var attrLists = regexp.MustCompile(`\{:?[^{}\n]*?#([\w:.-]+)[^{}\n]*\}`)

var labels = regexp.MustCompile(`(?m)^(?:\.\. _([^:\n]+):|\(([^()\n]+)\)=)[ \t]*\r?$`)

// Names are the anchors that a page gives to others of its parts than headings: the lists of attributes of Python-Markdown
// and kramdown, { #id }, on paragraphs, items and empty links, and the labels of Sphinx, (label)= and .. _label:.
func (p *Page) Names() (out []string) {
	if bytes.Contains(p.Src, []byte("#")) && bytes.Contains(p.Src, []byte("{")) {
		for _, m := range attrLists.FindAllSubmatchIndex(p.Src[p.Body.Start:], mostReferences) {
			at := Span{p.Body.Start + m[2], p.Body.Start + m[3]}
			if !p.inCode(at) {
				out = append(out, string(p.Src[at.Start:at.End]))
			}
		}
	}
	return append(out, p.Labels()...)
}

// Labels are those by which Sphinx's references find a part of a page.
func (p *Page) Labels() (out []string) {
	if !bytes.Contains(p.Src, []byte(")=")) && !bytes.Contains(p.Src, []byte(".. _")) {
		return nil
	}
	for _, m := range labels.FindAllSubmatch(p.Src, mostReferences) {
		out = append(out, string(bytes.Trim(append(m[1], m[2]...), "`")))
	}
	return out
}
