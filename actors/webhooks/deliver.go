package webhooks

import (
	"context"
	"docent/internal/background"
	"errors"
	"sync"
	"time"

	"docent/api"
	"docent/internal/backoff"
)

const (
	tick     = 30 * time.Second // the clock is looked at this often, since it may have been set
	wellOnes = 32               // requests at once, to receivers that took the last event
	illOnes  = 8                // and to those that did not: theirs may take long
	inARow   = 100              // events of one webhook, before it is looked at anew
	farAhead = 25 * time.Hour   // a next attempt beyond this was stored by a clock that was wrong
)

// Hooks make events and deliver them.
type Hooks struct {
	Desk
	follower *follower
	alone    func(ctx context.Context, name string, f func(context.Context))
	wake     chan struct{}
	cancel   context.CancelFunc
	work     background.Work
	turns    background.Work // of webhooks
	well     chan struct{}
	ill      chan struct{}
	figures  figures

	mu      sync.Mutex
	newest  map[api.ProjectID]map[api.EventKind]uint64 // nil where it is to be read
	running map[string]bool
}

// New makes Hooks. Nothing is made or delivered before Start.
func New(deps Deps) (*Hooks, error) {
	if err := deps.complete(); err != nil {
		return nil, err
	}
	maker, err := newMaker(deps)
	if err != nil {
		return nil, err
	}
	h := &Hooks{Desk: deps.Desk, alone: deps.alone, wake: make(chan struct{}, 1), cancel: func() {}, well: make(chan struct{}, wellOnes),
		ill: make(chan struct{}, illOnes), running: map[string]bool{}}
	h.follower = &follower{Deps: deps, maker: maker, found: h.found}
	h.figures.begin()
	return h, nil
}

// Start makes and delivers events from now on, until Close.
func (h *Hooks) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	h.work.Go("actors/webhooks.Start", func() { h.alone(ctx, "task/webhooks", h.both) })
}

// both makes and delivers events until ctx ends. What another node did meanwhile is not known here.
func (h *Hooks) both(ctx context.Context) {
	h.mu.Lock()
	h.newest = nil
	h.mu.Unlock()
	h.follower.began = false
	var parts background.Work
	parts.Go("actors/webhooks.both", func() { h.follower.run(ctx) })
	parts.Go("actors/webhooks.both", func() { h.run(ctx) })
	parts.Wait()
	h.turns.Wait()
}

// Close breaks off what goes on; the next server takes it up.
func (h *Hooks) Close() error {
	h.cancel()
	h.work.Wait()
	return nil
}

// Wake has what is due looked at now.
func (h *Hooks) Wake() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// found remembers which events are the newest.
func (h *Hooks) found(events []api.WebhookEvent) {
	h.mu.Lock()
	for _, e := range events {
		if h.newest == nil {
			break
		}
		if h.newest[e.Project] == nil {
			h.newest[e.Project] = map[api.EventKind]uint64{}
		}
		h.newest[e.Project][e.Kind] = max(h.newest[e.Project][e.Kind], e.Position)
	}
	h.mu.Unlock()
	h.Wake()
}

func (h *Hooks) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := tick
		if err := background.Guard(func() (err error) { wait, err = h.dispatch(ctx); return err }); err != nil && ctx.Err() == nil {
			h.Log.Warn("webhooks wait", "error", err)
			wait = tick
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-h.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// dispatch begins the turns of all webhooks that have something to be sent by now, and says how long there is nothing
// more to begin.
func (h *Hooks) dispatch(ctx context.Context) (time.Duration, error) {
	if err := h.knowNewest(ctx); err != nil {
		return tick, err
	}
	hooks, err := h.Catalog.Webhooks(ctx, "")
	if err != nil {
		return tick, err
	}
	waiting := 0
	for _, w := range hooks {
		if !w.Off && h.waits(w) {
			waiting++
		}
	}
	h.figures.see(hooks, waiting)
	now, wait := h.Now(), tick
	for _, w := range hooks {
		if w.OldUntil != nil && !now.Before(*w.OldUntil) {
			if err := h.dropOld(ctx, w.Webhook); err != nil {
				h.Log.Warn("a webhook's old secret is still there", "webhook", w.ID, "error", err)
			}
		}
		if w.Off || !h.waits(w) {
			continue
		}
		if left := w.State.Next.Sub(now); left > 0 && left < farAhead {
			wait = min(wait, left)
			continue
		}
		h.begin(ctx, w)
	}
	return max(wait, 10*time.Millisecond), nil
}

// knowNewest reads which events are the newest, where that is not known.
func (h *Hooks) knowNewest(ctx context.Context) error {
	h.mu.Lock()
	known := h.newest != nil
	if !known {
		h.newest = map[api.ProjectID]map[api.EventKind]uint64{} // what comes while it is read is not forgotten
	}
	h.mu.Unlock()
	if known {
		return nil
	}
	newest, err := h.Catalog.NewestEvents(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.newest = nil
		return err
	}
	for project, kinds := range h.newest {
		for kind, pos := range kinds {
			if newest[project] == nil {
				newest[project] = map[api.EventKind]uint64{}
			}
			newest[project][kind] = max(newest[project][kind], pos)
		}
	}
	h.newest = newest
	return nil
}

// waits reports whether there is an event for a webhook.
func (h *Hooks) waits(w api.WebhookStatus) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kind := range w.Kinds() {
		if h.newest[w.Project][kind] > w.State.Position {
			return true
		}
	}
	return false
}

// begin gives a webhook its turn, unless it has it.
func (h *Hooks) begin(ctx context.Context, w api.WebhookStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running[w.ID] {
		return
	}
	h.running[w.ID] = true
	lane := h.well
	if w.State.Failures > 0 {
		lane = h.ill
	}
	h.turns.Go("actors/webhooks.begin", func() {
		defer func() {
			h.mu.Lock()
			delete(h.running, w.ID)
			h.mu.Unlock()
			h.Wake()
		}()
		select {
		case <-ctx.Done():
			return
		case lane <- struct{}{}:
		}
		defer func() { <-lane }()
		if err := background.Guard(func() error { return h.turn(ctx, w.ID) }); err != nil && ctx.Err() == nil {
			h.Log.Error("a webhook's events wait", "webhook", w.ID, "error", err)
			_ = backoff.Sleep(ctx, tick)
		}
	})
}

// turn sends a webhook's events, one after the other, until none waits or its receiver does not take one.
func (h *Hooks) turn(ctx context.Context, id string) error {
	for range inARow {
		w, err := h.Catalog.Webhook(ctx, id)
		if errors.Is(err, api.ErrNotFound) {
			return nil
		}
		if err != nil || w.Off {
			return err
		}
		ev, err := h.Catalog.NextEvent(ctx, w.Project, w.Kinds(), w.State.Position)
		if errors.Is(err, api.ErrNotFound) {
			h.mu.Lock()
			h.newest = nil // it has gone, with its thread or for its age
			h.mu.Unlock()
			return nil
		}
		if err != nil {
			return err
		}
		r := h.send(ctx, w.Webhook, ev.ID, ev.Payload)
		if ctx.Err() != nil {
			return ctx.Err() // the server stops: whether it arrived is not known, and it is sent again
		}
		state, d := after(w.State, ev, r, h.Now())
		h.tell(w, state, d)
		if r.gone() {
			if _, err := h.Catalog.ChangeWebhook(ctx, id, func(w *api.Webhook) {
				w.Off, w.OffReason = true, "the receiver answered 410 Gone"
			}); err != nil {
				return err
			}
		}
		if err := h.save(ctx, state, d); err != nil {
			return err
		}
		if r.err != nil {
			return nil
		}
		if !h.waits(api.WebhookStatus{Webhook: w.Webhook, State: state}) {
			return nil
		}
	}
	return nil
}

// tell says in the log and in the figures how an attempt went.
func (h *Hooks) tell(w api.WebhookStatus, s api.WebhookState, d api.WebhookDelivery) {
	h.figures.attempt(d.Status)
	attrs := []any{"project", w.Project, "webhook", w.ID, "event", d.Event, "kind", d.Kind, "attempt", d.Attempts,
		"status", d.Status, "code", d.Code, "problem", d.Error}
	switch {
	case s.Failing != nil && w.State.Failing == nil:
		h.Log.Error("a webhook is failing: its receiver takes nothing for three days, and events are given up", attrs...)
	case d.Status == api.DeliveryGivenUp:
		h.Log.Warn("an event is given up", attrs...)
	case w.State.Failing != nil && d.Status == api.DeliveryDelivered:
		h.Log.Info("a webhook's receiver is there again; `docent webhook replay` sends what was given up",
			append(attrs, "given_up", w.State.Missed)...)
	case d.Error != "" && d.Attempts == 1:
		h.Log.Warn("an event was not taken and is sent again later", attrs...)
	default:
		h.Log.Debug("an event was sent", attrs...)
	}
}

// save stores how an attempt went, as often as it takes. What somebody did to the webhook meanwhile stands.
func (h *Hooks) save(ctx context.Context, s api.WebhookState, d api.WebhookDelivery) error {
	var err error
	for try := range 5 {
		err = h.Catalog.SaveAttempt(ctx, s, &d)
		if err == nil || errors.Is(err, api.ErrConflict) || errors.Is(err, api.ErrNotFound) {
			return nil
		}
		if backoff.Sleep(ctx, time.Duration(try+1)*100*time.Millisecond) != nil {
			break
		}
	}
	return err
}
