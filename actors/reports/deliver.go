package reports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"docent/api"
	"docent/internal/outbound"
	"docent/internal/required"
	"docent/internal/task"
)

const (
	tick        = 30 * time.Second // the clock is looked at this often, since it may have been set
	followEvery = 10 * time.Minute // code hosts are asked what was merged
	mostAtOnce  = 4                // deliveries
)

// pauses are the times between one attempt and the next: three days altogether.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour,
	3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 24 * time.Hour}

// place is where reports are made and delivered, on one of several nodes.
const place = "task/reports"

type deliverer struct {
	sender   *outbound.Sender
	sending  task.Slots
	followed time.Time
}

// New makes Reports. Nothing is delivered before Wake.
func New(deps Deps) (*Reports, error) {
	if err := required.Fields("reports", deps, "Catalog", "Topics", "Secrets", "Now", "Log", "Tasks"); err != nil {
		return nil, err
	}
	return &Reports{Deps: deps, deliverer: deliverer{sending: make(task.Slots, mostAtOnce),
		sender: outbound.New(deps.Targets, nil)}}, nil
}

// Wake has what is due delivered now, and from now on.
func (r *Reports) Wake() { r.Tasks.Start(task.Task{Name: "reports", Place: place, Handle: r.step}) }

// step makes the reports that are due and begins the deliveries, and says how long there is nothing more to do.
func (r *Reports) step(ctx context.Context, _ int) (time.Duration, error) {
	now := r.Now()
	if now.Sub(r.followed) >= followEvery || now.Before(r.followed) {
		r.followed = now
		if err := r.Topics.Follow(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("what was merged is not known yet", "error", err)
		}
	}
	if err := r.store(ctx, now); err != nil {
		return tick, err
	}
	due, next, err := r.Catalog.DueReports(ctx, now)
	if err != nil {
		return tick, err
	}
	for _, d := range due {
		r.Tasks.Start(task.Task{Name: "reports/" + d.ID, Place: place, Handle: r.delivery(d.ID)})
	}
	wait := tick
	if !next.IsZero() {
		wait = min(wait, max(next.Sub(r.Now()), time.Second))
	}
	return wait, nil
}

// delivery sends a report whenever it is due. An attempt that cannot be stored is stored later, and not made again.
func (r *Reports) delivery(id string) func(context.Context, int) (time.Duration, error) {
	var made *api.ReportDelivery
	return func(ctx context.Context, _ int) (time.Duration, error) {
		give, err := r.sending.Take(ctx)
		if err != nil {
			return 0, err
		}
		defer give()
		if made == nil {
			d, err := r.Catalog.Report(ctx, id)
			if err == nil && (d.Status != api.ReportPending || d.Next.After(r.Now())) || errors.Is(err, api.ErrNotFound) {
				return task.Done, nil
			}
			if err == nil {
				err = r.attempt(ctx, &d)
			}
			if err != nil {
				return 0, err
			}
			made = &d
		}
		if err := r.Catalog.SaveReport(ctx, *made); err != nil && !errors.Is(err, api.ErrNotFound) {
			return 0, fmt.Errorf("store how report %s was delivered: %w", id, err)
		}
		made = nil
		r.Wake() // the next attempt has its time
		return task.Done, nil
	}
}

// store stores the report of each week that is over, once.
func (r *Reports) store(ctx context.Context, now time.Time) error {
	hooks, err := r.Catalog.ReportHooks(ctx)
	if err != nil {
		return err
	}
	for _, h := range hooks {
		zone, err := Zone(h.TimeZone)
		if err != nil {
			r.Log.Error("a report's time zone is not known", "project", h.Project, "zone", h.TimeZone)
			zone = time.UTC
		}
		w := lastDue(now, zone)
		if h.Off || w.due().Before(h.CreatedAt) {
			continue
		}
		id := reportID(h.Project, w)
		if _, err := r.Catalog.Report(ctx, id); !errors.Is(err, api.ErrNotFound) {
			if err != nil {
				return err
			}
			continue
		}
		if err := r.add(ctx, h.Project, w, id, false); err != nil {
			r.Log.Error("a weekly report could not be made", "project", h.Project, "week", w, "error", err)
		}
	}
	return ctx.Err()
}

// reportID names the report of a week: there is one.
func reportID(project api.ProjectID, w Week) string {
	return api.ReportPrefix + string(project) + "_" + w.String()
}

// A message is what receivers get, as the Standard Webhooks specification recommends.
type message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      Report    `json:"data"`
}

// add makes a report and stores it to be sent.
func (r *Reports) add(ctx context.Context, project api.ProjectID, w Week, id string, test bool) error {
	p, err := r.Catalog.Project(ctx, project)
	if err != nil {
		return err
	}
	report, err := r.Make(ctx, p, w)
	if err != nil {
		return err
	}
	now := r.Now().UTC().Truncate(time.Second)
	kind := "report.weekly"
	if test {
		kind = "report.test"
	}
	body, err := json.Marshal(message{kind, now, report})
	if err != nil {
		return err
	}
	added, err := r.Catalog.AddReport(ctx, api.ReportDelivery{ID: id, Project: project, Week: w.String(), Test: test,
		Payload: body, Status: api.ReportPending, Next: now, CreatedAt: now})
	if added {
		r.Log.Info("weekly report", "project", project, "week", w.String(), "report", id)
	}
	return err
}

// Test stores the report of the last week to be sent at once, as a test, and gives its id.
func (r *Reports) Test(ctx context.Context, project api.ProjectID) (string, error) {
	h, err := r.Catalog.ReportHook(ctx, project)
	if err != nil {
		return "", err
	}
	zone, err := Zone(h.TimeZone)
	if err != nil {
		return "", err
	}
	now := r.Now()
	id := api.NewID(api.ReportPrefix, now)
	if err := r.add(ctx, project, WeekOf(now, zone).Add(-1), id, true); err != nil {
		return "", err
	}
	r.Wake()
	return id, nil
}

// attempt sends a report once, and says in it how that went.
func (r *Reports) attempt(ctx context.Context, d *api.ReportDelivery) error {
	h, err := r.Catalog.ReportHook(ctx, d.Project)
	now := r.Now()
	end := func(status api.ReportStatus) {
		d.Status, d.EndedAt = status, &now
	}
	switch {
	case errors.Is(err, api.ErrNotFound) || err == nil && h.Off && !d.Test:
		d.Error = "there is no webhook any more"
		end(api.ReportFailed)
		return nil
	case err != nil:
		return err
	}
	d.Attempts++
	answer, err := r.send(ctx, h, *d)
	d.Code = answer.Code
	if ctx.Err() != nil {
		return ctx.Err() // the server stops: whether it arrived is not known, and it is sent again
	}
	switch {
	case err == nil:
		d.Error = ""
		end(api.ReportDelivered)
	case d.Code == http.StatusGone:
		d.Error = err.Error()
		end(api.ReportFailed)
		if err := r.turnOff(ctx, h, d.Project); err != nil {
			return err
		}
	case d.Attempts > len(pauses) || d.Test && d.Attempts >= 3:
		d.Error = err.Error()
		end(api.ReportFailed)
	default:
		d.Error = err.Error()
		d.Next = now.Add(max(answer.Pause, pauses[d.Attempts-1]))
	}
	r.Log.Info("a weekly report was sent", "project", d.Project, "report", d.ID, "attempt", d.Attempts, "status", d.Status,
		"code", d.Code, "problem", d.Error)
	return nil
}

// turnOff heeds a receiver that says that it is gone permanently.
func (r *Reports) turnOff(ctx context.Context, h api.ReportHook, project api.ProjectID) error {
	h.Project, h.Off = project, true
	h.OffReason = "the receiver answered 410 Gone"
	return r.Catalog.SetReportHook(ctx, h)
}

// send makes one request.
func (r *Reports) send(ctx context.Context, h api.ReportHook, d api.ReportDelivery) (outbound.Answer, error) {
	secret, err := r.Secrets.Read(h.Secret)
	if err != nil {
		return outbound.Answer{}, errors.New("the signing secret is not in the data directory, as after a restore: make a new one")
	}
	return r.sender.Send(ctx, outbound.Message{URL: h.URL, ID: d.ID, Secrets: []string{secret}, Body: d.Payload, At: r.Now()})
}
