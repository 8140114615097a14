package commands

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
)

func newCatalogCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	cmd := &cobra.Command{Use: "catalog", Short: "Check and rebuild the catalog"}
	cli.OperatorFlags(cmd, o)
	cmd.AddCommand(&cobra.Command{
		Use: "check", Short: "Check everything that only the catalog holds, and report damage; the server may run",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var r operator.CatalogReport
			if err := o.Run(cmd, operator.OpCatalogCheck, nil, &r); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if o.JSON {
				if err := cli.PrintJSON(out, r); err != nil {
					return err
				}
			} else {
				for _, p := range r.Problems {
					fmt.Fprintf(out, "%s\n  %s\n", p.Problem, p.Advice)
				}
				fmt.Fprintf(out, "%s: %s with checksums\n", r.Catalog, brief.Count(r.Rows, "row"))
			}
			if r.Found > 0 {
				return fmt.Errorf("wrong in the catalog: %d", r.Found)
			}
			if !o.JSON {
				fmt.Fprintln(out, "nothing is wrong")
			}
			return nil
		},
	}, &cobra.Command{
		Use:   "accept TABLE ROW",
		Short: "Accept a damaged row as it is, once you know that its content is right; the server may run",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.Run(cmd, operator.OpCatalogAccept, operator.RowParams{Table: args[0], Row: args[1]}, nil)
		},
	}, &cobra.Command{
		Use: "rebuild", Short: "Rebuild the listings from the journal; the server may run", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Show(o, cmd, operator.OpCatalogRebuild, nil, func(w io.Writer, r operator.CatalogRebuilt) error {
				_, err := fmt.Fprintf(w, "the listings were rebuilt up to position %d of the journal, in %.1f s\n", r.Position,
					r.Seconds)
				return err
			})
		},
	})
	return cmd
}
