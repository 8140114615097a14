package thread

import (
	"time"

	"docent/internal/tracing"
	"docent/model"
)

// turnSpan is the durable span of a turn, from its question to the end of its answer.
func (d *Deps) turnSpan(e *Exchange) tracing.Durable {
	if d.Tracer == nil {
		return tracing.Durable{}
	}
	return d.Tracer.Durable(e.Traced, string(e.Turn))
}

// trace sends the span of a turn that has ended. If its request was open in a process that is gone, the turn begins
// the trace.
func (a *Actor) trace(e *Exchange, ended time.Time, wrong string) {
	span := a.deps.turnSpan(e)
	if !span.On() {
		return
	}
	span.Send("turn", e.Asked, ended, span.Lost(e.Asked), func(s tracing.Span) {
		s.Str("docent.project", string(a.State.project))
		s.Str("docent.thread", string(a.State.id))
		s.Str("docent.turn", string(e.Turn))
		s.Str("docent.model", e.Model)
		s.Str("docent.fallback_for", e.FallbackFor)
		s.Bool("docent.answered", e.Answered)
		s.Int("docent.sources", int64(len(e.Sources)))
		if len(e.Degraded) > 0 {
			s.Strs("docent.degraded", e.Degraded...)
		}
		if t := e.Trace; t != nil {
			s.Seconds("docent.waited_seconds", t.Waited.Duration())
			s.Seconds("docent.searched_seconds", t.Searched.Duration())
			s.Seconds("docent.first_text_seconds", t.First.Duration())
		}
		if wrong != "" {
			s.Failed(wrong)
		}
	})
}

// checked ends the span of an answer with what became of its claims.
//
//go:noinline
func checked(span tracing.Span, r *model.Result, err error) {
	if c := r.Checked; c != nil && span.On() {
		span.Int("docent.claims", int64(c.Claims))
		span.Int("docent.claims_moved", int64(c.Moved))
		span.Int("docent.claims_marked", int64(c.Marked))
		span.Int("docent.claims_removed", int64(c.Removed))
	}
	span.Done(err)
}
