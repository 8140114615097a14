package benchcmd

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"docent/bench"
	"docent/cmd/docent/cli"
)

// newBenchConsoleCommand opens pages while something else puts load on the server.
func newBenchConsoleCommand(b *benchRun) *cobra.Command {
	var c bench.Console
	cmd := &cobra.Command{Use: "console", Args: cobra.NoArgs,
		Short: "Pages of the console, opened again and again, with live parts that stay open",
		Long: "Open each page of a project's console again and again, and keep live parts of pages open, on the server that --url\n" +
			"names, signed in with --admin-key, whose organization has one project. Run another load on the same server meanwhile\n" +
			"to see what pages cost it, and it them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "url", "admin-key"); err != nil {
				return err
			}
			if c.Every <= 0 || c.For <= 0 {
				return cli.Usagef("--every and --for are times above 0")
			}
			c.URL, c.AdminKey = b.url, b.adminKey
			figures, err := c.Run(cmd.Context())
			if err != nil {
				return err
			}
			if b.json {
				return cli.PrintJSON(cmd.OutOrStdout(), figures)
			}
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', tabwriter.AlignRight)
			fmt.Fprintln(t, "opened\tfailed\tbytes\tp50 ms\tp99 ms\tmost ms\tpage\t")
			failed := 0
			for _, p := range figures.Pages {
				failed += p.Failed
				fmt.Fprintf(t, "%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t%s\t\n", p.Latency.Count, p.Failed, p.Bytes, p.Latency.P50, p.Latency.P99,
					p.Latency.Max, p.Page)
			}
			fmt.Fprintf(t, "%d\t%d\t\t%.1f\t%.1f\t%.1f\tall\t\n", figures.All.Count, failed, figures.All.P50, figures.All.P99,
				figures.All.Max)
			if err := t.Flush(); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d live parts open, %d events\n", figures.Live, figures.Events)
			if failed > 0 {
				err = errors.Join(err, fmt.Errorf("%d pages were not shown", failed))
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&c.Every, "every", time.Second, "how often each page is opened")
	cmd.Flags().IntVar(&c.Live, "live", 20, "live parts that stay open")
	cmd.Flags().DurationVar(&c.For, "for", 20*time.Second, "how long")
	return cmd
}
