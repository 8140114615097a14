package thread

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"docent/api"
	"docent/model"
	"docent/search"
)

// A long page, whose tenth section states a default.
type reference struct {
	held
	headings []string // of the passages that the model was given
}

func (r *reference) Search(_ context.Context, _ api.ProjectID, q search.Query) ([]search.Hit, error) {
	var hits []search.Hit
	for n := range min(q.Sections, 30) {
		h := search.Hit{Path: "reference.md", Title: "Reference", Heading: fmt.Sprint(n), Anchor: fmt.Sprint(n),
			Content: "A scrape is one of many at an interval."}
		if n == 9 {
			h.Content = "[ scrape_interval: <duration> | default = 1m ]"
		}
		hits = append(hits, h)
	}
	return hits, nil
}

func (r *reference) Answer(_ context.Context, _ string, req model.Request, emit func(model.Delta) error) (model.Result,
	error) {
	for _, p := range req.Passages {
		r.headings = append(r.headings, p.Heading)
	}
	return model.Result{}, emit(model.Delta{Text: "Because."})
}

func TestAQuestionForADefaultIsGivenTheSectionThatStatesIt(t *testing.T) {
	for question, want := range map[string][]string{
		"What is the default scrape interval?": {"0", "1", "2", "3", "9"},
		"How do I set the scrape interval?":    {"0", "1", "2", "3"},
	} {
		r := new(reference)
		a := r.actor(t)
		a.deps.Searcher, a.deps.Model = r, r
		a.Command(*opens("1", question).Ask, func(_ any, err error) {
			if err != nil {
				t.Fatal(err)
			}
		})
		r.effects[0]()
		if !slices.Equal(r.headings, want) {
			t.Errorf("%s: %q", question, r.headings)
		}
	}
}
