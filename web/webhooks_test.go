package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/webhooks"
	"docent/api"
	"docent/internal/outbound"
	"docent/persistence/catalog"
)

// hooks are a catalog's webhooks, whose receivers answer what a test says.
type hooks struct {
	*catalog.Catalog
	manager webhooks.Manager

	mu      sync.Mutex
	secrets map[string]string
	answer  outbound.Answer
	err     error
}

func newHooks(c *catalog.Catalog, now func() time.Time) *hooks {
	h := &hooks{Catalog: c, secrets: map[string]string{}, answer: outbound.Answer{Code: 200}}
	h.manager = webhooks.Manager{Catalog: c, Sender: h, Secrets: h, Now: now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	return h
}

func (h *hooks) CheckURL(address string) string { return outbound.Policy{}.CheckURL(address) }

func (h *hooks) Send(context.Context, outbound.Message) (outbound.Answer, error) {
	return h.answer, h.err
}

func (h *hooks) Keep(project api.ProjectID, text string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := fmt.Sprintf("%s.%d", project, len(h.secrets))
	h.secrets[name] = text
	return name, nil
}

func (h *hooks) Read(name string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.secrets[name], nil
}

func (h *hooks) Drop(string) error { return nil }

func (h *hooks) Add(ctx context.Context, project api.ProjectID, address string, kinds []api.EventKind) (api.Webhook, string, error) {
	return h.manager.Add(ctx, project, address, kinds, 0)
}

func (h *hooks) Remove(ctx context.Context, id string) error { return h.manager.Remove(ctx, id) }

func (h *hooks) Pause(ctx context.Context, id string, off bool) error {
	_, err := h.manager.Pause(ctx, id, off)
	return err
}

func (h *hooks) Rotate(ctx context.Context, id string, now bool) (string, error) {
	_, secret, err := h.manager.Rotate(ctx, id, map[bool]time.Duration{false: webhooks.Overlap}[now])
	return secret, err
}

func (h *hooks) Test(ctx context.Context, id string) (api.WebhookDelivery, error) {
	return h.manager.Test(ctx, id)
}

func (h *hooks) Replay(ctx context.Context, id, event string) (api.WebhookDelivery, error) {
	return h.manager.Replay(ctx, id, event)
}

func (h *hooks) ReplaySince(ctx context.Context, id string, since time.Time) (int, error) {
	return h.manager.ReplaySince(ctx, id, since)
}

func TestWebhooksAreAddedTestedPausedSentAgainAndRemoved(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("owner")
	base := "/console/org-a/docs.acme.example/webhooks"
	form, _ := b.text(200, base)
	token := b.token(form)
	res := b.send(base+"/create", url.Values{"token": {token}, "url": {"http://10.0.0.1/" + evil}, "event": {"job.ended", evil}})
	if body := bodyOf(t, res); res.StatusCode != 400 || !strings.Contains(body, "private network") || !strings.Contains(body, "has no event") ||
		!strings.Contains(body, `value="job.ended" checked`) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if made := b.post(200, base+"/create", "url", "https://hooks.example.com/x?token=1", "event", "job.ended"); strings.Count(made, "whsec_") != 1 {
		t.Fatal(made)
	}
	list, err := h.catalog.Webhooks(t.Context(), "acme")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	w := list[0]
	at := base + "/" + w.ID
	if page, _ := b.text(200, at); strings.Contains(page, "whsec_") || !strings.Contains(page, "job.ended") {
		t.Errorf("the secret is shown again, or the events are not:\n%s", page)
	}
	act := func(what, says string, extra ...string) {
		t.Helper()
		values := url.Values{"token": {token}}
		for i := 0; i < len(extra); i += 2 {
			values.Set(extra[i], extra[i+1])
		}
		if res := b.send(at+"/"+what, values); res.StatusCode != 303 {
			t.Fatalf("%s: %d %s", what, res.StatusCode, bodyOf(t, res))
		}
		if page, _ := b.text(200, at); !strings.Contains(page, says) {
			t.Errorf("after %s %v the page does not say %q:\n%s", what, extra, says, page)
		}
	}
	act("test", "The test was taken.")
	h.hooks.err, h.hooks.answer = errors.New("the receiver answered 500"), outbound.Answer{Code: 500, Text: evil}
	act("test", "The test was not taken: the receiver answered 500")
	h.hooks.err = nil
	act("pause", "it was paused")
	act("pause", "Webhook resumed.", "resume", "yes")
	ev := api.WebhookEvent{ID: "evt_1", Position: 7, Project: "acme", Kind: api.EventJobEnded, At: h.clock.Now(), Payload: []byte("{}")}
	if err := h.catalog.AddEvents(t.Context(), []api.WebhookEvent{ev}, nil, 7); err != nil {
		t.Fatal(err)
	}
	act("replay", "The event was taken.", "event", "evt_1")
	if err := h.catalog.SaveAttempt(t.Context(), api.WebhookState{Webhook: w.ID, Version: 1, Position: 7}, nil); err != nil {
		t.Fatal(err)
	}
	act("replay", "1 event on the way again.", "ago", "24h")
	if page, _ := b.text(200, at); !strings.Contains(page, "<dt>Waiting</dt><dd>1 event</dd>") {
		t.Errorf("the page does not say what waits:\n%s", page)
	}
	if res := b.send(at+"/replay", url.Values{"token": {token}, "ago": {"soon"}}); res.StatusCode != 400 {
		t.Errorf("a replay since “soon”: %d", res.StatusCode)
	}
	page := b.post(200, at+"/rotate")
	if strings.Count(page, "whsec_") != 1 || !strings.Contains(page, "also signs until") {
		t.Errorf("a new secret: %s", page)
	}
	if again, _ := b.text(200, at); strings.Contains(again, "whsec_") {
		t.Error("the secret is shown a second time")
	}
	two := "/console/org-a/two.acme.example/webhooks/" + w.ID
	if res := b.do("GET", two, nil); res.StatusCode != 404 {
		t.Errorf("under another project: %d", res.StatusCode)
	}
	if res := b.send(at+"/remove", url.Values{"token": {token}}); res.StatusCode != 303 {
		t.Errorf("removed: %d", res.StatusCode)
	}
	if res := b.do("GET", at, nil); res.StatusCode != 404 {
		t.Errorf("after its removal: %d", res.StatusCode)
	}
	entries, err := h.catalog.AuditLog(t.Context(), api.AuditQuery{Org: "org-a", Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range entries {
		actions = append(actions, e.Action+" "+e.Detail)
	}
	if said := strings.Join(actions, "\n"); strings.Contains(said, "token=1") || !strings.Contains(said, "webhook.add hooks.example.com") ||
		!strings.Contains(said, "webhook.remove") || !strings.Contains(said, "webhook.rotate") {
		t.Errorf("the audit log has\n%s", said)
	}
	for _, who := range []string{"viewer", "editor", "stranger", "nobody"} {
		if res := h.visitor(who).do("GET", base, nil); res.StatusCode == 200 {
			t.Errorf("%s sees where events go", who)
		}
	}
}
