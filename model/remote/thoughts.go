package remote

import "strings"

// Thoughts are what a model writes in plain text before its answer, <think>…</think>, if its server does not read them
// apart. They are for nobody.
type thoughts struct {
	held   string // what may be the beginning of a mark
	within bool
	past   bool // the answer has begun
	any    bool // thoughts were left out
}

const thinks, thought = "<think>", "</think>"

// leave takes in a piece of text and returns what of it is the answer's.
func (t *thoughts) leave(s string) string {
	if t.past {
		return s
	}
	t.held += s
	for {
		if t.within {
			i := strings.Index(t.held, thought)
			if i < 0 {
				t.held = t.held[max(0, len(t.held)-len(thought)+1):]
				return ""
			}
			t.held, t.within = t.held[i+len(thought):], false
		}
		begin := strings.TrimLeft(t.held, " \t\r\n")
		if t.any {
			t.held = begin
		}
		if rest, ok := strings.CutPrefix(begin, thinks); ok {
			t.held, t.within, t.any = rest, true, true
			continue
		}
		if strings.HasPrefix(thinks, begin) { // it may still come
			return ""
		}
		if i := strings.Index(t.held, thought); !t.any && i >= 0 { // the prompt had the mark that begins them
			t.held, t.any = t.held[i+len(thought):], true
			continue
		}
		t.past = true
		return t.rest()
	}
}

// rest is what was held back when the text ends, or the answer begins.
func (t *thoughts) rest() string {
	s := t.held
	if t.held = ""; t.within {
		return ""
	}
	return s
}
