package registry_test

import (
	"testing"

	"docent/model"
	"docent/model/registry"
	"docent/model/scripted"
)

const secret = "sk-test-0123456789abcdef"

var request = model.Request{
	Question: "Which command stops the gadget?",
	Project:  "Widget",
	Passages: []model.Passage{
		{Path: "start.md", URL: "https://docs.example/start", Title: "Start", Text: "Run `widget start` to start the gadget.", Score: 0.9},
		{Path: "stop.md", URL: "https://docs.example/stop", Title: "Stop", Text: "The command `widget stop` stops the gadget.", Score: 0.5},
	},
}

type collected struct{ text string }

func (c *collected) emit(d model.Delta) error {
	c.text += d.Text
	return nil
}

func open(t *testing.T, n registry.Named) *registry.Registry {
	t.Helper()
	r, err := registry.New(registry.Config{Models: []registry.Named{n}, Default: n.Name})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func script(s scripted.Script) registry.Named {
	return registry.Named{Name: "load", Provider: model.Scripted, Script: s}
}

func eachProvider(t *testing.T, test func(t *testing.T, provider string)) {
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		t.Run(provider, func(t *testing.T) { test(t, provider) })
	}
}
