package expand

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"docent/internal/formats"
	"docent/site/markup"
)

// notebook is a notebook of Jupyter as Markdown: its text, its code, and what the code has put out as text.
func notebook(content []byte) []byte {
	var doc struct {
		Metadata struct {
			Kernel struct {
				Language string `json:"language"`
			} `json:"kernelspec"`
			Language struct {
				Name string `json:"name"`
			} `json:"language_info"`
		} `json:"metadata"`
		Cells      []cell `json:"cells"`
		Worksheets []struct {
			Cells []cell `json:"cells"`
		} `json:"worksheets"` // of the third format
	}
	if formats.JSON(content, &doc) != nil {
		return nil
	}
	for _, w := range doc.Worksheets {
		doc.Cells = append(doc.Cells, w.Cells...)
	}
	var said struct {
		Metadata map[string]any `json:"metadata"`
	}
	_ = formats.JSON(content, &said)
	lang := cmp.Or(doc.Metadata.Language.Name, doc.Metadata.Kernel.Language, "python")
	var out text
	if len(doc.Cells) > 0 {
		first := &doc.Cells[0]
		front, body := notebookFront(said.Metadata, joined(first.Source))
		if out.write(front); first.Type != "code" {
			first.Source = body
		}
	}
	for _, c := range doc.Cells {
		c.write(&out, lang)
		if len(out) > mostMade {
			break
		}
	}
	return out
}

// notebookFront is front matter that says who may read a notebook, as its first cell's or its metadata do, and what stands behind that of
// the cell.
func notebookFront(metadata map[string]any, first string) (front, body string) {
	of := markup.ReadFront("x.md", []byte(first))
	said := of.Values
	if said == nil && of.Kind != "" {
		said = markup.FrontLines(first[of.Body.Start:of.Body.End]) // what does not parse opens no page
	}
	for _, values := range []map[string]any{said, metadata} {
		for key, v := range values {
			if said, err := json.Marshal(v); err == nil && front == "" && strings.EqualFold(key, "groups") {
				front = "---\ngroups: " + string(said) + "\n---\n\n"
			}
		}
	}
	return front, first[of.Span.End:]
}

// A cell is one of a notebook.
type cell struct {
	Type string `json:"cell_type"`
	Meta struct {
		Tags   []string `json:"tags"`
		Sphinx string   `json:"nbsphinx"`
	} `json:"metadata"`
	Level   int `json:"level"` // of a heading, in the third format
	Source  any `json:"source"`
	Input   any `json:"input"` // code of the third format
	Outputs []struct {
		Text  any            `json:"text"`
		Data  map[string]any `json:"data"`
		PNG   any            `json:"png"` // of the third format
		Name  string         `json:"ename"`
		Value string         `json:"evalue"`
	} `json:"outputs"`
}

func (c cell) write(out *text, lang string) {
	source := cmp.Or(joined(c.Source), joined(c.Input))
	hides := func(what string) bool { // as Jupyter Book, MyST-NB and nbconvert have it
		return slices.Contains(c.Meta.Tags, "remove-"+what) || slices.Contains(c.Meta.Tags, "remove_"+what)
	}
	if hides("cell") || c.Meta.Sphinx == "hidden" {
		return
	}
	if hides("input") {
		source = ""
	}
	if hides("output") {
		c.Outputs = nil
	}
	switch {
	case strings.TrimSpace(source) == "":
	case c.Type == "markdown":
		out.write(source + "\n\n")
	case c.Type == "heading":
		out.write(strings.Repeat("#", min(max(c.Level, 1), 6)) + " " + source + "\n\n")
	case c.Type == "code":
		out.write(fence(lang, source) + "\n\n")
	}
	for _, o := range c.Outputs {
		shown := joined(o.Text)
		_, picture := o.Data["image/png"]
		_, drawing := o.Data["image/svg+xml"]
		switch {
		case picture || drawing || o.PNG != nil:
			continue // the text beside a picture is for those who cannot see it, and names its size
		case o.Name != "":
			shown = o.Name + ": " + o.Value
		case shown == "":
			shown = joined(o.Data["text/plain"])
		}
		if shown = ansi.ReplaceAllString(shown, ""); strings.TrimSpace(shown) != "" && len(shown) < 20_000 {
			out.write(fence("", shown) + "\n\n")
		}
	}
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// joined is a text, or the lines of one.
func joined(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var b strings.Builder
		for _, x := range v {
			if s, ok := x.(string); ok {
				b.WriteString(s)
			}
		}
		return b.String()
	}
	return ""
}

var (
	chunkStart = regexp.MustCompile("^\\s*(`{3,}|~{3,})[ \t]*(.*?)[ \t]*$")
	chunkOf    = regexp.MustCompile(`^\{+(\w+)(.*?)\}+$`)
	chunkHides = regexp.MustCompile(`(?i)\b(?:echo|include)\s*[=:]\s*(?:false|f)\b`)
	// a heading with classes, and no identifier
	quartoHeading = regexp.MustCompile(`^(#{1,6} .*?)[ \t]*\{[.-][^}\n#]*\}`)
	quartoBlock   = regexp.MustCompile(`^\s*:{3,}(?:[ \t]*\{.*\}|[ \t]*[\w-]+)?[ \t:]*$`)
)

// quarto is a file of Quarto or R Markdown without the lines that begin and end blocks, and its code as it is shown:
// without options, and not at all where they hide it. The front matter stays as it is.
func quarto(front map[string]any, content []byte) []byte {
	execute, _ := front["execute"].(map[string]any)
	hidden := execute["echo"] == false
	var out, chunk bytes.Buffer
	fence, hides, options := "", false, false
	for line := range bytes.Lines(content) {
		bare := bytes.TrimRight(line, "\r\n")
		m := chunkStart.FindSubmatch(bare)
		switch {
		case fence == "" && m != nil:
			fence, hides, options = string(m[1]), false, false
			if of := chunkOf.FindSubmatch(m[2]); of != nil {
				options, hides = true, hidden || chunkHides.Match(of[2])
				line = []byte(fence + string(of[1]) + "\n")
			}
			chunk.Write(line)
		case fence != "":
			if option := bytes.TrimSpace(line); options && bytes.HasPrefix(option, []byte("#|")) {
				hides = hides && !bytes.Contains(option, []byte("echo: true")) || chunkHides.Match(option)
				continue
			}
			chunk.Write(line)
			if m == nil || len(m[2]) > 0 || !strings.HasPrefix(string(m[1]), fence) {
				continue
			}
			if !hides {
				out.Write(chunk.Bytes())
			}
			chunk.Reset()
			fence = ""
		case quartoBlock.Match(bare):
			out.WriteString("\n")
		default:
			out.Write(quartoHeading.ReplaceAll(line, []byte("$1")))
		}
	}
	out.Write(chunk.Bytes())
	return out.Bytes()
}

var (
	orgHeading = regexp.MustCompile(`(?m)^(\*+) (?:(?:TODO|DONE) )?(.*?)(?:[ \t]+:[\w:@]+:)?[ \t]*$`)
	orgBegin   = regexp.MustCompile(`(?mi)^[ \t]*#\+begin_(\w+)[ \t]*(\S*).*$`)
	orgEnd     = regexp.MustCompile(`(?mi)^[ \t]*#\+end_\w+[ \t]*$`)
	orgTitle   = regexp.MustCompile(`(?mi)^#\+title:[ \t]*(.*)$`)
	orgGroups  = regexp.MustCompile(`(?mi)^[ \t]*(?:#\+groups:|#\+property:[ \t]*groups\+?[ \t]|:groups\+?:)[ \t]*(\S.*)$`)
	orgGone    = regexp.MustCompile(`(?mi)^(?:#\+\w+:.*|[ \t]*:[\w-]+:.*|# .*)\n?`)
	orgLink    = regexp.MustCompile(`\[\[(?:file:)?([^\]\n]+)\](?:\[([^\]\n]+)\])?\]`)
	orgCode    = regexp.MustCompile(`(^|[\s(])[=~]([^=~\s](?:[^=~\n]*[^=~\s])?)[=~]`)
)

// org is a file of Org mode as Markdown.
func org(content []byte) []byte {
	title := orgTitle.FindSubmatch(content)
	out := orgGone.ReplaceAll(content, nil)
	begins := orgBegin.ReplaceAllFunc(out, func(line []byte) []byte {
		m := orgBegin.FindSubmatch(line)
		if kind := strings.ToLower(string(m[1])); kind != "src" && kind != "example" {
			return nil
		}
		return append([]byte("```"), m[2]...)
	})
	out = orgEnd.ReplaceAllFunc(begins, func(line []byte) []byte {
		if kind := strings.ToLower(string(line)); strings.Contains(kind, "src") || strings.Contains(kind, "example") {
			return []byte("```")
		}
		return nil
	})
	level := 0
	if title != nil {
		level = 1
	}
	out = orgHeading.ReplaceAllFunc(out, func(line []byte) []byte {
		m := orgHeading.FindSubmatch(line)
		return append([]byte(strings.Repeat("#", min(len(m[1])+level, 6))+" "), m[2]...)
	})
	out = orgLink.ReplaceAllFunc(out, func(link []byte) []byte {
		m := orgLink.FindSubmatch(link)
		if len(m[2]) == 0 {
			m[2] = m[1]
		}
		return bytes.Join([][]byte{[]byte("["), m[2], []byte("]("), m[1], []byte(")")}, nil)
	})
	out = orgCode.ReplaceAll(out, []byte("$1`$2`"))
	if title != nil {
		out = append([]byte("# "+string(title[1])+"\n\n"), out...)
	}
	if groups := orgGroups.FindSubmatch(content); groups != nil {
		said, _ := json.Marshal(strings.Fields(strings.ReplaceAll(string(groups[1]), ",", " ")))
		out = append([]byte("---\ngroups: "+string(said)+"\n---\n\n"), out...)
	}
	return out
}
