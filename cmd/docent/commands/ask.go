package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/api/client"
	"docent/cmd/docent/cli"
)

func newAskCommand(prog cli.Program) *cobra.Command {
	c := &cli.Caller{Local: cli.Operator{Prog: prog}}
	var q client.Question
	var asJSON bool
	var project string
	cmd := &cobra.Command{
		Use: "ask QUESTION", Short: "Ask the assistant and print the answer as it is written", Args: cobra.ExactArgs(1),
		Long: "Ask the assistant and print the answer as it is written, as formatted text on a terminal and as Markdown otherwise.\n" +
			"On the server's machine it needs no key, and no project if there is only one. --explain also prints, as JSON, each step\n" +
			"that led to the answer; over HTTP, that takes an admin key instead of an assistant key.",
		Example: `  docent ask "How do I rotate a key?"
  docent ask --domain docs.example.com --key $KEY "How do I rotate a key?"
  docent ask --explain --domain docs.example.com --key $ADMIN_KEY "How do I rotate a key?"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := api.AssistantKey
			if q.Explain {
				kind = api.AdminKey
			}
			if err := c.Authorize(cmd, kind, &project, &q.Domain); err != nil {
				return err
			}
			if err := cli.Required(cmd, "domain", "key"); err != nil {
				return err
			}
			q.Text = args[0]
			out := cmd.OutOrStdout()
			if asJSON {
				a, err := c.Ask(cmd.Context(), q, io.Discard)
				if err != nil {
					return err
				}
				return cli.PrintJSON(out, a)
			}
			text := cli.NewMarkdown(out)
			a, err := c.Ask(cmd.Context(), q, text)
			if err := errors.Join(err, text.Close()); err != nil {
				return err
			}
			if !cli.Colors(out) {
				fmt.Fprintln(out)
			}
			printSources(out, a)
			if a.Explanation == nil {
				return nil
			}
			fmt.Fprintln(out, "\nHow it came about")
			e := json.NewEncoder(out)
			e.SetIndent("", "  ")
			e.SetEscapeHTML(false)
			return e.Encode(a.Explanation)
		},
	}
	c.Flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&project, "project", "", "name of the project, without a key")
	flags.StringVar(&q.Domain, "domain", cli.EnvOr("DOMAIN", ""), "domain of the project (DOCENT_DOMAIN)")
	flags.StringVar(&q.Thread, "thread", "", "continue this thread")
	flags.StringVar(&q.Key, "thread-key", "", "the thread's secret, if the project requires it")
	flags.StringVar(&q.Caller, "fp", "anonymous", "who is asking: anonymous, or a user ID")
	flags.StringVar(&q.Version, "version", "", "answer from this version of the documentation only")
	flags.StringVar(&q.Language, "language", "", "answer from pages in this language only, such as fr")
	flags.StringVar(&q.Page, "current-path",
		"", "page that the reader is on; the answer uses its version and language")
	flags.BoolVar(&q.Explain, "explain", false, "print each step that led to the answer; needs an admin key")
	flags.BoolVar(&q.DataStream, "data-stream", false, "stream the deprecated data form of API version 1")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object when the answer is complete")
	return cmd
}

// printSources prints what stands beside an answer, of which nothing may act on a terminal: pages are written by others.
func printSources(w io.Writer, a client.Answer) {
	line := cli.PlainLine
	if len(a.Sources) > 0 {
		fmt.Fprintln(w, "\nSources:")
		for i, s := range a.Sources {
			fmt.Fprintf(w, "  [%d] %s  %s\n", i+1, line(s.Title), line(s.URL))
		}
	}
	if len(a.Cards) > 0 {
		fmt.Fprintln(w, "\nSee also:")
		for _, c := range a.Cards {
			fmt.Fprintf(w, "  %s  %s\n      %s\n", line(c.Title), line(c.URL), line(c.Excerpt))
		}
	}
	if len(a.Suggestions) > 0 {
		fmt.Fprintln(w, "\nYou can also ask:")
		for _, s := range a.Suggestions {
			fmt.Fprintf(w, "  %s\n", line(s.Text))
		}
	}
	fmt.Fprintf(w, "\nThread: %s\n", a.ThreadID)
}
