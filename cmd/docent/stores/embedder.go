package stores

import (
	"context"
	"errors"
	"fmt"

	"docent/model"
	"docent/model/remote"
	"docent/search/meaning"
)

// openEmbedder makes the embedder of the configuration; nil if there is none.
func (s *Stores) openEmbedder() (meaning.Embedder, error) {
	c := s.Config.Embeddings
	if c.Model == "" {
		return nil, nil
	}
	e, err := s.Embeds.Embedder("embeddings", remote.EmbedderConfig{
		BaseURL: c.BaseURL, Model: c.Model, Key: c.Key.Value, Dimensions: c.Dimensions, Batch: c.Batch, Longest: c.Longest,
		SectionPrefix: c.SectionPrefix, QuestionPrefix: c.QuestionPrefix, QuestionLimit: c.QuestionLimit.Duration,
		Total: c.Timeout.Duration, Price: c.Price, DayTokens: c.DayTokens,
	})
	if err != nil {
		return nil, err
	}
	if s.Shared != nil {
		return sharedEmbedder{embedder{e}, s.Shared}, nil
	}
	return embedder{e}, nil
}

// embedder is an endpoint as searches ask it.
type embedder struct{ *remote.Embedder }

var _ meaning.Embedder = embedder{}

// Model says what makes the vectors of sections.
func (e embedder) Model() meaning.Model {
	c := e.Config()
	return meaning.Model{Name: c.Model, Dimensions: c.Dimensions, Prefix: c.SectionPrefix, Longest: c.Longest}
}

func (e embedder) Batch() int { return e.Config().Batch }

func (e embedder) Sections(ctx context.Context, texts []string) ([][]float32, error) {
	list, err := e.Embedder.Sections(ctx, texts)
	return list, when(err)
}

func (e embedder) Question(ctx context.Context, text string) ([]float32, error) {
	v, err := e.Embedder.Question(ctx, text)
	return v, when(err)
}

// Like asks the endpoint for another model.
func (e embedder) Like(m meaning.Model) meaning.Embedder {
	other, err := e.Embedder.Like("embeddings before", m.Name, m.Dimensions)
	if err != nil {
		return noEmbedder{m, fmt.Errorf("ask for model %s: %w", m.Name, err)}
	}
	return embedder{other}
}

// noEmbedder is an embedder that cannot be asked.
type noEmbedder struct {
	model meaning.Model
	why   error
}

func (a noEmbedder) Model() meaning.Model { return a.model }

func (a noEmbedder) Batch() int { return 1 }

func (a noEmbedder) Like(meaning.Model) meaning.Embedder { return a }

func (a noEmbedder) Sections(context.Context, []string) ([][]float32, error) { return nil, a.why }

func (a noEmbedder) Question(context.Context, string) ([]float32, error) { return nil, a.why }

// when says of an error of the endpoint when it is worth asking again, and why there is nothing now.
func when(err error) error {
	if err == nil {
		return nil
	}
	out := &meaning.Later{Why: meaning.Unavailable, Err: err}
	if later, ok := errors.AsType[*model.Unavailable](err); ok {
		out.After = later.After
	}
	var failure *remote.Failure
	switch {
	case errors.Is(err, remote.ErrDay):
		out.Why = meaning.OverBudget
	case errors.As(err, &failure) && failure.Spent():
		out.Why = meaning.OverBudget
	case errors.As(err, &failure) && failure.Silent():
		out.Why = meaning.Timeout
	}
	return out
}
