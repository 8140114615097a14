package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"docent/api"
	"docent/persistence/journal"
)

const (
	followGap  = 100 * time.Millisecond // between two steps, so that many events share a transaction
	idleStore  = 10 * time.Second       // between writes of the position alone
	batch      = 256                    // events in one transaction
	maxRemoved = 256                    // removed streams in one transaction
	keepFor    = 30 * 24 * time.Hour    // events, for those who come late and for replays
	maxKept    = 10_000                 // of a project
	trimEvery  = time.Hour
	trimAfter  = 1000 // events
)

// A follower makes events from the journal and stores them. Its methods are called by one goroutine.
type follower struct {
	Deps
	maker   *maker
	began   bool
	waits   bool   // for the journal to change
	reached uint64 // of the journal, looked at
	stored  uint64
	asOf    time.Time // when that was stored
	trimmed time.Time
	added   int                             // events, since old ones were last removed
	found   func(events []api.WebhookEvent) // new ones, on disk
}

// follow waits for the journal to change and makes the events. At the end it stores how far it has come.
func (f *follower) follow(ctx context.Context, _ int) (time.Duration, error) {
	if f.waits {
		timer := time.NewTimer(idleStore)
		select {
		case <-ctx.Done():
		case <-f.Events.Changed():
		case <-timer.C:
		}
		timer.Stop()
	}
	err := f.step(ctx)
	f.waits = err == nil
	if ctx.Err() == nil || !f.began || f.reached == f.stored {
		return followGap, err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return 0, f.store(last, nil, nil, f.reached)
}

// begin finds out, once, how far the events are.
func (f *follower) begin(ctx context.Context) error {
	if f.began {
		return nil
	}
	pos, begun, err := f.Catalog.WebhookPosition(ctx)
	if err != nil {
		return err
	}
	last, err := f.Events.End()
	if err != nil {
		return err
	}
	if !begun {
		if err := f.Catalog.BeginEvents(ctx, last); err != nil {
			return err
		}
		if pos, _, err = f.Catalog.WebhookPosition(ctx); err != nil { // the first webhook may have come meanwhile
			return err
		}
		last = max(last, pos)
	}
	if pos > last {
		f.Log.Warn("the journal is older than the webhooks' events: dropping undelivered ones",
			"events", pos, "journal", last)
		if err := f.Catalog.RestartEvents(ctx, last); err != nil {
			return err
		}
		pos = last
	} else if trimmed := f.Events.Trimmed(); pos < trimmed {
		f.Log.Warn("the catalog is older than the journal: webhooks may miss the events in between",
			"events", pos, "trimmed", trimmed)
	}
	f.began, f.reached, f.stored = true, pos, pos
	f.Events.Ack(pos)
	return nil
}

// step makes the events of all that the journal holds by now.
func (f *follower) step(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	if err := f.trim(ctx); err != nil {
		return err
	}
	end := f.Events.Position()
	if end <= f.reached {
		return f.idle(ctx)
	}
	// Read after the end was: a webhook that comes now begins behind it.
	hooks, err := f.Catalog.Webhooks(ctx, "")
	if err != nil {
		return err
	}
	if len(hooks) == 0 {
		f.reached = end
		return f.idle(ctx)
	}
	return f.read(ctx, end)
}

// read goes through the journal up to a position.
func (f *follower) read(ctx context.Context, end uint64) error {
	var events []api.WebhookEvent
	var gone []string
	var failed error
	last := f.reached
	err := f.Events.Log(f.reached, f.maker.wanted, func(e journal.Logged) bool {
		if e.Pos > end {
			return false
		}
		switch ev, err := f.one(ctx, e); {
		case err != nil:
			failed = err
			return false
		case ev != nil:
			events = append(events, *ev)
		case e.Removed:
			gone = append(gone, e.Stream)
		}
		last = e.Pos
		if len(events) >= batch || len(gone) >= maxRemoved {
			failed = f.store(ctx, events, gone, last)
			events, gone = nil, nil
		}
		return failed == nil && ctx.Err() == nil
	})
	if err := errors.Join(failed, err, ctx.Err()); err != nil {
		return err
	}
	if len(events)+len(gone) > 0 {
		return f.store(ctx, events, gone, end)
	}
	f.reached = end
	return f.idle(ctx)
}

// one makes the event of an entry of the journal. What cannot be read will not be read another time either: it is left
// out, and said so.
func (f *follower) one(ctx context.Context, e journal.Logged) (*api.WebhookEvent, error) {
	if e.Removed || e.Stream == "" {
		return nil, nil
	}
	ev, err := f.maker.make(ctx, e)
	switch {
	case err == nil:
		return ev, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !slices.ContainsFunc(unreadable, func(kind error) bool { return errors.Is(err, kind) }):
		return nil, fmt.Errorf("event %d of %s: %w", e.Seq, e.Stream, err)
	}
	f.Log.Error("an event was not sent to webhooks: its record is damaged", "stream", e.Stream, "sequence", e.Seq, "error", err)
	return nil, nil
}

func (f *follower) store(ctx context.Context, events []api.WebhookEvent, gone []string, pos uint64) error {
	if err := f.Catalog.AddEvents(ctx, events, gone, pos); err != nil {
		return err
	}
	f.reached, f.stored, f.asOf = pos, pos, time.Now()
	f.added += len(events)
	f.Events.Ack(pos) // not before: what is acknowledged may be removed from the journal
	if len(events) > 0 {
		f.found(events)
	}
	return nil
}

// idle stores now and then how far the follower has come where there was nothing for it.
func (f *follower) idle(ctx context.Context) error {
	if f.reached == f.stored || time.Since(f.asOf) < idleStore {
		return nil
	}
	return f.store(ctx, nil, nil, f.reached)
}

// trim removes old events.
func (f *follower) trim(ctx context.Context) error {
	now := f.Now()
	if f.added < trimAfter && !f.trimmed.IsZero() && now.Sub(f.trimmed) < trimEvery && !now.Before(f.trimmed) {
		return nil
	}
	lost, err := f.Catalog.TrimEvents(ctx, now.Add(-keepFor), maxKept)
	for id, n := range lost {
		f.Log.Warn("a webhook's oldest events expired and were dropped", "webhook", id, "events", n)
	}
	if err == nil {
		f.trimmed, f.added = now, 0
	}
	return err
}
