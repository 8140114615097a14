package stores

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/model"
	"docent/model/remote"
	"docent/search/meaning"
)

// UseEmbeddings finds sections by the endpoint of embeddings of the configuration or, without one there, by the connected one.
// It is called by one at a time.
func (s *Stores) UseEmbeddings(connected []api.LanguageModel) error {
	c, revision := config.EmbeddingsWith(s.Config, connected, s.Secrets.Read)
	if revision == s.embedsBy {
		return nil
	}
	if s.embedder != nil {
		s.embedder.Close()
	}
	e, err := s.openEmbedder(c)
	s.Library.UseEmbedder(e)
	s.embedsBy = revision
	return err
}

// openEmbedder makes the embedder of an endpoint; nil if it names no model.
func (s *Stores) openEmbedder(c config.Embeddings) (meaning.Embedder, error) {
	s.embedder = nil
	if c.Model == "" {
		return nil, nil
	}
	e, err := s.Embeds.Embedder("embeddings", c.Remote())
	if err != nil {
		return nil, err
	}
	s.embedder = e
	asked := embedder{e, maps.Clone(s.embedsAt)}
	if s.embedsAt == nil {
		s.embedsAt = map[string]string{}
	}
	s.embedsAt[asked.Model().ID()] = e.Config().BaseURL
	if s.Shared != nil {
		return sharedEmbedder{asked, s.Shared}, nil
	}
	return asked, nil
}

// embedder is an endpoint as searches ask it.
type embedder struct {
	*remote.Embedder
	before map[string]string // where models were asked before it, by their ids
}

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

// Like asks the endpoint for another model, unless this process knows that its vectors came from another address: there may be
// another model of that name, or one that is given whatever is asked for. Where vectors came from is not kept, so after a
// restart the endpoint is asked.
func (e embedder) Like(m meaning.Model) meaning.Embedder {
	if at := e.before[m.ID()]; at != "" && at != e.Config().BaseURL {
		return noEmbedder{m, &meaning.Later{Why: meaning.Unavailable, Err: fmt.Errorf("the vectors of %s come from %s, which is not asked any more", m.Name, at)}}
	}
	other, err := e.Embedder.Like("embeddings before", m.Name, m.Dimensions)
	if err != nil {
		return noEmbedder{m, fmt.Errorf("ask for model %s: %w", m.Name, err)}
	}
	return embedder{other, e.before}
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
