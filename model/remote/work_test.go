package remote

import (
	"testing"

	"docent/internal/testing/growth"
	"docent/model"
)

// Work on what readers, pages and models write.
func TestWorkGrowsNoFasterThanItsText(t *testing.T) {
	growth.Check(t, "docent/model/remote",
		func(_ *testing.T, text string) {
			Config{Window: defaultWindow,
				MaxTokens: defaultMaxTokens}.write(model.Request{Question: text,
				History: []model.Message{{Role: "user", Text: text}},
				Context: []model.Snippet{{Text: text}}, Passages: []model.Passage{{Text: text}}}, 3)
		},
		func(t *testing.T, text string) {
			c := &citer{given: []int{0, 1, 2}, emit: func(model.Delta) error { return nil }}
			for i := range len(text) { // as slowly as it may come
				if err := c.write(text[i : i+1]); err != nil {
					t.Fatal(err)
				}
			}
		},
	)
}
