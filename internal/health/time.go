package health

import (
	"time"
)

// LocalTime is a time as tables show it, in the user's time zone.
func LocalTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }
