package main

import (
	"context"
	"fmt"

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

func newIndexCommand() *cobra.Command {
	o := new(operator)
	var project string
	cmd := &cobra.Command{
		Use: "index PROJECT", Short: "Read a project's documentation again now and index what changed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var report search.Report
			if err := o.run(cmd, opIndex, projectParams{ID: api.ProjectID(project)}, &report); err != nil {
				return err
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), report)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d pages, %d sections at %.12s: %d added, %d modified, %d removed\n",
				report.Pages, report.Sections, report.Commit, len(report.Added), len(report.Modified), len(report.Removed))
			return nil
		},
	}
	operatorFlags(cmd, o)
	named(cmd, &project, "project", "a PROJECT", false)
	return cmd
}
