package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/automation"
)

const (
	opAutomationAdd    = "automation.add"
	opAutomationList   = "automation.list"
	opAutomationRemove = "automation.remove"
	opAutomationRun    = "automation.run"
)

type automationParams struct {
	Project api.ProjectID `json:"project,omitempty"`
	ID      string        `json:"id,omitempty"` // or its name
}

func (o *operations) addAutomation(ctx context.Context, a api.Automation, _ Progress) (api.Automation, error) {
	now := time.Now().UTC()
	a.ID, a.CreatedAt = api.AutomationID(api.NewID(api.AutomationPrefix, now)), now
	if err := a.Validate(); err != nil {
		return a, err
	}
	project, err := o.stores.catalog.Project(ctx, a.Project)
	if err != nil {
		return a, err
	}
	if a, err = automation.Check(ctx, repositories{o.stores.hub}, project, a, now); err != nil {
		return a, err
	}
	if err := o.stores.catalog.AddAutomation(ctx, a); err != nil {
		return a, err
	}
	if o.app != nil {
		o.app.automations.Wake()
	}
	return a, nil
}

// findAutomation takes an id, or the name of one of a project.
func (o *operations) findAutomation(ctx context.Context, p automationParams) (api.Automation, error) {
	if api.ValidID(api.AutomationPrefix, p.ID) {
		return o.stores.catalog.Automation(ctx, api.AutomationID(p.ID))
	}
	list, err := o.stores.catalog.Automations(ctx, p.Project)
	if err != nil {
		return api.Automation{}, err
	}
	var found []api.Automation
	for _, a := range list {
		if a.Name == p.ID {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return api.Automation{}, fmt.Errorf("automation %q: %w", p.ID, api.ErrNotFound)
	case 1:
		return found[0], nil
	}
	return api.Automation{}, &api.StateError{Kind: api.ErrConflict,
		Reason: fmt.Sprintf("%d projects have an automation %q: name one with --project", len(found), p.ID)}
}

func (o *operations) listAutomations(ctx context.Context, p automationParams, _ Progress) ([]api.Automation, error) {
	return o.stores.catalog.Automations(ctx, p.Project)
}

func (o *operations) removeAutomation(ctx context.Context, p automationParams, _ Progress) (struct{}, error) {
	a, err := o.findAutomation(ctx, p)
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, o.stores.catalog.RemoveAutomation(ctx, a.ID)
}

// runAutomation accepts a run now. Without a server, the next one carries it out.
func (o *operations) runAutomation(ctx context.Context, p automationParams, _ Progress) (api.Automation, error) {
	a, err := o.findAutomation(ctx, p)
	if err != nil {
		return a, err
	}
	now := time.Now().UTC()
	run := api.AutomationRun{Automation: a.ID, Trigger: api.TriggerManual, At: now, Commit: a.Seen,
		Key: string(a.ID) + " manual " + api.NewID("", now)}
	unchanged := func(*api.Automation) {}
	if o.app != nil {
		err = o.app.automations.Accept(ctx, run, unchanged)
	} else {
		_, _, err = o.stores.catalog.BeginRun(ctx, run, unchanged)
	}
	if err != nil {
		return a, err
	}
	return o.stores.catalog.Automation(ctx, a.ID)
}

func newAutomationCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	cmd := &cobra.Command{Use: "automation", Short: "Jobs that start by themselves: at times, or on a push"}
	operatorFlags(cmd, o)
	var a api.Automation
	add := &cobra.Command{
		Use: "add NAME", Short: "Add an automation", SuggestFor: []string{"create", "new"},
		Example: "  docent automation add fresh --project docs --prompt .docent/fresh.md --cron '0 6 * * 1' --time-zone Europe/Berlin\n" +
			"  docent automation add api --project docs --prompt .docent/api.md --on-push-of acme/api",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "project", "prompt"); err != nil {
				return err
			}
			return show(o, cmd, opAutomationAdd, a, printAutomation)
		},
	}
	flags := add.Flags()
	flags.StringVar((*string)(&a.Project), "project", "", "project")
	flags.StringVar(&a.Prompt, "prompt", "", "path of the file with the instruction, in the documentation's repository")
	flags.StringVar(&a.Cron, "cron",
		"", "when: minute, hour, day of the month, month, day of the week, such as '0 6 * * 1'")
	flags.StringVar(&a.TimeZone, "time-zone", "", "time zone of --cron, such as Europe/Berlin (UTC where empty)")
	flags.BoolVar(&a.OnPush, "on-push", false, "when the documentation has a new commit")
	flags.StringVar(&a.Repository, "on-push-of", "",
		"when this code repository, OWNER/NAME, is pushed to; its code host sends a webhook")
	flags.StringVar(&a.Branch, "branch", "", "branch of --on-push-of (its default branch where empty)")
	flags.IntVar(&a.DailyCap, "daily-cap", 5, "how often it may run in a day")
	flags.BoolVar(&a.Draft, "draft", false, "open pull requests as drafts")
	named(add, &a.Name, "name", "the automation's NAME", false)

	var project string
	list := &cobra.Command{
		Use: "list", Short: "List the automations: their state and when they run next", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const head = "ID\tPROJECT\tNAME\tWHEN\tNEXT\tLAST\tJOB"
			params := automationParams{Project: api.ProjectID(project)}
			return showRows(o, cmd, opAutomationList, params, head, func(a api.Automation) string {
				next, last := "on a push", "never"
				if a.Next != nil {
					next = shownTime(*a.Next)
				}
				if r := a.Last; r != nil {
					last = strings.TrimSuffix(fmt.Sprintf("%s %s: %s", shownTime(r.At), r.Status, r.Reason), ": ")
				}
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", a.ID, a.Project, a.Name, automationWhen(a), next, last,
					cmp.Or(string(a.Job), "-"))
			})
		},
	}
	list.Flags().StringVar(&project, "project", "", "only those of this project")
	remove := &cobra.Command{
		Use: "remove NAME|ID", Short: "Remove an automation; its jobs and pull requests stay", Args: cobra.ExactArgs(1),
		SuggestFor: []string{"delete", "rm"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.run(cmd, opAutomationRemove, automationParams{Project: api.ProjectID(project), ID: args[0]},
				nil); err != nil {
				return err
			}
			return o.did(cmd, map[string]string{"removed": args[0]}, "automation %s is removed", args[0])
		},
	}
	remove.Flags().StringVar(&project, "project", "", "project, where several have one of that name")
	run := &cobra.Command{
		Use: "run NAME|ID", Short: "Run an automation now, or when the server starts; it counts as one of the day's runs",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(o, cmd, opAutomationRun, automationParams{Project: api.ProjectID(project), ID: args[0]}, printAutomation)
		},
	}
	run.Flags().StringVar(&project, "project", "", "project, where several have one of that name")
	cmd.AddCommand(add, list, remove, run)
	return cmd
}

func printAutomation(w io.Writer, a api.Automation) error {
	_, err := fmt.Fprintf(w, "%s  %s\n", a.ID, automationState(a))
	return err
}

// automationWhen is what starts an automation, in words.
func automationWhen(a api.Automation) string {
	var when []string
	if a.Cron != "" {
		when = append(when, strings.TrimSpace(a.Cron+" "+a.TimeZone))
	}
	if a.OnPush {
		when = append(when, "push")
	}
	if a.Repository != "" {
		when = append(when, strings.TrimSuffix("push of "+a.Repository+"@"+a.Branch, "@"))
	}
	return strings.Join(when, ", ")
}

// automationState is what an automation does next, in words.
func automationState(a api.Automation) string {
	switch r := a.Last; {
	case r == nil:
	case r.Status == api.RunAccepted:
		return "accepted"
	case r.Status == api.RunStarted:
		return "job " + string(r.Job)
	default:
		return string(r.Status) + ": " + r.Reason
	}
	if a.Next != nil {
		return "next at " + shownTime(*a.Next)
	}
	return "on a push"
}
