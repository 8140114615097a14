package commands

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
)

func newJournalCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog, Here: operator.InspectHere}
	cmd := &cobra.Command{Use: "journal", Short: "Check, inspect, compact, and copy the event journal"}
	cli.OperatorFlags(cmd, o)
	check := &cobra.Command{
		Use: "check", Short: "Check the whole journal and report damage; the server may run", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var r operator.JournalReport
			if err := o.Run(cmd, operator.OpJournalCheck, nil, &r); err != nil {
				return err
			}
			return printReport(cmd, o.JSON, r)
		},
	}
	show := &cobra.Command{
		Use: "show ID", Short: "Print the snapshot and the events of a job or thread, a JSON object a line; the server may run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			stream, err := streamName(args[0])
			if err != nil {
				return err
			}
			var shown []operator.ShownRecord
			if err := o.Run(cmd, operator.OpJournalShow, operator.StreamParams{Stream: stream}, &shown); err != nil {
				return err
			}
			for _, r := range shown {
				if err := cli.PrintJSON(cmd.OutOrStdout(), r); err != nil {
					return err
				}
			}
			return nil
		},
	}
	var yes bool
	drop := &cobra.Command{
		Use: "drop ID...", Short: "Remove jobs or threads from the journal, damaged or not; the server must be stopped",
		Args: cobra.MinimumNArgs(1), SuggestFor: []string{"repair"},
		Long: "Take jobs or threads out of the journal, damaged or not: the server then does not know them. Their records are first written\n" +
			"unchanged to a file in the folder set-aside of the data directory. Restore a backup instead if there is a recent one: other\n" +
			"damage cannot be taken out. Without --yes nothing is changed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.Load(cmd)
			if err != nil {
				return err
			}
			for i, name := range args {
				if args[i], err = streamName(name); err != nil {
					return err
				}
			}
			done, err := operator.DropStreams(c, args, yes)
			if err != nil {
				return err
			}
			return o.Did(cmd, done, "%s: taken out; the records are in %s", strings.Join(args, ", "), done.Kept)
		},
	}
	drop.Flags().BoolVar(&yes, "yes", false, "do it (without this flag, nothing changes)")
	compact := &cobra.Command{
		Use: "compact", Short: "Give the journal's free space back to the disk; the server must be stopped",
		Args: cobra.NoArgs,
		Long: "Copy the journal into a new file without the space that is free in it, and put that in its place. The server must be\n" +
			"stopped. The journal never needs this: it uses free space again. It needs room for both files while it works.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.Load(cmd)
			if err != nil {
				return err
			}
			done, err := operator.CompactJournal(c)
			if err != nil {
				return err
			}
			return o.Did(cmd, done, "the journal had %d bytes and has %d", done.Before, done.After)
		},
	}
	cmd.AddCommand(check, show, drop, compact, newAdoptCommand(o), newJournalCopyCommand(o))
	return cmd
}

// streamName is the stream of a job or thread, from its name or its id.
func streamName(name string) (string, error) {
	switch {
	case strings.Contains(name, "/"):
		return name, nil
	case strings.HasPrefix(name, api.JobPrefix):
		return job.Stream(api.JobID(name)), nil
	case strings.HasPrefix(name, api.ThreadPrefix):
		return thread.Stream(api.ThreadID(name)), nil
	}
	return "", cli.Usagef("%q is neither the id of a job (%s…) or thread (%s…) nor a stream such as job/ID", name,
		api.JobPrefix, api.ThreadPrefix)
}

// printReport prints what a check found, and fails where it found something.
func printReport(cmd *cobra.Command, asJSON bool, r operator.JournalReport) error {
	out := cmd.OutOrStdout()
	if asJSON {
		if err := cli.PrintJSON(out, r); err != nil {
			return err
		}
	} else {
		for _, p := range r.Problems {
			fmt.Fprintf(out, "%s", p.File)
			if p.Stream != "" {
				fmt.Fprintf(out, ": stream %s", p.Stream)
			}
			if p.Sequence != 0 {
				fmt.Fprintf(out, ", sequence %d", p.Sequence)
			}
			if p.Position != 0 {
				fmt.Fprintf(out, ", position %d", p.Position)
			}
			if p.Bucket != "" {
				fmt.Fprintf(out, " (%s)", p.Bucket)
			}
			fmt.Fprintf(out, ": %s\n  %s\n", p.Problem, p.Advice)
		}
		fmt.Fprintf(out, "%s: %d streams, %d events and %d snapshots, up to position %d, %d bytes\n", r.File, r.Streams,
			r.Events, r.Snapshots, r.Position, r.Bytes)
	}
	switch r.Found {
	case 0:
		if !asJSON {
			fmt.Fprintln(out, "nothing is wrong")
		}
		return nil
	case 1:
		return errors.New("one thing is wrong in the journal")
	}
	return fmt.Errorf("%d things are wrong in the journal", r.Found)
}
