package retention

import (
	"testing"
	"time"
)

// A clock that was set while the server ran is believed when it has gone on like that for a day; one that comes back
// before is believed at once.
func TestATimeOfDayThatWasSetIsNotBelievedAtOnce(t *testing.T) {
	start := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	type look struct {
		ran, ahead time.Duration
		believed   bool
	}
	for _, run := range []struct {
		name  string
		steps []look
	}{
		{"it goes on", []look{{0, 0, true}, {6 * time.Hour, time.Second, true}, {400 * day, time.Minute, true}}},
		{"a day ahead, and back",
			[]look{{0, 0, true}, {time.Hour, day, false}, {7 * time.Hour, day, false}, {13 * time.Hour, 0, true},
				{14 * time.Hour, day, false}, {38 * time.Hour, day, false}, {40 * time.Hour, day, true}}},
		{"an hour back", []look{{0, 0, true}, {time.Hour, -time.Hour, false}, {27 * time.Hour, -time.Hour, true},
			{28 * time.Hour, -time.Hour, true}}},
		{"set again and again",
			[]look{{0, 0, true}, {20 * time.Hour, day, false}, {40 * time.Hour, 2 * day, false},
				{60 * time.Hour, 3 * day, false}, {85 * time.Hour, 3 * day, true}}},
		{"corrected bit by bit",
			[]look{{0, 0, true}, {day, 9 * time.Minute, true}, {2 * day, 18 * time.Minute, true},
				{3 * day, 27 * time.Minute, true}}},
	} {
		t.Run(run.name, func(t *testing.T) {
			today := timeOfDay{from: start}
			for _, s := range run.steps {
				if got := today.believe(start.Add(s.ran+s.ahead), s.ran); got != s.believed {
					t.Errorf("after %v, %v ahead: believed %v", s.ran, s.ahead, got)
				}
			}
		})
	}
}
