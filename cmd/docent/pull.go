package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"docent/api"
)

const (
	opPullList  = "pull.list"
	opPullDiff  = "pull.diff"
	opPullMerge = "pull.merge"
	opPullClose = "pull.close"
)

type pullParams struct {
	ID      string        `json:"id,omitempty"`
	Project api.ProjectID `json:"project,omitempty"`
	State   api.PullState `json:"state,omitempty"`
}

func (o *operations) listPulls(ctx context.Context, p pullParams, _ Progress) ([]api.PullRequest, error) {
	return o.stores.catalog.Pulls(ctx, p.Project, p.State)
}

func (o *operations) diffPull(ctx context.Context, p pullParams, _ Progress) (string, error) {
	diff, err := o.stores.hub.Diff(ctx, p.ID)
	return diff.String(), noPull(p.ID, err)
}

func (o *operations) mergePull(ctx context.Context, p pullParams, _ Progress) (api.PullRequest, error) {
	merged, err := o.stores.hub.Merge(ctx, p.ID)
	return merged, noPull(p.ID, err)
}

func (o *operations) closePull(ctx context.Context, p pullParams, _ Progress) (api.PullRequest, error) {
	closed, err := o.stores.hub.Close(ctx, p.ID)
	return closed, noPull(p.ID, err)
}

// noPull says which pull request there is not, and where their ids are.
func noPull(id string, err error) error {
	if errors.Is(err, api.ErrNotFound) {
		return fmt.Errorf("pull request %q: %w; `docent pull list` lists them", id, api.ErrNotFound)
	}
	return err
}

func newPullCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	cmd := &cobra.Command{Use: "pull", Short: "Pull requests of the built-in code host"}
	operatorFlags(cmd, o)
	var project, state string
	list := &cobra.Command{
		Use: "list", Short: "List pull requests, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "project"); err != nil {
				return err
			}
			params := pullParams{Project: api.ProjectID(project), State: api.PullState(state)}
			return showRows(o, cmd, opPullList, params, "NUMBER\tSTATE\tID\tTITLE", func(p api.PullRequest) string {
				return fmt.Sprintf("#%d\t%s\t%s\t%s", p.Number, p.State, p.ID, p.Title)
			})
		},
	}
	list.Flags().StringVar(&project, "project", "", "project")
	list.Flags().StringVar(&state, "state", "", "open, merged or closed; all where empty")
	act := func(verb, op, short string) *cobra.Command {
		return &cobra.Command{
			Use: verb + " ID", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return show(o, cmd, op, pullParams{ID: pullID(args[0])}, func(w io.Writer, p api.PullRequest) error {
					_, err := fmt.Fprintf(w, "#%d %s  %s\n", p.Number, p.State, p.Title)
					return err
				})
			},
		}
	}
	diff := &cobra.Command{
		Use: "diff ID", Short: "Print what a pull request changes", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var text string
			if err := o.run(cmd, opPullDiff, pullParams{ID: pullID(args[0])}, &text); err != nil {
				return err
			}
			_, err := io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.AddCommand(list, diff,
		act("merge", opPullMerge, "Merge a pull request into its base branch; a folder that is the source is updated"),
		act("close", opPullClose, "Close a pull request without merging it"))
	return cmd
}

// pullID takes an id, or the link of a pull request's page.
func pullID(text string) string {
	if i := strings.LastIndex(text, "/pulls/"); i >= 0 {
		return text[i+len("/pulls/"):]
	}
	return text
}
