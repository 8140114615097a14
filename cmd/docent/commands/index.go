package commands

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
	"docent/search"
)

func newIndexCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	var project string
	cmd := &cobra.Command{
		Use: "index PROJECT", Short: "Re-index all of a project's sources",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Show(o, cmd, operator.OpIndex, operator.ProjectParams{ID: api.ProjectID(project)}, printIndexed)
		},
	}
	cli.OperatorFlags(cmd, o)
	cli.Named(cmd, &project, "project", "a PROJECT", false)
	return cmd
}

func printIndexed(w io.Writer, r search.Report) error {
	_, err := fmt.Fprintf(w, "%s, %s at %.12s: %d added, %d modified, %d removed\n",
		brief.Count(r.Pages, "page"), brief.Count(r.Sections, "section"), r.Commit, len(r.Added), len(r.Modified), len(r.Removed))
	return err
}
