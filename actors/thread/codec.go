package thread

import (
	"docent/actors/persistent"
	"docent/persistence/journal"
)

// Names of events on disk. Names are added, never changed or used again.
var codec = persistent.NewCodec(map[string]Event{
	"thread.opened.1":   Opened{},
	"thread.asked.1":    Asked{},
	"thread.answered.1": Answered{},
	"thread.retried.1":  Retried{},
	"thread.failed.1":   TurnFailed{},
	"thread.rated.1":    Rated{},

	"thread.handed_over.1": HandedOver{},
})

// Encode makes an event as it is stored, for a journal that is made up.
func Encode(ev Event) (journal.Event, error) { return codec.Encode(ev) }

// Decode reads one event as it is stored, for people who look into the journal.
func Decode(stored journal.Event) (Event, error) { return codec.Decode(stored) }
