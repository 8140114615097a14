package commands

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
	"docent/internal/health"
)

func newWebhookCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	cmd := &cobra.Command{Use: "webhook", Short: "Send signed events to other systems, in order and at least once"}
	cli.OperatorFlags(cmd, o)
	cmd.AddCommand(newWebhookAddCommand(o), newWebhookListCommand(o),
		webhookAction(o, "remove ID", "Remove a webhook; what waits for it is not sent", "removed", operator.OpWebhookRemove, operator.WebhookParams{}),
		webhookAction(o, "pause ID", "Send nothing to a webhook until it is resumed; events wait for 30 days", "paused", operator.OpWebhookPause,
			operator.WebhookParams{}),
		webhookAction(o, "resume ID", "Send again what waits for a webhook, beginning now", "resumed", operator.OpWebhookPause,
			operator.WebhookParams{Resume: true}),
		newWebhookRotateCommand(o), newWebhookTestCommand(o), newWebhookReplayCommand(o), newWebhookDeliveriesCommand(o))
	return cmd
}

func newWebhookAddCommand(o *cli.Operator) *cobra.Command {
	var p operator.WebhookParams
	var kinds []string
	cmd := &cobra.Command{
		Use: "add URL", Short: "Add a webhook and print the secret that its deliveries are signed with, once", Args: cobra.ExactArgs(1),
		SuggestFor: []string{"create", "new"},
		Example: "  docent webhook add https://hooks.example.com/docs --project docs\n" +
			"  docent webhook add https://hooks.example.com/docs --project docs --event job.ended --event pull_request.merged",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.Required(cmd, "project"); err != nil {
				return err
			}
			p.URL = args[0]
			for _, k := range kinds {
				p.Events = append(p.Events, api.EventKind(k))
			}
			return cli.Show(o, cmd, operator.OpWebhookAdd, p, printWebhook)
		},
	}
	cmd.Flags().StringVar((*string)(&p.Project), "project", "", "project")
	cmd.Flags().StringSliceVar(&kinds, "event", nil, "event to send (repeatable; default: all)")
	return cmd
}

func printWebhook(w io.Writer, made operator.OutgoingMade) error {
	_, err := fmt.Fprintf(w, "%s\n%s\n", made.ID, made.SigningSecret)
	return err
}

func newWebhookListCommand(o *cli.Operator) *cobra.Command {
	var p operator.WebhookParams
	cmd := &cobra.Command{
		Use: "list", Short: "List the webhooks and the state of their receivers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const head = "ID\tPROJECT\tSTATE\tEVENTS\tURL\tLAST PROBLEM"
			return cli.ShowRows(o, cmd, operator.OpWebhookList, p, head, func(w api.WebhookStatus) string {
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
func webhookAction(o *cli.Operator, use, short, done, op string, p operator.WebhookParams) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.ID = args[0]
			return o.Do(cmd, op, p, map[string]string{done: p.ID}, "webhook %s is %s", p.ID, done)
		},
	}
}

func newWebhookRotateCommand(o *cli.Operator) *cobra.Command {
	var p operator.WebhookParams
	cmd := &cobra.Command{
		Use: "rotate ID", Short: "Give a webhook a new secret; for a day deliveries are signed with the old one as well", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.ID = args[0]
			return cli.Show(o, cmd, operator.OpWebhookRotate, p, func(w io.Writer, made operator.OutgoingMade) error {
				if made.OldUntil != nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "Deliveries are signed with the old secret as well until %s.\n", health.LocalTime(*made.OldUntil))
				}
				_, err := fmt.Fprintln(w, made.SigningSecret)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&p.Overlap, "overlap", "24h", "how long the old secret keeps working; 0s if it has leaked")
	return cmd
}

func newWebhookTestCommand(o *cli.Operator) *cobra.Command {
	return &cobra.Command{
		Use: "test ID", Short: "Send a test event to a webhook now and print what its receiver answers", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var d api.WebhookDelivery
			if err := o.Run(cmd, operator.OpWebhookTest, operator.WebhookParams{ID: args[0]}, &d); err != nil {
				return err
			}
			return sent(o, cmd, d)
		},
	}
}

// sent says what came of a delivery. It fails where the receiver did not take it.
func sent(o *cli.Operator, cmd *cobra.Command, d api.WebhookDelivery) error {
	if d.Error != "" {
		return fmt.Errorf("%s was not taken: %s", d.Event, strings.TrimSuffix(d.Error+": "+d.Answer, ": "))
	}
	return o.Did(cmd, d, "%s was taken: %d %s", d.Event, d.Code, d.Answer)
}

func newWebhookReplayCommand(o *cli.Operator) *cobra.Command {
	var p operator.WebhookParams
	var since string
	cmd := &cobra.Command{
		Use: "replay ID", Short: "Send one event again now, or all since a time in their order", Args: cobra.ExactArgs(1),
		Example: "  docent webhook replay whk_… --since 24h\n  docent webhook replay whk_… --since 2026-11-23T08:00:00Z\n" +
			"  docent webhook replay whk_… --event evt_…",
		RunE: func(cmd *cobra.Command, args []string) error {
			p.ID = args[0]
			if (p.Event == "") == (since == "") {
				return cli.Usagef("name either --event or --since; see '%s --help'", cmd.CommandPath())
			}
			if since != "" {
				var err error
				if p.Since, err = sinceWhen(since); err != nil {
					return err
				}
			}
			var out operator.Replayed
			if err := o.Run(cmd, operator.OpWebhookReplay, p, &out); err != nil {
				return err
			}
			if out.Delivery != nil {
				return sent(o, cmd, *out.Delivery)
			}
			return o.Did(cmd, out, "%s sent again", brief.Count(out.Events, "event"))
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
		return at, cli.Usagef("--since %q is neither a time such as 2026-11-23T08:00:00Z nor how long ago, such as 24h", text)
	}
	return at, nil
}

func newWebhookDeliveriesCommand(o *cli.Operator) *cobra.Command {
	return &cobra.Command{
		Use: "deliveries ID", Short: "List a webhook's newest deliveries with what its receiver answered", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			const head = "EVENT\tKIND\tHAPPENED\tSTATUS\tATTEMPTS\tLAST\tANSWER"
			return cli.ShowRows(o, cmd, operator.OpWebhookDeliveries, operator.WebhookParams{ID: args[0]}, head, func(d api.WebhookDelivery) string {
				answer := strings.TrimSpace(d.Error + " " + d.Answer)
				if d.Error == "" {
					answer = strings.TrimSpace(fmt.Sprint(d.Code) + " " + d.Answer)
				}
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s", d.Event, d.Kind, health.LocalTime(d.EventAt), d.Status, d.Attempts, health.LocalTime(d.At),
					answer)
			})
		},
	}
}
