package database

import (
	"sync"
	"sync/atomic"

	"docent/api"
)

// watchers are those who want to know when what is listed of a project has changed. While there are none, a change costs
// one look at a number.
type watchers struct {
	n    atomic.Int32
	mu   sync.Mutex
	each map[*watcher]struct{}
}

type watcher struct {
	project api.ProjectID
	changed chan struct{}
}

// Watch tells that what is listed of a project has changed: its questions, jobs, pull requests, updates, automations or
// keys. Several changes may be reported as one, and none is lost: who reads the listings after each time sees all of
// them. It tells of changes that this Catalog makes, of which its projectors' are the most. Stop ends it.
func (db *DB) Watch(project api.ProjectID) (changed <-chan struct{}, stop func()) {
	w := &watcher{project, make(chan struct{}, 1)}
	of := &db.watched
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.each == nil {
		of.each = make(map[*watcher]struct{})
	}
	of.each[w] = struct{}{}
	of.n.Add(1)
	return w.changed, sync.OnceFunc(func() {
		of.mu.Lock()
		defer of.mu.Unlock()
		delete(of.each, w)
		of.n.Add(-1)
	})
}

// idle reports whether nobody watches.
func (w *watchers) idle() bool { return w.n.Load() == 0 }

// Tell tells those who watch one of the projects that something has changed; with nil, all.
func (db *DB) Tell(projects map[api.ProjectID]bool) {
	w := &db.watched
	if w.idle() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.each {
		if projects != nil && !projects[one.project] {
			continue
		}
		select {
		case one.changed <- struct{}{}:
		default: // it has not looked since the last change
		}
	}
}
