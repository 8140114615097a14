package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docent/model"
)

// A configProblem is one thing that is wrong with a configuration.
type configProblem struct {
	Severity string `json:"severity"`          // problem: no server starts with it; warning: one does
	Setting  string `json:"setting,omitempty"` // empty where the file itself cannot be read
	From     string `json:"from,omitempty"`    // file, environment, flag or default
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Message  string `json:"message"`
	Fix      string `json:"fix,omitempty"`

	named bool // the message says which setting it is about
	err   error
}

const (
	severityProblem = "problem"
	severityWarning = "warning"
)

// A problemList is what is wrong with settings.
type problemList []*configProblem

// add adds a problem of a setting.
func (p *problemList) add(setting, format string, args ...any) *configProblem {
	err := fmt.Errorf(format, args...)
	problem := &configProblem{Severity: severityProblem, Setting: setting, Message: err.Error(), named: setting == "",
		err: err}
	*p = append(*p, problem)
	return problem
}

// doubt adds a warning.
func (p *problemList) doubt(setting, fix, format string, args ...any) {
	problem := p.add(setting, format, args...)
	problem.Severity, problem.Fix = severityWarning, fix
}

// Error is the problem in one line, with the place where it is.
func (p *configProblem) Error() string {
	var b strings.Builder
	switch {
	case p.From == fromEnvironment && p.Setting != "":
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

func (p *configProblem) Unwrap() error { return p.err }

// err is what keeps a server from starting; nil where nothing does.
func (p problemList) err() error {
	var errs []error
	for _, problem := range p {
		if problem.Severity == severityProblem {
			errs = append(errs, problem)
		}
	}
	return errors.Join(errs...)
}

// placed says of every problem where its setting has the value from, and drops those that follow from another one: a
// value that could not be read is not judged by the default that stands in for it. It is in the order of the file.
func (p problemList) placed(file string, c *Config) problemList {
	settings := c.settings()
	read := map[string]bool{}
	var out problemList
	for _, problem := range p {
		if problem.Setting != "" && read[problem.Setting] {
			continue
		}
		read[problem.Setting] = true
		problem.From = cmp.Or(problem.From, c.from[problem.Setting], fromDefault)
		if problem.Line == 0 && problem.From != fromEnvironment && problem.From != fromFlag {
			problem.Line = lineOf(problem.Setting, c.lines)
		}
		if problem.Line > 0 {
			problem.From = fromFile
		}
		if problem.From == fromFile {
			problem.File = file
		}
		if problem.Fix == "" {
			problem.Fix = usualFix(problem, settings)
		}
		out = append(out, problem)
	}
	slices.SortStableFunc(out, func(a, b *configProblem) int {
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
func usualFix(p *configProblem, settings []Setting) string {
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
	case fromEnvironment:
		return "set it right or unset it: " + standard
	case fromFlag:
		return "give --" + s.Flag + " another value or leave it out: " + standard
	}
	return "set it right or remove the line: " + standard
}

// doubts are what a server starts with and its operator did not mean: settings that contradict each other or have no
// effect.
func (c Config) doubts() (list problemList) {
	anybody := func(p netip.Prefix) bool { return p.Bits() == 0 }
	if slices.ContainsFunc(prefixes(c.TrustedProxies), anybody) {
		list.doubt("trusted_proxies", "name the proxy's own address or its network",
			"everybody may say in X-Forwarded-For which address a request comes from, so that limits by address hold nobody")
	}
	if c.overTLS() && strings.HasPrefix(c.PublicURL, "http://") {
		list.doubt("public_url", "begin it with https://", "the server speaks TLS, and links to it would not")
	}
	if slices.ContainsFunc(prefixes(c.MetricsFrom), anybody) {
		list.doubt("metrics_from", "name the addresses of the monitoring, or give it an admin key",
			"everybody may read /metrics")
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
		list.doubt("oidc.client_secret_env", "set the variable where the server starts, or client_secret_env = \"\" for a client without a secret",
			"%v", c.OIDC.secretProblem)
	}
	if u, err := url.Parse(c.PublicURL); err == nil && c.PublicURL != "" && (strings.Trim(u.Path, "/") != "" || u.RawQuery != "") {
		list.doubt("public_url", "serve Docent under a host name of its own", "%q has a path: pages and the API are served from the root of a host", c.PublicURL)
	}
	c.modelDoubts(&list)
	for name, check := range c.Checks {
		if len(check.Command) == 0 || check.Folder != "" && strings.Contains(check.Command[0], "/") {
			continue
		}
		if _, err := exec.LookPath(check.Command[0]); err != nil && check.Path == "" {
			list.doubt("checks."+name+".command", "install it, or write its whole path", "%v", err)
		}
	}
	return list
}

func (c Config) modelDoubts(list *problemList) {
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
		if u, err := url.Parse(m.BaseURL); err == nil && m.key.Value() != "" && u.Scheme == "http" && !ownMachine(u.Hostname()) {
			list.doubt(at+"base_url", "use https://, or a network that nobody else is on", "the key travels to %s without encryption", u.Host)
		}
		if m.PromptPrice+m.CompletionPrice == 0 && name == c.Model {
			for _, limit := range []string{"agent_cost", "answer_cost"} {
				if from := c.from[limit]; from == fromFile || from == fromEnvironment {
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

// A configReport is what `docent config check` says.
type configReport struct {
	File     string      `json:"file"` // empty where there is none
	OK       bool        `json:"ok"`   // a server starts with it
	Problems problemList `json:"problems"`
}

// checkConfig looks at a configuration as a server does that starts with it, and at what such a server only warns of.
func checkConfig(path string, environ []string, flags *pflag.FlagSet) configReport {
	values := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	lookup := func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}
	c, list := readConfig(path, lookup, flags)
	doubts := c.doubts()
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && c.PublicURL == "" {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			doubts.doubt("public_url", `set it to the address under which clients reach the server, such as "https://docent.example.com"`,
				"the server listens on all addresses and does not know the one that links have to begin with")
		}
	}
	for _, s := range c.settings() {
		if s.Deprecated != "" && c.from[s.Name] != "" {
			doubts.doubt(s.Name, s.Deprecated, "it is deprecated and goes with a later version")
		}
	}
	for _, line := range c.unknownVariables(environ, nil) {
		doubts.doubt("", "unset it, unless a project names it as the variable of a secret", "%s", line)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 && c.from["catalog_dsn"] == fromFile && hasPassword(c.CatalogDSN) {
		doubts.doubt("catalog_dsn", "chmod o-r "+path, "the file holds the database's password and everybody on this machine may read it")
	}
	list = append(list, doubts...).placed(path, &c)
	return configReport{File: path, OK: list.err() == nil, Problems: list}
}

func hasPassword(dsn string) bool {
	u, err := url.Parse(dsn)
	if err != nil {
		return false
	}
	_, has := u.User.Password()
	return has
}

func (r configReport) print(w io.Writer) error {
	file := cmp.Or(r.File, "the environment and the flags (there is no file)")
	problems, warnings := 0, 0
	for _, p := range r.Problems {
		fix := p.Fix
		short := *p
		short.Fix = ""
		fmt.Fprintf(w, "%s: %s\n", strings.ToUpper(p.Severity), short.Error())
		if fix != "" {
			fmt.Fprintf(w, "  fix: %s\n", fix)
		}
		if p.Severity == severityProblem {
			problems++
		} else {
			warnings++
		}
	}
	if len(r.Problems) == 0 {
		_, err := fmt.Fprintf(w, "%s: nothing is wrong\n", file)
		return err
	}
	_, err := fmt.Fprintf(w, "%s: %d problems, %d warnings\n", file, problems, warnings)
	return err
}

func newConfigCheckCommand() *cobra.Command {
	var file string
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use: "check", Short: "Say everything that is wrong with the configuration: where, why, and the fix",
		Args: cobra.NoArgs, SuggestFor: []string{"validate", "test", "lint"},
		Long: "Read the configuration as `docent serve` does and say everything that is wrong with it at once: the setting, the line\n" +
			"of the file, why, and the fix. A problem keeps a server from starting; a warning is something that its operator hardly\n" +
			"meant: settings that contradict each other, or variables of the environment that look like settings and are none.\n" +
			"The exit status is 1 where there is a problem. Nothing is reached over a network: `docent doctor` does that.",
		Example: "  docent config check --config /etc/docent/docent.toml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := checkConfig(file, os.Environ(), cmd.Flags())
			var err error
			if asJSON {
				if report.Problems == nil {
					report.Problems = problemList{}
				}
				err = printJSON(cmd.OutOrStdout(), report)
			} else {
				err = report.print(cmd.OutOrStdout())
			}
			if err == nil && (!report.OK || strict && len(report.Problems) > 0) {
				err = errors.New("the configuration has to be changed")
			}
			return err
		},
	}
	settingFlags(cmd, &file)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with status 1 where there are only warnings, too")
	return cmd
}
