package commands

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
	"docent/cmd/docent/server"
)

func newMCPCommand(prog cli.Program) *cobra.Command {
	var p api.Project
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve a documentation folder to an editor over MCP, on standard input and output", Args: cobra.NoArgs,
		Long: "Serve one documentation set to one client over the Model Context Protocol, on standard input and output: the tools search,\n" +
			"read_page, and ask, and the pages as resources. No server is needed and nothing is stored: the documentation is read at start.\n" +
			"To connect to a server instead, use its address /mcp/DOMAIN.",
		Example: "  docent mcp --source ./docs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "source"); err != nil {
				return err
			}
			p.ID, p.Source = "docs", cli.AbsoluteSource(p.Source)
			return server.RunMCP(cmd.Context(), prog.Configured(config.Default()), p, cmd.ErrOrStderr())
		},
	}
	documentationFlags(cmd.Flags(), &p)
	return cmd
}

// documentationFlags are those of commands that read a documentation set by themselves.
func documentationFlags(flags *pflag.FlagSet, p *api.Project) {
	flags.StringVar(&p.Source, "source", "", "folder or git URL of the documentation")
	flags.StringVar(&p.Branch, "branch", "", "branch of a repository (default: its default branch)")
	flags.StringVar(&p.DocsDir, "docs-dir", "", "sub-folder that holds the documentation")
	flags.StringVar(&p.SiteURL, "site-url", "", "address of the published site, for links")
}
