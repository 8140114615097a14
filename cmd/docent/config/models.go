package config

import (
	"cmp"
	"io"
	"log/slog"
	"maps"

	"docent/agent"
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
		out.Models = append(out.Models, registry.Named{
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
		})
	}
	return out
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
