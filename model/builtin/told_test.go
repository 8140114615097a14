package builtin

import (
	"strings"
	"testing"

	"docent/model"
)

// What the model is said to make of a question is what it answers.
func TestTheJudgementIsWhatIsAnswered(t *testing.T) {
	for question, want := range map[string]model.Verdict{
		"How do I install the widget?":      model.VerdictAnswered,
		"Which planets have rings of dust?": model.VerdictDenied,
		"the":                               model.VerdictDenied,
	} {
		req := model.Request{Question: question, Passages: []model.Passage{install}}
		if want == model.VerdictDenied {
			req.Passages[0].Score = 0.05
		}
		text, cite, _, result := answerOf(t, req)
		p := New("b").Prompt(req)
		j := p.Judged
		if p.Model != "b" || p.Provider != model.Builtin || p.Remote != nil || j.Verdict != want ||
			result.Answered != (j.Verdict == model.VerdictAnswered) || len(j.Quoted) != len(cite) {
			t.Errorf("%q: %+v; answered %v with %v", question, j, result.Answered, cite)
		}
		for _, q := range j.Quoted {
			if q.Passage != cite[0] || !strings.Contains(text, q.Text) {
				t.Errorf("%q: %q is said to be quoted of %d", question, q.Text, q.Passage)
			}
		}
		if (j.Sum >= j.Answers) != (want == model.VerdictAnswered) {
			t.Errorf("%q: the sum is %.2f", question, j.Sum)
		}
	}
	follow := model.Request{Question: "And how do I stop it?", Passages: []model.Passage{install},
		History: []model.Message{{Role: "user", Text: "What is the widget?"}, {Role: "assistant", Text: "A thing."}}}
	if j := New("b").Prompt(follow).Judged; !strings.Contains(j.Question, "widget") {
		t.Errorf("a follow-up is read as %q", j.Question)
	}
}
