package commands

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docent/cmd/docent/cli"
)

// Every command and flag is told from its neighbors, and what a command takes is in its usage.
func TestCommandsNameThingsInOneWay(t *testing.T) {
	root := New(cli.Program{})
	for path, use := range map[string]string{"project add": "add NAME", "project set": "set NAME",
		"project check": "check NAME", "project remove": "remove NAME",
		"index": "index PROJECT", "job show": "show ID", "pull merge": "merge ID", "key revoke": "revoke ID",
		"thread delete":  "delete [ID]",
		"automation add": "add NAME", "automation run": "run NAME|ID", "automation remove": "remove NAME|ID"} {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil || cmd.Use != use {
			t.Errorf("%s: %q, %v", path, cmd.Use, err)
		}
	}
	root.SetArgs([]string{"project", "add", "--domain", "x.example.com", "--source", "."})
	if err := root.ExecuteContext(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "needs the project's NAME") {
		t.Error(err)
	}
}

// Arguments that are missing, empty, or too many are told by the names that the help has for them.
func TestWrongArgumentsAreToldByTheirNames(t *testing.T) {
	for line, want := range map[string]string{
		"ask":                   "ask needs QUESTION; see 'docent ask --help'",
		"ask |":                 "ask needs QUESTION; see",
		"ask How| do| I":        "ask takes QUESTION, and was given 3 words: put what belongs together in quotes; see",
		"job create| ":          "job create needs PROMPT; see",
		"job message|job_1":     "job message needs PROMPT; see",
		"source list|a|b":       "source list takes PROJECT, and was given 2 words: put what belongs together in quotes; see",
		"serve|now":             `serve takes no argument, and was given "now"; see`,
		"key revoke":            "key revoke needs ID; see",
		"project check|a|b":     "project check takes NAME, and was given 2 words: put what belongs together in quotes; see",
		"automation remove|a|b": "automation remove takes NAME|ID, and was given 2 words: put what belongs together in quotes; see",
	} {
		name, args, _ := strings.Cut(line, "|")
		root := New(cli.Program{})
		words := strings.Fields(name)
		if strings.Contains(line, "|") {
			words = append(words, strings.Split(args, "|")...)
		}
		root.SetArgs(words)
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) || cli.ExitStatus(err) != cli.ExitUsage {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestNoFlagTakesASecretButTheNamedOnes looks at the flags of all commands: what is on a command line is in the lists of
// processes and in the history of shells.
func TestNoFlagTakesASecretButTheNamedOnes(t *testing.T) {
	t.Setenv("DOCENT_KEY", "dct_adm_ThatHelpMustNotShow")
	// Three are no secrets; the others can be given in a way that shows nothing: DOCENT_KEY, DOCENT_CATALOG_DSN.
	named := map[string]bool{"tls-key": true, "thread-key": true, "idempotency-key": true, "key": true, "admin-key": true, "catalog-dsn": true}
	seen := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		look := func(f *pflag.Flag) {
			seen++
			suspect := strings.HasSuffix(f.Name, "token") || strings.HasSuffix(f.Name, "secret") || strings.HasSuffix(f.Name, "password") ||
				strings.HasSuffix(f.Name, "key") || strings.HasSuffix(f.Name, "dsn")
			if suspect && f.Value.Type() == "string" && !named[f.Name] {
				t.Errorf("%s --%s looks like a secret: take it from standard input or a variable", cmd.CommandPath(), f.Name)
			}
			if strings.Contains(f.DefValue, "dct_adm_") {
				t.Errorf("the help of %s shows the key of the environment", cmd.CommandPath())
			}
		}
		cmd.Flags().VisitAll(look)
		cmd.PersistentFlags().VisitAll(look)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(New(cli.Program{}))
	if seen < 100 {
		t.Errorf("only %d flags were looked at", seen)
	}
}
