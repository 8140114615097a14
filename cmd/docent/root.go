package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// A usageError says that the command line cannot be understood.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// newRootCommand builds the whole command line. What a command prints for programs goes to standard output, everything
// else to standard error.
func newRootCommand(prog program) *cobra.Command {
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
		Version:       buildVersion().Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate(buildVersion().String() + "\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newServeCommand(prog), newInitCommand(prog), newDemoCommand(), newBenchCommand(prog),
		newProjectCommand(prog), newSourceCommand(prog), newCrawlCommand(), newKeyCommand(prog), newIndexCommand(prog), newEvalCommand(prog), newPullCommand(prog),
		newConsoleCommand(prog), newPersonCommand(prog), newAuditCommand(prog), newAutomationCommand(prog),
		newWebhookCommand(prog),
		newStatusCommand(prog), newDoctorCommand(prog), newHealthCommand(prog), newActorCommand(prog), newThreadCommand(prog), newBackupCommand(prog), newJournalCommand(prog),
		newCatalogCommand(prog),
		newAskCommand(), newJobCommand(), newMCPCommand(prog), newLLMSCommand(prog), newReadPDFCommand(),
		newConfigCommand(), newVersionCommand(), newManCommand(),
	)
	wrapArgErrors(root)
	return root
}

// wrapArgErrors makes wrong arguments usage errors in every command: cobra itself does so only for flags.
func wrapArgErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usagef("%w; see '%s --help'", err, cmd.CommandPath())
			}
			return nil
		}
	}
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArgErrors(sub)
	}
}

// required says which of the named flags are missing.
func required(cmd *cobra.Command, flags ...string) error {
	var missing []string
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == "" {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return usagef("%s needs %s; see '%s --help'", commandName(cmd), strings.Join(missing, ", "), cmd.CommandPath())
	}
	return nil
}

// printJSON writes v as one line.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
