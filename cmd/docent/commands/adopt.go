package commands

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
)

func newAdoptCommand(o *cli.Operator) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "adopt", Short: "Use a journal and a catalog that do not belong together; the server must be stopped",
		Args: cobra.NoArgs,
		Long: "Use the journal and the catalog of the data directory as they are, although one of them is missing, an older copy,\n" +
			"or from another data directory. If there is a backup of both, restore that instead. The server must be stopped.\n\n" +
			"The listings are rebuilt from the journal. Jobs and questions that are listed but missing from the journal are first\n" +
			"written to a file in the set-aside folder of the data directory. Without --yes, nothing is changed: the command says what\n" +
			"is wrong and what would be lost.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.Load(cmd)
			if err != nil {
				return err
			}
			done, err := operator.Adopt(cmd.Context(), c, yes)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if o.JSON {
				err = cli.PrintJSON(out, done)
			} else {
				err = printAdoption(out, done)
			}
			if err == nil && done.Reason != "" && !done.Adopted {
				return errors.New("nothing was changed; make a copy of the data directory and run this again with --yes")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it (without this flag, nothing changes)")
	return cmd
}

func printAdoption(out io.Writer, a operator.Adoption) error {
	if a.Reason == "" {
		_, err := fmt.Fprintln(out, "the journal and the catalog belong together")
		return err
	}
	fmt.Fprintln(out, a.Reason)
	fmt.Fprintf(out, "%d listed jobs and questions are not in the journal\n", a.Listed)
	if a.Adopted {
		fmt.Fprintln(out, "the journal and the catalog belong together now; the listings are rebuilt when the server starts")
	}
	if a.Kept != "" {
		fmt.Fprintf(out, "what was listed alone stands in %s, a row a line\n", a.Kept)
	}
	return nil
}
