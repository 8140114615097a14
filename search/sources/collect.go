package sources

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"docent/api"
	"docent/persistence/datadir"
)

// PagesDir is the folder, below the one that a collector is given, that is imported: what it writes there is a page of
// the source. All else in its folder is the collector's own.
const PagesDir = "pages"

// A Collector brings the pages of a source that is neither a folder nor a repository.
type Collector interface {
	// Collect makes the files in PagesDir below dir, which is the source's alone and is there, what the source holds now.
	// It is called by one at a time for a source. If it fails, what was there before stays, whole: readers are
	// answered from that. What it remembers for the next time lies elsewhere in dir.
	Collect(ctx context.Context, p api.Project, dir string, progress Progress) (Collected, error)
}

// Collected is what a collector has found.
type Collected struct {
	Pages   int      `json:"pages"`             // files that are there now
	Changed int      `json:"changed"`           // of them, and of those that are gone
	SiteURL string   `json:"siteUrl,omitempty"` // public URL of the pages, if the project does not say it
	Notes   []string `json:"notes,omitempty"`   // what an operator should know, such as pages that were left out
	// Of a web site: what was new, changed and gone, what could not be asked for, and what is left out.
	Site *SiteCounts `json:"site,omitempty"`
}

// SiteCounts are the pages of a web site by what came of them.
type SiteCounts struct {
	New     int `json:"new"`
	Changed int `json:"changed"`
	Gone    int `json:"gone"`
	LeftOut int `json:"leftOut"`
	Failed  int `json:"failed"` // could not be asked for: what was read before still answers
}

func (c SiteCounts) String() string {
	return fmt.Sprintf("%d new, %d changed, %d gone, %d left out, %d failed", c.New, c.Changed, c.Gone, c.LeftOut, c.Failed)
}

// A Collection is the last time that a source was collected, kept beside its pages.
type Collection struct {
	At time.Time `json:"at"` // of the attempt
	Collected
	Error string `json:"error,omitempty"` // why the attempt failed; what it found before is still there
}

const collectionFile = "collection.json"

// CollectedDir is the folder of a source's collector.
func (s *Reader) CollectedDir(id api.ProjectID) string {
	return filepath.Join(s.Collecting, string(id))
}

// LastCollection is the result of a source's last collection; false if there was none.
func (s *Reader) LastCollection(id api.ProjectID) (Collection, bool) {
	var c Collection
	raw, err := os.ReadFile(filepath.Join(s.CollectedDir(id), collectionFile))
	return c, err == nil && json.Unmarshal(raw, &c) == nil
}

// collect brings the pages of a project whose source is neither a folder nor a repository, unless they were brought and
// need not be fresh. It returns the project with their folder as its source.
func (s *Reader) collect(ctx context.Context, p api.Project, fresh bool, progress Progress) (api.Project, error) {
	if !p.Kind.Collected() {
		return p, nil
	}
	changed, err := s.take(ctx, p)
	if err != nil {
		return p, err
	}
	dir := s.CollectedDir(p.ID)
	pages := filepath.Join(dir, PagesDir)
	if fresh || !s.collected(p.ID) {
		collector := s.Collectors[p.Kind]
		if collector == nil {
			return p, &api.StateError{Kind: api.ErrUnavailable,
				Reason: fmt.Sprintf("this version does not read %s", p.Kind.Said())}
		}
		gather := func(ctx context.Context) error { return s.gather(ctx, collector, p, dir, progress) }
		if err := s.gatherAlone(ctx, p, dir, changed, gather); err != nil {
			return p, err
		}
	}
	last, _ := s.LastCollection(p.ID)
	return onDisk(p, pages, last.SiteURL), nil
}

// take brings what was collected of a source to what the nodes were given last, and reports whether that was something
// else.
func (s *Reader) take(ctx context.Context, p api.Project) (changed bool, err error) {
	if !p.Kind.Collected() {
		return false, nil
	}
	return s.Nodes.Take(ctx, p, s.CollectedDir(p.ID))
}

// collected reports whether there are pages of a source.
func (s *Reader) collected(id api.ProjectID) bool {
	_, collected := s.LastCollection(id)
	_, err := os.Stat(filepath.Join(s.CollectedDir(id), PagesDir))
	return collected && !errors.Is(err, fs.ErrNotExist)
}

// gatherAlone gathers while no other node does. What another one has collected while this one waited does, even if it
// came before this one began to wait for it.
func (s *Reader) gatherAlone(
	ctx context.Context, p api.Project, dir string, came bool, gather func(context.Context) error,
) error {
	return s.Nodes.Collect(ctx, p, dir, func(ctx context.Context) error {
		changed, err := s.Nodes.Take(ctx, p, dir)
		if err != nil {
			return err
		}
		if (came || changed) && p.Kind != api.SourceZip && s.collected(p.ID) && !s.due(p) {
			return nil
		}
		return gather(ctx)
	})
}

// gather lets a collector bring the pages of a source, and records the result.
func (s *Reader) gather(ctx context.Context, collector Collector, p api.Project, dir string, progress Progress) error {
	if err := os.MkdirAll(filepath.Join(dir, PagesDir), 0o700); err != nil {
		return fmt.Errorf("make the folder of %s: %w", p.ID, err)
	}
	last, _ := s.LastCollection(p.ID)
	found, err := collector.Collect(ctx, p, dir, progress)
	if errors.Is(err, context.Canceled) {
		return err
	}
	last.At, last.Error = s.Guard.now().UTC(), ""
	if err != nil {
		last.Error = failure(err)
	} else {
		last.Collected = found
	}
	return errors.Join(err, s.keepCollection(dir, last))
}

// onDisk is a collected project as the packages below see it: a folder.
func onDisk(p api.Project, pages, siteURL string) api.Project {
	if p.Site == "" && p.Kind != api.SourceZip {
		p.Site = api.SiteCollected
	}
	p.Source, p.Kind, p.Branch = pages, api.SourceFiles, ""
	p.Host, p.HostURL, p.TokenEnv, p.TokenFile, p.AppID = api.HostBuiltin, "", "", "", 0
	p.SiteURL = cmp.Or(p.SiteURL, siteURL)
	return p
}

func (s *Reader) keepCollection(dir string, c Collection) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return datadir.WriteFile(filepath.Join(dir, collectionFile), raw, 0o600)
}

// due reports whether a source is due to be collected again.
func (s *Reader) due(p api.Project) bool {
	every, now := p.Interval(), s.Guard.now()
	if every == 0 {
		return true
	}
	every = s.sites.sooner(p.ID, every, now)
	if p.Kind.Collected() {
		last, ok := s.LastCollection(p.ID)
		return !ok || now.Sub(last.At) >= every
	}
	last, ok := s.LastReading(p.ID)
	return !ok || now.Sub(last.At) >= every
}
