package reports

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"docent/api"
)

// A Week is one of the ISO calendar, from Monday to Sunday, by the days of a zone.
type Week struct {
	Year, Number int
	zone         *time.Location
}

// WeekOf is the week of a time.
func WeekOf(at time.Time, zone *time.Location) Week {
	year, number := at.In(zone).ISOWeek()
	return Week{year, number, zone}
}

var weekForm = regexp.MustCompile(`^(\d{4})-W(\d{2})$`)

// ParseWeek reads a week as String writes it.
func ParseWeek(text string, zone *time.Location) (Week, bool) {
	m := weekForm.FindStringSubmatch(text)
	if m == nil {
		return Week{}, false
	}
	year, _ := strconv.Atoi(m[1])
	number, _ := strconv.Atoi(m[2])
	w := Week{year, number, zone}
	return w, number > 0 && year > 1969 && w == WeekOf(w.Start(), zone)
}

func (w Week) String() string { return fmt.Sprintf("%04d-W%02d", w.Year, w.Number) }

// Start is the beginning of the week's Monday.
func (w Week) Start() time.Time {
	fourth := time.Date(w.Year, 1, 4, 0, 0, 0, 0, w.zone) // is always in the first week
	weekday := (int(fourth.Weekday()) + 6) % 7
	return fourth.AddDate(0, 0, (w.Number-1)*7-weekday)
}

// End is the beginning of the Monday after it.
func (w Week) End() time.Time { return w.Start().AddDate(0, 0, 7) }

// Last is its Sunday.
func (w Week) Last() time.Time { return w.Start().AddDate(0, 0, 6) }

// Add is the week so many weeks later.
func (w Week) Add(weeks int) Week { return WeekOf(w.Start().AddDate(0, 0, 7*weeks), w.zone) }

// dueHour is when on Monday the report of the week before is made.
const dueHour = 8

// due is when the week's report is made.
func (w Week) due() time.Time {
	monday := w.End()
	return time.Date(monday.Year(), monday.Month(), monday.Day(), dueHour, 0, 0, 0, w.zone)
}

// lastDue is the newest week whose report is due by now.
func lastDue(now time.Time, zone *time.Location) Week {
	w := WeekOf(now, zone).Add(-1)
	if w.due().After(now) {
		w = w.Add(-1)
	}
	return w
}

// Zone is the time zone that a project's weeks are of.
func Zone(p api.Project) *time.Location {
	if zone, err := time.LoadLocation(p.TimeZone); err == nil {
		return zone
	}
	return time.UTC // the server's list of zones has lost it
}
