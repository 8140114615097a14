package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Script says what a scripted model writes and when. The n-th piece (from zero) is due First + n/Rate after the
// question, whatever the pieces before it cost: a stream does not drift, and one that fell behind catches up.
type Script struct {
	First time.Duration // until the first piece
	Rate  float64       // pieces a second; as fast as they are taken where zero
	Parts int           // pieces; the words of Text where zero
	Text  string        // its words are the pieces, again from the first when there are not enough; "part-0 part-1 …" where empty

	// Replies are what it says in a conversation with tools, each First after it was asked: the n-th where the model has
	// spoken n times before, the last one again after that. It holds no conversations where there are none.
	Replies []Reply
}

const maxScript = 1_000_000

type scripted struct {
	name   string
	script Script
	pieces []string // what piece n is: pieces[n%len(pieces)]
	wheel  *wheel
	size   int // of its window
}

func newScripted(n Named, w *wheel) (*scripted, error) {
	s := &scripted{name: n.Name, script: n.Script, wheel: w, size: or(n.Window, defaultWindow)}
	switch {
	case n.Script.First < 0 || n.Script.Rate < 0 || n.Script.Parts < 0:
		return nil, errors.New("a script has no negative delay, rate or number of parts")
	case n.Script.Parts > maxScript:
		return nil, fmt.Errorf("a script has at most %d parts", maxScript)
	}
	if n.Script.Text == "" {
		s.pieces = make([]string, max(s.script.Parts, 1))
		for i := range s.pieces {
			s.pieces[i] = fmt.Sprintf("part-%d ", i)
		}
	} else {
		for word := range strings.FieldsSeq(n.Script.Text) {
			s.pieces = append(s.pieces, word+" ")
		}
		if len(s.pieces) == 0 {
			return nil, errors.New("the text of a script has words")
		}
	}
	if s.script.Parts == 0 {
		s.script.Parts = len(s.pieces)
	}
	return s, nil
}

func (s *scripted) answer(ctx context.Context, req Request, emit func(Delta) error) (Result, error) {
	result := Result{Model: s.name, Reason: "stop", Answered: true}
	begin := time.Now()
	alarm := s.wheel.alarm()
	var cite []int
	if len(req.Passages) > 0 {
		cite = []int{0}
	}
	for n := range s.script.Parts {
		due := begin.Add(s.script.First)
		if s.script.Rate > 0 {
			due = due.Add(time.Duration(float64(n) / s.script.Rate * float64(time.Second)))
		}
		if err := alarm.wait(ctx, due); err != nil {
			return result, err
		}
		if err := emit(Delta{Text: s.pieces[n%len(s.pieces)], Cite: cite}); err != nil {
			return result, err
		}
		cite = nil
		result.CompletionTokens++
	}
	return result, nil
}

func (s *scripted) window() int {
	if len(s.script.Replies) == 0 {
		return 0
	}
	return s.size
}

func (s *scripted) chat(ctx context.Context, c Chat) (Reply, error) {
	if err := s.wheel.alarm().wait(ctx, time.Now().Add(s.script.First)); err != nil {
		return Reply{Model: s.name}, err
	}
	n := 0
	for _, t := range c.Turns {
		if t.Role == "assistant" {
			n++
		}
	}
	reply := s.script.Replies[min(n, len(s.script.Replies)-1)]
	reply.Model, reply.Calls = s.name, slices.Clone(reply.Calls)
	for i := range reply.Calls {
		reply.Calls[i].ID = or(reply.Calls[i].ID, callID(c, i))
	}
	if reply.Reason == "" {
		reply.Reason = "stop"
		if len(reply.Calls) > 0 {
			reply.Reason = "tools"
		}
	}
	return reply, nil
}

// A wheel wakes any number of sleepers with one goroutine and one timer: setting an alarm is an entry in a list, where
// a timer of one's own is a place in the runtime's heap. It runs only while somebody sleeps.
type wheel struct {
	mu      sync.Mutex
	base    time.Time // tick zero
	slots   [wheelSlots]*alarm
	busy    [wheelSlots / 64]uint64 // which slots have sleepers
	sleeper int
	running bool
	next    int64         // the tick that the goroutine sleeps for
	kick    chan struct{} // an earlier alarm was set
}

const (
	wheelTick  = time.Millisecond
	wheelSlots = 4096
)

func newWheel() *wheel { return &wheel{base: time.Now()} }

// An alarm is one sleeper's place in the wheel.
type alarm struct {
	wheel      *wheel
	ring       chan struct{}
	tick       int64
	set        bool
	prev, next *alarm
}

func (w *wheel) alarm() *alarm { return &alarm{wheel: w, ring: make(chan struct{}, 1)} }

// wait sleeps until the time has come, at most a tick longer, or until ctx ends.
func (a *alarm) wait(ctx context.Context, at time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !time.Now().Before(at) {
		return nil
	}
	a.wheel.insert(a, at)
	select {
	case <-a.ring:
		return nil
	case <-ctx.Done():
		a.wheel.remove(a)
		return ctx.Err()
	}
}

func (w *wheel) insert(a *alarm, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.tick = int64((at.Sub(w.base) + wheelTick - 1) / wheelTick)
	a.set = true
	slot := a.tick % wheelSlots
	a.prev, a.next = nil, w.slots[slot]
	if a.next != nil {
		a.next.prev = a
	}
	w.slots[slot] = a
	w.busy[slot/64] |= 1 << (slot % 64)
	w.sleeper++
	if !w.running {
		w.running = true
		w.next = a.tick
		w.kick = make(chan struct{}, 1)
		go w.run()
		return
	}
	if a.tick < w.next {
		w.next = a.tick
		select {
		case w.kick <- struct{}{}:
		default:
		}
	}
}

// remove takes an alarm back; one that has rung already is left without its ring.
func (w *wheel) remove(a *alarm) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.set {
		w.unlink(a)
	}
	select {
	case <-a.ring:
	default:
	}
}

func (w *wheel) unlink(a *alarm) {
	slot := a.tick % wheelSlots
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		w.slots[slot] = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	}
	if w.slots[slot] == nil {
		w.busy[slot/64] &^= 1 << (slot % 64)
	}
	a.prev, a.next, a.set = nil, nil, false
	w.sleeper--
}

// run rings what is due and sleeps until the next slot with sleepers. It ends when there are none.
func (w *wheel) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	w.mu.Lock()
	done := w.next - 1 // everything up to this tick was looked at
	for w.sleeper > 0 {
		now := int64(time.Since(w.base) / wheelTick)
		done = min(done, w.next-1)
		for tick := max(done+1, now-wheelSlots+1); tick <= now; tick++ {
			if w.busy[tick%wheelSlots/64]&(1<<(tick%64)) == 0 {
				continue
			}
			for a := w.slots[tick%wheelSlots]; a != nil; {
				following := a.next
				if a.tick <= now {
					w.unlink(a)
					a.ring <- struct{}{} // has room: an alarm rings once for each time it is set
				}
				a = following
			}
		}
		done = max(done, now)
		if w.sleeper == 0 {
			break
		}
		w.next = w.upcoming(done)
		sleep := w.base.Add(time.Duration(w.next) * wheelTick)
		kick := w.kick
		w.mu.Unlock()
		timer.Reset(time.Until(sleep))
		select {
		case <-timer.C:
		case <-kick:
		}
		w.mu.Lock()
	}
	w.running = false
	w.mu.Unlock()
}

// upcoming is the first tick after done whose slot has sleepers, be it for a later round.
func (w *wheel) upcoming(done int64) int64 {
	for tick := done + 1; tick <= done+wheelSlots; {
		word := w.busy[tick%wheelSlots/64] >> (tick % 64)
		if word == 0 {
			tick += 64 - tick%64
			continue
		}
		for word&1 == 0 {
			word >>= 1
			tick++
		}
		return tick
	}
	return done + wheelSlots
}
