package main

import (
	"context"
	"errors"
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
	for _, part := range project.Parts() {
		o.stores.source.Forget(part.ID)
	}
	report, err := o.stores.source.Refresh(ctx, project, progress)
	for label, failed := range o.stores.source.RefreshAll(ctx, project, progress) {
		err = errors.Join(err, fmt.Errorf("the source %s: %w", label, failed))
	}
	return report, err
}

func newIndexCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	var project string
	cmd := &cobra.Command{
		Use: "index PROJECT", Short: "Read all of a project's sources again now and index what changed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(o, cmd, opIndex, projectParams{ID: api.ProjectID(project)}, printIndexed)
		},
	}
	operatorFlags(cmd, o)
	named(cmd, &project, "project", "a PROJECT", false)
	return cmd
}

func printIndexed(w io.Writer, r search.Report) error {
	_, err := fmt.Fprintf(w, "%d pages, %d sections at %.12s: %d added, %d modified, %d removed\n",
		r.Pages, r.Sections, r.Commit, len(r.Added), len(r.Modified), len(r.Removed))
	return err
}
