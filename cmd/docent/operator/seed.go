package operator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/bench/traffic"
	"docent/cmd/docent/stores"
	"docent/internal/background"
	"docent/persistence/catalog"
	"docent/persistence/journal"
)

type (
	// SeedParams say how much is made up.
	SeedParams struct {
		Project       api.ProjectID `json:"project"`
		Conversations int           `json:"conversations"`
		Jobs          int           `json:"jobs"`
		Seed          uint64        `json:"seed"`
	}
	// Seeded says what was made up.
	Seeded struct {
		Conversations int     `json:"conversations"`
		Questions     int     `json:"questions"`
		Jobs          int     `json:"jobs"`
		Seconds       float64 `json:"seconds"`
	}
)

// seedAtOnce is how many streams are written at the same time: they share commits.
const seedAtOnce = 256

// seed fills a data directory that no server uses with half a year of a busy site: through the journal, with the
// listings that follow from it.
func (o *Service) seed(ctx context.Context, p SeedParams, progress Progress) (Seeded, error) {
	began := time.Now()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // what is known of all streams stays, and is not looked at again for each batch
	var made Seeded
	if o.server != nil {
		return made, errors.New("a server uses this data directory: stop it first")
	}
	if _, err := o.stores.Catalog.Project(ctx, p.Project); err != nil {
		return made, err
	}
	err := o.withJournal(ctx, func(j journal.Store) error {
		if err := seedJournal(ctx, j, p, progress, &made); err != nil {
			return err
		}
		err := stores.WithListings(o.stores.Catalog, j, func(list []*catalog.Projector) error {
			for i, listing := range list {
				progress("listing", i, len(list))
				if err := listing.Wait(ctx, catalog.Newest); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return o.stores.Catalog.FinishTexts(ctx)
	})
	made.Seconds = time.Since(began).Seconds()
	return made, err
}

// seedJournal appends the events of conversations and jobs.
func seedJournal(ctx context.Context, j journal.Store, p SeedParams, progress Progress, made *Seeded) error {
	group, ctx := background.WithContext(ctx)
	group.SetLimit(seedAtOnce)
	add := func(stream string, events []journal.Event, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		group.Go(func() error {
			_, err := j.Append(ctx, journal.Append{Stream: stream, Events: events})
			return err
		})
		if made.Conversations+made.Jobs == 0 || (made.Conversations+made.Jobs)%1000 == 0 {
			progress("writing", made.Conversations+made.Jobs, p.Conversations+p.Jobs)
		}
		return nil
	}
	now := time.Now()
	for t := range traffic.Conversations(p.Seed, p.Conversations, p.Project, now) {
		events, err := conversationEvents(t)
		if err := add(thread.Stream(t.ID), events, err); err != nil {
			return errors.Join(err, group.Wait())
		}
		made.Conversations++
		made.Questions += len(t.Questions)
	}
	for one := range traffic.Jobs(p.Seed, p.Jobs, p.Project, now) {
		events, err := jobEvents(one)
		if err := add(job.Stream(one.Row.Job.ID), events, err); err != nil {
			return errors.Join(err, group.Wait())
		}
		made.Jobs++
	}
	return group.Wait()
}

// conversationEvents are what a thread's journal holds of a conversation.
func conversationEvents(t api.ThreadRow) ([]journal.Event, error) {
	events := []thread.Event{thread.Opened{Project: t.Project, Caller: t.Caller, At: t.Questions[0].Asked}}
	for _, q := range t.Questions {
		e := thread.Exchange{Turn: q.ID, Question: q.Question, Asked: q.Asked, Channel: q.Channel, Page: q.Page}
		events = append(events, thread.Asked{Exchange: e})
		if q.Error != "" {
			events = append(events, thread.TurnFailed{Turn: q.ID, Reason: q.Error, At: q.Ended})
			continue
		}
		a := thread.Answered{Turn: q.ID, Text: q.Answer, Model: q.Model, Answered: q.Answered, At: q.Ended, Reason: "stop",
			Trace: &thread.Trace{First: thread.Micros(1000 * q.FirstText)}}
		for i, s := range q.Sources {
			a.Sources = append(a.Sources, thread.Source{ID: fmt.Sprint(i + 1), URL: s.URL, Title: s.Title})
		}
		events = append(events, a)
		if q.Rating != "" {
			events = append(events, thread.Rated{Turn: q.ID,
				Feedback: thread.Feedback{Rating: q.Rating, Comment: q.Comment, At: q.Rated}})
		}
	}
	return encoded(events, thread.Encode)
}

// jobEvents are what a job's journal holds of a job that has ended.
func jobEvents(one traffic.Job) ([]journal.Event, error) {
	j := one.Row.Job
	events := []job.Event{
		job.Created{Project: one.Row.Project, Job: j.ID, User: api.KeyID(one.Row.User), Source: j.Source, Model: j.Model,
			At: j.CreatedAt, Works: j.Model},
		job.Prompted{ID: string(j.ID), Prompt: one.Prompt, At: j.CreatedAt},
		job.Progressed{Title: j.Title, At: j.UpdatedAt},
	}
	if j.Status == api.JobFailed {
		events = append(events, job.Failed{Reason: one.Row.Halt, Message: j.Message, At: j.UpdatedAt})
	} else {
		events = append(events, job.Finished{Message: j.Message, At: j.UpdatedAt, Outcome: j.Outcome})
	}
	if j.ArchivedAt != nil {
		events = append(events, job.Archived{At: *j.ArchivedAt})
	}
	return encoded(events, job.Encode)
}

func encoded[E any](events []E, encode func(E) (journal.Event, error)) ([]journal.Event, error) {
	out := make([]journal.Event, len(events))
	var err error
	for i, ev := range events {
		if out[i], err = encode(ev); err != nil {
			return nil, err
		}
	}
	return out, nil
}
