// Package written has a language model write, for each section of the documentation, the questions that it answers, so
// that it is found in the words of those who ask. That is done in the background, once for what a section says, and within
// what a day may cost: a process that is killed has lost the calls that were under way.
//
// On each node a task compares the indexes with what is known of their questions. It starts a task for an index that lacks
// some, which runs on one node, and has this node read what was written meanwhile.
package written

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/internal/required"
	"docent/internal/task"
	"docent/model"
	"docent/model/questions"
	"docent/search"
)

const (
	tick       = time.Minute // between two looks at the indexes
	some       = 8           // sections that are read at once
	calls      = 4           // that are under way at once
	indexes    = 2           // that are worked on at once
	sweepEvery = 24 * time.Hour

	// An index that is open reads its questions again when all are written, and before that when there are more by so many,
	// and by a tenth of its sections.
	reopenFor = 50
)

// A Writer has the questions written.
type Writer struct {
	Deps
	slots task.Slots
	read  map[api.ProjectID]int // sections that had been asked about when an index last read its questions
	swept time.Time
}

// New makes a Writer. Nothing is written before Start.
func New(deps Deps) (*Writer, error) {
	if err := required.Fields("written", deps, "Catalog", "Library", "Models", "Model", "Tasks", "Now", "Log"); err != nil {
		return nil, err
	}
	return &Writer{Deps: deps, slots: make(task.Slots, indexes), read: map[api.ProjectID]int{}}, nil
}

// Start has the questions written from now on.
func (w *Writer) Start() { w.Tasks.Start(task.Task{Name: "questions", Handle: w.look}) }

// look starts what is to be written.
func (w *Writer) look(ctx context.Context, _ int) (time.Duration, error) {
	projects, err := w.Catalog.Projects(ctx)
	if err != nil {
		return tick, err
	}
	for _, p := range projects {
		for _, part := range p.Parts() {
			generation := w.Library.Generation(part.ID)
			if generation == "" {
				continue
			}
			state, err := w.Catalog.WrittenState(ctx, part.ID)
			if err != nil {
				return tick, err
			}
			if err := w.reopen(&state, generation); err != nil {
				w.Log.Warn("an index cannot read its generated questions yet", "project", part.ID, "error", err)
			}
			if state.Generation != generation {
				w.Tasks.Start(w.task(part))
			}
		}
	}
	if now := w.Now(); now.Sub(w.swept) >= sweepEvery {
		if err := w.Catalog.SweepWritten(ctx); err != nil {
			return tick, err
		}
		w.swept = now
	}
	return tick, ctx.Err()
}

// reopen has an index read its questions again if enough were written since.
func (w *Writer) reopen(state *api.WrittenState, generation string) error {
	before, known := w.read[state.Index]
	fresh := state.Asked - before
	if known && (fresh == 0 || state.Generation != generation && fresh < max(reopenFor, state.Sections/10)) {
		return nil
	}
	w.read[state.Index] = state.Asked
	if !known && state.Generation == generation {
		return nil // it was opened with them
	}
	return w.Library.Reopen(state.Index)
}

// task writes what an index lacks.
func (w *Writer) task(p api.Project) task.Task {
	return task.Task{Name: "questions/" + string(p.ID), Place: "task/questions/" + string(p.ID),
		Pause:  backoff.Exponential(30*time.Second, 10*time.Minute),
		Handle: func(ctx context.Context, _ int) (time.Duration, error) { return w.write(ctx, p) }}
}

// errSpent says that the day's limit is used up.
var errSpent = errors.New("the day's limit is used up")

func (w *Writer) write(ctx context.Context, p api.Project) (time.Duration, error) {
	give, err := w.slots.Take(ctx)
	if err != nil {
		return 0, err
	}
	defer give()
	generation, err := w.Library.Sections(ctx, p.ID, questions.LongestSection, some,
		func(all []search.SectionKey) ([]search.SectionKey, error) { return w.lacking(ctx, p.ID, all) },
		func(texts []search.SectionText) error { return w.ask(ctx, p, texts) })
	switch {
	case errors.Is(err, search.ErrNotIndexed):
		return task.Done, nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err == nil && generation == "": // a newer one has taken its place
		return 0, nil
	}
	noted := w.Catalog.ChangeWrittenState(ctx, p.ID, func(s *api.WrittenState) {
		if s.Generation, s.Problem = generation, ""; err != nil {
			s.Problem = problem(err)
		}
	})
	if errors.Is(err, errSpent) {
		now := w.Now().UTC()
		return now.Truncate(24*time.Hour).AddDate(0, 0, 1).Sub(now), noted
	}
	if err == nil {
		if noted == nil {
			w.Start() // so that searches have them at once
		}
		return task.Done, noted
	}
	if later, ok := errors.AsType[*model.Unavailable](err); ok {
		return later.After, err
	}
	return 0, err
}

// problem is why no questions are written, in words for people of the project: the operator sees more in the log.
func problem(err error) string {
	if errors.Is(err, errSpent) {
		return errSpent.Error()
	}
	return "the model gives none"
}

// lacking are those of the sections that have no questions yet.
func (w *Writer) lacking(ctx context.Context, index api.ProjectID, all []search.SectionKey) ([]search.SectionKey, error) {
	names := make([]string, len(all))
	for i, k := range all {
		names[i] = hex.EncodeToString(k[:])
	}
	list, err := w.Catalog.WrittenQuestions(ctx, names)
	if err != nil {
		return nil, err
	}
	has := make(map[string]bool, len(list))
	used := make([]string, 0, len(list))
	for i := range list {
		has[list[i].Key] = true
		used = append(used, list[i].Key)
	}
	var missing []search.SectionKey
	for i, k := range all {
		if !has[names[i]] {
			missing = append(missing, k)
		}
	}
	if len(missing) > 0 {
		w.Log.Info("generating questions", "project", index, "sections", len(all), "missing", len(missing), "model", w.Model)
	}
	if err := w.Catalog.UseWritten(ctx, used); err != nil {
		return nil, err
	}
	return missing, w.Catalog.ChangeWrittenState(ctx, index, func(s *api.WrittenState) {
		s.Model, s.Sections, s.Written, s.Generation = w.Model, len(all), len(list), ""
	})
}

// ask has the questions of some sections written. What was written is kept, whatever becomes of the others.
func (w *Writer) ask(ctx context.Context, p api.Project, texts []search.SectionText) error {
	day, err := w.Catalog.WrittenState(ctx, api.EveryIndex)
	if err != nil {
		return err
	}
	if day.Day == w.Now().UTC().Format(time.DateOnly) && (w.DayTokens > 0 && day.DayTokens >= w.DayTokens || w.DayCost > 0 && day.DayCost >= w.DayCost) {
		return errSpent
	}
	group, within := background.WithContext(ctx)
	group.SetLimit(calls)
	for i := range texts {
		group.Go(func() error {
			if err := within.Err(); err != nil {
				return err
			}
			return w.one(within, p, &texts[i])
		})
	}
	return group.Wait()
}

// one has the questions of one section written and keeps them. One of which the model makes nothing keeps that.
func (w *Writer) one(ctx context.Context, p api.Project, section *search.SectionText) error {
	key := hex.EncodeToString(section.Key[:])
	name := cmp.Or(p.Name, string(p.ID))
	list, usage, err := questions.Write(ctx, w.Models, w.Model, name, section.Text, "questions."+key)
	if err != nil && !questions.Final(err) {
		return fmt.Errorf("questions of a section: %w", err)
	}
	if err != nil {
		w.Log.Debug("a section gets no written questions", "project", p.ID, "error", err)
	}
	// It is paid for: a stop meanwhile does not lose it.
	return w.Catalog.KeepWritten(context.WithoutCancel(ctx), p.ID, api.WrittenSection{Key: key, Questions: list, Model: w.Model},
		int64(usage.PromptTokens+usage.CompletionTokens), usage.Cost)
}
