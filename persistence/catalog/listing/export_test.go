package listing

import (
	"context"

	"docent/persistence/catalog/database"
)

const (
	ListingWait = listingWait
	PacedBatch  = pacedBatch
	ProjectGap  = projectGap
)

var NewJobRow = newJobRow

func (p *Projector) Step(ctx context.Context) error { return p.step(ctx) }
func (p *Projector) Heard(what database.Message)    { p.heard(what) }
func (p *Projector) Usable() error                  { return p.usable() }
