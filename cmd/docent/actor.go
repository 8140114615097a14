package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"docent/api"
)

const opActorRetry = "actor.retry"

type retryParams struct {
	IDs []string `json:"ids"` // all that are in quarantine where empty
}

// A retried actor is one whose quarantine was lifted.
type retried struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"` // why it is in quarantine again
}

// retryActors recovers actors in quarantine anew. One that fails again does not keep the others from it.
func (o *operations) retryActors(ctx context.Context, p retryParams, _ Progress) ([]retried, error) {
	if o.app == nil {
		return nil, errNoServer
	}
	ids := p.IDs
	if len(ids) == 0 {
		for _, q := range o.app.system.Stats().Quarantined {
			ids = append(ids, q.ID)
		}
	}
	out := []retried{}
	for _, id := range ids {
		err := o.app.system.Retry(ctx, id)
		switch {
		case errors.Is(err, api.ErrNotFound) && len(p.IDs) == 0:
			continue // somebody else has just retried it
		case errors.Is(err, api.ErrNotFound), errors.Is(err, api.ErrInvalid):
			return out, err
		case err != nil:
			out = append(out, retried{ID: id, Error: err.Error()})
		default:
			out = append(out, retried{ID: id})
		}
	}
	return out, nil
}

func newActorCommand(prog program) *cobra.Command {
	o := &operator{prog: prog, here: noServerHere}
	cmd := &cobra.Command{Use: "actor", Short: "Retry jobs and threads in quarantine"}
	operatorFlags(cmd, o)
	var all bool
	retry := &cobra.Command{
		Use: "retry [ID...]", Short: "Recover jobs or threads in quarantine from the journal, and take up their work",
		Long: "Recover jobs or threads in quarantine from the journal, and take up their work. `docent status` lists them with\n" +
			"their reasons. One that fails again is in quarantine again, and the command ends with status 1.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usagef("name the ids of jobs or threads, or give --all")
			}
			var rows []retried
			if err := o.run(cmd, opActorRetry, retryParams{IDs: args}, &rows); err != nil {
				return err
			}
			err := printRows(cmd.OutOrStdout(), o.json, rows, "ID\tRESULT", func(r retried) string {
				if r.Error != "" {
					return r.ID + "\t" + r.Error
				}
				return r.ID + "\trecovered"
			})
			for _, r := range rows {
				if r.Error != "" && err == nil {
					err = errors.New("not all of them could be recovered")
				}
			}
			return err
		},
	}
	retry.Flags().BoolVar(&all, "all", false, "all that are in quarantine")
	cmd.AddCommand(retry)
	return cmd
}
