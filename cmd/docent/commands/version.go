package commands

import (
	"fmt"

	"github.com/spf13/cobra"

	"docent/cmd/docent/build"
	"docent/cmd/docent/cli"
	"docent/persistence/datadir"
	"docent/persistence/journal"
	"docent/search/index"
)

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of this binary", Args: cobra.NoArgs,
		Long: "Print the version of this binary. With --json: the commit that it was built from and the day of that commit, whether\n" +
			"files were changed (modified), and the forms of what it keeps on disk (formats): a release that reads an older\n" +
			"journal says so in the changelog, and an index of another form is rebuilt.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := build.Get()
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), struct {
					build.Info
					Formats dataFormats `json:"formats"`
				}{v, dataFormats{Data: datadir.Format, Journal: journal.Format, Index: index.Format()}})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), v)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// dataFormats are the forms of what lies in a data directory.
type dataFormats struct {
	Data    int    `json:"data"` // of the directory as a whole: a version does not open one of a higher number
	Journal string `json:"journal"`
	Index   string `json:"index"`
}
