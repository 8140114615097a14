package retention

import "time"

// timeOfDay watches whether the clock that tells it is set: it should go on as the one that cannot be set does.
type timeOfDay struct {
	from     time.Time     // what it said at the start
	believed time.Duration // by which it is ahead of what ran since
	seen     time.Duration // the same, at the last look
	since    time.Duration // when it was last set, by the clock that cannot be
}

const (
	clockSet      = 10 * time.Minute // a difference that no correction of a running clock makes between two looks
	clockBelieved = 25 * time.Hour   // after which one that was set is taken to be right
)

// believe says whether the time of day, a while after the start, is to be relied on.
func (d *timeOfDay) believe(now time.Time, ran time.Duration) bool {
	ahead := now.Sub(d.from) - ran
	if (ahead - d.seen).Abs() > clockSet {
		d.since = ran
	}
	d.seen = ahead
	if d.by().Abs() > clockSet && ran-d.since < clockBelieved {
		return false
	}
	d.believed = ahead
	return true
}

// by is by how much the clock was set since it was last believed.
func (d *timeOfDay) by() time.Duration { return d.seen - d.believed }
