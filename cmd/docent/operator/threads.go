package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"docent/actors/retention"
	"docent/actors/thread"
	"docent/api"
	"docent/internal/background"
	"docent/persistence/journal"
)

type (
	// ThreadParams name a thread, or the threads of a person.
	ThreadParams struct {
		Project api.ProjectID `json:"project"`
		Caller  string        `json:"fp,omitempty"`
		Thread  api.ThreadID  `json:"thread,omitempty"`
	}
	// ThreadList is threads of a project.
	ThreadList struct {
		Threads    []ThreadRow `json:"threads"`
		Unreadable int         `json:"unreadable,omitempty"` // threads of which nobody can say whose they are
	}
	// ThreadRow is one thread.
	ThreadRow struct {
		ID        api.ThreadID  `json:"id"`
		Project   api.ProjectID `json:"project"`
		Caller    string        `json:"fp"`
		Opened    time.Time     `json:"openedAt"`
		Used      time.Time     `json:"usedAt"`
		Questions int           `json:"questions"`
		claims    []string
	}
)

func (o *Service) listThreads(ctx context.Context, p ThreadParams, progress Progress) (list ThreadList, err error) {
	if _, err := o.stores.Catalog.Project(ctx, p.Project); err != nil && !errors.Is(err, api.ErrNotFound) {
		return list, err // threads of a project that was removed can be listed, and removed
	}
	err = o.withJournal(ctx, func(j journal.Store) error {
		list.Unreadable, err = retention.Each(j, func(c thread.Conversation) bool {
			if c.Project == p.Project && (p.Caller == "" || c.Caller == p.Caller) && (p.Thread == "" || c.Thread == p.Thread) {
				list.Threads = append(list.Threads, ThreadRow{c.Thread, c.Project, c.Caller, c.Opened, c.Used(), len(c.Turns),
					c.Claims()})
			}
			return ctx.Err() == nil
		})
		return errors.Join(err, ctx.Err())
	})
	return list, err
}

// deleteThreads removes threads with everything of theirs. A thread that is awake removes itself.
func (o *Service) deleteThreads(ctx context.Context, p ThreadParams, progress Progress) (ThreadList, error) {
	if p.Caller == "" && p.Thread == "" {
		return ThreadList{}, errors.New("name the person (fp) or the thread")
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
		group, ctx := background.WithContext(ctx)
		group.SetLimit(retention.AtOnce)
		for _, row := range list.Threads {
			group.Go(func() error {
				var err error
				if o.server != nil {
					err = o.server.Forget(ctx, row.ID, row.Project)
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
