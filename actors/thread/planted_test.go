package thread

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// plants are defects that somebody might write into the state machine. Each wraps the real one.
var plants = map[string]machine{
	"answers of earlier attempts are accepted": {decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(turnDone); ok {
			m.attempt = s.attempt
			msg = m
		}
		return s.decide(msg, now)
	}},
	"a late panic is counted against the next turn": {decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(turnPanicked); ok {
			m.attempt = s.attempt
			msg = m
		}
		return s.decide(msg, now)
	}},
	"a question that comes again is asked again": {decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(asked); ok && s.opened {
			return []Event{Asked{Exchange: exchange(m.Ask, now)}}, nil
		}
		return s.decide(msg, now)
	}},
	"a question during an answer is acknowledged and forgotten": {decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if _, ok := msg.(asked); ok && len(s.open) > 2 {
			return nil, nil
		}
		return s.decide(msg, now)
	}},
	"a regenerated answer leaves the old one": {apply: func(s state, ev Event) state {
		if a, ok := ev.(Asked); ok {
			a.Replaces = false
			ev = a
		}
		return s.apply(ev)
	}},
	"every question replaces the last one": {decide: func(s state, msg any, now time.Time) ([]Event, error) {
		events, err := s.decide(msg, now)
		for i, ev := range events {
			if a, ok := ev.(Asked); ok && s.opened {
				a.Replaces = true
				events[i] = a
			}
		}
		return events, err
	}},
	"what came after a regenerated answer stays": {apply: func(s state, ev Event) state {
		if a, ok := ev.(Asked); ok && a.Replaces {
			a.From = "" // the newest
			ev = a
		}
		return s.apply(ev)
	}},
	"the same message id is the same message": {decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(asked); ok && s.opened {
			if e, _ := s.newest(); e.Message == m.Message && !e.Done {
				return nil, nil
			}
		}
		return s.decide(msg, now)
	}},
	"crashes are not counted": {decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if _, ok := msg.(begun); ok {
			return nil, nil
		}
		return s.decide(msg, now)
	}},
	"panics go on for ever": {decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(turnPanicked); ok && s.current(m.attempt) {
			return []Event{Retried{Turn: s.open[0].Turn, Reason: Panicked, At: now}}, nil
		}
		return s.decide(msg, now)
	}},
	"a turn that failed stays in hand": {apply: func(s state, ev Event) state {
		if _, ok := ev.(TurnFailed); ok {
			return s
		}
		return s.apply(ev)
	}},
	"an answer ends the newest turn": {apply: func(s state, ev Event) state {
		if a, ok := ev.(Answered); ok && len(s.open) > 1 {
			s.open = slices.Clone(s.open)
			slices.Reverse(s.open)
			a.Turn = s.open[0].Turn
			ev = a
		}
		return s.apply(ev)
	}},
	"the attempt does not change from turn to turn": {apply: func(s state, ev Event) state {
		next := s.apply(ev)
		next.attempt = max(1, s.attempt)
		return next
	}},
	"a rating goes to the last answer": {apply: func(s state, ev Event) state {
		if r, ok := ev.(Rated); ok && len(s.done) > 0 {
			r.Turn = s.done[len(s.done)-1].Turn
			ev = r
		}
		return s.apply(ev)
	}},
	"snapshots forget what waits":     {snapshot: func(s state) state { s.open = s.open[:min(1, len(s.open))]; return s }},
	"snapshots forget the attempt":    {snapshot: func(s state) state { s.attempt = 1; return s }},
	"snapshots forget rated answers":  {snapshot: func(s state) state { s.replaced = nil; return s }},
	"snapshots forget what broke off": {snapshot: func(s state) state { s.interrupted = 0; return s }},
}

// TestSimulationFindsPlantedDefects is the check of the check: each planted defect must be found, from a seed that finds it
// again. go test ./actors/thread -run TestSimulation$ -seed N -plant NAME -v tells how.
func TestSimulationFindsPlantedDefects(t *testing.T) {
	const most = 400
	for _, name := range slices.Sorted(maps.Keys(plants)) {
		t.Run(name, func(t *testing.T) {
			for n := uint64(1); n <= most; n++ {
				first := newSimulation(n, plants[name]).run()
				if first == nil {
					continue
				}
				at, _, _ := strings.Cut(first.Error(), ": ")
				if again := newSimulation(n, plants[name]).run(); again == nil || !strings.HasPrefix(again.Error(), at+": ") {
					t.Fatalf("found, and not found again from its seed:\n%v\n%v", first, again)
				}
				t.Logf("found: %.300s", first.Error())
				return
			}
			t.Errorf("not found in %d simulations", most)
		})
	}
}
