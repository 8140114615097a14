package blocks

import "strings"

// Marker is what a line begins with that is an item of a list; empty if it is none.
func Marker(line string) string {
	mark, text, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
	if strings.TrimSpace(text) == "" {
		return ""
	}
	n := len(mark) - len(strings.TrimLeft(mark, "0123456789"))
	if Bullet(mark) && len(mark) == 1 || n > 0 && n < 10 && (mark[n:] == "." || mark[n:] == ")") {
		return mark
	}
	return ""
}

// Bullet reports whether a marker is that of a list without numbers.
func Bullet(mark string) bool { return mark != "" && strings.IndexByte("-*+", mark[0]) >= 0 }

// Rows cuts a table into its rows; above is what stands over them.
func Rows(text string) (out []string, above string) {
	lines := strings.Split(text, "\n")
	if len(lines) < 3 || strings.Trim(lines[1], "|-: ") != "" {
		return []string{text}, ""
	}
	return lines[2:], lines[0] + "\n" + lines[1]
}

// FirstCell is what a table's row is looked up by.
func FirstCell(row string) string {
	row = strings.TrimPrefix(strings.TrimSpace(row), "|")
	for i := 0; i < len(row); i++ {
		switch row[i] {
		case '\\':
			i++
		case '|':
			return row[:i]
		}
	}
	return row
}

// Cells are those of a table's row.
func Cells(row string) []string {
	row = strings.Trim(strings.TrimSpace(strings.ReplaceAll(row, `\|`, " ")), "|")
	return strings.Split(row, "|")
}
