package git

import (
	"cmp"
	"fmt"
	"strings"
)

// String is the whole diff as git writes and reads it.
func (d Diff) String() string {
	var b strings.Builder
	for _, f := range d.Files {
		f.write(&b)
	}
	return b.String()
}

func (f FileDiff) write(b *strings.Builder) {
	from := cmp.Or(f.From, f.Path)
	before, after := QuotePath("a/"+from), QuotePath("b/"+f.Path)
	fmt.Fprintf(b, "diff --git %s %s\n", before, after)
	switch f.Status {
	case "added":
		b.WriteString("new file mode 100644\n")
		before = "/dev/null"
	case "deleted":
		b.WriteString("deleted file mode 100644\n")
		after = "/dev/null"
	case "moved":
		fmt.Fprintf(b, "rename from %s\nrename to %s\n", QuotePath(from), QuotePath(f.Path))
	}
	switch {
	case f.Binary:
		fmt.Fprintf(b, "Binary files %s and %s differ\n", before, after)
	case f.Unified != "":
		fmt.Fprintf(b, "--- %s\n+++ %s\n", before, after)
		b.WriteString(f.Unified)
		if !strings.HasSuffix(f.Unified, "\n") {
			b.WriteByte('\n')
		}
	}
}

// QuotePath is a path as git writes it in a diff: in double quotes, with escapes, if it holds anything unusual.
func QuotePath(path string) string {
	plain := true
	for i := range len(path) {
		if c := path[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			plain = false
		}
	}
	if plain {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// unified renders hunks as diff -u does, without file headers.
func unified(a, b []string, hunks []hunk) string {
	var out strings.Builder
	line := func(sign byte, text string) {
		out.WriteByte(sign)
		out.WriteString(text)
		if !strings.HasSuffix(text, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
	span := func(start, n int) string {
		switch n {
		case 0:
			return fmt.Sprintf("%d,0", start) // the line before
		case 1:
			return fmt.Sprint(start + 1)
		}
		return fmt.Sprintf("%d,%d", start+1, n)
	}
	for i := 0; i < len(hunks); {
		j := i + 1
		for j < len(hunks) && hunks[j].a0-hunks[j-1].a1 <= 2*contextLines {
			j++
		}
		first, last := hunks[i], hunks[j-1]
		lead := min(contextLines, first.a0)
		trail := min(contextLines, len(a)-last.a1)
		a0, b0 := first.a0-lead, first.b0-lead
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(a0, last.a1+trail-a0), span(b0, last.b1+trail-b0))
		at := a0
		for _, h := range hunks[i:j] {
			for ; at < h.a0; at++ {
				line(' ', a[at])
			}
			for ; at < h.a1; at++ {
				line('-', a[at])
			}
			for k := h.b0; k < h.b1; k++ {
				line('+', b[k])
			}
		}
		for range trail {
			line(' ', a[at])
			at++
		}
		i = j
	}
	return out.String()
}
