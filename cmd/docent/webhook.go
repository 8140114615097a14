package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/actors"
	"docent/api"
	"docent/outbound"
	"docent/outcomes"
	"docent/persistence/catalog"
	"docent/persistence/journal"
	"docent/secrets"
	"docent/web"
	"docent/webhooks"
)

const (
	opWebhookAdd        = "webhook.add"
	opWebhookList       = "webhook.list"
	opWebhookRemove     = "webhook.remove"
	opWebhookPause      = "webhook.pause"
	opWebhookRotate     = "webhook.rotate"
	opWebhookTest       = "webhook.test"
	opWebhookReplay     = "webhook.replay"
	opWebhookDeliveries = "webhook.deliveries"
)

// openWebhooks makes what tells other systems what happens.
func (a *app) openWebhooks() error {
	events, err := a.journal.Follow(catalog.WebhookFollower)
	if err != nil {
		return fmt.Errorf("follow the journal for webhooks: %w", err)
	}
	a.closers = append(a.closers, func() error { events.Close(); return nil })
	a.hooks, err = webhooks.New(webhooks.Deps{Desk: a.stores.desk(a.log), Streams: a.journal, Events: events,
		PublicURL: a.config.PublicURL, Alone: a.nodes.Alone})
	if err != nil {
		return err
	}
	a.closers = append(a.closers, a.hooks.Close)
	a.upkeep.metrics.MustRegister(a.hooks)
	return nil
}

// desk does with webhooks what people ask for.
func (s *stores) desk(log *slog.Logger) webhooks.Desk {
	policy := outbound.Policy{Allow: prefixes(s.config.WebhookAllow), Setting: "webhook_allow"}
	now := s.config.now
	if now == nil {
		now = time.Now
	}
	return webhooks.Desk{Catalog: s.catalog, Sender: outbound.New(policy, nil), Secrets: s.secrets, Now: now, Log: log}
}

type webhookParams struct {
	ID      string          `json:"id,omitempty"`
	Project api.ProjectID   `json:"project,omitempty"`
	URL     string          `json:"url,omitempty"`
	Events  []api.EventKind `json:"events,omitempty"`
	Resume  bool            `json:"resume,omitempty"`
	Overlap string          `json:"overlap,omitempty"`
	Event   string          `json:"event,omitempty"`
	Since   time.Time       `json:"since,omitzero"`
}

// A outgoingMade is a webhook with the secret that is shown once.
type outgoingMade struct {
	api.Webhook
	SigningSecret string `json:"signingSecret"`
}

func (o *operations) addWebhook(ctx context.Context, p webhookParams, _ Progress) (made outgoingMade, err error) {
	err = o.withJournal(ctx, func(j journal.Store) (err error) {
		made.Webhook, made.SigningSecret, err = o.desk().Add(ctx, p.Project, p.URL, p.Events, j.Position())
		return err
	})
	if err == nil {
		o.changedWebhook(ctx, opWebhookAdd, made.Webhook)
	}
	return made, err
}

func (o *operations) desk() webhooks.Desk {
	if o.app != nil {
		return o.app.hooks.Desk
	}
	return o.stores.desk(slog.New(slog.DiscardHandler))
}

// changedWebhook has a running server look at its webhooks, and writes into the audit log.
func (o *operations) changedWebhook(ctx context.Context, action string, w api.Webhook) {
	if o.app != nil {
		o.app.hooks.Wake()
	}
	o.audit(ctx, api.AuditEntry{Project: w.Project, Action: action, Object: w.ID, Detail: web.HostOf(w.URL)})
}

func (o *operations) listWebhooks(ctx context.Context, p webhookParams, _ Progress) ([]api.WebhookStatus, error) {
	return o.stores.catalog.Webhooks(ctx, p.Project)
}

func (o *operations) removeWebhook(ctx context.Context, p webhookParams, _ Progress) (struct{}, error) {
	w, err := o.stores.catalog.Webhook(ctx, p.ID)
	if err == nil {
		err = o.desk().Remove(ctx, p.ID)
	}
	if err == nil {
		o.changedWebhook(ctx, opWebhookRemove, w.Webhook)
	}
	return struct{}{}, err
}

func (o *operations) pauseWebhook(ctx context.Context, p webhookParams, _ Progress) (api.Webhook, error) {
	w, err := o.desk().Pause(ctx, p.ID, !p.Resume)
	if err == nil {
		action := opWebhookPause
		if p.Resume {
			action = "webhook.resume"
		}
		o.changedWebhook(ctx, action, w)
	}
	return w, err
}

func (o *operations) rotateWebhook(ctx context.Context, p webhookParams, _ Progress) (made outgoingMade, err error) {
	overlap := webhooks.Overlap
	if p.Overlap != "" {
		if overlap, err = time.ParseDuration(p.Overlap); err != nil {
			return made, &api.InvalidError{Problems: []api.Problem{{Field: "overlap", Message: "must be a time such as 24h"}}}
		}
	}
	if made.Webhook, made.SigningSecret, err = o.desk().Rotate(ctx, p.ID, overlap); err == nil {
		o.changedWebhook(ctx, opWebhookRotate, made.Webhook)
	}
	return made, err
}

func (o *operations) testWebhook(ctx context.Context, p webhookParams, _ Progress) (api.WebhookDelivery, error) {
	return o.desk().Test(ctx, p.ID)
}

// A replayed is what was sent again: one delivery, or so many events that are on their way.
type replayed struct {
	Delivery *api.WebhookDelivery `json:"delivery,omitempty"`
	Events   int                  `json:"events"`
}

func (o *operations) replayWebhook(ctx context.Context, p webhookParams, _ Progress) (out replayed, err error) {
	w, err := o.stores.catalog.Webhook(ctx, p.ID)
	if err != nil {
		return out, err
	}
	if p.Event != "" {
		d, err := o.desk().Replay(ctx, p.ID, p.Event)
		out = replayed{&d, 1}
		if err != nil {
			return out, err
		}
	} else if out.Events, err = o.desk().ReplaySince(ctx, p.ID, p.Since); err != nil {
		return out, err
	}
	o.changedWebhook(ctx, opWebhookReplay, w.Webhook)
	return out, nil
}

func (o *operations) listDeliveries(ctx context.Context, p webhookParams, _ Progress) ([]api.WebhookDelivery, error) {
	if _, err := o.stores.catalog.Webhook(ctx, p.ID); err != nil {
		return nil, err
	}
	return o.stores.catalog.Deliveries(ctx, p.ID, 100)
}

func newWebhookCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	cmd := &cobra.Command{Use: "webhook", Short: "Tell other systems what happens: signed webhooks that are sent at least once, in order"}
	operatorFlags(cmd, o)
	cmd.AddCommand(newWebhookAddCommand(o), newWebhookListCommand(o),
		webhookAction(o, "remove ID", "Remove a webhook; what waits for it is not sent", "removed", opWebhookRemove, webhookParams{}),
		webhookAction(o, "pause ID", "Send nothing to a webhook until it is resumed; events wait for 30 days", "paused", opWebhookPause,
			webhookParams{}),
		webhookAction(o, "resume ID", "Send again what waits for a webhook, beginning now", "resumed", opWebhookPause,
			webhookParams{Resume: true}),
		newWebhookRotateCommand(o), newWebhookTestCommand(o), newWebhookReplayCommand(o), newWebhookDeliveriesCommand(o))
	return cmd
}

func newWebhookAddCommand(o *operator) *cobra.Command {
	var p webhookParams
	var kinds []string
	cmd := &cobra.Command{
		Use: "add URL", Short: "Add a webhook and print the secret that its deliveries are signed with, once", Args: cobra.ExactArgs(1),
		SuggestFor: []string{"create", "new"},
		Example: "  docent webhook add https://hooks.example.com/docs --project docs\n" +
			"  docent webhook add https://hooks.example.com/docs --project docs --event job.ended --event pull_request.merged",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := required(cmd, "project"); err != nil {
				return err
			}
			p.URL = args[0]
			for _, k := range kinds {
				p.Events = append(p.Events, api.EventKind(k))
			}
			return show(o, cmd, opWebhookAdd, p, printWebhook)
		},
	}
	cmd.Flags().StringVar((*string)(&p.Project), "project", "", "project")
	cmd.Flags().StringSliceVar(&kinds, "event", nil, "an event that is sent; several may be named (all where none is)")
	return cmd
}

func printWebhook(w io.Writer, made outgoingMade) error {
	_, err := fmt.Fprintf(w, "%s\n%s\n", made.ID, made.SigningSecret)
	return err
}

func newWebhookListCommand(o *operator) *cobra.Command {
	var p webhookParams
	cmd := &cobra.Command{
		Use: "list", Short: "List the webhooks and how their receivers fare", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const head = "ID\tPROJECT\tSTATE\tEVENTS\tURL\tLAST PROBLEM"
			return showRows(o, cmd, opWebhookList, p, head, func(w api.WebhookStatus) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", w.ID, w.Project, w.Condition(), webhookEvents(w.Webhook), w.URL,
					cmp.Or(w.OffReason, w.State.Error, "-"))
			})
		},
	}
	cmd.Flags().StringVar((*string)(&p.Project), "project", "", "only those of this project")
	return cmd
}

func webhookEvents(w api.Webhook) string {
	var names []string
	for _, k := range w.Events {
		names = append(names, string(k))
	}
	return cmp.Or(strings.Join(names, ","), "all")
}

// webhookAction is a command that does something with a webhook and has nothing to show.
func webhookAction(o *operator, use, short, done, op string, p webhookParams) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.ID = args[0]
			if err := o.run(cmd, op, p, nil); err != nil {
				return err
			}
			return o.did(cmd, map[string]string{done: p.ID}, "webhook %s is %s", p.ID, done)
		},
	}
}

func newWebhookRotateCommand(o *operator) *cobra.Command {
	var p webhookParams
	cmd := &cobra.Command{
		Use: "rotate ID", Short: "Give a webhook a new secret; for a day deliveries are signed with the old one as well", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.ID = args[0]
			return show(o, cmd, opWebhookRotate, p, func(w io.Writer, made outgoingMade) error {
				if made.OldUntil != nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "Deliveries are signed with the old secret as well until %s.\n", shownTime(*made.OldUntil))
				}
				_, err := fmt.Fprintln(w, made.SigningSecret)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&p.Overlap, "overlap", "24h", "how long the old secret goes on; 0s where it has leaked")
	return cmd
}

func newWebhookTestCommand(o *operator) *cobra.Command {
	return &cobra.Command{
		Use: "test ID", Short: "Send a test event to a webhook now and print what its receiver answers", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var d api.WebhookDelivery
			if err := o.run(cmd, opWebhookTest, webhookParams{ID: args[0]}, &d); err != nil {
				return err
			}
			return o.sent(cmd, d)
		},
	}
}

// sent says what came of a delivery. It fails where the receiver did not take it.
func (o *operator) sent(cmd *cobra.Command, d api.WebhookDelivery) error {
	if d.Error != "" {
		return fmt.Errorf("%s was not taken: %s", d.Event, strings.TrimSuffix(d.Error+": "+d.Answer, ": "))
	}
	return o.did(cmd, d, "%s was taken: %d %s", d.Event, d.Code, d.Answer)
}

func newWebhookReplayCommand(o *operator) *cobra.Command {
	var p webhookParams
	var since string
	cmd := &cobra.Command{
		Use: "replay ID", Short: "Send one event again now, or all since a time in their order", Args: cobra.ExactArgs(1),
		Example: "  docent webhook replay whk_… --since 24h\n  docent webhook replay whk_… --since 2026-11-23T08:00:00Z\n" +
			"  docent webhook replay whk_… --event evt_…",
		RunE: func(cmd *cobra.Command, args []string) error {
			p.ID = args[0]
			if (p.Event == "") == (since == "") {
				return usagef("name either --event or --since; see '%s --help'", cmd.CommandPath())
			}
			if since != "" {
				var err error
				if p.Since, err = sinceWhen(since); err != nil {
					return err
				}
			}
			var out replayed
			if err := o.run(cmd, opWebhookReplay, p, &out); err != nil {
				return err
			}
			if out.Delivery != nil {
				return o.sent(cmd, *out.Delivery)
			}
			return o.did(cmd, out, "%d events are sent again", out.Events)
		},
	}
	cmd.Flags().StringVar(&p.Event, "event", "", "the event's id, as `docent webhook deliveries` lists it")
	cmd.Flags().StringVar(&since, "since", "", "a time such as 2026-11-23T08:00:00Z, or how long ago: 24h")
	return cmd
}

// sinceWhen reads a time, or how long ago it was.
func sinceWhen(text string) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-ago.Abs()), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usagef("--since %q is neither a time such as 2026-11-23T08:00:00Z nor how long ago, such as 24h", text)
	}
	return at, nil
}

func newWebhookDeliveriesCommand(o *operator) *cobra.Command {
	return &cobra.Command{
		Use: "deliveries ID", Short: "List a webhook's newest deliveries with what its receiver answered", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			const head = "EVENT\tKIND\tHAPPENED\tSTATUS\tATTEMPTS\tLAST\tANSWER"
			return showRows(o, cmd, opWebhookDeliveries, webhookParams{ID: args[0]}, head, func(d api.WebhookDelivery) string {
				answer := strings.TrimSpace(d.Error + " " + d.Answer)
				if d.Error == "" {
					answer = strings.TrimSpace(fmt.Sprint(d.Code) + " " + d.Answer)
				}
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s", d.Event, d.Kind, shownTime(d.EventAt), d.Status, d.Attempts, shownTime(d.At),
					answer)
			})
		},
	}
}

// ownWebhooks are the webhooks of this server, for its pages.
type ownWebhooks struct {
	*catalog.Catalog
	app *app
}

func (o ownWebhooks) Add(ctx context.Context, project api.ProjectID, address string, kinds []api.EventKind) (api.Webhook, string,
	error) {
	return o.app.hooks.Add(ctx, project, address, kinds, o.app.journal.Position())
}

func (o ownWebhooks) Remove(ctx context.Context, id string) error { return o.app.hooks.Remove(ctx, id) }

func (o ownWebhooks) Pause(ctx context.Context, id string, off bool) error {
	_, err := o.app.hooks.Pause(ctx, id, off)
	o.app.hooks.Wake()
	return err
}

func (o ownWebhooks) Rotate(ctx context.Context, id string, now bool) (string, error) {
	overlap := webhooks.Overlap
	if now {
		overlap = 0
	}
	_, secret, err := o.app.hooks.Rotate(ctx, id, overlap)
	return secret, err
}

func (o ownWebhooks) Test(ctx context.Context, id string) (api.WebhookDelivery, error) {
	return o.app.hooks.Test(ctx, id)
}

func (o ownWebhooks) Replay(ctx context.Context, id, event string) (api.WebhookDelivery, error) {
	return o.app.hooks.Replay(ctx, id, event)
}

func (o ownWebhooks) ReplaySince(ctx context.Context, id string, since time.Time) (int, error) {
	n, err := o.app.hooks.ReplaySince(ctx, id, since)
	o.app.hooks.Wake()
	return n, err
}

// Each port with what serves it.
var (
	_ web.Webhooks     = ownWebhooks{}
	_ webhooks.Catalog = (*catalog.Catalog)(nil)
	_ webhooks.Streams = journal.Store(nil)
	_ webhooks.Log     = (journal.Follower)(nil)
	_ webhooks.Sender  = (*outbound.Sender)(nil)
	_ webhooks.Secrets = (*secrets.Store)(nil)
	_ outcomes.Catalog = (*catalog.Catalog)(nil)
	_ outcomes.Jobs    = (*actors.Jobs)(nil)
)
