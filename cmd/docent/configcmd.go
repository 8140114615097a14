package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"docent/api"
)

// settingFlags adds a flag for every setting that has one.
func settingFlags(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", os.Getenv(envPrefix+"CONFIG"), "configuration file (TOML)")
	for _, s := range new(Config).settings() {
		if s.Flag != "" {
			cmd.Flags().String(s.Flag, s.Default, fmt.Sprintf("%s (%s)", s.Usage, s.Env()))
		}
	}
}

type (
	shownConfig struct {
		File     string                `json:"file"` // empty where there is none
		Settings []shownSetting        `json:"settings"`
		Models   map[string]shownModel `json:"models"`
		Aliases  map[string]string     `json:"modelAliases"`
		Checks   map[string][]string   `json:"checks"`
	}
	shownSetting struct {
		Name    string `json:"name"`
		Value   any    `json:"value"`
		From    string `json:"from"` // default, file, environment or flag
		Default string `json:"default"`
		Env     string `json:"env"`
		Flag    string `json:"flag,omitempty"`
		Usage   string `json:"usage"`
		// What to use in its place; empty where the setting stays.
		Deprecated string `json:"deprecated,omitempty"`
	}
	shownModel struct {
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

// show is the configuration without its secrets.
func (c *Config) show(file string) shownConfig {
	shown := shownConfig{File: file, Settings: []shownSetting{}, Models: map[string]shownModel{}, Aliases: c.ModelAliases,
		Checks: map[string][]string{}}
	for _, s := range c.settings() {
		value := s.value.Interface()
		if list, ok := value.([]string); ok && list == nil {
			value = []string{}
		}
		if s.Name == "catalog_dsn" && value != "" {
			value = "(set)" // it may hold a password
		}
		shown.Settings = append(shown.Settings, shownSetting{s.Name, value, cmp.Or(c.from[s.Name], fromDefault), s.Default,
			s.Env(), s.Flag, s.Usage, s.Deprecated})
	}
	for name, m := range c.Models {
		base := m.BaseURL
		if u, err := url.Parse(base); err == nil {
			base = u.Redacted()
		}
		shown.Models[name] = shownModel{m.Provider, m.Model, base, m.KeyEnv, m.key.Value() != "", m.PromptPrice, m.CachedPrice,
			m.CompletionPrice}
	}
	for name, check := range c.Checks {
		shown.Checks[name] = check.Command
	}
	return shown
}

func (s shownConfig) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM\tVARIABLE\tWHAT IT IS")
	for _, v := range s.Settings {
		value := fmt.Sprint(v.Value)
		if list, ok := v.Value.([]string); ok {
			value = strings.Join(list, ",")
		}
		if v.Deprecated != "" {
			v.Usage = "DEPRECATED: " + v.Deprecated + ". " + v.Usage
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

func newConfigCommand() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "config", Short: "Show every setting: its value, where the value comes from, and what the setting is for",
		Args: cobra.NoArgs,
		Long: "Show every setting as a server has it that is started with the same flags, file and environment: the value, and\n" +
			"whether it is the default or comes from the file, the environment or a flag. Secrets are not shown.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := LoadConfig(file, os.LookupEnv, cmd.Flags())
			if err != nil {
				return err
			}
			for _, line := range slices.Concat(c.deprecations(), c.unknownVariables(os.Environ(), nil)) {
				fmt.Fprintln(cmd.ErrOrStderr(), "WARNING:", line)
			}
			shown := c.show(file)
			if asJSON {
				return printJSON(cmd.OutOrStdout(), shown)
			}
			return shown.print(cmd.OutOrStdout())
		},
	}
	settingFlags(cmd, &file)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.AddCommand(newConfigCheckCommand())
	return cmd
}

// deprecations says which settings are set that go with a later version, and what to use in their place.
func (c *Config) deprecations() []string {
	var lines []string
	for _, s := range c.settings() {
		if from := c.from[s.Name]; from != "" && s.Deprecated != "" {
			lines = append(lines, fmt.Sprintf("the setting %s (from the %s) is deprecated and goes with a later version: %s",
				s.Name, from, s.Deprecated))
		}
	}
	return lines
}

// modelKeyEnv holds the key of the model that the environment alone configures.
const modelKeyEnv = envPrefix + "MODEL_API_KEY"

// otherVariables are those that belong to no setting: of the model from the environment, of the file, and of the client
// commands.
var otherVariables = []string{"MODEL_BASE_URL", "MODEL", "MODEL_API_KEY", "CONFIG", "URL", "KEY", "PROJECT", "DOMAIN"}

// othersVariables begin variables that others set: Kubernetes and Docker for a service that is called docent, and this
// project's tests.
var othersVariables = []string{"SERVICE_", "PORT", "TEST_"}

// unknownVariables says which of the environment's variables look like settings and are none. Variables that hold
// secrets have names of the operator's choice: those of the configuration and of the projects are known.
func (c *Config) unknownVariables(environ []string, projects []api.Project) []string {
	known := map[string]bool{}
	for _, name := range otherVariables {
		known[envPrefix+name] = true
	}
	for _, s := range c.settings() {
		known[s.Env()] = true
	}
	settings := slices.Sorted(maps.Keys(known))
	secret := func(name string) { known[name], known[name+"_FILE"] = true, true }
	for _, m := range c.Models {
		secret(m.KeyEnv)
	}
	for _, name := range []string{c.OIDC.SecretEnv, c.Embeddings.KeyEnv, c.Tracing.HeadersEnv, modelKeyEnv, catalogEnv, nodeSecretEnv} {
		secret(name)
	}
	for _, p := range projects {
		secret(p.TokenEnv)
		secret(p.WebhookEnv)
	}
	var lines []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, envPrefix) || known[name] || slices.ContainsFunc(othersVariables,
			func(p string) bool { return strings.HasPrefix(name, envPrefix+p) }) {
			continue
		}
		lines = append(lines, fmt.Sprintf("the environment variable %s is no setting and has no effect%s", name,
			didYouMean("", near(name, settings))))
	}
	slices.Sort(lines)
	return lines
}
