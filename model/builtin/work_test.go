package builtin

import (
	"strings"
	"testing"

	"docent/internal/testing/growth"
	"docent/model"
)

// Work on what readers and pages write.
func TestWorkGrowsNoFasterThanItsText(t *testing.T) {
	growth.Check(t, "docent/model/builtin,regexp,github.com/blevesearch/snowballstem/english",
		func(_ *testing.T, text string) { Queries(text, nil, nil) },
		func(_ *testing.T, text string) { Queries("why?", []model.Message{{Role: "user", Text: text}}, nil) },
		func(_ *testing.T, text string) { Queries("why?", nil, []model.Snippet{{Text: text}, {Text: text}}) },
		func(t *testing.T, text string) {
			answerOf(t, model.Request{Question: text, Passages: []model.Passage{install}})
		},
		func(t *testing.T, text string) {
			answerOf(t, model.Request{Question: "x",
				Passages: []model.Passage{{Path: "a.mdx", URL: "https://docs.example/a", Title: "A", Text: text + "\n\nx",
					Score: 1}}})
		},
		func(t *testing.T, text string) {
			answerOf(t, model.Request{Question: "x",
				Passages: []model.Passage{{Path: "a.md", Title: "A", Text: text, Score: 1}}})
		},
		func(t *testing.T, text string) {
			answerOf(t, model.Request{Question: "What is the default x_y?",
				Passages: []model.Passage{{Path: "a.md", Title: "A", Text: text + " x_y default = 1", Score: 1}}})
		},
		func(t *testing.T, text string) {
			for _, question := range []string{"Can I x y?", "How many x are there?", "Error: the x of y is missing"} {
				answerOf(t, model.Request{Question: question,
					Passages: []model.Passage{{Path: "a.md", Title: "A", Text: text + "\n\nYou can x at most 3 y.", Score: 1}}})
			}
		},
		func(_ *testing.T, text string) {
			for range pieces(text) {
				continue
			}
		},
	)
}

// A form is not looked for in a question that has none of its words: what has the form must have one of them.
func TestWhatHasAFormHasOneOfItsWords(t *testing.T) {
	for n, questions := range [][]string{
		{"What is the DIFFERENCE between a and b"}, {"How is a different from b"}, {"how do a and b differ", "how do a and b compare"},
		{"how does a compare with b"}, {"Compare a to b"}, {"the benefits of a over b"},
		{"when do I use a over b", "when do I use a rather than b", "when do I use a instead of b"}, {"why a instead of b", "when a rather than b"},
		{"should I use a or b"}, {"which is better: a or b"}, {"a vs. b", "what is a versus b"},
	} {
		for _, q := range questions {
			if f := compared()[n]; !f.form.MatchString(q) || !hasAny(strings.ToLower(q), f.words) {
				t.Errorf("%q is not form %d", q, n)
			}
		}
	}
	for n, questions := range [][]string{
		{"x FooError: no such file", "error: no such file", "ERROR: no such file", "panic: no such file", "PANIC: no such file",
			"Fatal: no such file", "FATAL: no such file", "SomeException: no such file", "SomeWarning: no such file"},
		{"why ERR_A_B", "why TS2307", "why ENOENT"}, {"a TimeoutError", "a TimeoutException"}, {"exit code 1", "Exited with status 12"},
		{"a 404 Not Found"},
	} {
		for _, q := range questions {
			f := formed[n]
			if !f.form.MatchString(q) || f.parts == nil && !mayHaveCode(q) || f.parts != nil && !hasAny(q, f.parts) {
				t.Errorf("%q is not form %d", q, n)
			}
		}
	}
	for n, questions := range [][]string{
		{"how long is it kept", "How often does it run", "what is the timeout", "what is the poll interval", "which duration"},
		{"which port", "what is the port number"}, {"what is the maximum size", "how big is it", "how large is it"},
		{"how many are there", "what is the maximum number", "highest amount", "maximum length", "max count", "max depth", "what limits are there"},
	} {
		for _, q := range questions {
			if k := amounts[n]; !k.asks.MatchString(q) || !hasAny(strings.ToLower(q), k.words) {
				t.Errorf("%q does not ask for amount %d", q, n)
			}
		}
	}
	for _, line := range []string{"Default: 5", "it DEFAULTS to 5", "(default 5)", "a default port is 5"} {
		if statesDefault.MatchString(line) && !hasDefault(line) {
			t.Errorf("%q states a default", line)
		}
	}
}

// The objects that a whole answer allocates from sections that were parsed before, of which nobody shall double the number
// without a word, and that the analysis of a question does before anything is searched.
func TestAnAnswerHasABudgetOfAllocations(t *testing.T) {
	var passages []model.Passage
	for i := range 5 {
		p := install
		p.Path = strings.Repeat("x", i+1) + ".mdx"
		passages = append(passages, p)
	}
	question := "How do I install the widget and where does it keep its settings?"
	req := model.Request{Question: question, Passages: passages}
	if n := testing.AllocsPerRun(20, func() { Queries(question, nil, nil) }); n > 60 {
		t.Errorf("the analysis of a question allocates %v objects", n)
	}
	if n := testing.AllocsPerRun(20, func() { answerOf(t, req) }); n > 180 {
		t.Errorf("an answer allocates %v objects", n)
	}
}
