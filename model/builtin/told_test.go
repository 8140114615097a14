package builtin

import (
	"slices"
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

// What is found is never hidden: a denial points to the sections that hold something of the question, a page each.
func TestADenialPointsToWhatIsClosest(t *testing.T) {
	page := func(path, text string) model.Passage {
		return model.Passage{Path: path, URL: "https://docs.example/" + path, Title: path, Heading: "About " + path, Text: text, Score: 0.01}
	}
	req := model.Request{Question: "Which invoices does the ledger archive in Bitcoin?", Passages: []model.Passage{
		page("a.md", "The ledger shows invoices."), page("a.md", "The ledger shows more invoices."), page("b.md", "Invoices are sent by mail."),
		page("c.md", "The archive is compressed."), page("d.md", "Nothing of it is here.")}}
	text, cite, deltas, result := answerOf(t, req)
	if result.Answered || len(cite) > 0 || !strings.Contains(text, "does not answer") {
		t.Fatalf("%s %v", text, cite)
	}
	var pages []string
	for _, d := range deltas {
		for _, c := range d.Cards {
			pages = append(pages, req.Passages[c.Passage].Path)
			if c.Text == "" {
				t.Error("a card says nothing")
			}
		}
	}
	if len(pages) == 0 || len(pages) > maxCards || slices.Contains(pages, "d.md") || len(slices.Compact(slices.Sorted(slices.Values(pages)))) != len(pages) {
		t.Errorf("%v", pages)
	}
	if shown := Closest(req); shown.Text != "" || len(shown.Cards) != len(pages) {
		t.Errorf("%+v", shown)
	}
}
