package commands

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
)

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
		Use: "config", Short: "Show every setting: its value, its source, and what it does",
		Args: cobra.NoArgs,
		Long: "Show every setting as a server has it that is started with the same flags, file and environment: the value, and\n" +
			"whether it is the default or comes from the file, the environment or a flag. Secrets are not shown.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(file, os.LookupEnv, cmd.Flags())
			if err != nil {
				return err
			}
			for _, line := range slices.Concat(c.Removed(), c.UnknownVariables(os.Environ(), nil)) {
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
	return cmd
}
