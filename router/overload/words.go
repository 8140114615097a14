package overload

import (
	"fmt"
	"time"
)

// InWords is a time to wait, rounded up to the unit that a person would count it in.
func InWords(d time.Duration) string {
	count := func(unit time.Duration, name string) string {
		n := max(1, int((d+unit-1)/unit))
		if n > 1 {
			name += "s"
		}
		return fmt.Sprintf("%d %s", n, name)
	}
	switch {
	case d <= 90*time.Second:
		return count(time.Second, "second")
	case d <= 90*time.Minute:
		return count(time.Minute, "minute")
	case d <= 36*time.Hour:
		return count(time.Hour, "hour")
	}
	return count(24*time.Hour, "day")
}
