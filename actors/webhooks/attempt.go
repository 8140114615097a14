package webhooks

import (
	"context"
	"errors"
	"net/http"
	"time"

	"docent/api"
	"docent/internal/outbound"
)

// pauses are the times between one attempt and the next. The last one stands for all that follow.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}

// tryFor is how long an event is tried.
const tryFor = 3 * 24 * time.Hour

func pauseAfter(failures int) time.Duration { return pauses[min(max(failures, 1), len(pauses))-1] }

// A result is what came of sending an event.
type result struct {
	outbound.Answer
	err error
}

// gone reports whether the receiver wants no more events, ever.
func (r result) gone() bool { return r.Code == http.StatusGone }

// after is the state of a webhook after an attempt to send an event, and the delivery as it stands then.
//
// An event that its receiver does not take is tried for three days, and given up. Then the webhook is failing, and the
// next event is tried at once: it may have been the event's fault. While the webhook is failing each event is tried at
// least once, and one that is older than three days only once.
func after(s api.WebhookState, ev api.WebhookEvent, r result, now time.Time) (api.WebhookState, api.WebhookDelivery) {
	if s.Event != ev.ID || s.Since == nil {
		s.Event, s.Attempts, s.Since = ev.ID, 0, &now
	}
	s.Attempts++
	s.Code = r.Code
	d := api.WebhookDelivery{Webhook: s.Webhook, Event: ev.ID, Kind: ev.Kind, EventAt: ev.At, Attempts: s.Attempts, At: now,
		Code: r.Code, Answer: r.Text}
	if r.err == nil {
		d.Status = api.DeliveryDelivered
		return api.WebhookState{Webhook: s.Webhook, Version: s.Version, Position: ev.Position, Code: r.Code, Reached: &now}, d
	}
	s.Failures++
	s.Error, d.Error, d.Status = r.err.Error(), r.err.Error(), api.DeliveryWaiting
	old := now.Sub(*s.Since) >= tryFor || s.Failing != nil && now.Sub(ev.At) >= tryFor
	if r.gone() || !old {
		s.Next = now.Add(max(pauseAfter(s.Failures), r.Pause))
		return s, d
	}
	d.Status = api.DeliveryGivenUp
	s.Position, s.Event, s.Attempts, s.Since = ev.Position, "", 0, nil
	s.Missed++
	s.Next = now.Add(pauseAfter(s.Failures))
	if s.Failing == nil {
		s.Failing, s.Next = &now, now
	}
	return s, d
}

// send sends a payload to a webhook.
func (m Manager) send(ctx context.Context, w api.Webhook, id string, payload []byte) result {
	if w.URL == api.IssuesURL {
		return m.open(ctx, w.Project, id, payload)
	}
	now := m.Now()
	msg := outbound.Message{URL: w.URL, ID: id, Body: payload, At: now}
	secret, err := m.Secrets.Read(w.Secret)
	if err != nil {
		return result{err: errors.New("the signing secret is not in the data directory, as after a restore: rotate it")}
	}
	msg.Secrets = []string{secret}
	if w.OldUntil != nil && now.Before(*w.OldUntil) {
		if old, err := m.Secrets.Read(w.OldSecret); err == nil {
			msg.Secrets = append(msg.Secrets, old)
		}
	}
	answer, err := m.Sender.Send(ctx, msg)
	return result{answer, err}
}
