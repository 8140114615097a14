package builtin

import (
	"strings"
	"testing"

	"docent/model"
)

// Who greets or thanks is not told that the documentation does not answer, also after an answer; who asks is answered.
func TestCourtesiesAreReplied(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"hi": "Hello!", "Hello!": "Hello!", "ok thanks": "You're welcome.", "Thank you so much for your help :)": "You're welcome.",
		"Danke schön": "Gern geschehen.", "¡Hola!": "¡Hola!", "merci beaucoup": "Avec plaisir.", "Hey there 👋": "Hello!", "hi, thanks!": "You're welcome.",
		"hi, how do I restore a table": "", "hello world": "", "thanks?": "", "ok": "", "": "", "`hey`": "", "thank you page": "", "help": "",
		strings.Repeat("thanks ", 9): "",
	} {
		if got := Courtesy(message); got != "" && want == "" || !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q", message, got)
		}
	}
	var text strings.Builder
	result, err := New("").Answer(t.Context(), model.Request{Question: "thanks!", History: []model.Message{{Role: "user", Text: "How do I restore a table?"}},
		Passages: []model.Passage{{Title: "Restore", Text: "Add `--table NAME` to restore a table."}}}, func(d model.Delta) error {
		text.WriteString(d.Text)
		return nil
	})
	if err != nil || !result.Answered || text.String() != "You're welcome." {
		t.Errorf("%v, %v, %q", err, result.Answered, text.String())
	}
}
