package automation

import (
	"strings"
	"time"
	_ "time/tzdata" // time zones, where the system has none

	"github.com/adhocore/gronx"

	"docent/api"
)

// What the clock calls for.
type call int

const (
	forNothing  call = iota
	forNextTime      // to be stored: the automation is new, or the clock was set back
	forRun           // and the next time with it
)

// due says what the clock calls for, and when the automation's time comes next after now.
func due(au api.Automation, now time.Time) (next time.Time, calls call, err error) {
	if au.Cron == "" {
		return time.Time{}, forNothing, nil
	}
	if next, err = NextTime(au, now); err != nil {
		return next, forNothing, err
	}
	switch {
	case au.Next == nil || au.Next.After(next):
		// After the clock was set back, the times in between were due once already, or will be in their time.
		return next, forNextTime, nil
	case !au.Next.After(now):
		return next, forRun, nil
	}
	return next, forNothing, nil
}

// NextTime is when an automation's cron line is due next, after a time.
func NextTime(au api.Automation, after time.Time) (time.Time, error) {
	zone, err := time.LoadLocation(au.TimeZone)
	if err != nil {
		return time.Time{}, invalid("timeZone", "is not a time zone, such as Europe/Berlin")
	}
	if !strings.HasPrefix(au.Cron, "@") && len(strings.Fields(au.Cron)) != 5 || !gronx.IsValid(au.Cron) {
		return time.Time{}, invalid("cron",
			`must have five fields (minute, hour, day of the month, month, day of the week), such as "0 6 * * 1", or be one such as @daily`)
	}
	next, err := gronx.NextTickAfter(au.Cron, after.In(zone), false)
	if err != nil || !next.After(after) {
		return time.Time{}, invalid("cron", "names no time that will come")
	}
	return next.UTC(), nil
}

func invalid(field, message string) error {
	return &api.InvalidError{Problems: []api.Problem{{Field: field, Message: message}}}
}
