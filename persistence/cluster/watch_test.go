package cluster

import (
	"maps"
	"testing"
	"time"
)

// An observer sees one other node, at times that the test says.
type observer struct {
	*watch
	at time.Time
}

func newObserver() *observer {
	return &observer{watch: newWatch(time.Second), at: time.Unix(1, 0)}
}

func (o *observer) see(after time.Duration, counter int64, locked bool) bool {
	o.at = o.at.Add(after)
	dead := o.look(o.at, "self", []member{{ID: "self", Counter: 1}, {ID: "other", Counter: counter, Locked: locked}})
	if len(dead) > 1 || len(dead) == 1 && dead["other"] == "" {
		panic(maps.Keys(dead))
	}
	return len(dead) == 1
}

// rounds is how many looks, a second apart, it takes to give the other up.
func (o *observer) rounds(counter int64, locked bool) int {
	for n := 1; n < 100; n++ {
		if o.see(time.Second, counter, locked) {
			return n
		}
	}
	return -1
}

func TestANodeIsGivenUpForWhatWasSeenOfIt(t *testing.T) {
	heard := func() *observer {
		o := newObserver()
		o.see(0, 1, true)
		o.see(time.Second, 2, true)
		return o
	}
	if n := heard().rounds(2, false); n != roundsFree {
		t.Errorf("a node whose lock is free is given up after %d looks", n)
	}
	if n := heard().rounds(2, true); n != roundsSilent {
		t.Errorf("a node that holds its lock and does not beat is given up after %d looks", n)
	}
	never := newObserver()
	never.see(0, 1, false)
	if n := never.rounds(1, false); n != roundsReturning {
		t.Errorf("a node of which nothing was heard over this connection is given up after %d looks", n)
	}
	o := heard()
	for i := range int64(50) {
		if o.see(time.Second, 3+i, false) {
			t.Fatal("a node that beats was given up")
		}
	}
}

// A node stops to act 2.5 beats after its last beat.
func TestANodeIsNotGivenUpBeforeItStopsToActByItself(t *testing.T) {
	o := newObserver()
	o.see(0, 1, true)
	o.see(time.Second, 1, true) // counts
	o.see(900*time.Millisecond, 2, true)
	since := time.Duration(0)
	for !o.see(100*time.Millisecond, 2, false) {
		since += 100 * time.Millisecond
	}
	if least := roundsFree * time.Second; since+100*time.Millisecond < least {
		t.Errorf("it was given up %s after its last beat", since+100*time.Millisecond)
	}
}

func TestANodeThatWasStoppedItselfGivesNobodyUp(t *testing.T) {
	o := newObserver()
	o.see(0, 1, true)
	o.see(time.Second, 2, true)
	o.see(time.Second, 2, true)
	if o.see(time.Hour, 2, true) {
		t.Error("an hour between two looks counts as more than one")
	}
	for range 1000 { // as many as there were notifications to read
		if o.see(time.Millisecond/2, 2, false) {
			t.Fatal("looks without time between them were counted")
		}
	}
	if o.see(time.Second, 3, true) {
		t.Error("it was given up although it beats")
	}
}
