// Package commands is what docent can be told to do: a file for each command, with what it takes, what it does, and what it prints.
// What changes a data directory is an operation of package operator, which the serving process runs where there is one.
package commands

import (
	"context"
	"fmt"
	"os"
	"os/signal"
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
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newServeCommand(prog), initcmd.New(prog), newDemoCommand(), benchcmd.New(prog),
		newProjectCommand(prog), newSourceCommand(prog), newCrawlCommand(), newKeyCommand(prog), newReaderSecretCommand(prog), newIndexCommand(prog), evalcmd.New(prog), newPullCommand(prog),
		newConsoleCommand(prog), newPersonCommand(prog), newAuditCommand(prog), newAutomationCommand(prog),
		newWebhookCommand(prog),
		newStatusCommand(prog), newDoctorCommand(prog), newHealthCommand(prog), newActorCommand(prog), newThreadCommand(prog), newBackupCommand(prog), newJournalCommand(prog),
		newCatalogCommand(prog),
		newAskCommand(), newJobCommand(), newCheckDocsCommand(), newMCPCommand(prog), newLLMSCommand(prog), newCellCommand(),
		newConfigCommand(), newVersionCommand(), newManCommand(),
	)
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

// wrapArgErrors makes wrong arguments usage errors in every command: cobra itself does so only for flags.
func wrapArgErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return cli.Usagef("%w; see '%s --help'", err, cmd.CommandPath())
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
