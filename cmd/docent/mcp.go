package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/datadir"
)

func newMCPCommand(prog program) *cobra.Command {
	var p api.Project
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve a documentation folder to an editor over MCP, on standard input and output", Args: cobra.NoArgs,
		Long: "Serve one documentation set to one client over the Model Context Protocol, on standard input and output: with search, read_page,\n" +
			"ask and the pages as resources. It needs no server and keeps nothing: the documentation is read at the start.\n" +
			"Clients of a server use its address /mcp/DOMAIN.",
		Example: "  docent mcp --source ./docs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "source"); err != nil {
				return err
			}
			p.ID, p.Domain, p.Source = "docs", "docs", absoluteSource(p.Source)
			return serveMCP(cmd.Context(), prog, p, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&p.Source, "source", "", "folder or git URL of the documentation")
	flags.StringVar(&p.Branch, "branch", "", "branch of a repository; its default where not given")
	flags.StringVar(&p.DocsDir, "docs-dir", "", "sub-folder that holds the documentation")
	flags.StringVar(&p.SiteURL, "site-url", "", "where readers find the pages, for links")
	return cmd
}

// serveMCP reads the documentation into a data directory that goes away again, and serves it to one client.
func serveMCP(ctx context.Context, prog program, p api.Project, stderr io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "docent-mcp-")
	if err != nil {
		return fmt.Errorf("make a folder for the index: %w", err)
	}
	defer os.RemoveAll(folder)
	c := prog.configured(DefaultConfig())
	c.Data, c.Limits = folder, api.Limits{KeyMonth: -1, OrgHour: -1, IPDay: -1}
	dir, err := datadir.Open(folder, "mcp", time.Second)
	if err != nil {
		return err
	}
	defer dir.Close()
	// What is said goes to standard error: standard output is the client's.
	a, err := newApp(ctx, dir, c, slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer func() {
		a.cancelWork()
		if e := a.close(); err == nil {
			err = e
		}
	}()
	ops := a.stores.operations()
	ops.app = a
	added, err := ops.addProject(ctx, p, func(string, int, int) {})
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%d pages of %s are served over MCP\n", added.Pages, p.Source)
	key, err := ops.createKey(ctx, keyParams{Project: p.ID, Kind: api.AssistantKey, Name: "mcp"}, nil)
	if err != nil {
		return err
	}
	return a.tools.Run(ctx, added.Project, key.Key)
}
