package registry_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/model"
	"docent/model/modeltest"
	"docent/model/registry"
	"docent/model/remote"
	"docent/model/scripted"
)

func TestTheBuiltinModelIsAlwaysThere(t *testing.T) {
	r, err := registry.New(registry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Name(""); got != "builtin" {
		t.Errorf("the default is %s", got)
	}
	var got collected
	result, err := r.Answer(t.Context(), "", request, got.emit)
	if err != nil || result.Model != "builtin" || !strings.Contains(got.text, "widget start") {
		t.Errorf("%+v, %+v, %v", got, result, err)
	}
}

func TestAnUnknownModelIsTheCallersMistake(t *testing.T) {
	r, err := registry.New(registry.Config{Models: []registry.Named{script(scripted.Script{})}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Answer(t.Context(), "gpt-17", request, func(model.Delta) error { return nil })
	var invalid *api.InvalidError
	if !errors.As(err, &invalid) || invalid.Problems[0].Field != "model" || !strings.Contains(err.Error(), "gpt-17") ||
		!strings.Contains(err.Error(), "builtin, load") {
		t.Errorf("got %v", err)
	}
	if _, err := r.Resolve("load"); err != nil {
		t.Error(err)
	}
}

func TestAScriptedModelAnswersOnlyByItsName(t *testing.T) {
	r, err := registry.New(registry.Config{Models: []registry.Named{script(scripted.Script{Parts: 1})}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "builtin", "load": "load"} {
		result, err := r.Answer(t.Context(), name, request, func(model.Delta) error { return nil })
		if err != nil || result.Model != want {
			t.Errorf("%q: %+v, %v", name, result, err)
		}
	}
}

func TestOtherNamesOfModels(t *testing.T) {
	models := []registry.Named{{Name: "small", Provider: model.Scripted}, {Name: "opus", Provider: model.Scripted}}
	r, err := registry.New(registry.Config{Models: models, Default: "small",
		Aliases: map[string]string{"sonnet": "", "opus": "", "large": "opus", "rules-1": model.Builtin}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "", "small": "small", "sonnet": "", "opus": "opus", "large": "opus",
		"rules-1": model.Builtin, model.Builtin: model.Builtin} {
		if got, err := r.Resolve(name); err != nil || got != want {
			t.Errorf("%q is %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{"sonnet": "small", "large": "opus", "opus": "opus", "": "small"} {
		result, err := r.Answer(t.Context(), name, model.Request{Question: "?"}, func(model.Delta) error { return nil })
		if err != nil || result.Model != want {
			t.Errorf("%q was answered by %q, %v", name, result.Model, err)
		}
	}
	var bad *api.InvalidError
	if _, err := r.Resolve("haiku"); !errors.As(err, &bad) || bad.Problems[0].Field != "model" ||
		bad.Problems[0].Message != `must be one of builtin, opus, small, not "haiku"` {
		t.Errorf("got %v", err)
	}
	if _, err := registry.New(registry.Config{Models: models, Aliases: map[string]string{"large": "huge"}}); err == nil ||
		!strings.Contains(err.Error(), "huge") {
		t.Errorf("got %v", err)
	}
}

func TestWhoHoldsConversations(t *testing.T) {
	r, err := registry.New(registry.Config{Models: []registry.Named{
		{Name: "words", Provider: model.Scripted},
		{Name: "replies", Provider: model.Scripted, Script: scripted.Script{Replies: []model.Reply{{Text: "yes"}}}},
		{Name: "remote", Provider: model.OpenAI,
			Remote: remote.Config{Model: "m", BaseURL: "http://127.0.0.1:1/v1", Window: 32_000}},
	}, Default: "remote"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{model.Builtin: 0, "words": 0, "replies": 16_000, "remote": 32_000, "": 32_000} {
		if window, err := r.Window(name); err != nil || window != want {
			t.Errorf("%q has a window of %d, %v", name, window, err)
		}
		if want > 0 {
			continue
		}
		if _, err := r.Chat(t.Context(), name, model.Chat{Turns: []model.Turn{{Role: "user", Text: "Go."}}}); !invalid(err) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := r.Window("nobody"); !invalid(err) {
		t.Errorf("got %v", err)
	}
}

func invalid(err error) bool {
	_, ok := err.(*api.InvalidError)
	return ok
}

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	for name, c := range map[string]registry.Config{
		"no name":          {Models: []registry.Named{{Provider: model.Builtin}}},
		"no provider":      {Models: []registry.Named{{Name: "a"}}},
		"unknown provider": {Models: []registry.Named{{Name: "a", Provider: "magic"}}},
		"twice": {Models: []registry.Named{{Name: "a", Provider: model.Builtin},
			{Name: "a", Provider: model.Builtin}}},
		"unknown default": {Default: "a"},
		"no model": {Models: []registry.Named{{Name: "a", Provider: model.OpenAI,
			Remote: remote.Config{Key: modeltest.Key(secret)}}}},
		"no key": {Models: []registry.Named{{Name: "a", Provider: model.Anthropic,
			Remote: remote.Config{Model: "m"}}}},
		"no address": {Models: []registry.Named{{Name: "a", Provider: model.OpenAI,
			Remote: remote.Config{Model: "m", BaseURL: "localhost:1234"}}}},
		"a file": {Models: []registry.Named{{Name: "a", Provider: model.OpenAI,
			Remote: remote.Config{Model: "m", BaseURL: "file:///etc/passwd"}}}},
		"a key in the URL": {Models: []registry.Named{{Name: "a", Provider: model.OpenAI,
			Remote: remote.Config{Model: "m", BaseURL: "https://u:" + secret + "@host/v1"}}}},
		"no room": {Models: []registry.Named{{Name: "a", Provider: model.OpenAI,
			Remote: remote.Config{Model: "m", Key: modeltest.Key(secret), Window: 2000, MaxTokens: 1500}}}},
		"a negative script": {Models: []registry.Named{script(scripted.Script{Rate: -1})}},
		"an endless script": {Models: []registry.Named{script(scripted.Script{Parts: 1 << 40})}},
	} {
		if _, err := registry.New(c); err == nil {
			t.Errorf("%s: taken", name)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the key shows: %v", name, err)
		}
	}
}

func TestTheModelsThatCanBeAskedForAreListed(t *testing.T) {
	r, err := registry.New(registry.Config{Default: "quick", Models: []registry.Named{
		{Name: "quick", Provider: model.Anthropic, Remote: remote.Config{Model: "m", Key: modeltest.Key(secret)}},
		script(scripted.Script{Text: "so"}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Choice{{Name: model.Builtin, Provider: model.Builtin}, {Name: "load", Provider: model.Scripted},
		{Name: "quick", Provider: model.Anthropic, Default: true, Agent: true}}
	if got := r.Choices(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	for name, provider := range map[string]string{"": model.Anthropic, "load": model.Scripted,
		model.Builtin: model.Builtin} {
		if p, err := r.Prompt(name, request); err != nil || p.Provider != provider {
			t.Errorf("%q: %+v, %v", name, p, err)
		}
	}
	if _, err := r.Prompt("nobody", request); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("an unknown model: %v", err)
	}
}
