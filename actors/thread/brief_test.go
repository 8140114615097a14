package thread

import (
	"context"
	"reflect"
	"testing"

	"docent/api"
	"docent/model"
	"docent/search"
)

// A told model keeps what it was asked with.
type told struct {
	held
	requests []model.Request
	models   []string
}

func (h *told) Search(_ context.Context, _ api.ProjectID, q search.Query) ([]search.Hit, error) {
	q.Degraded = nil
	h.queries = append(h.queries, q)
	return []search.Hit{{Path: "a.md", Title: "A", Content: q.Text + " is so.", Score: 0.7}}, nil
}

func (h *told) Answer(_ context.Context, name string, req model.Request, emit func(model.Delta) error) (model.Result,
	error) {
	h.models, h.requests = append(h.models, name), append(h.requests, req)
	return model.Result{Answered: true}, emit(model.Delta{Text: "Because."})
}

// A preview is what the model is told when the question is really put.
func TestAPreviewIsWhatTheModelIsTold(t *testing.T) {
	h := new(told)
	a := h.actor(t)
	a.deps.Searcher, a.deps.Model, a.deps.Pages = h, h, new(site)
	ask := *opens("1", "why is the sky blue").Ask
	ask.Query.CurrentPath, ask.Query.Filter.Groups = "/sky", []string{"staff"}
	ask.Context = []model.Snippet{{Kind: "textSelection", Text: "the sky", Path: "sky.md"}}
	ask.Model = "other"
	a.Command(ask, func(any, error) {})
	h.effects[0]()
	asked := h.queries
	h.queries = nil
	project, _ := h.Project(t.Context(), ask.Project.ID)
	b, err := Preview(t.Context(), h, project, ask.Text, Wanted{Context: ask.Context, Query: ask.Query, Model: ask.Model},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(h.queries, asked) {
		t.Errorf("searched with\n%+v, not with\n%+v", h.queries, asked)
	}
	if b.Request.Search == nil || h.requests[0].Search == nil || b.Request.ReadPage == nil || h.requests[0].ReadPage == nil {
		t.Error("one of them may not search or read by itself")
	}
	was := h.requests[0]
	was.Search, b.Request.Search, was.Key = nil, nil, ""
	was.ReadPage, b.Request.ReadPage = nil, nil
	was.Around, b.Request.Around = nil, nil
	if !reflect.DeepEqual(b.Request, was) || b.Model != h.models[0] || len(b.Hits) != len(was.Passages) {
		t.Errorf("the preview is\n%+v of %q, the model was told\n%+v of %q", b.Request, b.Model, was, h.models[0])
	}
}
