package operator

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"docent/actors/webhooks"
	"docent/api"
	"docent/cmd/docent/stores"
	"docent/internal/outbound"
	"docent/persistence/catalog"
	"docent/persistence/journal"
	"docent/web/console"
)

// NewWebhooks does with webhooks what people ask for.
func NewWebhooks(s *stores.Stores, log *slog.Logger) webhooks.Manager {
	now := s.Config.Now
	if now == nil {
		now = time.Now
	}
	return webhooks.Manager{Catalog: s.Catalog, Sender: outbound.New(s.Config.Targets(), nil), Secrets: s.Secrets, Tracker: s.Hub, Now: now, Log: log}
}

// WebhookParams name a webhook, and what is done with it.
type WebhookParams struct {
	ID      string          `json:"id,omitempty"`
	Project api.ProjectID   `json:"project,omitempty"`
	URL     string          `json:"url,omitempty"`
	Events  []api.EventKind `json:"events,omitempty"`
	Resume  bool            `json:"resume,omitempty"`
	Overlap string          `json:"overlap,omitempty"`
	Event   string          `json:"event,omitempty"`
	Since   time.Time       `json:"since,omitzero"`
}

// A OutgoingMade is a webhook with the secret that is shown once.
type OutgoingMade struct {
	api.Webhook
	SigningSecret string `json:"secret"` // in place of the name that the webhook has its secret under
}

func (o *Service) addWebhook(ctx context.Context, p WebhookParams) (made OutgoingMade, err error) {
	err = o.withJournal(ctx, func(j journal.Store) (err error) {
		made.Webhook, made.SigningSecret, err = o.webhooks().Add(ctx, p.Project, p.URL, p.Events, j.Position())
		return err
	})
	if err == nil {
		o.changedWebhook(ctx, OpWebhookAdd, made.Webhook)
	}
	return made, err
}

func (o *Service) addIssues(ctx context.Context, project api.ProjectID) error {
	var w api.Webhook
	err := o.withJournal(ctx, func(j journal.Store) (err error) {
		w, err = o.webhooks().AddIssues(ctx, project, j.Position())
		return err
	})
	if err == nil {
		o.changedWebhook(ctx, OpWebhookAdd, w)
	}
	return err
}

func (o *Service) webhooks() webhooks.Manager {
	if o.server != nil {
		return o.server.Hooks.Manager
	}
	return NewWebhooks(o.stores, slog.New(slog.DiscardHandler))
}

// changedWebhook has a running server look at its webhooks, and writes into the audit log.
func (o *Service) changedWebhook(ctx context.Context, action string, w api.Webhook) {
	if o.server != nil {
		o.server.Hooks.Wake()
	}
	o.audit(ctx, api.AuditEntry{Project: w.Project, Action: action, Object: w.ID, Detail: console.HostOf(w.URL)})
}

func (o *Service) listWebhooks(ctx context.Context, p WebhookParams) ([]api.WebhookStatus, error) {
	return o.stores.Catalog.Webhooks(ctx, p.Project)
}

func (o *Service) removeWebhook(ctx context.Context, p WebhookParams) error {
	w, err := o.stores.Catalog.Webhook(ctx, p.ID)
	if err == nil {
		err = o.webhooks().Remove(ctx, p.ID)
	}
	if err == nil {
		o.changedWebhook(ctx, OpWebhookRemove, w.Webhook)
	}
	return err
}

// followIssues makes a project's hand-overs issues of its repository, or no longer, as its settings say. A webhook that is
// off goes on, but not one that people have paused: what waits for it becomes public.
func (o *Service) followIssues(ctx context.Context, p api.Project) error {
	hooks, err := o.stores.Catalog.Webhooks(ctx, p.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(hooks, func(w api.WebhookStatus) bool { return w.URL == api.IssuesURL })
	switch on := p.Widget.ContactIssues; {
	case on && i < 0:
		return o.addIssues(ctx, p.ID)
	case on && hooks[i].Off && hooks[i].OffReason != webhooks.Paused:
		_, err = o.pauseWebhook(ctx, WebhookParams{ID: hooks[i].ID, Resume: true})
	case !on && i >= 0:
		err = o.removeWebhook(ctx, WebhookParams{ID: hooks[i].ID})
	}
	return err
}

func (o *Service) pauseWebhook(ctx context.Context, p WebhookParams) (api.Webhook, error) {
	w, err := o.webhooks().Pause(ctx, p.ID, !p.Resume)
	if err == nil {
		action := OpWebhookPause
		if p.Resume {
			action = "webhook.resume"
		}
		o.changedWebhook(ctx, action, w)
	}
	return w, err
}

func (o *Service) rotateWebhook(ctx context.Context, p WebhookParams) (made OutgoingMade, err error) {
	overlap := webhooks.Overlap
	if p.Overlap != "" {
		if overlap, err = time.ParseDuration(p.Overlap); err != nil {
			return made, &api.InvalidError{Problems: []api.Problem{{Field: "overlap", Message: "must be a time such as 24h"}}}
		}
	}
	if made.Webhook, made.SigningSecret, err = o.webhooks().Rotate(ctx, p.ID, overlap); err == nil {
		o.changedWebhook(ctx, OpWebhookRotate, made.Webhook)
	}
	return made, err
}

func (o *Service) testWebhook(ctx context.Context, p WebhookParams) (api.WebhookDelivery, error) {
	return o.webhooks().Test(ctx, p.ID)
}

// Replayed is what was sent again: one delivery, or so many events that are on their way.
type Replayed struct {
	Delivery *api.WebhookDelivery `json:"delivery,omitempty"`
	Events   int                  `json:"events"`
}

func (o *Service) replayWebhook(ctx context.Context, p WebhookParams) (out Replayed, err error) {
	w, err := o.stores.Catalog.Webhook(ctx, p.ID)
	if err != nil {
		return out, err
	}
	if p.Event != "" {
		d, err := o.webhooks().Replay(ctx, p.ID, p.Event)
		out = Replayed{&d, 1}
		if err != nil {
			return out, err
		}
	} else if out.Events, err = o.webhooks().ReplaySince(ctx, p.ID, p.Since); err != nil {
		return out, err
	}
	o.changedWebhook(ctx, OpWebhookReplay, w.Webhook)
	return out, nil
}

func (o *Service) listDeliveries(ctx context.Context, p WebhookParams) ([]api.WebhookDelivery, error) {
	if _, err := o.stores.Catalog.Webhook(ctx, p.ID); err != nil {
		return nil, err
	}
	return o.stores.Catalog.Deliveries(ctx, p.ID, 100)
}

// ownWebhooks are the webhooks of this server, for its pages.
type ownWebhooks struct {
	*catalog.Catalog
	ops *Service
}

func (o ownWebhooks) Add(ctx context.Context, project api.ProjectID, address string, kinds []api.EventKind) (api.Webhook, string,
	error) {
	return o.ops.server.Hooks.Add(ctx, project, address, kinds, o.ops.server.Journal.Position())
}

func (o ownWebhooks) Remove(ctx context.Context, id string) error {
	return o.ops.server.Hooks.Remove(ctx, id)
}

func (o ownWebhooks) Pause(ctx context.Context, id string, off bool) error {
	_, err := o.ops.server.Hooks.Pause(ctx, id, off)
	o.ops.server.Hooks.Wake()
	return err
}

func (o ownWebhooks) Rotate(ctx context.Context, id string, now bool) (string, error) {
	overlap := webhooks.Overlap
	if now {
		overlap = 0
	}
	_, secret, err := o.ops.server.Hooks.Rotate(ctx, id, overlap)
	return secret, err
}

func (o ownWebhooks) Test(ctx context.Context, id string) (api.WebhookDelivery, error) {
	return o.ops.server.Hooks.Test(ctx, id)
}

func (o ownWebhooks) Replay(ctx context.Context, id, event string) (api.WebhookDelivery, error) {
	return o.ops.server.Hooks.Replay(ctx, id, event)
}

func (o ownWebhooks) ReplaySince(ctx context.Context, id string, since time.Time) (int, error) {
	n, err := o.ops.server.Hooks.ReplaySince(ctx, id, since)
	o.ops.server.Hooks.Wake()
	return n, err
}
