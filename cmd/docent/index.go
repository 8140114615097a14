package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/search"
)

const opIndex = "index"

func (o *operations) index(ctx context.Context, p projectParams, progress Progress) (search.Report, error) {
	project, err := o.stores.catalog.Project(ctx, p.ID)
	if err != nil {
		return search.Report{}, err
	}
	o.stores.source.Forget(p.ID)
	return o.stores.source.Refresh(ctx, project, progress)
}

func newIndexCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	var project string
	cmd := &cobra.Command{
		Use: "index PROJECT", Short: "Read a project's documentation again now and index what changed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(o, cmd, opIndex, projectParams{ID: api.ProjectID(project)}, func(w io.Writer, r search.Report) error {
				_, err := fmt.Fprintf(w, "%d pages, %d sections at %.12s: %d added, %d modified, %d removed\n",
					r.Pages, r.Sections, r.Commit, len(r.Added), len(r.Modified), len(r.Removed))
				return err
			})
		},
	}
	operatorFlags(cmd, o)
	named(cmd, &project, "project", "a PROJECT", false)
	return cmd
}
