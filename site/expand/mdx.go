package expand

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/site/markup"
	"docent/site/script"
)

var (
	modules  = regexp.MustCompile(`(?m)^(?:import|export)[ \t{*]`)
	imported = regexp.MustCompile(`import\s+([\w$\s{},*]+?)\s+from\s+["']([^"'\n]+)["']`)
	binding  = regexp.MustCompile(`([\w$]+)(?:\s+as\s+([\w$]+))?`)
	defined  = regexp.MustCompile(`(?:const|let|var|function|class)\s+([\w$]+)`)
	name     = regexp.MustCompile(`^[A-Za-z_$][\w$]*(?:\.[\w$]+)*$`)
	heading  = regexp.MustCompile(`^h[1-6]$`)
	comment  = regexp.MustCompile(`(?s)/\*.*?\*/`)
	language = regexp.MustCompile("\\{:[\\w.-]+\\}`")
)

// A module is what the imports and exports of an MDX file bind.
type module struct {
	components map[string]string // files whose text a component shows
	raw        map[string]string // files whose bytes a name holds
	local      map[string]bool   // all names
	own        map[string]bool   // of these, what the repository defines
	values     map[string]any
}

// mdx replaces imported parts, constants and properties by what they hold.
func (x *expander) mdx(file string, src text, props map[string]any, children string) text {
	p := markup.Parse("x.mdx", src)
	m := x.module(file, p)
	var edits []edit
	for _, at := range m.expressions(p) {
		made, ok := m.expression(x, string(src[at.Start:at.End]), props, children)
		if !ok {
			x.lose("{" + string(src[at.Start:at.End]) + "}")
		}
		edits = append(edits, edit{at.Start - 1, at.End + 1, made})
	}
	for _, at := range p.Scripts {
		if isModule(p, at) {
			edits = append(edits, edit{at.Start, at.End, nil})
		}
	}
	for _, at := range language.FindAllIndex(src, -1) {
		edits = append(edits, edit{at[0], at[1] - 1, nil})
	}
	for i := range p.Tags {
		if e, ok := m.tag(x, p, i, props); ok {
			edits = append(edits, e)
		}
	}
	edits = append(edits, headingTags(p)...)
	if len(edits) == 0 {
		return src
	}
	return src.replace(edits)
}

func isModule(p *markup.Page, at markup.Span) bool {
	return modules.Match(p.Src[at.Start:at.End]) && (at.Start == 0 || p.Src[at.Start-1] == '\n')
}

// expressions are those of the text, not those of tags.
func (m *module) expressions(p *markup.Page) (out []markup.Span) {
	tags := make([]markup.Span, len(p.Tags)) // by their beginnings, each with the farthest end of those up to it
	for i, t := range p.Tags {
		tags[i] = t.Span
	}
	slices.SortFunc(tags, func(a, b markup.Span) int { return a.Start - b.Start })
	for i := range tags[min(1, len(tags)):] {
		tags[i+1].End = max(tags[i+1].End, tags[i].End)
	}
	for _, at := range p.Scripts {
		before, _ := slices.BinarySearchFunc(tags, at.Start+1, func(t markup.Span, start int) int { return t.Start - start })
		ofTag := before > 0 && at.End <= tags[before-1].End
		if at.Start > 0 && at.End < len(p.Src) && p.Src[at.Start-1] == '{' && p.Src[at.End] == '}' && !isModule(p, at) && !ofTag {
			out = append(out, at)
		}
	}
	return out
}

// module reads what a file imports and exports.
func (x *expander) module(file string, p *markup.Page) *module {
	m := &module{components: map[string]string{}, raw: map[string]string{}, local: map[string]bool{}, own: map[string]bool{}}
	code := moduleCode(p)
	if len(code) == 0 {
		return m
	}
	for _, found := range defined.FindAllSubmatch(code, -1) {
		m.local[string(found[1])], m.own[string(found[1])] = true, true
	}
	var kept bytes.Buffer // imports of programs, by their paths from the root
	at := 0
	for _, i := range imported.FindAllSubmatchIndex(code, -1) {
		clause, dest := string(code[i[2]:i[3]]), string(code[i[4]:i[5]])
		bare, isRaw := strings.CutSuffix(dest, "?raw")
		if rest, ok := strings.CutPrefix(bare, "!!raw-loader!"); ok {
			bare, isRaw = rest, true
		}
		kept.Write(code[at:i[4]])
		at = i[5]
		target := bare
		names := bindings(clause)
		for _, local := range names {
			m.local[local], m.own[local] = true, strings.IndexByte("./@~", bare[0]) >= 0 && (bare[0] != '@' || strings.HasPrefix(bare, "@/") || strings.HasPrefix(bare, "@site/"))
		}
		switch ext := strings.ToLower(path.Ext(bare)); {
		case isRaw, ext == ".md" || ext == ".mdx":
			found, _ := x.find(x.beside(file, bare)...)
			if found == "" {
				x.lose(string(code[i[0]:i[1]]))
				break
			}
			target = "./" + found
			if local := names["default"]; isRaw {
				m.raw[local] = found
			} else if local != "" {
				m.components[local] = found
			}
		case strings.HasPrefix(bare, "."), strings.HasPrefix(bare, "/"), strings.HasPrefix(bare, "@site/"):
			for _, to := range x.beside(file, bare) {
				if found, _ := x.find(to, to+".js", to+".ts", to+".jsx", to+".tsx", to+".mjs", to+".json"); found != "" {
					target = "./" + found
					break
				}
			}
		}
		kept.WriteString(target)
	}
	kept.Write(code[at:])
	var used []string
	for _, at := range append(m.expressions(p), givenCode(p)...) {
		root, _, _ := strings.Cut(strings.TrimSpace(string(p.Src[at.Start:at.End])), ".")
		if m.local[root] && !slices.Contains(used, root) {
			used = append(used, root)
		}
	}
	if len(used) > 0 {
		fmt.Fprintf(&kept, "\nexport const docentUses = {%s};\n", strings.Join(used, ", "))
		m.values, _ = script.Exports("page.mdx", kept.String(), x.program)["docentUses"].(map[string]any)
	}
	return m
}

// givenCode are the expressions that components are given code by.
func givenCode(p *markup.Page) (out []markup.Span) {
	for _, t := range p.Tags {
		for _, a := range t.Attrs {
			if a.Name == "code" && a.Kind == "expression" {
				out = append(out, a.Value)
			}
		}
	}
	return out
}

// program reads a file that a page imports values of: of MDX the program in it.
func (x *expander) program(file string) ([]byte, error) {
	raw, err := x.read(file)
	if err != nil || !isMDX(file, "") {
		return raw, err
	}
	return moduleCode(markup.Parse("x.mdx", raw)), nil
}

// moduleCode is the program in an MDX file.
func moduleCode(p *markup.Page) (code []byte) {
	for _, at := range p.Scripts {
		if isModule(p, at) {
			code = append(append(code, p.Src[at.Start:at.End]...), '\n')
		}
	}
	return code
}

// bindings are the local names of an import by what they are imported as.
func bindings(clause string) map[string]string {
	out := map[string]string{}
	outer, inner, _ := strings.Cut(clause, "{")
	if found := binding.FindString(outer); found != "" && !strings.Contains(outer, "*") {
		out["default"] = found
	}
	for _, m := range binding.FindAllStringSubmatch(inner, -1) {
		local := m[2]
		if local == "" {
			local = m[1]
		}
		out[m[1]] = local
	}
	return out
}

// expression is what an expression of the text shows.
func (m *module) expression(x *expander, code string, props map[string]any, children string) (text, bool) {
	code = strings.TrimSpace(comment.ReplaceAllString(code, ""))
	if code == "" {
		return nil, true
	}
	if code == "children" || code == "props.children" {
		return x.value(children)
	}
	if file, ok := m.raw[code]; ok {
		raw, err := x.load(file)
		made, ok := x.code(file, raw, err == nil)
		out := text("\n\n")
		out = append(out, made...)
		out.write("\n\n")
		return out, ok
	}
	if !name.MatchString(code) {
		return nil, false
	}
	for prefix, values := range map[string]map[string]any{"": m.values, "props.": props, "frontMatter.": x.front, "frontmatter.": x.front} {
		if rest, ok := strings.CutPrefix(code, prefix); ok {
			if s, ok := said(values, rest); ok {
				return x.value(s)
			}
		}
	}
	if s, ok := said(props, code); ok {
		return x.value(s)
	}
	return nil, false
}

// shows are the attributes that readers see something of.
var shows = []string{"title", "label", "description", "text", "heading", "summary", "name", "alt", "caption", "src", "href", "url", "icon"}

// shown is the file that a component shows, or a section of it.
func (m *module) shown(x *expander, p *markup.Page, t *markup.Tag) (file, section string, ok bool) {
	if file, ok = m.components[t.Name]; ok {
		return file, "", true
	}
	if t.Name == "include" && t.Partner >= 0 { // Fumadocs's
		of, section, _ := strings.Cut(strings.TrimSpace(string(p.Src[t.Span.End:p.Tags[t.Partner].Span.Start])), "#")
		names := x.beside(x.stack[len(x.stack)-1], of)
		if slices.ContainsFunc(t.Attrs, func(a markup.Attr) bool { return a.Name == "cwd" }) {
			names = []string{path.Join(x.Root, of)}
		}
		file, _ = x.find(names...)
		return file, section, file != ""
	}
	fern := x.Kind == api.SiteFern && (t.Name == "Markdown" || t.Name == "Code")
	for _, a := range t.Attrs {
		switch of := string(p.Src[a.Value.Start:a.Value.End]); {
		case t.Name == "Snippet" && a.Name == "file":
			file, _ = x.find(path.Join(x.Root, "snippets", of), path.Join(x.Root, "_snippets", of))
		case fern && a.Name == "src":
			file, _ = x.find(x.beside(x.stack[len(x.stack)-1], of)...)
		}
	}
	return file, "", file != ""
}

// sectionIn is the element that is a section of this name, the section of a heading, or a region; all of the file without a name.
func sectionIn(raw []byte, name string) ([]byte, bool) {
	if name == "" {
		return raw, true
	}
	if m := regexp.MustCompile(`(?s)<section\s[^>]*\bid=["']` + regexp.QuoteMeta(name) + `["'][^>]*>(.*?)</section>`).FindSubmatch(raw); m != nil {
		return m[1], true
	}
	return part(raw, name, 0, 0)
}

// coded is the code of a component that is given it by name, as Astro's Code is.
func (m *module) coded(x *expander, p *markup.Page, t *markup.Tag) (text, bool) {
	for _, a := range t.Attrs {
		if a.Name != "code" || a.Kind != "expression" {
			continue
		}
		of := strings.TrimSpace(string(p.Src[a.Value.Start:a.Value.End]))
		if made, ok := m.expression(x, of, nil, ""); ok && m.raw[of] != "" {
			return made, true
		} else if ok {
			made, ok = x.code("", made, true)
			return append(append(text("\n\n"), made...), "\n\n"...), ok
		}
	}
	return nil, false
}

// tag replaces a component that shows a file, and drops one that only a program shows.
func (m *module) tag(x *expander, p *markup.Page, i int, props map[string]any) (edit, bool) {
	t := &p.Tags[i]
	drops := func(t *markup.Tag) bool {
		return (t.Self && m.local[t.Name] || m.own[t.Name] && m.components[t.Name] == "") &&
			!slices.ContainsFunc(t.Attrs, func(a markup.Attr) bool { return slices.Contains(shows, a.Name) })
	}
	if t.Close {
		return edit{t.Span.Start, t.Span.End, nil}, t.Partner >= 0 && drops(&p.Tags[t.Partner])
	}
	end, inner := t.Span.End, ""
	if t.Partner > i {
		end, inner = p.Tags[t.Partner].Span.End, string(p.Src[t.Span.End:p.Tags[t.Partner].Span.Start])
	}
	file, section, ok := m.shown(x, p, t)
	if made, shows := m.coded(x, p, t); shows {
		return edit{t.Span.Start, end, made}, true
	}
	if !ok {
		return edit{t.Span.Start, t.Span.End, nil}, drops(t)
	}
	given := map[string]any{}
	for _, a := range t.Attrs {
		of := string(p.Src[a.Value.Start:a.Value.End])
		switch a.Kind {
		case "string":
			given[a.Name] = of
		case "expression":
			if v, _ := script.Literal(of); v != nil {
				given[a.Name] = v
			} else if made, ok := m.expression(x, of, props, ""); ok {
				given[a.Name] = string(made)
			}
		}
	}
	raw, err := x.load(file)
	var made text
	if raw, ok = sectionIn(raw, section); !ok {
	} else if x.Kind == api.SiteFern && t.Name == "Code" || t.Name == "include" && !strings.HasPrefix(strings.ToLower(path.Ext(file)), ".md") {
		made, ok = x.code(file, raw, true)
	} else {
		made, ok = x.include(file, bytes.TrimSpace(raw), given, inner)
	}
	if err != nil || !ok {
		x.lose(string(p.Src[t.Span.Start:t.Span.End]))
		return edit{t.Span.Start, end, nil}, true
	}
	if t.Span.Start == 0 || p.Src[t.Span.Start-1] == '\n' || p.Src[t.Span.Start-1] == '>' {
		out := text("\n\n")
		out = append(out, made...)
		out.write("\n\n")
		made = out
	}
	return edit{t.Span.Start, end, made}, true
}

// headings makes headings of tags that have an anchor.
func (x *expander) headings(src text) text {
	if !bytes.Contains(src, []byte("<h")) {
		return src
	}
	return src.replace(headingTags(markup.Parse("x.md", src)))
}

func headingTags(p *markup.Page) (edits []edit) {
	for _, t := range p.Tags {
		if t.Close || t.Partner < 0 || !heading.MatchString(t.Name) || t.Span.Start > 0 && p.Src[t.Span.Start-1] != '\n' {
			continue
		}
		end := p.Tags[t.Partner].Span
		inner := strings.TrimSpace(string(p.Src[t.Span.End:end.Start]))
		for _, a := range t.Attrs {
			if id := string(p.Src[a.Value.Start:a.Value.End]); a.Name == "id" && a.Kind == "string" && id != "" && !strings.Contains(inner, "\n") {
				edits = append(edits, edit{t.Span.Start, end.End,
					text("\n" + strings.Repeat("#", int(t.Name[1]-'0')) + " " + inner + " {#" + id + "}\n")})
			}
		}
	}
	return edits
}
