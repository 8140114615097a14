package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
	"docent/persistence/datadir"
)

// RunMCP serves a documentation set to one client.
func RunMCP(ctx context.Context, c config.Config, p api.Project, stderr io.Writer) (err error) {
	a, project, end, err := Temporary(ctx, c, p, stderr)
	if err != nil {
		return err
	}
	defer func() {
		if e := end(); err == nil {
			err = e
		}
	}()
	key, err := a.Operator.CreateKey(ctx, operator.KeyParams{Project: p.ID, Kind: api.AssistantKey, Name: "mcp"})
	if err != nil {
		return err
	}
	return a.tools.Run(ctx, project, key.Key)
}

// Temporary reads a documentation set into a data directory that goes away with end. What there is to say goes to
// standard error: standard output is the command's.
func Temporary(ctx context.Context, c config.Config, p api.Project, stderr io.Writer) (a *Server, project api.Project,
	end func() error, err error) {
	folder, err := os.MkdirTemp("", "docent-")
	if err != nil {
		return nil, p, nil, fmt.Errorf("make a folder for the index: %w", err)
	}
	c.Data, c.Limits = folder, api.Limits{KeyMonth: -1, OrgHour: -1, IPDay: -1}
	a, project, end, err = temporary(ctx, c, folder, p, slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err == nil {
		pages, _ := a.Stores.Library.Size(project.ID)
		fmt.Fprintf(stderr, "%s of %s\n", brief.Count(pages, "page"), p.Source)
	}
	return a, project, end, err
}

// temporary is a server of one documentation set that serves nobody by itself. The folder goes away with end, or with a
// failure.
func temporary(ctx context.Context, c config.Config, folder string, p api.Project, log *slog.Logger) (a *Server,
	project api.Project, end func() error, err error) {
	remove := func() error { return os.RemoveAll(folder) }
	defer func() {
		if err != nil {
			remove()
		}
	}()
	dir, err := datadir.Open(c.Data, "command", time.Second)
	if err != nil {
		return nil, p, nil, err
	}
	a, err = New(ctx, Deps{Dir: dir, Config: c, Log: log})
	if err != nil {
		return nil, p, nil, errors.Join(err, dir.Close())
	}
	end = func() error {
		a.CancelWork()
		return errors.Join(a.Close(), dir.Close(), remove())
	}
	p.Domain = "docs"
	added, err := a.Operator.AddProject(ctx, p, func(string, int, int) {})
	if err != nil {
		return nil, p, nil, errors.Join(err, end())
	}
	return a, added.Project, end, nil
}
