package affected

import (
	"strconv"
	"strings"

	"docent/internal/brief"
)

// Bounds on a change. What is beyond them is not looked at, and the result says so.
const (
	MaxDiff  = 16 << 20 // bytes
	maxFiles = 3000
	maxLines = 100_000
	maxLine  = 2000 // bytes; longer ones were written by programs
	maxTold  = 64 << 10
)

// A Diff is a change as git writes it, with the messages of its commits if they are in the text.
type Diff struct {
	Message string
	Files   []File
	Cut     bool // there was more
}

// A File is what changes in one file. Old is empty if it is new, New if it is deleted.
type File struct {
	Old, New string
	hunks    []hunk
}

// Path is the file's name after the change, or before it if it is gone.
func (f File) Path() string {
	if f.New != "" {
		return f.New
	}
	return f.Old
}

type hunk struct {
	around string // what git shows behind the numbers: the function or section
	lines  []line
}

// A line of a hunk: its sign is '+', '-' or ' '; its number is that in the new file, for '-' in the old one.
type line struct {
	sign   byte
	number int
	text   string
	names  []name
}

// Parse reads a diff as git diff, git show, git log -p and git format-patch write it.
func Parse(text string) Diff {
	p := parser{}
	if len(text) > MaxDiff {
		text, p.Cut = text[:MaxDiff], true
	}
	for raw := range strings.Lines(text) {
		s := strings.TrimRight(raw, "\r\n")
		more := true
		switch {
		case p.file != nil && (p.oldLeft > 0 || p.newLeft > 0):
			more = p.body(s)
		case strings.HasPrefix(s, "diff --git "):
			from, to := gitNames(strings.TrimPrefix(s, "diff --git "))
			more = p.begin(from, to)
		case strings.HasPrefix(s, "--- ") && (p.header || p.file == nil || len(p.file.hunks) > 0):
			if !p.header { // a diff without git's own header
				more = p.begin("", "")
			}
			if more {
				p.file.Old = fileName(s[4:], "a/")
			}
		case p.file != nil && strings.HasPrefix(s, "@@ "):
			p.hunk(s)
		case p.header && !strings.HasPrefix(s, "commit ") && !strings.HasPrefix(s, "From "):
			p.about(s)
		case p.told.Len() < maxTold:
			p.file, p.header = nil, false
			p.told.WriteString(brief.Bytes(strings.TrimPrefix(s, "    "), maxLine, "") + "\n")
		}
		if !more {
			p.Cut = true
			break
		}
	}
	p.Message = strings.TrimSpace(p.told.String())
	return p.Diff
}

// Only is a diff of git's without the files of which a name is not kept.
func Only(text string, keep func(path string) bool) string {
	var b strings.Builder
	const mark = "diff --git "
	for at := strings.Index("\n"+text, "\n"+mark); at >= 0 && at < len(text); {
		section := text[at:]
		if next := strings.Index(section, "\n"+mark); next >= 0 {
			section = section[:next+1]
		}
		at += len(section)
		head, _, _ := strings.Cut(section, "\n@@ ")
		d := Parse(head + "\n")
		if len(d.Files) == 1 && keep(d.Files[0].Path()) && (d.Files[0].Old == "" || keep(d.Files[0].Old)) {
			b.WriteString(section)
		}
	}
	return b.String()
}

// After is the file's text once the change is made to the text before: its lines, in some order.
func (f File) After(text []byte) []byte {
	var b strings.Builder
	gone := map[string]int{}
	for _, h := range f.hunks {
		for _, l := range h.lines {
			switch l.sign {
			case '-':
				gone[l.text]++
			case '+':
				b.WriteString(l.text + "\n")
			}
		}
	}
	for l := range strings.Lines(string(text)) {
		if k := brief.Bytes(strings.TrimRight(l, "\r\n"), maxLine, ""); gone[k] > 0 {
			gone[k]--
		} else {
			b.WriteString(l)
		}
	}
	return []byte(b.String())
}

// A parser is what is known at a line of a diff.
type parser struct {
	Diff
	file             *File
	header           bool // between "diff --git" and the first hunk
	told             strings.Builder
	lines            int
	old, now         int // numbers of the next lines
	oldLeft, newLeft int // lines of the hunk that are to come
}

// begin begins a file; it is false if there are too many.
func (p *parser) begin(from, to string) bool {
	if len(p.Files) >= maxFiles {
		return false
	}
	p.Files = append(p.Files, File{Old: from, New: to})
	p.file, p.header = &p.Files[len(p.Files)-1], true
	return true
}

func (p *parser) hunk(s string) {
	p.header = false
	var around string
	p.old, p.oldLeft, p.now, p.newLeft, around = ranges(s)
	p.file.hunks = append(p.file.hunks, hunk{around: brief.Bytes(around, maxLine, "")})
}

// body takes a line of a hunk; it is false if there are too many.
func (p *parser) body(s string) bool {
	if p.lines++; p.lines > maxLines {
		return false
	}
	h := &p.file.hunks[len(p.file.hunks)-1]
	sign, rest := byte(' '), ""
	if s != "" {
		sign, rest = s[0], s[1:]
	}
	l := line{sign: sign, number: p.now, text: brief.Bytes(rest, maxLine, "")}
	switch sign {
	case '+':
		p.now, p.newLeft = p.now+1, p.newLeft-1
	case '-':
		l.number = p.old
		p.old, p.oldLeft = p.old+1, p.oldLeft-1
	case '\\':
		return true
	default:
		l.sign = ' '
		p.old, p.now, p.oldLeft, p.newLeft = p.old+1, p.now+1, p.oldLeft-1, p.newLeft-1
	}
	h.lines = append(h.lines, l)
	return true
}

// about takes a line between a file's first and its hunks.
func (p *parser) about(s string) {
	f := p.file
	switch {
	case strings.HasPrefix(s, "+++ "):
		f.New = fileName(s[4:], "b/")
	case strings.HasPrefix(s, "new file mode"):
		f.Old = ""
	case strings.HasPrefix(s, "deleted file mode"):
		f.New = ""
	case strings.HasPrefix(s, "rename from "):
		f.Old = unquoted(strings.TrimPrefix(s, "rename from "))
	case strings.HasPrefix(s, "rename to "):
		f.New = unquoted(strings.TrimPrefix(s, "rename to "))
	}
}

// ranges reads a hunk's header.
func ranges(s string) (old, oldCount, now, newCount int, around string) {
	s = strings.TrimPrefix(s, "@@ ")
	numbers, around, _ := strings.Cut(s, " @@")
	a, b, _ := strings.Cut(numbers, " ")
	old, oldCount = span(strings.TrimPrefix(a, "-"))
	now, newCount = span(strings.TrimPrefix(b, "+"))
	return old, oldCount, now, newCount, strings.TrimSpace(around)
}

func span(s string) (start, count int) {
	a, b, two := strings.Cut(s, ",")
	start, _ = strconv.Atoi(a)
	count = 1
	if two {
		count, _ = strconv.Atoi(b)
	}
	return max(start, 0), max(count, 0)
}

// gitNames are the two names in git's header. They are told apart if they are the same, as they are unless "rename"
// lines say otherwise.
func gitNames(s string) (from, to string) {
	if strings.HasPrefix(s, `"`) {
		if end := strings.Index(s[1:], `" `); end >= 0 {
			return fileName(s[:end+2], "a/"), fileName(s[end+3:], "b/")
		}
	}
	if n := len(s); n%2 == 1 && n > 4 {
		a, b := s[:n/2], s[n/2+1:]
		if strings.TrimPrefix(a, "a/") == strings.TrimPrefix(b, "b/") {
			return fileName(a, "a/"), fileName(b, "b/")
		}
	}
	a, b, _ := strings.Cut(s, " b/")
	return fileName(a, "a/"), b
}

func fileName(s, prefix string) string {
	s, _, _ = strings.Cut(s, "\t")
	s = unquoted(s)
	if s == "/dev/null" {
		return ""
	}
	return strings.TrimPrefix(s, prefix)
}

func unquoted(s string) string {
	if strings.HasPrefix(s, `"`) {
		if u, err := strconv.Unquote(s); err == nil {
			return u
		}
	}
	return s
}
