package stores

import (
	"testing"

	"docent/cmd/docent/config"
	"docent/search/meaning"
)

// The vectors of a model at one address are not compared with questions that another address makes vectors of.
func TestAnotherAddressIsNotAskedForTheModelBefore(t *testing.T) {
	t.Parallel()
	s := new(Stores)
	open := func(address, name string) meaning.Embedder {
		t.Helper()
		e, err := s.openEmbedder(config.Embeddings{BaseURL: address, Model: name})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := open("http://one.example/v1", "old").Model()
	if like, ok := open("http://one.example/v1", "new").Like(first).(embedder); !ok || like.Model().Name != "old" {
		t.Errorf("the same address is not asked for the model before: %T", like)
	}
	like := open("http://two.example/v1", "newer").Like(first)
	if _, err := like.Question(t.Context(), "why"); err == nil || like.Model().Name != "old" {
		t.Errorf("another address is asked for it: %T, %v", like, err)
	}
}
