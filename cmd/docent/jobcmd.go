package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"docent/agent"
	"docent/api"
)

func newJobCommand() *cobra.Command {
	c := new(client)
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
	logged := func(cmd *cobra.Command) func(jobEvent) error {
		return func(e jobEvent) error {
			if events {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", e.raw)
				return err
			}
			return e.print(cmd.ErrOrStderr())
		}
	}
	create := &cobra.Command{
		Use: "create PROMPT", Short: "Create a job", Args: cobra.ExactArgs(1),
		Long: "Create a job. Without a language model it takes instructions of fixed forms, several in one prompt:\n\n  " +
			strings.Join(agent.Examples(), "\n  ") + "\n\nWith --wait or --dry-run: " + exitStatuses,
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
			if err := c.postJSON(cmd.Context(), path("job"), body, &j, header...); err != nil {
				return err
			}
			if dryRun {
				return c.dryRun(cmd, path("job", string(j.ID)), asJSON)
			}
			if wait {
				return c.follow(cmd, path("job", string(j.ID)), logged(cmd), show)
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
			if err := c.getJSON(cmd.Context(), path("job", args[0]), &j); err != nil {
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
			if err := c.postJSON(cmd.Context(), path("job", args[0], "message"), map[string]any{"prompt": args[1]}, &j, header...); err != nil {
				return err
			}
			if wait {
				return c.follow(cmd, path("job", args[0]), logged(cmd), show)
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
			return c.follow(cmd, path("job", args[0]), logged(cmd), show)
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
				if err := c.postJSON(cmd.Context(), path("job", args[0], verb), map[string]any{}, &j); err != nil {
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
			line := func(cmd *cobra.Command, j api.Job) error {
				if asJSON {
					return printJSON(cmd.OutOrStdout(), j)
				}
				return printJobLine(cmd.OutOrStdout(), j)
			}
			return c.listJobs(cmd, path("jobs"), status, archived, limit, line)
		},
	}
	list.Flags().IntVar(&limit, "limit", 20, "how many at most; 0 for all")
	list.Flags().StringVar(&archived, "archived", "", "true: only jobs that are put away; false: only others")
	list.Flags().StringVar(&status, "status", "", "only jobs that are active, completed or failed")
	cmd.AddCommand(create, get, message, watch, list,
		act("cancel", "Stop an active job"), act("archive", "Put a job away; its branch and pull request stay"))
	return cmd
}

// A jobEvent is one entry of a job's log.
type jobEvent struct {
	raw    []byte
	ID     uint64        `json:"id"`
	Type   string        `json:"type"`
	At     time.Time     `json:"at"`
	Status api.JobStatus `json:"status"`
	Title  string        `json:"title"`
	Text   string        `json:"text"`
	Todos  []api.Todo    `json:"todos"`
	Tool   *struct {
		Name   string `json:"name"`
		Input  string `json:"input"`
		Output string `json:"output"`
		Failed bool   `json:"failed"`
	} `json:"tool"`
	Files  []changedFile `json:"files"`
	Diff   string        `json:"diff"`
	Branch string        `json:"branch"`
	Commit string        `json:"commit"`
	PRLink *string       `json:"prLink"`
}

type changedFile struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"`
	Status  string `json:"status"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// print shows the event as lines for people.
func (e jobEvent) print(w io.Writer) error {
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

// dryRun follows a job that publishes nothing, and shows what it would have changed: as a diff that can be applied, or in
// the job's JSON.
func (c *client) dryRun(cmd *cobra.Command, path string, asJSON bool) error {
	var edit jobEvent
	return c.follow(cmd, path, func(e jobEvent) error {
		if e.Type == "edited" {
			edit = e
		}
		return e.print(cmd.ErrOrStderr())
	}, func(cmd *cobra.Command, j api.Job) error {
		if asJSON {
			return printJSON(cmd.OutOrStdout(), struct {
				api.Job
				Files []changedFile `json:"files"`
				Diff  string        `json:"diff"`
			}{j, append([]changedFile{}, edit.Files...), edit.Diff})
		}
		if j.Outcome != api.OutcomeChanged && j.Status == api.JobCompleted {
			fmt.Fprintln(cmd.ErrOrStderr(), j.Message)
		}
		_, err := io.WriteString(cmd.OutOrStdout(), edit.Diff)
		return err
	})
}

// reconnects is how often in a row a broken stream is taken up again before the command gives up.
const reconnects = 10

// follow reads the job's log until the job has ended, and shows where it has come to rest. A stream that breaks off is
// taken up after the last event that was seen.
func (c *client) follow(cmd *cobra.Command, path string, event func(jobEvent) error, show func(*cobra.Command, api.Job) error) error {
	var after uint64
	pause, failures := 500*time.Millisecond, 0
	for {
		end, err := c.readEvents(cmd.Context(), path, after, func(e jobEvent) error {
			after, failures = e.ID, 0
			return event(e)
		})
		var answer *serverError
		var shown *showError
		var usage *usageError
		switch {
		case err == nil && end != nil:
			if err := show(cmd, *end); err != nil {
				return err
			}
			if end.Status == api.JobFailed {
				return fmt.Errorf("job %s failed: %s", end.ID, end.Message)
			}
			return outcomeError(*end)
		case errors.As(err, &shown):
			return shown.err
		case errors.As(err, &answer) && answer.Status != http.StatusServiceUnavailable && answer.Status != http.StatusBadGateway && answer.Status != http.StatusGatewayTimeout,
			cmd.Context().Err() != nil, errors.As(err, &usage), after == 0 && err != nil:
			return err
		}
		if failures++; failures > reconnects {
			return fmt.Errorf("the job's log breaks off again and again: %w", cmp.Or(err, io.ErrUnexpectedEOF))
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "the connection broke off, following on")
		select {
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		case <-time.After(min(pause<<(failures-1), 10*time.Second)):
		}
	}
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

// A showError is the command's own trouble with an event, not the connection's.
type showError struct{ err error }

func (e *showError) Error() string { return e.err.Error() }

// readEvents reads one stream of a job's log. The job is nil where the stream broke off.
func (c *client) readEvents(ctx context.Context, path string, after uint64, event func(jobEvent) error) (*api.Job, error) {
	resp, err := c.do(ctx, http.MethodGet, path+"/events", nil, "Accept", "text/event-stream", "Last-Event-ID", strconv.FormatUint(after, 10))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent { // all was seen but the end
		var j api.Job
		err := c.getJSON(ctx, path, &j)
		return &j, err
	}
	lines := bufio.NewReader(resp.Body)
	var name, data string
	for {
		text, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the job's log: %w", err)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(text, "\n"), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if text != "\n" || data == "" {
				name = ""
				continue // a comment
			}
			switch name {
			case "end":
				var j api.Job
				if err := json.Unmarshal([]byte(data), &j); err != nil {
					return nil, fmt.Errorf("read the job's log: %w", err)
				}
				return &j, nil
			case "omitted":
			default:
				e := jobEvent{raw: []byte(data)}
				if err := json.Unmarshal(e.raw, &e); err != nil {
					return nil, fmt.Errorf("read the job's log: %w", err)
				}
				if err := event(e); err != nil {
					return nil, &showError{err}
				}
			}
			name, data = "", ""
		}
	}
}

func (c *client) listJobs(cmd *cobra.Command, path, status, archived string, limit int, show func(*cobra.Command, api.Job) error) error {
	cursor := ""
	for shown := 0; ; {
		page := 100
		if limit > 0 {
			page = min(page, limit-shown)
		}
		query := url.Values{"limit": {fmt.Sprint(page)}}
		if status != "" {
			query.Set("status", status)
		}
		if archived != "" {
			query.Set("archived", archived)
		}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		var body struct {
			Jobs       []api.Job `json:"jobs"`
			NextCursor *string   `json:"nextCursor"`
		}
		if err := c.getJSON(cmd.Context(), path+"?"+query.Encode(), &body); err != nil {
			return err
		}
		for _, j := range body.Jobs {
			if err := show(cmd, j); err != nil {
				return err
			}
			shown++
		}
		if body.NextCursor == nil || *body.NextCursor == "" || (limit > 0 && shown >= limit) {
			return nil
		}
		cursor = *body.NextCursor
	}
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
