package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"docent/model"
	"docent/model/remote"
	"docent/search/meaning"
	"docent/secrets/given"
)

// An EmbeddingsConfig is the [embeddings] table: an endpoint that turns texts into vectors, by which sections are found
// in other words than the question's. Without a model, searches go by words alone.
type EmbeddingsConfig struct {
	BaseURL        string   `toml:"base_url" usage:"where the endpoint is that speaks OpenAI's embeddings, with /v1 at its end; empty for OpenAI's own"`
	Model          string   `toml:"model" usage:"the endpoint's name of the model; empty for none: searches go by words alone"`
	KeyEnv         string   `toml:"key_env" usage:"environment variable that holds the endpoint's key; NAME_FILE names a file that does"`
	Dimensions     int      `toml:"dimensions" usage:"of vectors, where the model can make shorter ones; 0 for its own number"`
	SectionPrefix  string   `toml:"section_prefix" usage:"before each section, for models that want one, such as \"passage: \""`
	QuestionPrefix string   `toml:"question_prefix" usage:"before each question, such as \"query: \""`
	Longest        int      `toml:"longest" usage:"bytes of a section that are sent"`
	Batch          int      `toml:"batch" usage:"sections of one request"`
	Timeout        Duration `toml:"timeout" usage:"for a request with sections"`
	QuestionLimit  Duration `toml:"question_timeout" usage:"that a reader waits for the vector of a question; then words alone are searched"`
	Boxes          bool     `toml:"boxes" usage:"search boxes ask the endpoint too, with each key that is pressed"`
	Price          float64  `toml:"price" usage:"US dollars for a million tokens"`
	DayTokens      int64    `toml:"day_tokens" usage:"tokens that may be used in a day (UTC); 0 for no limit"`

	key        *given.Secret // of KeyEnv; nil where none is named
	keyProblem error
}

func defaultEmbeddings() EmbeddingsConfig {
	return EmbeddingsConfig{Longest: 2000, Batch: 64, Timeout: Duration{time.Minute},
		QuestionLimit: Duration{500 * time.Millisecond}}
}

func (c EmbeddingsConfig) check(list *problemList) {
	if c.Model == "" {
		if c.BaseURL != "" || c.KeyEnv != "" {
			list.add("embeddings.model", "must name the endpoint's model")
		}
		return
	}
	if c.BaseURL != "" && !webURL(c.BaseURL) {
		list.add("embeddings.base_url", "%q is not an http or https URL", c.BaseURL)
	}
	if c.keyProblem != nil {
		list.add("embeddings.key_env", "%w", c.keyProblem)
	}
	if c.Price < 0 || c.Price != c.Price || c.Price > 1e6 {
		list.add("embeddings.price", "must be US dollars for a million tokens")
	}
}

// openEmbedder makes the embedder of the configuration; nil where there is none.
func (s *stores) openEmbedder() (meaning.Embedder, error) {
	c := s.config.Embeddings
	if c.Model == "" {
		return nil, nil
	}
	e, err := s.embeds.Embedder("embeddings", remote.EmbedderConfig{
		BaseURL: c.BaseURL, Model: c.Model, Key: c.key.Value, Dimensions: c.Dimensions, Batch: c.Batch, Longest: c.Longest,
		SectionPrefix: c.SectionPrefix, QuestionPrefix: c.QuestionPrefix, QuestionLimit: c.QuestionLimit.Duration,
		Total: c.Timeout.Duration, Price: c.Price, DayTokens: c.DayTokens,
	})
	if err != nil {
		return nil, err
	}
	if s.shared != nil {
		return sharedEmbedder{embedder{e}, s.shared}, nil
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

func (a noEmbedder) Model() meaning.Model                                    { return a.model }
func (a noEmbedder) Batch() int                                              { return 1 }
func (a noEmbedder) Like(meaning.Model) meaning.Embedder                     { return a }
func (a noEmbedder) Sections(context.Context, []string) ([][]float32, error) { return nil, a.why }
func (a noEmbedder) Question(context.Context, string) ([]float32, error)     { return nil, a.why }

// when says of an error of the endpoint when it is worth asking again, and why there is nothing now.
func when(err error) error {
	if err == nil {
		return nil
	}
	out := &meaning.Later{Why: meaning.Unavailable, Err: err}
	var later *model.Unavailable
	if errors.As(err, &later) {
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
