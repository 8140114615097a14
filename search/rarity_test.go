package search

import (
	"errors"
	"testing"
	"time"

	"docent/api"
)

func TestRarityCountsTheSectionsThatSayATerm(t *testing.T) {
	t.Parallel()
	l := openTest(t, Options{})
	if _, _, err := l.Rarity(t.Context(), "docs", []string{"x"}); !errors.Is(err, ErrNotIndexed) {
		t.Errorf("without an index: %v", err)
	}
	mustUpdate(t, l, docs, made(10, 1))
	in, of, err := l.Rarity(t.Context(), "docs", []string{"topic3", "common", "round1", "nowhere"})
	if err != nil || of != 30 || in[0] != 2 || in[1] != 10 || in[2] != 10 || in[3] != 0 {
		t.Errorf("in %v of %d sections, %v; want [2 10 10 0] of 30", in, of, err)
	}
	pages, err := l.Pages(t.Context(), "docs")
	if err != nil || len(pages) != 10 || pages[0].Title != "Page 0" || pages[0].Path != "part0/page-0.md" {
		t.Errorf("pages are %+v, %v", pages, err)
	}
	if hits := mustSearch(t, l, "docs", Query{Text: "topic0"}); hits[0].Path != pages[0].Path || hits[0].URL != pages[0].URL {
		t.Errorf("a search calls the page %s at %s, the list %s at %s", hits[0].Path, hits[0].URL, pages[0].Path, pages[0].URL)
	}
}

// Five thousand terms are what a busy site's questions have.
func BenchmarkRarity(b *testing.B) {
	l := openTest(b, Options{})
	if _, err := l.Update(b.Context(), api.Project{ID: "docs", DocsDir: "docs"}, made(300, 1), nil); err != nil {
		b.Fatal(err)
	}
	terms := make([]string, 5000)
	for i := range terms {
		terms[i] = "topic" + time.Duration(i).String()
	}
	for b.Loop() {
		if _, _, err := l.Rarity(b.Context(), "docs", terms); err != nil {
			b.Fatal(err)
		}
	}
}
