package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
			p.ID, p.Source = "docs", absoluteSource(p.Source)
			return serveMCP(cmd.Context(), prog, p, cmd.ErrOrStderr())
		},
	}
	documentationFlags(cmd.Flags(), &p)
	return cmd
}

// documentationFlags are those of commands that read a documentation set by themselves.
func documentationFlags(flags *pflag.FlagSet, p *api.Project) {
	flags.StringVar(&p.Source, "source", "", "folder or git URL of the documentation")
	flags.StringVar(&p.Branch, "branch", "", "branch of a repository; its default where not given")
	flags.StringVar(&p.DocsDir, "docs-dir", "", "sub-folder that holds the documentation")
	flags.StringVar(&p.SiteURL, "site-url", "", "where readers find the pages, for links")
}

// serveMCP serves a documentation set to one client.
func serveMCP(ctx context.Context, prog program, p api.Project, stderr io.Writer) (err error) {
	a, project, end, err := passing(ctx, prog, p, stderr)
	if err != nil {
		return err
	}
	defer func() {
		if e := end(); err == nil {
			err = e
		}
	}()
	key, err := a.stores.operations().createKey(ctx, keyParams{Project: p.ID, Kind: api.AssistantKey, Name: "mcp"}, nil)
	if err != nil {
		return err
	}
	return a.tools.Run(ctx, project, key.Key)
}

// passing reads a documentation set into a data directory that goes away with end. What there is to say goes to
// standard error: standard output is the command's.
func passing(ctx context.Context, prog program, p api.Project, stderr io.Writer) (a *app, project api.Project,
	end func() error, err error) {
	folder, err := os.MkdirTemp("", "docent-")
	if err != nil {
		return nil, p, nil, fmt.Errorf("make a folder for the index: %w", err)
	}
	remove := func() error { return os.RemoveAll(folder) }
	defer func() {
		if err != nil {
			remove()
		}
	}()
	c := prog.configured(DefaultConfig())
	c.Data, c.Limits = folder, api.Limits{KeyMonth: -1, OrgHour: -1, IPDay: -1}
	dir, err := datadir.Open(folder, "command", time.Second)
	if err != nil {
		return nil, p, nil, err
	}
	a, err = newApp(ctx, dir, c, slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return nil, p, nil, errors.Join(err, dir.Close())
	}
	end = func() error {
		a.cancelWork()
		return errors.Join(a.close(), dir.Close(), remove())
	}
	p.Domain = "docs"
	added, err := a.stores.operations().addProject(ctx, p, func(string, int, int) {})
	if err != nil {
		return nil, p, nil, errors.Join(err, end())
	}
	fmt.Fprintf(stderr, "%d pages of %s\n", added.Pages, p.Source)
	return a, added.Project, end, nil
}
