package initcmd

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"docent/cmd/docent/config"
	"docent/deploy"
)

// configText is the configuration: every setting with what it is for, those that were chosen set, and all others at
// their defaults in comments.
func (s *setUp) configText() string {
	chosen := map[string]string{"data": s.data, "listen": s.listen}
	if s.publicURL != "" {
		chosen["public_url"] = s.publicURL
	}
	if s.model != "builtin" {
		chosen["default_model"] = "main"
	}
	var b strings.Builder
	b.WriteString("# Docent's configuration, written by `docent init`. A setting in a comment has the value that the comment shows.\n" +
		"# After a change: docent doctor --offline --config " + s.file + ", then restart the server.\n")
	table := ""
	defaults := config.Default()
	for _, setting := range defaults.Settings() {
		name := setting.Name
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			continue // below, in its table
		}
		writeSetting(&b, name, setting, chosen[name])
	}
	for _, setting := range defaults.Settings() {
		i := strings.LastIndexByte(setting.Name, '.')
		if i < 0 {
			continue
		}
		if setting.Name[:i] != table {
			table = setting.Name[:i]
			fmt.Fprintf(&b, "\n[%s]\n", table)
		}
		writeSetting(&b, setting.Name[i+1:], setting, chosen[setting.Name])
	}
	if s.model != "builtin" {
		fmt.Fprintf(&b, "\n# The language model that answers; docs/deploy/models lists what else it can be told.\n[models.main]\nprovider = \"openai\"\nbase_url = %s\nmodel = %s\n",
			strconv.Quote(s.modelURL), strconv.Quote(s.modelName))
		if s.key != "" {
			fmt.Fprintf(&b, "key_env = \"MODEL_KEY\" # its value is in %s\n", s.envFile())
		}
	} else {
		b.WriteString("\n# A language model instead of the built-in one; set default_model = \"main\" as well.\n# [models.main]\n# provider = \"openai\"\n" +
			"# base_url = \"https://api.example.com/v1\"\n# model = \"a-model\"\n# key_env = \"MODEL_KEY\"\n")
	}
	return b.String()
}

// writeSetting writes one setting with its comment.
func writeSetting(b *strings.Builder, name string, s config.Setting, chosen string) {
	b.WriteString("\n")
	for _, line := range folded(s.Usage, 110) {
		fmt.Fprintf(b, "# %s\n", line)
	}
	if name == "max_running_jobs" {
		fmt.Fprintf(b, "# %s = twice the processors\n", name)
		return
	}
	if chosen != "" {
		fmt.Fprintf(b, "%s = %s\n", name, strconv.Quote(chosen))
		return
	}
	fmt.Fprintf(b, "# %s = %s\n", name, tomlValue(s))
}

// tomlValue is a setting's default as the file has it.
func tomlValue(s config.Setting) string {
	switch v := s.Value().(type) {
	case []string:
		var quoted []string
		for _, one := range v {
			quoted = append(quoted, strconv.Quote(one))
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case string, config.Duration:
		return strconv.Quote(s.Default)
	case float64:
		if !strings.Contains(s.Default, ".") {
			return s.Default + ".0"
		}
	}
	return s.Default
}

// folded is a text in lines of at most so many bytes.
func folded(text string, most int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > most {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// systemUnits is the folder of the administrator's units.
const systemUnits = "/etc/systemd/system"

// packaged are the units that the packages install.
var packaged = []string{"/usr/lib/systemd/system/docent.service", "/lib/systemd/system/docent.service"}

// serviceFiles are the units or the compose file, where they are asked for.
func (s *setUp) serviceFiles() (files []plannedFile) {
	if s.unit != "" {
		files = s.unitFiles(s.unit == systemUnits && installed())
	}
	if s.compose != "" {
		files = append(files, plannedFile{path: s.compose, text: s.composeText(), mode: 0o644})
	}
	return files
}

func installed() bool {
	for _, path := range packaged {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// unitFiles are the units; beside those of a package only what differs from them.
func (s *setUp) unitFiles(beside bool) []plannedFile {
	binary, err := os.Executable()
	if err != nil {
		binary = "/usr/bin/docent"
	}
	var own []string // folders that the unit would hide
	if s.data != "/var/lib/docent" {
		own = append(own, s.data)
	}
	if filepath.IsAbs(s.project.Source) {
		own = append(own, s.project.Source)
	}
	paths := ""
	for _, path := range own {
		paths += "ReadWritePaths=" + path + "\n"
	}
	command := fmt.Sprintf("ExecStart=%s serve --data %s --config %s\n", binary, s.data, s.file)
	environment := "EnvironmentFile=-" + s.envFile() + "\n"
	socket := "[Socket]\nListenStream=\nListenStream=" + s.listen + "\n"
	if beside {
		return []plannedFile{
			{path: filepath.Join(s.unit, "docent.service.d", "init.conf"), mode: 0o644,
				text: "# Written by `docent init`: what differs from the package's unit.\n[Service]\nExecStart=\n" + command + environment + paths},
			{path: filepath.Join(s.unit, "docent.socket.d", "init.conf"), mode: 0o644, text: "# Written by `docent init`.\n" + socket},
		}
	}
	service, _ := deploy.Files.ReadFile("systemd/docent.service") // embedded: a test reads it
	listener, _ := deploy.Files.ReadFile("systemd/docent.socket")
	text := ""
	for line := range strings.Lines(string(service)) {
		switch {
		case strings.HasPrefix(line, "ExecStart="):
			line = command
		case strings.HasPrefix(line, "EnvironmentFile="):
			line = environment
		case strings.HasPrefix(line, "ProtectSystem="):
			line += paths
		}
		text += line
	}
	return []plannedFile{
		{path: filepath.Join(s.unit, "docent.service"), text: text, mode: 0o644},
		{path: filepath.Join(s.unit, "docent.socket"), mode: 0o644,
			text: strings.Replace(string(listener), "\nListenStream=127.0.0.1:8080\n", "\nListenStream="+s.listen+"\n", 1)},
	}
}

// composeText runs the image with the configuration and the data directory that were made here.
func (s *setUp) composeText() string {
	host, port, err := net.SplitHostPort(s.listen)
	if err != nil {
		host, port = "127.0.0.1", "8080" // `docent doctor` says what is wrong with it
	}
	published := port + ":" + port
	if host != "" {
		published = host + ":" + published
	}
	secrets := ""
	if len(s.secrets()) > 0 {
		secrets = fmt.Sprintf("    env_file: %q\n", s.envFile())
	}
	folder := ""
	if filepath.IsAbs(s.project.Source) {
		folder = fmt.Sprintf("      - %q\n", s.project.Source+":"+s.project.Source)
	}
	return fmt.Sprintf(`# Written by `+"`docent init`"+`. deploy/compose has one with PostgreSQL and a proxy.
services:
  docent:
    image: ${DOCENT_IMAGE:-docent}
    command: ["serve", "--config", %[1]q, "--data", %[2]q, "--listen", "0.0.0.0:%[3]s"]
    user: "%[4]d:%[5]d"
%[6]s    ports:
      - "%[7]s"
    volumes:
      - %[8]q
      - %[9]q
%[10]s    read_only: true
    tmpfs: ["/tmp"]
    restart: unless-stopped
    healthcheck:
      test: ["CMD", "/docent", "health", "--data", %[2]q]
`, s.file, s.data, port, os.Getuid(), os.Getgid(), secrets, published, s.file+":"+s.file+":ro", s.data+":"+s.data, folder)
}

// quietLog hears how far the work is if there is no terminal to show it on.
func (s *setUp) quietLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(s.cmd.ErrOrStderr(), nil))
}
