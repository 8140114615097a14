package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"docent/persistence"
)

type catalogRebuilt struct {
	Position uint64  `json:"position"` // of the journal that the listings reflect
	Seconds  float64 `json:"seconds"`
}

// rebuildCatalog drops what the catalogue copies from the journal and makes it anew.
func (o *operations) rebuildCatalog(ctx context.Context) (catalogRebuilt, error) {
	began := time.Now()
	var r catalogRebuilt
	rebuild := func(listings []*persistence.Projector) error {
		for _, p := range listings {
			if err := p.Rebuild(ctx); err != nil {
				return err
			}
			r.Position = p.Position()
		}
		r.Seconds = time.Since(began).Seconds()
		return nil
	}
	if o.app != nil {
		return r, rebuild(o.app.listings)
	}
	return r, o.withJournal(ctx, func(j *persistence.Journal) error {
		a := &app{stores: o.stores, journal: j, log: slog.New(slog.DiscardHandler)}
		if err := a.startListings(); err != nil {
			return err
		}
		err := rebuild(a.listings)
		_ = a.close() // the listings alone
		return err
	})
}

func newCatalogCommand() *cobra.Command {
	o := new(operator)
	cmd := &cobra.Command{Use: "catalog", Short: "Look after the catalogue"}
	operatorFlags(cmd, o)
	cmd.AddCommand(&cobra.Command{
		Use: "rebuild", Short: "Drop the listings and make them anew from the journal; the server may run", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var r catalogRebuilt
			if err := o.run(cmd, opCatalogRebuild, nil, &r); err != nil {
				return err
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), r)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "the listings were made anew up to position %d of the journal, in %.1f s\n", r.Position, r.Seconds)
			return err
		},
	})
	return cmd
}
