package api

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestIDsKeepTheirOrderWhenTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g IDs
		var made []string
		wrong := time.Duration(0)
		make := func() {
			time.Sleep(2 * time.Second)
			made = append(made, g.New(JobPrefix, time.Now().Add(wrong)))
		}
		for _, wrong = range []time.Duration{0, -time.Hour, 24 * time.Hour, 0, -time.Minute} {
			for range 5 {
				make()
			}
		}
		if !slices.IsSorted(made) {
			t.Errorf("out of order: %q", made)
		}
		var later IDs // of the next process
		later.After(JobPrefix, made[len(made)-1])
		if next := later.New(JobPrefix, time.Now()); next <= made[len(made)-1] {
			t.Errorf("%s is made after %s", next, made[len(made)-1])
		}
		time.Sleep(3 * 24 * time.Hour) // the clock has caught up: identifiers say the time again
		if now, want := g.New(JobPrefix, time.Now()), NewID(JobPrefix, time.Now()); now[:12] != want[:12] {
			t.Errorf("%s does not say the time, as %s does", now, want)
		}
	})
}

func TestIDsOfCallersAMomentApartSayTheirOwnTime(t *testing.T) {
	var g IDs
	now := time.Now()
	g.New(JobPrefix, now)
	earlier := now.Add(-3 * time.Second)
	if got, want := g.New(JobPrefix, earlier), NewID(JobPrefix, earlier); got[:12] != want[:12] {
		t.Errorf("%s does not say its caller's time, as %s does", got, want)
	}
	g.After(JobPrefix, "job_no-such-form")
	g.After(JobPrefix, "")
}

func TestOfTwoIDsTheOneOfAnEarlierMillisecondIsEarlier(t *testing.T) {
	now := time.Now()
	for range 100 { // the rest of an identifier is random
		a, same, b := NewID(TurnPrefix, now), NewID(TurnPrefix, now), NewID(TurnPrefix, now.Add(time.Millisecond))
		if !Earlier(TurnPrefix, a, b) || Earlier(TurnPrefix, b, a) || Earlier(TurnPrefix, a, same) || Earlier(TurnPrefix, same, a) {
			t.Fatalf("%s, %s, and a millisecond later %s", a, same, b)
		}
	}
}
