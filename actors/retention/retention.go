// Package retention removes threads that were not used for as long as the operator keeps them.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/internal/background"
	"docent/internal/task"
	"docent/persistence/journal"
)

// AtOnce bounds how many threads are removed at the same time: they share commits.
const AtOnce = 16

// A Keeper removes threads.
type Keeper struct {
	Journal func() Streams // as it is now
	Threads Threads
	Now     func() time.Time
	Log     *slog.Logger
	// Owns reports whether this node runs a thread: it removes those.
	Owns func(stream string) bool
}

// Streams are those of a journal.
type Streams interface {
	Streams(yield func(stream string, rec journal.Recovered) bool) error
}

// Threads are the threads' actors. A thread that is awake removes itself.
type Threads interface {
	Forget(ctx context.Context, id api.ThreadID, cmd thread.Forget) error
}

// Each yields the threads in a journal, and counts those that cannot be read.
func Each(streams Streams, yield func(thread.Conversation) bool) (unreadable int, err error) {
	prefix := thread.Stream("")
	err = streams.Streams(func(stream string, rec journal.Recovered) bool {
		id, ok := strings.CutPrefix(stream, prefix)
		if !ok {
			return true
		}
		c, ok, err := thread.History(api.ThreadID(id), rec)
		if err != nil {
			unreadable++
		}
		return !ok || yield(c)
	})
	return unreadable, err
}

// Task removes the threads that were not used for longer than retention, now and then. What is removed does not come
// back, so a time of day that was set while the server ran is not believed at once.
func (k Keeper) Task(retention time.Duration) task.Task {
	every := min(max(retention/10, time.Second), 6*time.Hour)
	started := time.Now()
	today := timeOfDay{from: k.Now().Round(0)}
	return task.Task{Name: "retention", Handle: func(ctx context.Context, _ int) (time.Duration, error) {
		began, now := time.Now(), k.Now().Round(0)
		if !today.believe(now, time.Since(started)) {
			k.Log.Warn("the clock changed: no thread is removed by age until the new time has held for a day",
				"by", today.by())
			return every, nil
		}
		removed, err := k.removeUnused(ctx, now.Add(-retention))
		if removed > 0 {
			k.Log.Info("threads past their retention were removed", "removed", removed, "seconds", time.Since(began).Seconds())
		}
		return every, err
	}}
}

func (k Keeper) removeUnused(ctx context.Context, unused time.Time) (int, error) {
	type old struct {
		id      api.ThreadID
		project api.ProjectID
	}
	var list []old
	if _, err := Each(k.Journal(), func(c thread.Conversation) bool {
		if c.Used().Before(unused) && k.Owns(thread.Stream(c.Thread)) {
			list = append(list, old{c.Thread, c.Project})
		}
		return ctx.Err() == nil
	}); err != nil {
		return 0, err
	}
	var removed atomic.Int64
	group, ctx := background.WithContext(ctx)
	group.SetLimit(AtOnce)
	for _, t := range list {
		group.Go(func() error {
			err := k.Threads.Forget(ctx, t.id, thread.Forget{Project: t.project, Unused: unused})
			switch {
			case err == nil:
				removed.Add(1)
			case errors.Is(err, api.ErrConflict), errors.Is(err, api.ErrNotFound): // it was used, or removed, meanwhile
			case !k.Owns(thread.Stream(t.id)): // it has moved to another node meanwhile
			default:
				return fmt.Errorf("remove thread %s: %w", t.id, err)
			}
			return nil
		})
	}
	err := group.Wait()
	return int(removed.Load()), err
}
