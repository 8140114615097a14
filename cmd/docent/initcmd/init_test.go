package initcmd

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
)

// written writes a configuration file.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docent.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The configuration that is written names every setting, and says the truth about its default.
func TestInitWritesEverySettingAtItsDefault(t *testing.T) {
	t.Parallel()
	s := &setUp{file: "/etc/docent/docent.toml", data: "/var/lib/docent", listen: "127.0.0.1:8080", model: "builtin"}
	text := s.configText()
	commented := regexp.MustCompile(`(?m)^# ([a-z_]+ = )`)
	head, _, _ := strings.Cut(text, "# A language model instead")
	head = strings.Replace(head, "# max_running_jobs = twice", "# twice", 1)
	file := written(t, commented.ReplaceAllString(head, "$1"))
	c, err := config.Load(file, os.LookupEnv, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range c.Settings() {
		if setting.Name == "max_running_jobs" {
			continue
		}
		if c.From(setting.Name) != config.FromFile {
			t.Errorf("%s is not in the file", setting.Name)
		}
		if want := setting.Default; setting.String() != want && setting.Name != "data" {
			t.Errorf("%s is %q and not %q", setting.Name, setting, want)
		}
	}
	if c, err = config.Load(written(t, text), os.LookupEnv, nil); err != nil || c.Data != "/var/lib/docent" || c.From("max_body") != "" {
		t.Errorf("as it is written: %v", err)
	}
}

func TestInitTellsAWebSiteFromARepository(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for source, want := range map[string]struct {
		kind   api.SourceKind
		domain string
	}{
		"https://docs.example.com/guide":        {api.SourceWeb, "docs.example.com"},
		"https://github.com/acme/docs":          {"", "docs"},
		"https://git.example.com/acme/docs.git": {"", "docs"},
		"git@git.example.com:acme/docs.git":     {"", "docs"},
		folder:                                  {"", "docs"},
	} {
		s := &setUp{project: api.Project{ID: "docs", Source: source}}
		domain := s.guessedDomain()
		if err := s.complete(); err != nil || s.project.Kind != want.kind || domain != want.domain {
			t.Errorf("%s: %v, %q, %q", source, err, s.project.Kind, domain)
		}
	}
	if err := (&setUp{project: api.Project{Source: "no-such-folder"}}).complete(); err == nil || !strings.Contains(err.Error(), "there is no folder") {
		t.Error(err)
	}
}

// Beside a package's unit there is only what differs from it.
func TestInitWritesADropInBesideAPackage(t *testing.T) {
	t.Parallel()
	s := &setUp{unit: "/u", data: "/srv/docent", file: "/srv/docent.toml", listen: ":80", project: api.Project{Source: "/srv/docs"}}
	files := s.unitFiles(true)
	if len(files) != 2 || files[0].path != "/u/docent.service.d/init.conf" || !strings.Contains(files[0].text, "ExecStart=\nExecStart=/") ||
		!strings.Contains(files[0].text, "ReadWritePaths=/srv/docent\nReadWritePaths=/srv/docs\n") ||
		!strings.Contains(files[1].text, "ListenStream=\nListenStream=:80\n") {
		t.Errorf("%+v", files)
	}
}

// What is wrong with a flag is told by its name before anything is written: the next try does not meet a file of the first.
func TestNothingIsWrittenOfWhatIsWrong(t *testing.T) {
	t.Parallel()
	for wrong, want := range map[string]string{
		"--listen=x":                     `--listen: "x" is not HOST:PORT`,
		"--public-url=nope":              `--public-url: "nope" is not`,
		"--site-url=nope":                "--site-url: must be",
		"--domain=a b":                   "--domain: must be",
		"--project=a b":                  "--project: must consist",
		"--host=foo":                     "--host: must be one of",
		"--host=github":                  "--repository: is required",
		"--source=/no/such":              "--source: there is no folder",
		"--token-file=/no/such":          "--token-file: open",
		"--model-url=nope":               `--model-url: "nope" is not`,
		"--listen=x|--domain=a b":        "--domain: must be",
		"--host=github|--repository=a/b": "--token-file: is required for --host github",
	} {
		dir := t.TempDir()
		cmd := New(cli.Program{})
		cmd.SetArgs(append([]string{"--source", dir, "--config", filepath.Join(dir, "docent.toml"), "--data", filepath.Join(dir, "data"),
			"--model", "openai", "--model-name", "small", "--model-url", "http://127.0.0.1:1/v1"}, strings.Split(wrong, "|")...))
		cmd.SetIn(strings.NewReader(""))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", wrong, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: %v was written", wrong, left)
		}
	}
}

// At a terminal a wrong answer is asked for again, with what is wrong about it.
func TestAWrongAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &setUp{asks: true, listen: "127.0.0.1:8080", in: bufio.NewReader(strings.NewReader("/no/such\n" + t.TempDir() + "\nx\n:9000\n"))}
	s.cmd = &cobra.Command{}
	s.cmd.SetOut(&out)
	if err := s.question("source", "Where", &s.project.Source); err != nil {
		t.Fatal(err)
	}
	if err := s.question("listen", "Listen", &s.listen); err != nil || s.listen != ":9000" || strings.Count(out.String(), "Listen") != 2 ||
		!strings.Contains(out.String(), "--source: there is no folder /no/such") {
		t.Errorf("%v, %q\n%s", err, s.listen, out.String())
	}
}
