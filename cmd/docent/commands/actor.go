package commands

import (
	"errors"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
)

func newActorCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog, Here: operator.NoServerHere}
	cmd := &cobra.Command{Use: "actor", Short: "Retry quarantined jobs and threads"}
	cli.OperatorFlags(cmd, o)
	var all bool
	retry := &cobra.Command{
		Use: "retry [ID...]", Short: "Recover jobs or threads in quarantine from the journal, and take up their work",
		Long: "Recover jobs or threads in quarantine from the journal, and take up their work. `docent status` lists them with\n" +
			"their reasons. One that fails again is in quarantine again, and the command ends with status 1.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return cli.Usagef("name the ids of jobs or threads, or give --all")
			}
			var rows []operator.Retried
			if err := o.Run(cmd, operator.OpActorRetry, operator.RetryParams{IDs: args}, &rows); err != nil {
				return err
			}
			err := cli.PrintRows(cmd.OutOrStdout(), o.JSON, rows, "ID\tRESULT", func(r operator.Retried) string {
				if r.Error != "" {
					return r.ID + "\t" + r.Error
				}
				return r.ID + "\trecovered"
			})
			for _, r := range rows {
				if r.Error != "" && err == nil {
					err = errors.New("not all of them could be recovered")
				}
			}
			return err
		},
	}
	retry.Flags().BoolVar(&all, "all", false, "all that are in quarantine")
	cmd.AddCommand(retry)
	return cmd
}
