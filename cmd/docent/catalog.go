package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"docent/persistence/catalog"
	"docent/persistence/journal"
)

const (
	opCatalogRebuild = "catalog.rebuild"
	opCatalogCheck   = "catalog.check"
	opCatalogAccept  = "catalog.accept"
)

type catalogRebuilt struct {
	Position uint64  `json:"position"` // of the journal that the listings reflect
	Seconds  float64 `json:"seconds"`
}

// rebuildCatalog rebuilds what the catalogue copies from the journal.
func (o *operations) rebuildCatalog(ctx context.Context, _ struct{}, _ Progress) (catalogRebuilt, error) {
	began := time.Now()
	var r catalogRebuilt
	rebuild := func(listings []*catalog.Projector) error {
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
	return r, o.withJournal(ctx, func(j journal.Store) error {
		a := &app{stores: o.stores, journal: j, log: slog.New(slog.DiscardHandler)}
		if err := a.startListings(); err != nil {
			return err
		}
		err := rebuild(a.listings)
		_ = a.close() // the listings alone
		return err
	})
}

type (
	catalogReport struct {
		Catalog  string           `json:"catalog"`
		Rows     int              `json:"rows"`
		Found    int              `json:"found"`
		Problems []catalogProblem `json:"problems,omitempty"` // the first so many
	}
	catalogProblem struct {
		Table   string `json:"table,omitempty"`
		Row     string `json:"row,omitempty"`
		Problem string `json:"problem"`
		Advice  string `json:"advice"`
	}
	rowParams struct {
		Table string `json:"table"`
		Row   string `json:"row"`
	}
)

// checkCatalog reads all rows that carry checksums.
func (o *operations) checkCatalog(ctx context.Context, _ struct{}, _ Progress) (catalogReport, error) {
	r := catalogReport{Catalog: o.stores.catalog.String()}
	var err error
	r.Rows, err = o.stores.catalog.Check(ctx, func(p catalog.Problem) bool {
		shown := catalogProblem{Table: p.Table, Row: p.Row, Problem: p.Err.Error(), Advice: "restore a backup"}
		if p.Row != "" {
			shown.Advice = "the row is refused and the others work: restore a backup; or, where what it holds is right, take it as it stands with `docent catalog accept " +
				p.Table + " " + p.Row + "`"
		}
		if r.Found++; len(r.Problems) < mostProblems {
			r.Problems = append(r.Problems, shown)
		}
		return true
	})
	return r, err
}

func (o *operations) acceptRow(ctx context.Context, p rowParams, _ Progress) (struct{}, error) {
	return struct{}{}, o.stores.catalog.Accept(ctx, p.Table, p.Row)
}

func newCatalogCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	cmd := &cobra.Command{Use: "catalog", Short: "Check, repair and rebuild the catalogue"}
	operatorFlags(cmd, o)
	cmd.AddCommand(&cobra.Command{
		Use: "check", Short: "Check everything that only the catalogue holds, and report damage; the server may run",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var r catalogReport
			if err := o.run(cmd, opCatalogCheck, nil, &r); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if o.json {
				if err := printJSON(out, r); err != nil {
					return err
				}
			} else {
				for _, p := range r.Problems {
					fmt.Fprintf(out, "%s\n  %s\n", p.Problem, p.Advice)
				}
				fmt.Fprintf(out, "%s: %d rows with checksums\n", r.Catalog, r.Rows)
			}
			if r.Found > 0 {
				return fmt.Errorf("wrong in the catalogue: %d", r.Found)
			}
			if !o.json {
				fmt.Fprintln(out, "nothing is wrong")
			}
			return nil
		},
	}, &cobra.Command{
		Use:   "accept TABLE ROW",
		Short: "Accept a damaged row as it is, once you know that its content is right; the server may run",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, opCatalogAccept, rowParams{args[0], args[1]}, nil)
		},
	}, &cobra.Command{
		Use: "rebuild", Short: "Rebuild the listings from the journal; the server may run", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(o, cmd, opCatalogRebuild, nil, func(w io.Writer, r catalogRebuilt) error {
				_, err := fmt.Fprintf(w, "the listings were made anew up to position %d of the journal, in %.1f s\n", r.Position,
					r.Seconds)
				return err
			})
		},
	})
	return cmd
}
