package commands

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/health"
)

func newAutomationCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	cmd := &cobra.Command{Use: "automation", Short: "Start jobs on a schedule or on a push"}
	cli.OperatorFlags(cmd, o)
	var a api.Automation
	var checks string
	add := &cobra.Command{
		Use: "add NAME", Short: "Add an automation", SuggestFor: []string{"create", "new"},
		Example: "  docent automation add fresh --project docs --prompt .docent/fresh.md --cron '0 6 * * 1' --time-zone Europe/Berlin\n" +
			"  docent automation add api --project docs --prompt .docent/api.md --on-push-of acme/api\n" +
			"  docent automation add pages --project docs --check-pulls-of acme/api",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if checks != "" {
				if a.Repository != "" {
					return cli.Usagef("give --on-push-of or --check-pulls-of, not both")
				}
				a.Check, a.Repository = true, checks
				if !cmd.Flags().Changed("daily-cap") {
					a.DailyCap = checksADay
				}
			}
			required := []string{"project", "prompt"}
			if a.Check {
				required = required[:1]
			}
			if err := cli.Required(cmd, required...); err != nil {
				return err
			}
			return cli.Show(o, cmd, operator.OpAutomationAdd, a, printAutomation)
		},
	}
	flags := add.Flags()
	flags.StringVar((*string)(&a.Project), "project", "", "project")
	flags.StringVar(&a.Prompt, "prompt", "", "path of the file with the instruction, in the documentation's repository")
	flags.StringVar(&a.Cron, "cron",
		"", "when: minute, hour, day of the month, month, day of the week, such as '0 6 * * 1'")
	flags.StringVar(&a.TimeZone, "time-zone", "", "time zone of --cron, such as Europe/Berlin (UTC if empty)")
	flags.BoolVar(&a.OnPush, "on-push", false, "run when the documentation has a new commit")
	flags.StringVar(&a.Repository, "on-push-of", "",
		"run when this code repository, OWNER/NAME, is pushed to; its code host sends a webhook")
	flags.StringVar(&checks, "check-pulls-of", "",
		"instead of a job: comment on pull requests of this code repository, OWNER/NAME, with the pages they affect; its code host sends a webhook")
	flags.StringVar(&a.Branch, "branch", "", "branch of --on-push-of (its default branch if empty), or that pull requests are for (any if empty)")
	flags.StringVar(&a.Window, "window", "", "how long to wait for further pushes of --on-push-of, such as 30m; together they make one run")
	flags.IntVar(&a.DailyCap, "daily-cap", 5, "maximum runs per day; 200 with --check-pulls-of")
	flags.BoolVar(&a.Draft, "draft", false, "open pull requests as drafts")
	cli.Named(add, &a.Name, "name", "the automation's NAME", false)

	var project string
	list := &cobra.Command{
		Use: "list", Short: "List the automations: their state and when they run next", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const head = "ID\tPROJECT\tNAME\tWHEN\tNEXT\tLAST\tJOB"
			params := operator.AutomationParams{Project: api.ProjectID(project)}
			return cli.ShowRows(o, cmd, operator.OpAutomationList, params, head, func(a api.Automation) string {
				next, last := "on a push", "never"
				if a.Next != nil {
					next = health.LocalTime(*a.Next)
				}
				if r := a.Last; r != nil {
					last = strings.TrimSuffix(fmt.Sprintf("%s %s: %s", health.LocalTime(r.At), r.Status, r.Reason), ": ")
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
			p := operator.AutomationParams{Project: api.ProjectID(project), ID: args[0]}
			return o.Do(cmd, operator.OpAutomationRemove, p, map[string]string{"removed": args[0]}, "automation %s is removed", args[0])
		},
	}
	remove.Flags().StringVar(&project, "project", "", "project, if several have one with that name")
	run := &cobra.Command{
		Use: "run NAME|ID", Short: "Run an automation now, or when the server starts; it counts as one of the day's runs",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Show(o, cmd, operator.OpAutomationRun, operator.AutomationParams{Project: api.ProjectID(project), ID: args[0]}, printAutomation)
		},
	}
	run.Flags().StringVar(&project, "project", "", "project, if several have one with that name")
	cmd.AddCommand(add, list, remove, run)
	return cmd
}

// checksADay is how many pull requests are checked in a day if nothing is said: they cost no model.
const checksADay = 200

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
	if a.Check {
		return "pull requests of " + a.Repository
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
	if a.Check {
		return "on a pull request"
	}
	if a.Next != nil {
		return "next at " + health.LocalTime(*a.Next)
	}
	return "on a push"
}
