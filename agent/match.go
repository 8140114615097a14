package agent

import (
	"bytes"
	"context"
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

// editFile replaces a text that occurs once. What is not exactly there is never guessed: only blanks at the edges of
// lines are forgiven, and the model is told.
func (l *loop) editFile(_ context.Context, a editArgs) (string, error) {
	f, src, err := l.text(a.Path)
	if err != nil {
		return "", err
	}
	if _, err := l.target(l.Site.Show(f)); err != nil {
		return "", err
	}
	show := l.Site.Show(f)
	if !l.read[f] {
		return "", say.Refuse("%s has not been read; read_file it before you edit it", show)
	}
	if a.Old == "" {
		return "", &badArguments{"The argument “old_text” is empty. Give the text that stands there; to add text, replace the line before it by itself and the new one."}
	}
	if a.Old == a.New {
		return "", say.Refuse("old_text and new_text are the same")
	}
	old, now := unescape(a.Old), unescape(a.New)
	eol := pages.EOL(src)
	asIn := func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", eol)
	}
	at := occurrences(src, old)
	if len(at) == 0 {
		old = asIn(old)
		at = occurrences(src, old)
	}
	now = asIn(now)
	said := ""
	var out []byte
	var first, size int
	switch {
	case len(at) == 1 || len(at) > 1 && a.All:
		for i, p := range at {
			end := len(src)
			if i+1 < len(at) {
				end = at[i+1]
			}
			if i == 0 {
				out = append(out, src[:p]...)
			}
			out = append(append(out, now...), src[p+len(old):end]...)
		}
		first, size = at[0], len(now)
		if len(at) > 1 {
			said = fmt.Sprintf(" %d occurrences were replaced; the first one is shown.", len(at))
		}
	case len(at) > 1:
		var where []string
		for _, p := range at[:min(len(at), 20)] {
			where = append(where, strconv.Itoa(bytes.Count(src[:p], []byte("\n"))+1))
		}
		return "", say.Refuse(
			"old_text occurs %d times in %s, at lines %s; take in more lines so that it is unique, or say all", len(at), show,
			strings.Join(where, ", "))
	default:
		from, to, text, n := looseMatch(src, old, now, eol)
		if n != 1 {
			return "", l.noMatch(show, src, old, now, n)
		}
		out = slices.Concat(src[:from], []byte(text), src[to:])
		first, size = from, len(text)
		said = " old_text was found only with other blanks at the edges of its lines; new_text was indented as the file is. Look whether it is right."
	}
	if bytes.Equal(out, src) {
		return "", say.Refuse("the edit would change nothing")
	}
	if err := l.Files.Write(f, out); err != nil {
		return "", err
	}
	l.Tally(f, "edits", max(len(at), 1))
	if l.replay {
		return "", nil
	}
	line := bytes.Count(out[:first], []byte("\n")) + 1
	l.tell(fmt.Sprintf("Edited %s, line %d", show, line))
	last := bytes.Count(out[:first+size], []byte("\n")) + 1
	var b strings.Builder
	fmt.Fprintf(&b, "%s is edited.%s\n", show, said)
	all := lines(out)
	numbered(&b, all, max(line-4, 1), min(last+4, line+60))
	return say.Middle(b.String(), maxOutput/2) + l.lint(f), nil
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
