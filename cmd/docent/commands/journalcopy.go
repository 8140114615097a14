package commands

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
)

func newJournalCopyCommand(o *cli.Operator) *cobra.Command {
	var to string
	var alone bool
	cmd := &cobra.Command{
		Use: "copy --to postgres|bbolt", Short: "Copy the journal and the catalog to PostgreSQL, or back; all servers must be stopped",
		Args: cobra.NoArgs,
		Long: "Copy what a single server keeps in its data directory, the journal and the catalog, into the PostgreSQL database of\n" +
			"catalog_dsn, where several nodes share it; or, with --to bbolt, from there into a data directory. All servers must be stopped.\n\n" +
			"Everything keeps its place: events keep their positions and sequence numbers, listings and webhooks the positions that they\n" +
			"have reached. The copy is read back and compared, event by event and row by row, before it takes effect. If copying is\n" +
			"interrupted, the target stays empty; run it again. A target that holds anything else is refused. The original is not changed.\n\n" +
			"See docs/deploy/cluster for the order in which to stop, back up, copy, and start.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.Load(cmd)
			if err != nil {
				return err
			}
			if to != config.JournalPostgres && to != config.JournalBolt {
				return cli.Usagef("--to is %q: it is %s or %s", to, config.JournalPostgres, config.JournalBolt)
			}
			done, err := operator.CopyJournal(cmd.Context(), c, to, alone)
			if err != nil {
				return err
			}
			if o.JSON {
				return cli.PrintJSON(cmd.OutOrStdout(), done)
			}
			return printCopied(cmd.OutOrStdout(), done)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "where to copy to: postgres or bbolt")
	cmd.Flags().BoolVar(&alone, "journal-only", false, "leave the catalog where it is, if it is on PostgreSQL before and after")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

func printCopied(out io.Writer, d operator.JournalCopied) error {
	rows := 0
	for _, t := range d.Catalog {
		rows += t.Rows
	}
	if d.Already {
		fmt.Fprintf(out, "%s holds the journal already\n", d.To)
	}
	fmt.Fprintf(out, "journal: %s, %s, %s, %d pending, %s, up to position %d: the same in %s\n",
		brief.Count(d.Journal.Streams, "stream"), brief.Count(d.Journal.Events, "event"), brief.Count(d.Journal.Snapshots, "snapshot"),
		d.Journal.Pending, brief.Count(d.Journal.Claims, "idempotency key"), d.Journal.Position, d.To)
	if len(d.Catalog) > 0 {
		fmt.Fprintf(out, "catalog: %s in %s: the same\n", brief.Count(rows, "row"), brief.Count(len(d.Catalog), "table"))
	}
	if len(d.Host) > 0 {
		fmt.Fprintf(out, "repositories of the built-in host: %d: the same\n", len(d.Host))
	}
	for _, note := range d.Notes {
		fmt.Fprintln(out, note)
	}
	return nil
}
