package job

import (
	"fmt"
	"time"

	"docent/internal/tracing"
)

// span is the durable span of an instruction, from when it was given to its end.
func (d *Deps) span(s *state, in *instruction) tracing.Durable {
	return d.Tracer.Durable(in.Traced, fmt.Sprintf("%s %s %d", s.id, in.ID, in.At.UnixMilli()))
}

// runSpan is the durable span of the run in hand. A run that is taken up after a crash has the same one.
func (d *Deps) runSpan(s *state) tracing.Durable {
	if d.Tracer == nil || s.phase == idle {
		return tracing.Durable{}
	}
	return d.span(s, &s.queue[0]).Below(fmt.Sprint(s.phase, s.attempt))
}

// runBegan is when a run began that another process may have begun: as far as the journal tells.
func (s *state) runBegan() time.Time {
	if s.phase == publishing {
		return s.edited.At
	}
	return s.queue[0].At
}

// trace sends the durable spans that events have ended: of a run, and of instructions.
func (a *Actor) trace(before *state, events []Event) {
	if a.deps.Tracer == nil || before.phase == idle {
		return
	}
	ended, wrong := a.deps.Now(), ""
	for _, ev := range events {
		switch ev := ev.(type) {
		case Failed:
			wrong = string(ev.Reason)
		case Stale:
			wrong = "stale"
		case Retried:
			wrong = string(ev.Reason)
		}
	}
	if a.State.attempt != before.attempt {
		a.deps.runSpan(before).Send("job "+before.phase.String(), a.began, ended, false, func(s tracing.Span) {
			s.Str("docent.job", string(before.id))
			s.Str("docent.project", string(before.project))
			s.Int("docent.attempt", int64(before.attempt))
			s.Int("docent.interrupted", int64(before.interrupted))
			if wrong != "" {
				s.Failed(wrong)
			}
		})
	}
	for i := range len(before.queue) - len(a.State.queue) {
		in := &before.queue[i]
		a.deps.span(before, in).Send("job", in.At, ended, false, func(s tracing.Span) {
			s.Str("docent.job", string(before.id))
			s.Str("docent.project", string(before.project))
			s.Str("docent.instruction", in.ID)
			s.Str("docent.status", string(a.State.status))
			s.Str("docent.outcome", string(a.State.outcome))
			s.Str("docent.model", a.State.model)
			spent := a.State.spent
			s.Int("docent.steps", int64(spent.Steps-before.spent.Steps))
			s.Int("docent.tokens", int64(spent.Tokens-before.spent.Tokens))
			if wrong != "" {
				s.Failed(wrong)
			}
		})
	}
}
