package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A Script says what a scripted model writes and when. The n-th piece (from zero) is due First + n/Rate after the
// question, whatever the pieces before it cost: a stream does not drift, and one that fell behind catches up.
type Script struct {
	First  time.Duration // until the first piece
	Rate   float64       // pieces a second; as fast as they are taken where zero
	Jitter time.Duration // each piece may come up to so much later
	Parts  int           // pieces; the words of Text where zero
	Text   string        // its words are the pieces, again from the first when there are not enough; "part-0 part-1 …" where empty

	// Replies are what it says in a conversation with tools, each First after it was asked: the n-th where the model has
	// spoken n times before, the last one again after that. It holds no conversations where there are none.
	Replies []Reply
}

const maxScript = 1_000_000

type scripted struct {
	name   string
	script Script
	pieces []string // what piece n is: pieces[n%len(pieces)]
	size   int      // of its window
	wheel  *wheel
}

func newScripted(n Named) (*scripted, error) {
	s := &scripted{name: n.Name, script: n.Script, size: or(n.Window, defaultWindow), wheel: newWheel()}
	switch {
	case n.Script.First < 0 || n.Script.Rate < 0 || n.Script.Jitter < 0 || n.Script.Parts < 0:
		return nil, errors.New("a script has no negative delay, rate, jitter or number of parts")
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
	alarm := s.newAlarm(ctx)
	defer alarm.end()
	random := rand.New(rand.NewPCG(1, uint64(len(req.Question))))
	var cite []int
	if len(req.Passages) > 0 {
		cite = []int{0}
	}
	for n := range s.script.Parts {
		due := begin.Add(s.script.First)
		if s.script.Rate > 0 {
			due = due.Add(time.Duration(float64(n) / s.script.Rate * float64(time.Second)))
		}
		if s.script.Jitter > 0 {
			due = due.Add(time.Duration(random.Int64N(int64(s.script.Jitter))))
		}
		if err := alarm.until(due); err != nil {
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
	alarm := s.newAlarm(ctx)
	defer alarm.end()
	if err := alarm.until(time.Now().Add(s.script.First)); err != nil {
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

// An alarm sleeps again and again on a wheel, and ends with its context. It waits on one channel alone: the end of the
// context rings the same bell, since an answer of hundreds of pieces waits as often, in tens of thousands of goroutines.
type alarm struct {
	sleeper
	wheel *wheel
	ctx   context.Context
	stop  func() bool
}

func (s *scripted) newAlarm(ctx context.Context) *alarm {
	a := &alarm{sleeper: sleeper{bell: make(chan struct{}, 1)}, wheel: s.wheel, ctx: ctx}
	a.stop = context.AfterFunc(ctx, a.rouse)
	return a
}

// until sleeps until the time has come, or until the context ends. After its end there is no further sleep: the wheel may
// still hold the sleeper.
func (a *alarm) until(at time.Time) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if time.Until(at) <= 0 {
		return nil
	}
	a.wheel.wake(&a.sleeper, at)
	<-a.bell
	return a.ctx.Err()
}

func (a *alarm) end() { a.stop() }
