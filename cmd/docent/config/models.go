package config

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"maps"

	"docent/agent"
	"docent/api"
	"docent/internal/secret"
	"docent/model"
	"docent/model/registry"
	"docent/model/remote"
	"docent/model/scripted"
)

// Registry is the models of the settings, as the registry takes them.
func Registry(c Config) registry.Config {
	out := registry.Config{Default: c.Model, Aliases: maps.Clone(c.ModelAliases)}
	if _, taken := out.Aliases[agent.Rules]; !taken {
		if out.Aliases == nil {
			out.Aliases = map[string]string{}
		}
		out.Aliases[agent.Rules] = model.Builtin // which a job reports that the built-in instructions carried out
	}
	for name, m := range c.Models {
		out.Models = append(out.Models, named(name, m))
	}
	return out
}

// WithConnected is Registry with the models that were connected in the console. A model and a choice of the configuration go
// before theirs; what of them cannot be used is left out, and Usable says why.
func WithConnected(c Config, connected []api.LanguageModel, key func(file string) (string, error)) registry.Config {
	out := Registry(c)
	out.Agent = c.Model
	for _, l := range connected {
		m, err := Usable(c, l, key)
		if err != nil || l.Embeds {
			continue
		}
		n := named(l.Name, m)
		n.Revision = l.Revision
		out.Models = append(out.Models, n)
		if c.ChoosesModel() {
			continue
		}
		if l.Answers {
			out.Default = l.Name
		}
		if l.Agent {
			out.Agent = l.Name
		}
	}
	return out
}

// ChoosesModel reports whether the configuration says which model is asked if none is named.
func (c *Config) ChoosesModel() bool { return c.From("default_model") != "" }

// Usable is a connected model as a table of the configuration would have it, or why it is not used.
func Usable(c Config, l api.LanguageModel, key func(file string) (string, error)) (Model, error) {
	if _, taken := c.Models[l.Name]; taken {
		return Model{}, errors.New("the configuration has a model of this name, which takes its place")
	}
	if l.Embeds && c.Embeddings.Model != "" {
		return Model{}, errors.New("the configuration has [embeddings], which take its place")
	}
	m, err := Connected(l, key)
	if err != nil {
		return m, err
	}
	return m, Unusable(l, m)
}

// Connected is a connected model as a table of the configuration would have it. The error says that its stored key is not there.
func Connected(l api.LanguageModel, key func(file string) (string, error)) (Model, error) {
	m := Model{Provider: l.Provider, BaseURL: l.BaseURL, Model: l.Model, API: l.API, Effort: l.Effort,
		ExtraBody: l.ExtraBody, ExtraHeaders: l.ExtraHeaders, MaxTokens: l.MaxTokens, Window: l.Window,
		PromptPrice: l.PromptPrice, CachedPrice: l.CachedPrice, CompletionPrice: l.CompletionPrice}
	if l.KeyFile == "" {
		return m, nil
	}
	text, err := key(l.KeyFile)
	m.Key = secret.Entered(text)
	return m, err
}

// Unusable says what is wrong with a connected model, by the fields of its table; nil if nothing is.
func Unusable(l api.LanguageModel, m Model) error {
	if l.Embeds {
		if _, err := new(remote.Set).Embedder("embeddings", ConnectedEmbeddings(l, m).Remote()); err != nil {
			return &api.InvalidError{Problems: []api.Problem{{Field: "base_url", Message: err.Error()}}}
		}
		return nil
	}
	problems := m.problems()
	if m.Provider != model.OpenAI && m.Provider != model.Anthropic {
		problems = append(problems, api.Problem{Field: "provider", Message: "must be openai or anthropic"})
	}
	if len(problems) == 0 {
		if _, err := new(remote.Set).Add(l.Name, m.Provider, named(l.Name, m).Remote); err != nil {
			problems = append(problems, api.Problem{Field: "base_url", Message: err.Error()})
		}
	}
	if len(problems) > 0 {
		return &api.InvalidError{Problems: problems}
	}
	return nil
}

// named is a model as the registry takes it.
func named(name string, m Model) registry.Named {
	return registry.Named{
		Name: name, Provider: m.Provider, Judge: m.ClaimsModel,
		Rewrite: m.Rewrite, RewriteTimeout: m.RewriteTimeout.Duration,
		Remote: remote.Config{
			BaseURL: m.BaseURL, Model: m.Model, Key: m.Key.Value, API: m.API, Effort: m.Effort,
			ExtraBody: m.ExtraBody, ExtraHeaders: m.ExtraHeaders, Whole: m.Whole, Searches: m.Searches, Attempts: m.Attempts,
			MaxTokens: m.MaxTokens, Window: m.Window, Total: m.Timeout.Duration, Idle: m.Idle.Duration,
			NoFallback: m.Fallback != nil && !*m.Fallback, FallbackAfter: m.FallbackAfter.Duration,
			Claims: cmp.Or(m.Claims, remote.ClaimsRemove),
			Price:  remote.Price{Prompt: m.PromptPrice, Cached: m.CachedPrice, Completion: m.CompletionPrice},
		},
		Script: scripted.Script{
			First: m.FirstDelay.Duration, Rate: m.Rate, Jitter: m.Jitter.Duration, Parts: m.Parts, Text: m.Text,
			Window: m.Window,
		},
	}
}

// NewLogger makes the log that the settings ask for.
func NewLogger(c Config, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // validated
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		options.ReplaceAttr = inSeconds
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// inSeconds has durations in a unit that machines can compare; slog's own is the nanosecond.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}
