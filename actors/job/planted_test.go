package job

import (
	"maps"
	"slices"
	"testing"
	"time"

	"docent/actors/persistent"
	"docent/actors/simulation"
	"docent/agent"
	"docent/api"
)

// plants are defects that somebody might write into the state machine. Each wraps the real one.
var plants = map[string]simulation.Plant[state, Event]{
	"results of earlier attempts are accepted": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		switch m := msg.(type) {
		case editDone:
			m.attempt = s.attempt
			msg = m
		case publishDone:
			m.attempt = s.attempt
			msg = m
		}
		return s.decide(msg, now)
	}},
	"a late publication ends the next instruction": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(publishDone); ok && m.err == nil && m.attempt < s.attempt && s.phase == editing {
			return []Event{Finished{Message: "done", At: now}}, nil
		}
		return s.decide(msg, now)
	}},
	"a follow-up that comes again is carried out again": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if _, ok := msg.(FollowUp); ok {
			s.seen = nil
		}
		return s.decide(msg, now)
	}},
	"a follow-up during publication is acknowledged and forgotten": {Decide: func(s state, msg any,
		now time.Time) ([]Event, error) {
		if _, ok := msg.(FollowUp); ok && s.phase == publishing {
			return nil, nil
		}
		return s.decide(msg, now)
	}},
	"a repeated create starts the job over": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if _, ok := msg.(Create); ok {
			return state{id: s.id}.decide(msg, now)
		}
		return s.decide(msg, now)
	}},
	"a job that was cancelled goes on": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if f, ok := ev.(Failed); ok && f.Message == "cancelled" {
			next.phase = s.phase
		}
		return next
	}},
	"an edit whose branch has moved counts as published": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(publishDone); ok {
			m.err = nil
			msg = m
		}
		return s.decide(msg, now)
	}},
	"a publication that was given up counts as an attempt of the edit": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if _, ok := ev.(Stale); ok {
			next.phase, next.edited = s.phase, s.edited
		}
		return next
	}},
	"crashes are not counted": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if _, ok := msg.(begun); ok {
			return nil, nil
		}
		return s.decide(msg, now)
	}},
	"panics are not counted": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if r, ok := ev.(Retried); ok && r.Reason == persistent.Panicked {
			next.panicked, next.attempt = s.panicked, s.attempt
		}
		return next
	}},
	"panics go on for ever": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(runPanicked); ok && s.current(m.Attempt) {
			return []Event{Retried{Reason: persistent.Panicked, At: now}}, nil
		}
		return s.decide(msg, now)
	}},
	"a step that comes twice is kept twice": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(stepped); ok && s.current(m.attempt) && s.phase == editing {
			return []Event{Stepped{Step: m.step, At: now}}, nil
		}
		return s.decide(msg, now)
	}},
	"a step is applied twice": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if step, ok := ev.(Stepped); ok && len(next.steps) > 1 {
			next.steps = append(slices.Clip(next.steps), step.Step)
		}
		return next
	}},
	"a step's answer is dropped": {Apply: func(s state, ev Event) state {
		if step, ok := ev.(Stepped); ok && step.Step.Number > 1 {
			step.Step.Reply = agent.Reply{}
			ev = step
		}
		return s.apply(ev)
	}},
	"a step is acknowledged and not kept": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if _, ok := msg.(stepped); ok && len(s.steps) == 2 {
			return nil, nil
		}
		return s.decide(msg, now)
	}},
	"a step of an earlier attempt is kept": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(stepped); ok {
			m.attempt = s.attempt
			msg = m
		}
		return s.decide(msg, now)
	}},
	"a step with the number of one that is there is kept": {Decide: func(s state, msg any, now time.Time) ([]Event,
		error) {
		if m, ok := msg.(stepped); ok && len(s.steps) > 0 && m.step.Round == s.steps[0].Round &&
			m.step.Number <= len(s.steps) {
			m.step.Number = len(s.steps) + 1
			msg = m
		}
		return s.decide(msg, now)
	}},
	"a step that comes after one that is missing is kept": {Decide: func(s state, msg any, now time.Time) ([]Event,
		error) {
		if m, ok := msg.(stepped); ok && m.step.Number > len(s.steps)+1 {
			m.step.Number = len(s.steps) + 1
			msg = m
		}
		return s.decide(msg, now)
	}},
	"a step of an earlier round is kept": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(stepped); ok && len(s.steps) > 0 && m.step.Round < s.steps[0].Round {
			m.attempt, m.step.Round, m.step.Number, m.step.Commit = s.attempt, s.steps[0].Round, len(s.steps)+1,
				s.steps[0].Commit
			msg = m
		}
		return s.decide(msg, now)
	}},
	"what follows overwrites the answer of an earlier step": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if _, ok := ev.(Progressed); ok && len(next.steps) > 1 {
			next.steps = slices.Clone(next.steps)
			next.steps[0].Reply = next.steps[1].Reply
		}
		return next
	}},
	"a further round goes on from the steps of the last": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if step, ok := ev.(Stepped); ok && len(s.steps) > 0 && step.Step.Round > s.steps[0].Round {
			next.steps = append(slices.Clip(s.steps), step.Step)
		}
		return next
	}},
	"snapshots forget the newest step": {Keep: func(s state) state {
		s.steps = s.steps[:max(0,
			len(s.steps)-1)]
		return s
	}},
	"steps are kept for the next instruction": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if _, ok := ev.(Finished); ok {
			next.steps = s.steps
		}
		return next
	}},
	"what an instruction took is not counted": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if _, ok := ev.(Finished); ok {
			next.spent = s.spent
		}
		return next
	}},
	"snapshots forget steps": {Keep: func(s state) state { s.steps = nil; return s }},
	"what waits is not taken in hand": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if _, ok := ev.(Finished); ok && len(next.queue) > 0 {
			next.phase = idle
		}
		return next
	}},
	"the newest instruction is taken first": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if _, ok := ev.(Finished); ok && len(next.queue) > 1 {
			next.queue = slices.Clone(next.queue)
			slices.Reverse(next.queue)
		}
		return next
	}},
	"a failure keeps what waits": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if _, ok := ev.(Failed); ok && len(s.queue) > 1 {
			next.queue = s.queue[1:]
		}
		return next
	}},
	"a follow-up to a job that has ended leaves it ended": {Apply: func(s state, ev Event) state {
		next := s.apply(ev)
		if _, ok := ev.(Prompted); ok && s.created && s.phase == idle {
			next.status, next.halt = api.JobCompleted, api.HaltCompleted
		}
		return next
	}},
	"snapshots forget which follow-ups were taken": {Keep: func(s state) state { s.seen = nil; return s }},
	"snapshots forget what waits": {Keep: func(s state) state {
		s.queue = s.queue[:min(1,
			len(s.queue))]
		return s
	}},
	"a pull request that is merged is merged again": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if m, ok := msg.(PullIs); ok && m.State == api.PullMerged && s.pullOf(m.Branch) >= 0 {
			return []Event{PullChanged{Branch: m.Branch, State: m.State, At: now}}, nil
		}
		return s.decide(msg, now)
	}},
	"a second publication opens its pull request again": {Decide: func(s state, msg any, now time.Time) ([]Event, error) {
		if _, ok := msg.(publishDone); ok {
			s.pulls = nil
		}
		return s.decide(msg, now)
	}},
	"snapshots forget what became of pull requests": {Keep: func(s state) state {
		s.pulls = slices.Clone(s.pulls)
		for i := range s.pulls {
			s.pulls[i].State = api.PullOpen
		}
		return s
	}},
	"snapshots forget the attempt":    {Keep: func(s state) state { s.attempt = 1; return s }},
	"snapshots forget what broke off": {Keep: func(s state) state { s.interrupted = 0; return s }},
}

// hostPlants are defects of what publishes.
var hostPlants = map[string]hostDefects{
	"a commit that is there is not found":       {repeatsCommits: true},
	"a pull request that is there is not found": {repeatsPulls: true},
}

func TestSimulationFindsPlantedDefects(t *testing.T) {
	simulation.FindPlanted(t, slices.AppendSeq(slices.Collect(maps.Keys(plants)), maps.Keys(hostPlants)), simulate)
}
