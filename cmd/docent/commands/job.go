package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/agent/rules"
	"docent/api"
	"docent/api/client"
	"docent/cmd/docent/cli"
	"docent/internal/brief"
)

// A jobCommand is what the commands about jobs have in common: a server, a project, and how to print.
type jobCommand struct {
	cli.Caller
	project     string
	json        bool
	idempotency string
	wait        bool
	events      bool // are printed as they come
}

func newJobCommand(prog cli.Program) *cobra.Command {
	c := &jobCommand{Caller: cli.Caller{Local: cli.Operator{Prog: prog}}}
	cmd := &cobra.Command{Use: "job", Short: "Create jobs for the agent and follow them",
		Long: "Create jobs for the agent and follow them. On the server's machine, this needs no key, and no project if there\n" +
			"is only one."}
	c.Flags(cmd)
	cmd.PersistentFlags().StringVar(&c.project, "project", cli.EnvOr("PROJECT", ""), "project (DOCENT_PROJECT)")
	cmd.PersistentFlags().BoolVar(&c.json, "json", false, "print JSON: one object, or one per line for lists")
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.HasSubCommands() {
			return nil
		}
		domain := ""
		if err := c.Authorize(cmd, api.AdminKey, &c.project, &domain); err != nil {
			return err
		}
		return cli.Required(cmd, "project", "key")
	}
	cmd.AddCommand(c.create(), c.get(), c.message(), c.watch(), c.list(),
		c.act("cancel", "Stop an active job", c.CancelJob),
		c.act("archive", "Archive a job; its branch and pull request stay", c.ArchiveJob))
	return cmd
}

func (c *jobCommand) show(cmd *cobra.Command, j api.Job) error {
	if c.json {
		return cli.PrintJSON(cmd.OutOrStdout(), j)
	}
	return printJob(cmd.OutOrStdout(), j)
}

// named is the option that has an instruction taken once, where it has an idempotency key.
func (c *jobCommand) named() []client.Option {
	if c.idempotency == "" {
		return nil
	}
	return []client.Option{client.IdempotencyKey(c.idempotency)}
}

// follow shows a job's log until it has ended, and then the job.
func (c *jobCommand) follow(cmd *cobra.Command, id string) error {
	return c.followed(cmd, id, func(e client.Event) error {
		if c.events {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", e.Raw)
			return err
		}
		return printEvent(cmd.ErrOrStderr(), e)
	}, c.show)
}

func (c *jobCommand) create() *cobra.Command {
	var in client.CreateJob
	cmd := &cobra.Command{
		Use: "create PROMPT", Short: "Create a job", Args: cobra.ExactArgs(1),
		Long: "Create a job. Without a language model it takes instructions of fixed forms, several in one prompt:\n\n  " +
			strings.Join(rules.Examples(), "\n  ") + "\n\nWith --wait or --dry-run: " + exitStatuses,
		Example: `  docent job create --wait 'fix broken internal links'
  docent job create --project docs --key $KEY 'rename "Alertmanager" to "Alert Manager" everywhere'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Prompt = args[0]
			j, err := c.CreateJob(cmd.Context(), c.project, in, c.named()...)
			switch {
			case err != nil:
				return err
			case in.DryRun:
				return c.followDryRun(cmd, string(j.ID))
			case c.wait:
				return c.follow(cmd, string(j.ID))
			}
			return c.show(cmd, j)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&in.DryRun, "dry-run", false, "wait and show the diff, without publishing anything")
	flags.StringVar(&c.idempotency, "idempotency-key", "",
		"makes retries safe: the same key and prompt return the same job for 24 hours")
	flags.StringVar(&in.Model, "model", "", "model to use instead of the project's")
	flags.BoolVar(&in.AsDraft, "draft", false, "open the pull request as a draft")
	flags.BoolVar(&c.wait, "wait", false, "wait until the job has ended")
	return cmd
}

func (c *jobCommand) get() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Aliases: []string{"get"}, Short: "Show a job", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := c.ReadJob(cmd.Context(), c.project, args[0])
			if err != nil {
				return err
			}
			return c.show(cmd, j)
		},
	}
}

func (c *jobCommand) message() *cobra.Command {
	cmd := &cobra.Command{
		Use: "message ID PROMPT", Short: "Send a follow-up to a job", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := c.FollowUp(cmd.Context(), c.project, args[0], args[1], c.named()...)
			switch {
			case err != nil:
				return err
			case c.wait:
				return c.follow(cmd, args[0])
			}
			return c.show(cmd, j)
		},
	}
	cmd.Flags().StringVar(&c.idempotency, "idempotency-key", "",
		"repeat safely: the same key and prompt are taken once in 24 hours")
	cmd.Flags().BoolVar(&c.wait, "wait", false, "wait until the job has ended")
	return cmd
}

func (c *jobCommand) watch() *cobra.Command {
	cmd := &cobra.Command{
		Use: "watch ID", Short: "Follow a job until it has ended", Args: cobra.ExactArgs(1),
		Long: "Follow a job until it has ended: its log from the start on standard error, and then the job on standard output.\n" +
			"When the connection breaks, the command connects again and continues where it was.\n\n" + exitStatuses,
		RunE: func(cmd *cobra.Command, args []string) error { return c.follow(cmd, args[0]) },
	}
	cmd.Flags().BoolVar(&c.events, "events", false,
		"print each event as a line of JSON on standard output, before the job")
	return cmd
}

// act is a command that does one thing to a job.
func (c *jobCommand) act(verb, short string,
	do func(ctx context.Context, project, id string) (client.Job, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " ID", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := do(cmd.Context(), c.project, args[0])
			if err != nil {
				return err
			}
			return c.show(cmd, j)
		},
	}
}

func (c *jobCommand) list() *cobra.Command {
	var limit int
	var status, archived string
	cmd := &cobra.Command{
		Use: "list", Short: "List jobs, newest first", Args: cobra.NoArgs,
		Long: "List jobs, newest first, one a line: id, status, outcome, when it was created, title, and the pull request's link.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter := client.JobFilter{Status: api.JobStatus(status), Limit: 100}
			if limit > 0 {
				filter.Limit = min(limit, filter.Limit)
			}
			if archived != "" {
				only, err := strconv.ParseBool(archived)
				if err != nil {
					return cli.Usagef("--archived %s: it is true or false", archived)
				}
				filter.Archived = &only
			}
			n := 0
			for j, err := range c.Jobs(cmd.Context(), c.project, filter) {
				if err == nil && c.json {
					err = cli.PrintJSON(cmd.OutOrStdout(), j)
				} else if err == nil {
					err = printJobLine(cmd.OutOrStdout(), j)
				}
				if err != nil {
					return err
				}
				if n++; n == limit {
					break
				}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "maximum number (0 for all)")
	cmd.Flags().StringVar(&archived, "archived", "", "true for archived jobs only, false for the others only")
	cmd.Flags().StringVar(&status, "status", "", "only jobs that are active, completed or failed")
	return cmd
}

// printEvent shows an entry of a job's log as lines for people.
func printEvent(w io.Writer, e client.Event) error {
	var b strings.Builder
	line := func(text string) {
		for i, l := range strings.Split(strings.TrimSpace(text), "\n") {
			if head := e.At.Local().Format(time.TimeOnly) + "  " + fmt.Sprintf("%-9s", e.Type) + "  "; i == 0 {
				b.WriteString(head)
			} else {
				b.WriteString(strings.Repeat(" ", len(head)))
			}
			b.WriteString(cli.PlainLine(l))
			b.WriteByte('\n')
		}
	}
	var parts []string
	text := e.Text
	if e.Type == "finished" || e.Type == "failed" {
		text, _, _ = strings.Cut(text, "\n") // the job is shown with all of it
	}
	for _, p := range []string{e.Title, text} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if t := e.Tool; t != nil {
		how := ""
		if t.Failed {
			how = ": failed"
		}
		parts = append(parts, strings.TrimSpace(t.Name+" "+t.Input)+how)
	}
	for _, t := range e.Todos {
		parts = append(parts, "["+t.Status+"] "+t.Content)
	}
	for _, f := range e.Files {
		text := fmt.Sprintf("%s %s (+%d -%d)", f.Status, f.Path, f.Added, f.Removed)
		if f.From != "" {
			text += ", from " + f.From
		}
		parts = append(parts, text)
	}
	if e.Branch != "" {
		parts = append(parts, "branch "+e.Branch)
	}
	if e.PRLink != nil {
		parts = append(parts, *e.PRLink)
	}
	line(strings.Join(parts, "\n"))
	_, err := io.WriteString(w, b.String())
	return err
}

// followDryRun follows a job that publishes nothing, and shows what it would have changed: as a diff that can be
// applied, or in the job's JSON.
func (c *jobCommand) followDryRun(cmd *cobra.Command, id string) error {
	var edit client.Event
	return c.followed(cmd, id, func(e client.Event) error {
		if e.Type == "edited" {
			edit = e
		}
		return printEvent(cmd.ErrOrStderr(), e)
	}, func(cmd *cobra.Command, j api.Job) error {
		if c.json {
			return cli.PrintJSON(cmd.OutOrStdout(), struct {
				api.Job
				Files []client.FileChange `json:"files"`
				Diff  string              `json:"diff"`
			}{j, append([]client.FileChange{}, edit.Files...), edit.Diff})
		}
		if j.Outcome != api.OutcomeChanged && j.Status == api.JobCompleted {
			fmt.Fprintln(cmd.ErrOrStderr(), j.Message)
		}
		return cli.WriteDiff(cmd.OutOrStdout(), edit.Diff)
	})
}

// followed shows a job's log until the job has ended, and then the job.
func (c *jobCommand) followed(cmd *cobra.Command, id string, event func(client.Event) error,
	show func(*cobra.Command, api.Job) error) error {
	c.Reconnecting = func(error) { fmt.Fprintln(cmd.ErrOrStderr(), "the connection broke off, following on") }
	var j api.Job
	for e, err := range c.JobEvents(cmd.Context(), c.project, id, 0) {
		if err == nil && e.Job == nil {
			err = event(e)
		}
		if err != nil {
			return err
		}
		if e.Job != nil {
			j = *e.Job
		}
	}
	if err := show(cmd, j); err != nil {
		return err
	}
	if j.Status == api.JobFailed {
		return fmt.Errorf("job %s failed: %s", j.ID, j.Message)
	}
	return outcomeError(j)
}

// outcomeError gives a job that has ended well without a change an exit status of its own. What there is to say about
// it was shown.
func outcomeError(j api.Job) error {
	switch j.Outcome {
	case api.OutcomeNothingToDo:
		return cli.WithStatus(cli.ExitNothingToDo, fmt.Errorf("job %s: there was nothing to change", j.ID))
	case api.OutcomeNotUnderstood:
		return cli.WithStatus(cli.ExitNotUnderstood,
			fmt.Errorf("job %s: the instruction was not understood, and nothing was changed", j.ID))
	case api.OutcomeNeedsDetail:
		return cli.WithStatus(cli.ExitNeedsDetail,
			fmt.Errorf("job %s: the instruction needs more detail, and nothing was changed", j.ID))
	}
	return nil
}

// exitStatuses is what a script may know of a job that the command has waited for.
const exitStatuses = "The exit status is 0 if pages were changed, 1 if the job failed, 3 if there was nothing to change,\n" +
	"4 if the instruction was not understood, and 5 if it needs more detail."

// printJobLine shows a job on one line; "docent job show" has the rest.
func printJobLine(w io.Writer, j api.Job) error {
	line := fmt.Sprintf("%s  %-9s  %-14s  %s  %s", j.ID, j.Status, cmp.Or(string(j.Outcome), "-"),
		j.CreatedAt.Local().Format(time.DateTime), brief.Line(j.Title))
	if j.PRLink != nil {
		line += "  " + *j.PRLink
	}
	_, err := fmt.Fprintln(w, cli.PlainLine(line))
	return err
}

func printJob(w io.Writer, j api.Job) error {
	fmt.Fprintf(w, "%s  %-9s  %s  %s\n", j.ID, j.Status, j.CreatedAt.Local().Format(time.DateTime), j.Title)
	if j.Message != "" {
		fmt.Fprintln(w, "  "+strings.ReplaceAll(j.Message, "\n", "\n  "))
	}
	if j.PRLink != nil {
		fmt.Fprintln(w, "  "+*j.PRLink)
	}
	return nil
}
