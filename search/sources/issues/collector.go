// Package issues reads the issues and discussions of a repository on GitHub as pages: one a thread, the question first,
// then what was accepted as its answer, then what maintainers said.
package issues

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/forge/host"
	"docent/persistence/datadir"
	"docent/search/sources"
)

const (
	stateFile = "threads.json"
	overlap   = 5 * time.Minute // clocks differ, and listings are behind
	allAgain  = 7 * 24 * time.Hour
)

// A Collector keeps the pages of a repository's threads as the repository has them.
type Collector struct {
	Host Host
	Now  func() time.Time
}

var _ sources.Collector = (*Collector)(nil)

// A state is what is known of a repository's threads: up to when its changes were read, and by which settings.
type state struct {
	Settings string    `json:"settings"`
	Since    time.Time `json:"since"`
	Whole    time.Time `json:"whole"` // when all were read last: threads that were deleted or moved are told by nobody
	// The last change of each thread that was looked at, by the name of its page: a reading that broke off goes on there.
	Known map[string]time.Time `json:"known"`
}

// Collect brings the pages up to date. What did not change since the last time is not asked for.
func (c *Collector) Collect(ctx context.Context, p api.Project, dir string, progress sources.Progress) (sources.Collected,
	error) {
	o := p.Collect.Issues
	pages := filepath.Join(dir, sources.PagesDir)
	settings, err := json.Marshal([]any{p.Repository, p.HostURL, o})
	if err != nil {
		return sources.Collected{}, err
	}
	now := c.Now().UTC()
	was := readState(filepath.Join(dir, stateFile))
	whole := was.Settings != string(settings) || now.Sub(was.Whole) >= allAgain || !filled(pages)
	if whole {
		was = state{Settings: string(settings), Whole: now, Known: kept(was, string(settings), filled(pages))}
	}
	if was.Known == nil {
		was.Known = map[string]time.Time{}
	}
	since := was.Since
	if !since.IsZero() {
		since = since.Add(-overlap)
	}
	r := &run{collector: c, project: p, pages: pages, options: o, progress: progress, seen: map[string]bool{},
		known: was.Known}
	if err := r.read(ctx, since); err != nil {
		was.Whole = time.Time{} // it was not read whole: the next time it is, but for what is known
		return sources.Collected{}, errors.Join(err, was.write(filepath.Join(dir, stateFile)))
	}
	if whole {
		if err := r.removeOthers(); err != nil {
			return sources.Collected{}, err
		}
	}
	if r.newest.After(was.Since) { // by the host's clock
		was.Since = r.newest
	}
	if err := was.write(filepath.Join(dir, stateFile)); err != nil {
		return sources.Collected{}, err
	}
	there, err := os.ReadDir(pages)
	return sources.Collected{Pages: len(there), Changed: r.changed, SiteURL: p.Source}, err
}

func readState(name string) (s state) {
	raw, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return state{}
	}
	return s
}

// kept is what is known of threads and still holds.
func kept(was state, settings string, pages bool) map[string]time.Time {
	if was.Settings == settings && pages {
		return was.Known
	}
	return nil
}

func (s *state) write(name string) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return datadir.WriteFile(name, raw, 0o600)
}

func filled(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// A run is one collection.
type run struct {
	collector *Collector
	project   api.Project
	pages     string
	options   api.IssueOptions
	progress  sources.Progress
	seen      map[string]bool
	known     map[string]time.Time
	changed   int
	told      int
	newest    time.Time
}

func (r *run) read(ctx context.Context, since time.Time) error {
	if !r.options.OnlyDiscussions {
		err := r.collector.Host.Issues(ctx, r.project, since, func(t host.Thread) error {
			if r.wanted(t) && t.Comments > 0 && !r.known[fileOf(t)].Equal(t.Updated) {
				said, err := r.collector.Host.IssueComments(ctx, r.project, t.Number)
				if err != nil {
					return err
				}
				t.Said = said
			}
			return r.take(t)
		})
		if err != nil {
			return err
		}
	}
	if !r.options.Discussions {
		return nil
	}
	return r.collector.Host.Discussions(ctx, r.project, since, r.take)
}

// wanted reports whether a thread becomes a page.
func (r *run) wanted(t host.Thread) bool {
	has := func(list []string) bool {
		return slices.ContainsFunc(t.Labels, func(l string) bool {
			return slices.ContainsFunc(list, func(w string) bool { return strings.EqualFold(l, w) })
		})
	}
	switch {
	case t.Bot || t.Declined:
		return false
	case len(r.options.Labels) > 0 && !has(r.options.Labels), has(r.options.Without):
		return false
	case r.options.Open:
		return true
	case t.Discussion:
		return t.Answered
	}
	return t.Closed
}

// take makes the page of a thread what the thread is now.
func (r *run) take(t host.Thread) error {
	r.told++
	r.progress("reading the threads of "+r.project.Repository, r.told, 0)
	if t.Updated.After(r.newest) {
		r.newest = t.Updated
	}
	name := fileOf(t)
	r.seen[name] = true
	if r.known[name].Equal(t.Updated) {
		return nil
	}
	path := filepath.Join(r.pages, name)
	text := ""
	if r.wanted(t) {
		text = page(t, r.project.Repository)
	}
	had, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch {
	case string(had) == text:
		err = nil
	case text == "":
		r.changed++
		err = os.Remove(path)
	default:
		r.changed++
		err = datadir.WriteFile(path, []byte(text), 0o600)
	}
	if err == nil {
		r.known[name] = t.Updated
	}
	return err
}

// fileOf is the name of a thread's page.
func fileOf(t host.Thread) string {
	if t.Discussion {
		return fmt.Sprintf("discussion-%d.md", t.Number)
	}
	return fmt.Sprintf("issue-%d.md", t.Number)
}

// removeOthers removes the pages of threads that are no more.
func (r *run) removeOthers() error {
	entries, err := os.ReadDir(r.pages)
	for _, e := range entries {
		if !r.seen[e.Name()] {
			r.changed++
			delete(r.known, e.Name())
			err = errors.Join(err, os.Remove(filepath.Join(r.pages, e.Name())))
		}
	}
	return err
}
