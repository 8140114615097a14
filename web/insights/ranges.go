package insights

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"docent/web/console"
)

// maxDays is how long a range of days may be.
const maxDays = 800

// A dayRange is the days that figures are of, in UTC.
type dayRange struct {
	Days    int       // back from today; 0 if the range has dates of its own
	From    string    // its first day
	To      string    // its last day
	Start   time.Time // of the first day
	End     time.Time // of the last one
	Query   string    // that means the same days
	Choices []int     // of days back from today
}

// days reads a range from the address: so many days back from today, or from a date to a date.
func days(v *console.Visit, otherwise int) (dayRange, error) {
	today := v.Now.UTC().Truncate(24 * time.Hour)
	r := dayRange{Choices: []int{7, 30, 90}}
	from, to := v.Query("from"), v.Query("to")
	if from == "" && to == "" {
		r.Days = otherwise
		if text := v.Query("days"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > maxDays {
				return r, console.Invalid("days", fmt.Sprintf("must be a number from 1 to %d", maxDays))
			}
			r.Days = n
		}
		r.Start, r.End = today.AddDate(0, 0, 1-r.Days), today.AddDate(0, 0, 1)
		r.Query = "days=" + strconv.Itoa(r.Days)
	} else {
		var err error
		if r.Start, err = time.Parse(time.DateOnly, from); err != nil {
			return r, console.Invalid("from", "must be a date such as 2026-11-01")
		}
		r.End = today
		if to != "" {
			if r.End, err = time.Parse(time.DateOnly, to); err != nil {
				return r, console.Invalid("to", "must be a date such as 2026-11-30")
			}
		}
		r.End = r.End.AddDate(0, 0, 1)
		switch {
		case !r.Start.Before(r.End):
			return r, console.Invalid("to", "must not lie before the first day")
		case r.End.Sub(r.Start) > maxDays*24*time.Hour:
			return r, console.Invalid("from", fmt.Sprintf("may lie %d days before the last day at most", maxDays))
		}
	}
	r.From, r.To = r.Start.Format(time.DateOnly), r.End.AddDate(0, 0, -1).Format(time.DateOnly)
	if r.Query == "" {
		r.Query = url.Values{"from": {r.From}, "to": {r.To}}.Encode()
	}
	return r, nil
}
