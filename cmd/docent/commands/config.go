package commands

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
)

func newConfigCheckCommand() *cobra.Command {
	var file string
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use: "check", Short: "Say everything that is wrong with the configuration: where, why, and the fix",
		Args: cobra.NoArgs, SuggestFor: []string{"validate", "test", "lint"},
		Long: "Read the configuration as `docent serve` does and say everything that is wrong with it at once: the setting, the line\n" +
			"of the file, why, and the fix. A problem keeps a server from starting; a warning is something that its operator hardly\n" +
			"meant: settings that contradict each other, or variables of the environment that look like settings and are none.\n" +
			"The exit status is 1 where there is a problem. Nothing is reached over a network: `docent doctor` does that.",
		Example: "  docent config check --config /etc/docent/docent.toml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := config.Check(file, os.Environ(), cmd.Flags())
			var err error
			if asJSON {
				if report.Problems == nil {
					report.Problems = config.Problems{}
				}
				err = cli.PrintJSON(cmd.OutOrStdout(), report)
			} else {
				err = report.Print(cmd.OutOrStdout())
			}
			if err == nil && (!report.OK || strict && len(report.Problems) > 0) {
				err = errors.New("the configuration has to be changed")
			}
			return err
		},
	}
	settingFlags(cmd, &file)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with status 1 where there are only warnings, too")
	return cmd
}

// settingFlags adds a flag for every setting that has one.
func settingFlags(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", os.Getenv(config.EnvPrefix+"CONFIG"), "configuration file (TOML)")
	for _, s := range new(config.Config).Settings() {
		if s.Flag != "" {
			cmd.Flags().String(s.Flag, s.Default, fmt.Sprintf("%s (%s)", s.Usage, s.Env()))
		}
	}
}

func newConfigCommand() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "config", Short: "Show every setting: its value, where the value comes from, and what the setting is for",
		Args: cobra.NoArgs,
		Long: "Show every setting as a server has it that is started with the same flags, file and environment: the value, and\n" +
			"whether it is the default or comes from the file, the environment or a flag. Secrets are not shown.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(file, os.LookupEnv, cmd.Flags())
			if err != nil {
				return err
			}
			for _, line := range slices.Concat(c.Deprecations(), c.UnknownVariables(os.Environ(), nil)) {
				fmt.Fprintln(cmd.ErrOrStderr(), "WARNING:", line)
			}
			shown := c.Show(file)
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), shown)
			}
			return shown.Print(cmd.OutOrStdout())
		},
	}
	settingFlags(cmd, &file)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.AddCommand(newConfigCheckCommand())
	return cmd
}
