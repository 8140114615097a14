package evalcmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"docent/bench/evaluation"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
)

func newEvalMakeCommand(o *cli.Operator) *cobra.Command {
	var p operator.RatedParams
	var out string
	var fromRatings bool
	var since time.Duration
	cmd := &cobra.Command{
		Use: "make", Short: "Write a file of questions for `eval answers`, from answers that readers have rated",
		Args: cobra.NoArgs,
		Long: "Write a YAML file for `docent eval answers`. An answer that readers liked becomes a question with the pages that it cites\n" +
			"and strings from its text as facts, for a person to trim; one that they disliked is left open, for a person to fill in the\n" +
			"right answer. The file does not say who asked. Addresses, telephone numbers, and keys are removed from what readers wrote;\n" +
			"names of people cannot be.",
		Example: "  docent eval make --from-ratings --project docs --out questions.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "project"); err != nil {
				return err
			}
			switch {
			case !fromRatings:
				return cli.Usagef("eval make needs to know what from: --from-ratings; see 'docent eval make --help'")
			case p.Most < 1 || p.Most > 5000:
				return cli.Usagef("--most is from 1 to 5000")
			}
			if since > 0 {
				p.From = time.Now().Add(-since)
			}
			var list operator.RatedList
			if err := o.Run(cmd, operator.OpEvaluateRated, p, &list); err != nil {
				return err
			}
			if len(list.Rated) == 0 {
				return errors.New("no answer of this project is rated yet: readers rate in the widget, clients over POST /discovery/v1/feedback/DOMAIN")
			}
			if list.Retention > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "Conversations are removed %v after their last use, this file is not: take out what readers wrote about themselves.\n",
					list.Retention)
			}
			if out == "" {
				return evaluation.WriteRated(cmd.OutOrStdout(), list.Rated)
			}
			return writeNew(out, func(w io.Writer) error { return evaluation.WriteRated(w, list.Rated) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&p.Project), "project", "", "project")
	flags.BoolVar(&fromRatings, "from-ratings", false, "from the answers that readers have rated")
	flags.DurationVar(&since, "since", 0, "only ratings from the last while, such as 720h")
	flags.IntVar(&p.Most, "most", 200, "maximum number of questions; the newest ratings are used")
	flags.BoolVar(&p.Comments, "comments", false, "include what readers wrote with their rating, as comments")
	flags.StringVar(&out, "out", "", "file to write, which must not exist (default: standard output)")
	return cmd
}

// writeNew writes a file that is not there yet.
func writeNew(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
