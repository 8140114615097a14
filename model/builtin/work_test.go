package builtin

import (
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
