package webhooks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"docent/api"
	"docent/internal/required"
	"docent/internal/task"
)

const (
	tick       = 30 * time.Second // the clock is looked at this often, since it may have been set
	maxHealthy = 32               // requests at once, to receivers that took the last event
	maxFailing = 8                // and to those that did not: theirs may take long
	farAhead   = 25 * time.Hour   // a next attempt beyond this was stored by a clock that was wrong
	place      = "task/webhooks"  // where all of it is done, on one of several nodes
)

// Hooks make events and deliver them.
type Hooks struct {
	Deps
	maker   *maker
	healthy task.Slots
	failing task.Slots
	figures figures

	mu     sync.Mutex
	newest map[api.ProjectID]map[api.EventKind]uint64 // nil if it is to be read
}

// New makes Hooks. Nothing is made or delivered before Wake.
func New(deps Deps) (*Hooks, error) {
	if err := required.Fields("webhooks", deps, "Catalog", "Sender", "Secrets", "Tracker", "Now", "Log", "Streams",
		"Events", "Tasks"); err != nil {
		return nil, err
	}
	maker, err := newMaker(deps)
	if err != nil {
		return nil, err
	}
	h := &Hooks{Deps: deps, maker: maker, healthy: make(task.Slots, maxHealthy), failing: make(task.Slots, maxFailing)}
	h.figures.begin()
	return h, nil
}

// Wake has what is due looked at now, and makes and delivers events from now on.
func (h *Hooks) Wake() {
	f := &follower{Deps: h.Deps, maker: h.maker, found: h.found}
	h.Tasks.Start(task.Task{Name: "webhooks/follow", Place: place, Handle: f.follow})
	h.look()
}

// look has what is due looked at now. What another node did before this one is not known here.
func (h *Hooks) look() {
	began := false
	h.Tasks.Start(task.Task{Name: "webhooks", Place: place, Handle: func(ctx context.Context, _ int) (time.Duration, error) {
		if !began {
			h.forgetNewest()
			began = true
		}
		return tick, h.dispatch(ctx)
	}})
}

func (h *Hooks) forgetNewest() {
	h.mu.Lock()
	h.newest = nil
	h.mu.Unlock()
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
	h.look()
}

// dispatch begins the turns of all webhooks that events wait for.
func (h *Hooks) dispatch(ctx context.Context) error {
	if err := h.knowNewest(ctx); err != nil {
		return err
	}
	hooks, err := h.Catalog.Webhooks(ctx, "")
	if err != nil {
		return err
	}
	waiting, now := 0, h.Now()
	for _, w := range hooks {
		if w.OldUntil != nil && !now.Before(*w.OldUntil) {
			if err := h.dropOld(ctx, w.Webhook); err != nil {
				h.Log.Warn("a webhook's old secret could not be removed", "webhook", w.ID, "error", err)
			}
		}
		if w.Off || !h.waits(w) {
			continue
		}
		waiting++
		if left(w, now) == 0 {
			h.Tasks.Start(task.Task{Name: "webhooks/" + w.ID, Place: place, Handle: h.turn(w.ID, w.State.Failures > 0)})
		}
	}
	h.figures.see(hooks, waiting)
	return nil
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

// turn sends a webhook's next event, until none waits. When its receiver does not take one, it goes on at the time of the
// next attempt. An attempt that cannot be stored is stored later, and not made again.
func (h *Hooks) turn(id string, failing bool) func(context.Context, int) (time.Duration, error) {
	var made *attempt
	return func(ctx context.Context, _ int) (again time.Duration, err error) {
		lane := h.healthy
		if failing {
			lane = h.failing
		}
		give, err := lane.Take(ctx)
		if err != nil {
			return 0, err
		}
		defer give()
		if made == nil {
			if made, again, err = h.next(ctx, id); made == nil {
				return again, err
			}
		}
		err = h.Catalog.SaveAttempt(ctx, made.State, &made.delivery) // what somebody did to the webhook meanwhile stands
		if err != nil && !errors.Is(err, api.ErrConflict) && !errors.Is(err, api.ErrNotFound) {
			return 0, fmt.Errorf("store an attempt of webhook %s: %w", id, err)
		}
		w := made.WebhookStatus
		made, failing = nil, w.State.Failures > 0
		if !h.waits(w) {
			return task.Done, nil
		}
		return 0, nil
	}
}

// An attempt was made to deliver an event. It holds the webhook as it stands after it.
type attempt struct {
	api.WebhookStatus
	delivery api.WebhookDelivery
}

// left is how long it is until a webhook's next attempt.
func left(w api.WebhookStatus, now time.Time) time.Duration {
	if left := w.State.Next.Sub(now); left > 0 && left < farAhead {
		return left
	}
	return 0
}

// next makes the next attempt, if its time has come. Otherwise it says after how long there may be one.
func (h *Hooks) next(ctx context.Context, id string) (*attempt, time.Duration, error) {
	w, err := h.Catalog.Webhook(ctx, id)
	if errors.Is(err, api.ErrNotFound) || err == nil && w.Off {
		return nil, task.Done, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if left := left(w, h.Now()); left > 0 {
		return nil, left, nil
	}
	ev, err := h.Catalog.NextEvent(ctx, w.Project, w.Kinds(), w.State.Position)
	if errors.Is(err, api.ErrNotFound) {
		h.forgetNewest() // it has gone, with its thread or for its age
		return nil, task.Done, nil
	}
	if err != nil {
		return nil, 0, err
	}
	r := h.send(ctx, w.Webhook, ev.ID, ev.Payload)
	if ctx.Err() != nil {
		return nil, 0, ctx.Err() // the server stops: whether it arrived is not known, and it is sent again
	}
	state, d := after(w.State, ev, r, h.Now())
	h.tell(w, state, d)
	if r.gone() {
		if _, err := h.Catalog.ChangeWebhook(ctx, id, func(w *api.Webhook) {
			w.Off, w.OffReason = true, "the receiver answered 410 Gone"
		}); err != nil {
			return nil, 0, err
		}
	}
	w.State = state
	return &attempt{w, d}, 0, nil
}

// tell says in the log and in the figures how an attempt went.
func (h *Hooks) tell(w api.WebhookStatus, s api.WebhookState, d api.WebhookDelivery) {
	h.figures.attempt(d.Status)
	attrs := []any{"project", w.Project, "webhook", w.ID, "event", d.Event, "kind", d.Kind, "attempt", d.Attempts,
		"status", d.Status, "code", d.Code, "problem", d.Error}
	switch {
	case s.Failing != nil && w.State.Failing == nil:
		h.Log.Error("a webhook has failed for three days; its events are being dropped", attrs...)
	case d.Status == api.DeliveryGivenUp:
		h.Log.Warn("an event was dropped", attrs...)
	case w.State.Failing != nil && d.Status == api.DeliveryDelivered:
		h.Log.Info("a webhook's receiver is reachable again; `docent webhook replay` sends the dropped events",
			append(attrs, "given_up", w.State.Missed)...)
	case d.Error != "" && d.Attempts == 1:
		h.Log.Warn("an event was not accepted; it will be sent again", attrs...)
	default:
		h.Log.Debug("an event was sent", attrs...)
	}
}
