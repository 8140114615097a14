package job

import "docent/persistence/journal"

// Decode reads one event as it is stored, for people who look into the journal.
func Decode(stored journal.Event) (Event, error) { return decode(stored) }
