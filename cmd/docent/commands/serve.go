package commands

import (
	"os"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
	"docent/cmd/docent/server"
	"docent/persistence/datadir"
)

func newServeCommand(prog cli.Program) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: datadir.Server, Short: "Run the server in the foreground", Args: cobra.NoArgs,
		Long: "Run the server in the foreground. SIGTERM or Ctrl-C stops it gracefully: open streams may finish, up to drain_timeout.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(file, os.LookupEnv, cmd.Flags())
			if err != nil {
				return err
			}
			return server.Run(cmd.Context(), prog.Configured(c), cmd.ErrOrStderr())
		},
	}
	settingFlags(cmd, &file)
	return cmd
}
