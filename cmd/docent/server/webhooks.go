package server

import (
	"fmt"

	"docent/actors/pulls/outcomes"
	"docent/actors/webhooks"
	"docent/cmd/docent/operator"
	"docent/internal/outbound"
	"docent/persistence/catalog"
	"docent/persistence/journal"
	"docent/persistence/secrets"
)

// openWebhooks makes what tells other systems what happens.
func (a *Server) openWebhooks() error {
	events, err := a.Journal.Follow(catalog.WebhookFollower)
	if err != nil {
		return fmt.Errorf("follow the journal for webhooks: %w", err)
	}
	a.closers = append(a.closers, func() error { events.Close(); return nil })
	a.hooks, err = webhooks.New(webhooks.Deps{Manager: operator.NewWebhooks(a.Stores, a.Log), Streams: a.Journal, Events: events,
		PublicURL: a.config.PublicURL, Tasks: a.System.Tasks()})
	if err != nil {
		return err
	}
	a.upkeep.metrics.MustRegister(a.hooks)
	notifier := &outcomes.PullNotifier{Catalog: a.Stores.Catalog, Jobs: a.System.Jobs(), Owns: a.nodes.Owns}
	turned := func() { a.System.Tasks().Start(notifier.Task()) }
	a.Stores.Turned.Store(&turned)
	return nil
}

// Each port with what serves it.
var (
	_ webhooks.Catalog = (*catalog.Catalog)(nil)
	_ webhooks.Streams = journal.Store(nil)
	_ webhooks.Log     = (journal.Follower)(nil)
	_ webhooks.Sender  = (*outbound.Sender)(nil)
	_ webhooks.Secrets = (*secrets.Store)(nil)
	_ outcomes.Catalog = (*catalog.Catalog)(nil)
)
