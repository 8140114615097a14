// Package diff reads the unified diff of one file for a page that shows it: its hunks with the numbers of their lines,
// which deleted line became which added one, the words that changed within the two, and the tree of the files of a
// whole change. The work grows no faster than the text, whatever the text is.
package diff

import (
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// A Kind says what became of a line.
type Kind string

const (
	Added   Kind = "add"
	Deleted Kind = "del"
	Same    Kind = "same"
	Note    Kind = "note" // about the lines before it, such as that no line break follows
)

// A Hunk is a run of lines, with its start in both versions.
type Hunk struct {
	Header string
	Lines  []Line
}

// A Line of a hunk. A number is zero if that version has no such line.
type Line struct {
	Kind     Kind
	Old, New int
	Text     string
	// Pieces are the text in parts, if the line has a counterpart: those that differ from it, and those that do not.
	// Nil if the line is new, or gone, as a whole.
	Pieces []Piece

	mate int // how many lines before or after this one its counterpart is; 0 if it has none
}

// A Piece of a line.
type Piece struct {
	Text    string
	Changed bool
}

// Hunks reads a unified diff of one file, without the words that changed.
func Hunks(unified string) []Hunk {
	var list []Hunk
	var before, after int
	for l := range strings.Lines(unified) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "@@") {
			before, after = start(l, " -"), start(l, " +")
			list = append(list, Hunk{Header: l})
			continue
		}
		if len(list) == 0 || l == "" {
			continue
		}
		h := &list[len(list)-1]
		line := Line{Text: strings.TrimSuffix(l[1:], "\r")}
		switch l[0] {
		case '+':
			line.Kind, line.New = Added, after
			after++
		case '-':
			line.Kind, line.Old = Deleted, before
			before++
		case ' ':
			line.Kind, line.Old, line.New = Same, before, after
			before++
			after++
		default:
			line.Kind = Note
		}
		h.Lines = append(h.Lines, line)
	}
	return list
}

// start is the first line that a hunk's header names behind a sign.
func start(header, sign string) int {
	_, rest, _ := strings.Cut(header, sign)
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, err := strconv.Atoi(rest[:end])
	if err != nil {
		return 0
	}
	return n
}

// Read reads a unified diff of one file, with the words that changed.
func Read(unified string) []Hunk {
	hunks := Hunks(unified)
	for i := range hunks {
		hunks[i].pair()
	}
	return hunks
}

// A Row is one line of a page that shows both versions side by side. A side is nil if that version has no line here.
type Row struct{ Old, New *Line }

// Rows are the hunk's lines side by side: counterparts beside each other, everything in its order.
func (h *Hunk) Rows() []Row {
	var rows []Row
	for i := 0; i < len(h.Lines); {
		if k := h.Lines[i].Kind; k != Deleted && k != Added {
			rows = append(rows, Row{&h.Lines[i], &h.Lines[i]})
			i++
			continue
		}
		from, mid, to := h.block(i)
		rows = h.sides(rows, from, mid, to)
		i = to
	}
	return rows
}

// sides puts a block's deleted lines beside its added ones.
func (h *Hunk) sides(rows []Row, from, mid, to int) []Row {
	a, b := from, mid
	for a < mid || b < to {
		lone := a < mid && h.Lines[a].mate == 0 && h.Lines[a].Kind == Deleted
		added := b < to && h.Lines[b].mate == 0 && h.Lines[b].Kind == Added
		switch {
		case a < mid && h.Lines[a].Kind == Note:
			a++ // it is about the line before; the other form of the page shows it
		case b < to && h.Lines[b].Kind == Note:
			b++
		case lone && added && b-mid >= a-from: // neither has a counterpart: they share a row
			rows = append(rows, Row{&h.Lines[a], &h.Lines[b]})
			a, b = a+1, b+1
		case lone:
			rows = append(rows, Row{Old: &h.Lines[a]})
			a++
		case added:
			rows = append(rows, Row{New: &h.Lines[b]})
			b++
		case a < mid && b < to:
			rows = append(rows, Row{&h.Lines[a], &h.Lines[b]})
			a, b = a+1, b+1
		case a < mid:
			rows = append(rows, Row{Old: &h.Lines[a]})
			a++
		default:
			rows = append(rows, Row{New: &h.Lines[b]})
			b++
		}
	}
	return rows
}

// block is the run of deleted lines at i and the added ones behind it.
func (h *Hunk) block(i int) (from, mid, to int) {
	is := func(i int, k Kind) bool {
		return i < len(h.Lines) && (h.Lines[i].Kind == k || h.Lines[i].Kind == Note && i > from)
	}
	for from, mid = i, i; is(mid, Deleted); mid++ {
	}
	for to = mid; is(to, Added); to++ {
	}
	return from, mid, to
}

// A File is the part of a diff that is about one file.
type File struct {
	Path, From string // From is the former path, if the file was moved
	Unified    string // without the lines that name the file
	Added      int
	Deleted    int
}

// Files cuts a diff of several files, in which each begins with the two lines that name it. What a hunk announces is
// taken for its lines, whatever they look like.
func Files(text string) []File {
	var out []File
	var from string
	var body strings.Builder
	old, new := 0, 0 // lines that the hunk in hand still has
	at := -1         // the file in hand
	flush := func() {
		if at >= 0 {
			out[at].Unified = body.String()
		}
		body.Reset()
	}
	for l := range strings.Lines(text) {
		switch {
		case old > 0 || new > 0 || strings.HasPrefix(l, `\`):
			switch {
			case at < 0:
			case strings.HasPrefix(l, "-"):
				old--
				out[at].Deleted++
			case strings.HasPrefix(l, "+"):
				new--
				out[at].Added++
			case !strings.HasPrefix(l, `\`):
				old, new = old-1, new-1
			}
			if at >= 0 {
				body.WriteString(l)
			}
		case strings.HasPrefix(l, "--- "):
			from = named(l[4:], "a/")
		case strings.HasPrefix(l, "+++ "):
			flush()
			f := File{Path: named(l[4:], "b/")}
			if f.Path == "" {
				f.Path = from
			} else if from != f.Path {
				f.From = from
			}
			out = append(out, f)
			at = len(out) - 1
		case strings.HasPrefix(l, "@@") && at >= 0:
			old, new = length(l, " -"), length(l, " +")
			body.WriteString(l)
		}
	}
	flush()
	return out
}

// named is the path in a line that names a file; empty for none.
func named(text, side string) string {
	text = strings.TrimRight(text, "\r\n")
	if text == "/dev/null" {
		return ""
	}
	return strings.TrimPrefix(text, side)
}

// length is how many lines a hunk's header announces behind a sign.
func length(header, sign string) int {
	_, rest, _ := strings.Cut(header, sign)
	rest, _, _ = strings.Cut(rest, " ")
	_, count, ok := strings.Cut(rest, ",")
	if !ok {
		return 1
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Changed tells which parts of two lists of texts are not in the other one, in order.
func Changed(before, after []string) (old, new []bool) {
	old, new = make([]bool, len(before)), make([]bool, len(after))
	for _, d := range lcs.DiffLines(before, after) {
		for i := d.Start; i < d.End; i++ {
			old[i] = true
		}
		for i := d.ReplStart; i < d.ReplEnd; i++ {
			new[i] = true
		}
	}
	return old, new
}
