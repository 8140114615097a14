package thread

import "docent/persistence"

// Decode reads one event as it is stored, for people who look into the journal.
func Decode(stored persistence.Event) (Event, error) { return decode(stored) }
