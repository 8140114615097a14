package outage

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnOutageIsToldOfWhenItBeginsAndWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Outages
		if n, _ := o.Worked("a"); n != 0 {
			t.Errorf("what never failed had %d failures", n)
		}
		for n := range 5 {
			if first := o.Failed("a"); first != (n == 0) {
				t.Errorf("failure %d is the first: %t", n, first)
			}
			time.Sleep(time.Second)
		}
		if !o.Failed("b") {
			t.Error("another key is the same outage")
		}
		if n, lasted := o.Worked("a"); n != 5 || lasted != 5*time.Second {
			t.Errorf("the outage had %d failures in %v", n, lasted)
		}
		if n, _ := o.Worked("a"); n != 0 {
			t.Error("the end is told of twice")
		}
		if !o.Failed("a") {
			t.Error("the next outage is not told of")
		}
	})
}

func TestOutagesAreBounded(t *testing.T) {
	var o Outages
	for n := range 10 * maxTracked {
		o.Failed(strconv.Itoa(n))
	}
	if len(o.failed) > maxTracked {
		t.Errorf("%d are remembered", len(o.failed))
	}
}
