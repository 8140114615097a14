package journal

import "testing"

// Flush returns once the queued snapshots are written and what they cover is removed, as far as followers let it.
func Flush(t testing.TB, j *Journal) { flush(t, j) }

// LogLength counts the records of the log.
func LogLength(t testing.TB, j *Journal) int { return int(logLength(t, j)) }
