package search

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/search/meaning"
)

// A Meaning says how the vectors of a project's sections stand.
type Meaning struct {
	Project  api.ProjectID
	Model    string // whose vectors are made
	Sections int    // that can be found; those that say the same count once
	Embedded int    // of them, those that have vectors
	Serving  string // the model whose vectors searches use now; empty for none
	Working  bool   // vectors are being made, or wait for their turn
	Problem  string // why no more are made at the moment
	Again    time.Time
}

// embeddings makes the vectors of projects in the background, of one project after the other.
type embeddings struct {
	mu      sync.Mutex
	waiting []api.ProjectID
	byID    map[api.ProjectID]*Meaning
	changed chan struct{} // receives when somebody waits
	end     func()
}

func (e *embeddings) states() []Meaning {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]Meaning, 0, len(e.byID))
	for _, m := range e.byID {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b Meaning) int { return cmp.Compare(a.Project, b.Project) })
	return out
}

func (e *embeddings) state(project api.ProjectID) Meaning {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m := e.byID[project]; m != nil {
		return *m
	}
	return Meaning{Project: project}
}

// want queues a project's vectors, after those that wait already.
func (e *embeddings) want(project api.ProjectID) {
	e.mu.Lock()
	if !slices.Contains(e.waiting, project) {
		e.waiting = append(e.waiting, project)
	}
	e.of(project).Working = true
	e.mu.Unlock()
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// of is a project's state, to be changed under the lock.
func (e *embeddings) of(project api.ProjectID) *Meaning {
	m := e.byID[project]
	if m == nil {
		m = &Meaning{Project: project}
		e.byID[project] = m
	}
	return m
}

func (e *embeddings) note(project api.ProjectID, change func(*Meaning)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e.of(project))
}

func (e *embeddings) next() (api.ProjectID, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		return "", false
	}
	project := e.waiting[0]
	e.waiting = e.waiting[1:]
	return project, true
}

// settled changes the state of a project that is still there, unless it waits again.
func (e *embeddings) settled(project api.ProjectID, change func(*Meaning)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m := e.byID[project]; m != nil && !slices.Contains(e.waiting, project) {
		change(m)
	}
}

// forget drops the state of a project that is removed.
func (e *embeddings) forget(project api.ProjectID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.byID, project)
	e.waiting = slices.DeleteFunc(e.waiting, func(p api.ProjectID) bool { return p == project })
}

// startEmbedding begins to compute vectors, if there is an embedder.
func (l *Library) startEmbedding() {
	near := l.meaning()
	if near == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	background.Go("search.startEmbedding", func() {
		defer close(ended)
		l.embedAll(ctx, near)
	})
	near.work.end = func() {
		cancel()
		<-ended
	}
}

// stopEmbedding ends it. What was made is kept.
func (l *Library) stopEmbedding() {
	if near := l.meaning(); near != nil {
		near.work.end()
	}
}

// UseEmbedder has sections found by what they mean by another embedder's vectors from now on, or by their words alone if it
// is nil. Until its vectors are made, those of the model before serve, if the embedder can be asked like it.
func (l *Library) UseEmbedder(e meaning.Embedder) {
	l.stopEmbedding()
	near := newSemanticSearch(e, l.options.MeaningInBoxes)
	near.serial.Store(l.near.Load().serial.Load()) // results are remembered by it
	l.near.Store(near)
	l.mu.Lock()
	projects := slices.Collect(maps.Values(l.projects))
	l.mu.Unlock()
	for _, p := range projects {
		if snap, _ := p.take(); snap != nil {
			snap.openMeaning()
			snap.release()
		}
	}
	l.startEmbedding()
}

// How long embedding pauses after a failure, if the embedder does not say.
const (
	embedPause     = 30 * time.Second
	embedPauseMost = 10 * time.Minute
)

// embedAll makes vectors until the library is closed: first what was not ready when the process before ended, then
// whatever updates bring.
func (l *Library) embedAll(ctx context.Context, near *semanticSearch) {
	for _, project := range l.Projects() {
		near.work.want(project)
	}
	for ctx.Err() == nil {
		project, ok := near.work.next()
		if !ok {
			select {
			case <-near.work.changed:
			case <-ctx.Done():
			}
			continue
		}
		err := l.embed(ctx, near, project)
		if ctx.Err() != nil {
			return
		}
		if err == nil || errors.Is(err, ErrNotIndexed) {
			near.work.settled(project, func(m *Meaning) { m.Working, m.Problem, m.Again = false, "", time.Time{} })
			continue
		}
		pause := embedPause
		if later, ok := errors.AsType[*meaning.Later](err); ok && later.After > 0 {
			pause = min(max(later.After, time.Second), embedPauseMost)
		}
		near.work.note(project, func(m *Meaning) { m.Problem, m.Again = err.Error(), time.Now().Add(pause) })
		l.log.Warn("vectors cannot be made at the moment", "project", project, "error", err, "again", pause)
		near.work.want(project)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// Projects lists the projects that have an index on disk.
func (l *Library) Projects() []api.ProjectID {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return nil
	}
	var out []api.ProjectID
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(l.dir, e.Name(), "CURRENT")); err != nil {
			continue
		}
		project := api.ProjectID(e.Name())
		if coded, ok := strings.CutPrefix(e.Name(), "x_"); ok {
			if raw, err := hex.DecodeString(coded); err == nil {
				project = api.ProjectID(raw)
			}
		}
		out = append(out, project)
	}
	return out
}

// embed makes the vectors that a project lacks. What is there already is not asked for.
func (l *Library) embed(ctx context.Context, near *semanticSearch, project api.ProjectID) error {
	p, err := l.project(project)
	if err != nil {
		return err
	}
	dir, model := vectorsIn(p.dir), near.embedder.Model()
	if mark := meaning.ReadMark(dir); mark.Complete(p.dir, model) {
		near.work.note(project, func(m *Meaning) {
			m.Model, m.Sections, m.Embedded, m.Serving = model.Name, mark.Sections, mark.Sections, model.Name
		})
		return nil
	}
	snap, err := l.acquire(project)
	if errors.Is(err, ErrNotIndexed) && !p.exists() { // removed, maybe while its vectors were being made
		near.work.forget(project)
		return os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	defer snap.release()
	keys, err := snap.sectionKeys()
	if err != nil {
		return err
	}
	store, err := meaning.OpenStore(dir, model)
	if err != nil {
		return err
	}
	defer store.Close()
	job := embedding{library: l, near: near, project: project, snap: snap, store: store, live: make(map[meaning.Key]bool, len(keys))}
	for section, k := range keys {
		if k == (meaning.Key{}) || job.live[k] {
			continue
		}
		job.live[k] = true
		if !store.Has(k) {
			job.sections, job.keys = append(job.sections, uint32(section)), append(job.keys, k)
		}
	}
	ended := job.run(ctx, model)
	attached, err := near.attach(dir, snap)
	if err == nil {
		snap.setMeaning(attached)
		near.work.note(project, func(m *Meaning) { m.Serving = attached.servedBy() })
	}
	if err = cmp.Or(ended, err); err != nil || len(job.missing()) > 0 {
		return err
	}
	if err := store.Collect(job.live); err != nil {
		return err
	}
	if models, err := meaning.Models(dir); err == nil { // none serves any more
		for _, m := range models {
			if m.ID() != model.ID() {
				_ = meaning.Drop(dir, m)
			}
		}
	}
	return meaning.WriteMark(dir, meaning.Mark{Generation: filepath.Base(snap.Dir), Model: model.ID(), Sections: len(job.live)})
}

func (m *embeddingIndex) servedBy() string {
	if m == nil {
		return ""
	}
	return m.from.Model().Name
}

// An embedding is one project's vectors being made.
type embedding struct {
	library  *Library
	near     *semanticSearch
	project  api.ProjectID
	snap     *snapshot
	store    *meaning.Store
	live     map[meaning.Key]bool // that the sections have
	sections []uint32             // that lack a vector, one for each key
	keys     []meaning.Key
}

func (e *embedding) run(ctx context.Context, model meaning.Model) error {
	work, embedder := &e.near.work, e.near.embedder
	note := func(done int) {
		work.note(e.project, func(m *Meaning) {
			m.Model, m.Sections, m.Embedded, m.Working = model.Name, len(e.live), len(e.live)-len(e.keys)+done, true
			m.Serving = e.snap.embeddingIndex.Load().servedBy()
		})
	}
	note(0)
	if len(e.keys) > 0 {
		e.library.log.Info("vectors are being made", "project", e.project, "sections", len(e.live), "missing", len(e.keys))
	}
	for at := 0; at < len(e.keys); {
		if e.superseded() {
			e.near.work.want(e.project) // the rest by what the newer state has
			return nil
		}
		end := min(at+max(1, embedder.Batch()), len(e.keys))
		texts := make([]string, 0, end-at)
		for _, section := range e.sections[at:end] {
			text, err := e.snap.passage(section, model.Longest)
			if err != nil {
				return err
			}
			texts = append(texts, text)
		}
		vectors, err := embedder.Sections(ctx, texts)
		if err != nil {
			return err
		}
		if err := e.store.Add(e.keys[at:end], vectors); err != nil {
			return err
		}
		at = end
		note(at)
		work.note(e.project, func(m *Meaning) { m.Problem, m.Again = "", time.Time{} })
	}
	return nil
}

// superseded reports whether a newer state of the documentation is served.
func (e *embedding) superseded() bool {
	e.library.mu.Lock()
	defer e.library.mu.Unlock()
	return e.snap.obsolete
}

func (e *embedding) missing() (out []meaning.Key) {
	for k := range e.live {
		if !e.store.Has(k) {
			out = append(out, k)
		}
	}
	return out
}
