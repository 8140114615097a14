package sources

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"docent/api"
)

const (
	maxCrashes = 2 // of the process while it reads a source, before that source is left out
	// the same if something else may have ended it: an operator, or the system for want of memory
	maxKills     = 5
	retryUnknown = time.Hour // until a source is fetched again whose fetching ended the process: its commit is not known
)

// A Guard keeps a project whose content crashes the process from crashing it at each start. While a source is read, a
// file says so; a server that finds such a file at its start knows during which reading the one before it ended. After
// maxCrashes crashes the source is left out until its commit changes, another version of Docent reads it, or an
// operator asks for it. A source that was being read when the process ended is then read alone, so that the next crash
// is attributed to the right source.
type Guard struct {
	dir     string
	version string
	now     func() time.Time
	log     *slog.Logger
	alone   sync.RWMutex // held for writing to read a source that is under suspicion

	mu      sync.Mutex
	entries map[string]*readEntry
}

// A readEntry is what is known of reading one source, on disk as JSON.
type readEntry struct {
	Project api.ProjectID `json:"project"`
	Step    readStep      `json:"step"`
	Commit  string        `json:"commit,omitempty"` // empty if it is not known yet
	Version string        `json:"version"`
	Reading bool          `json:"reading"`
	Crashes int           `json:"crashes"`
	Kills   int           `json:"kills"`
	At      time.Time     `json:"at"` // of the last death
}

type readStep string

const (
	stepFetch readStep = "fetch" // of the repository or folder
	stepIndex readStep = "index" // of its files
)

// OpenGuard reads what the process before left behind. crashed tells whether that process ended by its own fault.
func OpenGuard(dir, version string, crashed bool, now func() time.Time, log *slog.Logger) (*Guard, error) {
	g := &Guard{dir: dir, version: version, now: now, log: log, entries: map[string]*readEntry{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read what broke off: %w", err)
		}
		e := new(readEntry)
		if json.Unmarshal(text, e) != nil || e.Project == "" {
			_ = os.Remove(file) // half written: nothing was read yet
			continue
		}
		if e.Reading {
			e.Reading, e.At = false, now().UTC()
			if crashed {
				e.Crashes++
			} else {
				e.Kills++
			}
			g.save(e)
			log.Warn("the server stopped while reading a project's source", "project", e.Project, "step", e.Step,
				"commit", e.Commit, "crashes", e.Crashes, "kills", e.Kills)
		}
		g.entries[e.key()] = e
	}
	return g, nil
}

func (e *readEntry) key() string { return string(e.Project) + " " + string(e.Step) }

func (g *Guard) file(e *readEntry) string {
	return filepath.Join(g.dir, url.PathEscape(string(e.Project))+"."+string(e.Step)+".json")
}

// save writes an entry. Without it a death is not counted; that is no reason not to read, so a full disk is none.
func (g *Guard) save(e *readEntry) {
	text, err := json.Marshal(e)
	if err == nil {
		err = errors.Join(os.MkdirAll(g.dir, 0o700), os.WriteFile(g.file(e), text, 0o600))
	}
	if err != nil {
		g.log.Debug("reading is not noted", "project", e.Project, "error", err)
	}
}

// leftOut reports whether a source must not be read: it ended the process too often in the state in which it would be
// read now.
func (e *readEntry) leftOut(commit, version string, now time.Time) bool {
	if e.Commit != commit || e.Version != version || commit == "" && now.Sub(e.At) >= retryUnknown {
		return false
	}
	return e.Crashes >= maxCrashes || e.Crashes+e.Kills >= maxKills
}

func (e *readEntry) reason() string {
	what, until := "its source", "an hour has passed"
	if e.Commit != "" {
		what, until = "commit "+e.Commit, "its source changes"
	}
	return fmt.Sprintf("project %s is left out: the server ended %d times while it read %s; it is read again once %s, or with `docent index %s`",
		e.Project, e.Crashes+e.Kills, what, until, e.Project)
}

// begin notes that a source is read now, and refuses if it is left out. The caller calls end when it has been read,
// or not.
func (g *Guard) begin(project api.ProjectID, step readStep, commit string) (end func(), err error) {
	now := g.now()
	g.mu.Lock()
	e := g.entries[(&readEntry{Project: project, Step: step}).key()]
	if e != nil && e.leftOut(commit, g.version, now) {
		g.mu.Unlock()
		return nil, &api.StateError{Kind: api.ErrUnavailable, Reason: e.reason()}
	}
	suspect := e != nil
	if e == nil || e.Commit != commit || e.Version != g.version {
		e = &readEntry{Project: project, Step: step, Commit: commit, Version: g.version}
	}
	g.mu.Unlock()

	unlock := g.alone.RUnlock
	if suspect {
		g.alone.Lock()
		unlock = g.alone.Unlock
	} else {
		g.alone.RLock()
	}
	g.mu.Lock()
	g.entries[e.key()] = e
	e.Reading = true
	g.save(e)
	g.mu.Unlock()
	return func() {
		g.mu.Lock()
		delete(g.entries, e.key())
		_ = os.Remove(g.file(e))
		g.mu.Unlock()
		unlock()
	}, nil
}

// Forget lets a project be read again, whatever came of it before: an operator asked for it.
func (g *Guard) Forget(project api.ProjectID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, e := range g.entries {
		if e.Project == project && !e.Reading {
			delete(g.entries, key)
			_ = os.Remove(g.file(e))
		}
	}
}

// LeftOut lists why projects are left out.
func (g *Guard) LeftOut() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for _, e := range g.entries {
		if e.leftOut(e.Commit, g.version, g.now()) {
			out = append(out, e.reason())
		}
	}
	slices.Sort(out)
	return out
}
