package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"docent/agent/rules"
	"docent/api"
	"docent/client"
)

func newJobCommand() *cobra.Command {
	c := new(client.Client)
	var project string
	var asJSON bool
	cmd := &cobra.Command{Use: "job", Short: "Give the agent work and see what became of it"}
	clientFlags(cmd, c)
	cmd.PersistentFlags().StringVar(&project, "project", envOr("PROJECT", ""), "project (DOCENT_PROJECT)")
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print one JSON object (a line each in lists)")
	path := func(rest ...string) string {
		parts := []string{"/v2/agent", url.PathEscape(project)}
		for _, r := range rest {
			parts = append(parts, url.PathEscape(r))
		}
		return strings.Join(parts, "/")
	}
	show := func(cmd *cobra.Command, j api.Job) error {
		if asJSON {
			return printJSON(cmd.OutOrStdout(), j)
		}
		return printJob(cmd.OutOrStdout(), j)
	}
	check := func(cmd *cobra.Command) error { return required(cmd, "project", "key") }

	var idempotency, model string
	var wait, draft, dryRun, events bool
	// logged shows the events of a job that is followed.
	logged := func(cmd *cobra.Command) func(client.Event) error {
		return func(e client.Event) error {
			if events {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", e.Raw)
				return err
			}
			return printEvent(cmd.ErrOrStderr(), e)
		}
	}
	create := &cobra.Command{
		Use: "create PROMPT", Short: "Create a job", Args: cobra.ExactArgs(1),
		Long: "Create a job. Without a language model it takes instructions of fixed forms, several in one prompt:\n\n  " +
			strings.Join(rules.Examples(), "\n  ") + "\n\nWith --wait or --dry-run: " + exitStatuses,
		Example: `  docent job create --project docs --key $KEY 'rename "Alertmanager" to "Alert Manager" everywhere'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := check(cmd); err != nil {
				return err
			}
			body := map[string]any{"prompt": args[0]}
			if model != "" {
				body["model"] = model
			}
			if draft {
				body["asDraft"] = true
			}
			if dryRun {
				body["dryRun"] = true
			}
			var header []string
			if idempotency != "" {
				header = []string{"Idempotency-Key", idempotency}
			}
			var j api.Job
			if err := c.Post(cmd.Context(), path("job"), body, &j, header...); err != nil {
				return err
			}
			if dryRun {
				return followDryRun(cmd, c, path("job", string(j.ID)), asJSON)
			}
			if wait {
				return follow(cmd, c, path("job", string(j.ID)), logged(cmd), show)
			}
			return show(cmd, j)
		},
	}
	create.Flags().BoolVar(&dryRun, "dry-run", false, "publish nothing: wait, and show the diff")
	create.Flags().StringVar(&idempotency, "idempotency-key", "", "repeat safely: the same key and prompt give the same job for 24 hours")
	create.Flags().StringVar(&model, "model", "", "model to use in place of the project's")
	create.Flags().BoolVar(&draft, "draft", false, "open the pull request as a draft")
	create.Flags().BoolVar(&wait, "wait", false, "wait until the job has ended")

	get := &cobra.Command{
		Use: "show ID", Aliases: []string{"get"}, Short: "Show a job", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := check(cmd); err != nil {
				return err
			}
			var j api.Job
			if err := c.Get(cmd.Context(), path("job", args[0]), &j); err != nil {
				return err
			}
			return show(cmd, j)
		},
	}
	message := &cobra.Command{
		Use: "message ID PROMPT", Short: "Send a follow-up to a job", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := check(cmd); err != nil {
				return err
			}
			var j api.Job
			var header []string
			if idempotency != "" {
				header = []string{"Idempotency-Key", idempotency}
			}
			if err := c.Post(cmd.Context(), path("job", args[0], "message"), map[string]any{"prompt": args[1]}, &j, header...); err != nil {
				return err
			}
			if wait {
				return follow(cmd, c, path("job", args[0]), logged(cmd), show)
			}
			return show(cmd, j)
		},
	}
	message.Flags().StringVar(&idempotency, "idempotency-key", "", "repeat safely: the same key and prompt are taken once in 24 hours")
	message.Flags().BoolVar(&wait, "wait", false, "wait until the job has ended")
	watch := &cobra.Command{
		Use: "watch ID", Short: "Follow a job until it has ended", Args: cobra.ExactArgs(1),
		Long: "Follow a job until it has ended: its log from the start on standard error, and then the job on standard output. A connection\n" +
			"that breaks is taken up where it was.\n\n" + exitStatuses,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := check(cmd); err != nil {
				return err
			}
			return follow(cmd, c, path("job", args[0]), logged(cmd), show)
		},
	}
	watch.Flags().BoolVar(&events, "events", false, "print each event as a line of JSON on standard output, before the job")
	act := func(verb, short string) *cobra.Command {
		return &cobra.Command{
			Use: verb + " ID", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				if err := check(cmd); err != nil {
					return err
				}
				var j api.Job
				if err := c.Post(cmd.Context(), path("job", args[0], verb), map[string]any{}, &j); err != nil {
					return err
				}
				return show(cmd, j)
			},
		}
	}
	var limit int
	var status, archived string
	list := &cobra.Command{
		Use: "list", Short: "List jobs, newest first", Args: cobra.NoArgs,
		Long: "List jobs, newest first, a line each: id, status, outcome, when it was made, title, and the pull request's link.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := check(cmd); err != nil {
				return err
			}
			filter := url.Values{}
			for name, value := range map[string]string{"status": status, "archived": archived} {
				if value != "" {
					filter.Set(name, value)
				}
			}
			for j, err := range c.Jobs(cmd.Context(), path("jobs"), filter, limit) {
				if err == nil && asJSON {
					err = printJSON(cmd.OutOrStdout(), j)
				} else if err == nil {
					err = printJobLine(cmd.OutOrStdout(), j)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	list.Flags().IntVar(&limit, "limit", 20, "how many at most; 0 for all")
	list.Flags().StringVar(&archived, "archived", "", "true: only jobs that are put away; false: only others")
	list.Flags().StringVar(&status, "status", "", "only jobs that are active, completed or failed")
	cmd.AddCommand(create, get, message, watch, list,
		act("cancel", "Stop an active job"), act("archive", "Put a job away; its branch and pull request stay"))
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
			b.WriteString(plainLine(l))
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

// plainLine takes out what a terminal would act on.
func plainLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// followDryRun follows a job that publishes nothing, and shows what it would have changed: as a diff that can be applied, or in
// the job's JSON.
func followDryRun(cmd *cobra.Command, c *client.Client, path string, asJSON bool) error {
	var edit client.Event
	return follow(cmd, c, path, func(e client.Event) error {
		if e.Type == "edited" {
			edit = e
		}
		return printEvent(cmd.ErrOrStderr(), e)
	}, func(cmd *cobra.Command, j api.Job) error {
		if asJSON {
			return printJSON(cmd.OutOrStdout(), struct {
				api.Job
				Files []client.File `json:"files"`
				Diff  string        `json:"diff"`
			}{j, append([]client.File{}, edit.Files...), edit.Diff})
		}
		if j.Outcome != api.OutcomeChanged && j.Status == api.JobCompleted {
			fmt.Fprintln(cmd.ErrOrStderr(), j.Message)
		}
		_, err := io.WriteString(cmd.OutOrStdout(), edit.Diff)
		return err
	})
}

// follow shows a job's log until the job has ended, and then the job.
func follow(cmd *cobra.Command, c *client.Client, path string, event func(client.Event) error, show func(*cobra.Command, api.Job) error) error {
	j, err := c.Follow(cmd.Context(), path, event, func() {
		fmt.Fprintln(cmd.ErrOrStderr(), "the connection broke off, following on")
	})
	if err != nil {
		return err
	}
	if err := show(cmd, j); err != nil {
		return err
	}
	if j.Status == api.JobFailed {
		return fmt.Errorf("job %s failed: %s", j.ID, j.Message)
	}
	return outcomeError(j)
}

// outcomeError gives a job that has ended well without a change an exit status of its own. What there is to say about it was shown.
func outcomeError(j api.Job) error {
	switch j.Outcome {
	case api.OutcomeNothingToDo:
		return &statusError{exitNothingToDo, fmt.Errorf("job %s: there was nothing to change", j.ID)}
	case api.OutcomeNotUnderstood:
		return &statusError{exitNotUnderstood, fmt.Errorf("job %s: the instruction was not understood, and nothing was changed", j.ID)}
	case api.OutcomeNeedsDetail:
		return &statusError{exitNeedsDetail, fmt.Errorf("job %s: the instruction needs more detail, and nothing was changed", j.ID)}
	}
	return nil
}

// exitStatuses is what a script may know of a job that the command has waited for.
const exitStatuses = "The exit status is 0 where pages were changed, 1 where the job has failed, 3 where there was nothing to change,\n" +
	"4 where the instruction was not understood, and 5 where it needs more detail."

// printJobLine shows a job on one line; "docent job show" has the rest.
func printJobLine(w io.Writer, j api.Job) error {
	line := fmt.Sprintf("%s  %-9s  %-14s  %s  %s", j.ID, j.Status, cmp.Or(string(j.Outcome), "-"), j.CreatedAt.Local().Format(time.DateTime), strings.Join(strings.Fields(j.Title), " "))
	if j.PRLink != nil {
		line += "  " + *j.PRLink
	}
	_, err := fmt.Fprintln(w, plainLine(line))
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
