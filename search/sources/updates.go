package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/forge"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/internal/brief"
	"docent/internal/task"
)

const (
	// times that an update is begun before it is given up: one that kills the process does so no more often
	updateAttempts = 8
	updateLines    = 200  // lines of an update's log
	updateLine     = 300  // characters of one
	updateFiles    = 1000 // files of each kind that an update names
)

// Updates read documentation again when a client asks for it. An update that was accepted is in the catalog before
// the client hears of it; what the catalog has as open is pending, for this server or the next. The updates of a
// project come one after the other, and a request that comes while one waits to begin gets that one.
type Updates struct {
	reader *Reader
	tasks  task.Starter

	mu      sync.Mutex
	running map[api.ProjectID]*updateRun
}

// NewUpdates are those that the reader carries out. They do nothing by themselves before Wake.
func NewUpdates(reader *Reader, tasks task.Starter) *Updates {
	return &Updates{reader: reader, tasks: tasks, running: map[api.ProjectID]*updateRun{}}
}

// Start accepts an update.
func (u *Updates) Start(ctx context.Context, project api.ProjectID) (api.UpdateID, error) {
	up, _, err := u.reader.Catalog.AddUpdate(ctx, project)
	if err != nil {
		return "", err
	}
	u.tasks.Start(u.of(project))
	return up.ID, nil
}

// Wake starts what is pending.
func (u *Updates) Wake() {
	u.tasks.Start(task.Task{Name: "updates", Handle: func(ctx context.Context, _ int) (time.Duration, error) {
		open, err := u.reader.Catalog.OpenUpdates(ctx)
		for _, up := range open {
			u.tasks.Start(u.of(up.Project))
		}
		return task.Done, err
	}})
}

// of is the task that carries out a project's updates, the oldest first. How one ended is stored as often as it takes,
// and it is not begun again for that.
func (u *Updates) of(project api.ProjectID) task.Task {
	var ended *updateRun
	handle := func(ctx context.Context, _ int) (time.Duration, error) {
		defer u.set(project, nil) // the catalog says the same now
		if ended == nil {
			open, err := u.reader.Catalog.OpenUpdates(ctx)
			i := slices.IndexFunc(open, func(up api.Update) bool { return up.Project == project })
			if err != nil || i < 0 {
				return task.Done, err
			}
			run := &updateRun{update: open[i]}
			u.set(project, run)
			if err := u.carryOut(ctx, run); err != nil {
				return 0, err
			}
			ended = run
		}
		if err := u.reader.Catalog.SaveUpdate(ctx, ended.view()); err != nil && !errors.Is(err, api.ErrConflict) {
			return 0, fmt.Errorf("store how update %s ended: %w", ended.view().ID, err)
		}
		ended = nil
		return 0, nil
	}
	return task.Task{Name: "updates/" + string(project), Place: "task/update/" + string(project), Handle: handle}
}

// set remembers what is under way of a project; nil for nothing.
func (u *Updates) set(project api.ProjectID, run *updateRun) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if run == nil {
		delete(u.running, project)
	} else {
		u.running[project] = run
	}
}

// Status is an update as it is now.
func (u *Updates) Status(ctx context.Context, id api.UpdateID) (api.Update, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, run := range u.running {
		if up := run.view(); up.ID == id {
			return up, nil
		}
	}
	return u.reader.Catalog.Update(ctx, id)
}

// carryOut brings an update to its end, unless the task stops before.
func (u *Updates) carryOut(ctx context.Context, run *updateRun) error {
	if up := run.view(); up.Attempts >= updateAttempts {
		u.end(run, fmt.Errorf("%w: it broke off %d times", errGivenUp, up.Attempts))
		return nil
	}
	now := time.Now().UTC()
	run.change(func(up *api.Update) {
		up.Status, up.StartedAt, up.Attempts, up.Logs = api.UpdateInProgress, &now, up.Attempts+1, nil
	})
	// Stored first: a client that asks from now on gets another update, since this one may have read the old state.
	if err := u.reader.Catalog.SaveUpdate(ctx, run.view()); err != nil {
		return fmt.Errorf("store that an update began: %w", err)
	}
	told := u.tell(ctx, run)
	err := background.Guard(func() error { return u.perform(ctx, run) })
	told()
	if ctx.Err() != nil && err != nil {
		run.change(func(up *api.Update) { up.Attempts-- }) // stopped, not failed
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := u.reader.Catalog.SaveUpdate(last, run.view()); err != nil {
			u.reader.Log.Warn("an interrupted update counted as an attempt", "update", run.view().ID, "error", err)
		}
		return ctx.Err()
	}
	u.end(run, err)
	return nil
}

// tellEvery is how often what an update says is stored.
const tellEvery = time.Second

// tell stores what the update says now and then, since another process may be asked for it, until the returned function
// is called.
func (u *Updates) tell(ctx context.Context, run *updateRun) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	background.Go("search/sources.tell", func() {
		defer close(ended)
		said := ""
		for backoff.Sleep(ctx, tellEvery) == nil {
			up := run.view()
			now := strings.Join(up.Logs, "\n")
			if now == said {
				continue
			}
			if err := u.reader.Catalog.SaveUpdate(ctx, up); err == nil {
				said = now
			} else if ctx.Err() == nil {
				u.reader.Log.Warn("what an update says is not stored yet", "update", up.ID, "error", err)
			}
		}
	})
	return func() { cancel(); <-ended }
}

var errGivenUp = errors.New("the update is given up")

// perform reads and indexes the documentation, and says what has changed.
func (u *Updates) perform(ctx context.Context, run *updateRun) error {
	id := run.view().Project
	project, err := u.reader.Catalog.Project(ctx, id)
	if err != nil {
		return fmt.Errorf("find project %s: %w", id, err)
	}
	run.say("reading the documentation")
	tip, report, err := u.reader.refreshTo(ctx, project, run.progress)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	failed := u.reader.RefreshAll(ctx, project, run.progress) // whatever became of the first
	for _, label := range slices.Sorted(maps.Keys(failed)) {
		run.say("the source " + label + ": " + failure(failed[label]))
	}
	if err != nil {
		return err
	}
	commit := api.UpdateCommit{SHA: report.Commit, Ref: tip.Branch, Added: report.Added, Modified: report.Modified,
		Removed: report.Removed}
	tree, err := u.reader.Repositories.Tree(ctx, project, report.Commit)
	if err != nil {
		return err
	}
	if commit.Message, err = tree.Message(ctx); err != nil {
		return err
	}
	commit.Message = brief.Runes(commit.Message, 2000, "…")
	if before, err := u.before(ctx, tree, id, report.Commit); err == nil {
		now, err := tree.Files(ctx)
		if err != nil {
			return err
		}
		commit.Added, commit.Modified, commit.Removed = changed(before, now)
		// else the repository does not hold what was there before: what the index tells is all there is
	} else if !errors.Is(err, api.ErrNotFound) {
		return err
	}
	a, m, r := len(commit.Added), len(commit.Modified), len(commit.Removed)
	for _, list := range []*[]string{&commit.Added, &commit.Modified, &commit.Removed} {
		*list = slices.Clone((*list)[:min(len(*list), updateFiles)])
	}
	summary := fmt.Sprintf("%d files added, %d modified, %d removed; %d pages are indexed", a, m, r, report.Pages)
	if n := len(project.Parts()) - 1; n > 0 {
		summary += fmt.Sprintf("; %d of %d further sources are read", n-len(failed), n)
	}
	run.change(func(up *api.Update) { up.Commit, up.Summary = commit, summary })
	return nil
}

// before lists the files that there were after the project's last successful update, or if there was none, before
// the commit.
func (u *Updates) before(ctx context.Context, tree *forge.Tree, id api.ProjectID, commit string) ([]api.File, error) {
	last, err := u.reader.Catalog.LastUpdate(ctx, id)
	if err == nil {
		if files, err := tree.FilesAt(ctx, last.Commit.SHA); !errors.Is(err, api.ErrNotFound) {
			return files, err
		}
	} else if !errors.Is(err, api.ErrNotFound) {
		return nil, err
	}
	parent, err := tree.Parent(ctx, commit)
	if err != nil {
		return nil, err
	}
	return tree.FilesAt(ctx, parent)
}

// changed compares two lists of files.
func changed(before, now []api.File) (added, modified, removed []string) {
	old := make(map[string]string, len(before))
	for _, f := range before {
		old[f.Path] = f.Hash
	}
	for _, f := range now {
		switch hash, ok := old[f.Path]; {
		case !ok:
			added = append(added, f.Path)
		case hash != f.Hash:
			modified = append(modified, f.Path)
		}
		delete(old, f.Path)
	}
	return added, modified, slices.Sorted(maps.Keys(old))
}

// end says how an update ended. What cannot be stored has not ended, and is begun again by the next server.
func (u *Updates) end(run *updateRun, err error) {
	now := time.Now().UTC()
	up := run.view()
	if err != nil {
		text := failure(err)
		run.say(text)
		u.reader.Log.Error("an update failed", "project", up.Project, "update", up.ID, "error", err)
		run.change(func(up *api.Update) { up.Status, up.EndedAt, up.Summary = api.UpdateFailure, &now, text })
	} else {
		run.say("done: " + up.Summary)
		run.change(func(up *api.Update) { up.Status, up.EndedAt = api.UpdateSuccess, &now })
	}
}

// failure is why an update failed, in words that name nothing of the machine; the log has the rest.
func failure(err error) string {
	var state *api.StateError
	var invalid *api.InvalidError
	var said *forge.HostError
	switch {
	case errors.As(err, &said):
		return "failed: " + said.Say
	case errors.Is(err, forge.ErrMisconfigured):
		return "failed: " + forge.ErrMisconfigured.Error()
	case errors.Is(err, forge.ErrTemporary):
		return "failed: " + forge.ErrTemporary.Error() + ", try again later"
	case errors.As(err, &state):
		return "failed: " + state.Reason
	case errors.As(err, &invalid):
		return "failed: " + invalid.Error()
	case errors.Is(err, api.ErrNotFound):
		return "failed: the project or its documentation is not there"
	case errors.Is(err, fs.ErrNotExist):
		return "failed: the folder with the documentation is not there"
	case errors.Is(err, fs.ErrPermission):
		return "failed: the folder with the documentation may not be read"
	case errors.Is(err, errGivenUp):
		return "failed: " + err.Error()
	}
	return "failed: the documentation could not be read or indexed; the server's log has the reason"
}

// An updateRun is an update that this server has in hand.
type updateRun struct {
	mu     sync.Mutex
	update api.Update
	doing  string // what the last line of the log is about
}

func (r *updateRun) view() api.Update {
	r.mu.Lock()
	defer r.mu.Unlock()
	up := r.update
	up.Logs = slices.Clone(up.Logs)
	return up
}

func (r *updateRun) change(f func(*api.Update)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.update)
}

// say writes a line of the log. The log is bounded; its last line is always the newest.
func (r *updateRun) say(text string) { r.progress(text, 0, 0) }

// progress tells how far something is; the numbers of one thing stand in one line.
func (r *updateRun) progress(text string, done, total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := text
	if total > 0 {
		line = fmt.Sprintf("%s: %d of %d", text, done, total)
	}
	line = brief.Runes(line, updateLine, "…")
	if n := len(r.update.Logs); n > 0 && (r.doing == text || n == updateLines) {
		r.update.Logs[n-1] = line
	} else {
		r.update.Logs = append(r.update.Logs, line)
	}
	r.doing = text
}
