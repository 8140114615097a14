package config

import (
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/agent/check/sandbox"
	"docent/api"
	"docent/model"
	"docent/model/registry"
	"docent/model/remote"
)

// check names every setting that cannot be used.
func (c Config) check(list *Problems) {
	c.checkServer(list)
	c.checkModels(list)
	c.OIDC.check(list)
	c.Embeddings.check(list)
	c.Questions.check(list, c.Models)
	c.Tracing.check(list)
	for name, check := range c.Checks {
		check.check(list, "checks."+name)
	}
	if c.CheckSandbox != sandboxAuto && c.CheckSandbox != string(sandbox.None) {
		list.add("check_sandbox", "%q is neither %s nor %s", c.CheckSandbox, sandboxAuto, sandbox.None)
	}
	for _, s := range c.Settings() {
		least, ok := leastValues[s.Name]
		if n, isCount := s.number(); ok && isCount && n < least {
			list.add(s.Name, "%s is less than %s", s, s.format(least))
		}
	}
}

// checkServer looks at the settings of one value.
func (c Config) checkServer(list *Problems) {
	if c.Data == "" {
		list.add("data", "must name a directory")
	}
	list.hostPort("listen", c.Listen)
	if path, is := strings.CutPrefix(c.OperatorListen, UnixScheme); is {
		if !filepath.IsAbs(path) {
			list.add("operator_listen", "%q is no path from the root, as in unix:/run/docent/operator.sock", path)
		}
	} else if c.OperatorListen != "" {
		list.hostPort("operator_listen", c.OperatorListen)
	}
	c.checkTLS(list)
	c.checkNodes(list)
	if c.MaxClientShare > 100 {
		list.add("max_client_share", "%d is more than 100 percent", c.MaxClientShare)
	}
	if c.PublicURL != "" && !WebURL(c.PublicURL) {
		list.add("public_url", "%q is not an http or https URL", c.PublicURL)
	}
	if c.CatalogDSN != "" && !hasAnyPrefix(c.CatalogDSN, "sqlite:", "postgres://", "postgresql://") {
		list.add("catalog_dsn", "must begin with sqlite: or postgres://") // the value may hold a password
	}
	if err := new(slog.Level).UnmarshalText([]byte(c.LogLevel)); err != nil {
		list.add("log_level", "%q is none of debug, info, warn, error", c.LogLevel)
	}
	if c.StreamWriter != writerSockets && c.StreamWriter != WriterHandler {
		list.add("stream_writer", "%q is neither %s nor %s", c.StreamWriter, writerSockets, WriterHandler)
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		list.add("log_format", "%q is neither text nor json", c.LogFormat)
	}
	for setting, ranges := range map[string][]string{"trusted_proxies": c.TrustedProxies, "metrics_from": c.MetricsFrom,
		"unlimited_clients": c.Unlimited, "webhook_allow": c.WebhookAllow} {
		for _, p := range ranges {
			if _, err := parsePrefix(p); err != nil {
				list.add(setting, "%q is neither an address nor a CIDR range", p)
			}
		}
	}
}

// hostPort adds a problem where a value is no address to listen on.
func (p *Problems) hostPort(setting, value string) {
	if _, port, err := net.SplitHostPort(value); err != nil {
		p.add(setting, "%q is not HOST:PORT", value)
	} else if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		p.add(setting, "port %q is not a number from 0 to 65535", port)
	}
}

func (c Config) checkModels(list *Problems) {
	if _, ok := c.Models[c.Model]; !ok && c.Model != "builtin" {
		list.add("default_model", "there is no [models.%s]", c.Model)
	}
	for alias, name := range c.ModelAliases {
		if _, ok := c.Models[name]; !ok && name != "" && name != "builtin" {
			list.add("model_aliases."+alias, "there is no [models.%s]", name)
		}
	}
	for name, m := range c.Models {
		for _, problem := range m.problems() {
			list.add("models."+name+"."+problem.Field, "%s", problem.Message).Fix = modelFixes[problem.Field]
		}
		if judge, ok := c.Models[m.ClaimsModel]; m.ClaimsModel != "" && (!ok || judge.Provider != model.OpenAI && judge.Provider != model.Anthropic) {
			list.add("models."+name+".claims_model", "there is no language model [models.%s]", m.ClaimsModel)
		}
		if by, ok := c.Models[m.Rewrite]; m.Rewrite != "" && m.Rewrite != registry.Off &&
			(!ok || by.Provider != model.OpenAI && by.Provider != model.Anthropic) {
			list.add("models."+name+".rewrite", "there is no language model [models.%s]; \"off\" turns it off", m.Rewrite)
		}
	}
}

// modelFixes are what to do about a field of a model's table.
var modelFixes = map[string]string{
	"model":    `write model = "NAME" as the endpoint calls it`,
	"key_env":  "set the variable in the server's environment (EnvironmentFile= in its unit), or remove key_env for an endpoint without a key",
	"base_url": `write the whole address, such as "https://api.example.com/v1", or leave it out for the provider's own`,
	"provider": `write provider = "openai" for any endpoint that speaks its chat completions`,
}

func (c CheckConfig) check(list *Problems, name string) {
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		list.add(name+".command", "must name a program")
	case c.Timeout.Duration < 0 || c.Memory < 0:
		list.add(name, "a time and an amount of memory are not negative")
	case c.Folder != "" && !filepath.IsLocal(c.Folder):
		list.add(name+".folder", "%q is no folder within a repository", c.Folder)
	}
	for _, p := range c.Read {
		if !filepath.IsAbs(p) || filepath.Clean(p) == "/" {
			list.add(name+".read", "%q is not an absolute path of a folder or file", p)
		}
	}
}

// problems lists what is wrong with a model's table.
func (m Model) problems() []api.Problem {
	var list []api.Problem
	for field, price := range map[string]float64{"prompt_price": m.PromptPrice, "cached_price": m.CachedPrice,
		"completion_price": m.CompletionPrice} {
		if price < 0 || price != price || price > 1e6 {
			list = append(list, api.Problem{Field: field, Message: "must be US dollars for a million tokens"})
		}
	}
	if m.RewriteTimeout.Duration < 0 {
		list = append(list, api.Problem{Field: "rewrite_timeout", Message: "must not be negative"})
	}
	if m.FallbackAfter.Duration < 0 {
		list = append(list, api.Problem{Field: "fallback_after", Message: "must not be negative"})
	}
	switch m.Claims {
	case "", remote.ClaimsRemove, remote.ClaimsMark, remote.ClaimsOff:
	default:
		list = append(list, api.Problem{Field: "claims", Message: strconv.Quote(m.Claims) + " is none of remove, mark, off"})
	}
	switch m.Provider {
	case "builtin", "scripted":
	case "openai", "anthropic":
		if m.BaseURL != "" && !WebURL(m.BaseURL) {
			list = append(list, api.Problem{Field: "base_url", Message: strconv.Quote(m.BaseURL) +
				" is not an http or https URL"})
		}
		if m.Model == "" {
			list = append(list, api.Problem{Field: "model", Message: "must name the endpoint's model"})
		}
		list = append(list, m.extraProblems()...)
		if m.keyProblem != nil {
			list = append(list, api.Problem{Field: "key_env", Message: m.keyProblem.Error()})
		}
	default:
		list = append(list, api.Problem{Field: "provider", Message: strconv.Quote(m.Provider) +
			" is none of builtin, openai, anthropic, scripted"})
	}
	return list
}

// extraProblems says what of the fields and headers that go with a model's requests cannot be used.
func (m *Model) extraProblems() (list []api.Problem) {
	if m.API != "" && (m.Provider != "openai" || m.API != remote.ChatCompletions && m.API != remote.Responses) {
		list = append(list, api.Problem{Field: "api", Message: strconv.Quote(m.API) + " is neither chat nor responses, of the provider openai"})
	}
	for _, name := range slices.Sorted(maps.Keys(m.ExtraBody)) {
		if slices.Contains([]string{"model", "messages", "input", "system", "instructions", "tools", "stream"}, name) {
			list = append(list, api.Problem{Field: "extra_body." + name, Message: "is what Docent sends itself"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.ExtraHeaders)) {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`:"(),/;<=>?@[\]{}`, r) }) ||
			strings.ContainsFunc(m.ExtraHeaders[name], func(r rune) bool { return r < ' ' || r == 0x7f }) {
			list = append(list, api.Problem{Field: "extra_headers." + name, Message: "is no HTTP header"})
		}
	}
	return list
}

// leastValues are the lower bounds of counts and durations (in nanoseconds).
var leastValues = map[string]int64{
	"max_body": 1024, "max_requests": 1, "max_client_share": 1, "max_streams": 1, "max_turns": 1, "max_running_jobs": 1, "max_open_jobs": 1,
	"max_open_indexes": 1, "index_memory": 1,
	"memory_limit": 0, "stream_pace": 0, "idle_after": int64(time.Second), "poll_interval": 0, "drain_timeout": 0,
	"job_timeout": int64(time.Second), "job_patience": int64(time.Second), "turn_timeout": int64(time.Second),
	"embeddings.dimensions": 0, "embeddings.longest": 200, "embeddings.batch": 1, "embeddings.timeout": int64(time.Second),
	"embeddings.question_timeout": int64(time.Millisecond), "embeddings.day_tokens": 0,
	"thread_retention": 0, "hsts": 0, "answer_tokens": 0, "answer_cost": 0, "agent_steps": 0,
	"agent_tokens": 0, "agent_cost": 0, "agent_change": 0,
}

// WebURL reports whether a text is an http or https URL.
func WebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

func hasAnyPrefix(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
}

func parsePrefix(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return addr.Prefix(addr.BitLen())
}
