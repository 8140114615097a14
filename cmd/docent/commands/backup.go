package commands

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
	"docent/persistence/backup"
)

func newBackupCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	cmd := &cobra.Command{
		Use: "backup DIR", Short: "Back up the data directory, with the server running or stopped", Args: cobra.ExactArgs(1),
		Long: "Copy the data directory to a new directory, consistently, with the server running or stopped. The copy includes everything\n" +
			"that was acknowledged before the command began, except search indexes, which are rebuilt.\n\n" +
			"To restore, put the copy in place of the data directory and start the server.",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			return cli.Show(o, cmd, operator.OpBackup, operator.BackupParams{Dir: dir}, func(w io.Writer, r backup.Report) error {
				fmt.Fprintf(w, "%s: journal up to position %d (%d bytes), catalog (%d bytes), repositories: %d (%s)\n",
					dir, r.Position, r.JournalBytes, r.CatalogBytes, r.Repositories, brief.Count(r.Files, "file"))
				_, err := fmt.Fprintln(w, strings.Join(r.Notes, "\n"))
				return err
			})
		},
	}
	cli.OperatorFlags(cmd, o)
	return cmd
}
