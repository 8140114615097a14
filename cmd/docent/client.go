package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
)

// A client speaks the public API, as any other client does.
type client struct {
	base string
	key  string
	http *http.Client
}

// clientFlags adds the flags that name a server and a key.
func clientFlags(cmd *cobra.Command, c *client) {
	c.http = &http.Client{} // no overall timeout: answers stream
	cmd.PersistentFlags().StringVar(&c.base, "url", envOr("URL", "http://127.0.0.1:8080"), "address of the server (DOCENT_URL)")
	cmd.PersistentFlags().StringVar(&c.key, "key", envOr("KEY", ""), "API key (DOCENT_KEY)")
}

func envOr(name, standard string) string {
	if v := os.Getenv(envPrefix + name); v != "" {
		return v
	}
	return standard
}

// do sends a request with a JSON body (none where body is nil). The caller closes the response's body. An answer that
// is no success becomes an error with the server's own sentence.
func (c *client) do(ctx context.Context, method, path string, body any, header ...string) (*http.Response, error) {
	if u, err := url.Parse(c.base); err != nil || u.Host == "" {
		return nil, usagef("--url %q is not an address such as http://127.0.0.1:8080", c.base)
	}
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.base, "/")+path, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, responseError(resp)
	}
	return resp, nil
}

// A serverError is an error answer of the API.
type serverError struct {
	Status  int
	Code    string
	Message string
	Details []api.Problem
}

func (e *serverError) Error() string {
	text := fmt.Sprintf("%s (%d %s)", e.Message, e.Status, e.Code)
	for _, d := range e.Details {
		text += fmt.Sprintf("\n  %s: %s", d.Field, d.Message)
	}
	return text
}

func responseError(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var body struct {
		Message string        `json:"message"`
		Code    string        `json:"code"`
		Details []api.Problem `json:"details"`
	}
	if json.Unmarshal(text, &body) != nil || body.Message == "" {
		body.Message = "the server answered " + resp.Status
	}
	return &serverError{Status: resp.StatusCode, Code: body.Code, Message: body.Message, Details: body.Details}
}

// getJSON reads one resource into out.
func (c *client) getJSON(ctx context.Context, path string, out any) error {
	resp, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return decodeBody(resp, out)
}

// postJSON sends a body and reads the answer into out.
func (c *client) postJSON(ctx context.Context, path string, body, out any, header ...string) error {
	resp, err := c.do(ctx, http.MethodPost, path, body, header...)
	if err != nil {
		return err
	}
	return decodeBody(resp, out)
}

func decodeBody(resp *http.Response, out any) error {
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}

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
	var wait, draft bool
	create := &cobra.Command{
		Use: "create PROMPT", Short: "Create a job", Args: cobra.ExactArgs(1),
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
			var header []string
			if idempotency != "" {
				header = []string{"Idempotency-Key", idempotency}
			}
			var j api.Job
			if err := c.postJSON(cmd.Context(), path("job"), body, &j, header...); err != nil {
				return err
			}
			if wait {
				return c.await(cmd, path("job", string(j.ID)), j, show)
			}
			return show(cmd, j)
		},
	}
	create.Flags().StringVar(&idempotency, "idempotency-key", "", "repeat safely: the same key and prompt give the same job for 24 hours")
	create.Flags().StringVar(&model, "model", "", "model to use in place of the project's")
	create.Flags().BoolVar(&draft, "draft", false, "open the pull request as a draft")
	create.Flags().BoolVar(&wait, "wait", false, "wait until the job has ended")

	get := &cobra.Command{
		Use: "get ID", Short: "Show a job", Args: cobra.ExactArgs(1),
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
			if err := c.postJSON(cmd.Context(), path("job", args[0], "message"), map[string]any{"prompt": args[1]}, &j); err != nil {
				return err
			}
			if wait {
				return c.await(cmd, path("job", args[0]), j, show)
			}
			return show(cmd, j)
		},
	}
	message.Flags().BoolVar(&wait, "wait", false, "wait until the job has ended")
	watch := &cobra.Command{
		Use: "watch ID", Short: "Follow a job until it has ended", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := check(cmd); err != nil {
				return err
			}
			var j api.Job
			if err := c.getJSON(cmd.Context(), path("job", args[0]), &j); err != nil {
				return err
			}
			return c.await(cmd, path("job", args[0]), j, show)
		},
	}
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
	var status string
	list := &cobra.Command{
		Use: "list", Short: "List jobs, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := check(cmd); err != nil {
				return err
			}
			return c.listJobs(cmd, path("jobs"), status, limit, show)
		},
	}
	list.Flags().IntVar(&limit, "limit", 20, "how many at most; 0 for all")
	list.Flags().StringVar(&status, "status", "", "only jobs that are active, completed or failed")
	cmd.AddCommand(create, get, message, watch, list,
		act("cancel", "Stop an active job"), act("archive", "Put a job away; its branch and pull request stay"))
	return cmd
}

// await follows the job until it is no longer active, and shows where it has come to rest.
func (c *client) await(cmd *cobra.Command, path string, j api.Job, show func(*cobra.Command, api.Job) error) error {
	shown := ""
	for j.Status == api.JobActive {
		if line := strings.TrimSpace(j.Title + "  " + j.Message); line != shown {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s  %s  %s\n", j.ID, j.Status, line)
			shown = line
		}
		resp, err := c.do(cmd.Context(), http.MethodGet, path+"?wait=30", nil)
		if err != nil {
			return err
		}
		if err := decodeBody(resp, &j); err != nil {
			return err
		}
	}
	if err := show(cmd, j); err != nil {
		return err
	}
	if j.Status == api.JobFailed {
		return fmt.Errorf("job %s failed: %s", j.ID, j.Message)
	}
	return nil
}

func (c *client) listJobs(cmd *cobra.Command, path, status string, limit int, show func(*cobra.Command, api.Job) error) error {
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
