package config

import (
	"time"

	"docent/api"
	"docent/internal/secret"
	"docent/model/remote"
)

// Embeddings is the [embeddings] table: an endpoint that turns texts into vectors, by which sections are found
// in other words than the question's. Without a model, searches go by words alone.
type Embeddings struct {
	BaseURL        string   `toml:"base_url" usage:"endpoint, ending in /v1; empty: OpenAI's own"`
	Model          string   `toml:"model" usage:"the endpoint's name for the model; empty: search by words only"`
	KeyEnv         string   `toml:"key_env" usage:"variable with the endpoint's key"`
	Dimensions     int      `toml:"dimensions" usage:"vector length, if the model supports shorter ones; 0: its own"`
	SectionPrefix  string   `toml:"section_prefix" usage:"prefix of each section, such as \"passage: \""`
	QuestionPrefix string   `toml:"question_prefix" usage:"prefix of each question, such as \"query: \""`
	Longest        int      `toml:"longest" usage:"bytes sent of a section"`
	Batch          int      `toml:"batch" usage:"sections per request"`
	Timeout        Duration `toml:"timeout" usage:"time for a request with sections"`
	QuestionLimit  Duration `toml:"question_timeout" usage:"longest wait for a question's vector; then words decide"`
	Boxes          bool     `toml:"boxes" usage:"also for search boxes, on each key press"`
	Price          float64  `toml:"price" usage:"US dollars per million tokens"`
	DayTokens      int64    `toml:"day_tokens" usage:"tokens per day (UTC); 0: no limit"`

	Key        *secret.Secret `toml:"-"` // of KeyEnv; nil if none is named
	keyProblem error
}

func defaultEmbeddings() Embeddings {
	return Embeddings{Longest: 2000, Batch: 64, Timeout: Duration{time.Minute},
		QuestionLimit: Duration{500 * time.Millisecond}}
}

func (c Embeddings) check(list *Problems) {
	if c.Model == "" {
		if c.BaseURL != "" || c.KeyEnv != "" {
			list.add("embeddings.model", "must name the endpoint's model")
		}
		return
	}
	if c.BaseURL != "" && !WebURL(c.BaseURL) {
		list.add("embeddings.base_url", "%q is not an http or https URL", c.BaseURL)
	}
	if c.keyProblem != nil {
		list.add("embeddings.key_env", "%w", c.keyProblem)
	}
	if c.Price < 0 || c.Price != c.Price || c.Price > 1e6 {
		list.add("embeddings.price", "must be US dollars for a million tokens")
	}
}

// Remote is the endpoint as the embedder takes it.
func (c Embeddings) Remote() remote.EmbedderConfig {
	return remote.EmbedderConfig{BaseURL: c.BaseURL, Model: c.Model, Key: c.Key.Value, Dimensions: c.Dimensions, Batch: c.Batch,
		Longest: c.Longest, SectionPrefix: c.SectionPrefix, QuestionPrefix: c.QuestionPrefix, QuestionLimit: c.QuestionLimit.Duration,
		Total: c.Timeout.Duration, Price: c.Price, DayTokens: c.DayTokens}
}

// ConnectedEmbeddings is a connected endpoint as the table of the configuration would have it.
func ConnectedEmbeddings(l api.LanguageModel, m Model) Embeddings {
	e := defaultEmbeddings()
	e.BaseURL, e.Model, e.Key, e.Price = l.BaseURL, l.Model, m.Key, l.PromptPrice
	e.Dimensions, e.SectionPrefix, e.QuestionPrefix, e.DayTokens = l.Dimensions, l.SectionPrefix, l.QuestionPrefix, l.DayTokens
	return e
}

// EmbeddingsWith is the endpoint of embeddings that is used: the configuration's, else the connected one that can be used. It
// has no model if there is none. The revision is another one if the endpoint is.
func EmbeddingsWith(c Config, connected []api.LanguageModel, key func(file string) (string, error)) (e Embeddings, revision string) {
	if c.Embeddings.Model != "" {
		return c.Embeddings, "the configuration's"
	}
	for _, l := range connected {
		if m, err := Usable(c, l, key); err == nil && l.Embeds {
			return ConnectedEmbeddings(l, m), l.Revision
		}
	}
	return Embeddings{}, ""
}
