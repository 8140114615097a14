package forge

import (
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
	from := f.From
	if from == "" {
		from = f.Path
	}
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

// QuotePath is a path as git writes it in a diff: in double quotes, with escapes, where it holds anything unusual.
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
