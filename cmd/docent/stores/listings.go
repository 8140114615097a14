package stores

import (
	"context"
	"log/slog"
	"strings"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/internal/background"
	"docent/persistence/catalog"
	"docent/persistence/journal"
)

// A Listing is a copy in the catalog of what the journal has, which follows it while it runs.
type Listing struct {
	*catalog.Projector
	End func() // ends its following, once it runs no more
}

// NewListings are the listings of jobs and of questions. They follow the journal while they run.
func NewListings(c *catalog.Catalog, j journal.Store, log *slog.Logger) ([]Listing, error) {
	rows := &listed{journal: j}
	jobs, err := j.Follow(catalog.JobListing)
	if err != nil {
		return nil, err
	}
	list := []Listing{{c.NewProjector(jobs, rows.job, log), jobs.Close}}
	threads, err := j.Follow(catalog.QuestionListing)
	if err != nil {
		return list, err
	}
	return append(list, Listing{c.NewThreadProjector(threads, rows.thread, log), threads.Close}), nil
}

// WithListings has the listings follow the journal while use does something with them.
func WithListings(c *catalog.Catalog, j journal.Store, use func([]*catalog.Projector) error) error {
	list, err := NewListings(c, j, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var running background.Work
	var projectors []*catalog.Projector
	for _, l := range list {
		defer l.End()
		running.Go("cmd/docent/stores.withListings", func() { l.Run(ctx) })
		projectors = append(projectors, l.Projector)
	}
	if err == nil {
		err = use(projectors)
	}
	cancel()
	running.Wait()
	return err
}

// listed makes the lines of listings from the journal.
type listed struct {
	journal journal.Store
	rows    thread.Rows
}

// job is a job's line in the listings.
func (l *listed) job(_ context.Context, stream string) (api.JobRow, bool, error) {
	recovered, err := l.journal.Load(stream)
	if err != nil {
		return api.JobRow{}, false, err
	}
	return job.Row(api.JobID(strings.TrimPrefix(stream, job.Stream(""))), recovered)
}

// thread is a thread as analytics see it.
func (l *listed) thread(_ context.Context, stream string, since uint64) (api.ThreadRow, bool, error) {
	id := api.ThreadID(strings.TrimPrefix(stream, thread.Stream("")))
	first, events, err := l.journal.LoadSince(stream, since)
	if err != nil {
		return api.ThreadRow{}, false, err
	}
	if row, ok := l.rows.Changed(id, first, events); ok {
		return row, true, nil
	}
	recovered, err := l.journal.Load(stream)
	if err != nil {
		return api.ThreadRow{}, false, err
	}
	return l.rows.Whole(id, recovered)
}
