package operator

import (
	"context"
	"time"

	"docent/cmd/docent/stores"
	"docent/persistence/catalog"
	"docent/persistence/journal"
)

// CatalogRebuilt says how far listings were rebuilt.
type CatalogRebuilt struct {
	Position uint64  `json:"position"` // of the journal that the listings reflect
	Seconds  float64 `json:"seconds"`
}

// rebuildCatalog rebuilds what the catalog copies from the journal.
func (o *Service) rebuildCatalog(ctx context.Context, _ struct{}) (CatalogRebuilt, error) {
	began := time.Now()
	var r CatalogRebuilt
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
	if o.server != nil {
		return r, rebuild(o.server.Listings)
	}
	return r, o.withJournal(ctx, func(j journal.Store) error {
		return stores.WithListings(o.stores.Catalog, j, rebuild)
	})
}

type (
	// CatalogReport is what a check of the catalog found.
	CatalogReport struct {
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
	// RowParams name a row of the catalog.
	RowParams struct {
		Table string `json:"table"`
		Row   string `json:"row"`
	}
)

// checkCatalog reads all rows that carry checksums.
func (o *Service) checkCatalog(ctx context.Context, _ struct{}) (CatalogReport, error) {
	r := CatalogReport{Catalog: o.stores.Catalog.String()}
	var err error
	r.Rows, err = o.stores.Catalog.Check(ctx, func(p catalog.Problem) bool {
		shown := catalogProblem{Table: p.Table, Row: p.Row, Problem: p.Err.Error(), Advice: "restore a backup"}
		if p.Row != "" {
			shown.Advice = "this row is refused and the others work: restore a backup; or, if its content is right, accept it with `docent catalog accept " +
				p.Table + " " + p.Row + "`"
		}
		if r.Found++; len(r.Problems) < mostProblems {
			r.Problems = append(r.Problems, shown)
		}
		return true
	})
	return r, err
}

func (o *Service) acceptRow(ctx context.Context, p RowParams) error {
	return o.stores.Catalog.Accept(ctx, p.Table, p.Row)
}
