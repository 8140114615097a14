package stores

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"docent/internal/backoff"
	"docent/persistence/catalog"
	"docent/search/meaning"
)

// A sharedEmbedder asks for vectors that no node has asked for yet, one node at a time: the endpoint bills each section
// once.
type sharedEmbedder struct {
	meaning.Embedder
	in *catalog.Shared
}

const vectorsAsk = 500 * time.Millisecond // between two looks at what another node is asking for

func (e sharedEmbedder) Sections(ctx context.Context, texts []string) ([][]float32, error) {
	model := e.Model().ID()
	keys := make([][]byte, len(texts))
	for i, text := range texts {
		sum := sha256.Sum256([]byte(model + "\n" + text))
		keys[i] = sum[:]
	}
	for {
		out, err := e.in.Vectors(ctx, keys)
		if err != nil || len(lacking(out)) == 0 {
			return out, err
		}
		ran, err := e.in.Alone(ctx, "vectors/"+model, false, func(ctx context.Context, _ *catalog.Lease) error {
			if out, err = e.in.Vectors(ctx, keys); err != nil { // the node before may have made them just now
				return err
			}
			return e.ask(ctx, keys, texts, out)
		})
		if ran || err != nil {
			return out, err
		}
		if err := backoff.Sleep(ctx, vectorsAsk); err != nil {
			return nil, err
		}
	}
}

// ask fills in the vectors that no node has.
func (e sharedEmbedder) ask(ctx context.Context, keys [][]byte, texts []string, out [][]float32) error {
	at := lacking(out)
	if len(at) == 0 {
		return nil
	}
	var newKeys [][]byte
	var newTexts []string
	for _, i := range at {
		newKeys, newTexts = append(newKeys, keys[i]), append(newTexts, texts[i])
	}
	made, err := e.Embedder.Sections(ctx, newTexts)
	if err != nil {
		return err
	}
	if len(made) != len(at) {
		return errors.New("the endpoint of embeddings gave another number of vectors than was asked for")
	}
	for i, v := range made {
		out[at[i]] = v
	}
	return e.in.KeepVectors(ctx, newKeys, made)
}

func lacking(vectors [][]float32) (at []int) {
	for i, v := range vectors {
		if v == nil {
			at = append(at, i)
		}
	}
	return at
}
