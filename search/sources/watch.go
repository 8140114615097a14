package sources

import (
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"docent/api"
	"docent/internal/background"
	"docent/persistence/datadir"
)

const (
	settleAfter  = 150 * time.Millisecond // of quiet, so that a file saved in several steps is read once
	settleAtMost = 2 * time.Second        // from the first change: a folder that is never quiet is read all the same
	maxFolders   = 20_000                 // of one project; the system has only so many watches
)

// A folderWatch tells when the folder that a project's documentation comes from changes. What it cannot watch, a folder
// on another machine or one too many, is left to the regular look at the sources.
type folderWatch struct {
	system  *fsnotify.Watcher
	log     *slog.Logger
	changed func(api.ProjectID)
	ended   chan struct{}

	mu    sync.Mutex
	roots map[api.ProjectID]string
	due   map[api.ProjectID]*settling
	done  bool
}

type settling struct {
	timer *time.Timer
	since time.Time
}

// newFolderWatch returns nil if the system cannot watch folders.
func newFolderWatch(log *slog.Logger, changed func(api.ProjectID)) *folderWatch {
	system, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("folders cannot be watched; polling sources", "error", err)
		return nil
	}
	w := &folderWatch{system: system, log: log, changed: changed, ended: make(chan struct{}),
		roots: map[api.ProjectID]string{}, due: map[api.ProjectID]*settling{}}
	background.Go("search/sources.newFolderWatch", w.run)
	return w
}

// Close ends the watching and waits for it.
func (w *folderWatch) Close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.done = true
	for _, s := range w.due {
		s.timer.Stop()
	}
	w.mu.Unlock()
	w.system.Close()
	<-w.ended
}

// add watches the folder of a project that comes from one.
func (w *folderWatch) add(p api.Project) {
	if w == nil {
		return
	}
	root, err := filepath.EvalSymlinks(strings.TrimPrefix(p.Source, "file://"))
	if err != nil {
		return // a remote repository
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return
	}
	w.mu.Lock()
	before := w.roots[p.ID]
	w.mu.Unlock()
	if before == root {
		return
	}
	w.forget(p.ID)
	w.mu.Lock()
	w.roots[p.ID] = root
	w.mu.Unlock()
	w.walk(p.ID, root)
}

// forget ends watching for a project. Folders that another project's documentation comes from too stay watched.
func (w *folderWatch) forget(id api.ProjectID) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.roots, id)
	if s := w.due[id]; s != nil {
		s.timer.Stop()
		delete(w.due, id)
	}
	for _, folder := range w.system.WatchList() {
		if !slices.ContainsFunc(slices.Collect(maps.Values(w.roots)),
			func(root string) bool { return within(folder, root) }) {
			_ = w.system.Remove(folder) // it may be gone
		}
	}
}

// within reports whether a file or folder is in a folder, or is that folder.
func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+string(filepath.Separator))
}

// walk watches a folder and those within, but for what the documentation cannot be in. Of a git repository it is the
// branches that count.
func (w *folderWatch) walk(id api.ProjectID, from string) {
	n := 0
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // it went away meanwhile
		}
		switch name := d.Name(); {
		case p == from, name == ".git", name == ".vitepress":
		case name == "node_modules", name == "objects" && isRepository(filepath.Dir(p)),
			strings.HasPrefix(name, "."),
			filepath.Base(filepath.Dir(p)) == ".git" && name != "refs":
			return filepath.SkipDir
		}
		if datadir.Is(p) { // it changes with each request, and is never read
			return filepath.SkipDir
		}
		if n++; n > maxFolders {
			return fs.ErrInvalid
		}
		return w.system.Add(p)
	})
	if err != nil {
		w.log.Warn("not all folders can be watched; polling the others", "project", id, "folder", from,
			"error", err)
	}
}

func isRepository(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "HEAD"))
	return err == nil
}

func (w *folderWatch) run() {
	defer close(w.ended)
	for {
		select {
		case event, ok := <-w.system.Events:
			if !ok {
				return
			}
			if event.Op != fsnotify.Chmod {
				w.note(event)
			}
		case err, ok := <-w.system.Errors:
			if !ok {
				return
			}
			// Events were lost: everything may have changed.
			w.log.Warn("lost events of watched folders; re-reading all of them", "error", err)
			w.mu.Lock()
			for id := range w.roots {
				w.settle(id)
			}
			w.mu.Unlock()
		}
	}
}

func (w *folderWatch) note(event fsnotify.Event) {
	w.mu.Lock()
	var touched []api.ProjectID
	for id, root := range w.roots {
		if within(event.Name, root) {
			touched = append(touched, id)
		}
	}
	w.mu.Unlock()
	if event.Has(fsnotify.Create) && len(touched) > 0 {
		if info, err := os.Lstat(event.Name); err == nil && info.IsDir() {
			w.walk(touched[0], event.Name)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range touched {
		w.settle(id)
	}
}

// settle tells of the change once the folder is quiet. The lock is held.
func (w *folderWatch) settle(id api.ProjectID) {
	if w.done {
		return
	}
	if s := w.due[id]; s != nil {
		if time.Since(s.since) < settleAtMost {
			s.timer.Reset(settleAfter)
		}
		return
	}
	w.due[id] = &settling{since: time.Now(), timer: time.AfterFunc(settleAfter, func() {
		w.mu.Lock()
		delete(w.due, id)
		done := w.done
		w.mu.Unlock()
		if !done {
			w.changed(id)
		}
	})}
}
