package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/commands"
	"docent/cmd/docent/config"
	"docent/internal/health"
)

// NoEnvironment is an environment without variables.
func NoEnvironment(string) (string, bool) { return "", false }

// SettingsFile writes a configuration file.
func SettingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docent.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Docent runs one command and returns what it printed. It fails the test where the command fails.
func Docent(t testing.TB, args ...string) string {
	t.Helper()
	out, err := TryDocent(t, args...)
	if err != nil {
		t.Fatalf("docent %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// TryDocent is Docent for a command that may fail. The error has what it said.
func TryDocent(t testing.TB, args ...string) (string, error) {
	t.Helper()
	// Later than any command takes on a machine that stands still now and then: it is there for one that hangs.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	var err error
	if commandsHere[args[0]] && !hasEnvironment(t) {
		command := commands.New(cli.Program{})
		command.SetArgs(args)
		command.SetOut(&stdout)
		command.SetErr(&stderr)
		if err = command.ExecuteContext(ctx); err != nil {
			fmt.Fprintln(&stderr, "docent:", err)
		}
	} else {
		cmd := exec.CommandContext(ctx, Self(t), args...)
		cmd.Env = Environment(t)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err = cmd.Run()
	}
	if err != nil {
		return stdout.String(), fmt.Errorf("%w\n%s", err, stderr.String())
	}
	return stdout.String(), nil
}

// commandsHere are the commands that the tests run in their own process, which is quicker. The others serve, or start
// what does.
var commandsHere = map[string]bool{
	"project": true, "key": true, "index": true, "eval": true, "pull": true, "automation": true, "status": true,
	"thread": true,
	"backup": true, "journal": true, "catalog": true, "ask": true, "job": true, "config": true, "version": true,
	"doctor": true,
}

// Environment is this process's without the settings that a developer may have in it, and with what the test has
// set.
func Environment(t testing.TB) []string {
	env := []string{RunAsDocent + "=1"}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, config.EnvPrefix) {
			env = append(env, pair)
		}
	}
	for _, own := range ownEnvironments(t) {
		for key, value := range own {
			env = append(env, key+"="+value)
		}
	}
	return env
}

// ownEnvironments are the variables that a test and those around it have set.
func ownEnvironments(t testing.TB) (list []map[string]string) {
	for name := t.Name(); ; {
		if own, ok := environments.Load(name); ok {
			list = append(list, own.(map[string]string))
		}
		cut := strings.LastIndexByte(name, '/')
		if cut < 0 {
			return list
		}
		name = name[:cut]
	}
}

func hasEnvironment(t testing.TB) bool { return len(ownEnvironments(t)) > 0 }

// environments are the variables of tests by their names.
var environments sync.Map

// Setenv sets a variable for the programs that a test and its subtests start. Unlike t.Setenv it lets others run
// beside it.
func Setenv(t testing.TB, key, value string) {
	t.Helper()
	own := map[string]string{}
	if before, ok := environments.Load(t.Name()); ok {
		maps.Copy(own, before.(map[string]string))
	} else {
		t.Cleanup(func() { environments.Delete(t.Name()) })
	}
	own[key] = value
	environments.Store(t.Name(), own)
}

// Self is the program of this test, which is Docent if RunAsDocent is set.
func Self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// DecodeOutput is what a command printed as JSON.
func DecodeOutput[T any](t testing.TB, out string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return v
}

// ServerStatusOf is what the server of a data directory says of itself.
func ServerStatusOf(t testing.TB, data string) health.Status {
	t.Helper()
	return DecodeOutput[health.Status](t, Docent(t, "status", "--data", data, "--json"))
}

// Atoi is the number at the start of a text; zero if there is none.
func Atoi(s string) (n int) {
	_, _ = fmt.Sscan(s, &n)
	return n
}
