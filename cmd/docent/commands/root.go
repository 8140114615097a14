// Package commands is what docent can be told to do: a file for each command, with what it takes, what it does, and what it prints.
// What changes a data directory is an operation of package operator, which the serving process runs where there is one.
package commands

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"docent/cmd/docent/benchcmd"
	"docent/cmd/docent/build"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/evalcmd"
	"docent/cmd/docent/initcmd"
)

// movedCommands are names of earlier versions, with what does the same now.
var movedCommands = map[string]string{
	"config check":   "doctor --offline",
	"journal repair": "journal drop ID",
}

// New builds the whole command line. What a command prints for programs goes to standard output, everything
// else to standard error.
func New(prog cli.Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "docent",
		Short: "An agent and an assistant for your documentation, in one binary",
		Long: "Docent edits documentation on request and opens pull requests (the agent), and answers readers' questions\n" +
			"from it in a stream, with sources (the assistant). Start with `docent demo` to see it at work, with `docent init` to set it up, or:\n\n" +
			"  docent project add docs --domain docs.example.com --source PATH-or-URL\n" +
			"  docent key create --project docs --kind assistant\n" +
			"  docent serve\n\n" +
			"A command takes what it acts on as its argument (`project set docs`, `pull merge ID`), and what that belongs to as a\n" +
			"flag (`--project docs`).",
		Version:       build.Get().Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetVersionTemplate(build.Get().String() + "\n")
	for _, g := range groups(prog) {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID(helpGroup)
	root.SetCompletionCommandGroupID(helpGroup)
	root.AddCommand(newHealthCommand(prog), newCellCommand(), newManCommand()) // hidden
	for old, now := range movedCommands {
		words := strings.Fields(old)
		parent, _, _ := root.Find(words[:1])
		parent.AddCommand(&cobra.Command{Use: words[1], Hidden: true, DisableFlagParsing: true, RunE: func(*cobra.Command, []string) error {
			return cli.Usagef("`docent %s` is now `docent %s`", old, now)
		}})
	}
	wrapArgErrors(root)
	return root
}

// A group is commands that --help lists together.
type group struct {
	title    string
	commands []*cobra.Command
}

const helpGroup = "Help and measurements"

// groups are all commands that people see.
func groups(prog cli.Program) []group {
	return []group{
		{"Get started", []*cobra.Command{newDemoCommand(), initcmd.New(prog), newServeCommand(prog), newConsoleCommand(prog)}},
		{"Documentation and search", []*cobra.Command{newProjectCommand(prog), newSourceCommand(prog), newIndexCommand(prog),
			newCrawlCommand(), evalcmd.New(prog), newMCPCommand(prog), newLLMSCommand(prog)}},
		{"Questions and jobs", []*cobra.Command{newAskCommand(prog), newThreadCommand(prog), newJobCommand(prog), newPullCommand(prog),
			newAutomationCommand(prog), newCheckDocsCommand()}},
		{"Access and integrations", []*cobra.Command{newKeyCommand(prog), newReaderSecretCommand(prog), newPersonCommand(prog),
			newAuditCommand(prog), newWebhookCommand(prog)}},
		{"Operation", []*cobra.Command{newStatusCommand(prog), newDoctorCommand(prog), newConfigCommand(), newBackupCommand(prog),
			newJournalCommand(prog), newCatalogCommand(prog), newActorCommand(prog)}},
		{helpGroup, []*cobra.Command{newDocsCommand(prog), benchcmd.New(prog), newVersionCommand()}},
	}
}

// wrapArgErrors makes wrong arguments usage errors in every command, which cobra itself does only for flags, and has errors
// say what to do.
func wrapArgErrors(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return cli.Hint(cmd, run(cmd, args)) }
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil || slices.ContainsFunc(args, blank) {
				return argumentError(cmd, args)
			}
			return nil
		}
	}
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UnknownCommand(cmd, args[0])
			}
			return cmd.Help()
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArgErrors(sub)
	}
}

func blank(word string) bool { return strings.TrimSpace(word) == "" }

// argumentError says which arguments a command takes, by the words that its help has for them.
func argumentError(cmd *cobra.Command, args []string) error {
	name, takes, see := cli.CommandName(cmd), strings.Fields(cmd.Use)[1:], "see '"+cmd.CommandPath()+" --help'"
	for i, word := range takes {
		if i >= len(args) || blank(args[i]) {
			return cli.Usagef("%s needs %s; %s", name, word, see)
		}
	}
	if len(takes) == 0 {
		return cli.Usagef("%s takes no argument, and was given %q; %s", name, args[0], see)
	}
	return cli.Usagef("%s takes %s, and was given %d words: put what belongs together in quotes; %s", name, strings.Join(takes, " "),
		len(args), see)
}

// Main runs the program with the arguments of the process, and ends the process where it fails. A test binary that calls it
// first is the program.
func Main(prog cli.Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := New(prog)
	err := command.ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "docent:", err)
	os.Exit(cli.ExitStatus(err))
}
