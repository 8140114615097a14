// Package config has the settings: where they come from, their defaults, their bounds, and what is wrong with them.
package config

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"docent/api"
	"docent/internal/secret"
	"docent/router"
)

// Config is every setting of the server. The tags are the one list of settings: the name in the configuration file,
// which with DOCENT_ before it and in capitals is the environment variable, the flag where there is one, and what it is
// for. A flag beats the environment, which beats the file, which beats the default.
type Config struct {
	Data           string   `toml:"data" flag:"data" usage:"data directory, used by one process at a time"`
	Listen         string   `toml:"listen" flag:"listen" usage:"address to listen on, HOST:PORT"`
	PublicURL      string   `toml:"public_url" flag:"public-url" usage:"public address; links begin with it"`
	BackupDir      string   `toml:"backup_dir" usage:"folder for the console's backups; empty: the data directory's name and -backups"`
	CatalogDSN     string   `toml:"catalog_dsn" flag:"catalog-dsn" usage:"catalog database: postgres://…, or empty for SQLite in the data directory"`
	Journal        string   `toml:"journal" flag:"journal" usage:"where jobs and threads are stored: bbolt (a file in the data directory), or postgres (catalog_dsn, for several nodes)"`
	NodeName       string   `toml:"node_name" flag:"node-name" usage:"this node's name; empty: the machine's"`
	NodeListen     string   `toml:"node_listen" flag:"node-listen" usage:"HOST:PORT for other nodes (journal = postgres); empty: a single node"`
	NodeAddress    string   `toml:"node_address" flag:"node-address" usage:"HOST:PORT under which other nodes reach node_listen, if different"`
	LogLevel       string   `toml:"log_level" flag:"log-level" usage:"debug, info, warn or error"`
	LogFormat      string   `toml:"log_format" flag:"log-format" usage:"text or json"`
	TrustedProxies []string `toml:"trusted_proxies" usage:"addresses or CIDR ranges whose X-Forwarded-For is trusted"`
	MetricsFrom    []string `toml:"metrics_from" usage:"addresses or CIDR ranges that read /metrics without an admin key"`

	TLSCert         string   `toml:"tls_cert" flag:"tls-cert" usage:"PEM file with certificate and chain; reloaded when it changes"`
	TLSKey          string   `toml:"tls_key" flag:"tls-key" usage:"PEM file with the key of tls_cert"`
	ACMEDomains     []string `toml:"acme_domains" usage:"names to get ACME certificates for"`
	ACMEEmail       string   `toml:"acme_email" usage:"contact address for the authority"`
	ACMEDirectory   string   `toml:"acme_directory" usage:"directory URL of the authority; empty: Let's Encrypt"`
	ACMERoot        string   `toml:"acme_ca_root" usage:"PEM file of your own authority's root; empty: the system's"`
	ACMEAcceptTerms bool     `toml:"acme_accept_terms" usage:"agree to the authority's terms of service; required"`
	RedirectListen  string   `toml:"redirect_listen" flag:"redirect-listen" usage:"HOST:PORT for plain HTTP: redirects to https and answers a certificate authority"`
	HSTS            Duration `toml:"hsts" usage:"how long browsers use only TLS (Strict-Transport-Security); 0: off, as by default behind a TLS proxy"`

	OperatorListen string `toml:"operator_listen" usage:"private HOST:PORT or unix:PATH for operators: metrics, health and /debug, without a key"`

	Model  string           `toml:"default_model" usage:"model of projects that name none: builtin, or a name from [models]"`
	Models map[string]Model `toml:"models"`

	Embeddings Embeddings `toml:"embeddings"`
	Questions  Questions  `toml:"questions"`

	// ModelAliases are other names that jobs may ask for; an empty one stands for the project's model.
	ModelAliases map[string]string `toml:"model_aliases"`

	Limits api.Limits `toml:"limits"`

	Checks       map[string]CheckConfig `toml:"checks"`
	CheckSandbox string                 `toml:"check_sandbox" usage:"sandbox of [checks]: auto (the first that this machine has, else refused), or none (all rights of the server's user)"`

	OIDC OIDC `toml:"oidc"`

	Tracing Tracing `toml:"tracing"`

	MaxBody        int64    `toml:"max_body" usage:"maximum bytes of a request body"`
	MaxRequests    int      `toml:"max_requests" usage:"maximum requests in progress or waiting, without streams; more get 503"`
	MaxClientShare int      `toml:"max_client_share" usage:"percent of what is left of a budget that one client address may use; 100: no limit"`
	Unlimited      []string `toml:"unlimited_clients" usage:"addresses or CIDR ranges without max_client_share; trusted_proxies never have it"`
	MaxStreams     int      `toml:"max_streams" usage:"maximum open assistant streams; more get 503"`
	StreamPace     Duration `toml:"stream_pace" usage:"minimum time between two writes of text to a reader"`
	StreamWriter   string   `toml:"stream_writer" flag:"stream-writer" usage:"writer of language models' answers: sockets (many open streams), or handler (plain net/http)"`
	MaxTurns       int      `toml:"max_turns" usage:"maximum answers written at once; further questions wait"`
	MaxRunningJobs int      `toml:"max_running_jobs" usage:"maximum jobs running at once; further jobs wait"`
	MaxOpenJobs    int      `toml:"max_open_jobs" usage:"maximum unfinished jobs, including those that wait for a model"`
	MaxOpenIndexes int      `toml:"max_open_indexes" usage:"maximum open search indexes"`
	IndexMemory    int64    `toml:"index_memory" usage:"maximum bytes of all open search indexes"`
	MemoryLimit    int64    `toml:"memory_limit" usage:"memory target in bytes; 0: GOMEMLIMIT, else three quarters of the machine or container"`
	IdleAfter      Duration `toml:"idle_after" usage:"time after which an idle job or thread leaves memory"`
	PollInterval   Duration `toml:"poll_interval" usage:"how often sources are checked for changes; 0: never"`
	DrainTimeout   Duration `toml:"drain_timeout" usage:"time for open streams to finish when the server stops"`
	JobTimeout     Duration `toml:"job_timeout" usage:"time limit of one instruction, without waits for a model or code host"`
	JobPatience    Duration `toml:"job_patience" usage:"how long a job waits for a model or code host"`
	TurnTimeout    Duration `toml:"turn_timeout" usage:"time limit of one answer"`

	WebhookAllow []string `toml:"webhook_allow" usage:"private addresses or CIDR ranges that outgoing webhooks may reach"`

	AgentSteps  int   `toml:"agent_steps" usage:"language model replies per instruction; 0: no limit"`
	AgentTokens int64 `toml:"agent_tokens" usage:"tokens per instruction; 0: no limit"`
	AgentCost   int64 `toml:"agent_cost" usage:"US cents per instruction; 0: no limit"`
	AgentChange int64 `toml:"agent_change" usage:"bytes of pages that a language model may change or delete per instruction; 0: no limit"`

	AnswerTokens int   `toml:"answer_tokens" usage:"tokens per answer; 0: no limit"`
	AnswerCost   int64 `toml:"answer_cost" usage:"US cents per answer; 0: no limit"`

	ThreadRetention Duration `toml:"thread_retention" usage:"threads unused for this long are deleted; 0: never"`

	Now            func() time.Time  `toml:"-"` // that all packages take the time from
	BeforeIndexing func(api.Project) `toml:"-"`

	SlackURL   string `toml:"-"` // of Slack's methods
	DiscordURL string `toml:"-"` // of Discord's API

	CatalogSecret *secret.Secret `toml:"-"` // where catalog_dsn is given as a secret; nil elsewhere

	NodeID            string         `toml:"-"` // of this life of a server whose journal several nodes can share; empty for others
	nodeSecret        *secret.Secret // that nodes know each other by; nil if none is given
	nodeSecretProblem error

	removed []string          // what to say of settings of earlier versions
	origins map[string]string // where each setting has its value from, by its name; from its default where it is not there
	lines   map[string]int    // of the file, where each setting and table is
}

// Where a setting has its value from.
const (
	FromDefault     = "default"
	FromFile        = "file"
	FromEnvironment = "environment"
	FromFlag        = "flag"
)

// From is where a setting has its value from; empty if it has its default.
func (c *Config) From(setting string) string { return c.origins[setting] }

// A Model is one [models.NAME] table.
type Model struct {
	Provider  string   `toml:"provider"`   // builtin, openai, anthropic, scripted
	BaseURL   string   `toml:"base_url"`   // of the endpoint
	Model     string   `toml:"model"`      // the endpoint's name for it
	KeyEnv    string   `toml:"key_env"`    // environment variable that holds the endpoint's key
	MaxTokens int      `toml:"max_tokens"` // of one answer
	Window    int      `toml:"window"`     // tokens of prompt and answer together
	Timeout   Duration `toml:"timeout"`    // of one answer
	Idle      Duration `toml:"idle"`       // between two pieces of it
	Attempts  int      `toml:"attempts"`   // until the first piece came
	API       string   `toml:"api"`        // of OpenAI's forms: chat or responses; what the model is known for if empty
	Effort    string   `toml:"reasoning_effort"`
	Whole     bool     `toml:"whole"`    // ask for answers in one piece: for servers that do not stream calls of tools
	Searches  int      `toml:"searches"` // of the model's own for one answer; 3 if 0, none if negative

	// What is sent beside what Docent sends.
	ExtraBody    map[string]any    `toml:"extra_body"`
	ExtraHeaders map[string]string `toml:"extra_headers"`

	// Where it cannot answer a reader, the built-in model does.
	Fallback      *bool    `toml:"fallback"`       // true where it is left out
	FallbackAfter Duration `toml:"fallback_after"` // of silence before an answer begins; 30 seconds where 0

	// What becomes of a claim that no passage supports: "remove" where it is empty, "mark" or "off"; and the model that is
	// asked about those that their words leave in doubt: none if empty.
	Claims      string `toml:"claims"`
	ClaimsModel string `toml:"claims_model"`

	// The model that reads questions together with their conversation before the documentation is searched: this one where
	// empty, none if it is "off"; and how long it may take, 4 seconds if 0.
	Rewrite        string   `toml:"rewrite"`
	RewriteTimeout Duration `toml:"rewrite_timeout"`

	// US dollars for a million tokens.
	PromptPrice float64 `toml:"prompt_price"`
	// of the prompt's tokens those that the endpoint had kept; like the others where 0
	CachedPrice     float64 `toml:"cached_price"`
	CompletionPrice float64 `toml:"completion_price"`

	// Of the scripted provider, which writes prepared text at a given speed.
	FirstDelay Duration `toml:"first_delay"`
	Rate       float64  `toml:"rate"`   // pieces a second
	Jitter     Duration `toml:"jitter"` // by how much a piece may come later
	Parts      int      `toml:"parts"`  // pieces
	Text       string   `toml:"text"`

	Key        *secret.Secret `toml:"-"` // of KeyEnv or DOCENT_MODEL_API_KEY; nil if neither is named
	keyProblem error
}

// A CheckConfig is one [checks.PROJECT] table: a command of the operator's that looks at the results of language models
// before they are published. No repository and no caller can set one.
type CheckConfig struct {
	Command []string `toml:"command"` // program and arguments; no shell reads them
	Folder  string   `toml:"folder"`  // of the repository, that it runs in
	Timeout Duration `toml:"timeout"` // of one run
	Memory  int64    `toml:"memory"`  // bytes that it and what it starts may hold together
	Path    string   `toml:"path"`    // its PATH
	Read    []string `toml:"read"`    // folders and files of the machine that it sees beyond the system's programs
	Network bool     `toml:"network"` // it reaches what the machine reaches
}

// A Duration is written as in Go: 30s, 2m, 1h30m.
type Duration struct{ time.Duration }

// UnmarshalText reads a duration from a configuration file or an environment variable.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 30s or 2m", text)
	}
	d.Duration = parsed
	return nil
}

// MarshalText writes a duration as UnmarshalText reads it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Default is the configuration where nothing is set.
func Default() Config {
	bounds := router.DefaultBounds()
	return Config{
		Now:  time.Now,
		Data: "data", Listen: "127.0.0.1:8080", Journal: JournalBolt, LogLevel: "info", LogFormat: "text", Model: "builtin",
		MetricsFrom: []string{"127.0.0.0/8", "::1"},
		// What version 1 of the API calls its models.
		ModelAliases: map[string]string{"sonnet": "", "opus": ""},
		Limits:       router.DefaultLimits(),
		CheckSandbox: sandboxAuto, HSTS: Duration{30 * 24 * time.Hour},
		OIDC:       defaultOIDC(),
		Embeddings: defaultEmbeddings(), Questions: Questions{DayCost: 100, DayTokens: 2_000_000},
		Tracing: defaultTracing(),
		MaxBody: bounds.BodyBytes, MaxRequests: bounds.Requests, MaxStreams: bounds.Streams,
		MaxClientShare: router.DefaultClientShare, Unlimited: []string{"127.0.0.0/8", "::1"},
		StreamPace: Duration{40 * time.Millisecond}, StreamWriter: writerSockets, MaxTurns: 20_000,
		MaxRunningJobs: 2 * runtime.GOMAXPROCS(0), MaxOpenJobs: 64,
		MaxOpenIndexes: 32, IndexMemory: 512 << 20, IdleAfter: Duration{2 * time.Minute}, PollInterval: Duration{time.Minute},
		DrainTimeout: Duration{30 * time.Second}, JobTimeout: Duration{10 * time.Minute}, JobPatience: Duration{6 * time.Hour},
		TurnTimeout: Duration{5 * time.Minute},
		AgentSteps:  100, AgentTokens: 2_000_000, AgentCost: 300, AgentChange: 1 << 20,
		AnswerTokens: 200_000, AnswerCost: 100,
	}
}

// What can write streams.
const (
	writerSockets = "sockets"
	WriterHandler = "handler"
)

// EnvPrefix begins the environment variable of every setting.
const EnvPrefix = "DOCENT_"

// Load reads the defaults, over them the configuration file (none if path is empty), over that the
// environment, and over that the flags that were given. The error lists everything that cannot be used.
func Load(path string, environ func(string) (string, bool), flags *pflag.FlagSet) (Config, error) {
	c, list := Read(path, environ, flags)
	return c, list.err()
}

// Read is Load with each problem by itself. What cannot be used has its default.
func Read(path string, environ func(string) (string, bool), flags *pflag.FlagSet) (Config, Problems) {
	var list Problems
	c := readConfigFile(path, &list)
	settings := c.Settings()
	c.origins = map[string]string{}
	for _, s := range settings {
		if c.lines[s.Name] > 0 {
			c.origins[s.Name] = FromFile
		}
	}
	for _, s := range settings {
		if text, ok := environ(s.Env()); ok {
			c.origins[s.Name] = FromEnvironment
			if err := s.Set(text); err != nil {
				list.add(s.Name, "%w", err).From = FromEnvironment
			}
		}
	}
	c.modelFromEnvironment(environ)
	for _, s := range settings {
		if flags == nil || s.Flag == "" {
			continue
		}
		if f := flags.Lookup(s.Flag); f != nil && f.Changed {
			c.origins[s.Name] = FromFlag
			if err := s.Set(f.Value.String()); err != nil {
				list.add(s.Name, "%w", err).From = FromFlag
			}
		}
	}
	for name, m := range c.Models {
		if m.KeyEnv != "" {
			m.Key, m.keyProblem = secret.New(m.KeyEnv, environ)
			c.Models[name] = m
		}
	}
	if c.Embeddings.KeyEnv != "" {
		c.Embeddings.Key, c.Embeddings.keyProblem = secret.New(c.Embeddings.KeyEnv, environ)
	}
	if c.Tracing.HeadersEnv != "" {
		c.Tracing.Headers, c.Tracing.headersProblem = secret.Read(c.Tracing.HeadersEnv, environ)
	}
	c.OIDC.resolve(environ)
	if err := c.resolveCatalog(environ); err != nil {
		list.add("catalog_dsn", "%w", err)
	}
	if c.nodeSecret, c.nodeSecretProblem = secret.New(NodeSecretEnv, environ); c.nodeSecretProblem != nil {
		c.nodeSecret = nil // nothing is sealed under an empty secret
	}
	c.check(&list)
	return c, list.placed(path, &c)
}

// catalogEnv is the variable of the setting catalog_dsn. It may hold a password, and so may be given as secrets are.
const catalogEnv = EnvPrefix + "CATALOG_DSN"

// resolveCatalog finds the catalog's address where no setting has it.
func (c *Config) resolveCatalog(environ secret.Environ) error {
	if c.CatalogDSN != "" {
		return nil
	}
	dsn, err := secret.New(catalogEnv, environ)
	if err != nil {
		if errors.Is(err, secret.ErrMissing) {
			return nil
		}
		return err
	}
	c.CatalogDSN, c.CatalogSecret, c.origins["catalog_dsn"] = dsn.Value(), dsn, FromEnvironment
	return nil
}

// modelFromEnvironment makes the default model from DOCENT_MODEL_BASE_URL, DOCENT_MODEL and DOCENT_MODEL_API_KEY, so
// that a language model needs no file.
func (c *Config) modelFromEnvironment(environ func(string) (string, bool)) {
	base, ok := environ(EnvPrefix + "MODEL_BASE_URL")
	if !ok || base == "" {
		return
	}
	name, _ := environ(EnvPrefix + "MODEL")
	key, err := secret.New(modelKeyEnv, environ)
	if errors.Is(err, secret.ErrMissing) {
		key, err = nil, nil // an endpoint of one's own needs none
	}
	if c.Models == nil {
		c.Models = map[string]Model{}
	}
	c.Models["default"] = Model{Provider: "openai", BaseURL: base, Model: name, Key: key, keyProblem: err}
	if _, chosen := environ(EnvPrefix + "DEFAULT_MODEL"); !chosen && c.Model == "builtin" {
		c.Model = "default"
		c.origins["default_model"] = FromEnvironment
	}
}

// A Setting is one scalar setting of a Config.
type Setting struct {
	Name    string // in the file, with its table: "limits.key_month"
	Flag    string // without dashes; empty if there is none
	Usage   string
	Default string
	value   reflect.Value
}

// Env is the setting's environment variable.
func (s Setting) Env() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(s.Name, ".", "_"))
}

// Set reads the value from text.
func (s Setting) Set(text string) error {
	switch v := s.value.Addr().Interface().(type) {
	case *string:
		*v = text
	case *[]string:
		*v = nil
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				*v = append(*v, item)
			}
		}
	case *Duration:
		return v.UnmarshalText([]byte(text))
	case *bool:
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*v = yes
	case *float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		*v = n
	case *int, *int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		s.value.SetInt(n)
	default:
		return fmt.Errorf("a setting of the type %T cannot be read from text", v)
	}
	return nil
}

// Value is the value in its own type.
func (s Setting) Value() any { return s.value.Interface() }

// number is the value of a count, or of a duration in nanoseconds.
func (s Setting) number() (int64, bool) {
	switch v := s.value.Interface().(type) {
	case Duration:
		return int64(v.Duration), true
	case int, int64:
		return s.value.Int(), true
	}
	return 0, false
}

// format writes n as a value of this setting.
func (s Setting) format(n int64) string {
	if _, ok := s.value.Interface().(Duration); ok {
		return time.Duration(n).String()
	}
	return strconv.FormatInt(n, 10)
}

// String is the value as Set reads it.
func (s Setting) String() string {
	if list, ok := s.value.Interface().([]string); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(s.value.Interface())
}

var limitUsage = map[string]string{
	"project_hour": "jobs and follow-ups of a project per hour; negative: no limit",
	"key_month":    "assistant messages of a key per calendar month (UTC); negative: no limit",
	"org_hour":     "assistant messages of an organization per hour; negative: no limit",
	"ip_day":       "assistant messages of a client address per day; negative: no limit",
}

// Settings lists the scalar settings of c, in the order of the struct. Setting one changes c.
func (c *Config) Settings() []Setting {
	defaults := Default()
	var list []Setting
	add := func(name string, field reflect.StructField, usage string, value, standard reflect.Value) {
		list = append(list, Setting{Name: name, Flag: field.Tag.Get("flag"), Usage: usage,
			Default: Setting{value: standard}.String(), value: value})
	}
	v, d := reflect.ValueOf(c).Elem(), reflect.ValueOf(&defaults).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || field.Tag.Get("toml") == "-" {
			continue
		}
		name := field.Tag.Get("toml")
		switch field.Type {
		case reflect.TypeFor[map[string]Model](), reflect.TypeFor[map[string]CheckConfig](),
			reflect.TypeFor[map[string]string]():
		case reflect.TypeFor[api.Limits]():
			for j := range v.Field(i).NumField() {
				limit := field.Type.Field(j)
				add(name+"."+limit.Tag.Get("toml"), limit, limitUsage[limit.Tag.Get("toml")], v.Field(i).Field(j),
					d.Field(i).Field(j))
			}
		case reflect.TypeFor[OIDC](), reflect.TypeFor[Embeddings](), reflect.TypeFor[Questions](), reflect.TypeFor[Tracing]():
			for j := range v.Field(i).NumField() {
				if inner := field.Type.Field(j); inner.IsExported() && inner.Tag.Get("toml") != "-" {
					add(name+"."+inner.Tag.Get("toml"), inner, inner.Tag.Get("usage"), v.Field(i).Field(j), d.Field(i).Field(j))
				}
			}
		default:
			add(name, field, field.Tag.Get("usage"), v.Field(i), d.Field(i))
		}
	}
	return list
}
