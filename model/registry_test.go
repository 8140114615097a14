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
