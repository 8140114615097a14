package job

import (
	"docent/actors/persistent"
	"docent/persistence/journal"
)

// Names of events on disk. Names are added, never changed or used again.
var codec = persistent.NewCodec(map[string]Event{
	"job.created.1":    Created{},
	"job.prompted.1":   Prompted{},
	"job.progressed.1": Progressed{},
	"job.stepped.1":    Stepped{},
	"job.edited.1":     Edited{},
	"job.published.1":  Published{},
	"job.retried.1":    Retried{},
	"job.stale.1":      Stale{},
	"job.finished.1":   Finished{},
	"job.failed.1":     Failed{},
	"job.archived.1":   Archived{},
	"job.pull.1":       PullChanged{},
})

// Encode makes an event as it is stored, for a journal that is made up.
func Encode(ev Event) (journal.Event, error) { return codec.Encode(ev) }

// Decode reads one event as it is stored, for people who look into the journal.
func Decode(stored journal.Event) (Event, error) { return codec.Decode(stored) }
