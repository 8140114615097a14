package expand

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"

	"docent/internal/formats"
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
		Cells []struct {
			Type    string `json:"cell_type"`
			Source  any    `json:"source"`
			Outputs []struct {
				Text any            `json:"text"`
				Data map[string]any `json:"data"`
			} `json:"outputs"`
		} `json:"cells"`
	}
	if formats.JSON(content, &doc) != nil {
		return nil
	}
	lang := cmp.Or(doc.Metadata.Language.Name, doc.Metadata.Kernel.Language, "python")
	var out text
	for _, cell := range doc.Cells {
		source := joined(cell.Source)
		switch {
		case strings.TrimSpace(source) == "":
		case cell.Type == "markdown":
			out.write(source + "\n\n")
		case cell.Type == "code":
			out.write(fence(lang, source) + "\n\n")
		}
		for _, o := range cell.Outputs {
			shown := joined(o.Text)
			if shown == "" {
				shown = joined(o.Data["text/plain"])
			}
			if shown = ansi.ReplaceAllString(shown, ""); strings.TrimSpace(shown) != "" && len(shown) < 20_000 {
				out.write(fence("", shown) + "\n\n")
			}
		}
		if len(out) > mostMade {
			break
		}
	}
	return out
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
	orgHeading = regexp.MustCompile(`(?m)^(\*+) (?:(?:TODO|DONE) )?(.*?)(?:[ \t]+:[\w:@]+:)?[ \t]*$`)
	orgBegin   = regexp.MustCompile(`(?mi)^[ \t]*#\+begin_(\w+)[ \t]*(\S*).*$`)
	orgEnd     = regexp.MustCompile(`(?mi)^[ \t]*#\+end_\w+[ \t]*$`)
	orgTitle   = regexp.MustCompile(`(?mi)^#\+title:[ \t]*(.*)$`)
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
	return out
}
