package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"docent/agent/check/sandbox"
	"docent/api"
	"docent/model"
	"docent/model/remote"
)

// A Problem is one thing that is wrong with a configuration.
type Problem struct {
	Severity string `json:"severity"`          // problem: no server starts with it; warning: one does
	Setting  string `json:"setting,omitempty"` // empty if the file itself cannot be read
	From     string `json:"from,omitempty"`    // file, environment, flag or default
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Message  string `json:"message"`
	Fix      string `json:"fix,omitempty"`

	named bool // the message says which setting it is about
	err   error
}

// How bad a problem is: a server does not start with it, or only warns of it.
const (
	SeverityProblem = "problem"
	severityWarning = "warning"
)

// Problems are what is wrong with settings.
type Problems []*Problem

// add adds a problem of a setting.
func (p *Problems) add(setting, format string, args ...any) *Problem {
	err := fmt.Errorf(format, args...)
	problem := &Problem{Severity: SeverityProblem, Setting: setting, Message: err.Error(), named: setting == "",
		err: err}
	*p = append(*p, problem)
	return problem
}

// doubt adds a warning.
func (p *Problems) doubt(setting, fix, format string, args ...any) {
	problem := p.add(setting, format, args...)
	problem.Severity, problem.Fix = severityWarning, fix
}

// Error is the problem in one line, with the place where it is.
func (p *Problem) Error() string {
	var b strings.Builder
	switch {
	case p.From == FromEnvironment && p.Setting != "":
		fmt.Fprintf(&b, "environment variable %s: ", Setting{Name: p.Setting}.Env())
	case p.File != "" && p.Line > 0:
		fmt.Fprintf(&b, "%s, line %d: ", p.File, p.Line)
	case p.File != "":
		fmt.Fprintf(&b, "%s: ", p.File)
	}
	if !p.named {
		fmt.Fprintf(&b, "setting %s: ", p.Setting)
	}
	b.WriteString(p.Message)
	if p.Fix != "" {
		b.WriteString("; " + p.Fix)
	}
	return b.String()
}

func (p *Problem) Unwrap() error { return p.err }

// err is what keeps a server from starting; nil if nothing does.
func (p Problems) err() error {
	var errs []error
	for _, problem := range p {
		if problem.Severity == SeverityProblem {
			errs = append(errs, problem)
		}
	}
	return errors.Join(errs...)
}

// placed says of every problem where its setting has the value from, and drops those that follow from another one: a
// value that could not be read is not judged by the default that stands in for it. It is in the order of the file.
func (p Problems) placed(file string, c *Config) Problems {
	settings := c.Settings()
	read := map[string]bool{}
	var out Problems
	for _, problem := range p {
		if problem.Setting != "" && read[problem.Setting] {
			continue
		}
		read[problem.Setting] = true
		problem.From = cmp.Or(problem.From, c.origins[problem.Setting], FromDefault)
		if problem.Line == 0 && problem.From != FromEnvironment && problem.From != FromFlag {
			problem.Line = lineOf(problem.Setting, c.lines)
		}
		if problem.Line > 0 {
			problem.From = FromFile
		}
		if problem.From == FromFile {
			problem.File = file
		}
		if problem.Fix == "" {
			problem.Fix = usualFix(problem, settings)
		}
		out = append(out, problem)
	}
	slices.SortStableFunc(out, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Line, b.Line))
	})
	return out
}

// lineOf is the line of a setting, or of the table that lacks it.
func lineOf(setting string, lines map[string]int) int {
	for name := setting; name != ""; {
		if line := lines[name]; line > 0 {
			return line
		}
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			break
		}
		name = name[:i]
	}
	return 0
}

// usualFix is what helps where a problem has no fix of its own: the default.
func usualFix(p *Problem, settings []Setting) string {
	i := slices.IndexFunc(settings, func(s Setting) bool { return s.Name == p.Setting })
	if i < 0 {
		return ""
	}
	s := settings[i]
	standard := "it is empty by default"
	if s.Default != "" {
		standard = "the default is " + s.Default
	}
	switch p.From {
	case FromEnvironment:
		return "set it right or unset it: " + standard
	case FromFlag:
		return "give --" + s.Flag + " another value or leave it out: " + standard
	}
	return "set it right or remove the line: " + standard
}

// Doubts are what a server starts with and its operator did not mean: settings that contradict each other or have no
// effect.
func (c Config) Doubts() (list Problems) {
	anybody := func(p netip.Prefix) bool { return p.Bits() == 0 }
	if slices.ContainsFunc(Prefixes(c.TrustedProxies), anybody) {
		list.doubt("trusted_proxies", "name the proxy's own address or its network",
			"anyone can claim any address in X-Forwarded-For, so that limits by address have no effect")
	}
	if c.OverTLS() && strings.HasPrefix(c.PublicURL, "http://") {
		list.doubt("public_url", "begin it with https://", "the server speaks TLS, and links to it would not")
	}
	if slices.ContainsFunc(Prefixes(c.MetricsFrom), anybody) {
		list.doubt("metrics_from", "name the addresses of the monitoring, or give it an admin key",
			"anyone can read /metrics")
	}
	if c.MemoryLimit > 0 && c.IndexMemory >= c.MemoryLimit {
		list.doubt("index_memory", "raise memory_limit, or lower index_memory to a half of it",
			"the open indexes may hold %d bytes, and memory_limit has the whole process stay under %d", c.IndexMemory, c.MemoryLimit)
	}
	if within(c.Data, c.BackupDir) {
		list.doubt("backup_dir", "name a folder beside the data directory, on another disk at best",
			"backups would lie in the data directory itself")
	}
	if c.OIDC.Issuer == "" && len(c.OIDC.Domains)+len(c.OIDC.ClientID) > 0 {
		list.doubt("oidc.issuer", `set issuer in [oidc] to the provider's address, such as "https://id.example.com"`,
			"there is no provider, so that the other settings of [oidc] have no effect")
	}
	if c.OIDC.Issuer != "" && c.OIDC.secretProblem != nil {
		list.doubt("oidc.client_secret_env", "set the variable in the server's environment, or client_secret_env = \"\" for a client without a secret",
			"%v", c.OIDC.secretProblem)
	}
	if u, err := url.Parse(c.PublicURL); err == nil && c.PublicURL != "" && (strings.Trim(u.Path, "/") != "" || u.RawQuery != "") {
		list.doubt("public_url", "serve Docent under a host name of its own", "%q has a path: pages and the API are served from the root of a host", c.PublicURL)
	}
	c.modelDoubts(&list)
	if c.CheckSandbox == string(sandbox.None) && len(c.Checks) > 0 {
		list.doubt("check_sandbox", "remove the line: checks run in a sandbox then",
			"what a repository holds runs in checks with all rights of the server's user: it reads the secrets and is the operator")
	}
	commands := c.CheckCommands("")
	for name, check := range c.Checks {
		if len(check.Command) == 0 || check.Folder != "" && strings.Contains(check.Command[0], "/") {
			continue
		}
		if err := commands.Blind(api.ProjectID(name)); err != nil {
			list.doubt("checks."+name+".read", `name the folders that it needs, such as read = ["/opt/tools"]`, "%v", err)
		}
		if _, err := exec.LookPath(check.Command[0]); err != nil && check.Path == "" {
			list.doubt("checks."+name+".command", "install it, or write its whole path", "%v", err)
		}
	}
	return list
}

func (c Config) modelDoubts(list *Problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		m, at := c.Models[name], "models."+name+"."
		if m.Provider != model.OpenAI && m.Provider != model.Anthropic {
			continue
		}
		if m.Timeout.Duration > c.TurnTimeout.Duration {
			list.doubt(at+"timeout", "lower it, or raise turn_timeout", "an answer may take %s, and turn_timeout ends it after %s", m.Timeout, c.TurnTimeout)
		}
		if m.Timeout.Duration > 0 && m.FallbackAfter.Duration >= m.Timeout.Duration {
			list.doubt(at+"fallback_after", "lower it below timeout", "the built-in model would answer after %s, when the model's time of %s is over", m.FallbackAfter, m.Timeout)
		}
		if u, err := url.Parse(m.BaseURL); err == nil && m.Key.Value() != "" && u.Scheme == "http" && !ownMachine(u.Hostname()) {
			list.doubt(at+"base_url", "use https://, or a private network", "the key travels to %s without encryption", u.Host)
		}
		if m.PromptPrice+m.CompletionPrice == 0 && !remote.KnownPrice(m.BaseURL, m.Provider, m.Model) && name == c.Model {
			for _, limit := range []string{"agent_cost", "answer_cost"} {
				if from := c.origins[limit]; from == FromFile || from == FromEnvironment {
					list.doubt(limit, "set prompt_price and completion_price in [models."+name+"]", "has no effect on the model %s, whose prices are not known", name)
				}
			}
		}
	}
}

// ownMachine reports whether a host is this machine or of a private network.
func ownMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || !strings.Contains(host, ".") && ip == nil || ip != nil && (ip.IsLoopback() || ip.IsPrivate())
}

// within reports whether a path is another one or below it.
func within(outer, path string) bool {
	if path == "" {
		return false
	}
	a, err1 := filepath.Abs(outer)
	b, err2 := filepath.Abs(path)
	rel, err3 := filepath.Rel(a, b)
	return err1 == nil && err2 == nil && err3 == nil && (rel == "." || filepath.IsLocal(rel))
}

// A Report is what `docent doctor` says of the configuration.
type Report struct {
	File     string   `json:"file"` // empty if there is none
	OK       bool     `json:"ok"`   // a server starts with it
	Problems Problems `json:"problems"`
}

// Check looks at a configuration as a server does that starts with it, and at what such a server only warns of.
func Check(path string, environ []string, flags *pflag.FlagSet) Report {
	values := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	lookup := func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}
	c, list := Read(path, lookup, flags)
	doubts := c.Doubts()
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && c.PublicURL == "" {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			doubts.doubt("public_url", `set it to the address at which clients reach the server, such as "https://docent.example.com"`,
				"the server listens on all addresses and does not know the one that links have to begin with")
		}
	}
	for _, line := range c.UnknownVariables(environ, nil) {
		doubts.doubt("", "unset it, unless a project names it as the variable of a secret", "%s", line)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 && c.origins["catalog_dsn"] == FromFile && hasPassword(c.CatalogDSN) {
		doubts.doubt("catalog_dsn", "chmod o-r "+path, "the file contains the database's password, and everyone on this machine can read it")
	}
	if len(c.Checks) > 0 {
		if _, err := c.CheckCommands("").Kind(); err != nil {
			doubts.doubt("check_sandbox", SandboxFix, "as this user, checks would be refused: %v", err)
		}
	}
	list = append(list, doubts...).placed(path, &c)
	return Report{File: path, OK: list.err() == nil, Problems: list}
}

// SandboxFix is what to do about a machine that has no sandbox.
const SandboxFix = "use Linux 5.19 or later with Landlock, or let the server's user make user namespaces; or set check_sandbox = \"none\""

func hasPassword(dsn string) bool {
	u, err := url.Parse(dsn)
	if err != nil {
		return false
	}
	_, has := u.User.Password()
	return has
}
