package review

import (
	"context"
	"strings"
	"testing"

	"docent/api"
	"docent/forge/host"
	"docent/internal/cell"
)

// What strangers write is not even parsed, and what others write is parsed once.
func TestCommentsOfStrangersAreNotParsed(t *testing.T) {
	t.Parallel()
	r := newWorld(t).start()
	parsed, parse := []string{}, r.Cell
	r.Cell = func(ctx context.Context, kind string, input []byte) ([]byte, error) {
		parsed = append(parsed, string(input))
		return parse(ctx, kind, input)
	}
	heard := func(review ...host.Comment) []api.ReviewComment {
		t.Helper()
		parsed = nil
		out, err := r.heard(t.Context(), api.Project{ID: "p"}, review)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	hostile := strings.Repeat(">", 30_000) + "@docent do"
	if out := heard(host.Comment{Author: "stranger", Body: hostile, Path: "a.md"}, host.Comment{Author: "stranger", Body: hostile}); len(out)+len(parsed) != 0 {
		t.Errorf("%d were heard, %d parsed", len(out), len(parsed))
	}
	if out := heard(host.Comment{Author: "maria", MayWrite: true, Body: "Thanks, everybody."}); len(out)+len(parsed) != 0 {
		t.Errorf("%d were heard, %d parsed", len(out), len(parsed))
	}
	if out := heard(host.Comment{ID: "summary/1", Author: "maria", MayWrite: true, Body: "@docent see below"},
		host.Comment{Author: "maria", MayWrite: true, Body: "shorter", Path: "a.md"}); len(out) != 2 || len(parsed) != 2 {
		t.Errorf("%d were heard, %d parsed", len(out), len(parsed))
	}
}

// A comment that breaks its parser is no instruction; the others are.
func TestACommentThatBreaksItsParserCostsNoOtherComment(t *testing.T) {
	t.Parallel()
	r := newWorld(t).start()
	parse := r.Cell
	r.Cell = func(ctx context.Context, kind string, input []byte) ([]byte, error) {
		if strings.Contains(string(input), "hostile") {
			return nil, &cell.UnreadableError{Why: "it takes too long to be read", Broke: true}
		}
		return parse(ctx, kind, input)
	}
	out, err := r.heard(t.Context(), api.Project{ID: "p"}, []host.Comment{{Author: "maria", MayWrite: true, Body: "@docent hostile"},
		{Author: "maria", MayWrite: true, Body: "@docent fix it"}})
	if err != nil || len(out) != 1 || out[0].Text != "fix it" {
		t.Errorf("%+v, %v", out, err)
	}
}
