package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"docent/actors/thread"
	"docent/api"
	"docent/persistence/journal"
	"docent/retention"
)

const (
	opThreadList   = "thread.list"
	opThreadDelete = "thread.delete"
)

type (
	threadParams struct {
		Project api.ProjectID `json:"project"`
		Caller  string        `json:"fp,omitempty"`
		Thread  api.ThreadID  `json:"thread,omitempty"`
	}
	threadList struct {
		Threads    []threadRow `json:"threads"`
		Unreadable int         `json:"unreadable,omitempty"` // threads of which nobody can say whose they are
	}
	threadRow struct {
		ID        api.ThreadID  `json:"id"`
		Project   api.ProjectID `json:"project"`
		Caller    string        `json:"fp"`
		Opened    time.Time     `json:"openedAt"`
		Used      time.Time     `json:"usedAt"`
		Questions int           `json:"questions"`
		claims    []string
	}
)

func (o *operations) listThreads(ctx context.Context, p threadParams, progress Progress) (list threadList, err error) {
	if _, err := o.stores.catalog.Project(ctx, p.Project); err != nil && !errors.Is(err, api.ErrNotFound) {
		return list, err // threads of a project that was removed can be listed, and removed
	}
	err = o.withJournal(ctx, func(j journal.Store) error {
		list.Unreadable, err = retention.Each(j, func(c thread.Conversation) bool {
			if c.Project == p.Project && (p.Caller == "" || c.Caller == p.Caller) && (p.Thread == "" || c.Thread == p.Thread) {
				list.Threads = append(list.Threads, threadRow{c.Thread, c.Project, c.Caller, c.Opened, c.Used(), len(c.Turns),
					c.Claims()})
			}
			return ctx.Err() == nil
		})
		return errors.Join(err, ctx.Err())
	})
	return list, err
}

// deleteThreads removes threads with everything of theirs. A thread that is awake removes itself.
func (o *operations) deleteThreads(ctx context.Context, p threadParams, progress Progress) (threadList, error) {
	if p.Caller == "" && p.Thread == "" {
		return threadList{}, errors.New("name the person (fp) or the thread")
	}
	list, err := o.listThreads(ctx, p, progress)
	if err != nil {
		return list, err
	}
	if p.Thread != "" && len(list.Threads) == 0 {
		return list, fmt.Errorf("thread %s of project %s: %w", p.Thread, p.Project, api.ErrNotFound)
	}
	return list, o.withJournal(ctx, func(j journal.Store) error {
		var mu sync.Mutex // guards done and progress
		done := 0
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(retention.AtOnce)
		for _, row := range list.Threads {
			group.Go(func() error {
				var err error
				if o.app != nil {
					err = o.app.forget(ctx, row.ID, row.Project)
				} else if err = ctx.Err(); err == nil {
					err = j.Delete(thread.Stream(row.ID), row.claims...)
				}
				if err != nil && !errors.Is(err, api.ErrNotFound) {
					return fmt.Errorf("remove thread %s: %w", row.ID, err)
				}
				mu.Lock()
				defer mu.Unlock()
				done++
				progress("removing threads", done, len(list.Threads))
				return nil
			})
		}
		return group.Wait()
	})
}

func newThreadCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	var p threadParams
	cmd := &cobra.Command{Use: "thread", Short: "List and remove the assistant's conversations"}
	operatorFlags(cmd, o)
	flags := func(cmd *cobra.Command) *cobra.Command {
		cmd.Flags().StringVar((*string)(&p.Project), "project", "", "project")
		cmd.Flags().StringVar(&p.Caller, "fp", "", "only threads of this person: the fp that the client sent")
		return cmd
	}
	report := func(cmd *cobra.Command, list threadList) error {
		if list.Unreadable > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(),
				"%d threads cannot be read, and are not looked at; `docent journal check` names them\n", list.Unreadable)
		}
		return printRows(cmd.OutOrStdout(), o.json, list.Threads, "ID\tFP\tOPENED\tLAST USED\tQUESTIONS",
			func(t threadRow) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%d", t.ID, t.Caller, shownTime(t.Opened), shownTime(t.Used), t.Questions)
			})
	}
	list := flags(&cobra.Command{
		Use: "list [ID]", Short: "List the threads of a project, or one thread",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "project"); err != nil {
				return err
			}
			var found threadList
			if err := o.run(cmd, opThreadList, p, &found); err != nil {
				return err
			}
			return report(cmd, found)
		},
	})
	remove := flags(&cobra.Command{
		Use: "delete [ID]", Short: "Remove one thread, or all threads of one person, with all that belongs to them",
		SuggestFor: []string{"remove", "rm"},
		Long: "Remove one thread (ID), or one person's threads (--fp), with everything of theirs: questions, answers and listings.\n" +
			"The server may run; an answer that is being written breaks off. Backups made before still hold them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "project"); err != nil {
				return err
			}
			switch {
			case p.Caller == "" && p.Thread == "":
				return usagef("%s needs the ID of a thread, or --fp; see '%s --help'", commandName(cmd), cmd.CommandPath())
			case p.Caller == "anonymous" && p.Thread == "":
				return usagef("anonymous is everybody who gave no name, not one person: name threads by their ID, or set thread_retention")
			}
			var gone threadList
			if err := o.run(cmd, opThreadDelete, p, &gone); err != nil {
				return err
			}
			if err := report(cmd, gone); err != nil || o.json {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d removed\n", len(gone.Threads))
			return err
		},
	})
	named(list, (*string)(&p.Thread), "thread", "a thread's ID", true)
	named(remove, (*string)(&p.Thread), "thread", "a thread's ID", true)
	cmd.AddCommand(list, remove)
	return cmd
}
