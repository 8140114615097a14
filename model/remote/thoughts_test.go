package remote

import "testing"

func TestThoughtsAreNoAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"The answer.": "The answer.", "<think>Hm.</think>\n\nThe <b>answer</b>.": "The <b>answer</b>.", "\n<think>\n</think><think>a</think>x": "x",
		"<think>never closed": "", "<thin": "<thin", "  x": "  x", "A <think> in the middle": "A <think> in the middle", "": "",
		"<think>a < b </thin </think>y": "y",
	} {
		for size := 1; size <= len(text)+1; size++ {
			var th thoughts
			got := ""
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				got += th.leave(rest[:n])
				rest = rest[n:]
			}
			if got += th.rest(); got != want {
				t.Errorf("%q in pieces of %d: %q, want %q", text, size, got, want)
			}
		}
	}
	var whole thoughts
	if got := whole.leave("Hm, so.\n</think>\n\nThe answer."); got != "The answer." {
		t.Errorf("in one piece: %q", got)
	}
}
