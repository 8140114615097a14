package main

import (
	"context"
	"os"
	"runtime"
	"time"
)

// At a low load a processor that is roused for a moment's work costs more than the work: whenever a goroutine becomes ready,
// the runtime wakes one more, which looks around for something to do and goes to sleep again. So Go code runs on as few
// processors as the load needs, and on all of them as soon as those few are busy.
const (
	fewestProcessors = 2                     // with one, whatever takes long keeps all others waiting
	loadTick         = 20 * time.Millisecond // how often the load is looked at
	loadBusy         = 0.75                  // of the processors
	loadBusyTicks    = 2                     // in a row, and there are all: a collection of garbage fills any number for one
	loadAim          = 0.6                   // of the processors, on average, where there are fewer
	loadCalm         = time.Second           // not busy, before there are fewer
	loadCalmMost     = 64 * time.Second      // that calm has to last, where it was trusted too soon
	loadTrusted      = 4 * time.Second       // that fewer have to be enough for: then calm was not trusted too soon
)

// processors decides how many there are, by what is used of them.
type processors struct {
	most, now int
	calm      time.Duration // how long it has to last
	busy      int           // ticks in a row
	since     time.Duration // they were, or something was decided
	used      time.Duration // of processor time, since then
	fewer     time.Duration // since there are fewer than most
}

func newProcessors(most int) *processors { return &processors{most: most, now: most, calm: loadCalm} }

// tick takes in what was used in a span of time, and says how many processors there are from now on.
func (p *processors) tick(span, used time.Duration) int {
	if p.now < p.most {
		p.fewer += span
	}
	if used.Seconds() < loadBusy*float64(p.now)*span.Seconds() {
		p.busy = 0
	} else if p.busy++; p.busy == loadBusyTicks || p.now == p.most {
		// Each change stops all goroutines for a moment: a load that goes up and down is not followed down each time.
		switch {
		case p.now == p.most:
		case p.fewer < loadTrusted:
			p.calm = min(2*p.calm, loadCalmMost)
		default:
			p.calm = loadCalm
		}
		p.now, p.busy, p.since, p.used, p.fewer = p.most, 0, 0, 0, 0
		return p.now
	}
	p.since += span
	p.used += used
	if p.since < p.calm {
		return p.now
	}
	need := fewestProcessors
	for need < p.now && p.used.Seconds() > loadAim*float64(need)*p.since.Seconds() {
		need++
	}
	p.now, p.since, p.used = need, 0, 0
	return p.now
}

// followLoad keeps the number of processors to the load until ctx ends. It leaves the number alone where somebody has set
// it, and where there are no more than the fewest.
func followLoad(ctx context.Context) {
	if _, err := timeUsed(); err != nil || os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) <= fewestProcessors {
		return
	}
	newProcessors(runtime.GOMAXPROCS(0)).follow(ctx, timeUsed, func(n int, all bool) int {
		if all {
			runtime.SetDefaultGOMAXPROCS() // another number by now, where the container's share has changed
		} else {
			runtime.GOMAXPROCS(n)
		}
		return runtime.GOMAXPROCS(0)
	})
}

// follow has set change the number of processors with what is used of them, and back to all of them at the end. Set says
// how many there are then.
func (p *processors) follow(ctx context.Context, used func() (time.Duration, error), set func(n int, all bool) int) {
	tick := time.NewTicker(loadTick)
	defer tick.Stop()
	at := time.Now()
	before, _ := used()
	for {
		select {
		case <-ctx.Done():
			if p.now < p.most {
				set(p.most, true)
			}
			return
		case <-tick.C:
		}
		total, err := used()
		if err != nil {
			continue
		}
		was, now := p.now, time.Now()
		if n := p.tick(now.Sub(at), total-before); n != was {
			is := set(n, n == p.most)
			if n == p.most {
				p.most = is
			}
			p.now = is
		}
		at, before = now, total
	}
}
