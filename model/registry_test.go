package model_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"docent/api"
	"docent/model"
)

func TestTheBuiltinModelIsAlwaysThere(t *testing.T) {
	r, err := model.New(model.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Names(); !reflect.DeepEqual(got, []string{"builtin"}) || r.Default() != "builtin" {
		t.Errorf("names %v, default %s", got, r.Default())
	}
	var got collected
	result, err := r.Answer(t.Context(), "", request, got.emit)
	if err != nil || result.Model != "builtin" || !strings.Contains(got.text, "widget start") {
		t.Errorf("%+v, %+v, %v", got, result, err)
	}
}

func TestAnUnknownModelIsTheCallersMistake(t *testing.T) {
	r, err := model.New(model.Config{Models: []model.Named{scripted(model.Script{})}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Answer(t.Context(), "gpt-17", request, func(model.Delta) error { return nil })
	var invalid *api.InvalidError
	if !errors.As(err, &invalid) || invalid.Problems[0].Field != "model" || !strings.Contains(err.Error(), "gpt-17") || !strings.Contains(err.Error(), "builtin, load") {
		t.Errorf("got %v", err)
	}
	if err := r.Check("load"); err != nil {
		t.Error(err)
	}
}

func TestAScriptedModelAnswersOnlyByItsName(t *testing.T) {
	r, err := model.New(model.Config{Models: []model.Named{scripted(model.Script{Parts: 1})}})
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
	models := []model.Named{{Name: "small", Provider: model.Scripted}, {Name: "opus", Provider: model.Scripted}}
	r, err := model.New(model.Config{Models: models, Default: "small", Aliases: map[string]string{"sonnet": "", "opus": "", "large": "opus", "rules-1": model.Builtin}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "", "small": "small", "sonnet": "", "opus": "opus", "large": "opus", "rules-1": model.Builtin, model.Builtin: model.Builtin} {
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
	if _, err := r.Resolve("haiku"); !errors.As(err, &bad) || bad.Problems[0].Field != "model" {
		t.Errorf("got %v", err)
	}
	if _, err := model.New(model.Config{Models: models, Aliases: map[string]string{"large": "huge"}}); err == nil || !strings.Contains(err.Error(), "huge") {
		t.Errorf("got %v", err)
	}
}
