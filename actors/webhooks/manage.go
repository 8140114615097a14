package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/internal/outbound"
)

const (
	// Overlap is how long deliveries are signed with the old secret as well after a rotation, as a rule.
	Overlap    = 24 * time.Hour
	maxOverlap = 7 * 24 * time.Hour

	// Paused is why a webhook is off that people have turned off.
	Paused = "it was paused"
)

// Add adds a webhook, and gives the secret that deliveries are signed with: it is not shown again. What happens after
// the position of the journal is sent to it.
func (m Manager) Add(ctx context.Context, project api.ProjectID, address string, kinds []api.EventKind, position uint64) (
	w api.Webhook, secret string, err error) {
	var problems []api.Problem
	if say := m.Sender.CheckURL(address); say != "" {
		problems = append(problems, api.Problem{Field: "url", Message: say})
	}
	for _, k := range kinds {
		if !slices.Contains(api.EventKinds, k) {
			problems = append(problems, api.Problem{Field: "events", Message: fmt.Sprintf("has no event %q: the events are %s", k, kindNames())})
		}
	}
	if len(problems) > 0 {
		return w, "", &api.InvalidError{Problems: problems}
	}
	return m.add(ctx, project, address, kinds, position)
}

// AddIssues adds the webhook by which a project's hand-overs become issues. It is not to be had by its address: with other
// events it would fail for days at each of them, which hold back what comes behind.
func (m Manager) AddIssues(ctx context.Context, project api.ProjectID, position uint64) (api.Webhook, error) {
	w, _, err := m.add(ctx, project, api.IssuesURL, []api.EventKind{api.EventContactRequested}, position)
	return w, err
}

func (m Manager) add(ctx context.Context, project api.ProjectID, address string, kinds []api.EventKind, position uint64) (
	w api.Webhook, secret string, err error) {
	if _, err := m.Catalog.Project(ctx, project); err != nil {
		return w, "", api.Named(err, "project")
	}
	slices.Sort(kinds)
	secret = outbound.NewSecret()
	name, err := m.Secrets.Keep(project, secret)
	if err != nil {
		return w, "", err
	}
	now := m.Now()
	w = api.Webhook{ID: api.NewID(api.WebhookPrefix, now), Project: project, URL: address, Events: slices.Compact(kinds), Secret: name,
		CreatedAt: now.UTC(), UpdatedAt: now.UTC()}
	if err := m.Catalog.AddWebhook(ctx, w, position); err != nil {
		return w, "", errors.Join(err, m.Secrets.Drop(name))
	}
	return w, secret, nil
}

func kindNames() string {
	names := make([]string, len(api.EventKinds))
	for i, k := range api.EventKinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// Remove removes a webhook with its secrets.
func (m Manager) Remove(ctx context.Context, id string) error {
	w, err := m.Catalog.Webhook(ctx, id)
	if err != nil {
		return err
	}
	if p, err := m.Catalog.Project(ctx, w.Project); err == nil && w.URL == api.IssuesURL && p.Widget.ContactIssues {
		return &api.StateError{Kind: api.ErrConflict,
			Reason: "the project's setting widget.contactIssues makes conversations issues: turn that off, on the page Widget or by command"}
	}
	if err := m.Catalog.RemoveWebhook(ctx, id); err != nil {
		return err
	}
	return errors.Join(m.Secrets.Drop(w.Secret), m.Secrets.Drop(w.OldSecret))
}

// Pause has nothing sent to a webhook; events wait. Resumed, it goes on where it was, at once.
func (m Manager) Pause(ctx context.Context, id string, off bool) (api.Webhook, error) {
	w, err := m.Catalog.ChangeWebhook(ctx, id, func(w *api.Webhook) {
		w.Off, w.OffReason = off, ""
		if off {
			w.OffReason = Paused
		}
	})
	if err != nil || off {
		return w, err
	}
	return w, m.hurry(ctx, id)
}

// hurry has the next attempt made now.
func (m Manager) hurry(ctx context.Context, id string) error {
	_, err := m.Catalog.Rewind(ctx, id, m.Now().Add(keepFor)) // no event is of then: only the pause ends
	return err
}

// Rotate gives a webhook a new secret. Until the overlap is over deliveries are signed with the one before as well.
func (m Manager) Rotate(ctx context.Context, id string, overlap time.Duration) (w api.Webhook, secret string, err error) {
	if overlap < 0 || overlap > maxOverlap {
		return w, "", &api.InvalidError{Problems: []api.Problem{{Field: "overlap", Message: "must be from 0 to 168h"}}}
	}
	was, err := m.Catalog.Webhook(ctx, id)
	if err != nil {
		return w, "", err
	}
	secret = outbound.NewSecret()
	name, err := m.Secrets.Keep(was.Project, secret)
	if err != nil {
		return w, "", err
	}
	until := m.Now().Add(overlap).UTC()
	var older []string
	w, err = m.Catalog.ChangeWebhook(ctx, id, func(w *api.Webhook) {
		older = []string{w.OldSecret}
		w.Secret, w.OldSecret, w.OldUntil = name, w.Secret, &until
		if overlap == 0 {
			older = append(older, w.OldSecret)
			w.OldSecret, w.OldUntil = "", nil
		}
	})
	if err != nil {
		return w, "", errors.Join(err, m.Secrets.Drop(name))
	}
	for _, name := range older {
		if err := m.Secrets.Drop(name); err != nil {
			m.Log.Warn("a webhook's old secret could not be removed", "webhook", id, "error", err)
		}
	}
	return w, secret, nil
}

// dropOld forgets the secret of before a rotation once its time is over.
func (m Manager) dropOld(ctx context.Context, w api.Webhook) error {
	_, err := m.Catalog.ChangeWebhook(ctx, w.ID, func(now *api.Webhook) {
		if now.OldSecret == w.OldSecret {
			now.OldSecret, now.OldUntil = "", nil
		}
	})
	if err != nil {
		return err
	}
	return m.Secrets.Drop(w.OldSecret)
}

// Test sends an event of no consequence to a webhook, also to one that is paused, and says what came of it.
func (m Manager) Test(ctx context.Context, id string) (api.WebhookDelivery, error) {
	w, err := m.Catalog.Webhook(ctx, id)
	if err != nil {
		return api.WebhookDelivery{}, err
	}
	if w.URL == api.IssuesURL {
		return api.WebhookDelivery{}, &api.StateError{Kind: api.ErrConflict,
			Reason: "a test would open an issue: hand over a conversation in the widget instead"}
	}
	p, err := m.Catalog.Project(ctx, w.Project)
	if err != nil {
		return api.WebhookDelivery{}, err
	}
	now := m.Now().UTC()
	body, err := json.Marshal(Payload{Type: api.EventTest, Version: version, Timestamp: now,
		Data: Data{Project: Project{ID: p.ID, Domain: p.Domain}, Webhook: w.ID}})
	if err != nil {
		return api.WebhookDelivery{}, err
	}
	return m.once(ctx, w.Webhook, api.WebhookEvent{ID: api.NewID(api.EventPrefix, now), Kind: api.EventTest, At: now, Payload: body})
}

// Replay sends one event to a webhook again, now and once, and says what came of it.
func (m Manager) Replay(ctx context.Context, id, event string) (api.WebhookDelivery, error) {
	w, err := m.Catalog.Webhook(ctx, id)
	if err != nil {
		return api.WebhookDelivery{}, err
	}
	ev, err := m.Catalog.Event(ctx, w.Project, event)
	if errors.Is(err, api.ErrNotFound) {
		return api.WebhookDelivery{}, &api.StateError{Kind: api.ErrNotFound,
			Reason: fmt.Sprintf("there is no event %q of this project: events are kept for 30 days, tests are not", event)}
	}
	if err != nil {
		return api.WebhookDelivery{}, err
	}
	return m.once(ctx, w.Webhook, ev)
}

// once sends an event now, and stores how that went. Whether the receiver takes it changes nothing of what is sent next.
func (m Manager) once(ctx context.Context, w api.Webhook, ev api.WebhookEvent) (api.WebhookDelivery, error) {
	r := m.send(ctx, w, ev.ID, ev.Payload)
	out := api.WebhookDelivery{Webhook: w.ID, Event: ev.ID, Kind: ev.Kind, EventAt: ev.At, Status: api.DeliveryDelivered, Attempts: 1,
		At: m.Now(), Code: r.Code, Answer: r.Text}
	if r.err != nil {
		out.Status, out.Error = api.DeliveryFailed, r.err.Error()
	}
	return out, m.Catalog.SaveSingle(ctx, out)
}

// ReplaySince has a webhook's events since a time sent again, in their order, and counts them.
func (m Manager) ReplaySince(ctx context.Context, id string, since time.Time) (int, error) {
	if oldest := m.Now().Add(-keepFor); since.Before(oldest) {
		return 0, &api.InvalidError{Problems: []api.Problem{{Field: "since", Message: "must not be longer ago than 30 days: events are not kept longer"}}}
	}
	return m.Catalog.Rewind(ctx, id, since)
}
