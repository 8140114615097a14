package sources

import (
	"context"
	"docent/internal/background"
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
	"docent/internal/backoff"
	"docent/internal/brief"
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
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   background.Work
	wake   chan struct{}
	owns   func(name string) bool

	mu      sync.Mutex
	running map[api.ProjectID]*updateRun
}

// NewUpdates are those that the reader carries out, of the projects whose updates this node owns. They do nothing by
// themselves before Resume.
func NewUpdates(reader *Reader, owns func(name string) bool) *Updates {
	ctx, cancel := context.WithCancel(context.Background())
	return &Updates{reader: reader, owns: owns, ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1),
		running: map[api.ProjectID]*updateRun{}}
}

// Close breaks off what runs; the next server begins it again.
func (u *Updates) Close() error {
	u.cancel()
	u.work.Wait()
	return nil
}

// Resume carries out what is pending, now and until Close. It is called at most once.
func (u *Updates) Resume() {
	u.work.Go("search/sources.Resume", func() {
		for u.ctx.Err() == nil {
			var again <-chan time.Time // never, if the catalog could be read
			if u.insist("list the updates that have not ended", u.beginPending) != nil {
				again = time.After(10 * time.Second)
			}
			select {
			case <-u.ctx.Done():
			case <-u.wake:
			case <-again:
			}
		}
	})
}

// Start accepts an update.
func (u *Updates) Start(ctx context.Context, project api.ProjectID) (api.UpdateID, error) {
	up, _, err := u.reader.Catalog.AddUpdate(ctx, project)
	if err != nil {
		return "", err
	}
	u.Wake()
	return up.ID, nil
}

// Wake starts what is pending.
func (u *Updates) Wake() {
	select {
	case u.wake <- struct{}{}:
	default:
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

// beginPending begins the updates that the catalog has as open, at most one of a project at a time.
func (u *Updates) beginPending() error {
	open, err := u.reader.Catalog.OpenUpdates(u.ctx)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, up := range open { // oldest first
		if u.running[up.Project] != nil || !u.here(up.Project) {
			continue
		}
		run := &updateRun{update: up}
		u.running[up.Project] = run
		u.work.Go("search/sources.beginPending", func() {
			stored := u.carryOut(run)
			u.mu.Lock()
			delete(u.running, up.Project) // the catalog says the same now
			u.mu.Unlock()
			if stored {
				u.Wake() // the project's next one
			}
		})
	}
	return nil
}

// here reports whether this node carries out a project's updates.
func (u *Updates) here(project api.ProjectID) bool {
	return u.owns("task/update/" + string(project))
}

// carryOut brings an update to its end, unless the server stops before. It says whether the catalog has the end.
func (u *Updates) carryOut(run *updateRun) (stored bool) {
	up := run.view()
	if !u.here(up.Project) {
		return false // another node takes it up
	}
	if up.Attempts >= updateAttempts {
		return u.end(run, fmt.Errorf("%w: it broke off %d times", errGivenUp, up.Attempts))
	}
	now := time.Now().UTC()
	run.change(func(up *api.Update) {
		up.Status, up.StartedAt, up.Attempts, up.Logs = api.UpdateInProgress, &now, up.Attempts+1, nil
	})
	// Stored first: a client that asks from now on gets another update, since this one may have read the old state.
	if u.save(run) != nil {
		return false
	}
	told := u.tell(run)
	err := background.Guard(func() error { return u.perform(run) })
	told()
	if u.ctx.Err() != nil && err != nil {
		run.change(func(up *api.Update) { up.Attempts-- }) // stopped, not failed
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := u.reader.Catalog.SaveUpdate(ctx, run.view()); err != nil {
			u.reader.Log.Warn("an interrupted update counts as an attempt", "update", up.ID, "error", err)
		}
		return false
	}
	if !u.here(up.Project) {
		return false // another node has taken it up
	}
	return u.end(run, err)
}

// tellEvery is how often what an update says is stored.
const tellEvery = time.Second

// tell stores what the update says now and then, since another process may be asked for it, until the returned function
// is called.
func (u *Updates) tell(run *updateRun) (stop func()) {
	ctx, cancel := context.WithCancel(u.ctx)
	ended := make(chan struct{})
	background.Go("search/sources.tell", func() {
		defer close(ended)
		said := ""
		for backoff.Sleep(ctx, tellEvery) == nil {
			up := run.view()
			now := strings.Join(up.Logs, "\n")
			if now == said || !u.here(up.Project) {
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
func (u *Updates) perform(run *updateRun) error {
	id := run.view().Project
	project, err := u.reader.Catalog.Project(u.ctx, id)
	if err != nil {
		return fmt.Errorf("find project %s: %w", id, err)
	}
	run.say("reading the documentation")
	tip, report, err := u.reader.refreshTo(u.ctx, project, run.progress)
	if u.ctx.Err() != nil {
		return u.ctx.Err()
	}
	failed := u.reader.RefreshAll(u.ctx, project, run.progress) // whatever became of the first
	for _, label := range slices.Sorted(maps.Keys(failed)) {
		run.say("the source " + label + ": " + failure(failed[label]))
	}
	if err != nil {
		return err
	}
	commit := api.UpdateCommit{SHA: report.Commit, Ref: tip.Branch, Added: report.Added, Modified: report.Modified,
		Removed: report.Removed}
	tree, err := u.reader.Repositories.Tree(u.ctx, project, report.Commit)
	if err != nil {
		return err
	}
	if commit.Message, err = tree.Message(u.ctx); err != nil {
		return err
	}
	commit.Message = brief.Runes(commit.Message, 2000, "…")
	if before, err := u.before(tree, id, report.Commit); err == nil {
		now, err := tree.Files(u.ctx)
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
	if n := len(project.Sources); n > 0 {
		summary += fmt.Sprintf("; %d of %d further sources are read", n-len(failed), n)
	}
	run.change(func(up *api.Update) { up.Commit, up.Summary = commit, summary })
	return nil
}

// before lists the files that there were after the project's last successful update, or if there was none, before
// the commit.
func (u *Updates) before(tree *forge.Tree, id api.ProjectID, commit string) ([]api.File, error) {
	last, err := u.reader.Catalog.LastUpdate(u.ctx, id)
	if err == nil {
		if files, err := tree.FilesAt(u.ctx, last.Commit.SHA); !errors.Is(err, api.ErrNotFound) {
			return files, err
		}
	} else if !errors.Is(err, api.ErrNotFound) {
		return nil, err
	}
	parent, err := tree.Parent(u.ctx, commit)
	if err != nil {
		return nil, err
	}
	return tree.FilesAt(u.ctx, parent)
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

// end stores how an update ended. What cannot be stored has not ended, and is begun again by the next server.
func (u *Updates) end(run *updateRun, err error) (stored bool) {
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
	return u.save(run) == nil
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

// save stores how far a run has come, as often as it takes. It fails when the server stops, and if the update is no
// more.
func (u *Updates) save(run *updateRun) error {
	return u.insist("store an update", func() error { return u.reader.Catalog.SaveUpdate(u.ctx, run.view()) })
}

// insist tries something until it is done, the server stops, or it cannot be done.
func (u *Updates) insist(doing string, do func() error) error {
	pause := backoff.Exponential(100*time.Millisecond, 10*time.Second)
	for try := 1; ; try++ {
		err := do()
		if err == nil || u.ctx.Err() != nil {
			return err
		}
		u.reader.Log.Warn("an update waits for the catalogue", "doing", doing, "error", err, "try", try)
		if !errors.Is(err, api.ErrUnavailable) {
			return err
		}
		_ = backoff.Sleep(u.ctx, pause(try))
	}
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
