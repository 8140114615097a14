package commands

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
	"docent/internal/health"
	"docent/web/manual"
)

func newDocsCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog, Here: operator.NoServerHere}
	var dir string
	cmd := &cobra.Command{
		Use: "docs", Short: "Open Docent's own documentation, or export it", Args: cobra.NoArgs,
		Long: "Print the address at which the running server shows Docent's own documentation, and open it in the browser of this machine\n" +
			"if there is one. With --export, write the same pages as a static site, which needs no server.",
		Example: "  docent docs\n  docent docs --export ./docent-docs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir != "" {
				n, err := manual.Export(dir)
				if err != nil {
					return err
				}
				return o.Did(cmd, map[string]any{"pages": n, "folder": dir}, "%s in %s; begin with index.html", brief.Count(n, "page"), dir)
			}
			return cli.Show(o, cmd, operator.OpStatus, struct{}{}, func(w io.Writer, s health.Status) error {
				_, err := fmt.Fprintln(w, s.URL+manual.Root)
				cli.OpenInBrowser(w, s.URL+manual.Root)
				return err
			})
		},
	}
	cli.OperatorFlags(cmd, o)
	cmd.Flags().StringVar(&dir, "export", "", "folder to write the pages to, as a static site")
	return cmd
}
