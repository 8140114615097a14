package operator

import (
	"log/slog"
	"testing"

	"docent/actors/webhooks"
	"docent/api"
	"docent/cmd/docent/stores"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
)

// Saving a project's settings has the webhook that opens issues go on, but not if people have paused it.
func TestSettingsResumeTheWebhookThatOpensIssues(t *testing.T) {
	t.Parallel()
	c := catalogtest.Must(catalog.Open(t.Context(), catalogtest.SQLite(t), catalog.Options{Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	p := catalogtest.AddProject(t, c, "docs")
	p.Widget.ContactIssues = true
	o := New(&stores.Stores{Catalog: c}, nil)
	w := api.Webhook{ID: api.NewID(api.WebhookPrefix, p.CreatedAt), Project: p.ID, URL: api.IssuesURL, Events: []api.EventKind{api.EventContactRequested}}
	if err := c.AddWebhook(t.Context(), w, 0); err != nil {
		t.Fatal(err)
	}
	for reason, off := range map[string]bool{"the receiver answered 410 Gone": false, webhooks.Paused: true} {
		if _, err := c.ChangeWebhook(t.Context(), w.ID, func(w *api.Webhook) { w.Off, w.OffReason = true, reason }); err != nil {
			t.Fatal(err)
		}
		if err := o.followIssues(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if now := catalogtest.Must(c.Webhook(t.Context(), w.ID))(t); now.Off != off {
			t.Errorf("off because %s: off is %v then", reason, now.Off)
		}
	}
}
