package commands

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
	"docent/cmd/docent/doctor"
)

func newDoctorCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	var offline bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the installation, and say how to fix what is wrong", Args: cobra.NoArgs,
		SuggestFor: []string{"check", "diagnose", "verify"},
		Long: "Check the configuration, the data directory and its disk, limits, the clock, keys, sources, backups, code hosts, models,\n" +
			"and the path that clients take to the server; report each problem and how to fix it. Run it as the server's user. If the\n" +
			"server is running, its environment and limits are the ones that are checked.\n" +
			"Each language model is sent one short question. The exit status is 1 if there is a problem.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _ := config.Read(o.Config, os.LookupEnv, cmd.Flags()) // what is wrong with it is a finding
			ctx := cmd.Context()
			report := doctor.Examine(ctx, doctor.OutsideChecks(o.Prog.Configured(c), o.Config, cmd.Flags(), offline))
			var err error
			if o.JSON {
				err = cli.PrintJSON(cmd.OutOrStdout(), report)
			} else {
				err = report.Print(cmd.OutOrStdout(), cli.Colors(cmd.OutOrStdout()))
				if _, set := os.LookupEnv(config.EnvPrefix + "DATA"); !set && report.Problems+report.Warnings > 0 && c.Data != config.Default().Data {
					fmt.Fprintf(cmd.OutOrStdout(), "The commands above act on this data directory after: export %sDATA=%s\n", config.EnvPrefix, c.Data)
				}
			}
			if err == nil && !report.OK {
				err = fmt.Errorf("%d of the checks found a problem", report.Problems)
			}
			return err
		},
	}
	cli.OperatorFlags(cmd, o)
	cmd.Flags().BoolVar(&offline, "offline", false, "make no network connections")
	return cmd
}
