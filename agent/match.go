package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
)

var escaped = regexp.MustCompile(`⟨U\+([0-9A-F]{4,6})⟩`)

// unescape gives back the characters that were shown by their numbers.
func unescape(s string) string {
	return escaped.ReplaceAllStringFunc(s, func(m string) string {
		n, err := strconv.ParseInt(m[len("⟨U+"):len(m)-len("⟩")], 16, 32)
		if err != nil || !say.Unseen(rune(n)) {
			return m
		}
		return string(rune(n))
	})
}

// maxEdits is how many replacements one call of edit_file makes.
const maxEdits = 50

// editFile replaces texts that each occur once: all of a call, or none. What is not exactly there is never guessed: only
// blanks at the edges of lines are forgiven, and the model is told.
func (l *loop) editFile(_ context.Context, a editArgs) (string, error) {
	f, src, err := l.editable(a.Path)
	if err != nil {
		return "", err
	}
	edits := a.Edits
	if a.Old != "" || a.New != "" || len(edits) == 0 {
		edits = append([]replacement{a.replacement}, edits...)
	}
	if len(edits) > maxEdits {
		return "", &badArguments{fmt.Sprintf("One call makes at most %d replacements; make several calls.", maxEdits)}
	}
	out, said, count := src, "", 0
	var spots []spot
	for n, e := range edits {
		made, err := l.replaced(l.Site.Show(f), out, e)
		if err != nil {
			return "", numberedError(err, n, len(edits))
		}
		for i := range spots {
			spots[i].first = made.moved(spots[i].first)
		}
		out, count, spots = made.out, count+made.count, append(spots, made.spot)
		said += made.said
	}
	if bytes.Equal(out, src) {
		return "", say.Refuse("the edit would change nothing")
	}
	if err := l.Files.Write(f, out); err != nil {
		return "", err
	}
	l.Tally(f, "edits", count)
	return l.showEdit(f, out, said, spots), nil
}

// numberedError says which of several replacements cannot be made.
func numberedError(err error, n, of int) error {
	if of == 1 {
		return err
	}
	if bad, ok := errors.AsType[*badArguments](err); ok {
		return &badArguments{fmt.Sprintf("Replacement %d of %d, so none was made: %s", n+1, of, bad.text)}
	}
	if ref, ok := say.AsRefusal(err); ok {
		return say.Refuse("replacement %d of %d can't be made, so none was: %s", n+1, of, ref.Text)
	}
	return err
}

// editable finds a file that may be edited and that the model has read.
func (l *loop) editable(p string) (string, []byte, error) {
	f, src, err := l.text(p)
	if err != nil {
		return "", nil, err
	}
	if _, err := l.target(l.Site.Show(f)); err != nil {
		return "", nil, err
	}
	if !l.read[f] {
		return "", nil, say.Refuse("%s has not been read; read_file it before you edit it", l.Site.Show(f))
	}
	return f, src, nil
}

// A spot is a place in a file, in bytes.
type spot struct{ first, size int }

// showEdit tells what a file looks like around its edits.
func (l *loop) showEdit(f string, out []byte, said string, spots []spot) string {
	if l.replay {
		return ""
	}
	line := func(at int) int { return bytes.Count(out[:at], []byte("\n")) + 1 }
	l.tell(fmt.Sprintf("Edited %s, line %d", l.Site.Show(f), line(spots[0].first)))
	var b strings.Builder
	fmt.Fprintf(&b, "%s is edited.%s\n", l.Site.Show(f), said)
	all := lines(out)
	slices.SortFunc(spots, func(a, b spot) int { return a.first - b.first })
	next := 1
	for i, s := range spots {
		from, to := max(line(s.first)-4, next), min(line(s.first+s.size)+4, line(s.first)+60, len(all))
		if i > 0 && from > next {
			b.WriteString("…\n")
		}
		if from <= to {
			numbered(&b, all, from, to)
			next = to + 1
		}
	}
	return say.Middle(b.String(), maxOutput/2) + l.lint(f)
}

// A made replacement is a file after it.
type made struct {
	spot
	out   []byte
	at    []int // where it was made, in the file before
	delta int   // bytes that the file has become longer by, at each place
	count int
	said  string
}

// moved is where a place of the file before is now.
func (m *made) moved(q int) int {
	n, _ := slices.BinarySearch(m.at, q)
	return q + n*m.delta
}

// replaced makes one replacement in a file.
func (l *loop) replaced(show string, src []byte, e replacement) (*made, error) {
	if e.Old == "" {
		return nil, &badArguments{"The argument “old_text” is empty. Give the text that stands there; to add text, call insert_text."}
	}
	if e.Old == e.New {
		return nil, say.Refuse("old_text and new_text are the same")
	}
	old, now := unescape(e.Old), unescape(e.New)
	eol := pages.EOL(src)
	at := occurrences(src, old)
	if len(at) == 0 {
		old = withEOL(old, eol)
		at = occurrences(src, old)
	}
	now = withEOL(now, eol)
	switch {
	case len(at) == 1 || len(at) > 1 && e.All:
		m := &made{at: at, delta: len(now) - len(old), spot: spot{at[0], len(now)}, count: len(at)}
		for i, p := range at {
			end := len(src)
			if i+1 < len(at) {
				end = at[i+1]
			}
			if i == 0 {
				m.out = append(m.out, src[:p]...)
			}
			m.out = append(append(m.out, now...), src[p+len(old):end]...)
		}
		if len(at) > 1 {
			m.said = fmt.Sprintf(" %d occurrences were replaced; the first one is shown.", len(at))
		}
		return m, nil
	case len(at) > 1:
		var where []string
		for _, p := range at[:min(len(at), 20)] {
			where = append(where, strconv.Itoa(bytes.Count(src[:p], []byte("\n"))+1))
		}
		return nil, say.Refuse(
			"old_text occurs %d times in %s, at lines %s; take in more lines so that it is unique, or say all", len(at), show,
			strings.Join(where, ", "))
	}
	from, to, text, n := looseMatch(src, old, now, eol)
	if n != 1 {
		return nil, l.noMatch(show, src, old, now, n)
	}
	return &made{out: slices.Concat(src[:from], []byte(text), src[to:]), at: []int{from}, delta: len(text) - (to - from),
		spot: spot{from, len(text)}, count: 1,
		said: " old_text was found only with other blanks at the edges of its lines; new_text was indented as the file is. Look whether it is right."}, nil
}

func withEOL(s, eol string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", eol)
}

// insertText puts lines behind a line of a file.
func (l *loop) insertText(_ context.Context, a insertArgs) (string, error) {
	f, src, err := l.editable(a.Path)
	if err != nil {
		return "", err
	}
	all := lines(src)
	switch {
	case a.After == nil:
		return "", &badArguments{"The argument “after_line” is missing: the number of the line that the text comes behind, 0 for the beginning."}
	case *a.After < 0 || *a.After > len(all):
		return "", say.Refuse("%s has %s; there is no line %d", l.Site.Show(f), say.Count(len(all), "line"), *a.After)
	case a.Text == "":
		return "", &badArguments{"The argument “text” is empty."}
	}
	eol := pages.EOL(src)
	text := withEOL(unescape(a.Text), eol)
	at := 0
	for range *a.After {
		end := bytes.IndexByte(src[at:], '\n')
		if end < 0 {
			at = len(src)
			break
		}
		at += end + 1
	}
	if at > 0 && src[at-1] != '\n' { // behind a last line without an end
		text = eol + text
	} else if !strings.HasSuffix(text, "\n") {
		text += eol
	}
	out := slices.Concat(src[:at], []byte(text), src[at:])
	if err := l.Files.Write(f, out); err != nil {
		return "", err
	}
	l.Tally(f, "edits", 1)
	return l.showEdit(f, out, "", []spot{{at, len(text)}}), nil
}

// undoFile takes a file back to what it was before the instruction.
func (l *loop) undoFile(_ context.Context, a undoArgs) (string, error) {
	if err := needs("path", a.Path); err != nil {
		return "", err
	}
	f, err := l.inside(a.Path)
	if err != nil {
		return "", err
	}
	show := l.Site.Show(f)
	if err := l.Files.Reset(f); err != nil {
		return "", err
	}
	delete(l.Counts, f)
	if l.replay {
		return "", nil
	}
	l.tell("Took back the edits of " + show)
	return show + " is again as it was before the instruction. Edits of other files that went with it, such as links and navigation, stay.", nil
}

func occurrences(src []byte, old string) []int {
	var out []int
	for i := 0; old != ""; {
		k := bytes.Index(src[i:], []byte(old))
		if k < 0 {
			break
		}
		out = append(out, i+k)
		i += k + len(old)
	}
	return out
}

// looseMatch looks for whole lines that are the same but for blanks at their edges. It gives where they are, and the
// new text with the file's indentation.
func looseMatch(src []byte, old, now, eol string) (from, to int, text string, n int) {
	want := strings.Split(strings.TrimRight(strings.ReplaceAll(old, "\r\n", "\n"), "\n"), "\n")
	for len(want) > 0 && strings.TrimSpace(want[0]) == "" {
		want = want[1:]
	}
	if len(want) == 0 {
		return 0, 0, "", 0
	}
	starts := []int{0}
	for i, c := range src {
		if c == '\n' && i+1 < len(src) {
			starts = append(starts, i+1)
		}
	}
	lineAt := func(i int) string {
		end := len(src)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		return strings.TrimRight(string(src[starts[i]:end]), "\r\n")
	}
	got := -1
	for i := 0; i+len(want) <= len(starts); i++ {
		same := true
		for k := range want {
			if strings.TrimSpace(lineAt(i+k)) != strings.TrimSpace(want[k]) {
				same = false
				break
			}
		}
		if same {
			n++
			got = i
		}
	}
	if n != 1 {
		return 0, 0, "", n
	}
	from = starts[got]
	to = starts[got+len(want)-1] + len(lineAt(got+len(want)-1))
	indent := func(s string) string { return s[:len(s)-len(strings.TrimLeft(s, " \t"))] }
	has, is := indent(want[0]), indent(lineAt(got))
	fresh := strings.Split(strings.TrimRight(strings.ReplaceAll(now, "\r\n", "\n"), "\n"), "\n")
	if strings.TrimSpace(now) == "" {
		if to = pages.LineAfter(src, to); from == to {
			return 0, 0, "", 0
		}
		return from, to, "", 1
	}
	for i, s := range fresh {
		if rest, ok := strings.CutPrefix(s, has); ok && strings.TrimSpace(s) != "" {
			fresh[i] = is + rest
		}
	}
	return from, to, strings.Join(fresh, eol), 1
}

var numberedLine = regexp.MustCompile(`^\s*\d+\t`)

// noMatch says why a text was not found, and what stands there that is like it.
func (l *loop) noMatch(show string, src []byte, old, now string, n int) error {
	if n > 1 {
		return say.Refuse("old_text occurs %d times in %s when blanks are set aside; take in more lines so that it is unique",
			n, show)
	}
	want := lines([]byte(old))
	if all := len(want); all > 0 && !slices.ContainsFunc(want,
		func(s string) bool { return !numberedLine.MatchString(s) }) {
		return say.Refuse("old_text does not occur in %s: leave out the line numbers and the tab after them, they are not part of the file", show)
	}
	hint := ""
	if strings.TrimSpace(now) != "" && bytes.Contains(src, []byte(strings.TrimRight(now, "\r\n"))) {
		hint = "; new_text is there already, so the edit may be done"
	}
	all := lines(src)
	if at, size := nearest(all, want); size > 0 {
		var b strings.Builder
		numbered(&b, all, at+1, min(at+size, at+20))
		hint += "; the most similar lines are\n" + strings.TrimRight(b.String(), "\n") + "\nCopy them exactly"
	} else {
		hint += "; read the file again"
	}
	return say.Refuse("old_text does not occur in %s%s", show, hint)
}

// nearest finds the lines that are most like the wanted ones.
func nearest(all, want []string) (at, n int) {
	for len(want) > 0 && strings.TrimSpace(want[0]) == "" {
		want = want[1:]
	}
	if len(want) > 20 {
		want = want[:20]
	}
	if len(want) == 0 || len(all) == 0 || len(all)*len(want) > 400_000 {
		return 0, 0
	}
	grams := make([]map[string]int, len(want))
	for i, s := range want {
		grams[i] = bigrams(s)
	}
	lists := make([]map[string]int, len(all))
	for i, s := range all {
		lists[i] = bigrams(s)
	}
	best := 0.0
	for i := range all {
		sum := 0.0
		k := 0
		for ; k < len(want) && i+k < len(all); k++ {
			sum += alike(grams[k], lists[i+k])
		}
		if score := sum / float64(len(want)); score > best {
			best, at, n = score, i, k
		}
	}
	if best < 0.5 {
		return 0, 0
	}
	return at, n
}

func bigrams(s string) map[string]int {
	s = strings.TrimSpace(s)
	out := map[string]int{}
	for i := 0; i+1 < len(s) && i < 400; i++ {
		out[s[i:i+2]]++
	}
	return out
}

func alike(a, b map[string]int) float64 {
	if len(a) == 0 && len(b) == 0 {
		return 1
	}
	same, total := 0, 0
	for g, n := range a {
		same += min(n, b[g])
		total += n
	}
	for _, n := range b {
		total += n
	}
	if total == 0 {
		return 0
	}
	return 2 * float64(same) / float64(total)
}
