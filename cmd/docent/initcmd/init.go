// Package initcmd is the command init, which asks for what a first server needs and writes its configuration.
package initcmd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/utils/diff"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
	"docent/persistence/datadir"
	"docent/search/sources"
)

// A setUp is what `docent init` was told, and what it writes.
type setUp struct {
	cli.Operator
	cmd   *cobra.Command
	in    *bufio.Reader
	asks  bool // there is somebody at a terminal
	force bool

	file, data, listen, publicURL string
	project                       api.Project
	model, modelURL, modelName    string
	keyFile, tokenFile            string
	unit, compose                 string

	key, token string
}

// New makes the command.
func New(prog cli.Program) *cobra.Command {
	s := &setUp{Operator: cli.Operator{Prog: prog}}
	standardFile, standardData := "docent.toml", "docent-data"
	if info, err := os.Stat("/etc/docent"); err == nil && info.IsDir() { // made by the package
		standardFile, standardData = "/etc/docent/docent.toml", "/var/lib/docent"
	}
	cmd := &cobra.Command{
		Use: "init", Short: "Set up Docent: write a commented configuration and add the first project", Args: cobra.NoArgs,
		SuggestFor: []string{"setup", "install", "configure"},
		Long: "Set up Docent: ask where the documentation is, which address to listen on, and which model answers; write a commented\n" +
			"configuration, check it, read the documentation, and print the next command. Questions that flags answer are skipped.\n" +
			"Without a terminal, --source is required and everything else has a default. It is safe to run again: an existing file that\n" +
			"would change is shown as a diff and kept, unless --force is given. Keys and tokens are read from files or from the terminal\n" +
			"and written to a file that only its owner can read.",
		Example: "  docent init\n  docent init --source ./docs --model ollama\n" +
			"  docent init --source https://docs.example.com --model openai --model-url https://api.example.com/v1 \\\n" +
			"    --model-name small --model-key-file key.txt --unit",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.cmd, s.in = cmd, bufio.NewReader(cmd.InOrStdin())
			if file, ok := cmd.InOrStdin().(*os.File); ok {
				s.asks = term.IsTerminal(int(file.Fd()))
			}
			return s.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.file, "config", standardFile, "configuration file to write")
	flags.StringVar(&s.data, "data", standardData, "data directory")
	flags.StringVar(&s.listen, "listen", config.Default().Listen, "address to listen on, HOST:PORT")
	flags.StringVar(&s.publicURL, "public-url", "", "address at which clients reach the server")
	flags.StringVar((*string)(&s.project.ID), "project", "docs", "the project's NAME")
	flags.StringVar(&s.project.Domain, "domain", "", "name of the project in assistant URLs (the host of a web site, or NAME)")
	flags.StringVar(&s.project.Source, "source", "", "where the documentation is: a folder, a git URL, or the address of a web site")
	flags.StringVar(&s.project.SiteURL, "site-url", "", "address of the published site")
	flags.StringVar((*string)(&s.project.Host), "host", "", "code host that pull requests go to: github, gitlab or gitea (none: the built-in one)")
	flags.StringVar(&s.project.HostURL, "host-url", "", "address of a self-hosted code host")
	flags.StringVar(&s.project.Repository, "repository", "", "OWNER/NAME on the code host")
	flags.StringVar(&s.tokenFile, "token-file", "", "file with the code host's token")
	flags.StringVar(&s.model, "model", "", "builtin (the default), ollama, or openai for any endpoint that is compatible with its chat completions")
	flags.StringVar(&s.modelURL, "model-url", "", "address of the model's endpoint, ending in /v1")
	flags.StringVar(&s.modelName, "model-name", "", "name of the model at the endpoint")
	flags.StringVar(&s.keyFile, "model-key-file", "", "file with the endpoint's key")
	flags.StringVar(&s.unit, "unit", "", "also write systemd units to this folder")
	flags.Lookup("unit").NoOptDefVal = systemUnits
	flags.StringVar(&s.compose, "compose", "", "also write a compose file with this name")
	flags.Lookup("compose").NoOptDefVal = "compose.yaml"
	flags.BoolVar(&s.force, "force", false, "overwrite files that differ")
	return cmd
}

func (s *setUp) say(format string, args ...any) {
	fmt.Fprintf(s.cmd.OutOrStdout(), format+"\n", args...)
}

func (s *setUp) run(ctx context.Context) error {
	if err := s.ask(ctx); err != nil {
		return err
	}
	if wrong, err := s.wrong(); err != nil || len(wrong) > 0 {
		return errors.Join(append(wrong, err)...)
	}
	if err := s.complete(); err != nil {
		return err
	}
	if err := s.write(); err != nil {
		return err
	}
	for name, value := range s.secrets() { // the next steps are this process's
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	report := config.Check(s.file, os.Environ(), nil)
	if len(report.Problems) == 0 {
		fmt.Fprintf(s.cmd.OutOrStdout(), "%s: nothing is wrong\n", s.file)
	}
	for _, p := range report.Problems { // warnings, or somebody else writes the file too
		fmt.Fprintln(s.cmd.OutOrStdout(), p.Error())
	}
	if !report.OK {
		return errors.New("the configuration has to be changed")
	}
	if err := s.addProject(ctx); err != nil {
		return fmt.Errorf("%w; the configuration is written: run the command again when that is mended", err)
	}
	s.next()
	return nil
}

// question asks for a value that no flag gave; enter takes what is there.
func (s *setUp) question(flag, text string, value *string) error {
	if !s.asks || s.cmd.Flags().Changed(flag) {
		return nil
	}
	shown := ""
	if *value != "" {
		shown = " [" + *value + "]"
	}
	for {
		fmt.Fprintf(s.cmd.OutOrStdout(), "%s%s: ", text, shown)
		line, err := s.in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		before := *value
		*value = cmp.Or(strings.TrimSpace(line), *value)
		wrong, err := s.wrong()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(wrong, func(err error) bool { return err.(*flagError).flag == flag })
		if i < 0 {
			return nil
		}
		s.say("%v", wrong[i])
		*value = before
	}
}

// A flagError says what is wrong with what a flag gave, or an answer in its place.
type flagError struct{ flag, text string }

func (e *flagError) Error() string { return "--" + e.flag + ": " + e.text }

// flagOf are the flags that settings and fields of a project come from.
var flagOf = map[string]string{"data": "data", "listen": "listen", "public_url": "public-url", "models.main.base_url": "model-url",
	"id": "project", "domain": "domain", "siteUrl": "site-url", "host": "host", "hostUrl": "host-url", "repository": "repository",
	"tokenEnv": "token-file"}

// wrong is what is wrong with what was said so far, each a flagError; nothing is written before that is mended.
func (s *setUp) wrong() (list []error, err error) {
	c := *s
	if err := c.complete(); err != nil {
		if problem, ok := errors.AsType[*flagError](err); ok {
			return []error{problem}, nil
		}
		return nil, err
	}
	c.model = cmp.Or(c.model, "builtin")
	folder, err := os.MkdirTemp("", "docent-init-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "docent.toml")
	if err := os.WriteFile(file, []byte(c.configText()), 0o600); err != nil {
		return nil, err
	}
	environ := os.Environ()
	for name, value := range c.secrets() {
		environ = append(environ, name+"="+value)
	}
	for _, p := range config.Check(file, environ, nil).Problems {
		if flag := flagOf[p.Setting]; p.Severity == config.SeverityProblem && flag != "" {
			list = append(list, &flagError{flag, p.Message})
		}
	}
	p := c.project
	p.Host = cmp.Or(p.Host, api.HostBuiltin)
	var invalid *api.InvalidError
	if err := sources.CheckSettings(p.WithDefaults()); errors.As(err, &invalid) {
		for _, p := range invalid.Problems {
			if p.Field == "tokenEnv" {
				p.Message = "is required for --host " + string(c.project.Host) + ", whose pull requests take a token"
			}
			if flag := flagOf[p.Field]; flag != "" {
				list = append(list, &flagError{flag, p.Message})
			}
		}
	}
	return list, nil
}

// ask asks for what no flag says.
func (s *setUp) ask(ctx context.Context) error {
	if err := s.question("source", "Where is the documentation? A folder, a git URL, or the address of a web site", &s.project.Source); err != nil {
		return err
	}
	if s.project.Source == "" && s.project.Repository == "" {
		return cli.Usagef("init needs --source: a folder, a git URL, or the address of a web site; see 'docent init --help'")
	}
	if s.project.Domain == "" {
		s.project.Domain = s.guessedDomain()
	}
	if err := s.question("domain", "Its name in the addresses of the assistant", &s.project.Domain); err != nil {
		return err
	}
	if err := s.question("listen", "Address to listen on", &s.listen); err != nil {
		return err
	}
	if err := s.question("public-url", "Address under which clients reach it, such as https://docent.example.com (enter for none)", &s.publicURL); err != nil {
		return err
	}
	return s.askModel(ctx)
}

func (s *setUp) askModel(ctx context.Context) error {
	local := ollamaModels(ctx, ollamaURL())
	if s.model == "" {
		s.model = "builtin"
		text := "Which model answers? builtin (needs nothing) or openai (any endpoint that speaks its chat completions)"
		if len(local) > 0 {
			text = "Which model answers? builtin (needs nothing), ollama (it runs here, with " + strings.Join(local[:min(3, len(local))], ", ") + ") or openai (any other endpoint)"
		}
		if err := s.question("model", text, &s.model); err != nil {
			return err
		}
	}
	switch s.model {
	case "builtin":
		return nil
	case "ollama":
		s.modelURL = cmp.Or(s.modelURL, ollamaURL()+"/v1")
		if s.modelName == "" && len(local) > 0 {
			s.modelName = local[0]
		}
	case "openai":
		if err := s.question("model-url", "Address of the endpoint, with /v1 at its end", &s.modelURL); err != nil {
			return err
		}
	default:
		return cli.Usagef("--model %q is none of builtin, ollama, openai", s.model)
	}
	if err := s.question("model-name", "The endpoint's name of the model", &s.modelName); err != nil {
		return err
	}
	if s.model == "ollama" && s.modelName == "" {
		return cli.Usagef("Ollama has no model at %s: load one with `ollama pull`, or name it with --model-name", s.modelURL)
	}
	if s.modelURL == "" || s.modelName == "" {
		return cli.Usagef("init needs --model-url and --model-name for --model %s; see 'docent init --help'", s.model)
	}
	if s.model == "openai" && s.asks && s.keyFile == "" {
		file := s.cmd.InOrStdin().(*os.File) // a terminal, or nobody would be asked
		key, err := cli.ReadHidden(file, s.cmd.OutOrStdout(), "Its key, which is not shown (enter for none): ")
		if err != nil {
			return fmt.Errorf("read the key: %w", err)
		}
		s.key = strings.TrimSpace(key)
	}
	return nil
}

// guessedDomain is the host of a web site, or the project's name.
func (s *setUp) guessedDomain() string {
	if u, err := url.Parse(s.project.Source); err == nil && config.WebURL(s.project.Source) && !isGit(s.project.Source) {
		return u.Hostname()
	}
	return string(s.project.ID)
}

// isGit tells the address of a repository from that of a web site.
func isGit(source string) bool {
	u, err := url.Parse(source)
	if err != nil || !config.WebURL(source) {
		return true
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	known := slices.Contains([]string{"github.com", "gitlab.com", "codeberg.org", "bitbucket.org"}, u.Hostname())
	return strings.HasSuffix(u.Path, ".git") || known && len(parts) >= 2
}

// complete derives what follows from what was said, and reads the secrets.
func (s *setUp) complete() error {
	if info, err := os.Stat(s.project.Source); err == nil && info.IsDir() {
		s.project.Source = cli.AbsoluteSource(s.project.Source)
	} else if config.WebURL(s.project.Source) && !isGit(s.project.Source) {
		s.project.Kind = api.SourceWeb
	} else if s.project.Source != "" && !strings.Contains(s.project.Source, ":") {
		return &flagError{"source", "there is no folder " + s.project.Source + "; a git repository elsewhere and a web site begin with https://"}
	}
	var err error
	for _, secret := range []struct {
		flag, file string
		into       *string
	}{{"model-key-file", s.keyFile, &s.key}, {"token-file", s.tokenFile, &s.token}} {
		if secret.file == "" {
			continue
		}
		var text []byte
		if text, err = os.ReadFile(secret.file); err != nil {
			return &flagError{secret.flag, err.Error()}
		}
		*secret.into = strings.TrimSpace(string(text))
	}
	if s.token != "" {
		s.project.TokenEnv = "DOCS_TOKEN"
	}
	if s.file, err = filepath.Abs(s.file); err != nil {
		return err
	}
	s.data, err = filepath.Abs(s.data)
	return err
}

// secrets are what belongs into the environment of the server, by their names.
func (s *setUp) secrets() map[string]string {
	out := map[string]string{}
	if s.key != "" {
		out["MODEL_KEY"] = s.key
	}
	if s.token != "" {
		out[s.project.TokenEnv] = s.token
	}
	return out
}

func (s *setUp) envFile() string { return strings.TrimSuffix(s.file, filepath.Ext(s.file)) + ".env" }

// A plannedFile is one that is to be written.
type plannedFile struct {
	path, text string
	mode       fs.FileMode
	secret     bool // its text is not shown
}

// write writes the files, all or none: one that is there and differs is shown and keeps the others from being written.
func (s *setUp) write() error {
	files := []plannedFile{{path: s.file, text: s.configText(), mode: 0o644}}
	var env strings.Builder
	for _, name := range []string{"MODEL_KEY", "DOCS_TOKEN"} {
		if value, ok := s.secrets()[name]; ok {
			fmt.Fprintf(&env, "%s=%s\n", name, value)
		}
	}
	if env.Len() > 0 {
		files = append(files, plannedFile{s.envFile(), env.String(), 0o600, true})
	}
	files = append(files, s.serviceFiles()...)
	var differ []string
	for _, f := range files {
		old, err := os.ReadFile(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && (string(old) == f.text || commentsOnly(old)):
			continue
		case err != nil:
			return err
		}
		if differ = append(differ, f.path); f.secret {
			s.say("%s has other secrets", f.path)
			continue
		}
		s.say("%s differs:", f.path)
		for _, d := range diff.Do(string(old), f.text) {
			if mark := map[int]string{-1: "-", 1: "+"}[int(d.Type)]; mark != "" {
				for line := range strings.Lines(d.Text) {
					s.say("%s %s", mark, strings.TrimRight(line, "\n"))
				}
			}
		}
	}
	if len(differ) > 0 && !s.force {
		return fmt.Errorf("nothing was written: %s is there already and differs; --force writes over it", strings.Join(differ, ", "))
	}
	for _, f := range files {
		if old, err := os.ReadFile(f.path); err == nil && string(old) == f.text {
			s.say("%s is as it should be", f.path)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			return err
		}
		if err := writeWhole(f); err != nil {
			return err
		}
		s.say("wrote %s", f.path)
	}
	return nil
}

// commentsOnly is a file that says nothing, as the package brings it.
func commentsOnly(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// writeWhole replaces a file whole; nobody else can open one with secrets meanwhile.
func writeWhole(f plannedFile) error {
	temp, err := os.CreateTemp(filepath.Dir(f.path), ".docent-init-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.WriteString(f.text)
	if err = errors.Join(err, temp.Chmod(f.mode), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), f.path)
}

// addProject adds the project by the configuration that was written, unless it is there.
func (s *setUp) addProject(ctx context.Context) error {
	c, err := config.Load(s.file, os.LookupEnv, nil)
	if err != nil {
		return err
	}
	c = s.Prog.Configured(c)
	progress, end := cli.ShowProgress(s.cmd.ErrOrStderr(), s.quietLog())
	defer end()
	p := s.project
	p.Host = cmp.Or(p.Host, api.HostBuiltin)
	p = p.WithDefaults()
	var there []api.Project
	if used, err := datadir.Used(c.Data); err != nil {
		return err
	} else if used {
		if err := operator.Operate(ctx, c, operator.OpProjectList, struct{}{}, &there, progress, operator.OperateHere); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(there, func(old api.Project) bool { return old.ID == p.ID }) {
		s.say("project %s is there already", p.ID)
		return nil
	}
	var added sources.Project
	err = operator.Operate(ctx, c, operator.OpProjectAdd, p, &added, progress, operator.OperateHere)
	end()
	if err != nil {
		return err
	}
	if err := s.ownedByService(); err != nil {
		return err
	}
	s.say("project %s: %s, %s", added.ID, brief.Count(added.Pages, "page"), brief.Count(added.Sections, "section"))
	return nil
}

// ownedByService gives what root has made in the service's data directory to the service's user.
func (s *setUp) ownedByService() error {
	service, err := user.Lookup("docent")
	if err != nil || os.Getuid() != 0 || s.data != "/var/lib/docent" {
		return nil // nobody to give it to, or nothing of the service's
	}
	uid, err1 := strconv.Atoi(service.Uid)
	gid, err2 := strconv.Atoi(service.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return filepath.WalkDir(s.data, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}

// next prints what to type now.
func (s *setUp) next() {
	s.say("\nNext:\n")
	switch {
	case s.unit != "":
		s.say("  sudo systemctl daemon-reload && sudo systemctl enable --now docent.socket docent && sudo systemctl restart docent")
	case s.compose != "":
		s.say("  docker compose -f %s up -d", s.compose)
	case s.data == "/var/lib/docent":
		s.say("  sudo systemctl enable --now docent.socket docent && sudo systemctl restart docent")
	default:
		if len(s.secrets()) > 0 {
			s.say("  set -a; . %s; set +a", shellWord(s.envFile()))
		}
		s.say("  docent serve --config %s", shellWord(s.file))
	}
	s.say("\nand in another terminal, the first question:\n")
	sudo := ""
	if s.data == "/var/lib/docent" {
		sudo = "sudo -u docent "
	}
	s.say("  export DOCENT_KEY=$(%sdocent key create --config %s --project %s --kind assistant)", sudo, shellWord(s.file), s.project.ID)
	s.say("  docent ask --url %s --domain %s 'How do I begin?'", s.clientURL(), s.project.Domain)
	s.say("\n`%[1]sdocent doctor --config %[2]s` checks the installation; `%[1]sdocent console --config %[2]s` opens the console.", sudo, shellWord(s.file))
}

// clientURL is where this machine reaches the server.
func (s *setUp) clientURL() string {
	host, port, err := net.SplitHostPort(s.listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return "http://localhost:" + port
	}
	return "http://" + s.listen
}

// shellWord is a word as a shell reads it.
func shellWord(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return strings.ContainsRune(" '\"$`\\*?;&|<>(){}#~!", r) }) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

// ollamaURL is where Ollama listens on this machine.
func ollamaURL() string {
	host := cmp.Or(os.Getenv("OLLAMA_HOST"), "127.0.0.1:11434")
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	return strings.TrimRight(host, "/")
}

// ollamaModels are the models that Ollama has; none if it does not run.
func ollamaModels(ctx context.Context, address string) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/tags", nil)
	if err != nil {
		return nil
	}
	resp, err := (&http.Client{Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var list struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&list) != nil {
		return nil
	}
	for _, m := range list.Models {
		names = append(names, m.Name)
	}
	return names
}
