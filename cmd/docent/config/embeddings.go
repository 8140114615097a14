package config

import (
	"time"

	"docent/internal/secret"
)

// Embeddings is the [embeddings] table: an endpoint that turns texts into vectors, by which sections are found
// in other words than the question's. Without a model, searches go by words alone.
type Embeddings struct {
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
