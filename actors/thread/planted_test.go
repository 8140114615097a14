package thread

import (
	"maps"
	"slices"
	"testing"
	"time"

	"docent/actors/persistent"
	"docent/actors/simulation"
)

// plants are defects that somebody might write into the state machine. Each wraps the real one.
var plants = map[string]simulation.Plant[state, Event]{
	"answers of earlier attempts are accepted": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(turnDone); ok {
			m.attempt = s.attempt
			msg = m
		}
		return s.decide(msg, now)
	}},
	"a late panic is counted against the next turn": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(turnPanicked); ok {
			m.Attempt = s.attempt
			msg = m
		}
		return s.decide(msg, now)
	}},
	"a question that comes again is asked again": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(asked); ok && s.opened {
			return []Event{Asked{Exchange: exchange(m.Ask, now)}}, nil
		}
		return s.decide(msg, now)
	}},
	"a question during an answer is acknowledged and forgotten": {Decide: func(s state, msg any, now time.Time) ([]Event,
		error) {
		if _, ok := msg.(asked); ok && len(s.open) > 2 {
			return nil, nil
		}
		return s.decide(msg, now)
	}},
	"a regenerated answer leaves the old one": {Apply: func(s state, ev Event) state {
		if a, ok := ev.(Asked); ok {
			a.Replaces = false
			ev = a
		}
		return s.apply(ev)
	}},
	"every question replaces the last one": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		events, err := s.decide(msg, now)
		for i, ev := range events {
			if a, ok := ev.(Asked); ok && s.opened {
				a.Replaces = true
				events[i] = a
			}
		}
		return events, err
	}},
	"what came after a regenerated answer stays": {Apply: func(s state, ev Event) state {
		if a, ok := ev.(Asked); ok && a.Replaces {
			a.From = "" // the newest
			ev = a
		}
		return s.apply(ev)
	}},
	"the same message id is the same message": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(asked); ok && s.opened {
			if e, _ := s.newest(); e.Message == m.Message && !e.Done {
				return nil, nil
			}
		}
		return s.decide(msg, now)
	}},
	"crashes are not counted": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if _, ok := msg.(begun); ok {
			return nil, nil
		}
		return s.decide(msg, now)
	}},
	"panics go on for ever": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(turnPanicked); ok && s.current(m.Attempt) {
			return []Event{Retried{Turn: s.open[0].Turn, Reason: persistent.Panicked, At: now}}, nil
		}
		return s.decide(msg, now)
	}},
	"a turn that failed stays in hand": {Apply: func(s state, ev Event) state {
		if _, ok := ev.(TurnFailed); ok {
			return s
		}
		return s.apply(ev)
	}},
	"an answer ends the newest turn": {Apply: func(s state, ev Event) state {
		if a, ok := ev.(Answered); ok && len(s.open) > 1 {
			s.open = slices.Clone(s.open)
			slices.Reverse(s.open)
			a.Turn = s.open[0].Turn
			ev = a
		}
		return s.apply(ev)
	}},
	"the attempt does not change from turn to turn": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		next.attempt = max(1, s.attempt)
		return next
	}},
	"a rating goes to the last answer": {Apply: func(s state, ev Event) state {
		if r, ok := ev.(Rated); ok && len(s.done) > 0 {
			r.Turn = s.done[len(s.done)-1].Turn
			ev = r
		}
		return s.apply(ev)
	}},
	"snapshots forget what waits":     {Keep: func(s state) state { s.open = s.open[:min(1, len(s.open))]; return s }},
	"snapshots forget the attempt":    {Keep: func(s state) state { s.attempt = 1; return s }},
	"snapshots forget rated answers":  {Keep: func(s state) state { s.replaced = nil; return s }},
	"snapshots forget what broke off": {Keep: func(s state) state { s.interrupted = 0; return s }},
}

func TestSimulationFindsPlantedDefects(t *testing.T) {
	simulation.FindPlanted(t, slices.Collect(maps.Keys(plants)), simulate)
}
