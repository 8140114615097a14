package commands

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
)

func newPullCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	cmd := &cobra.Command{Use: "pull", Short: "Pull requests of the built-in code host"}
	cli.OperatorFlags(cmd, o)
	var project, state string
	list := &cobra.Command{
		Use: "list", Short: "List pull requests, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "project"); err != nil {
				return err
			}
			params := operator.PullParams{Project: api.ProjectID(project), State: api.PullState(state)}
			return cli.ShowRows(o, cmd, operator.OpPullList, params, "NUMBER\tSTATE\tID\tTITLE", func(p api.PullRequest) string {
				return fmt.Sprintf("#%d\t%s\t%s\t%s", p.Number, p.State, p.ID, p.Title)
			})
		},
	}
	list.Flags().StringVar(&project, "project", "", "project")
	list.Flags().StringVar(&state, "state", "", "open, merged or closed; all if empty")
	act := func(verb, op, short string) *cobra.Command {
		return &cobra.Command{
			Use: verb + " ID", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return cli.Show(o, cmd, op, operator.PullParams{ID: pullID(args[0])}, func(w io.Writer, p api.PullRequest) error {
					_, err := fmt.Fprintf(w, "#%d %s  %s\n", p.Number, p.State, p.Title)
					return err
				})
			},
		}
	}
	diff := &cobra.Command{
		Use: "diff ID", Short: "Print what a pull request changes", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var text string
			if err := o.Run(cmd, operator.OpPullDiff, operator.PullParams{ID: pullID(args[0])}, &text); err != nil {
				return err
			}
			return cli.WriteDiff(cmd.OutOrStdout(), text)
		},
	}
	cmd.AddCommand(list, diff,
		act("merge", operator.OpPullMerge, "Merge a pull request into its base branch; a folder that is the source is updated"),
		act("close", operator.OpPullClose, "Close a pull request without merging it"))
	return cmd
}

// pullID takes an id, or the link of a pull request's page.
func pullID(text string) string {
	if i := strings.LastIndex(text, "/pulls/"); i >= 0 {
		return text[i+len("/pulls/"):]
	}
	return text
}
