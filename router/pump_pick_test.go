package router

import "testing"

func TestAPumpIsFilledBeforeTheNextIsGivenStreams(t *testing.T) {
	ps := &pumps{all: []*pump{{}, {}, {}}}
	give := func(n int) {
		for range n {
			ps.pick().streams.Add(1)
		}
	}
	want := func(when string, counts ...int64) {
		t.Helper()
		for i, p := range ps.all {
			if n := p.streams.Load(); n != counts[i] {
				t.Errorf("%s pump %d has %d streams, not %d", when, i, n, counts[i])
			}
		}
	}
	give(roundful + 1)
	want("beyond one that is full", roundful, 1, 0)
	ps.all[0].streams.Add(-3)
	give(5)
	want("after some have ended", roundful, 3, 0)
	give(2*roundful - 3 + 300)
	want("where all are full", roundful+100, roundful+100, roundful+100)
}
