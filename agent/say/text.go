// Package say writes what users and language models read: refusals, and words of others within a sentence, bounded and
// without characters that a reader does not see.
package say

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// List names the first of a list.
func List(l []string) string {
	const most = 8
	if len(l) <= most {
		return strings.Join(l, ", ")
	}
	return strings.Join(l[:most], ", ") + fmt.Sprintf(" and %d more", len(l)-most)
}

// Times says how often.
func Times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// Middle leaves out the middle of a text that is too long, at line ends if there are some.
func Middle(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	half := max(limit-100, 200) / 2
	head, tail := s[:half], s[len(s)-half:]
	if i := strings.LastIndexByte(head, '\n'); i > half/2 {
		head = head[:i]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < half/2 {
		tail = tail[i+1:]
	}
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("\n[%d characters left out; ask for a smaller part]\n",
		len(s)-len(head)-len(tail)) + strings.ToValidUTF8(tail, "")
}

// Visible shows characters that a reader would not see.
func Visible(s string) string {
	if !strings.ContainsFunc(s, Unseen) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if Unseen(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Unseen tells characters that a reader does not see, with those that control a terminal.
func Unseen(r rune) bool {
	return Hidden(r) || r < ' ' && r != '\n' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0
}

// Fenced fences text of others so that it cannot end its own quotation.
func Fenced(s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "text\n" + strings.TrimRight(s, "\n") + "\n" + fence + "\n"
}

// Count writes a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "y") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// LowerFirst begins a sentence in the middle of another one.
func LowerFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if next, _ := utf8.DecodeRuneInString(s[n:]); next >= 'A' && next <= 'Z' {
		return s // an abbreviation
	}
	return strings.ToLower(string(r)) + s[n:]
}

// Hidden tells characters that a reader does not see and that can change what a text seems to say.
func Hidden(r rune) bool {
	switch {
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r >= 0xE0000 && r <= 0xE007F, r == 0x200B, r == 0x2060,
		r == 0x180E, r == 0x200E, r == 0x200F:
		return true
	}
	return false
}

// Quote shows text of others within a sentence: on one line, bounded, without control characters.
func Quote(s string) string {
	return "“" + OneLine(s, 80) + "”"
}

// OneLine makes one line of a text, of a limited number of characters.
func OneLine(s string, limit int) string {
	var b strings.Builder
	n := 0
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) || Hidden(r) || r == 0xFFFD {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			n++
			space = false
		}
		if n >= limit {
			b.WriteString("…")
			break
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// A Refusal is something that the instructions ask for and the workspace does not allow. It is for the user to read.
type Refusal struct {
	Text string
	Idle bool // there is nothing to change
	Code bool // what is looked for stands in code, links or names of files alone
}

// AsRefusal finds the refusal in an error.
func AsRefusal(err error) (*Refusal, bool) { return errors.AsType[*Refusal](err) }

func (r *Refusal) Error() string { return r.Text }

// Refuse makes a refusal.
func Refuse(format string, args ...any) error { return &Refusal{Text: fmt.Sprintf(format, args...)} }

// InCode is a refusal because what is looked for stands in code, links or names of files alone.
func InCode(format string, args ...any) error {
	return &Refusal{Text: fmt.Sprintf(format, args...), Code: true}
}

// Idle is a refusal because there is nothing to change: what is asked for is so already, or occurs nowhere.
func Idle(format string, args ...any) error {
	return &Refusal{Text: fmt.Sprintf(format, args...), Idle: true}
}
