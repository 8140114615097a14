package reports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"docent/api"
	"docent/internal/required"
	"docent/internal/task"
	"docent/persistence/journal"
)

const (
	tick        = 30 * time.Second // the clock is looked at this often, since it may have been set
	followEvery = 10 * time.Minute // code hosts are asked what was merged
	place       = "task/reports"   // where reports are made, on one of several nodes
)

// EventType is the type of the journal's events.
const EventType = string(api.EventReportWeekly)

const streamPrefix = "report/"

// Stream is the journal's stream of a project's weekly reports.
func Stream(project api.ProjectID) string { return streamPrefix + string(project) }

// OfStream is the project whose weekly reports a stream holds, if it is such a stream.
func OfStream(stream string) (api.ProjectID, bool) {
	project, ok := strings.CutPrefix(stream, streamPrefix)
	return api.ProjectID(project), ok
}

// ID is what receivers know the report of a week by. There is one.
func ID(project api.ProjectID, week string) string {
	return api.ReportPrefix + string(project) + "_" + week
}

// A Message is a weekly report as the journal holds it and receivers get it.
type Message struct {
	Type      api.EventKind `json:"type"`
	Version   int           `json:"version"`
	Timestamp time.Time     `json:"timestamp"`
	Data      Report        `json:"data"`
}

// Decode reads an event of the journal.
func Decode(e journal.Event) (m Message, err error) {
	if e.Type != EventType {
		return m, fmt.Errorf("no event of reports has the type %q", e.Type)
	}
	return m, json.Unmarshal(e.Data, &m)
}

// Understood says why a stream of reports cannot be read.
func Understood(rec journal.Recovered) error {
	_, err := lastWeek(rec)
	return err
}

// lastWeek is the last week whose report a stream holds. The snapshot of a stream is nothing but that.
func lastWeek(rec journal.Recovered) (string, error) {
	if len(rec.Events) == 0 {
		return string(rec.Snapshot), nil
	}
	m, err := Decode(rec.Events[len(rec.Events)-1])
	return m.Data.Week, err
}

// New makes Reports. Nothing is made by itself before Wake.
func New(deps Deps) (*Reports, error) {
	if err := required.Fields("reports", deps, "Catalog", "Topics", "Journal", "Now", "Log", "Tasks"); err != nil {
		return nil, err
	}
	return &Reports{Deps: deps, made: map[api.ProjectID]string{}}, nil
}

// Wake has the reports that are due made now, and from now on.
func (r *Reports) Wake() { r.Tasks.Start(task.Task{Name: "reports", Place: place, Handle: r.step}) }

// step makes the reports that are due.
func (r *Reports) step(ctx context.Context, _ int) (time.Duration, error) {
	now := r.Now()
	if now.Sub(r.followed) >= followEvery || now.Before(r.followed) {
		r.followed = now
		if err := r.Topics.Follow(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("what was merged is not known yet", "error", err)
		}
	}
	hooks, err := r.Catalog.Webhooks(ctx, "")
	if err != nil {
		return tick, err
	}
	wanted := map[api.ProjectID]time.Time{} // since when a webhook wants the project's report
	for _, h := range hooks {
		if since, ok := wanted[h.Project]; h.Wants(api.EventReportWeekly) && (!ok || h.CreatedAt.Before(since)) {
			wanted[h.Project] = h.CreatedAt
		}
	}
	for project, since := range wanted {
		if err := r.weekly(ctx, project, since, now); err != nil && ctx.Err() == nil {
			r.Log.Error("weekly report failed", "project", project, "error", err)
		}
	}
	return tick, ctx.Err()
}

// weekly journals the report of a project's last week, unless it was made already or nobody wanted it when it was due.
func (r *Reports) weekly(ctx context.Context, project api.ProjectID, since, now time.Time) error {
	p, err := r.Catalog.Project(ctx, project)
	if err != nil {
		return err
	}
	w := lastDue(now, Zone(p))
	if w.due().Before(since) || r.made[project] >= w.String() {
		return nil
	}
	stream := Stream(project)
	rec, err := r.Journal.Load(stream)
	if err != nil {
		return err
	}
	last, err := lastWeek(rec)
	if err != nil {
		return err
	}
	if last >= w.String() {
		r.made[project] = last
		return nil
	}
	id := ID(project, w.String())
	// A report of before reports were journaled is known by its event.
	if _, err := r.Catalog.Event(ctx, project, id); !errors.Is(err, api.ErrNotFound) {
		if err == nil {
			r.made[project] = w.String()
		}
		return err
	}
	report, err := r.Make(ctx, p, w)
	if err != nil {
		return err
	}
	body, err := json.Marshal(Message{api.EventReportWeekly, 1, r.Now().UTC().Truncate(time.Second), report})
	if err != nil {
		return err
	}
	seq, err := r.Journal.Append(ctx, journal.Append{Stream: stream, After: rec.Seq, Urgency: journal.Later,
		Events: []journal.Event{{Type: EventType, Data: body}}})
	if err != nil {
		return err
	}
	r.Journal.Snapshot(stream, seq, []byte(w.String())) // what was sent does not stay in the journal
	r.made[project] = w.String()
	r.Log.Info("weekly report", "project", project, "week", w.String(), "report", id)
	return nil
}
