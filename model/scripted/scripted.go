// Package scripted implements a model that writes a fixed text at a fixed pace, or prepared replies: for tests
// and load benches.
package scripted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/internal/backoff"
	"docent/model"
)

// A Script says what a scripted model writes and when. The n-th piece (from zero) is due First + n/Rate after the
// question, whatever the pieces before it cost: a stream does not drift, and one that fell behind catches up.
type Script struct {
	First  time.Duration // until the first piece
	Rate   float64       // pieces a second; as fast as they are taken if zero
	Jitter time.Duration // each piece may come up to so much later
	Parts  int           // pieces; the words of Text if zero
	Text   string        // its words are the pieces, over and over; "part-0 part-1 …" if empty

	// Replies are what it says in a conversation with tools, each First after it was asked: the n-th if the model has
	// spoken n times before, the last one again after that. It holds no conversations if there are none.
	Replies []model.Reply
	Window  int // tokens that a conversation and its reply may have together; default 16000
}

const (
	maxScript     = 1_000_000
	defaultWindow = 16_000
)

// tick is by how much a piece may come late so that many come together, which costs each of them less: an eighth of the
// time between two, from one to five milliseconds.
func (s *Script) tick() time.Duration {
	if s.Rate == 0 || s.Jitter > 0 {
		return time.Millisecond
	}
	return min(max(time.Duration(float64(time.Second)/s.Rate/8), time.Millisecond), 5*time.Millisecond)
}

// A Model writes what its script says.
type Model struct {
	name   string
	script Script
	pieces []string // what piece n is: pieces[n%len(pieces)]
	wheel  *timingWheel
}

// New makes a model of a script.
func New(name string, script Script) (*Model, error) {
	s := &Model{name: name, script: script, wheel: newTimingWheel(script.tick())}
	switch {
	case script.First < 0 || script.Rate < 0 || script.Jitter < 0 || script.Parts < 0:
		return nil, errors.New("a script has no negative delay, rate, jitter or number of parts")
	case script.Parts > maxScript:
		return nil, fmt.Errorf("a script has at most %d parts", maxScript)
	}
	if script.Text == "" {
		s.pieces = make([]string, max(s.script.Parts, 1))
		for i := range s.pieces {
			s.pieces[i] = fmt.Sprintf("part-%d ", i)
		}
	} else {
		for word := range strings.FieldsSeq(script.Text) {
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

// Answer writes one answer. Emit is not called from the caller's goroutine, and must not wait; an error of it ends the
// answer.
func (s *Model) Answer(ctx context.Context, req model.Request, emit func(model.Delta) error) (model.Result, error) {
	r := &playback{Model: s, ctx: ctx, emit: emit, begin: time.Now()}
	r.result = model.Result{Model: s.name, Reason: "stop", Answered: true}
	if len(req.Passages) > 0 {
		r.cite = []int{0}
	}
	if s.script.Rate == 0 && s.script.Jitter == 0 { // no piece waits for its time but the first
		_ = backoff.Sleep(ctx, s.script.First)
		for r.n < s.script.Parts {
			if err := r.give(); err != nil {
				return r.result, err
			}
		}
		return r.result, nil
	}
	if s.script.Jitter > 0 {
		r.random = rand.New(rand.NewPCG(1, uint64(len(req.Question))))
	}
	r.due, r.done, r.fire = r.next(), make(chan struct{}), r.play
	stop := context.AfterFunc(ctx, func() { r.stop(ctx.Err()) })
	defer stop()
	s.wheel.start(&r.timer, r.due)
	<-r.done
	if r.panicked != nil {
		panic(r.panicked)
	}
	return r.result, r.err
}

// Window is how many tokens a conversation and its reply may have together; 0 if the script has no replies.
func (s *Model) Window() int {
	if len(s.script.Replies) == 0 {
		return 0
	}
	return cmp.Or(s.script.Window, defaultWindow)
}

// Chat returns the next reply of the script.
func (s *Model) Chat(ctx context.Context, c model.Chat) (model.Reply, error) {
	if backoff.Sleep(ctx, s.script.First) != nil {
		return model.Reply{Model: s.name}, ctx.Err()
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
		reply.Calls[i].ID = cmp.Or(reply.Calls[i].ID, c.CallID(i))
	}
	if reply.Reason == "" {
		reply.Reason = "stop"
		if len(reply.Calls) > 0 {
			reply.Reason = "tools"
		}
	}
	return reply, nil
}

// A playback is an answer under way. Its pieces come from the wheel's goroutine: a goroutine for each of tens of
// thousands of answers, woken for each piece, would cost more than all that is done with a piece. So emit must not
// wait, or the other answers of this model wait too.
type playback struct {
	timer
	*Model
	ctx    context.Context
	emit   func(model.Delta) error
	begin  time.Time
	n      int       // the next piece
	due    time.Time // when it is
	cite   []int
	random *rand.Rand // nil without jitter
	done   chan struct{}

	mu       sync.Mutex // held while pieces are given: a reader that has seen the end sees no further one
	ended    bool
	result   model.Result
	err      error
	panicked any
}

// next is when the next piece is due.
func (r *playback) next() time.Time {
	due := r.begin.Add(r.script.First)
	if r.script.Rate > 0 {
		due = due.Add(time.Duration(float64(r.n) / r.script.Rate * float64(time.Second)))
	}
	if r.random != nil {
		due = due.Add(time.Duration(r.random.Int64N(int64(r.script.Jitter))))
	}
	return due
}

// give gives the next piece.
func (r *playback) give() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if err := r.emit(model.Delta{Text: r.pieces[r.n%len(r.pieces)], Cite: r.cite}); err != nil {
		return err
	}
	r.cite = nil
	r.result.CompletionTokens++
	r.n++
	return nil
}

// play returns the pieces that are due, and says when it wants to go on.
func (r *playback) play(now time.Time) (next time.Time, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return next, false
	}
	defer func() {
		if v := recover(); v != nil { // it is the asker's, and comes up there
			r.panicked = fmt.Sprintf("%v\n%s", v, debug.Stack())
			r.end(nil)
			next, again = time.Time{}, false
		}
	}()
	for !r.due.After(now) {
		if err := r.give(); err != nil || r.n == r.script.Parts {
			r.end(err)
			return next, false
		}
		r.due = r.next()
	}
	return r.due, true
}

// stop ends the playback if it has not ended by itself.
func (r *playback) stop(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.end(err)
	}
}

// end lets the asker go on. The caller holds the lock.
func (r *playback) end(err error) {
	r.ended, r.err = true, err
	close(r.done)
}
