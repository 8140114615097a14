package stores

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/search/meaning"
)

// counted makes vectors and counts what it is asked for.
type counted struct {
	meaning.Embedder
	texts *atomic.Int32
}

func (counted) Model() meaning.Model { return meaning.Model{Name: "m", Dimensions: 2} }

func (c counted) Sections(_ context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for _, text := range texts {
		c.texts.Add(1)
		out = append(out, []float32{float32(len(text)), -0.5})
	}
	return out, nil
}

// TestNodesAskForEachVectorOnce has three nodes make the vectors of the same sections at once.
func TestNodesAskForEachVectorOnce(t *testing.T) {
	t.Parallel()
	dsn := catalogtest.Postgres(t)
	var asked atomic.Int32
	var texts []string
	for i := range 12 {
		texts = append(texts, fmt.Sprintf("section %0*d", i+1, i))
	}
	var work sync.WaitGroup
	for range 3 {
		c, err := catalog.Open(t.Context(), dsn, catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		db, err := c.Shared(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e := sharedEmbedder{counted{texts: &asked}, db}
		work.Go(func() {
			for batch := range slices.Chunk(texts, 5) {
				got, err := e.Sections(t.Context(), batch)
				if err != nil || len(got) != len(batch) {
					t.Errorf("%v, %v", got, err)
					return
				}
				for i, v := range got {
					if !slices.Equal(v, []float32{float32(len(batch[i])), -0.5}) {
						t.Errorf("%q has %v", batch[i], v)
					}
				}
			}
			if err := db.SweepVectors(t.Context()); err != nil { // what is young stays
				t.Error(err)
			}
		})
	}
	work.Wait()
	if got := asked.Load(); int(got) != len(texts) {
		t.Errorf("%d sections were asked for, of %d", got, len(texts))
	}
}
