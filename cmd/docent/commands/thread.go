package commands

import (
	"fmt"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
	"docent/internal/health"
)

func newThreadCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	var p operator.ThreadParams
	cmd := &cobra.Command{Use: "thread", Short: "List and delete conversations"}
	cli.OperatorFlags(cmd, o)
	flags := func(cmd *cobra.Command) *cobra.Command {
		cmd.Flags().StringVar((*string)(&p.Project), "project", "", "project")
		cmd.Flags().StringVar(&p.Caller, "fp", "", "only threads of this person: the fp that the client sent")
		return cmd
	}
	report := func(cmd *cobra.Command, list operator.ThreadList) error {
		if list.Unreadable > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(),
				"left out, since the journal does not have them whole: %s; `docent journal check` names what is wrong\n",
				brief.Count(list.Unreadable, "thread"))
		}
		return cli.PrintRows(cmd.OutOrStdout(), o.JSON, list.Threads, "ID\tFP\tOPENED\tLAST USED\tQUESTIONS",
			func(t operator.ThreadRow) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%d", t.ID, t.Caller, health.LocalTime(t.Opened), health.LocalTime(t.Used), t.Questions)
			})
	}
	list := flags(&cobra.Command{
		Use: "list [ID]", Short: "List the threads of a project, or one thread",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "project"); err != nil {
				return err
			}
			var found operator.ThreadList
			if err := o.Run(cmd, operator.OpThreadList, p, &found); err != nil {
				return err
			}
			return report(cmd, found)
		},
	})
	remove := flags(&cobra.Command{
		Use: "delete [ID]", Short: "Delete one thread, or all threads of one person, with everything that belongs to them",
		SuggestFor: []string{"remove", "rm"},
		Long: "Delete one thread (ID), or one person's threads (--fp), with their questions, answers, and listings. The server can keep\n" +
			"running; an answer in progress is cut off. Earlier backups still contain them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "project"); err != nil {
				return err
			}
			switch {
			case p.Caller == "" && p.Thread == "":
				return cli.Usagef("%s needs the ID of a thread, or --fp; see '%s --help'", cli.CommandName(cmd), cmd.CommandPath())
			case p.Caller == "anonymous" && p.Thread == "":
				return cli.Usagef("anonymous stands for everyone without a name, not for one person: delete threads by their ID, or set thread_retention")
			}
			var gone operator.ThreadList
			if err := o.Run(cmd, operator.OpThreadDelete, p, &gone); err != nil {
				return err
			}
			if err := report(cmd, gone); err != nil || o.JSON {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d removed\n", len(gone.Threads))
			return err
		},
	})
	cli.Named(list, (*string)(&p.Thread), "thread", "a thread's ID", true)
	cli.Named(remove, (*string)(&p.Thread), "thread", "a thread's ID", true)
	cmd.AddCommand(list, remove)
	return cmd
}
