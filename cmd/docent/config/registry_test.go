package config

import (
	"strings"
	"testing"

	"docent/model/registry"
	"docent/model/remote"
)

func TestModelsInTheConfiguration(t *testing.T) {
	t.Parallel()
	file := configFile(t, `
[models.large]
provider = "openai"
base_url = "http://127.0.0.1:1/v1"
model = "m"
attempts = 7
prompt_price = 2.5
cached_price = 0.25
completion_price = 10
[model_aliases]
opus = "large"
`)
	c, err := Load(file, noEnvironment, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := Registry(c)
	if n := m.Models[0]; n.Remote.Attempts != 7 ||
		n.Remote.Price != (remote.Price{Prompt: 2.5, Cached: 0.25, Completion: 10}) {
		t.Errorf("%+v", n)
	}
	r, err := registry.New(m)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"sonnet": "", "opus": "large", "rules-1": "builtin"} {
		if got, err := r.Resolve(name); err != nil || got != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{"": "builtin", "sonnet": "builtin", "opus": "large", "large": "large",
		"rules-1": "builtin"} {
		if got := r.Name(name); got != want {
			t.Errorf("%q stands for %q, not for %q", name, got, want)
		}
	}
	for text, want := range map[string]string{
		"[model_aliases]\nopus = \"huge\"":                                         "setting model_aliases.opus",
		"[models.a]\nprovider = \"openai\"\nmodel = \"m\"\nprompt_price = -1":      "setting models.a.prompt_price",
		"[models.a]\nprovider = \"openai\"\nmodel = \"m\"\ncompletion_price = nan": "setting models.a.completion_price",
	} {
		if _, err := Load(configFile(t, text), noEnvironment, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
