package config

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"docent/api"
)

type (
	// Shown is the configuration as it is shown: without its secrets.
	Shown struct {
		File     string                `json:"file"` // empty if there is none
		Settings []ShownSetting        `json:"settings"`
		Models   map[string]ShownModel `json:"models"`
		Aliases  map[string]string     `json:"modelAliases"`
		Checks   map[string][]string   `json:"checks"`
	}
	// ShownSetting is one setting.
	ShownSetting struct {
		Name    string `json:"name"`
		Value   any    `json:"value"`
		From    string `json:"from"` // default, file, environment or flag
		Default string `json:"default"`
		Env     string `json:"env"`
		Flag    string `json:"flag,omitempty"`
		Usage   string `json:"usage"`
	}
	// ShownModel is one language model.
	ShownModel struct {
		Provider        string  `json:"provider"`
		Model           string  `json:"model,omitempty"`
		BaseURL         string  `json:"baseUrl,omitempty"`
		KeyEnv          string  `json:"keyEnv,omitempty"`
		Key             bool    `json:"key"` // there is one
		PromptPrice     float64 `json:"promptPrice,omitempty"`
		CachedPrice     float64 `json:"cachedPrice,omitempty"`
		CompletionPrice float64 `json:"completionPrice,omitempty"`
	}
)

// Show is the configuration without its secrets.
func (c *Config) Show(file string) Shown {
	shown := Shown{File: file, Settings: []ShownSetting{}, Models: map[string]ShownModel{}, Aliases: c.ModelAliases,
		Checks: map[string][]string{}}
	for _, s := range c.Settings() {
		value := s.value.Interface()
		if list, ok := value.([]string); ok && list == nil {
			value = []string{}
		}
		if s.Name == "catalog_dsn" && value != "" {
			value = "(set)" // it may hold a password
		}
		shown.Settings = append(shown.Settings, ShownSetting{s.Name, value, cmp.Or(c.origins[s.Name], FromDefault), s.Default,
			s.Env(), s.Flag, s.Usage})
	}
	for name, m := range c.Models {
		base := m.BaseURL
		if u, err := url.Parse(base); err == nil {
			base = u.Redacted()
		}
		shown.Models[name] = ShownModel{m.Provider, m.Model, base, m.KeyEnv, m.Key.Value() != "", m.PromptPrice, m.CachedPrice,
			m.CompletionPrice}
	}
	for name, check := range c.Checks {
		shown.Checks[name] = check.Command
	}
	return shown
}

// Print shows the settings to people, as a table.
func (s Shown) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM\tVARIABLE\tWHAT IT IS")
	for _, v := range s.Settings {
		value := fmt.Sprint(v.Value)
		if list, ok := v.Value.([]string); ok {
			value = strings.Join(list, ",")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", v.Name, cmp.Or(value, "-"), v.From, v.Env, v.Usage)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		m := s.Models[name]
		text := m.Provider
		for _, part := range []string{m.Model, m.BaseURL} {
			if part != "" {
				text += ", " + part
			}
		}
		switch {
		case m.Key && m.KeyEnv != "":
			text += ", key from " + m.KeyEnv
		case m.Key:
			text += ", key from " + modelKeyEnv
		case m.Provider == "openai" || m.Provider == "anthropic":
			text += ", without a key"
		}
		fmt.Fprintf(w, "models.%s\t%s\n", name, text)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Checks)) {
		fmt.Fprintf(w, "checks.%s\t%q\n", name, s.Checks[name])
	}
	return w.Flush()
}

// Removed says which settings of earlier versions the file has, and what to use in their place.
func (c *Config) Removed() []string { return c.removed }

// modelKeyEnv holds the key of the model that the environment alone configures.
const modelKeyEnv = EnvPrefix + "MODEL_API_KEY"

// otherVariables are those that belong to no setting: of the model from the environment, of the file, and of the client
// commands.
var otherVariables = []string{"MODEL_BASE_URL", "MODEL", "MODEL_API_KEY", "CONFIG", "URL", "KEY", "PROJECT", "DOMAIN"}

// othersVariables begin variables that others set: Kubernetes and Docker for a service that is called docent, and this
// project's tests.
var othersVariables = []string{"SERVICE_", "PORT", "TEST_"}

// UnknownVariables says which of the environment's variables look like settings and are none. Variables that hold
// secrets have names of the operator's choice: those of the configuration and of the projects are known.
func (c *Config) UnknownVariables(environ []string, projects []api.Project) []string {
	known := map[string]bool{}
	for _, name := range otherVariables {
		known[EnvPrefix+name] = true
	}
	for _, s := range c.Settings() {
		known[s.Env()] = true
	}
	settings := slices.Sorted(maps.Keys(known))
	secret := func(name string) { known[name], known[name+"_FILE"] = true, true }
	for _, m := range c.Models {
		secret(m.KeyEnv)
	}
	for _, name := range []string{c.OIDC.SecretEnv, c.Embeddings.KeyEnv, c.Tracing.HeadersEnv, modelKeyEnv, catalogEnv, NodeSecretEnv} {
		secret(name)
	}
	for _, p := range projects {
		secret(p.TokenEnv)
		secret(p.WebhookEnv)
	}
	var lines []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, EnvPrefix) || known[name] || slices.ContainsFunc(othersVariables,
			func(p string) bool { return strings.HasPrefix(name, EnvPrefix+p) }) {
			continue
		}
		lines = append(lines, fmt.Sprintf("the environment variable %s is no setting and has no effect%s", name,
			DidYouMean("", Near(name, settings))))
	}
	slices.Sort(lines)
	return lines
}

// Near are those of the names that somebody may have meant who wrote another word, by the measure that cobra has for
// commands.
func Near(word string, names []string) []string {
	list := &cobra.Command{SuggestionsMinimumDistance: 2}
	if len(word) < 5 {
		list.SuggestionsMinimumDistance = 1 // two letters of four make any word of any other
	}
	for _, name := range names {
		list.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	found := list.SuggestionsFor(word)
	slices.Sort(found)
	return found
}

// DidYouMean comes after a word that is not known.
func DidYouMean(prefix string, names []string) string {
	if len(names) == 0 || len(names) > 3 {
		return "" // a list is what --help is for
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = prefix + name
	}
	return " (did you mean " + strings.Join(quoted, " or ") + "?)"
}
